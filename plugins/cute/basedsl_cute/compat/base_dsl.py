"""The names that programs import from `base_dsl`: the object that stands for the DSL, and its
protocol.
"""

from __future__ import annotations

import os
from typing import Any, Protocol, runtime_checkable

from basedsl_cute.dsl.cute import CUTE
from basedsl_cute.dsl.machine import current_target
from basedsl_cute.hardware.arch_enum import Arch, arch_of


@runtime_checkable
class JitArgument(Protocol):
    """The methods of an object that says itself what it is as an argument: `host.jit_protocol`."""

    def __c_pointers__(self) -> list[Any]: ...

    def __get_mlir_types__(self) -> list[Any]: ...

    def __new_from_mlir_values__(self, values: list[Any]) -> Any: ...


class EnvironmentOptions:
    """The options as environment variables set them. An attribute that is set becomes a variable of
    this process: what is compiled from then on, and no cache, depends on it.
    """

    def __getattr__(self, name: str) -> Any:
        if name == "arch":
            return current_target().name
        return getattr(CUTE.options, name)

    def __setattr__(self, name: str, value: Any) -> None:
        changed = CUTE.options.replace(**{name: value})  # raises for a wrong name or value
        new = getattr(changed, name)
        text = ",".join(new) if isinstance(new, tuple) else str(int(new) if new is True else new)
        os.environ[f"{type(changed).PREFIX}{name.upper()}"] = "0" if new is False else text


class BaseDSL:
    """The object by which programs ask for the architecture that they are compiled for."""

    @classmethod
    def _get_dsl(cls) -> BaseDSL:
        return cls()

    @property
    def envar(self) -> EnvironmentOptions:
        """The options of the environment, which programs may set: `envar.arch = "sm_100"`."""
        return EnvironmentOptions()

    def get_arch_enum(self) -> Arch:
        """Return the architecture that a call now compiles for; sm_90a on the simulator."""
        return arch_of(current_target())


CuTeDSL = BaseDSL
