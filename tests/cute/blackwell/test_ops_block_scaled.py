"""`ops.blackwell.block_scaled` against float64: formats, configurations, batches, epilogues, and
results that are quantised in the epilogue.
"""

import ml_dtypes
import numpy as np
import pytest

import basedsl_cute as cute
from basedsl import DSLTypeError
from basedsl.testing import slow_but
from basedsl_cute.lowering.ptx import ptxas
from basedsl_cute.ops.blackwell.block_scaled import SCALED, Config, block_scaled_gemm
from basedsl_cute.ops.blackwell.quantize import scale_bytes
from basedsl_cute.runtime import from_dlpack
from tests.cute.blackwell.test_block_scaled_gemm import aligned
from tests.cute.blackwell.test_quantize import NUMPY, in_chunks, reference

SMALL = {"stages": 2, "c_stages": 2}
SMALLER = 2.0**-23  # brings products into the range of factors
ONE = Config((128, 128), False, (1, 1), **SMALL)
CONFIGS = {
    "one block": ONE,
    "256 columns": Config((128, 256), False, (1, 1), acc_stages=1, **SMALL),
    "pair": Config((256, 128), True, (2, 1), **SMALL),
    "cluster": Config((256, 128), True, (4, 2), **SMALL),
    "static": Config((128, 128), False, (1, 2), dynamic=False, **SMALL),
}


