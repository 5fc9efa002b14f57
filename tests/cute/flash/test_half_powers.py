"""Powers of two in half precision, as weights of 8 bits, against those that are exact."""

from __future__ import annotations

import numpy as np
import pytest

import basedsl_cute as cute
from basedsl_cute import arch
from basedsl_cute.ops.flash.half_powers import (
    narrow_in_halves,
    powers_by_a_line,
    powers_in_halves,
)

ml_dtypes = pytest.importorskip("ml_dtypes")
FLOAT8 = ml_dtypes.float8_e4m3fn
EACH, THREADS = 8, 64


@cute.kernel
def kernel(x: cute.Tensor, out: cute.Tensor, by: cute.Constexpr):
    row = arch.block_idx()[0] * THREADS + arch.thread_idx()[0]
    exponents = cute.make_rmem_tensor((EACH,), cute.Float32)
    weights = cute.make_rmem_tensor((EACH,), cute.Float8E4M3FN)
    for i in cute.range_constexpr(EACH):
        exponents[i] = x[row, i]
    narrow_in_halves(exponents.load(), weights, by)
    for i in cute.range_constexpr(EACH):
        out[row, i] = weights[i]


@cute.jit
def powers(x: cute.Tensor, out: cute.Tensor, by: cute.Constexpr):
    kernel(x, out, by).launch(grid=(x.shape[0] // THREADS, 1, 1), block=(THREADS, 1, 1))


def made(exponents, by=powers_in_halves):
    x = np.float32(exponents).reshape(-1, EACH)
    out = np.full(x.shape, 1.0, FLOAT8)
    powers(x, out, by)
    return np.float64(out).reshape(-1)


@pytest.mark.parametrize(
    ("by", "largest", "mean", "share"),
    [(powers_in_halves, 0.078, 0.002, 1.03), (powers_by_a_line, 0.09, 0.005, 1.24)],
)
def test_errors_are_little_more_than_those_of_8_bits(by, largest, mean, share):
    x = np.linspace(-6.0, 8.0, 64 * THREADS * EACH)
    exact = np.exp2(np.float64(np.float32(x)))
    errors, rounded = made(x, by) / exact - 1.0, np.float64(exact.astype(FLOAT8)) / exact - 1.0
    assert abs(errors).max() < largest  # those of 8 bits are 0.0625
    assert abs(errors.mean()) < mean
    assert np.sqrt((errors**2).mean()) < share * np.sqrt((rounded**2).mean())


@pytest.mark.parametrize(("by", "error"), [(powers_in_halves, 0.0155), (powers_by_a_line, 0.06)])
def test_small_powers_are_rounded_as_8_bits_are(by, error):
    x = np.linspace(-15.0, -6.0, 16 * THREADS * EACH)
    exact = np.exp2(np.float64(np.float32(x)))
    found = made(x, by)
    assert abs(found - exact).max() < 2.0**-10 + error * 2.0**-6
    assert not found[x < -10.1].any()
    assert (np.diff(found) >= 0).all()


@pytest.mark.parametrize("by", [powers_in_halves, powers_by_a_line])
def test_no_exponent_changes_its_neighbours_weight(by):
    x = np.zeros((THREADS, EACH))
    x[:, 1::4], x[:, 3::4] = -np.inf, np.nan
    x[0, 1], x[0, 3], x[1, 1], x[1, 3] = -1e30, -70000.0, -14.0, -13.0
    found = made(x, by).reshape(x.shape)
    np.testing.assert_array_equal(found[:, ::2], 1.0)
    assert not found[:, 1::2].any()
