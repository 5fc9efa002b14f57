"""The same memory in elements of another width: upcast, downcast, recast."""

from __future__ import annotations

import math
from typing import Any

from . import dynamic
from .basis import ScaledBasis
from .composed import ComposedLayout, Swizzle
from .dynamic import is_static_int, is_zero
from .errors import LayoutError
from .ignored_location import takes_location
from .int_tuple import leaves
from .layout import Layout, concatenate


@takes_location
def recast_layout(new_bits: int, old_bits: int, layout: Any) -> Any:
    """Return ``layout`` of elements of ``old_bits`` as a layout of elements of ``new_bits``.

    The contiguous mode is scaled up or down. It takes layouts, swizzles and swizzled layouts.
    Raises LayoutError if the contiguous extents or the strides do not divide.

    >>> print(recast_layout(32, 16, make_layout((8, 4))), recast_layout(8, 16, make_layout((8, 4))))
    (4,4):(1,4) (16,4):(1,16)
    """
    _check_positive("recast_layout", layout, new_bits, old_bits)
    common = math.gcd(new_bits, old_bits)
    wider, narrower = new_bits // common, old_bits // common
    if wider > 1:
        layout = upcast(layout, wider)
    return downcast(layout, narrower) if narrower > 1 else layout


@takes_location
def upcast(layout: Any, n: int) -> Any:
    """Return ``n`` neighbouring elements become one: the contiguous extent and other strides
    shrink.

    Dynamic strides are trusted to be multiples of ``n``. Raises LayoutError if a static stride or
    a contiguous static extent does not divide.
    """
    _check_positive("upcast", layout, n)
    if isinstance(layout, Swizzle):
        base = layout.base - _log2(n, layout)
        unit = None if layout.unit is None else layout.unit * n
        return Swizzle(max(layout.bits + min(base, 0), 0), max(base, 0), layout.shift, unit)
    if isinstance(layout, ComposedLayout):
        offset = layout.offset
        if is_static_int(offset) and offset % n:
            raise LayoutError(f"upcast({layout}, {n}): {n} does not divide the offset {offset}")
        return ComposedLayout(
            upcast(_swizzle_of(layout, "upcast"), n),
            dynamic.floordiv(offset, n),
            upcast(layout.outer, n),
        )
    return _upcast_mode(layout.shape, layout.stride, n, layout)


def _check_positive(what: str, layout: Any, *numbers: Any) -> None:
    """Raise LayoutError where numbers of bits or of elements are no positive integers."""
    for n in numbers:
        if not is_static_int(n) or n < 1:
            raise LayoutError(f"{what} of {layout}: {n!r} is no positive integer")


def _upcast_mode(shape: Any, stride: Any, n: int, layout: Layout) -> Layout:
    if isinstance(shape, tuple):
        modes = zip(shape, stride, strict=True)
        return concatenate(*(_upcast_mode(s, d, n, layout) for s, d in modes))
    if isinstance(stride, ScaledBasis):
        raise LayoutError(f"upcast({layout}, {n}): not defined for basis strides")
    if is_zero(stride):
        return Layout(shape, stride)
    if not is_static_int(stride):
        return Layout(shape, dynamic.floordiv(stride, n))
    width = abs(stride)
    if width % n and n % width:
        raise LayoutError(f"upcast({layout}, {n}): neither {n} nor the stride {stride} divides")
    together = max(n // width, 1)
    if is_static_int(shape) and shape % together and together % shape:
        raise LayoutError(
            f"upcast({layout}, {n}): {together} contiguous elements do not divide {shape}"
        )
    sign = -1 if stride < 0 else 1
    return Layout(dynamic.ceil_div(shape, together), sign * max(width // n, 1))


@takes_location
def downcast(layout: Any, n: int) -> Any:
    """Return every element becomes ``n``: the contiguous extent and the other strides grow.

    Raises LayoutError if no mode is contiguous (static stride 1).
    """
    _check_positive("downcast", layout, n)
    if isinstance(layout, Swizzle):
        unit = None if layout.unit is None else layout.unit // n or None
        return Swizzle(layout.bits, layout.base + _log2(n, layout), layout.shift, unit)
    if isinstance(layout, ComposedLayout):
        return ComposedLayout(
            downcast(_swizzle_of(layout, "downcast"), n),
            dynamic.mul(layout.offset, n),
            downcast(layout.outer, n),
        )
    if not any(_is_unit(d) for d in leaves(layout.stride)):
        raise LayoutError(f"downcast({layout}, {n}): no mode has stride 1")
    return _downcast_mode(layout.shape, layout.stride, n)


def _downcast_mode(shape: Any, stride: Any, n: int) -> Layout:
    if isinstance(shape, tuple):
        modes = zip(shape, stride, strict=True)
        return concatenate(*(_downcast_mode(s, d, n) for s, d in modes))
    if _is_unit(stride):
        return Layout(dynamic.mul(shape, n), stride)
    return Layout(shape, dynamic.mul(stride, n))


def _is_unit(stride: Any) -> bool:
    return is_static_int(stride) and abs(stride) == 1


def _swizzle_of(layout: ComposedLayout, what: str) -> Swizzle:
    if not isinstance(layout.inner, Swizzle):
        raise LayoutError(f"{what}({layout}): the inner part is no swizzle")
    return layout.inner


def _log2(n: int, operand: Swizzle) -> int:
    if n < 1 or n & (n - 1):
        raise LayoutError(f"{operand} can only be recast by a power of two, not by {n}")
    return n.bit_length() - 1
