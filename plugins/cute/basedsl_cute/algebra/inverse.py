"""Complement, inverses and nullspace of layouts."""

from __future__ import annotations

import math
from typing import Any

from . import dynamic
from .basis import ScaledBasis
from .compose import coalesce, composition, filter
from .composed import ComposedLayout, Swizzle
from .coordinates import compact_col_major
from .dynamic import is_static_int, is_zero
from .errors import LayoutError
from .ignored_location import takes_location
from .int_tuple import ceil_div, flatten_to_tuple, is_static, product, wrap
from .layout import Layout, check_layout, checked_shape, cosize, shape, size, text

_MAX_VERIFIED = 1 << 16


@takes_location
def complement(layout: Any, cotarget: Any = None) -> Layout:
    """Return the ordered layout of the positions that ``layout`` leaves out, up to ``cotarget``.

    Together with ``layout`` it covers every multiple step up to ``cotarget`` (a shape; default
    ``cosize(layout)``) without hitting an index twice. Raises LayoutError if modes of the layout
    overlap (one starts before another one ends), or if more than one has a dynamic stride.

    >>> print(complement(make_layout(4, 2), 24))
    (2,3):(1,8)
    """
    if isinstance(layout, ComposedLayout):
        layout = layout.outer
    check_layout("complement", layout)
    flat = filter(layout)
    target = cosize(flat) if cotarget is None else checked_shape(shape(cotarget))
    if is_zero(flat.stride) or any(is_zero(extent) for extent in wrap(flat.shape)):
        free = coalesce(target)
        return Layout(free, compact_col_major(free))
    modes = list(zip(wrap(flat.shape), wrap(flat.stride), strict=True))
    if any(isinstance(d, ScaledBasis) for _, d in modes):
        raise LayoutError(f"complement({layout}): not defined for basis strides")
    if len(modes) > 1:
        if not is_static(flat.stride):
            raise LayoutError(f"complement({layout}): dynamic strides in more than one mode")
        modes.sort(key=lambda mode: mode[1])
    if is_static_int(modes[0][1]) and modes[0][1] < 0:
        raise LayoutError(f"complement({layout}): negative stride {modes[0][1]}")
    gap_shape: list[Any] = []
    gap_stride: list[Any] = []
    end: Any = 1
    for extent, stride in modes:
        gap = dynamic.floordiv(stride, end)
        if is_zero(gap):
            raise LayoutError(
                f"complement({layout}): its modes overlap, stride {stride} starts before {end}"
            )
        gap_shape.append(gap)
        gap_stride.append(end)
        end = dynamic.mul(stride, extent)
    rest = coalesce(ceil_div(target, end))
    if is_static(target) and is_static_int(end):
        # Where `end` does not divide the extents, their quotients may be too few together.
        rest = max(product(rest), dynamic.ceil_div(product(target), end))
    result: Layout = coalesce(
        Layout((tuple(gap_shape), rest), (tuple(gap_stride), compact_col_major(rest, end)))
    )
    return result


@takes_location
def right_inverse(layout: Any) -> Any:
    """Return the largest layout ``r`` of contiguous positions with ``layout(r(i)) == i``.

    A swizzle is its own inverse; a composed layout with offset 0 is inverted part by part. Dynamic
    strides are passed over, None stays None.

    >>> print(right_inverse(make_layout((4, 8), (8, 1))))
    (8,4):(4,1)
    """
    if layout is None or isinstance(layout, Swizzle):
        return layout
    if isinstance(layout, ComposedLayout):
        return _inverse_of_composed(layout, right_inverse)
    check_layout("right_inverse", layout)
    modes, starts = _coalesced_modes(layout)
    result_shape: list[Any] = [1]
    result_stride: list[Any] = [0]
    end: Any = 1
    by_stride = sorted((i for i, (_, d) in enumerate(modes) if is_static_int(d)), key=_key(modes))
    for i in by_stride:
        extent, stride = modes[i]
        if is_static_int(end) and stride == end:
            result_shape.append(extent)
            result_stride.append(starts[i])
            end = dynamic.mul(extent, stride)
    return coalesce(Layout(tuple(result_shape), tuple(result_stride)))


def is_order(layout: Layout) -> bool:
    """Return True if a static layout is a bijection onto the numbers below its size.

    >>> is_order(make_layout((2, 3), (3, 1))), is_order(make_layout((2, 3), (4, 1)))
    (True, False)
    """
    return bool(size(right_inverse(layout)) == size(layout))


