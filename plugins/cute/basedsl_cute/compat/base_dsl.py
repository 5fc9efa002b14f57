"""The names that programs import from `base_dsl`: the object that stands for the DSL, and its
protocol.
"""

from __future__ import annotations

from typing import Any, Protocol, runtime_checkable

from basedsl_cute.dsl.machine import current_target
from basedsl_cute.hardware.arch_enum import Arch, arch_of


@runtime_checkable
class JitArgument(Protocol):
    """The methods of an object that says itself what it is as an argument: `host.jit_protocol`."""

    def __c_pointers__(self) -> list[Any]: ...

    def __get_mlir_types__(self) -> list[Any]: ...

    def __new_from_mlir_values__(self, values: list[Any]) -> Any: ...


class BaseDSL:
    """The object by which programs ask for the architecture that they are compiled for."""

    @classmethod
    def _get_dsl(cls) -> BaseDSL:
        return cls()

    def get_arch_enum(self) -> Arch:
        """Return the architecture that a call now compiles for; sm_90a on the simulator."""
        return arch_of(current_target())


CuTeDSL = BaseDSL