def operand(rng, form, rows, k, batches):
    """Values (rows, K, batches), the bytes of their elements (rows, bytes, batches), and of their
    factors.
    """
    dtype, _, _, vector = NUMPY[form]
    is_narrow = dtype is ml_dtypes.float4_e2m1fn
    codes = rng.integers(0, 16 if is_narrow else 256, (batches, rows, k), np.uint8)
    values = codes.view(dtype).astype(float)
    bad = ~(np.abs(values) <= 448)
    codes[bad], values[bad] = 0, 0
    low, high = (0x28, 0x50) if form == "nvfp4" else (120, 135)
    factors = rng.integers(low, high, (batches, rows, k // vector), np.uint8)
    kind = ml_dtypes.float8_e4m3fn if form == "nvfp4" else ml_dtypes.float8_e8m0fnu
    values = values * np.repeat(factors.view(kind).astype(float), vector, 2)
    raw = codes[..., ::2] | codes[..., 1::2] << 4 if is_narrow else codes
    total = scale_bytes(rows, k, form)
    # 0 where K ends, NaN in the rows beyond: they reach no result.
    padding = np.full((batches, -(-rows // 128) * 128, -(-k // vector // 4) * 4), 255, np.uint8)
    padding[:, :, k // vector :] = 0
    padding[:, :rows, : k // vector] = factors
    chunks = np.concatenate([in_chunks(x, total) for x in padding])
    return values, aligned(np.ascontiguousarray(raw)), aligned(chunks)


def tensor(x):
    """(batches, rows, columns) as (rows, columns, batches) of dynamic extents."""
    out = from_dlpack(x.transpose(1, 2, 0), assumed_align=16)
    return out.mark_layout_dynamic(leading_dim=1)


def prepare(forms, mnkl):
    m, n, k, batches = mnkl
    rng = np.random.default_rng(0)
    x, raw_a, factors_a = operand(rng, forms[0], m, k, batches)
    y, raw_b, factors_b = operand(rng, forms[1], n, k, batches)
    arrays = (tensor(raw_a), from_dlpack(factors_a), tensor(raw_b), from_dlpack(factors_b))
    return arrays, np.einsum("lmk,lnk->lmn", x, y)


def check(cfg, forms, mnkl, dtype=np.float32):
    m, n, _, batches = mnkl
    arrays, exact = prepare(forms, mnkl)
    out = aligned(np.full((batches, m, n), np.nan, dtype))
    given = (*arrays, tensor(out), 4)
    cute.compile(block_scaled_gemm, *given, forms, cfg, options="--arch sim")(*given)
    tolerance = 1e-5 if dtype is np.float32 else 1e-3
    np.testing.assert_allclose(
        out.astype(float), exact, rtol=tolerance, atol=tolerance * np.abs(exact).max()
    )


@pytest.mark.parametrize(
    "forms",
    [
        ("nvfp4", "nvfp4"),
        pytest.param(("mxfp4", "mxfp4"), marks=pytest.mark.slow),
        pytest.param(("mxfp8", "mxfp8_e5m2"), marks=pytest.mark.slow),
        pytest.param(("mxfp8", "mxfp4"), marks=pytest.mark.slow),
        pytest.param(("mxfp4", "mxfp8_e5m2"), marks=pytest.mark.slow),
    ],
)
def test_each_format(forms):
    k = 384 if forms[0][:5] != forms[1][:5] else 352
    check(ONE, forms, (136, 72, k, 1))


@pytest.mark.slow
@pytest.mark.parametrize("name", CONFIGS)
def test_each_configuration(name):
    cfg = CONFIGS[name]
    m, n = (e * c for e, c in zip(cfg.block_tile, cfg.cluster, strict=True))
    check(cfg, ("nvfp4", "nvfp4"), (m + 8, n + 8, 288, 2), np.float16)


def quantised(values, form):
    """The bytes of elements and of factors (rows, vectors) of a Float32 matrix."""
    codes, factors = reference(values.astype(np.float32), form)
    if NUMPY[form][0] is ml_dtypes.float4_e2m1fn:
        codes = (codes & 15)[:, ::2] | (codes & 15)[:, 1::2] << 4
    return codes, factors


@pytest.mark.parametrize("out_form", slow_but(NUMPY, "nvfp4"))
def test_results_are_quantised_in_the_epilogue(out_form):
    forms, mnkl = ("mxfp8", "mxfp8"), (136, 160, 128, 2)
    m, n, _, batches = mnkl
    arrays, exact = prepare(forms, mnkl)
    width = n // 2 if NUMPY[out_form][0] is ml_dtypes.float4_e2m1fn else n
    out = aligned(np.full((batches, m, width), 255, np.uint8))
    total = scale_bytes(m, n, out_form)
    factors = aligned(np.full(batches * total, 255, np.uint8))

    @cute.jit
    def run(a, fa, b, fb, c, fc, alpha: cute.Float32):
        def relu(acc, alpha):
            return cute.where(acc < 0.0, 0.0, acc * alpha)

        block_scaled_gemm(
            a, fa, b, fb, c, cute.Int32(4), forms, ONE, relu, (alpha,), (fc,), out_form
        )

    given = (*arrays, tensor(out), from_dlpack(factors), SMALLER)
    cute.compile(run, *given, options="--arch sim")(*given)
    wanted = [quantised(np.maximum(x * SMALLER, 0), out_form) for x in exact]
    for batch, (codes, scales) in enumerate(wanted):
        padded = np.zeros((m, -(-scales.shape[1] // 4) * 4), np.uint8)
        padded[:, : scales.shape[1]] = scales
        np.testing.assert_array_equal(
            factors[batch * total : (batch + 1) * total], in_chunks(padded, total)
        )
        np.testing.assert_array_equal(out[batch], codes)


@pytest.mark.parametrize(
    ("cfg", "forms", "error"),
    [
        (Config((128, 64), False, (1, 1)), ("nvfp4", "nvfp4"), "a tile of 128 x 64 has no scale"),
        (Config((256, 256), True, (2, 1)), ("nvfp4", "nvfp4"), "takes 560 columns of tensor"),
        (ONE, ("nvfp4", "mxfp4"), "nvfp4 is not multiplied by mxfp4"),
        (ONE, ("nvfp4", "fp4"), "'fp4' is no format: mxfp8"),
    ],
)
def test_what_cannot_be_multiplied_is_an_error(cfg, forms, error):
    arrays, _ = prepare(("nvfp4", "nvfp4"), (128, 128, 64, 1))
    out = tensor(aligned(np.zeros((1, 128, 128), np.float32)))
    with pytest.raises(DSLTypeError, match=error):
        cute.compile(block_scaled_gemm, *arrays, out, 4, forms, cfg, options="--arch sim")


REGISTERS = 128  # of a thread at most: 7 warps could have 255


@pytest.mark.skipif(ptxas.find_ptxas() is None, reason="there is no ptxas")
@pytest.mark.slow
@pytest.mark.parametrize("arch", ["sm_100a", "sm_103a"])
@pytest.mark.parametrize("forms", [("nvfp4", "nvfp4"), ("mxfp8", "mxfp8"), ("mxfp8", "mxfp4")])
@pytest.mark.parametrize("cfg", SCALED, ids=str)
def test_ptxas_uses_no_local_memory(cfg, forms, arch):
    arrays, _ = prepare(forms, (256, 256, 256, 1))
    out = tensor(aligned(np.zeros((1, 256, 256), np.float16)))
    compiled = cute.compile(
        block_scaled_gemm, *arrays, out, 4, forms, cfg, options=f"--arch {arch}"
    )
    (kernel,) = compiled.resources.values()
    assert (kernel.spill_stores, kernel.spill_loads, kernel.local) == (0, 0, 0)
    assert kernel.registers <= REGISTERS


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(100))
def test_random_configurations(seed):
    rng = np.random.default_rng(seed)
    pair, wide = bool(rng.integers(2)), bool(rng.integers(2))
    cfg = Config(
        (256 if pair else 128, 256 if wide else 128),
        pair,
        (2 * int(rng.integers(1, 3)) if pair else int(rng.integers(1, 3)), int(rng.integers(1, 3))),
        int(rng.integers(2, 4)),
        1 if wide else int(rng.integers(1, 3)),
        int(rng.integers(1, 4)),
        bool(rng.integers(2)),
        int(rng.integers(1, 3)),
    )
    mx = ("mxfp8", "mxfp8_e5m2", "mxfp4")
    forms = ("nvfp4",) * 2 if rng.integers(2) else tuple(mx[i] for i in rng.integers(0, 3, 2))
    k = (32, 128)[len({x[:5] for x in forms}) - 1] * int(rng.integers(1, 8))
    mnk = (int(rng.integers(1, 400)), 8 * int(rng.integers(1, 40)), min(k, 512))
    check(cfg, forms, (*mnk, int(rng.integers(1, 3))))
