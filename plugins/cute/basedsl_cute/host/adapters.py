"""`register_jit_arg_adapter`: how a program passes its own types to `@jit` functions."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

from basedsl.errors import DSLTypeError

F = TypeVar("F", bound=Callable[[Any], Any])

_adapters: dict[type, Callable[[Any], Any]] = {}


def register_jit_arg_adapter(*kinds: type) -> Callable[[F], F]:
    """Decorator of a function that makes an argument of a value of one of `kinds`.

    It gives something that `@jit` functions take: a number, an array or `from_dlpack` of one, a
    pointer, a tuple, NamedTuple or dataclass of these. It is called at every call; what it gives
    has one type for all values that are to share compiled code.

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
    """The adapter registered for a type or a base of it."""
    if not _adapters:
        return None
    return next((_adapters[base] for base in kind.__mro__ if base in _adapters), None)
