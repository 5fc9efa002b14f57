"""Vector addition: one thread for each element.

python examples/cute/vector_add.py
"""

import numpy as np

import basedsl_cute as cute


@cute.kernel
def add(a: cute.Tensor, b: cute.Tensor, c: cute.Tensor):
    i = cute.arch.block_idx()[0] * cute.arch.block_dim()[0] + cute.arch.thread_idx()[0]
    if i < cute.size(c):
        c[i] = a[i] + b[i]


@cute.jit
def vector_add(a: cute.Tensor, b: cute.Tensor, c: cute.Tensor):
    n = cute.size(c)
    add(a, b, c).launch(grid=(cute.ceil_div(n, 256), 1, 1), block=(256, 1, 1))


if __name__ == "__main__":
    a, b = np.random.rand(2, 100_000).astype(np.float32)
    c = np.empty_like(a)
    vector_add(a, b, c)
    print("largest error:", abs(c - (a + b)).max())
