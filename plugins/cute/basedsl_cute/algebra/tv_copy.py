"""Tiled copies: a copy instruction repeated over the threads and values of a larger tile."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from .atom_tables import CopyAtomLayout
from .compose import coalesce, composition, filter, with_shape
from .division import zipped_divide
from .errors import LayoutError
from .ignored_location import takes_location
from .int_tuple import is_static, product_each, repeat, tuple_rank
from .inverse import left_inverse, right_inverse
from .layout import Layout, concatenate, make_layout, shape, size
from .modes import transpose
from .partition import index_modes
from .products import logical_product, make_layout_tv
from .recast import upcast
from .tv_mma import MmaTiling


@dataclass(frozen=True)
class CopyTiling:
    """A copy atom repeated over a tile.

    ``layout_tv`` maps (thread, value) to the colexicographic position in the tile; ``tiler_mn``
    selects the tile from a tensor. Raises LayoutError if the atom needs more threads or values
    than ``layout_tv`` has.
    """

    atom: CopyAtomLayout
    layout_tv: Layout
    tiler_mn: Any

    def __post_init__(self) -> None:
        for mode, what in enumerate(("threads", "values")):
            have, need = size(self.layout_tv, mode), size(self.atom.layout_ref_tv, mode)
            if have % need:
                name = f"the copy {self.atom.name}" if self.atom.name else "the copy"
                raise LayoutError(
                    f"{name} needs a multiple of {need} {what}, "
                    f"the TV layout {self.layout_tv} has {have}"
                )

    @property
    def size(self) -> Any:
        """Number of threads."""
        return size(self.layout_tv, 0)

    def _to_fragments(self, divided: Any, side: Layout) -> Any:
        """Return ((tile), (rest)) -> (threads, values, rest) in the order of one side of the
        atom.
        """
        reference = self.atom.layout_ref_tv
        ref_to_side = composition(right_inverse(reference), side)
        atoms = zipped_divide(self.layout_tv, (size(reference, 0), size(reference, 1)))
        by_side = composition(atoms, (ref_to_side, None))
        thr_val = coalesce(transpose(by_side), (1, (1, 1)))
        by_thread = composition(divided, (thr_val, None))
        return index_modes(by_thread, ((None, None), None), keep_start=False)

    def _side(self, side: str) -> Layout:
        return self.atom.layout_src_tv if side == "S" else self.atom.layout_dst_tv

    def tidfrg(self, side: str, x: Any) -> Any:
        """Split a tensor's layout: ``(threads, (atom values, rest values), (rest modes))``.

        ``side`` is ``"S"`` or ``"D"``. Raises LayoutError if the tile does not divide ``x``.
        """
        if tuple_rank(x.shape) < tuple_rank(shape(self.tiler_mn)):
            raise LayoutError(f"the tensor {x} has fewer modes than the tile {self.tiler_mn}")
        return self._to_fragments(zipped_divide(x, self.tiler_mn), self._side(side))

    def partition(self, side: str, x: Any, thr_idx: Any) -> Any:
        """Return the part that thread ``thr_idx`` moves: ``((atom values, rest values), rest
        modes...)``.
        """
        rest = repeat(None, tuple_rank(x.shape))
        return index_modes(self.tidfrg(side, x), (thr_idx, None, rest))

    def retile(self, x: Any) -> Any:
        """Return a fragment, for instance of an MMA, in the order in which this copy moves its
        values.

        Mode 0 of ``x`` holds some of the thread's values of the tile, the other modes repeat it.
        """
        rank = tuple_rank(x.shape)
        values = size(x.shape, 0)
        modes = shape(self.tiler_mn)
        position = with_shape(right_inverse(self.layout_tv), modes)
        fragment_mn = upcast(position, self.size * values)
        fragment_v = zipped_divide(
            logical_product(make_layout(values), right_inverse(fragment_mn)),
            make_layout(size(self.atom.layout_ref_tv, 1)),
        )
        tiles = zipped_divide(x, (values, *product_each(fragment_mn.shape)))
        by_value = composition(tiles, (fragment_v, None))
        kept = (0, *(None,) * (rank - 1))
        return index_modes(by_value, (None, kept), keep_start=False)

    def _tv_tiled(self, side: str) -> Layout:
        tile = make_layout((shape(self.tiler_mn), 1))
        fragments = self._to_fragments(tile, self._side(side))
        layout: Layout = index_modes(fragments, (None, None, 0), keep_start=False)
        return layout

    @property
    def layout_src_tv_tiled(self) -> Layout:
        """(thread, value) -> position in the tile, for the source."""
        return self._tv_tiled("S")

    @property
    def layout_dst_tv_tiled(self) -> Layout:
        """(thread, value) -> position in the tile, for the destination."""
        return self._tv_tiled("D")


@takes_location
def make_copy_tiling_tv(atom: CopyAtomLayout, thr_layout: Layout, val_layout: Layout) -> CopyTiling:
    """Return a tiled copy from the layouts of threads and values over the tile; see
    `make_layout_tv`.
    """
    tiler_mn, layout_tv = make_layout_tv(thr_layout, val_layout)
    return CopyTiling(atom, layout_tv, tiler_mn)


@takes_location
def make_copy_tiling_of_mma(atom: CopyAtomLayout, mma: MmaTiling, operand: str) -> CopyTiling:
    """Return a tiled copy whose register side is the fragment of operand A, B or C of a tiled
    MMA.
    """
    m, n, k = mma.tile_shape_mnk
    tiler_mn = {"A": (m, k), "B": (n, k), "C": (m, n)}[operand]
    return CopyTiling(atom, mma.tv_layout_tiled(operand), tiler_mn)


@takes_location
def make_copy_tiling_of_copy(atom: CopyAtomLayout, copy: CopyTiling, side: str) -> CopyTiling:
    """Return a tiled copy that matches the source (``"S"``) or destination (``"D"``) of another
    one.
    """
    layout = copy.layout_src_tv_tiled if side == "S" else copy.layout_dst_tv_tiled
    return CopyTiling(atom, layout, copy.tiler_mn)


@takes_location
def make_copy_tiling_C_atom(atom: CopyAtomLayout, mma: MmaTiling) -> CopyTiling:
    """Return the smallest tiled copy that one store per thread of the MMA's C fragment needs."""
    layout_c = mma.tv_layout_tiled("C")
    values = size(atom.layout_src_tv, 1)
    if values > size(layout_c, 1):
        raise LayoutError(f"copy {atom.name} moves {values} values, C has {size(layout_c, 1)}")
    layout_tv = composition(layout_c, make_layout((size(layout_c, 0), values)))
    m, n, _ = mma.tile_shape_mnk
    return _extract_tile(atom, layout_tv, (m, n))


