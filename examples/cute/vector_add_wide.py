"""Vector addition 16 bytes at a time: each thread loads and stores four elements as one vector.

The accesses are as wide as the arrays' alignment proves; what is left over at the end is added one
element at a time.

    python examples/cute/vector_add_wide.py
"""

import numpy as np

import basedsl_cute as cute

WIDTH = 4
THREADS = 256


@cute.kernel
def add_wide(a: cute.Tensor, b: cute.Tensor, c: cute.Tensor):
    i = cute.arch.block_idx()[0] * cute.arch.block_dim()[0] + cute.arch.thread_idx()[0]
    va, vb, vc = (cute.zipped_divide(t, (WIDTH,)) for t in (a, b, c))
    if (i + 1) * WIDTH <= cute.size(c):
        vc[(None, i)].store(va[(None, i)].load() + vb[(None, i)].load())
    else:
        for k in range(i * WIDTH, cute.size(c)):
            c[k] = a[k] + b[k]


@cute.jit
def vector_add_wide(a: cute.Tensor, b: cute.Tensor, c: cute.Tensor):
    blocks = cute.ceil_div(cute.size(c), WIDTH * THREADS)
    add_wide(a, b, c).launch(grid=blocks, block=THREADS)


if __name__ == "__main__":
    a, b = np.random.rand(2, 100_000).astype(np.float32)
    c = np.empty_like(a)
    vector_add_wide(a, b, c)
    print("largest error:", abs(c - (a + b)).max())
