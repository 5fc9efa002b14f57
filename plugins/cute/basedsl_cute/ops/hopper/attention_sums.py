"""The sums of rows of weights by wgmma, for attention on Hopper."""

from __future__ import annotations

import basedsl_cute as cute
from basedsl_cute import arch
from basedsl_cute.nvgpu import OperandMajorMode, warpgroup
from basedsl_cute.ops.flash.softmax import as_rows
from basedsl_cute.utils import hopper_helpers as sm90

ROWS, COLUMNS = 64, 8  # of the smallest wgmma of a warpgroup


class Counting:
    """The product of weights with ones, of which each column is the sums of rows."""

    def __init__(self, ones, dtype, cfg):
        k = OperandMajorMode.K
        source = warpgroup.OperandSource.RMEM
        shape, warps = (ROWS, COLUMNS), (cfg.groups, 1, 1)
        self.mma = sm90.make_trivial_tiled_mma(
            dtype, dtype, k, k, cute.Float32, warps, shape, source
        )
        self.sums = cute.make_rmem_tensor(
            self.mma.partition_shape_C((cfg.tile[0], COLUMNS)), cute.Float32
        )
        self.ones = self.mma.make_fragment_B(self.mma.get_slice(0).partition_B(ones))

    def add(self, weights):
        """Start the product of one instruction's weights."""
        self.mma.set(warpgroup.Field.ACCUMULATE, True)
        cute.gemm(self.mma, self.sums, weights, self.ones[None, None, 0, 0], self.sums)

    def store(self, total):
        """Store the sums as parts of four threads, which add them."""
        by_row = as_rows(self.sums)
        for r in range(cute.size(total)):
            total[r] = by_row[r, 0] * 0.25


@cute.jit
def tensor_of_ones(smem, dtype, thread):
    """A tensor of ones (COLUMNS, keys of an instruction) in shared memory, for wgmma; a barrier of
    the block has to follow.
    """
    step = 256 // dtype.width
    layout = sm90.make_smem_layout_b(sm90.LayoutEnum.ROW_MAJOR, (ROWS, COLUMNS, step), dtype, 1)
    ones = smem.allocate_tensor(dtype, layout, 1024)
    if thread < COLUMNS * step:
        ones[thread % COLUMNS, thread // COLUMNS, 0] = dtype(1.0)
    arch.fence_view_async_shared()
    return ones
