"""Kernels that take as many registers and as much shared memory as they are told to."""

import numpy as np

import basedsl_cute as cute

THREADS = (32, 96, 128, 384, 1024)
VALUES_AND_WORDS = ((1, 16), (24, 2048), (60, 8192), (8, 12000))


@cute.kernel
def holding_kernel(x: cute.Tensor, y: cute.Tensor, values: cute.Constexpr, words: cute.Constexpr):
    """Hold `values` numbers at a time, and `words` words of shared memory."""
    smem = cute.make_tensor(cute.arch.alloc_smem(cute.Int32, words), words)
    i = cute.arch.thread_idx()[0]
    if i < words:
        smem[i] = i
    held = [x[i + n] for n in range(values)]
    cute.arch.sync_threads()
    total = held[0]
    for n in cute.range_constexpr(1, values):
        total = total * held[n] + held[n - 1]
    y[i] = total + smem[(i + 1) % words]


@cute.jit
def holding(
    x: cute.Tensor,
    y: cute.Tensor,
    values: cute.Constexpr,
    words: cute.Constexpr,
    threads: cute.Constexpr,
):
    holding_kernel(x, y, values, words).launch(grid=(1, 1, 1), block=(threads, 1, 1))


def compiled(values, words, threads):
    """Compile it for blocks of `threads`, of Float32."""
    x = np.zeros(2048, np.float32)
    return cute.compile(holding, x, x.copy(), values, words, threads)


def run():
    values, words, threads = 3, 64, 64
    x, y = np.arange(256, dtype=np.float32) / 256, np.zeros(256, np.float32)
    holding(x, y, values, words, threads)
    i = np.arange(threads)
    expected = (x[i] * x[i + 1] + x[i]) * x[i + 2] + x[i + 1] + (i + 1) % words
    np.testing.assert_allclose(y[:threads], expected, rtol=1e-6)


if __name__ == "__main__":
    run()
    print("PASS")
