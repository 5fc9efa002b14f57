"""Searches in integer tuples: first leaves, places of leaves, the contiguous mode."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from .coordinates import has_none
from .ignored_location import takes_location
from .int_tuple import IntTuple

Place = int | tuple[int, ...] | None


@takes_location
def has_underscore(x: Any) -> bool:
    """Return True if the coordinate `x` keeps some mode, that is, has a `None` in it.

    >>> has_underscore((1, (None, 2))), has_underscore((1, 2))
    (True, False)
    """
    return has_none(x)


@takes_location
def front(x: IntTuple) -> Any:
    """Return the first leaf of the int tuple `x`.

    >>> front(((3, 4), 5))
    3
    """
    while isinstance(x, tuple):
        x = x[0]
    return x


@takes_location
def find_if(x: Any, pred_fn: Callable[[Any], Any]) -> Place:
    """Return the place of the first leaf of the tree `x` for which `pred_fn` is true, or None.

    The place is an index, for nested tuples the indices that lead there.

    >>> find_if((8, (1, 4)), lambda leaf: leaf == 1)
    (1, 0)
    """
    if not isinstance(x, tuple):
        return 0 if pred_fn(x) else None
    path = _path(x, pred_fn)
    return path[0] if path is not None and len(path) == 1 else path


@takes_location
def find(pattern: Any, x: Any, *, start: int = 0) -> Place:
    """Return the place of the first leaf of the tree `x` equal to `pattern`, or None.

    The place is an index, for nested tuples the indices that lead there; the search begins at mode
    `start`.

    >>> find(8, (8, 1, 8)), find(8, (8, 1, 8), start=1), find(3, (8, 1))
    (0, 2, None)
    """
    if not isinstance(x, tuple):
        return 0 if start == 0 and x == pattern else None
    found = find_if((*(None,) * start, *x[start:]), lambda leaf: leaf == pattern)
    return found


@takes_location
def is_major(mode: int, stride: IntTuple) -> bool:
    """Return True if a mode is contiguous: the first leaf of its stride is 1.

    >>> is_major(1, stride=(8, 1))
    True
    """
    return bool(isinstance(stride, tuple) and front(stride[mode]) == 1)


@takes_location
def leading_dim(shape: IntTuple, stride: IntTuple) -> Place:
    """Return the place, as `find_if`, of the mode of stride 1 in a layout of the given `shape` and
    `stride`, or None.

    Of several it is the first with an extent other than 1.

    >>> leading_dim((4, 8), (8, 1)), leading_dim((4, 8), (16, 2))
    (1, None)
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
    """Return the way to a leaf; with `shape`, one whose extent is not 1."""
    for i, element in enumerate(x):
        extent = shape[i] if isinstance(shape, tuple) else None
        if isinstance(element, tuple):
            rest = _path(element, pred_fn, extent)
            if rest is not None:
                return (i, *rest)
        elif pred_fn(element) and not (shape is not None and _is_one(extent)):
            return (i,)
    return None
