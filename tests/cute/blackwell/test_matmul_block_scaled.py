"""`ops.quantize` and `ops.matmul` of block-scaled matrices, on the simulator."""

import numpy as np
import pytest

from basedsl import DSLTypeError
from basedsl_cute.hardware.targets import ENVIRONMENT_VARIABLE
from basedsl_cute.ops import BlockScaled, matmul, quantize
from basedsl_cute.ops.blackwell.quantize import scale_bytes
from tests.cute.blackwell.test_quantize import NUMPY, reference


def values(x, form):
    """The numbers that an array becomes in a format."""
    flat = x.reshape(-1, x.shape[-1]).astype(np.float32)
    codes, factors = reference(flat, form)
    dtype, *_, vector = NUMPY[form]
    if form == "nvfp4":
        scales = factors.view(NUMPY["mxfp8"][0]).astype(float)
    else:
        scales = np.exp2(factors.astype(float) - 127)
    return (codes.view(dtype).astype(float) * np.repeat(scales, vector, 1)).reshape(x.shape)


def numbers(*shape, seed=0, dtype=np.float16):
    return np.random.default_rng(seed).standard_normal(shape).astype(dtype)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("forms", "k"), [(("nvfp4", "nvfp4"), 96), (("mxfp4", "mxfp8"), 128), (("mxfp8",) * 2, 64)]
)
def test_batches_with_every_keyword(forms, k):
    x, w = numbers(2, 9, k), numbers(2, 72, k, seed=1, dtype=np.float32)
    bias, residual = numbers(72, seed=2), numbers(2, 9, 72, seed=3)
    out = np.full((2, 9, 72), np.nan, np.float32)
    y = matmul(
        quantize(x, forms[0]), quantize(w, forms[1]).T, alpha=0.5, bias=bias, activation="relu",
        residual=residual, out=out,
    )  # fmt: skip
    assert y is out
    exact = np.einsum("lmk,lnk->lmn", values(x, forms[0]), values(w, forms[1]))
    wanted = np.maximum(exact * 0.5 + bias, 0) + residual
    np.testing.assert_allclose(y, wanted, rtol=1e-5, atol=1e-5 * np.abs(wanted).max())


@pytest.mark.slow
def test_a_result_is_the_next_operand():
    x, w = numbers(9, 64), numbers(128, 64, seed=1)
    y = matmul(quantize(x, "mxfp8"), quantize(w, "mxfp8").T, activation="silu", out_format="nvfp4")
    assert isinstance(y, BlockScaled) and y.shape == (9, 128) and y.form == "nvfp4"
    eye = 6 * np.eye(128, dtype=np.float32)  # with factors of 1
    exact = values(x, "mxfp8") @ values(w, "mxfp8").T
    wanted = values(exact / (1 + np.exp(-exact)), "nvfp4")
    got = matmul(y, quantize(eye, "nvfp4").T, alpha=1 / 6)
    # A result near the middle of two numbers may be rounded to the other one.
    assert np.mean(np.isclose(got, wanted, rtol=1e-5)) > 0.99
    np.testing.assert_allclose(got, wanted, rtol=0.5, atol=0.3)


def test_what_does_not_fit_is_an_error(monkeypatch):
    def zeros(rows, k, form="nvfp4"):
        width = k // (1 if form.startswith("mxfp8") else 2)
        factors = np.zeros(scale_bytes(rows, k, form), np.uint8)
        return BlockScaled(np.zeros((rows, width), np.uint8), factors, form)

    x, w = zeros(8, 64), zeros(16, 64)
    for make, error in (
        (lambda: quantize(np.ones((2, 40), np.float16), "nvfp4"), "nvfp4 has no array of"),
        (lambda: quantize(np.ones((0, 64), np.float16), "nvfp4"), "takes no empty array"),
        (lambda: quantize(np.ones((2, 64), np.int32), "nvfp4"), "does not take Int32"),
        (lambda: quantize(np.ones((2, 64), np.float32), "int4"), "'int4' is no format"),
        (lambda: BlockScaled(w.elements, x.factors[:-1], "nvfp4"), "factors has 511 bytes"),
        (lambda: matmul(x, w), "b is not transposed"),
        (lambda: matmul(x, w.elements.T), "b is an ndarray, and the other operand is block"),
        (lambda: matmul(x, zeros(16, 128).T), "does not fit b of"),
        (lambda: matmul(x, zeros(24, 64).T, out_format="mxfp4"), "must be multiples of 32"),
        (lambda: matmul(zeros(8, 96, "mxfp8"), zeros(8, 96, "mxfp4").T), "is a multiple of 128"),
        (lambda: matmul(w.elements, w.elements, out_format="nvfp4"), "is for block-scaled"),
        (lambda: matmul(x, w.T, config=3), "no Config of ops.blackwell"),
    ):
        with pytest.raises(DSLTypeError, match=error):
            make()
    monkeypatch.setenv(ENVIRONMENT_VARIABLE, "sm_90a")
    with pytest.raises(DSLTypeError, match="sm_90a has no tcgen05"):
        matmul(x, w.T)


@pytest.mark.slow
def test_tensors_of_pytorch():
    torch = pytest.importorskip("torch")
    x, w = torch.from_numpy(numbers(9, 64)), torch.from_numpy(numbers(24, 64, seed=1))
    y = matmul(quantize(x, "nvfp4"), quantize(w, "nvfp4").T, out_dtype=torch.bfloat16)
    wanted = values(x.numpy(), "nvfp4") @ values(w.numpy(), "nvfp4").T
    np.testing.assert_allclose(y.float().numpy(), wanted, rtol=1e-2, atol=1e-2)
