"""The static shapes of the Blackwell GEMM: the tiled MMA, and layouts of A, B, C and scale factors
in shared memory.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import basedsl_cute as cute
from basedsl_cute import algebra
from basedsl_cute.nvgpu.tcgen05 import CtaGroup
from basedsl_cute.ops.blackwell.config import BlackwellGemmKinds, Config, check_config
from basedsl_cute.utils import blackwell_helpers as sm100
from basedsl_cute.utils import blockscaled_layout

__all__ = ["ScaleShapes", "Shapes", "load_bytes", "scale_mma", "shapes_of", "tiled_mma"]


class ScaleShapes(NamedTuple):
    """The static layouts of scale factors."""

    dtype: Any
    vector: int
    a: Any  # shared memory by stages
    b: Any
    rows_b: int  # of B, whose factors a block has: N in whole 128
    vmnk: Any  # the blocks of a cluster: each has the factors of all of N

    def in_tensor_memory(self, mma: Any, tiler: Any) -> tuple[Any, Any]:
        """The layouts of the factors of A and B in tensor memory."""
        one_a, one_b = (cute.slice_(x, (None, None, None, 0)) for x in (self.a, self.b))
        return (
            blockscaled_layout.make_tmem_layout_sfa(mma, tiler, self.vector, one_a),
            blockscaled_layout.make_tmem_layout_sfb(mma, tiler, self.vector, one_b),
        )


class Shapes(NamedTuple):
    """The static layouts of the kernel, and what `utils.gemm.sm100` asks of it."""

    cta_tile_shape_mnk: Any
    c_layout: Any
    c_dtype: Any
    acc_dtype: Any
    use_2cta_instrs: bool
    tiler: tuple[int, int, int]
    vmnk: Any
    a: Any  # shared memory by stages
    b: Any
    c: Any
    epi_tile: Any
    stages: int
    scales: Any  # ScaleShapes, None without scale factors


def tiled_mma(kinds: BlackwellGemmKinds, cfg: Config) -> Any:
    """Return the tiled MMA of a tile, with scale factors if there are any."""
    group = CtaGroup.TWO if cfg.pair else CtaGroup.ONE
    return _tiled_mma(kinds, group, cfg.tile)


def scale_mma(kinds: BlackwellGemmKinds, cfg: Config) -> Any:
    """Return the MMA of one block that partitions the scale factors of B: N in whole 128."""
    return _tiled_mma(kinds, CtaGroup.ONE, (algebra.SCALE_ROWS, _scale_rows(cfg)))


def _scale_rows(cfg: Config) -> int:
    return -(-cfg.tile[1] // algebra.SCALE_ROWS) * algebra.SCALE_ROWS


def _tiled_mma(kinds: BlackwellGemmKinds, group: Any, tile: Any) -> Any:
    majors = (kinds.major_a.mma_major_mode(), kinds.major_b.mma_major_mode())
    if kinds.scale is not None:
        return sm100.make_blockscaled_trivial_tiled_mma(
            kinds.a, kinds.b, *majors, kinds.scale, kinds.vector, group, tile
        )
    return sm100.make_trivial_tiled_mma(kinds.a, kinds.b, *majors, kinds.acc, group, tile)


def shapes_of(mma: Any, kinds: BlackwellGemmKinds, cfg: Config) -> Shapes:
    """Return the layouts of the kernel; DSLTypeError for a `cfg` that exceeds a block's memory."""
    k = 4 * mma.shape_mnk[2]
    tiler = (*cfg.tile, k)
    own = (*cfg.block_tile, k)
    epi_tile = sm100.compute_epilogue_tile_shape(own, cfg.pair, kinds.major_c, kinds.c)
    c = sm100.make_smem_layout_epi(kinds.c, kinds.major_c, epi_tile, cfg.c_stages)
    c_bytes = int(cute.size(c)) * kinds.c.width // 8
    check_config(cfg, c_bytes, kinds.vector)
    stages = cfg.ab_stages(c_bytes, kinds.vector)
    in_a, in_b = kinds.stored
    cluster = cute.make_layout((*cfg.cluster, 1))
    scales = None
    if kinds.scale is not None:
        scales = ScaleShapes(
            kinds.scale, kinds.vector,
            blockscaled_layout.make_smem_layout_sfa(mma, tiler, kinds.vector, stages),
            blockscaled_layout.make_smem_layout_sfb(mma, tiler, kinds.vector, stages),
            _scale_rows(cfg),
            cute.tiled_divide(cluster, (scale_mma(kinds, cfg).thr_id.shape,)),
        )  # fmt: skip
    return Shapes(
        own, kinds.major_c, kinds.c, kinds.acc, cfg.pair, tiler,
        cute.tiled_divide(cluster, (mma.thr_id.shape,)),
        sm100.make_smem_layout_a(mma, tiler, in_a, stages),
        sm100.make_smem_layout_b(mma, tiler, in_b, stages),
        c, epi_tile, stages, scales,
    )  # fmt: skip


def load_bytes(shapes: Shapes, kinds: BlackwellGemmKinds, cfg: Config) -> int:
    """Return the bytes of a stage of A, B and their scale factors, of both blocks of a pair."""
    given = [(shapes.a, kinds.stored[0]), (shapes.b, kinds.stored[1])]
    if shapes.scales is not None:
        given += [(cute.filter_zeros(x), kinds.scale) for x in (shapes.scales.a, shapes.scales.b)]
    bits = sum(int(cute.size(layout)) * dtype.width for layout, dtype in given)
    return bits // 8 // shapes.stages * cfg.blocks
