"""Coalesce, filter, and composition of layouts.

Nothing here may depend on the value of a dynamic leaf: where a static layout would merge modes or
drop an extent 1, a dynamic one keeps them, so that the structure of a result is known while
tracing.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NoReturn

from . import basis, dynamic
from .basis import ScaledBasis
from .composed import AnyLayout, ComposedLayout, Swizzle, swizzle_of_masks
from .coordinates import sum_of_strides
from .dynamic import is_one, is_static_int, is_zero
from .errors import LayoutError
from .ignored_location import takes_location
from .int_tuple import (
    flatten_to_tuple,
    is_static,
    leaves,
    normalize,
    tuple_get,
    zeros_to_ones,
)
from .layout import Layout, checked_shape, concatenate, make_layout, modes_of, size, text
from .views import is_view, on_views, relaid

_MAX_VERIFIED = 1 << 16


def _coalesced(shape: Any, stride: Any, keep_tail: bool) -> Layout:
    """Merge neighbouring modes; ``keep_tail`` preserves the function beyond the last mode too."""
    modes = list(zip(leaves(shape), leaves(stride), strict=True))
    if not modes:
        return Layout(1, 0)
    merged: list[tuple[Any, Any]] = []  # from right to left
    for i, (s, d) in enumerate(reversed(modes)):
        if i == 0:
            merged.append((2 if keep_tail and is_one(s) else s, d))
            continue
        if is_one(s):
            continue
        next_s, next_d = merged[-1]
        if is_one(next_s) and len(merged) == 1:
            merged[-1] = (s, d)
        elif is_static_int(next_s) and _follows(s, d, next_d):
            merged[-1] = (dynamic.mul(s, next_s), d)
        else:
            merged.append((s, d))
    if len(merged) == 1:
        s, d = merged[0]
        return Layout(1, 0) if is_one(s) else Layout(s, d)
    merged.reverse()
    return Layout(tuple(s for s, _ in merged), tuple(d for _, d in merged))


def _follows(extent: Any, stride: Any, next_stride: Any) -> bool:
    """Return True if the next mode provably goes on where a mode ``extent:stride`` ends."""
    end = basis.scale(extent, stride)
    if isinstance(end, ScaledBasis) or isinstance(next_stride, ScaledBasis):
        return end == next_stride and is_static(end)
    return is_static_int(end) and is_static_int(next_stride) and end == next_stride


@takes_location
@on_views
def coalesce(layout: Any, target_profile: Any = None) -> Any:
    """Merge neighbouring modes of `layout` and drop extents 1; the function on indices is
    unchanged.

    With ``target_profile`` (a tuple) this happens below each of its leaves only; modes it lacks
    stay as they are. A shape (int tuple) merges its static and its dynamic neighbours.

    >>> print(coalesce(make_layout((2, (1, 6)), (1, (6, 2)))))
    12:1
    >>> print(coalesce(make_layout((2, (1, 6)), (1, (6, 2))), target_profile=(1, 1)))
    (2,6):(1,2)
    """
    if not isinstance(layout, Layout):
        return _coalesced_shape(layout)
    return _by_profile(
        layout, target_profile, lambda x: _coalesced(x.shape, x.stride, False), "coalesce"
    )


def _coalesced_shape(shape: Any) -> Any:
    result: list[Any] = []
    for extent in flatten_to_tuple(normalize(shape)):
        if result and is_static_int(result[-1]) == is_static_int(extent):
            result[-1] = dynamic.mul(result[-1], extent)
        else:
            result.append(extent)
    return result[0] if len(result) == 1 else tuple(result)


def _by_profile(layout: Layout, profile: Any, f: Callable[[Layout], Layout], what: str) -> Layout:
    if not isinstance(profile, tuple | list):
        _check_profile(what, layout, profile)
        return f(layout)
    modes = modes_of(layout)
    if len(profile) > len(modes):
        raise LayoutError(f"{what}({layout}, {profile}): the profile has too many modes")
    done = [_by_profile(m, p, f, what) for m, p in zip(modes, profile, strict=False)]
    return concatenate(*done, *modes[len(profile) :])


def _check_profile(what: str, layout: Layout, leaf: Any) -> None:
    """Raise LayoutError for a leaf of a profile that is neither an integer nor None."""
    if leaf is not None and not is_static_int(leaf) and not dynamic.is_dynamic_int(leaf):
        raise LayoutError(
            f"{what}({layout}): the profile has {leaf!r} for a mode",
            hint="a profile is a tuple of integers, nested as the modes to keep: (1, (1, 1))",
        )


@takes_location
@on_views
def filter_zeros(x: Any, target_profile: Any = None) -> Any:
    """Give modes of `x` of (static) stride 0 the extent 1, so that only distinct elements remain.

    With ``target_profile`` the modes paired with a 0 in it get extent 1. On an int tuple, zeros
    become ones.

    >>> print(filter_zeros(make_layout((2, 4), (1, 0))))
    (2,1):(1,0)
    """
    if not isinstance(x, Layout):
        x = normalize(x)
        return zeros_to_ones(x, x)
    for leaf in leaves(target_profile):
        _check_profile("filter_zeros", x, leaf)
    guide = x.stride if target_profile is None else target_profile
    return Layout(zeros_to_ones(guide, x.shape), x.stride)


@takes_location
@on_views
def filter(layout: Any, target_profile: Any = None) -> Any:
    """Drop modes of `layout` of stride 0 and of extent 1, and coalesce; by mode with
    ``target_profile``.

    >>> print(filter(make_layout((2, 4, 1), (1, 0, 7))))
    2:1
    """
    return _by_profile(layout, target_profile, lambda x: coalesce(filter_zeros(x)), "filter")


@takes_location
def composition(a: Any, b: Any) -> Any:
    """Compose two functions: the result is the layout ``R(c) = a(b(c))`` on the domain of ``b``.

    ``a`` is a layout, composed layout, swizzle, Python function or view. ``b`` is a layout, a
    composed layout or swizzle (for a plain ``a``), a shape, or a *tiler*: a tuple with a layout,
    extent, tiler or ``None`` (take the mode whole) for each leading mode of ``a``; modes of ``a``
    beyond it are dropped. An extent ``n`` means ``n:1``.

    Raises LayoutError if the composition is not admissible, that is, if no layout with the shape
    of ``b`` (up to splitting its modes) computes it. Conditions on dynamic values are trusted.

    >>> print(composition(make_layout((6, 2), (8, 2)), make_layout((4, 3), (3, 1))))
    ((2,2),3):((24,2),8)
    >>> print(composition(make_layout((8, 16)), (make_layout(4, 2), 8)))
    (4,8):(2,8)
    """
    if is_view(a):
        return relaid(a, lambda layout: composition(layout, b))
    if isinstance(a, ComposedLayout):
        return a.with_outer(composition(a.outer, b))
    if not isinstance(a, Layout):
        return _compose_function(a, b)
    if isinstance(b, Swizzle):
        return ComposedLayout(_swizzle_through(a, b), 0, a)
    if isinstance(b, ComposedLayout):
        if not is_zero(b.offset):
            raise LayoutError(f"composition({a}, {b}): needs an offset of 0")
        return composition(composition(a, b.inner), b.outer)
    if isinstance(b, Layout):
        return _compose(a, b)
    return _compose_tiler(a, b)


def compose_modes(a: Layout, b: Layout) -> Layout:
    """Each mode of ``b`` composed for itself: their sum may not be ``a`` of their sum."""
    return _compose(a, b, together=False)


def _compose_function(f: Any, b: Any) -> ComposedLayout:
    if not callable(f):
        raise LayoutError(
            f"composition({f}, {b}): the first operand is no layout",
            hint="make_layout(shape) is the compact layout of a shape",
        )
    if isinstance(b, ComposedLayout):
        raise LayoutError(f"composition({f}, {b}): cannot compose a function with {b.inner}")
    return ComposedLayout(f, 0, b if isinstance(b, Layout) else make_layout(b))


def _compose_tiler(a: Layout, tiler: Any) -> Any:
    if tiler is None:
        return a
    if isinstance(tiler, tuple | list):
        modes = modes_of(a)
        if len(tiler) > len(modes):
            raise LayoutError(
                f"composition({a}, {text_of_tiler(tiler)}): more modes in the tiler",
                hint="a tiler has an entry for each mode that it tiles, from the first on",
            )
        return concatenate(*(composition(m, t) for m, t in zip(modes, tiler, strict=False)))
    tiler = checked_shape(tiler)
    flat = _coalesced(a.shape, a.stride, True)
    return _compose_leaf(flat.shape, flat.stride, tiler, 1, (a, f"{text(tiler)}:1"))


def text_of_tiler(tiler: Any) -> str:
    """Return a tiler as it prints: ``(4:2,_,(2,8))``."""
    if isinstance(tiler, tuple | list):
        return "(" + ",".join(text_of_tiler(t) for t in tiler) + ")"
    return str(tiler) if isinstance(tiler, Layout | ComposedLayout) else text(tiler)


def _compose(a: Layout, b: Layout, together: bool = True) -> Layout:
    def flat(layout: Layout, profile: Any) -> Layout:
        if not isinstance(profile, tuple):
            return _coalesced(layout.shape, layout.stride, True)
        modes = modes_of(layout)
        if len(profile) > len(modes):
            raise LayoutError(
                f"composition({a}, {b}): a coordinate of {b} has more modes than {layout}"
            )
        done = [flat(m, p) for m, p in zip(modes, profile, strict=False)]
        return concatenate(*done, *modes[len(profile) :])

    flat_a = flat(a, sum_of_strides(b.stride))
    reached: _Reached = {}
    result = _compose_tree(flat_a.shape, flat_a.stride, b.shape, b.stride, (a, b), reached)
    for here, last in reached.values():
        if together and is_static_int(here) and last >= here:
            _fail((a, b), f"modes of the second operand together leave the extent {here}")
    return result


# Extent of each mode of the first operand, the last of them apart, and the last coordinate in it
# that the modes of the second one reach together.
_Reached = dict[Any, tuple[Any, int]]


def _compose_tree(
    a_shape: Any,
    a_stride: Any,
    b_shape: Any,
    b_stride: Any,
    operands: tuple[Any, Any],
    reached: _Reached,
) -> Layout:
    if isinstance(b_shape, tuple):
        modes = zip(b_shape, b_stride, strict=True)
        return concatenate(
            *(_compose_tree(a_shape, a_stride, s, d, operands, reached) for s, d in modes)
        )
    path: tuple[int, ...] = ()
    if isinstance(b_stride, ScaledBasis):
        path = b_stride.mode
        a_shape, a_stride = (tuple_get(x, path) for x in (a_shape, a_stride))
        b_stride = b_stride.value
    return _compose_leaf(a_shape, a_stride, b_shape, b_stride, operands, reached, path)


def _compose_leaf(
    a_shape: Any,
    a_stride: Any,
    extent: Any,
    stride: Any,
    operands: tuple[Any, Any],
    reached: _Reached | None = None,
    path: tuple[int, ...] = (),
) -> Layout:
    """Compose a flat layout with the single mode ``extent:stride``.

    Walks the modes of the first layout from left to right: ``stride`` is divided out of them, then
    ``extent`` is taken from what is left of them.
    """
    if is_zero(stride) or is_zero(extent):
        return Layout(extent, 0)
    if not isinstance(a_shape, tuple):
        return Layout(extent, basis.scale(stride, a_stride))
    if len(a_shape) > 1 and is_static_int(stride) and stride < 0 and not is_one(extent):
        _fail(operands, f"the negative stride {stride} runs over several modes")
    result: list[tuple[Any, Any]] = []
    for i, (here, here_stride) in enumerate(zip(a_shape[:-1], a_stride[:-1], strict=True)):
        _check_stride(here, extent, stride, operands)
        if is_zero(here):  # and the extent is 1
            break
        left = dynamic.ceil_div(here, stride)
        if not is_one(left) and not is_one(extent):
            part = dynamic.min_(left, extent)
            _check_extent(here, part, left, extent, stride, operands)
            result.append((part, basis.scale(stride, here_stride)))
            if reached is not None and is_static_int(part) and is_static_int(stride):
                _, last = reached.get((path, i), (here, 0))
                reached[path, i] = here, last + (part - 1) * stride
            extent = dynamic.floordiv(extent, part)
        stride = dynamic.ceil_div(stride, here)
    if not result:
        return Layout(extent, basis.scale(stride, a_stride[-1]))
    if not is_one(extent):
        result.append((extent, basis.scale(stride, a_stride[-1])))
    if len(result) == 1:
        return Layout(*result[0])
    return Layout(tuple(s for s, _ in result), tuple(d for _, d in result))


def _check_stride(here: Any, extent: Any, stride: Any, operands: tuple[Any, Any]) -> None:
    if is_one(extent) or not (is_static_int(here) and is_static_int(stride)):
        return
    if here == 0:
        _fail(operands, "an extent of the first operand is 0")
    if stride >= here and stride % here:
        _fail(operands, f"stride divisibility: {stride} is no multiple of the extent {here}")


def _check_extent(
    here: Any, part: Any, left: Any, extent: Any, stride: Any, operands: tuple[Any, Any]
) -> None:
    if is_static_int(part) and is_static_int(extent) and extent % part:
        _fail(operands, f"shape divisibility: {part} does not divide the extent {extent}")
    values = (here, left, extent, stride)
    if all(is_static_int(v) for v in values) and extent > left and here % stride:
        _fail(operands, f"stride divisibility: {stride} does not divide the extent {here}")


def _fail(operands: tuple[Any, Any], reason: str) -> NoReturn:
    raise LayoutError(f"composition({operands[0]}, {operands[1]}) is not admissible: {reason}")


def _swizzle_through(a: Layout, swizzle: Swizzle) -> Swizzle:
    """Return the swizzle ``s`` with ``a(swizzle(i)) == s(a(i))``."""
    if not a.is_static:
        raise LayoutError(f"composition({a}, {swizzle}): needs a static layout")
    source, target = a(swizzle.source_mask), a(swizzle.target_mask)
    try:
        moved = swizzle_of_masks(source, target)
    except LayoutError as error:
        raise LayoutError(f"composition({a}, {swizzle}) is no swizzle: {error}") from None
    for i in range(min(size(a), _MAX_VERIFIED)):
        if a(swizzle(i)) != moved(a(i)):
            raise LayoutError(f"composition({a}, {swizzle}): no swizzle commutes with the layout")
    return moved


@takes_location
def with_shape(layout: AnyLayout, shape: Any) -> Any:
    """Return the layout read in the compact coordinates of another shape."""
    return composition(layout, make_layout(shape))
