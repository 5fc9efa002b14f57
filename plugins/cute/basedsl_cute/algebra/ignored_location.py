"""The decorator that has a function take and ignore the keyword arguments `loc` and `ip`.

Programs written for CuTe's DSL may pass an MLIR location and an insertion point to any operation.
Here an operation has the location of the user's line and goes to the current insertion point, so
both arguments mean nothing.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, Concatenate, ParamSpec, Protocol, TypeVar, cast, overload

from .explained_calls import explain

P = ParamSpec("P")
Q = ParamSpec("Q")
R = TypeVar("R", covariant=True)
F = TypeVar("F", bound=Callable[..., Any])


class TakesLocation(Protocol[P, R]):
    """The type of a decorated function: its own signature, and the same with `loc` and `ip`."""

    __name__: str
    __qualname__: str

    @property
    def __wrapped__(self) -> Callable[P, R]:
        """The function itself, for the library's own calls of what it calls most."""

    @overload
    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> R: ...
    @overload
    def __call__(self, *args: Any, loc: Any, ip: Any = ..., **kwargs: Any) -> R: ...
    @overload
    def __call__(self, *args: Any, ip: Any, **kwargs: Any) -> R: ...
    def __call__(self, *args: Any, **kwargs: Any) -> Any: ...

    @overload
    def __get__(self, instance: None, owner: Any = ..., /) -> TakesLocation[P, R]: ...
    @overload
    def __get__(
        self: TakesLocation[Concatenate[Any, Q], R], instance: object, owner: Any = ..., /
    ) -> TakesLocation[Q, R]: ...
    def __get__(self, instance: object, owner: Any = None, /) -> Any: ...


def takes_location(function: Callable[P, R]) -> TakesLocation[P, R]:
    """Decorate a function or method to accept the keyword arguments `loc` and `ip`, ignored.

    >>> @takes_location
    ... def double(x: int) -> int:
    ...     return 2 * x
    >>> double(4, loc=None, ip=None)
    8
    """

    @functools.wraps(function)
    def call(*args: Any, loc: Any = None, ip: Any = None, **kwargs: Any) -> Any:
        try:
            return function(*args, **kwargs)
        except TypeError as error:
            explain(error, function)
            raise

    return cast("TakesLocation[P, R]", call)


def takes_location_untyped(function: F) -> F:
    """Accept `loc` and `ip` in `function`, a constructor, class method or static method, which
    comes back with its own type. Type checkers bind such a function only where it is a plain one,
    and so report `loc` and `ip` in calls of it.
    """
    return cast("F", takes_location(function))
