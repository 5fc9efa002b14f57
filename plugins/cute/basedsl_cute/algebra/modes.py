"""Rearrangement of the modes of int tuples, layouts and views: select, group, flatten, slice."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, TypeAlias

from . import views
from .basis import ScaledBasis
from .composed import ComposedLayout
from .coordinates import dice_tuple, slice_tuple
from .dynamic import Dyn
from .errors import LayoutError
from .ignored_location import takes_location
from .int_tuple import (
    flatten_tuple,
    tuple_depth,
    tuple_get,
    tuple_rank,
    unflatten_tuple,
    wrap,
)
from .layout import Layout, _path, shape

Modes: TypeAlias = tuple[Any, ...]


def map_modes(x: Any, f: Callable[[Any], Any]) -> Any:
    """Return ``f`` applied to an int tuple, or to both the shape and the stride of a layout."""
    if views.is_view(x):
        return views.relaid(x, lambda layout: map_modes(layout, f))
    if isinstance(x, ComposedLayout):
        return x.with_outer(map_modes(x.outer, f))
    if isinstance(x, Layout):
        return Layout(f(x.shape), f(x.stride))
    return f(x)


@takes_location
def rank(x: Any, mode: Any = None) -> int:
    """Return the number of top-level modes of ``x``, or of its mode at the path ``mode``.

    An integer has one mode.

    >>> rank((2, (3, 4))), rank((2, (3, 4, 5)), mode=[1]), rank(7)
    (2, 3, 1)
    """
    return tuple_rank(_structure(x, mode))


@takes_location
def depth(x: Any, mode: Any = None) -> int:
    """Return the nesting depth of ``x``, or of its mode at the path ``mode``; 0 for an integer.

    >>> depth((2, (3, 4))), depth((2, (3, 4)), mode=[0])
    (2, 0)
    """
    return tuple_depth(_structure(x, mode))


def _structure(x: Any, mode: Any) -> Any:
    whole = x if isinstance(x, tuple) or x is None else shape(x)
    return tuple_get(whole, _path(mode))


@takes_location
def get(x: Any, mode: Any) -> Any:
    """Return the mode of ``x`` at the path ``mode``, an index or a list of indices.

    >>> get((1, (2, 3)), mode=[1, 0]), print(get(make_layout((4, 8)), 1))
    8:4
    (2, None)
    """
    return map_modes(x, lambda t: tuple_get(t, _path(mode)))


@takes_location
def select(x: Any, mode: Any) -> Any:
    """Return the modes of ``x`` whose indices ``mode`` lists, in that order.

    >>> select((4, 8, 16), mode=[2, 0])
    (16, 4)
    """
    modes = _path(mode)
    return map_modes(x, lambda t: tuple(tuple_get(t, (i,)) for i in modes))


@takes_location
def take(x: Any, begin: int, end: int) -> Any:
    """Modes ``begin`` to ``end`` (excluded)."""
    if not 0 <= begin < end <= rank(x):
        raise LayoutError(f"take modes [{begin},{end}) of {x}, which has {rank(x)}")
    return map_modes(x, lambda t: wrap(t)[begin:end])


@takes_location
def group_modes(x: Any, begin: int, end: int | None = None) -> Any:
    """Nest modes ``begin`` to ``end`` (excluded, default: all that follow) of `x`, a tuple, layout
    or tensor, into one.

    >>> group_modes((2, 3, 5, 7), 1, 3)
    (2, (3, 5), 7)
    """
    last = rank(x) if end is None or end == -1 else end
    if not 0 <= begin <= last <= rank(x):
        raise LayoutError(f"group modes [{begin},{last}) of {x}, which has {rank(x)}")
    return map_modes(x, lambda t: (*wrap(t)[:begin], wrap(t)[begin:last], *wrap(t)[last:]))


@takes_location
def flatten(x: Any) -> Any:
    """Return ``x`` without nesting, in the same order; an integer shape stays one.

    >>> flatten((1, (2, (3,)))), print(flatten(make_layout((4, (2, 8)))))
    (4,2,8):(1,4,8)
    ((1, 2, 3), None)
    """
    return map_modes(x, flatten_tuple)


@takes_location
def unflatten(x: Any, profile: Any) -> Any:
    """Return the leaves of ``x``, a flat tuple or list too, in the nesting of ``profile``.

    >>> unflatten([1, 2, 3], ((0, 0), 0))
    ((1, 2), 3)
    """
    return map_modes(tuple(x) if isinstance(x, list) else x, lambda t: unflatten_tuple(t, profile))


@takes_location
def append(x: Any, elem: Any = None, up_to_rank: int | None = None) -> Any:
    """Return ``x`` with ``elem`` as its last mode, or repeated until ``x`` has ``up_to_rank``
    modes.

    ``elem`` defaults to 1 for int tuples and to ``1:0`` for layouts.

    >>> append((4, 8), 2), append((4, 8), up_to_rank=4)
    ((4, 8, 2), (4, 8, 1, 1))
    """
    return _extend(x, elem, up_to_rank, lambda modes, extra: modes + extra)


@takes_location
def prepend(x: Any, elem: Any = None, up_to_rank: int | None = None) -> Any:
    """Return ``x`` with ``elem`` as its first mode, or repeated until ``x`` has ``up_to_rank``
    modes.

    ``elem`` defaults to 1 for int tuples and to ``1:0`` for layouts.

    >>> prepend((4, 8), 2), prepend((4, 8), up_to_rank=4)
    ((2, 4, 8), (1, 1, 4, 8))
    """
    return _extend(x, elem, up_to_rank, lambda modes, extra: extra + modes)


@takes_location
def append_ones(x: Any, up_to_rank: int | None = None) -> Any:
    """Return ``x`` with one mode of extent 1 at the end, or as many as give it ``up_to_rank``
    modes.

    >>> print(append_ones(make_layout(4), up_to_rank=3))
    (4,1,1):(1,0,0)
    """
    return append(x, None, up_to_rank)


@takes_location
def prepend_ones(x: Any, up_to_rank: int | None = None) -> Any:
    """Return ``x`` with one mode of extent 1 in front, or as many as give it ``up_to_rank`` modes.

    >>> print(prepend_ones(make_layout(4), up_to_rank=3))
    (1,1,4):(0,0,1)
    """
    return prepend(x, None, up_to_rank)


def _extend(
    x: Any, elem: Any, up_to_rank: int | None, join: Callable[[Modes, Modes], Modes]
) -> Any:
    if views.is_view(x):
        return views.relaid(x, lambda layout: _extend(layout, elem, up_to_rank, join))
    if isinstance(x, ComposedLayout):
        return x.with_outer(_extend(x.outer, elem, up_to_rank, join))
    count = 1 if up_to_rank is None else up_to_rank - rank(x)
    if count < 0:
        raise LayoutError(f"{x} has {rank(x)} modes already, more than {up_to_rank}")
    if count == 0:
        return x
    if isinstance(x, Layout):
        extra = Layout(1, 0) if elem is None else elem
        return Layout(
            join(wrap(x.shape), (extra.shape,) * count),
            join(wrap(x.stride), (extra.stride,) * count),
        )
    return join(wrap(x), (1 if elem is None else elem,) * count)


@takes_location
def slice_(x: Any, coord: Any) -> Any:
    """Return the modes of ``x`` whose entry in ``coord`` is ``None``.

    A layout loses its start (see `slice_and_offset`); a view is indexed, ``x[coord]``, so it keeps
    that. On an int tuple this just selects.

    >>> slice_((5, 6, 7), (None, 0, None)), print(slice_(make_layout((4, 8)), (None, 2)))
    (4):(1)
    ((5, 7), None)
    """
    if views.is_view(x):
        return x[coord]
    if isinstance(x, Layout | ComposedLayout):
        return x(coord)
    return slice_tuple(coord, x)


@takes_location
def dice(x: Any, coord: Any) -> Any:
    """Return the modes of ``x`` whose entry in ``coord`` is not ``None``; the opposite of
    `slice_`.

    >>> dice((5, 6, 7), (None, 0, None))
    (6,)
    """
    return map_modes(x, lambda t: dice_tuple(coord, t))


def zip_modes(a: Layout, b: Layout) -> Layout:
    """Pair the modes of two layouts: ``((a0, b0), (a1, b1), ...)``; two integers make one pair."""
    return Layout(_paired(a.shape, b.shape), _paired(a.stride, b.stride))


def transpose(x: Layout) -> Layout:
    """Return ``((a, b), (c, d))`` as ``((a, c), (b, d))``."""
    return zip_modes(x[0], x[1])


def _paired(a: Any, b: Any) -> tuple[Any, ...]:
    if not isinstance(a, tuple) or not isinstance(b, tuple):
        return ((a, b),)
    if len(a) != len(b):
        raise LayoutError(f"cannot pair the modes of {a} and {b}: ranks differ")
    return tuple(zip(a, b, strict=True))


@takes_location
def evaluate(x: Any, values: Mapping[str, int]) -> Any:
    """Return ``x`` with every symbolic integer replaced by its value; see `Dyn`.

    ``x`` is a `Dyn`, an int tuple, a layout or a composed layout.
    """
    if isinstance(x, Layout):
        return Layout(evaluate(x.shape, values), evaluate(x.stride, values))
    if isinstance(x, ComposedLayout):
        return ComposedLayout(x.inner, evaluate(x.offset, values), evaluate(x.outer, values))
    if isinstance(x, tuple):
        return tuple(evaluate(e, values) for e in x)
    if isinstance(x, ScaledBasis):
        return ScaledBasis(evaluate(x.value, values), x.mode)
    return x.evaluate(values) if isinstance(x, Dyn) else x


@takes_location
def is_layout(x: Any) -> bool:
    """Return True for a layout or a composed layout."""
    return isinstance(x, Layout | ComposedLayout)
