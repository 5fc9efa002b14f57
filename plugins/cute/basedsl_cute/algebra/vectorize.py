"""Widths of accesses: common vectors of two layouts, alignment of one.

Divisibility of dynamic extents and strides counts as known.
"""

from __future__ import annotations

import math
from typing import Any

from . import dynamic
from .basis import ScaledBasis
from .compose import coalesce, composition
from .composed import ComposedLayout, Swizzle
from .dynamic import is_one, is_static_int
from .errors import LayoutError
from .ignored_location import takes_location
from .int_tuple import wrap
from .inverse import right_inverse
from .layout import Layout, make_layout, size


def _common(a: Layout, b: Layout) -> tuple[Any, Any, Layout]:
    """Return the extent and stride of the first mode of ``a o right_inverse(b)``, and that inverse.

    Where the extents do not divide each other, so that there is no such composition, the first
    modes of both inverses are compared instead.
    """
    inverse = right_inverse(b)
    try:
        common = coalesce(composition(a, inverse))
    except LayoutError:
        (m, d), (n, e) = _first_mode(right_inverse(a)), _first_mode(inverse)
        together = math.gcd(dynamic.divisibility(m), dynamic.divisibility(n))
        return (together, 1, inverse) if dynamic.same(d, e) else (1, 0, inverse)
    return *_first_mode(common), inverse


def _first_mode(layout: Layout) -> tuple[Any, Any]:
    return wrap(layout.shape)[0], wrap(layout.stride)[0]


@takes_location
def max_common_layout(a: Any, b: Any) -> Layout:
    """Return the longest layout ``r`` with ``a(r(i)) == i == b(r(i))``; at most a block of a
    swizzle.

    >>> print(max_common_layout(make_layout((8, 4)), make_layout((8, 4), (1, 16))))
    8:1
    """
    if isinstance(b, ComposedLayout) and not isinstance(a, ComposedLayout):
        a, b = b, a
    if isinstance(a, ComposedLayout):
        common = max_common_layout(a.outer, b.outer if isinstance(b, ComposedLayout) else b)
        block = max_common_vector(a, b)
        return common if size(common) <= block else composition(common, make_layout(block))
    extent, stride, inverse = _common(a, b)
    if is_static_int(extent) and is_one(stride):
        longest: Layout = composition(inverse, Layout(extent, stride))
        return longest
    return Layout(1, 0)


@takes_location
def max_common_vector(a: Any, b: Any) -> int:
    """Return the number of contiguous elements that correspond in the layouts `a` and `b`: a static
    int from 1.

    A swizzled layout contributes at most the block of indices that its swizzle moves together.

    >>> max_common_vector(make_layout((8, 4)), make_layout((8, 4), (1, 16)))
    8
    """
    if isinstance(a, ComposedLayout) and isinstance(b, ComposedLayout):
        vector = max_common_vector(a.outer, b.outer)
        if a.inner == b.inner and dynamic.same(a.offset, b.offset):
            return vector
        return _capped(_capped(vector, _block(a)), _block(b))
    if isinstance(b, ComposedLayout):
        a, b = b, a
    if isinstance(a, ComposedLayout):
        return _capped(max_common_vector(a.outer, b), _block(a))
    extent, stride, _ = _common(a, b)
    if is_one(stride):
        return max(dynamic.divisibility(extent), 1)
    return 1


def _block(layout: ComposedLayout) -> int:
    """Return the length of the aligned runs of indices that stay contiguous; 0 if nothing breaks
    them.
    """
    if not isinstance(layout.inner, Swizzle):
        return 1
    block = layout.inner.max_alignment if layout.inner.bits else 0
    return math.gcd(block, dynamic.divisibility(layout.offset))


def _capped(vector: int, block: int) -> int:
    return min(vector, block) if block else vector


@takes_location
def max_alignment(layout: Any) -> int:
    """Return the largest ``n`` by which the layout can be upcast: the widest access in elements.

    It is the product of the contiguous extents, as far as all other strides are multiples of it.

    >>> max_alignment(make_layout((8, 4), (1, 20)))
    4
    """
    if isinstance(layout, Swizzle):
        return layout.max_alignment
    if isinstance(layout, ComposedLayout):
        return math.gcd(_block(layout), max_alignment(layout.outer))
    flat = coalesce(layout)
    modes = list(zip(wrap(flat.shape), wrap(flat.stride), strict=True))
    contiguous, others, known = 1, [], True
    for extent, stride in sorted(modes, key=lambda mode: _magnitude(mode[1])):
        if known and is_static_int(stride) and abs(stride) == contiguous:
            contiguous *= dynamic.divisibility(extent)
            known = is_static_int(extent)
        else:
            others.append(_magnitude(stride))
    return math.gcd(contiguous, *others)


def _magnitude(stride: Any) -> int:
    return dynamic.divisibility(stride.value if isinstance(stride, ScaledBasis) else stride)
