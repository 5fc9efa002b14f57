"""SAXPY with a dynamic loop in every thread: each strides over the vector by the whole grid.

python examples/cute/saxpy.py
"""

import numpy as np

import basedsl_cute as cute


@cute.kernel
def saxpy_kernel(alpha: cute.Float32, x: cute.Tensor, y: cute.Tensor):
    threads = cute.arch.grid_dim()[0] * cute.arch.block_dim()[0]
    first = cute.arch.block_idx()[0] * cute.arch.block_dim()[0] + cute.arch.thread_idx()[0]
    for i in range(first, cute.size(y), threads):
        y[i] = alpha * x[i] + y[i]


@cute.jit
def saxpy(alpha: cute.Float32, x: cute.Tensor, y: cute.Tensor):
    saxpy_kernel(alpha, x, y).launch(grid=(8, 1, 1), block=(128, 1, 1))


if __name__ == "__main__":
    x, y = np.random.rand(2, 50_000).astype(np.float32)
    expected = np.float32(2.5) * x + y
    saxpy(2.5, x, y)
    print("largest error:", abs(y - expected).max())
