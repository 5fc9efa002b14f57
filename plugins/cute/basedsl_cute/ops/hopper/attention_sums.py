"""Sums of a tile's weights of 8 bits on Hopper as products with ones, by the tensor cores.

wgmma adds products of 8 bits with some 14 bits: enough for the weights of one tile, whose sums are
added to those of other tiles in Float32, as the sums of values cannot be.
"""

from __future__ import annotations

import basedsl_cute as cute
from basedsl_cute.nvgpu import OperandMajorMode, warpgroup
from basedsl_cute.ops.flash.softmax import as_rows
from basedsl_cute.utils import hopper_helpers as sm90

COLUMNS = 8  # the fewest that a wgmma has
KEYS = 32  # of a wgmma of 8 bits


def allocate_ones(smem, dtype, cfg):
    """Allocate the ones in shared memory, (columns, keys, 1)."""
    shape = (cfg.tile[0], COLUMNS, KEYS)
    layout = sm90.make_smem_layout_b(sm90.LayoutEnum.ROW_MAJOR, shape, dtype, 1)
    return smem.allocate_tensor(dtype, layout, 1024)


@cute.jit
def write_ones(ones, thread):
    """Write the ones: a barrier of all threads must follow."""
    if thread < COLUMNS * KEYS:
        ones[thread // KEYS, thread % KEYS, 0] = ones.element_type(1.0)
    cute.arch.fence_proxy("async.shared", space="cta")


class TileSums:
    """The sums of a tile's weights, of which each of the four threads of a row has all."""

    def __init__(self, ones, first_thread, cfg):
        k, dtype = OperandMajorMode.K, ones.element_type
        self.mma = sm90.make_trivial_tiled_mma(
            *(dtype, dtype, k, k, cute.Float32, (cfg.groups, 1, 1)),
            tiler_mn=(64, COLUMNS),
            a_source=warpgroup.OperandSource.RMEM,
        )
        self.ones = self.mma.make_fragment_B(self.mma.get_slice(first_thread).partition_B(ones))
        shape = self.mma.partition_shape_C((cfg.tile[0], COLUMNS))
        self.sums = cute.make_rmem_tensor(shape, cute.Float32)
        self.by_row = as_rows(self.sums)

    def multiply(self, weights):
        """Start the products of a tile's weights with ones."""
        self.mma.set(warpgroup.Field.ACCUMULATE, False)
        for k in range(cute.size(weights, mode=[2])):
            part = weights[None, None, k]
            cute.gemm(self.mma, self.sums, part, self.ones[None, None, 0, 0], self.sums)
            self.mma.set(warpgroup.Field.ACCUMULATE, True)

    def add(self, total, scales):
        """Add the sums, scaled by their rows' numbers, to a thread's part of the totals: the four
        threads of a row have a quarter each.
        """
        for r in range(cute.size(total)):
            total[r] = total[r] + self.by_row[r, 0] * (scales[r] * 0.25)
