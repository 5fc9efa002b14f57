"""Random operands of a product, in any order of modes, and the product in float64."""

import ml_dtypes
import numpy as np

import basedsl_cute as cute
from basedsl_cute.utils.epilogue import per_column, per_row


def operands(shape, dtype=np.float16, majors="kkn", out=None, batches=None, seed=3):
    """A (M, K), B (N, K), a C (M, N) full of 77, and the exact A B^T.

    `majors` says which mode of each is contiguous; with `batches`, all have a last mode of them.
    """
    m, n, k = shape
    rng = np.random.default_rng(seed)
    a = _random(rng, (m, k), dtype, majors[0] == "k", batches)
    b = _random(rng, (n, k), dtype, majors[1] == "k", batches)
    c = _ordered((m, n), majors[2] == "n", batches).astype(out or dtype)
    c[...] = 77
    wide = np.int64 if np.dtype(dtype).kind in "iu" else np.float64
    exact = np.einsum("mk...,nk...->mn...", a.astype(wide), b.astype(wide))
    return a, b, c, exact


def _ordered(shape, by_row, batches):
    extents = (*((batches,) if batches else ()), *(shape if by_row else shape[::-1]))
    array = np.zeros(extents)
    array = array if by_row else np.swapaxes(array, -1, -2)
    return np.moveaxis(array, 0, -1) if batches else array


def _random(rng, shape, dtype, by_row, batches):
    array = _ordered(shape, by_row, batches)
    if np.dtype(dtype).kind in "iu":
        low = 0 if np.dtype(dtype).kind == "u" else -100
        array[...] = rng.integers(low, 100, array.shape)
    else:
        array[...] = rng.standard_normal(array.shape)
    return array.astype(dtype)


def close(c, exact, summed=None, truncated=None):
    """Assert that C is `exact` to the precision of its type.

    `summed` are A and B if each sum is rounded to Float32 after each of its K products. What is off
    is random, in units of 2**-24 sqrt(K) and the root of the products' squares: up to 3 in what was
    computed so in NumPy, of which eight are allowed.

    `truncated` are A and B if only their upper 19 bits (TFloat32) are multiplied. Each product is
    then less by 0 to 2**-9 of itself, in the mean by as much of the sum; what remains is random,
    with a deviation under half of 2**-10 of each product, of which eight are allowed.
    """
    if np.dtype(c.dtype).kind in "iu":
        np.testing.assert_array_equal(c, exact)
        return
    relative = float(ml_dtypes.finfo(c.dtype).eps)
    allowed = 1e-3
    if summed is not None:
        allowed = 2.0**-21 * summed[0].shape[1] ** 0.5 * _root_of_squares(*summed)
    if truncated is not None:
        relative += 2.0**-9
        allowed = allowed + 2.0**-8 * _root_of_squares(*truncated)
    error = np.abs(c.astype(np.float64) - exact) / (allowed + relative * np.abs(exact))
    assert (error <= 1).all(), f"{error.max()} of what is allowed, at {np.argwhere(~(error <= 1))}"


def _root_of_squares(a, b):
    a, b = (x.astype(np.float64) ** 2 for x in (a, b))
    return np.sqrt(np.einsum("mk...,nk...->mn...", a, b))


def everything(acc, factor, bias, scale, x):
    y = acc * factor * scale + bias.to(cute.Float32) + x.to(cute.Float32)
    return cute.where(y > 0.0, y, 0.0)


def check_epilogue(gemm, cfg, vectors, majors):
    """A product whose epilogue takes a number, vectors by columns and by rows, and a matrix."""

    @cute.jit
    def call(
        a: cute.Tensor,
        b: cute.Tensor,
        c: cute.Tensor,
        factor: cute.Float32,
        bias: cute.Tensor,
        scale: cute.Tensor,
        x: cute.Tensor,
    ):
        extras = (factor, per_column(bias, c.shape), per_row(scale, c.shape), x)
        gemm(a, b, c, 2, cfg, everything, extras, vectors)

    a, b, c, exact = operands((72, 88, 40), majors=majors, out=np.float32)
    rng = np.random.default_rng(9)
    bias, x = rng.standard_normal(88).astype(np.float16), rng.standard_normal((72, 88))
    scale, x = rng.standard_normal(72).astype(np.float32), x.astype(np.float16)
    call(a, b, c, 0.5, bias, scale, x)
    cute.synchronize()
    wide = exact * 0.5 * scale[:, None] + bias.astype(np.float64) + x.astype(np.float64)
    close(c, np.maximum(wide, 0))
