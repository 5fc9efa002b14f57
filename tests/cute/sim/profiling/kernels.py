"""Kernels whose memory transactions can be counted by hand."""

import basedsl_cute as cute
from basedsl_cute.ops.hopper.gemm import Config, gemm

ROWS = 32


@cute.kernel
def copy_kernel(x: cute.Tensor, y: cute.Tensor, step: cute.Constexpr):
    i = cute.arch.block_idx()[0] * 128 + cute.arch.thread_idx()[0]
    y[i] = x[i * step]


@cute.jit
def copied(x: cute.Tensor, y: cute.Tensor, step: cute.Constexpr = 1):
    copy_kernel(x, y, step).launch(grid=(cute.size(y) // 128, 1, 1), block=(128, 1, 1))


@cute.kernel
def odd_kernel(y: cute.Tensor):
    i = cute.arch.thread_idx()[0]
    if i % 2 == 0:
        y[i] = cute.Float32(1)


@cute.jit
def odd(y: cute.Tensor):
    odd_kernel(y).launch(grid=(1, 1, 1), block=(cute.size(y), 1, 1))


@cute.kernel
def turn_kernel(x: cute.Tensor, y: cute.Tensor, pitch: cute.Constexpr):
    lane, row, _ = cute.arch.thread_idx()
    layout = cute.make_layout((ROWS, ROWS), stride=(pitch, 1))
    tile = cute.utils.SmemAllocator().allocate_tensor(cute.Float32, layout, byte_alignment=128)
    tile[row, lane] = x[row, lane]
    cute.arch.sync_threads()
    turned = tile[lane, row]
    y[row, lane] = turned


@cute.jit
def turn(x: cute.Tensor, y: cute.Tensor, pitch: cute.Constexpr):
    turn_kernel(x, y, pitch).launch(grid=(1, 1, 1), block=(ROWS, ROWS, 1))


@cute.kernel
def vectors_kernel(y: cute.Tensor, width: cute.Constexpr, lanes: cute.Constexpr):
    thread = cute.arch.thread_idx()[0]
    layout = cute.make_layout((32, width), stride=(width, 1))
    tile = cute.utils.SmemAllocator().allocate_tensor(cute.Float32, layout, byte_alignment=128)
    for i in cute.range_constexpr(width):
        tile[thread, i] = cute.Float32(thread)
    cute.arch.sync_threads()
    held = tile[thread // lanes, None].load()  # one vector for so many neighbouring lanes
    y[thread, None].store(held)


@cute.jit
def vectors(y: cute.Tensor, width: cute.Constexpr, lanes: cute.Constexpr):
    vectors_kernel(y, width, lanes).launch(grid=(1, 1, 1), block=(32, 1, 1))


@cute.kernel
def matrices_kernel(y: cute.Tensor, swizzled: cute.Constexpr):
    thread = cute.arch.thread_idx()[0]
    rows = cute.make_layout((32, 64), stride=(64, 1))  # 128 bytes a row
    if swizzled:
        rows = cute.make_composed_layout(cute.make_swizzle(3, 3, 3), 0, rows)
    tile = cute.utils.SmemAllocator().allocate_tensor(cute.Float16, rows, byte_alignment=1024)
    for i in cute.range_constexpr(64):
        tile[thread, i] = cute.Float16(1)
    cute.arch.sync_threads()
    atom = cute.make_copy_atom(cute.nvgpu.warp.LdMatrix8x8x16bOp(False, 4), cute.Float16)
    # Lane l gives row l: four matrices of eight rows, of 16 bytes each.
    mine = cute.make_tensor(
        cute.local_tile(tile, (1, 8), (thread, 0)).iterator, cute.make_layout(8)
    )
    held = cute.make_rmem_tensor(8, cute.Float16)
    cute.copy(atom, mine, held)
    y[thread] = held[0]


@cute.jit
def matrices(y: cute.Tensor, swizzled: cute.Constexpr):
    matrices_kernel(y, swizzled).launch(grid=(1, 1, 1), block=(32, 1, 1))


@cute.kernel
def doubled_kernel(x: cute.Tensor, y: cute.Tensor):
    i = cute.arch.block_idx()[0] * 128 + cute.arch.thread_idx()[0]
    y[i] = x[i] + x[i]


@cute.jit
def doubled(x: cute.Tensor, y: cute.Tensor):
    doubled_kernel(x, y).launch(grid=(cute.size(y) // 128, 1, 1), block=(128, 1, 1))


@cute.kernel
def staged_kernel(x: cute.Tensor, y: cute.Tensor):
    t = cute.arch.thread_idx()[0]
    tile = cute.utils.SmemAllocator().allocate_tensor(cute.Float32, cute.make_layout(128), 16)
    atom = cute.make_copy_atom(cute.nvgpu.cpasync.CopyG2SOp(), cute.Float32, num_bits_per_copy=32)
    one = cute.make_layout(1)
    source = cute.make_tensor(x.iterator + t, one)
    cute.copy(atom, source, cute.make_tensor(tile.iterator + t, one))
    cute.arch.cp_async_commit_group()
    cute.arch.cp_async_wait_group(0)
    y[t] = tile[t]


@cute.jit
def staged_and_multiplied(
    x: cute.Tensor, y: cute.Tensor, a: cute.Tensor, b: cute.Tensor, c: cute.Tensor
):
    staged_kernel(x, y).launch(grid=1, block=128)
    gemm(a, b, c, 1, Config(tile=(128, 128, 64)))


@cute.kernel
def rounds_kernel(x: cute.Tensor, y: cute.Tensor):
    """Four warps meet two by two, at a barrier and then often at another one, then all of them."""
    t = cute.arch.thread_idx()[0]
    warp = cute.arch.make_warp_uniform(cute.arch.warp_idx())
    if warp < 2:
        cute.arch.barrier(barrier_id=1, number_of_threads=64)
        for _ in range(3):
            cute.arch.barrier(barrier_id=3, number_of_threads=64)
    else:
        for _ in range(4):
            cute.arch.barrier(barrier_id=2, number_of_threads=64)
    cute.arch.sync_threads()
    y[t] = x[t]


@cute.jit
def rounds(x: cute.Tensor, y: cute.Tensor):
    rounds_kernel(x, y).launch(grid=1, block=128)
