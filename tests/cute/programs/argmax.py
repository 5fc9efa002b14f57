"""The largest element of each row and where it is: pairs reduced over lanes and warps."""

from typing import NamedTuple

import numpy as np

import basedsl_cute as cute
import basedsl_cute as cutlass
from basedsl_cute.runtime import from_dlpack


class Best(NamedTuple):
    value: cutlass.Float32
    index: cutlass.Int32


@cute.jit
def better(a: Best, b: Best) -> Best:
    result = a
    if b.value > a.value or (b.value == a.value and b.index < a.index):
        result = b
    return result


@cute.jit
def warp_best(mine: Best, width: cutlass.Constexpr[int] = 32) -> Best:
    offset = width // 2
    while cutlass.const_expr(offset > 0):
        other = Best(
            cute.arch.shuffle_sync_bfly(mine.value, offset=offset),
            cute.arch.shuffle_sync_bfly(mine.index, offset=offset),
        )
        mine = better(mine, other)
        offset //= 2
    return mine


@cute.kernel
def argmax_kernel(
    x: cute.Tensor, values: cute.Tensor, indices: cute.Tensor, warps: cutlass.Constexpr
):
    tid, _, _ = cute.arch.thread_idx()
    row, _, _ = cute.arch.block_idx()
    best = Best(-cutlass.Float32.inf, cutlass.Int32(2**31 - 1))
    for i in cutlass.range(tid, x.shape[1], warps * 32):
        best = better(best, Best(x[row, i], i))
    best = warp_best(best)

    smem = cutlass.utils.SmemAllocator()
    warp_values = smem.allocate_tensor(cutlass.Float32, cute.make_layout(warps))
    warp_indices = smem.allocate_tensor(cutlass.Int32, cute.make_layout(warps))
    if tid % 32 == 0:
        warp_values[tid // 32], warp_indices[tid // 32] = best.value, best.index
    cute.arch.sync_threads()
    if tid < 32:
        lane = tid % warps
        best = warp_best(Best(warp_values[lane], warp_indices[lane]), warps)
        if tid == 0:
            values[row] = best.value
            indices[row] = best.index


@cute.jit
def argmax(x: cute.Tensor, values: cute.Tensor, indices: cute.Tensor, warps: cutlass.Constexpr = 4):
    argmax_kernel(x, values, indices, warps).launch(
        grid=(x.shape[0], 1, 1), block=(32 * warps, 1, 1)
    )


def run():
    rng = np.random.default_rng(5)
    x = rng.integers(0, 50, (4, 333)).astype(np.float32)
    values, indices = np.zeros(4, np.float32), np.zeros(4, np.int32)
    argmax(*(from_dlpack(t).mark_layout_dynamic() for t in (x, values, indices)))
    np.testing.assert_array_equal(values, x.max(axis=1))
    np.testing.assert_array_equal(indices, x.argmax(axis=1))