@takes_location
def left_inverse(layout: Any) -> Any:
    """Return a layout ``l`` with ``l(layout(i)) == i`` for every ``i``, for an injective
    ``layout``.

    For any other ``layout`` still ``layout(l(layout(i))) == layout(i)``. Raises LayoutError for
    strides that are dynamic or negative, and if overlapping modes or gaps admit no inverse.

    >>> print(left_inverse(make_layout((4, 8), (1, 5))))
    (5,8):(1,4)
    """
    if layout is None or isinstance(layout, Swizzle):
        return layout
    if isinstance(layout, ComposedLayout):
        return _inverse_of_composed(layout, left_inverse)
    check_layout("left_inverse", layout)
    modes, starts = _coalesced_modes(layout)
    if not all(is_static_int(d) and d >= 0 for _, d in modes):
        raise LayoutError(f"left_inverse({layout}): needs static strides that are not negative")
    by_stride = sorted(range(len(modes)), key=_key(modes))
    result_shape: list[Any] = []
    result_stride: list[Any] = [0]
    covered, end, overlap = 1, 1, False
    for i in by_stride:
        stride = modes[i][1]
        if stride == 0:
            continue
        if stride % covered:
            raise LayoutError(
                f"left_inverse({layout}): stride {stride} is no multiple of {covered}"
            )
        overlap = overlap or (is_static_int(end) and stride < end)
        result_shape.append(stride // covered)
        result_stride.append(starts[i])
        covered, end = stride, dynamic.mul(stride, modes[i][0])
    result_shape.append(modes[by_stride[-1]][0])
    result = coalesce(Layout(tuple(result_shape), tuple(result_stride)))
    if overlap and not _undoes(result, layout):
        raise LayoutError(f"left_inverse({layout}): its modes overlap")
    return result


def _undoes(inverse: Layout, layout: Layout) -> bool:
    """Return True if ``layout(inverse(layout(i))) == layout(i)`` for every ``i``, by trying them
    all.
    """
    count = size(layout)
    if not is_static_int(count) or count > _MAX_VERIFIED:
        return False
    return all(layout(inverse(layout(i))) == layout(i) for i in range(count))


def _coalesced_modes(layout: Layout) -> tuple[list[tuple[Any, Any]], list[Any]]:
    """Return the modes of the coalesced layout and the linear index at which each one starts."""
    flat = coalesce(layout)
    modes = list(zip(wrap(flat.shape), wrap(flat.stride), strict=True))
    starts: list[Any] = [1]
    for extent, _ in modes:
        starts.append(dynamic.mul(starts[-1], extent))
    return modes, starts


def _key(modes: list[tuple[Any, Any]]) -> Any:
    return lambda i: modes[i][1]


def _inverse_of_composed(layout: ComposedLayout, inverse: Any) -> Any:
    if not is_zero(layout.offset):
        raise LayoutError(f"inverse of {layout}: needs an offset of 0")
    if not isinstance(layout.inner, Swizzle | Layout):
        raise LayoutError(f"inverse of {layout}: the inner function has no known inverse")
    return composition(inverse(layout.outer), inverse(layout.inner))


@takes_location
def nullspace(layout: Layout) -> Layout:
    """Return the layout of the positions that ``layout`` maps to 0 through its modes of stride 0.

    >>> print(nullspace(make_layout((4, 10), (1, 0))))
    10:4
    """
    check_layout("nullspace", layout)
    extents = flatten_to_tuple(layout.shape)
    strides = flatten_to_tuple(layout.stride)
    starts = compact_col_major(extents)
    kept = [i for i, d in enumerate(strides) if is_zero(d)]
    if not kept:
        return Layout(1, 0)
    if len(kept) == 1:
        return Layout(extents[kept[0]], starts[kept[0]])
    return Layout(tuple(extents[i] for i in kept), tuple(starts[i] for i in kept))


@takes_location
def domain_distribute(target: Any, n: int) -> Layout:
    """Return a layout of (up to) ``n`` positions of a static shape that divides it evenly.

    It prefers the leading modes and takes from each what ``n`` shares with its extent.

    >>> print(domain_distribute((15, 14), 6))
    (3,2):(1,15)
    """
    extents = flatten_to_tuple(shape(target))
    if not is_static(extents) or not is_static_int(n):
        raise LayoutError(f"domain_distribute({text(extents)}, {text(n)}): needs static operands")
    if n < 1:
        raise LayoutError(f"domain_distribute({text(extents)}, {n}): there is no position")
    taken = []
    for extent in extents:
        common = math.gcd(extent, n)
        taken.append(common)
        n //= common
    result: Layout = coalesce(Layout(tuple(taken), compact_col_major(extents)))
    return result
