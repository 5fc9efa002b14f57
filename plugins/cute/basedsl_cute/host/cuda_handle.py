"""Handles of CUDA's objects in compiled code, and the argument types that pass them: the base of
streams and events.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Self

from basedsl import ArgumentType, Int64


class CudaHandle:
    """The handle of an object of CUDA, known at run time. `value` is it in the IR, of 64 bits."""

    #: The name of such an object, in messages.
    noun: ClassVar[str]
    __dsl_leaf__ = True

    def __init__(self, value: Any) -> None:
        self._value = value

    def ir_value(self) -> Any:
        return self._value

    def with_ir_value(self, value: Any) -> Self:
        """Return the object whose handle is the SSA `value`, of 64 bits."""
        return type(self)(value)

    def leaf_type(self) -> str:
        return self.noun

    def undefined(self) -> Any:
        return Int64(0).ir_value()


@dataclass(frozen=True)
class HandleArgument(ArgumentType):
    """The base of argument types that pass a handle. A subclass says in `traced` which class it has
    in compiled code, and gives `pack`.
    """

    traced: ClassVar[type[CudaHandle]]
    storage = ("Q",)

    def ir_types(self, ir: Any) -> list[Any]:
        return [ir.IntegerType.get_signless(64)]

    def proxy(self, values: Sequence[Any]) -> CudaHandle:
        return self.traced(values[0])

    def __str__(self) -> str:
        return self.traced.__name__
