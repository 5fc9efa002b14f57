"""Coordinates and indices: evaluation, inversion, slicing, and compact strides.

Linear indices are colexicographic everywhere: the first mode varies fastest. ``None`` in a
coordinate means "keep this mode".
"""

from __future__ import annotations

from typing import Any

from . import basis, dynamic
from .basis import ScaledBasis
from .dynamic import is_one, is_zero
from .errors import LayoutError
from .ignored_location import takes_location
from .int_tuple import (
    IntTuple,
    flatten_to_tuple,
    is_congruent,
    product,
)


def has_none(coord: Any) -> bool:
    """Return True if a coordinate keeps some mode."""
    if isinstance(coord, tuple):
        return any(has_none(c) for c in coord)
    return coord is None


def coordinate_to_index(coord: Any, shape: IntTuple, stride: IntTuple) -> Any:
    """Offset of ``coord`` in the layout ``shape:stride``; a kept mode counts 0.

    An integer coordinate of a nested mode is split colexicographically; its last mode is not
    reduced, so an index past the end runs on along it. Basis strides give a coordinate tuple.
    """
    _check_whole(coord)
    if isinstance(coord, tuple):
        if not isinstance(shape, tuple) or len(coord) != len(shape):
            raise _misfit(coord, f"the shape {shape}")
        result: Any = 0
        for c, s, d in zip(coord, shape, stride, strict=True):
            result = basis.add(result, coordinate_to_index(c, s, d))
        return result
    if coord is None:
        coord = 0
    if not isinstance(shape, tuple):
        if type(coord) is int and type(stride) is int:
            return coord * stride
        return basis.as_coordinate(basis.scale(coord, stride))
    result = 0
    for i, (s, d) in enumerate(zip(shape, stride, strict=True)):
        if i == len(shape) - 1:
            here = coord
        else:
            extent = product(s)
            if is_zero(extent):
                raise LayoutError(f"the shape {shape} is empty: it has no coordinate {coord}")
            if type(coord) is int and type(extent) is int:
                coord, here = divmod(coord, extent)
            else:
                here, coord = dynamic.mod(coord, extent), dynamic.floordiv(coord, extent)
        result = basis.add(result, coordinate_to_index(here, s, d))
    return result


def _check_whole(coord: Any) -> None:
    """Raise LayoutError for what is mistaken for a coordinate most often."""
    # `isinstance` would ask a dynamic number for its class, which takes a call in Python.
    if issubclass(type(coord), str | float):
        raise LayoutError(
            f"a coordinate is an integer, a tuple of them or None, not {coord!r}",
            hint="divide with // for a whole number",
        )


@takes_location
def crd2idx(coord: Any, shape: Any, stride: IntTuple | None = None) -> Any:
    """Return the index of the coordinate ``coord`` in a layout, a shape, or ``shape:stride``.

    A shape alone means the compact colexicographic layout. Raises LayoutError if the coordinate
    does not fit the shape's profile.

    >>> crd2idx((1, 2), (4, 8)), crd2idx((1, 2), (4, 8), (8, 1)), crd2idx(9, (4, 8), (8, 1))
    (9, 10, 10)
    """
    if stride is not None:
        return coordinate_to_index(coord, shape, stride)
    if callable(shape) and hasattr(shape, "shape"):
        return shape(coord)
    if not isinstance(coord, tuple):
        _check_whole(coord)
        return coord
    if not is_congruent(coord, shape):
        return coordinate_to_index(coord, shape, compact_col_major(shape))
    result: Any = 0
    for c, s in zip(
        reversed(flatten_to_tuple(coord)), reversed(flatten_to_tuple(shape)), strict=True
    ):
        result = dynamic.add(c, dynamic.mul(s, result))
    return result


