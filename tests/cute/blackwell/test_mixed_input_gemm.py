"""A GEMM that converts one operand on its way to the MMA, against float64."""

import ml_dtypes
import numpy as np
import pytest

import basedsl_cute as cute
from basedsl_cute.runtime import from_dlpack
from tests.cute.blackwell.mixed_input_gemm import MixedInputGemm
from tests.cute.blackwell.whole_programs import check_resources, needs_ptxas, simulate

# Name -> (M, N, K), granularity of factors, blocks of an MMA, type of A, A is M-major, cluster.
CASES = {
    "converted": ((128, 64, 256), None, 1, np.int8, False),
    "scaled": ((200, 104, 384), (1, 128), 1, np.int8, False),
    "scaled by tiles of 16": ((128, 64, 256), (32, 16), 1, np.uint8, False),
    "m-major": ((128, 72, 192), (1, 64), 1, np.int8, True),
    "pairs": ((256, 64, 192), (1, 64), 2, np.int8, False),
    "pairs, m-major": ((256, 64, 128), None, 2, np.int8, True),
    "a row of tiles": ((128, 128, 192), (1, 64), 1, np.int8, False, (1, 2)),
    "a column of tiles": ((256, 64, 192), None, 1, np.int8, True, (2, 1)),
    "pairs in a cluster": ((512, 100, 192), (1, 64), 2, np.int8, False, (4, 2)),
    "int4": ((128, 64, 256), (1, 128), 1, ml_dtypes.int4, False),
    "int4, pairs, m-major": ((256, 64, 128), None, 2, ml_dtypes.int4, True),
}


def arguments(mnk, granularity, blocks, dtype, m_major, cluster=None, seed=0):
    """The program, its tensors, the array that it writes, and what is exact."""
    m, n, k = mnk
    rng = np.random.default_rng(seed)
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
    return MixedInputGemm(granularity, blocks == 2, packed, cluster), arrays, c, exact


@pytest.mark.slow
@pytest.mark.parametrize("name", CASES)
def test_against_float64(name):
    check(*CASES[name])


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(100))
def test_random_configurations(seed):
    rng = np.random.default_rng(seed)
    blocks = int(rng.integers(1, 3))
    cluster = (blocks * int(rng.integers(1, 3)), int(rng.integers(1, 3)))
    choices = (None, (1, 64), (1, 128), (8, 32), (32, 16))
    # Blocks share a load of factors in parts of 128 bytes.
    granularity = choices[rng.integers(3 if cluster[1] > 1 else 5)]
    dtype = (np.int8, np.uint8, ml_dtypes.int4)[rng.integers(3)]
    mnk = tuple(step * int(rng.integers(1, most)) for step, most in ((128, 5), (8, 17), (64, 5)))
    check(mnk, granularity, blocks, dtype, bool(rng.integers(2)), cluster, seed)


def check(*case):
    kernel, tensors, c, exact = arguments(*case)
    simulate(kernel, tensors)
    np.testing.assert_allclose(c, exact, rtol=1e-5, atol=1e-5 * np.abs(exact).max())


@pytest.mark.slow
@needs_ptxas
@pytest.mark.parametrize("name", ["scaled", "m-major", "pairs", "int4"])
def test_ptxas_takes_it(name):
    program, tensors, *_ = arguments(*CASES[name])
    check_resources(program, tensors)
