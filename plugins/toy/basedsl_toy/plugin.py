"""The plugin of toy: its hooks, which the core finds through an entry point."""

from __future__ import annotations

from typing import TYPE_CHECKING

from basedsl.plugin import AdapterEntry, DSLEntry, hookimpl

if TYPE_CHECKING:
    from basedsl.conformance import Adapter
    from basedsl_toy.dsl import Toy


def _load() -> Toy:
    from basedsl_toy.dsl import TOY

    return TOY


@hookimpl
def basedsl_register_dsls() -> list[DSLEntry]:
    """The DSL `toy`, imported when somebody asks for it."""
    return [DSLEntry("toy", _load, "scalars and NumPy buffers, compiled for the CPU")]


def _load_adapter() -> Adapter:
    from basedsl_toy.conformance import ADAPTER

    return ADAPTER


@hookimpl
def basedsl_conformance_adapters() -> list[AdapterEntry]:
    """The adapter that runs the conformance programs on toy."""
    return [AdapterEntry("toy", _load_adapter)]