@takes_location
def make_cotiled_copy(
    atom: CopyAtomLayout, atom_tv_layout: Layout, data_layout: Layout
) -> CopyTiling:
    """Return a tiled copy from the data offsets that threads and values are to touch.

    ``atom_tv_layout`` maps (thread, value) to offsets in ``data_layout``. Raises LayoutError if
    those offsets do not occur there.
    """
    if not is_static(atom_tv_layout) or not is_static(data_layout):
        raise LayoutError(f"cotiled copy of {atom_tv_layout} and {data_layout}: must be static")
    inverse = concatenate(left_inverse(data_layout), Layout(1, 0))
    layout_tv = composition(inverse, atom_tv_layout)
    offsets = coalesce(composition(data_layout, layout_tv[1]))
    if offsets != coalesce(atom_tv_layout[1]):
        raise LayoutError(f"the offsets of {atom_tv_layout} do not exist in {data_layout}")
    return _extract_tile(atom, layout_tv, product_each(data_layout.shape))


def _extract_tile(atom: CopyAtomLayout, layout_tv: Layout, extents: tuple[Any, ...]) -> CopyTiling:
    """Shrink the tile ``extents`` to the positions that ``layout_tv`` touches, mode by mode."""
    tiler = []
    for mode in range(len(extents)):
        unit = tuple(int(i == mode) for i in range(len(extents)))
        tiler.append(filter(composition(Layout(extents, unit), layout_tv)))
    tile_to_data = composition(make_layout(extents), tuple(tiler))
    return CopyTiling(atom, composition(left_inverse(tile_to_data), layout_tv), tuple(tiler))
