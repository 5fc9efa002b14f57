"""Random operands of a product, in any order of modes, and the product in float64."""

import ml_dtypes
import numpy as np


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


def close(c, exact, bits=None):
    """Assert that C is `exact` to the precision of its type, or to `bits` of the sums' operands."""
    if np.dtype(c.dtype).kind in "iu":
        np.testing.assert_array_equal(c, exact)
        return
    epsilon = float(ml_dtypes.finfo(c.dtype).eps)
    loose = 2.0**-bits * 8 if bits else 1e-3
    np.testing.assert_allclose(c.astype(np.float64), exact, rtol=epsilon, atol=loose)
