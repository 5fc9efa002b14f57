"""A matrix product with tiles in shared memory: C = A B, one thread for each element of C.

python examples/cute/tiled_matmul.py
"""

import numpy as np

import basedsl_cute as cute

TILE = 16


@cute.kernel
def matmul_kernel(a: cute.Tensor, b: cute.Tensor, c: cute.Tensor):
    tx, ty, _ = cute.arch.thread_idx()
    bx, by, _ = cute.arch.block_idx()
    m, n = c.shape
    k = a.shape[1]
    row, col = by * TILE + ty, bx * TILE + tx
    smem = cute.utils.SmemAllocator()
    sa = smem.allocate_tensor(cute.Float32, cute.make_layout((TILE, TILE), stride=(TILE, 1)))
    sb = smem.allocate_tensor(cute.Float32, cute.make_layout((TILE, TILE), stride=(TILE, 1)))
    acc = cute.Float32(0.0)
    for tile in range(cute.ceil_div(k, TILE)):
        ka, kb = tile * TILE + tx, tile * TILE + ty
        sa[ty, tx] = a[row, ka] if row < m and ka < k else 0.0
        sb[ty, tx] = b[kb, col] if kb < k and col < n else 0.0
        cute.arch.sync_threads()
        for i in cute.range_constexpr(TILE):
            acc += sa[ty, i] * sb[i, tx]
        cute.arch.sync_threads()
    if row < m and col < n:
        c[row, col] = acc


@cute.jit
def matmul(a: cute.Tensor, b: cute.Tensor, c: cute.Tensor):
    m, n = c.shape
    grid = (cute.ceil_div(n, TILE), cute.ceil_div(m, TILE), 1)
    matmul_kernel(a, b, c).launch(grid=grid, block=(TILE, TILE, 1))


if __name__ == "__main__":
    a, b = np.random.rand(2, 96, 96).astype(np.float32)
    c = np.empty((96, 96), np.float32)
    matmul(a, b, c)
    print("largest error:", abs(c - a @ b).max())
