"""Every question that basedsl asks a plugin.

A distribution names its DSLs and their conformance declarations as entry points, which are imported
only when somebody asks for them:

    [project.entry-points."basedsl.dsls"]
    toy = "basedsl_toy.dsl:TOY"

    [project.entry-points."basedsl.conformance"]
    toy = "basedsl_toy.conformance:CONFORMANCE"

Everything else is a hook. A plugin is a module named by an entry point in the group `basedsl`; it
answers with functions of these names, marked with `hookimpl`, taking any of the parameters below by
name:

    from basedsl.plugin import hookimpl

    @hookimpl
    def basedsl_stage_output(function, stage, output):
        print(function, stage)

Keep such a module light: it is imported when the first question is asked, by any DSL's first
compilation. Wrappers (`hookimpl(wrapper=True)`) are not taken.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeVar

import pluggy

if TYPE_CHECKING:
    import argparse

GROUP = "basedsl"
"""Name of the entry-point group of plugins with hooks, and of the pluggy project."""

DSL_GROUP = "basedsl.dsls"
"""Name of the entry-point group of DSLs: each entry is a DSL object, by its name."""

CONFORMANCE_GROUP = "basedsl.conformance"
"""Name of the entry-point group of conformance declarations."""

F = TypeVar("F", bound=Callable[..., Any])

_spec: Callable[..., Callable[[F], F]] = pluggy.HookspecMarker(GROUP)
hookimpl = pluggy.HookimplMarker(GROUP)


@dataclass(frozen=True)
class DSLEntry:
    """A DSL by name. `load` imports and returns it when somebody asks for it; the object's `name`
    must be the same. `summary` is one line for `basedsl list`.
    """

    name: str
    load: Callable[[], Any]
    summary: str = ""


@dataclass(frozen=True)
class Command:
    """A subcommand of `basedsl`. `configure` adds its arguments to the parser; `run` gets the
    parsed ones and returns the exit status. `help` is one line for `basedsl --help`.
    """

    name: str
    help: str
    configure: Callable[[argparse.ArgumentParser], None]
    run: Callable[[argparse.Namespace], int]


@dataclass(frozen=True)
class ConformanceEntry:
    """A conformance declaration by name: `load` imports and returns a `basedsl.Conformance`."""

    name: str
    load: Callable[[], Any]


@_spec
def basedsl_register_dsls() -> list[DSLEntry]:  # type: ignore[empty-body]
    """DSLs that no entry point names. Asked once, when the plugin is registered."""


@_spec
def basedsl_stage_output(dsl: str, function: str, stage: str, output: Any) -> Any:
    """See, and possibly replace, the output of a stage: for dumps, profiles, post-compilers.

    `output` is a `basedsl.objectstage.Snapshot`; `stage` is the name of a step of the DSL's
    pipeline, or of its input. Return another snapshot to put in its place, for the following steps
    as well, or None. Plugins are asked in order of their names and each sees the snapshot that the
    one before it returned. While no plugin implements this hook it costs nothing.
    """


@_spec
def basedsl_adapt_argument(dsl: str, kind: type, declared: Any) -> Any:
    """Return how to pass arguments of a foreign type: a function from such a value to one that the
    DSL knows (an object with DLPack, a leaf of the DSL); None if this plugin does not know the
    type.

    Asked once for each type `kind`, so the answer must depend on nothing else; `declared` is the
    parameter's annotation or None. Two plugins that both answer are an error that names them.
    """


@_spec
def basedsl_cli_commands() -> list[Command]:  # type: ignore[empty-body]
    """Return subcommands for the `basedsl` command line."""


@_spec
def basedsl_conformances() -> list[ConformanceEntry]:  # type: ignore[empty-body]
    """Conformance declarations that no entry point names."""
