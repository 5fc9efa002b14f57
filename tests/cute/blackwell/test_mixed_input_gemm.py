"""A GEMM that converts one operand on its way to tensor memory, against float64."""

import ml_dtypes
import numpy as np
import pytest

import basedsl_cute as cute
from basedsl_cute.lowering.ptx import ptxas
from basedsl_cute.runtime import from_dlpack
from tests.cute.blackwell.mixed_input_gemm import GRANULARITY, MixedInputGemm

SIZES = [(128, 64, 256), (200, 104, 384)]


def arguments(mnk):
    m, n, k = mnk
    rng = np.random.default_rng(0)
    a = rng.integers(-128, 128, (m, k)).astype(np.int8)
    scale = rng.standard_normal((m, k // GRANULARITY)).astype(np.float32)
    b = rng.standard_normal((n, k)).astype(ml_dtypes.bfloat16)
    c = np.full((m, n), np.nan, np.float32)
    converted = (a * np.repeat(scale, GRANULARITY, 1)).astype(ml_dtypes.bfloat16)
    exact = converted.astype(float) @ b.astype(float).T
    return [from_dlpack(x, assumed_align=16) for x in (a, scale, b, c)], c, exact


@pytest.mark.slow
@pytest.mark.parametrize("mnk", SIZES)
def test_against_float64(mnk):
    tensors, c, exact = arguments(mnk)
    cute.compile(MixedInputGemm(), *tensors, options="--arch sim")(*tensors)
    np.testing.assert_allclose(c, exact, rtol=1e-5, atol=1e-5 * np.abs(exact).max())


@pytest.mark.slow
@pytest.mark.skipif(ptxas.find_ptxas() is None, reason="there is no ptxas")
def test_ptxas_takes_it():
    tensors, *_ = arguments((128, 64, 256))
    compiled = cute.compile(MixedInputGemm(), *tensors, options="--arch sm_100a")
    (kernel,) = compiled.resources.values()
    assert (kernel.spill_stores, kernel.spill_loads) == (0, 0)
