"""Searching integer tuples: first leaves, places of leaves, which mode is contiguous."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from .coordinates import has_none
from .ignored_location import takes_location
from .int_tuple import IntTuple

Place = int | tuple[int, ...] | None


@takes_location
def has_underscore(x: Any) -> bool:
    """True if a coordinate keeps some mode: has a `None` in it."""
    return has_none(x)


@takes_location
def front(x: IntTuple) -> Any:
    """The first leaf.

    >>> front(((3, 4), 5))
    3
    """
    while isinstance(x, tuple):
        x = x[0]
    return x


@takes_location
def find_if(x: Any, pred_fn: Callable[[Any], Any]) -> Place:
    """Where the first leaf is for which `pred_fn` is true: an index, for nested tuples the indices
    that lead there; None if there is none.

    >>> find_if((8, (1, 4)), lambda leaf: leaf == 1)
    (1, 0)
    """
    if not isinstance(x, tuple):
        return 0 if pred_fn(x) else None
    path = _path(x, pred_fn)
    return path[0] if path is not None and len(path) == 1 else path


@takes_location
def find(pattern: Any, x: Any, *, start: int = 0) -> Place:
    """Where the first leaf equal to `pattern` is, from mode `start` on; as `find_if`."""
    if not isinstance(x, tuple):
        return 0 if start == 0 and x == pattern else None
    found = find_if((*(None,) * start, *x[start:]), lambda leaf: leaf == pattern)
    return found


@takes_location
def is_major(mode: int, stride: IntTuple) -> bool:
    """Whether a mode is contiguous: the first leaf of its stride is 1."""
    return bool(isinstance(stride, tuple) and front(stride[mode]) == 1)


@takes_location
def leading_dim(shape: IntTuple, stride: IntTuple) -> Place:
    """The mode of stride 1, the first one with an extent other than 1 if it has others; as
    `find_if`.

    >>> leading_dim((4, 8), (8, 1))
    1
    """
    if not isinstance(stride, tuple) or not isinstance(shape, tuple):
        return find_if(stride, _is_one)
    wide = _path(stride, _is_one, shape)
    path = wide if wide is not None else _path(stride, _is_one)
    return path[0] if path is not None and len(path) == 1 else path


def _is_one(n: Any) -> bool:
    return isinstance(n, int) and n == 1


def _path(
    x: tuple[Any, ...], pred_fn: Callable[[Any], Any], shape: Any = None
) -> tuple[int, ...] | None:
    """The way to a leaf; with `shape`, one whose extent is not 1."""
    for i, element in enumerate(x):
        extent = shape[i] if isinstance(shape, tuple) else None
        if isinstance(element, tuple):
            rest = _path(element, pred_fn, extent)
            if rest is not None:
                return (i, *rest)
        elif pred_fn(element) and not (shape is not None and _is_one(extent)):
            return (i,)
    return None
