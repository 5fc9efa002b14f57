"""A GEMM that converts one operand on its way to the MMA, against float64."""

import ml_dtypes
import numpy as np
import pytest

import basedsl_cute as cute
from basedsl_cute.runtime import from_dlpack
from tests.cute.blackwell.mixed_input_gemm import MixedInputGemm
from tests.cute.blackwell.whole_programs import check_resources, needs_ptxas, simulate

# Name -> (M, N, K), granularity of factors, blocks of an MMA, type of A, A is M-major.
CASES = {
    "converted": ((128, 64, 256), None, 1, np.int8, False),
    "scaled": ((200, 104, 384), (1, 128), 1, np.int8, False),
    "scaled by tiles of 16": ((128, 64, 256), (32, 16), 1, np.uint8, False),
    "m-major": ((128, 72, 192), (1, 64), 1, np.int8, True),
    "pairs": ((256, 64, 192), (1, 64), 2, np.int8, False),
    "pairs, m-major": ((256, 64, 128), None, 2, np.int8, True),
    "int4": ((128, 64, 256), (1, 128), 1, ml_dtypes.int4, False),
    "int4, pairs, m-major": ((256, 64, 128), None, 2, ml_dtypes.int4, True),
}


def arguments(name):
    (m, n, k), granularity, blocks, dtype, m_major = CASES[name]
    rng = np.random.default_rng(0)
    info = ml_dtypes.iinfo(dtype)
    a = rng.integers(int(info.min), int(info.max), (m, k), endpoint=True)
    down, across = granularity or (m, k)
    scale = rng.standard_normal((-(-k // across), -(-m // down))).astype(np.float32).T
    b = rng.standard_normal((n, k)).astype(ml_dtypes.bfloat16)
    c = np.full((m, n), np.nan, np.float32)
    factors = np.repeat(np.repeat(scale, down, 0)[:m], across, 1)[:, :k]
    if granularity is None:
        factors = np.float32(1)
    converted = (a.astype(np.float32) * factors).astype(ml_dtypes.bfloat16)
    exact = converted.astype(float) @ b.astype(float).T
    given = np.ascontiguousarray(a.T if m_major else a)
    packed = None
    if dtype is ml_dtypes.int4:
        given = (given[:, ::2] & 15 | (given[:, 1::2] & 15) << 4).astype(np.uint8)
        packed = cute.Int4
    else:
        given = given.astype(dtype)
    given = given.T if m_major else given
    arrays = [from_dlpack(x, assumed_align=16) for x in (given, scale, b, c)]
    return MixedInputGemm(granularity, blocks == 2, packed), arrays, c, exact


@pytest.mark.slow
@pytest.mark.parametrize("name", CASES)
def test_against_float64(name):
    kernel, tensors, c, exact = arguments(name)
    simulate(kernel, tensors)
    np.testing.assert_allclose(c, exact, rtol=1e-5, atol=1e-5 * np.abs(exact).max())


@pytest.mark.slow
@needs_ptxas
@pytest.mark.parametrize("name", ["scaled", "m-major", "pairs", "int4"])
def test_ptxas_takes_it(name):
    program, tensors, *_ = arguments(name)
    check_resources(program, tensors)
