"""Softmax over the rows of a matrix, each read once and kept in registers.

python examples/cute/softmax.py
"""

import math

import numpy as np
from rowwise import RowTiling

import basedsl_cute as cute
from basedsl_cute.runtime import from_dlpack

LOG2_E = math.log2(math.e)


@cute.kernel
def softmax_kernel(x: cute.Tensor, y: cute.Tensor, tiling: cute.Constexpr):
    r, t = tiling.place()
    row = cute.arch.block_idx()[0] * tiling.rows + r
    inside = tiling.inside(x.shape[1], tiling.row_is_inside(row, x.shape[0]), t)
    value = tiling.load(x, row, t, inside, fill=-math.inf)
    largest = tiling.reduce(value, cute.ReductionOp.MAX, r, t, tiling.partial_sums()[0])
    power = cute.math.exp2((value - largest) * LOG2_E, fastmath=True)
    total = tiling.reduce(power, cute.ReductionOp.ADD, r, t, tiling.partial_sums()[0])
    tiling.store(power * (1.0 / total), y, row, t, inside)


@cute.jit
def softmax(
    x: cute.Tensor,
    y: cute.Tensor,
    columns: cute.Constexpr = None,
    threads: cute.Constexpr = None,
    rows: cute.Constexpr = None,
):
    """y = softmax(x) along mode 1. `columns` bounds a dynamic number of columns; `threads` of a row
    and `rows` of a block are chosen if not given.
    """
    tiling = RowTiling((x, y), columns, threads, rows)
    blocks = cute.ceil_div(x.shape[0], tiling.rows)
    if blocks > 0:
        softmax_kernel(x, y, tiling).launch(grid=(blocks, 1, 1), block=(tiling.block, 1, 1))


if __name__ == "__main__":
    x = np.random.randn(50, 1000).astype(np.float32)
    y = np.empty_like(x)
    softmax(from_dlpack(x, assumed_align=16), from_dlpack(y, assumed_align=16))
    power = np.exp(x.astype(np.float64) - x.max(axis=1, keepdims=True))
    print("softmax, largest error:", abs(y - power / power.sum(axis=1, keepdims=True)).max())
