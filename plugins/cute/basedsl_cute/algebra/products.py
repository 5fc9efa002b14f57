"""Products: a layout repeated according to another one."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

from . import dynamic
from .basis import ScaledBasis
from .compose import compose_modes, composition, filter, text_of_tiler, with_shape
from .coordinates import compact_col_major, compact_order
from .division import tile_unzip, unpack_both, unpack_rest
from .dynamic import is_static_int
from .errors import LayoutError
from .ignored_location import takes_location
from .int_tuple import (
    ceil_div,
    is_static,
    leaves,
    normalize,
    product_each,
    tuple_rank,
    wrap,
    zeros_to_ones,
)
from .inverse import complement, is_order, right_inverse
from .layout import Layout, checked_shape, concatenate, cosize, make_layout, modes_of, size, text
from .modes import append, zip_modes
from .views import on_views


@takes_location
@on_views
def logical_product(block: Any, tiler: Any) -> Any:
    """Return ``(block, block's repetitions)``: the repetitions are laid out by ``tiler``.

    A tuple tiler applies mode by mode, ``None`` leaving a mode alone.

    >>> print(logical_product(make_layout((2, 2), (4, 1)), make_layout(6)))
    ((2,2),(2,3)):((4,1),(2,8))
    """
    if tiler is None:
        return block
    if isinstance(tiler, tuple | list):
        modes = modes_of(block)
        if len(tiler) > len(modes):
            raise LayoutError(
                f"logical_product({block}, {text_of_tiler(tiler)}): too many modes in the tiler",
                hint="a tiler has an entry for each mode that it tiles, from the first on",
            )
        done = [logical_product(m, t) for m, t in zip(modes, tiler, strict=False)]
        return concatenate(*done, *modes[len(tiler) :])
    if not isinstance(tiler, Layout):
        tiler = make_layout(tiler)
    # Repetitions that overlap anyway are placed mode by mode.
    place = compose_modes if _overlaps(tiler) else composition
    try:
        free = complement(block, dynamic.mul(size(block), cosize(tiler)))
        return concatenate(block, place(free, tiler))
    except LayoutError as error:
        raise LayoutError(f"logical_product({block}, {tiler}): {error}") from None


def _overlaps(layout: Layout) -> bool:
    if not is_static(layout) or any(isinstance(d, ScaledBasis) for d in leaves(layout.stride)):
        return False
    used = filter(layout)
    modes = sorted(zip(wrap(used.stride), wrap(used.shape), strict=True))
    return any(d < extent * step for (step, extent), (d, _) in pairwise(modes))


@takes_location
@on_views
def zipped_product(block: Any, tiler: Any) -> Any:
    """Return the product as ``((block modes), (tiler modes))``.

    >>> print(zipped_product(make_layout((2, 5), (5, 1)), make_layout((3, 4))))
    ((2,5),(3,4)):((5,1),(10,30))
    """
    return tile_unzip(logical_product(block, tiler), tiler)


@takes_location
@on_views
def tiled_product(block: Any, tiler: Any) -> Any:
    """Return the product of the layouts `block` and `tiler` as ``((block modes), tiler0, tiler1,
    ...)``.

    >>> print(tiled_product(make_layout((2, 5), (5, 1)), make_layout((3, 4))))
    ((2,5),3,4):((5,1),10,30)
    """
    return unpack_rest(zipped_product(block, tiler))


@takes_location
@on_views
def flat_product(block: Any, tiler: Any) -> Any:
    """Return the product of the layouts `block` and `tiler` as ``(block0, ..., tiler0, ...)``.

    >>> print(flat_product(make_layout((2, 5), (5, 1)), make_layout((3, 4))))
    (2,5,3,4):(5,1,10,30)
    """
    return unpack_both(zipped_product(block, tiler))


@takes_location
@on_views
def blocked_product(block: Any, tiler: Any) -> Any:
    """Return the product of the layouts `block` and `tiler` mode by mode: each mode is (block mode,
    its repetitions).

    Ranks are made equal with modes ``1:0``.

    >>> print(blocked_product(make_layout((2, 5), (5, 1)), make_layout((3, 4))))
    ((2,3),(5,4)):((5,10),(1,30))
    """
    blocks, repeats = _product_of_equal_ranks(block, tiler)
    return zip_modes(blocks, repeats)


@takes_location
@on_views
def raked_product(block: Any, tiler: Any) -> Any:
    """Return the product of the layouts `block` and `tiler` mode by mode, interleaved: each mode is
    (repetitions, block mode).

    >>> print(raked_product(make_layout((2, 5), (5, 1)), make_layout((3, 4))))
    ((3,2),(4,5)):((10,5),(30,1))
    """
    blocks, repeats = _product_of_equal_ranks(block, tiler)
    return zip_modes(repeats, blocks)


def _product_of_equal_ranks(block: Layout, tiler: Any) -> tuple[Layout, Layout]:
    if not isinstance(tiler, Layout):
        tiler = make_layout(tiler)
    rank = max(tuple_rank(block.shape), tuple_rank(tiler.shape))
    both = logical_product(append(block, up_to_rank=rank), append(tiler, up_to_rank=rank))
    return both[0], both[1]


@takes_location
@on_views
def tile_to_shape(atom: Any, shape: Any, order: Any = None) -> Any:
    """Repeat ``atom`` to cover ``shape``; each mode is (atom mode, its repetitions).

    ``order`` says which mode's repetitions vary fastest (default: the first). Raises LayoutError
    if the atom does not divide a static shape.

    >>> print(tile_to_shape(make_layout((2, 4)), (8, 8), order=(1, 0)))
    ((2,4),(4,2)):((1,16),(2,8))
    """
    shape = checked_shape(shape)
    rank = tuple_rank(shape)
    if tuple_rank(atom.shape) > rank:
        raise LayoutError(f"tile_to_shape({atom}, {text(shape)}): the atom has more modes")
    padded = append(atom, up_to_rank=rank)
    atom_shape, target = product_each(padded.shape), product_each(shape)
    for a, t in zip(atom_shape, target, strict=True):
        if is_static_int(a) and is_static_int(t) and (a == 0 or t % a):
            raise LayoutError(f"tile_to_shape({atom}, {text(shape)}): {a} does not divide {t}")
    repeats = ceil_div(target, atom_shape)
    strides = (
        compact_col_major(repeats) if order is None else compact_order(repeats, normalize(order))
    )
    return blocked_product(padded, Layout(repeats, strides))


@takes_location
def make_layout_tv(thr_layout: Layout, val_layout: Layout) -> tuple[Any, Layout]:
    """Return ``(tiler_mn, layout_tv)`` of threads and values laid out over a tile.

    ``thr_layout`` and ``val_layout`` map tile coordinates to thread and value numbers. The tile
    holds their raked product; ``layout_tv`` maps (thread, value) to the colexicographic position
    in the tile.

    Raises LayoutError where a number is missing or there twice.

    >>> print(*make_layout_tv(make_layout((4, 8), (8, 1)), make_layout((2, 2), (2, 1))))
    (8, 16) ((8,4),(2,2)):((16,2),(8,1))
    """
    for layout, what in ((thr_layout, "threads"), (val_layout, "values")):
        if not isinstance(layout, Layout) or not is_static(layout.shape):
            raise LayoutError(f"the layout of {what} is a static layout, not {layout}")
        if not is_order(layout):
            raise LayoutError(
                f"the layout of {what} {layout} is no order of the numbers from 0 to "
                f"{size(layout) - 1}"
            )
    layout_mn = raked_product(thr_layout, val_layout)
    layout_tv = with_shape(right_inverse(layout_mn), (size(thr_layout), size(val_layout)))
    return product_each(layout_mn.shape), layout_tv


@takes_location
def make_fragment_like(layout: Any) -> Any:
    """Return a compact layout for a register copy of ``layout``'s elements.

    Mode 0, what one instruction handles, becomes contiguous; the other modes keep the order of
    their strides. A dynamic or rank-1 shape just becomes compact. Of a composed layout, the outer
    part counts.
    """
    if not isinstance(layout, Layout):
        return make_fragment_like(layout.outer) if hasattr(layout, "outer") else make_layout(layout)
    if tuple_rank(layout.shape) == 1 or not is_static(layout.shape):
        return make_layout(layout.shape)
    first, *rest = modes_of(layout)
    others = concatenate(*rest)
    return tiled_product(
        Layout(first.shape, compact_col_major(zeros_to_ones(first.stride, first.shape))),
        Layout(others.shape, compact_order(others.shape, others.stride)),
    )
