"""Matrix products on tensor cores by mma.sync: the kernel is `basedsl_cute.ops.ampere.gemm`.

    python examples/cute/ampere_gemm.py

C = epilogue(A B^T) for A (M, K), B (N, K) and C (M, N): ldmatrix from swizzled shared memory, three
or more cp.async stages, persistent blocks, any order of modes, any extents.
"""

import numpy as np

import basedsl_cute as cute
from basedsl_cute.ops.ampere.gemm import Config, gemm
from basedsl_cute.utils.epilogue import per_column


def bias_relu(acc, bias):
    x = acc + bias
    return cute.where(x > 0.0, x, 0.0)


@cute.jit
def linear_relu(x: cute.Tensor, weight: cute.Tensor, bias: cute.Tensor, y: cute.Tensor):
    """y = relu(x weight^T + bias), 16 bytes at a time: K and N are multiples of 8."""
    small = Config(tile=(64, 64, 32), warps=(2, 1))
    gemm(x, weight, y, 4, small, bias_relu, (per_column(bias, y.shape),), (8, 8, 8))


if __name__ == "__main__":
    rng = np.random.default_rng(0)
    x, weight = (rng.standard_normal((rows, 72)).astype(np.float16) for rows in (100, 200))
    bias = rng.standard_normal(200).astype(np.float32)
    y = np.full((100, 200), np.nan, np.float16)
    linear_relu(x, weight, bias, y)
    cute.synchronize()
    exact = np.maximum(x.astype(np.float64) @ weight.T.astype(np.float64) + bias, 0)
    print(f"largest error: {np.abs(y - exact).max():.1e}")
