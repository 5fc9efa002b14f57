"""Dropout by Philox 4x32-10 (Salmon et al. 2011): 32-bit products with their upper halves."""

import numpy as np

import basedsl_cute as cute
import basedsl_cute as cutlass

MULTIPLIERS = 0xD2511F53, 0xCD9E8D57
STEPS = 0x9E3779B9, 0xBB67AE85


@cute.jit
def wide_product(a, b):
    product = a.to(cutlass.Uint64) * b.to(cutlass.Uint64)
    return (product >> 32).to(cutlass.Uint32), product.to(cutlass.Uint32)


@cute.jit
def philox(counter, seed):
    c = [counter.to(cutlass.Uint32), cutlass.Uint32(0), cutlass.Uint32(0), cutlass.Uint32(0)]
    keys = [seed.to(cutlass.Uint32), (seed >> 32).to(cutlass.Uint32)]
    for _ in cutlass.range_constexpr(10):
        high0, low0 = wide_product(c[0], cutlass.Uint32(MULTIPLIERS[0]))
        high1, low1 = wide_product(c[2], cutlass.Uint32(MULTIPLIERS[1]))
        c = [high1 ^ c[1] ^ keys[0], low1, high0 ^ c[3] ^ keys[1], low0]
        keys = [key + cutlass.Uint32(step) for key, step in zip(keys, STEPS, strict=True)]
    return c


@cute.kernel
def dropout_kernel(x: cute.Tensor, out: cute.Tensor, seed: cutlass.Uint64, kept: cutlass.Float32):
    i = cute.arch.block_idx()[0] * 32 + cute.arch.thread_idx()[0]
    limit = (kept * 4294967296.0).to(cutlass.Uint32)
    words = philox(i, seed)
    for j in cutlass.range_constexpr(4):
        value = x[i, j] / kept
        out[i, j] = value if words[j] < limit else cutlass.Float32(0.0)


@cute.jit
def dropout(x: cute.Tensor, out: cute.Tensor, seed: cutlass.Uint64, kept: cutlass.Float32):
    dropout_kernel(x, out, seed, kept).launch(grid=x.shape[0] // 32, block=32)


def words_of(counter, seed):
    c, keys = [counter, 0, 0, 0], [seed & 0xFFFFFFFF, seed >> 32]
    for _ in range(10):
        products = c[0] * MULTIPLIERS[0], c[2] * MULTIPLIERS[1]
        halves = [divmod(product, 1 << 32) for product in products]
        c = [
            halves[1][0] ^ c[1] ^ keys[0],
            halves[1][1],
            halves[0][0] ^ c[3] ^ keys[1],
            halves[0][1],
        ]
        keys = [(key + step) % (1 << 32) for key, step in zip(keys, STEPS, strict=True)]
    return c


def run():
    # The first of the known answers for a counter and a key of zeros.
    assert words_of(0, 0)[0] == 0x6627E8D5
    seed, kept = 0xDEADBEEF12345678, np.float32(0.7)
    x = np.arange(1, 257, dtype=np.float32).reshape(64, 4)
    out = np.full_like(x, np.nan)
    dropout(x, out, seed, 0.7)
    words = np.array([words_of(i, seed) for i in range(64)])
    wanted = np.where(words < int(kept * np.float32(2**32)), x / kept, np.float32(0))
    np.testing.assert_array_equal(out, wanted)
