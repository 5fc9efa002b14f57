"""Sums of the rows of a matrix.

python examples/cute/row_reduction.py
"""

import numpy as np
from rowwise import RowTiling

import basedsl_cute as cute
from basedsl_cute.runtime import from_dlpack


@cute.kernel
def row_sum_kernel(x: cute.Tensor, sums: cute.Tensor, tiling: cute.Constexpr):
    r, t = tiling.place()
    row = cute.arch.block_idx()[0] * tiling.rows + r
    inside = tiling.inside(x.shape[1], tiling.row_is_inside(row, x.shape[0]), t)
    value = tiling.load(x, row, t, inside)
    total = tiling.reduce(value, cute.ReductionOp.ADD, r, t, tiling.partial_sums()[0])
    if t == 0 and row < x.shape[0]:
        sums[row] = total.to(sums.element_type)


@cute.jit
def row_sum(
    x: cute.Tensor,
    sums: cute.Tensor,
    columns: cute.Constexpr = None,
    threads: cute.Constexpr = None,
    rows: cute.Constexpr = None,
):
    """sums = x.sum(axis=1), in Float32 inside; arguments as for `softmax`."""
    tiling = RowTiling((x,), columns, threads, rows)
    blocks = cute.ceil_div(x.shape[0], tiling.rows)
    if blocks > 0:
        row_sum_kernel(x, sums, tiling).launch(grid=(blocks, 1, 1), block=(tiling.block, 1, 1))


if __name__ == "__main__":
    x = np.random.rand(100, 777).astype(np.float32)
    sums = np.empty(100, np.float32)
    row_sum(from_dlpack(x), from_dlpack(sums))
    print("row sums, largest error:", abs(sums - x.sum(axis=1, dtype=np.float64)).max())
