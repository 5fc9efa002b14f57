"""Kernels with breakpoints, which the tests stop at."""

import basedsl_cute as cute


@cute.jit
def square(v):
    w = v * v
    return w


@cute.kernel
def prefix_kernel(x: cute.Tensor, y: cute.Tensor):
    thread = cute.arch.thread_idx()[0]
    total = cute.Float32(0)
    if thread == 3:
        breakpoint()
    for i in range(thread + 1):
        total = total + x[i]
    s = square(total)
    y[thread] = s


@cute.jit
def prefix(x: cute.Tensor, y: cute.Tensor):
    prefix_kernel(x, y).launch(grid=(1, 1, 1), block=(cute.size(y), 1, 1))


@cute.kernel
def tables_kernel(x: cute.Tensor, y: cute.Tensor):
    thread = cute.arch.thread_idx()[0]
    block = cute.arch.block_idx()[0]
    tile = cute.utils.SmemAllocator().allocate_tensor(
        cute.Float16, cute.make_layout((4, 8), stride=(8, 1)), byte_alignment=16
    )
    held = cute.make_rmem_tensor(2, cute.Int32)
    held[0] = thread
    held[1] = thread * 2
    tile[thread // 8, thread % 8] = x[block, thread // 8, thread % 8].to(cute.Float16)
    cute.arch.sync_threads()
    breakpoint()
    y[block, thread] = held[1]


@cute.jit
def tables(x: cute.Tensor, y: cute.Tensor):
    tables_kernel(x, y).launch(grid=(2, 1, 1), block=(32, 1, 1))


@cute.kernel
def scaled_kernel(x: cute.Tensor, n: cute.Int32):
    thread = cute.arch.thread_idx()[0]
    breakpoint()
    x[thread] = x[thread] * n


@cute.jit
def scaled(given: cute.Tensor, number: cute.Int32):
    twice = number * 2
    scaled_kernel(given, twice).launch(grid=(1, 1, 1), block=(32, 1, 1))
