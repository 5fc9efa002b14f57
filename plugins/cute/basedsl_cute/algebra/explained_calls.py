"""The decorator that has a function say its parameters where a call does not fit them."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, TypeVar, cast

F = TypeVar("F", bound=Callable[..., Any])


def explains_arguments(function: F) -> F:
    r"""Decorate a function whose TypeError for unfit arguments gets a hint with its parameters.

    >>> @explains_arguments
    ... def double(x: int, times: int = 1) -> int:
    ...     return x << times
    >>> try:
    ...     double(4, time=2)
    ... except TypeError as error:
    ...     print(error, *error.__notes__, sep="\n")
    double() got an unexpected keyword argument 'time'
    hint: it is double(x, times=1)
    """

    @functools.wraps(function)
    def call(*args: Any, **kwargs: Any) -> Any:
        try:
            return function(*args, **kwargs)
        except TypeError as error:
            explain(error, function)
            raise

    return cast("F", call)


def explain(error: TypeError, function: Callable[..., Any]) -> None:
    """Add the hint to an error, caught by the caller of `function`, that comes from the call itself
    and from nothing in its body.
    """
    # No frame below the caller's: Python found that the arguments do not fit.
    if error.__traceback__ is not None and error.__traceback__.tb_next is None:
        error.add_note(f"hint: it is {_signature(function)}")
        error.__dsl_explained__ = True  # type: ignore[attr-defined]


def _signature(function: Callable[..., Any]) -> str:
    """The call of a function as a program writes it: its name and its parameters."""
    import inspect  # only errors ask

    signature = inspect.signature(function)
    parameters = [
        one.replace(annotation=inspect.Parameter.empty) for one in signature.parameters.values()
    ]
    plain = signature.replace(parameters=parameters, return_annotation=inspect.Signature.empty)
    return f"{function.__name__}{plain}"
