"""`register_jit_arg_adapter`: passing a program's own classes to `@jit` functions."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

from basedsl import DSLTypeError

F = TypeVar("F", bound=Callable[[Any], Any])

_adapters: dict[type, Callable[[Any], Any]] = {}


def register_jit_arg_adapter(*kinds: type) -> Callable[[F], F]:
    """Decorate a function that converts values of the classes `kinds` to arguments.

    The function takes one value and returns a number, an array or `from_dlpack` of one, a pointer,
    or a tuple, NamedTuple or dataclass of these. It runs at every call. Values share compiled code
    if their results have one argument type. Raises DSLTypeError unless `kinds` are classes.

        @cute.register_jit_arg_adapter(MyBuffer)
        def adapt(buffer):
            return cute.runtime.from_dlpack(buffer.array, assumed_align=16)
    """
    if not kinds or not all(isinstance(kind, type) for kind in kinds):
        raise DSLTypeError(f"register_jit_arg_adapter takes types, not {kinds}")

    def register(adapter: F) -> F:
        for kind in kinds:
            _adapters[kind] = adapter
        return adapter

    return register


def adapter_of(kind: type) -> Callable[[Any], Any] | None:
    """Return the adapter registered for a class or for the nearest base of it; None without one."""
    if not _adapters:
        return None
    return next((_adapters[base] for base in kind.__mro__ if base in _adapters), None)
