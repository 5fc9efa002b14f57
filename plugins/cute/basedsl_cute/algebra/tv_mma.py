"""Tiled MMAs: a matrix instruction repeated over the threads and values of a larger tile."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

from .atom_tables import MmaAtomLayout
from .compose import composition
from .division import logical_divide, zipped_divide
from .errors import LayoutError
from .ignored_location import takes_location
from .int_tuple import repeat, tuple_rank, wrap
from .inverse import is_order, right_inverse
from .layout import Layout, make_layout, size
from .partition import index_modes
from .products import tiled_product

_MODES = {"A": (0, 2), "B": (1, 2), "C": (0, 1)}


@dataclass(frozen=True)
class MmaTiling:
    """An MMA atom repeated over threads (``atom_layout_mnk``) and over the modes of the tile.

    ``atom_layout_mnk`` maps the atoms' (M,N,K) positions to groups of threads.
    ``permutation_mnk`` enlarges or reorders each mode of the tile before it is split: an extent, a
    layout, or ``None`` for what the atoms cover.
    """

    atom: MmaAtomLayout
    atom_layout_mnk: Layout
    permutation_mnk: tuple[Any, Any, Any] = (None, None, None)

    @cached_property
    def thr_layout_vmnk(self) -> Layout:
        """(thread of the atom, M, N, K) -> thread index."""
        layout: Layout = tiled_product(self.atom.thr_id, self.atom_layout_mnk)
        return layout

    @property
    def size(self) -> Any:
        """Number of threads."""
        return size(self.thr_layout_vmnk.shape)

    def permutation(self, mode: int) -> Any:
        """Return the permutation of M, N or K (0, 1, 2), with the default filled in."""
        chosen = self.permutation_mnk[mode]
        if chosen is None:
            return self.atom.shape_mnk[mode] * size(self.thr_layout_vmnk.shape, mode + 1)
        return chosen

    @cached_property
    def tile_shape_mnk(self) -> tuple[Any, Any, Any]:
        """Extents of the tile that all threads work on together."""
        m, n, k = (size(self.permutation(i)) for i in range(3))
        return (m, n, k)

    def _tv_layout(self, operand: str) -> Layout:
        layout: Layout = getattr(self.atom, f"tv_layout_{operand}")
        return layout

    def thrfrg(self, operand: str, x: Any) -> Any:
        """Split the (M,K), (N,K) or (M,N) layout of an operand among threads and fragments.

        Result: ``((ThrV, (Thr0, Thr1)), (FrgV, (Rest0, Rest1, ...)))``. Raises LayoutError if the
        tile does not divide ``x``.
        """
        if tuple_rank(x.shape) < 2:
            raise LayoutError(f"operand {operand} needs at least two modes, not {x}")
        i, j = _MODES[operand]
        threads = self.thr_layout_vmnk.shape
        atom = tuple(make_layout(self.atom.shape_mnk[mode]) for mode in (i, j))
        groups = tuple(make_layout(size(threads, mode + 1)) for mode in (i, j))
        permuted = logical_divide(x, (self.permutation(i), self.permutation(j)))
        atoms = zipped_divide(permuted, atom)
        by_thread = composition(atoms, (self._tv_layout(operand), None))
        return zipped_divide(by_thread, (None, groups))

    def partition(self, operand: str, x: Any, thr_idx: Any) -> Any:
        """Return the part of an operand that thread ``thr_idx`` holds: ``(FrgV, Rest0, Rest1,
        ...)``.
        """
        fragments = self.thrfrg(operand, x)
        v, *mnk = self.thr_layout_vmnk.get_flat_coord(thr_idx)
        i, j = _MODES[operand]
        rest = repeat(None, tuple_rank(fragments.shape[1][1]))
        return index_modes(fragments, ((v, (mnk[i], mnk[j])), (None, rest)))

    def partition_shape(self, operand: str, shape: Any) -> Any:
        """Return the shape `partition` gives for a tensor of ``shape``, the same for every thread.

        Raises LayoutError if the tile and the shape do not divide.
        """
        part, _ = self.partition(operand, make_layout(shape), 0)
        return part.shape

    def tv_layout_tiled(self, operand: str) -> Layout:
        """Return (thread index, value) -> column-major index in the operand's part of the tile.

        Threads that differ only in a mode the operand lacks hold the same elements.
        """
        i, j = _MODES[operand]
        tile = make_layout((self.tile_shape_mnk[i], self.tile_shape_mnk[j]))
        fragments = self.thrfrg(operand, tile)
        m, n, k = (size(self.thr_layout_vmnk.shape, mode) for mode in (1, 2, 3))
        threads: Any = None
        if operand == "A":
            threads = (None, (Layout((m, n), (1, 0)), None))
        elif operand == "B":
            threads = (None, (Layout((m, n), (0, 1)), None))
        elif k != 1:
            threads = (None, (None, Layout((n, k), (1, 0))))
        if threads is not None:
            fragments = composition(fragments, (threads, None))
        layout: Layout = composition(fragments, (right_inverse(self.thr_layout_vmnk), None))
        return layout

    @cached_property
    def tv_layout_A_tiled(self) -> Layout:
        """`tv_layout_tiled` of A."""
        return self.tv_layout_tiled("A")

    @cached_property
    def tv_layout_B_tiled(self) -> Layout:
        """`tv_layout_tiled` of B."""
        return self.tv_layout_tiled("B")

    @cached_property
    def tv_layout_C_tiled(self) -> Layout:
        """`tv_layout_tiled` of C."""
        return self.tv_layout_tiled("C")


@takes_location
def make_mma_tiling(
    atom: MmaAtomLayout, atom_layout_mnk: Any = (1, 1, 1), permutation_mnk: Any = None
) -> MmaTiling:
    """Tile ``atom`` over ``atom_layout_mnk`` (shape or layout), with optional permutations.

    Missing modes of either are filled up with 1 and ``None``. Raises LayoutError for a permutation
    that does not consist of whole atoms.
    """
    layout = atom_layout_mnk
    if not isinstance(layout, Layout):
        layout = make_layout(layout)
    missing = 3 - tuple_rank(layout.shape)
    if missing < 0:
        raise LayoutError(f"the atom layout {layout} has more than the modes M, N, K")
    if missing:
        layout = Layout(
            (*wrap(layout.shape), *(1,) * missing), (*wrap(layout.stride), *(0,) * missing)
        )
    if size(layout.shape) == 0:
        raise LayoutError(f"the atom layout {layout} has no atoms")
    given = () if permutation_mnk is None else permutation_mnk
    if not isinstance(given, tuple | list) or len(given) > 3:
        raise LayoutError(f"permutation_mnk is an entry for each of M, N, K, not {given!r}")
    permutation: list[Any] = [*given, *[None] * (3 - len(given))]
    tiling = MmaTiling(atom, layout, tuple(permutation))
    for mode, name in enumerate("MNK"):
        _check_permutation(tiling, mode, name)
    return tiling


def _check_permutation(tiling: MmaTiling, mode: int, name: str) -> None:
    """LayoutError for a permutation that is no number of whole atoms of every thread group."""
    chosen = tiling.permutation(mode)
    extent = size(chosen)
    atom, groups = tiling.atom.shape_mnk[mode], size(tiling.thr_layout_vmnk.shape, mode + 1)
    if extent < 1 or extent % (atom * groups):
        raise LayoutError(
            f"permutation_mnk has {chosen} for {name}: {extent} is no multiple of {atom * groups} "
            f"({groups} x {atom})"
        )
    if isinstance(chosen, Layout) and not is_order(chosen):
        raise LayoutError(
            f"permutation_mnk has {chosen} for {name}: no order of the numbers from 0 to "
            f"{extent - 1}"
        )
