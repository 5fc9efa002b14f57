"""Gives deep calls their frames in one piece of memory, so that they cost what shallow ones do.

CPython, from 3.11 on, keeps the frames of Python functions in chunks of 16 KiB. Where the calls of
a hot loop cross the end of a chunk, each maps the next one and unmaps it (`push_chunk` in
`Python/pystate.c`): the same compilation took 10 to 40 % longer from within pytest or a notebook
than from a script (`bench/deep_stack.py`). A call whose own frame does not fit gets a chunk of the
next power of two, and what is left of that serves the calls inside.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, ParamSpec, TypeVar

#: Slots of 8 bytes that the frame asks for and never touches: just over a half of 1 MiB.
_SLOTS = (1 << 16) + 1

P = ParamSpec("P")
R = TypeVar("R")


def in_one_chunk(function: Callable[P, R]) -> Callable[P, R]:
    """Return `function` as one whose calls find room for about 2,000 nested ones in a chunk."""

    @functools.wraps(function)
    def call(*args: P.args, **kwargs: P.kwargs) -> R:
        return _call(function, args, kwargs)

    return call


def _call(function: Callable[..., R], args: tuple[Any, ...], kwargs: dict[str, Any]) -> R:
    return function(*args, **kwargs)


_call.__code__ = _call.__code__.replace(co_stacksize=_SLOTS)
