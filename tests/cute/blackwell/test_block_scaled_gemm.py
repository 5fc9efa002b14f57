"""GEMMs with scale factors from TMA to the accumulators, against float64; PTX through ptxas."""

import ml_dtypes
import numpy as np
import pytest

import basedsl_cute as cute
from basedsl_cute.lowering.ptx import ptxas
from basedsl_cute.runtime import from_dlpack
from tests.cute.blackwell.block_scaled_gemm import BlockScaledGemm

FP4, E4M3, E5M2 = cute.Float4E2M1FN, cute.Float8E4M3FN, cute.Float8E5M2
E2M3, UE8M0 = cute.Float6E2M3FN, cute.Float8E8M0FNU
NUMPY = {
    FP4: ml_dtypes.float4_e2m1fn, E4M3: ml_dtypes.float8_e4m3fn, E5M2: ml_dtypes.float8_e5m2,
    E2M3: ml_dtypes.float6_e2m3fn, UE8M0: ml_dtypes.float8_e8m0fnu,
}  # fmt: skip
CASES = {
    "nvfp4": (BlockScaledGemm(FP4, FP4, E4M3, 16, (128, 128, 256)), (256, 128, 512)),
    "nvfp4 by fields": (
        BlockScaledGemm(FP4, FP4, E4M3, 16, (128, 128, 256), by_fields=True), (128, 128, 256),
    ),
    "mxfp4": (BlockScaledGemm(FP4, FP4, UE8M0, 32, (128, 128, 256)), (128, 256, 512)),
    "mxfp8": (BlockScaledGemm(E4M3, E5M2, UE8M0, 32, (128, 128, 128)), (128, 128, 384)),
    "mxfp8 x mxfp4": (BlockScaledGemm(E4M3, FP4, UE8M0, 32, (128, 128, 128)), (128, 128, 256)),
    "multicast": (BlockScaledGemm(FP4, FP4, E4M3, 16, (128, 128, 256), (2, 2)), (256, 256, 512)),
    "a pair": (
        BlockScaledGemm(FP4, FP4, E4M3, 16, (256, 128, 256), (2, 1), True), (256, 128, 768),
    ),
    "a pair, mxfp8": (
        BlockScaledGemm(E5M2, E4M3, UE8M0, 32, (256, 128, 128), (2, 1), True), (512, 128, 256),
    ),
}  # fmt: skip


def aligned(x, to=128):
    """A copy whose address is a multiple of `to` bytes."""
    store = np.empty(x.nbytes + to, np.uint8)
    skip = -store.ctypes.data % to
    out = store[skip : skip + x.nbytes].view(x.dtype).reshape(x.shape)
    out[...] = x
    return out


def packed(codes):
    return codes[:, ::2] | codes[:, 1::2] << 4


def operand(rng, dtype, rows, k):
    bits = dtype.width
    codes = rng.integers(0, 1 << bits, (rows, k), np.uint8)
    values = codes.view(NUMPY[dtype]).astype(float)
    bad = ~np.isfinite(values)
    codes[bad], values[bad] = 0, 0
    return values, packed(codes) if bits == 4 else codes


def factors(rng, dtype, rows, k, vector):
    """Factors (rows, k / vector), and their bytes in chunks of 128 rows by 4 factors."""
    low, high = (120, 135) if dtype is UE8M0 else (1, 0x7F)
    codes = rng.integers(low, high, (rows, k // vector), np.uint8)
    chunks = codes.reshape(rows // 128, 4, 32, -1, 4).transpose(0, 3, 2, 1, 4)
    return codes.view(NUMPY[dtype]).astype(float), np.ascontiguousarray(chunks).ravel()


def arguments(gemm, mnk):
    m, n, k = mnk
    rng = np.random.default_rng(0)
    a, raw_a = operand(rng, gemm.a_dtype, m, k)
    b, raw_b = operand(rng, gemm.b_dtype, n, k)
    fa, raw_fa = factors(rng, gemm.sf_dtype, m, k, gemm.vector)
    fb, raw_fb = factors(rng, gemm.sf_dtype, n, k, gemm.vector)
    c = np.full((m, n), np.nan, np.float32)
    exact = (a * np.repeat(fa, gemm.vector, 1)) @ (b * np.repeat(fb, gemm.vector, 1)).T
    arrays = [aligned(x) for x in (raw_a, raw_b, raw_fa, raw_fb, c)]
    return [from_dlpack(x, assumed_align=32) for x in arrays], arrays, exact


@pytest.mark.parametrize("name", CASES)
def test_against_float64(name):
    gemm, mnk = CASES[name]
    tensors, arrays, exact = arguments(gemm, mnk)
    cute.compile(gemm, *tensors, options="--arch sim")(*tensors)
    np.testing.assert_allclose(arrays[-1], exact, rtol=1e-5, atol=1e-5 * np.abs(exact).max())


@pytest.mark.skipif(ptxas.find_ptxas() is None, reason="there is no ptxas")
@pytest.mark.parametrize("arch", ["sm_100a", "sm_103a"])
@pytest.mark.parametrize("name", ["nvfp4", "mxfp4", "mxfp8 x mxfp4", "a pair"])
def test_ptxas_takes_it(name, arch):
    gemm, mnk = CASES[name]
    tensors, *_ = arguments(gemm, mnk)
    compiled = cute.compile(gemm, *tensors, options=f"--arch {arch}")
    assert ".block_scale" in compiled.stages.text("ptx")
    assert compiled.__cubin__
