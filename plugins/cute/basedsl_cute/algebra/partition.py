"""Tiles and partitions: a layout is divided, and the tile or the rest indexed."""

from __future__ import annotations

from typing import Any

from .composed import AnyLayout, slice_and_offset
from .coordinates import dice_tuple
from .division import zipped_divide
from .dynamic import is_static_int
from .errors import LayoutError
from .ignored_location import takes_location
from .int_tuple import leaves, product_each, repeat, tuple_rank
from .layout import Layout
from .views import is_view


def index_modes(x: Any, coord: Any, keep_start: bool = True) -> Any:
    """Return ``x[coord]`` for a view, ``(sub-layout, offset)`` for a layout.

    ``keep_start=False`` says that the offset is 0 anyway and leaves it out.
    """
    if is_view(x):
        return x[coord]
    part, start = slice_and_offset(coord, x)
    return (part, start) if keep_start else part


def _halves(divided: Any) -> tuple[int, int]:
    tile, rest = divided.shape
    return tuple_rank(tile), tuple_rank(rest)


def _padded(coord: Any, rank: int) -> Any:
    """Return a tuple coordinate filled up with ``None``; a linear index as it is."""
    return (*coord, *(None,) * (rank - len(coord))) if isinstance(coord, tuple) else coord


@takes_location
def inner_partition(x: Any, tiler: Any, coord: Any) -> Any:
    """Return the tile at ``coord``: divide by ``tiler`` and index the rest.

    ``coord`` is a tuple (``None`` keeps a rest mode, missing ones are kept) or a linear index.
    """
    divided = zipped_divide(x, tiler)
    tiles, rests = _halves(divided)
    return index_modes(divided, (repeat(None, tiles), _padded(coord, rests)))


@takes_location
def outer_partition(x: Any, tiler: Any, coord: Any) -> Any:
    """Return the elements at ``coord`` of every tile of `x`: divide by ``tiler`` and index the
    tile.

    For a view the result is a view; for a layout it is ``(layout, offset)``.

    >>> print(*outer_partition(make_layout((12, 4)), (4, 2), (1, 0)))
    (3,2):(4,24) 1
    """
    divided = zipped_divide(x, tiler)
    tiles, rests = _halves(divided)
    return index_modes(divided, (_padded(coord, tiles), repeat(None, rests)))


@takes_location
def local_tile(x: Any, tiler: Any, coord: Any, proj: Any = None) -> Any:
    """Return the tile of ``x`` at ``coord``, for example that of a thread block.

    ``proj`` (a tuple like ``tiler``) drops the modes of ``tiler`` and ``coord`` whose entry is
    ``None``: a tiler and coordinate for (M,N,K) with ``proj=(1, None, 1)`` tile an (M,K) operand.
    Entries of ``coord`` beyond ``proj``, as of a batch, stay. The result has the tile modes, the
    rest modes that ``coord`` keeps, and the untiled modes; for a layout it is ``(layout,
    offset)``.

    >>> print(*local_tile(make_layout((12, 2)), (4, 2), (2, 0)))
    (4,2):(1,12) 8
    """
    if proj is not None:
        if not all(e is None or type(e) is int for e in leaves(proj)):
            raise LayoutError(
                f"local_tile: proj {proj} is no tuple of 1 and None",
                hint="coordinates of several modes are one tuple: local_tile(x, tiler, (i, j))",
            )
        tiler, coord = dice_tuple(proj, tiler), _projected(proj, coord)
    return inner_partition(x, tiler, coord)


def _projected(proj: Any, coord: Any) -> Any:
    if not isinstance(proj, tuple) or not isinstance(coord, tuple):
        return dice_tuple(proj, coord)
    known = len(proj)
    kept: tuple[Any, ...] = (*dice_tuple(proj, coord[:known]), *coord[known:])
    return kept


@takes_location
def local_partition(x: Any, tile: Any, index: Any, proj: Any = None) -> Any:
    """Return the elements of ``x`` that thread ``index`` of the thread layout ``tile`` owns.

    ``proj`` drops the modes of ``tile`` whose entry is ``None``. For a layout the result is
    ``(layout, offset)``.

    >>> print(*local_partition(make_layout((16, 2)), make_layout(16), 2))
    (1,2):(0,16) 2
    """
    if not isinstance(tile, Layout):
        raise LayoutError(f"local_partition needs a thread layout, not {tile}")
    tiler, coord = product_each(tile.shape), tile.get_flat_coord(index)
    if proj is not None:
        tiler, coord = dice_tuple(proj, tiler), dice_tuple(proj, coord)
    return outer_partition(x, tiler, coord)


@takes_location
def make_layout_image_mask(layout: AnyLayout, coord: Any, mode: int) -> Any:
    """Return the bit mask of the indices that mode ``mode`` reaches, the other modes fixed at
    ``coord``.

    Bit ``layout(c)`` is set for every ``c`` that agrees with ``coord`` outside of ``mode``. A
    dynamic ``coord`` gives a dynamic mask.

    >>> from .layout import make_layout
    >>> bin(make_layout_image_mask(make_layout((4, 2)), (0, 1), mode=0))
    '0b11110000'
    """
    if not isinstance(coord, tuple) or len(coord) != tuple_rank(layout.shape):
        raise LayoutError(
            f"make_layout_image_mask({layout}, {coord}): one coordinate for each mode"
        )
    kept = tuple(None if i == mode else c for i, c in enumerate(coord))
    row, start = slice_and_offset(kept, layout)
    extent = row.shape[0]
    if not all(is_static_int(v) for v in product_each(row.shape)):
        raise LayoutError(f"make_layout_image_mask({layout}, mode={mode}): dynamic extent {extent}")
    mask = 0
    for i in range(product_each(row.shape)[0]):
        mask |= 1 << row((i,))
    return mask << start