@takes_location
def idx2crd(idx: Any, shape: IntTuple, stride: IntTuple | None = None) -> Any:
    """Return the coordinate of a linear index: ``(idx // stride) % extent`` at every leaf.

    Without ``stride`` the shape's compact colexicographic strides are used, and an integer shape
    returns the index unchanged.

    >>> idx2crd(9, (4, 8)), idx2crd(22, (3, 9), (1, 3))
    ((1, 2), (1, 7))
    """
    _check_whole(idx)
    shape = getattr(shape, "shape", shape) if not isinstance(shape, tuple) else shape
    if stride is None:
        if isinstance(idx, tuple):
            _same_rank(idx, shape)
            return tuple(idx2crd(i, s) for i, s in zip(idx, shape, strict=True))
        if not isinstance(shape, tuple):
            return idx
        stride = compact_col_major(shape)
    if isinstance(idx, tuple):
        _same_rank(idx, shape)
        return tuple(idx2crd(i, s, d) for i, s, d in zip(idx, shape, stride, strict=True))
    if isinstance(shape, tuple):
        if not isinstance(stride, tuple):
            stride = compact_col_major(shape, stride)
        return tuple(idx2crd(idx, s, d) for s, d in zip(shape, stride, strict=True))
    if is_zero(shape):
        raise LayoutError(f"index {idx} in an empty shape: it has no coordinates")
    if is_one(shape) or is_zero(stride):
        return 0
    return dynamic.mod(dynamic.floordiv(idx, stride), shape)


def _misfit(coord: Any, what: str) -> LayoutError:
    hint = "give a coordinate for each mode, None to keep one, or a single index for all"
    return LayoutError(f"coordinate {coord} does not fit {what}", hint=hint)


def _same_rank(coord: tuple[Any, ...], shape: IntTuple) -> None:
    if not isinstance(shape, tuple) or len(coord) != len(shape):
        raise _misfit(coord, f"the shape {shape}")


@takes_location
def crd2crd(coord: Any, src_shape: IntTuple, dst_shape: IntTuple) -> Any:
    """Return the coordinate in ``dst_shape`` with the linear index that ``coord`` has in
    ``src_shape``.
    """
    if isinstance(coord, tuple) and isinstance(src_shape, tuple) and isinstance(dst_shape, tuple):
        _same_rank(coord, src_shape)
        _same_rank(coord, dst_shape)
        return tuple(crd2crd(c, s, d) for c, s, d in zip(coord, src_shape, dst_shape, strict=True))
    return idx2crd(crd2idx(coord, src_shape), dst_shape)


@takes_location
def increment_coord(coord: IntTuple, shape: IntTuple) -> IntTuple:
    """Return the coordinate after ``coord`` in colexicographic order in `shape`; the last one wraps
    to the first.

    >>> increment_coord((3, 0), (4, 8))
    (0, 1)
    """
    return idx2crd(dynamic.add(crd2idx(coord, shape), 1), shape)


def slice_tuple(coord: Any, x: IntTuple) -> IntTuple:
    """Return the parts of ``x`` whose coordinate is ``None``, lifted to one tuple.

    >>> slice_tuple((2, None, (None, 0)), (4, (5, 6), (7, 8)))
    ((5, 6), 7)
    """
    return x if coord is None else _lift(coord, x, keep_none=True)


def dice_tuple(coord: Any, x: IntTuple) -> IntTuple:
    """Return the parts of ``x`` whose coordinate is not ``None``; the opposite of `slice_tuple`."""
    if isinstance(coord, tuple):
        return _lift(coord, x, keep_none=False)
    return () if coord is None else x


def _lift(coord: Any, x: IntTuple, keep_none: bool) -> tuple[Any, ...]:
    if not isinstance(coord, tuple):
        return (x,) if (coord is None) == keep_none else ()
    if not isinstance(x, tuple) or len(coord) != len(x):
        raise _misfit(coord, str(x))
    kept: tuple[Any, ...] = ()
    for c, e in zip(coord, x, strict=True):
        kept += _lift(c, e, keep_none)
    return kept


