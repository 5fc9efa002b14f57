"""`utils.blockscaled_layout`: layouts of scale factors for block-scaled matrix instructions.

A factor of 8 bits scales `sf_vec_size` elements along K. Layouts have a mode of stride 0 for these
elements, so that they partition as the operand does; `cute.filter_zeros` drops it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from basedsl_cute import algebra
from basedsl_cute.algebra import TmemAllocation
from basedsl_cute.algebra.ignored_location import takes_location
from basedsl_cute.atoms.mma import TiledMma
from basedsl_cute.hardware.unsupported import unsupported_names

if not TYPE_CHECKING:  # a type checker reports names that do not exist
    __getattr__ = unsupported_names(__name__)

__all__ = [
    "make_smem_layout_sfa",
    "make_smem_layout_sfb",
    "make_tmem_layout_sfa",
    "make_tmem_layout_sfb",
    "sm120_make_smem_layout_sfa",
    "sm120_make_smem_layout_sfb",
    "tile_atom_to_shape_SF",
]


@takes_location
def tile_atom_to_shape_SF(shape: Any, sf_vec_size: int) -> Any:
    """Return the layout of the factors of a matrix in global memory.

    `shape` is that of the matrix, (M or N, K, L) in elements, of which L may be left out;
    `sf_vec_size` is the elements along K that share a factor. Raises LayoutError for another shape.
    Chunks of 128 rows and 4 factors follow each other along K, then rows, then L.

    >>> sf = cute.utils.blockscaled_layout
    >>> print(sf.tile_atom_to_shape_SF((256, 128, 1), 16))
    (((32,4),2),((16,4),2),(1,1)):(((16,4),1024),((0,1),512),(0,0))
    """
    return algebra.tile_scales(shape, sf_vec_size)


def _blocks(tiled_mma: TiledMma) -> int:
    return int(algebra.size(tiled_mma.thr_id))


@takes_location
def make_smem_layout_sfa(
    tiled_mma: TiledMma, mma_tiler_mnk: tuple[int, int, int], sf_vec_size: int, num_stages: int
) -> Any:
    """Return the layout (MMA, 1, MMA_K, stage) of one block's factors of A in shared memory.

    `mma_tiler_mnk` is the tile (M, N, K) in elements that the blocks of `tiled_mma` compute
    together, `sf_vec_size` the elements along K that share a factor, and `num_stages` the number of
    tiles. Raises LayoutError for a tile whose K is no whole number of 4 factors.
    """
    m, _, k = mma_tiler_mnk
    rows, mma_k = m // _blocks(tiled_mma), tiled_mma.shape_mnk[2]
    return algebra.smem_scales(rows, k, sf_vec_size, mma_k, num_stages)


@takes_location
def make_smem_layout_sfb(
    tiled_mma: TiledMma, mma_tiler_mnk: tuple[int, int, int], sf_vec_size: int, num_stages: int
) -> Any:
    """Return the layout (MMA, 1, MMA_K, stage) of the factors of B in shared memory.

    Both blocks of a pair have those of all of N, rounded up to 128. `tiled_mma`, `mma_tiler_mnk`,
    `sf_vec_size` and `num_stages` are as for `make_smem_layout_sfa`. Raises LayoutError for a tile
    whose K is no whole number of 4 factors.
    """
    _, n, k = mma_tiler_mnk
    return algebra.smem_scales(n, k, sf_vec_size, tiled_mma.shape_mnk[2], num_stages)


@takes_location
def make_tmem_layout_sfa(
    tiled_mma: TiledMma,
    mma_tiler_mnk: tuple[int, int, int],
    sf_vec_size: int,
    smem_layout: Any,
) -> Any:
    """Return the layout (MMA, MMA_M, MMA_K) in tensor memory of the factors of A, whose layout of
    one stage in shared memory is `smem_layout`. Each quarter of the lanes has a copy.

    `tiled_mma`, `mma_tiler_mnk` and `sf_vec_size` have no effect: `smem_layout` was made with them.
    """
    return algebra.scale_fragment(smem_layout.shape, "SFA")


@takes_location
def make_tmem_layout_sfb(
    tiled_mma: TiledMma,
    mma_tiler_mnk: tuple[int, int, int],
    sf_vec_size: int,
    smem_layout: Any,
) -> Any:
    """Return the layout (MMA, MMA_N, MMA_K) in tensor memory of the factors of B, whose layout of
    one stage in shared memory is `smem_layout`.

    Each quarter of the lanes has a copy; where `tiled_mma` is of two blocks and has 128 rows, the
    two halves of N lie in the two halves of the lanes. `mma_tiler_mnk` and `sf_vec_size` have no
    effect: `smem_layout` was made with them.
    """
    halves = _blocks(tiled_mma) == 2 and tiled_mma.shape_mnk[0] == 128
    where = TmemAllocation.SCALES_2X2 if halves else TmemAllocation.SCALES_4X1
    return algebra.scale_fragment(smem_layout.shape, "SFB", where)


@takes_location
def sm120_make_smem_layout_sfa(
    tiled_mma: TiledMma, tile_shape_mnk: tuple[int, int, int], sf_vec_size: int, num_stages: int
) -> Any:
    """Return the layout (M, K, stage) of the factors of A in shared memory for mma.sync, with modes
    of a chunk of 128 rows and of an instruction inside.

    `tile_shape_mnk` is the tile (M, N, K) of a block in elements, `sf_vec_size` the elements along
    K that share a factor, `num_stages` the number of tiles; of `tiled_mma` the K of an instruction
    counts. Raises LayoutError for a tile whose K is no whole number of 4 factors.
    """
    m, _, k = tile_shape_mnk
    return _warp_scales(m, k, sf_vec_size, tiled_mma.shape_mnk[2], num_stages)


@takes_location
def sm120_make_smem_layout_sfb(
    tiled_mma: TiledMma, tile_shape_mnk: tuple[int, int, int], sf_vec_size: int, num_stages: int
) -> Any:
    """Return the layout (N, K, stage) of the factors of B in shared memory for mma.sync. N is
    rounded up to 128.

    `tiled_mma`, `tile_shape_mnk`, `sf_vec_size` and `num_stages` are as for
    `sm120_make_smem_layout_sfa`, and so are the errors.
    """
    _, n, k = tile_shape_mnk
    return _warp_scales(n, k, sf_vec_size, tiled_mma.shape_mnk[2], num_stages)


def _warp_scales(rows: int, k: int, vector: int, mma_k: int, stages: int) -> Any:
    (mma, _, steps, stage) = (
        algebra.get(algebra.smem_scales(rows, k, vector, mma_k, stages), i) for i in range(4)
    )
    along_k = algebra.make_layout((mma[1], steps))
    return algebra.make_layout((mma[0], along_k, stage))
