"""Quantisation to mxfp8, mxfp4 and nvfp4 against NumPy; and through the block-scaled GEMM."""

import ml_dtypes
import numpy as np
import pytest

import basedsl_cute as cute
from basedsl import DSLTypeError
from basedsl_cute.lowering.ptx import ptxas
from basedsl_cute.ops.blackwell.quantize import FORMATS, quantize, scale_bytes
from basedsl_cute.runtime import from_dlpack
from tests.cute.blackwell.test_block_scaled_gemm import aligned

# Elements, their largest magnitude, the exponent of that, factors of a vector, and elements of one.
NUMPY = {
    "mxfp8": (ml_dtypes.float8_e4m3fn, 448.0, 8, 32),
    "mxfp8_e5m2": (ml_dtypes.float8_e5m2, 57344.0, 15, 32),
    "mxfp4": (ml_dtypes.float4_e2m1fn, 6.0, 2, 32),
    "nvfp4": (ml_dtypes.float4_e2m1fn, 6.0, 2, 16),
}


def reference(x, form):
    """Codes of the elements (M, K), and of the factors (M, K / vector)."""
    dtype, largest, exponent, vector = NUMPY[form]
    parts = x.astype(np.float32).reshape(len(x), -1, vector)
    top = np.abs(parts).max(2)
    if form == "nvfp4":
        factors = (top / np.float32(6)).astype(ml_dtypes.float8_e4m3fn)
        exact = factors.astype(np.float32)
        inverse = np.where(exact > 0, np.float32(1) / np.where(exact > 0, exact, 1), 0)
    else:
        with np.errstate(divide="ignore"):
            power = np.floor(np.log2(top)) - exponent
        power = np.clip(power, -127, 126)
        factors = (power + 127).astype(np.uint8)
        inverse = np.exp2(-power)
    scaled = np.clip(parts * inverse[..., None].astype(np.float32), -largest, largest)
    codes = scaled.astype(np.float32).astype(dtype).view(np.uint8).reshape(x.shape)
    return codes, factors.view(np.uint8)


def in_chunks(factors, total, rest=255):
    """Factors (M, groups) in chunks of 128 rows by 4, as tcgen05.cp takes them, and `rest`."""
    groups = factors.shape[1]
    out = np.full(total, rest, np.uint8)
    width = -(-groups // 4)
    for (r, g), value in np.ndenumerate(factors):
        chunk = r // 128 * width + g // 4
        out[chunk * 512 + r % 32 * 16 + r % 128 // 32 * 4 + g % 4] = value
    return out


def compile_quantize(form, kind, shape, target):
    m, k = shape
    rng = np.random.default_rng(0)
    x = (rng.standard_normal(shape) * np.exp2(rng.integers(-6, 7, (m, 1)))).astype(kind)
    x[1] = 0
    packed = 2 if FORMATS[form].element.width == 4 else 1
    arrays = [aligned(x), np.zeros((m, k // packed), np.uint8)]
    arrays.append(np.full(scale_bytes(m, k, form), 255, np.uint8))
    tensors = [from_dlpack(a, assumed_align=16) for a in arrays]
    compiled = cute.compile(quantize, *tensors, form, options=f"--arch {target}")
    return compiled, tensors, arrays


@pytest.mark.parametrize("form", FORMATS)
@pytest.mark.parametrize("kind", [np.float32, np.float16])
def test_against_numpy(form, kind):
    compiled, tensors, (x, q, scales) = compile_quantize(form, kind, (133, 192), "sim")
    compiled(*tensors)
    codes, factors = reference(x, form)
    if FORMATS[form].element.width == 4:
        codes = codes & 15
        codes = codes[:, ::2] | codes[:, 1::2] << 4
    np.testing.assert_array_equal(scales, in_chunks(factors, len(scales), 0))
    np.testing.assert_array_equal(q, codes)


@pytest.mark.skipif(ptxas.find_ptxas() is None, reason="there is no ptxas")
@pytest.mark.parametrize("form", FORMATS)
def test_ptxas_takes_it(form):
    compiled, *_ = compile_quantize(form, np.float16, (128, 128), "sm_100a")
    assert compiled.__cubin__


def test_a_format_that_there_is_not():
    x = from_dlpack(np.zeros((128, 64), np.float32))
    q = from_dlpack(np.zeros((128, 64), np.uint8))
    with pytest.raises(DSLTypeError, match="'int4' is no format: mxfp8"):
        cute.compile(quantize, x, q, q, "int4", options="--arch sim")
