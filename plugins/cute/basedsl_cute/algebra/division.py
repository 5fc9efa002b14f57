"""Divisions: layouts split into tiles and the positions of the tiles."""

from __future__ import annotations

from typing import Any

from .compose import coalesce, composition, text_of_tiler
from .composed import ComposedLayout
from .dynamic import is_zero
from .errors import LayoutError
from .ignored_location import takes_location
from .int_tuple import tuple_rank, wrap
from .inverse import complement
from .layout import Layout, concatenate, make_layout, modes_of, size
from .views import on_views


@takes_location
@on_views
def logical_divide(x: Any, tiler: Any) -> Any:
    """Split each mode into (tile, rest).

    ``tiler`` is a layout or extent for all of ``x`` at once, or a tuple with a tiler for each
    leading mode, where ``None`` leaves the mode alone. Raises LayoutError if the tiler does not
    divide ``x``.

    >>> print(logical_divide(make_layout((4, 2, 3), (2, 1, 8)), make_layout(4, 2)))
    ((2,2),(2,3)):((4,1),(2,8))
    """
    if tiler is None:
        return x
    if isinstance(tiler, tuple | list):
        modes = modes_of(x)
        _check_rank("logical_divide", x, tiler)
        divided = [logical_divide(m, t) for m, t in zip(modes, tiler, strict=False)]
        return concatenate(*divided, *modes[len(tiler) :])
    if isinstance(tiler, ComposedLayout):
        raise LayoutError(f"logical_divide({x}, {tiler}): the tiler must be a plain layout")
    if not isinstance(tiler, Layout):
        tiler = make_layout(tiler)
    if is_zero(size(tiler)):
        raise LayoutError(
            f"logical_divide({x}, {text_of_tiler(tiler)}): the tile is empty",
            hint="a tile has 1 element or more; None leaves a mode alone",
        )
    try:
        rest = complement(tiler, coalesce(x).shape)
    except LayoutError as error:
        raise LayoutError(f"logical_divide({x}, {tiler}): {error}") from None
    return composition(x, concatenate(tiler, rest))


def _check_rank(what: str, x: Layout, tiler: Any) -> None:
    if len(tiler) > tuple_rank(x.shape):
        raise LayoutError(
            f"{what}({x}, {text_of_tiler(tiler)}): too many modes in the tiler",
            hint="a tiler has an entry for each mode that it tiles, from the first on",
        )


def tile_unzip(x: Layout, tiler: Any) -> Layout:
    """Gather the tile halves of a logical divide or product in mode 0, the rest in mode 1.

    Follows the nesting of ``tiler``; modes it lacks go to the rest. A mode that the tiler left
    alone (``None``) goes to the tile whole, with ``1:0`` as its rest, unless it has two modes: then
    those are taken as tile and rest.
    """
    shape = _unzip(x.shape, tiler, one=1)
    stride = _unzip(x.stride, tiler, one=0)
    return Layout(shape, stride)


def _unzip(t: Any, tiler: Any, one: int) -> tuple[Any, Any]:
    if not isinstance(tiler, tuple | list):
        if isinstance(t, tuple) and len(t) == 2:
            return t
        return (t, one)
    halves = [_unzip(e, g, one) for e, g in zip(wrap(t), tiler, strict=False)]
    rest = tuple(half[1] for half in halves) + wrap(t)[len(tiler) :]
    return tuple(half[0] for half in halves), rest


@takes_location
@on_views
def zipped_divide(x: Any, tiler: Any) -> Any:
    """Divide `x`, a layout or a tensor, by `tiler`, and gather: ``((tile modes), (rest modes))``.

    Trailing modes that the tiler lacks stay whole in the rest.

    >>> print(zipped_divide(make_layout((8, 6)), (4, 3)))
    ((4,3),(2,2)):((1,8),(4,24))
    """
    return tile_unzip(logical_divide(x, tiler), tiler)


@takes_location
@on_views
def tiled_divide(x: Any, tiler: Any) -> Any:
    """Divide `x` by `tiler` as `zipped_divide`, with the rest at top level: ``((tile modes), rest0,
    rest1, ...)``.

    >>> print(tiled_divide(make_layout((8, 6)), (4, 3)))
    ((4,3),2,2):((1,8),4,24)
    """
    return unpack_rest(zipped_divide(x, tiler))


@takes_location
@on_views
def flat_divide(x: Any, tiler: Any) -> Any:
    """Divide `x` by `tiler` as `zipped_divide`, with all modes at top level: ``(tile0, ..., rest0,
    ...)``.

    >>> print(flat_divide(make_layout((8, 6)), (4, 3)))
    (4,3,2,2):(1,8,4,24)
    """
    return unpack_both(zipped_divide(x, tiler))


def unpack_rest(zipped: Layout) -> Layout:
    """Return ``(a, (b, c))`` as ``(a, b, c)``; a rest of one mode stays as it is."""
    return Layout(*((t[0], *_several(t[1])) for t in (zipped.shape, zipped.stride)))


def unpack_both(zipped: Layout) -> Layout:
    """Return ``((a, b), (c, d))`` as ``(a, b, c, d)``; a half of one mode stays as it is."""
    return Layout(*((*_several(t[0]), *_several(t[1])) for t in (zipped.shape, zipped.stride)))


def _several(half: Any) -> tuple[Any, ...]:
    return half if isinstance(half, tuple) and len(half) > 1 else (half,)