def compact_col_major(shape: IntTuple, current: Any = 1) -> IntTuple:
    """Return strides of the compact layout of ``shape`` whose first mode is fastest.

    A static extent 1 gets stride 0. ``current`` is the stride to start from, or a tuple with one
    start for each mode.
    """
    if isinstance(current, tuple):
        _same_rank(current, shape)
        return tuple(compact_col_major(s, c) for s, c in zip(shape, current, strict=True))
    return _compact(shape, current, reverse=False)[0]


def compact_row_major(shape: IntTuple, current: Any = 1) -> IntTuple:
    """Return strides of the compact layout of ``shape`` whose last mode is fastest."""
    return _compact(shape, current, reverse=True)[0]


def _compact(shape: IntTuple, current: Any, reverse: bool) -> tuple[IntTuple, Any]:
    if not isinstance(shape, tuple):
        return (0, current) if is_one(shape) else (current, dynamic.mul(current, shape))
    strides: list[Any] = []
    for s in reversed(shape) if reverse else shape:
        stride, current = _compact(s, current, reverse)
        strides.append(stride)
    return tuple(reversed(strides) if reverse else strides), current


def compact_order(shape: IntTuple, order: IntTuple) -> IntTuple:
    """Return strides of the compact layout whose modes are sorted by ``order``, smallest first.

    ``order`` is at most as deep as ``shape``; a mode below one of its leaves is compact by itself.
    Equal order numbers share a stride, so make them distinct. A dynamic order number counts as
    larger than every static one, and dynamic ones go from left to right.
    """
    order_leaves: list[Any] = []
    extents: list[Any] = []
    _collect_orders(shape, order, order_leaves, extents)
    largest = max((o for o in order_leaves if not dynamic.is_dynamic_int(o)), default=0)
    ranks = [
        largest + 1 + i if dynamic.is_dynamic_int(o) else o for i, o in enumerate(order_leaves)
    ]
    remaining = iter(ranks)

    def stride_of(s: IntTuple, o: IntTuple) -> IntTuple:
        if isinstance(o, tuple):
            return tuple(stride_of(x, y) for x, y in zip(s, o, strict=True))
        rank = next(remaining)
        start: Any = 1
        for r, extent in zip(ranks, extents, strict=True):
            if r < rank:
                start = dynamic.mul(start, extent)
        return compact_col_major(s, start)

    return stride_of(shape, order)


def _collect_orders(
    shape: IntTuple, order: IntTuple, orders: list[Any], extents: list[Any]
) -> None:
    if not isinstance(order, tuple):
        orders.append(order)
        extents.append(product(shape))
        return
    if not isinstance(shape, tuple) or len(shape) != len(order):
        raise LayoutError(f"order {order} does not fit the shape {shape}")
    for s, o in zip(shape, order, strict=True):
        _collect_orders(s, o, orders, extents)


def basis_like(shape: IntTuple, path: tuple[int, ...] = ()) -> IntTuple:
    """Return the unit basis vectors of ``shape``'s modes, in its profile; 1 for an integer."""
    if isinstance(shape, tuple):
        return tuple(basis_like(s, (*path, i)) for i, s in enumerate(shape))
    return ScaledBasis(1, path) if path else 1


def sum_of_strides(stride: IntTuple) -> Any:
    """Return the sum of all strides; only its structure matters (the codomain's profile)."""
    total: Any = 0
    for leaf in flatten_to_tuple(stride):
        if isinstance(leaf, ScaledBasis):
            total = _merge_profiles(total, basis.as_coordinate(ScaledBasis(0, leaf.mode)))
    return total


def _merge_profiles(a: Any, b: Any) -> Any:
    if not isinstance(a, tuple) or not isinstance(b, tuple):
        return a if isinstance(a, tuple) else b
    if len(a) < len(b):
        a, b = b, a
    return tuple(_merge_profiles(x, y) for x, y in zip(a, b, strict=False)) + a[len(b) :]
