"""Matrix products on Hopper with epilogues of one's own, fused into the kernel.

    python examples/cute/hopper_gemm.py

The kernel is `basedsl_cute.ops.hopper.gemm`: persistent and warp-specialised, TMA and wgmma, tiles
of 128 x 256, two consumer warpgroups. It is written in this language and reads from top to bottom;
what a program chooses of it is a `Config`, and an epilogue is a Python function of the sums.
"""

import math

import numpy as np

import basedsl_cute as cute
from basedsl_cute.ops.hopper.gemm import Config, gemm
from basedsl_cute.utils.epilogue import per_column


def gelu(acc, bias):
    """x * Phi(x) for x = acc + bias: C has a row for each sample, `bias` one number a column."""
    x = acc + bias.to(cute.Float32)
    return x * (cute.erf(x * math.sqrt(0.5)) + 1.0) * 0.5


class Residual:
    """factor * acc + x: the factor is static, x is a tensor like C."""

    def __init__(self, factor):
        self.factor = factor

    def __call__(self, acc, x):
        return acc * self.factor + x.to(cute.Float32)


@cute.jit
def linear_gelu(
    a: cute.Tensor,
    weight: cute.Tensor,
    bias: cute.Tensor,
    c: cute.Tensor,
    blocks: cute.Int32,
    cfg: cute.Constexpr,
):
    """C = gelu(A W^T + bias)"""
    gemm(a, weight, c, blocks, cfg, gelu, (per_column(bias, c.shape),))


@cute.jit
def linear_residual(
    a: cute.Tensor,
    weight: cute.Tensor,
    x: cute.Tensor,
    c: cute.Tensor,
    blocks: cute.Int32,
    cfg: cute.Constexpr,
):
    """C = A W^T / 2 + x"""
    gemm(a, weight, c, blocks, cfg, Residual(0.5), (x,))


def report(title, c, exact):
    cute.synchronize()
    print(f"{title}: largest error {np.abs(c.astype(np.float64) - exact).max():.1e}")


if __name__ == "__main__":
    rng = np.random.default_rng(0)
    m, n, k = 200, 136, 72  # no multiples of the tile
    small = Config(tile=(128, 64, 64))
    a, weight = (rng.standard_normal(shape).astype(np.float16) for shape in ((m, k), (n, k)))
    exact = a.astype(np.float64) @ weight.T.astype(np.float64)
    c = np.full((m, n), np.nan, np.float16)
    gemm(a, weight, c, 3, small)
    report("A W^T", c, exact)

    bias = rng.standard_normal(n).astype(np.float16)
    linear_gelu(a, weight, bias, c, 3, small)
    x = exact + bias
    erf = np.vectorize(math.erf)
    report("gelu(A W^T + bias)", c, x * (erf(x * math.sqrt(0.5)) + 1) / 2)

    x = rng.standard_normal((n, m)).astype(np.float16).T  # a mode of any tensor may be contiguous
    wide = np.full((m, n), np.nan, np.float32)
    linear_residual(a, weight, x, wide, 3, small)
    report("A W^T / 2 + x, in float32", wide, exact / 2 + x)
