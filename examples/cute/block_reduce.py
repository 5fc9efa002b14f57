"""A sum with shared memory: each block halves its partial sums until one is left.

python examples/cute/block_reduce.py
"""

import numpy as np

import basedsl_cute as cute

THREADS = 256


@cute.kernel
def sum_kernel(x: cute.Tensor, total: cute.Tensor):
    tid = cute.arch.thread_idx()[0]
    n = cute.size(x)
    partial = cute.utils.SmemAllocator().allocate_tensor(cute.Float32, (THREADS,))
    value = cute.Float32(0.0)
    stride = cute.arch.grid_dim()[0] * THREADS
    for i in range(cute.arch.block_idx()[0] * THREADS + tid, n, stride):
        value += x[i]
    partial[tid] = value
    cute.arch.sync_threads()
    width = THREADS // 2
    for _ in cute.range_constexpr(THREADS.bit_length() - 1):
        if tid < width:
            partial[tid] = partial[tid] + partial[tid + width]
        cute.arch.sync_threads()
        width //= 2
    if tid == 0:
        cute.arch.atomic_add(total.iterator, partial[0])


@cute.jit
def block_sum(x: cute.Tensor, total: cute.Tensor):
    sum_kernel(x, total).launch(grid=(16, 1, 1), block=(THREADS, 1, 1))


if __name__ == "__main__":
    x = np.random.rand(100_000).astype(np.float32)
    total = np.zeros(1, np.float32)
    block_sum(x, total)
    print("sum:", total[0], "NumPy:", x.sum(dtype=np.float64))
