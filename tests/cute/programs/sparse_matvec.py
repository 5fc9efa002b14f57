"""y = A x of a sparse matrix in compressed rows, a warp a row; then the rows sorted by their sums
by a network of comparisons.
"""

import numpy as np

import basedsl_cute as cute
import basedsl_cute as cutlass
from basedsl_cute import utils

ROWS = 64


@cute.kernel
def multiply_kernel(
    starts: cute.Tensor, columns: cute.Tensor, values: cute.Tensor, x: cute.Tensor, y: cute.Tensor
):
    row, lane = cute.arch.block_idx()[0], cute.arch.lane_idx()
    total = cutlass.Float32(0.0)
    i = starts[row] + lane
    while i < starts[row + 1]:
        total += values[i] * x[columns[i]]
        i += 32
    total = cute.arch.warp_reduction_sum(total)
    if lane == 0:
        y[row] = total


@cute.kernel
def sort_kernel(y: cute.Tensor, order: cute.Tensor):
    t = cute.arch.thread_idx()[0]
    smem = utils.SmemAllocator()
    keys = smem.allocate_tensor(cutlass.Float32, cute.make_layout(ROWS))
    rows = smem.allocate_tensor(cutlass.Int32, cute.make_layout(ROWS))
    keys[t], rows[t] = y[t], t
    cute.arch.sync_threads()
    width = 2
    while width <= ROWS:
        step = width // 2
        while step > 0:
            other = t ^ step
            if other > t:
                before = keys[t] < keys[other] or (keys[t] == keys[other] and rows[t] < rows[other])
                if before == (t & width != 0):
                    keys[t], keys[other] = keys[other], keys[t]
                    rows[t], rows[other] = rows[other], rows[t]
            cute.arch.sync_threads()
            step //= 2
        width *= 2
    order[t] = rows[t]


@cute.jit
def multiply_and_sort(
    starts: cute.Tensor,
    columns: cute.Tensor,
    values: cute.Tensor,
    x: cute.Tensor,
    y: cute.Tensor,
    order: cute.Tensor,
):
    multiply_kernel(starts, columns, values, x, y).launch(grid=cute.size(y), block=32)
    sort_kernel(y, order).launch(grid=1, block=ROWS)


def run():
    rng = np.random.default_rng(0)
    dense = (rng.random((ROWS, 90)) < 0.4) * rng.integers(-4, 5, (ROWS, 90))
    dense[7] = 0  # an empty row
    starts = np.concatenate([[0], np.cumsum((dense != 0).sum(axis=1))]).astype(np.int32)
    columns = np.nonzero(dense)[1].astype(np.int32)
    values = dense[dense != 0].astype(np.float32)
    x = rng.integers(-3, 4, 90).astype(np.float32)
    y, order = np.full(ROWS, np.nan, np.float32), np.full(ROWS, -1, np.int32)
    multiply_and_sort(starts, columns, values, x, y, order)
    np.testing.assert_array_equal(y, dense @ x)
    np.testing.assert_array_equal(order, np.argsort(y, kind="stable"))
