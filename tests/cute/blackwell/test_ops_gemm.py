"""`ops.blackwell.gemm` against float64: configurations, types, majors, batches, epilogues."""

import ml_dtypes
import numpy as np
import pytest

import basedsl_cute as cute
from basedsl_cute.hardware.targets import ENVIRONMENT_VARIABLE
from basedsl_cute.lowering.ptx import ptxas
from basedsl_cute.ops import matmul
from basedsl_cute.ops.blackwell.gemm import Config, choose_config, gemm
from basedsl_cute.ops.gemm.kernel_selection import ProblemShape, TmaSupport, choose_kernel
from basedsl_cute.runtime import from_dlpack

SMALL = {"acc_stages": 2, "c_stages": 2, "stages": 3}
CONFIGS = {
    "pair": Config((256, 64), True, (2, 1), **SMALL),
    "one block": Config((128, 64), False, (1, 1), **SMALL),
    "64 rows": Config((64, 64), False, (1, 1), **SMALL),
    "pair of 64 rows": Config((128, 64), True, (2, 1), **SMALL),
    "cluster": Config((256, 32), True, (4, 2), **SMALL),
    "static": Config((128, 64), False, (2, 1), dynamic=False, **SMALL),
    "static pair, swizzled": Config((256, 64), True, (2, 1), dynamic=False, swizzle=2, **SMALL),
}
NUMPY = {
    cute.Float16: np.float16, cute.BFloat16: ml_dtypes.bfloat16, cute.Float32: np.float32,
    cute.Float8E4M3FN: ml_dtypes.float8_e4m3fn, cute.Float8E5M2: ml_dtypes.float8_e5m2,
    cute.Int8: np.int8, cute.Uint8: np.uint8, cute.Int32: np.int32,
}  # fmt: skip


def array(rng, dtype, rows, columns, batches, columns_first):
    """(rows, columns, batches), contiguous along the columns or the rows."""
    kind = NUMPY[dtype]
    shape = (batches, rows, columns) if columns_first else (batches, columns, rows)
    if np.issubdtype(kind, np.integer):
        x = rng.integers(-8 if kind is np.int8 else 0, 8, shape).astype(kind)
    else:
        x = rng.standard_normal(shape).astype(kind)
    if dtype is cute.Float32:  # what TFloat32 has
        x = (x.view(np.uint32) & np.uint32(0xFFFFE000)).view(np.float32)
    return x.transpose(1, 2, 0) if columns_first else x.transpose(2, 1, 0)


def tensor(x, dtype, columns_first):
    out = from_dlpack(x.view(np.uint8) if x.dtype.itemsize == 1 else x, assumed_align=16)
    out.element_type = dtype
    return out.mark_layout_dynamic(leading_dim=1 if columns_first else 0)


def prepare(cfg, mnkl, a=cute.Float16, b=None, c=cute.Float16, majors=(True, True, True)):
    m, n, k, batches = mnkl
    b = b or a
    rng = np.random.default_rng(0)
    x = array(rng, a, m, k, batches, majors[0])
    y = array(rng, b, n, k, batches, majors[1])
    z = array(rng, c, m, n, batches, majors[2])
    z[...] = 0 if c is cute.Int32 else np.nan
    tensors = [
        tensor(t, dtype, major)
        for t, dtype, major in zip((x, y, z), (a, b, c), majors, strict=True)
    ]
    return tensors, (x, y, z), np.einsum("mkl,nkl->mnl", x.astype(float), y.astype(float))


def check(cfg, mnkl, **kinds):
    tensors, (_, _, z), exact = prepare(cfg, mnkl, **kinds)
    cute.compile(gemm, *tensors, 4, cfg, options="--arch sim")(*tensors, 4)
    tolerance = 2e-2 if z.dtype == ml_dtypes.bfloat16 else 4e-3
    np.testing.assert_allclose(
        z.astype(float), exact, rtol=tolerance, atol=tolerance * np.abs(exact).max()
    )


@pytest.mark.parametrize("name", CONFIGS)
def test_each_configuration(name):
    cfg = CONFIGS[name]
    m, n = cfg.tile
    check(cfg, (m * max(1, cfg.cluster[0] // cfg.blocks) + 8, n * cfg.cluster[1] + 8, 72, 2))


@pytest.mark.parametrize(
    "kinds",
    [
        {"a": cute.BFloat16, "c": cute.Float32},
        {"a": cute.Float32, "c": cute.Float32},
        {"a": cute.Float8E4M3FN, "b": cute.Float8E5M2, "c": cute.BFloat16},
        {"a": cute.Int8, "c": cute.Int32},
        {"a": cute.Float16, "majors": (False, False, False)},
        {"a": cute.Float32, "c": cute.Float32, "majors": (False, False, True)},
    ],
)
def test_types_and_majors(kinds):
    check(CONFIGS["pair"], (264, 136, 160, 1), **kinds)


def test_an_epilogue_with_operands_of_each_shape():
    tensors, (_, _, z), exact = prepare(None, (136, 72, 64, 2))
    rng = np.random.default_rng(1)
    bias = rng.standard_normal(72).astype(np.float32)
    residual = rng.standard_normal((2, 136, 72)).astype(np.float16).transpose(1, 2, 0)

    @cute.jit
    def run(a, b, c, bias: cute.Tensor, residual: cute.Tensor, alpha: cute.Float32):
        def fused(acc, alpha, bias, residual):
            x = acc * alpha + bias
            return cute.where(x > 0.0, x, 0.0) + residual.to(cute.Float32)

        rows = cute.utils.epilogue.per_column(bias, c.shape)
        gemm(a, b, c, 4, CONFIGS["one block"], fused, (alpha, rows, residual))

    more = [from_dlpack(bias), from_dlpack(residual)]
    cute.compile(run, *tensors, *more, 0.5, options="--arch sim")(*tensors, *more, 0.5)
    wanted = np.maximum(exact * 0.5 + bias[None, :, None], 0) + residual.astype(float)
    np.testing.assert_allclose(z.astype(float), wanted, rtol=4e-3, atol=4e-3 * 16)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(100))
def test_random_configurations(seed):
    rng = np.random.default_rng(seed)
    pair = bool(rng.integers(2))
    m, n = int(rng.choice((128, 256) if pair else (64, 128))), 16 * int(rng.integers(2, 9))
    cfg = Config(
        (m, 64 if pair and m == 128 else n),
        pair,
        (2 * int(rng.integers(1, 3)) if pair else int(rng.integers(1, 3)), int(rng.integers(1, 3))),
        int(rng.integers(2, 5)),
        int(rng.integers(1, 3)),
        int(rng.integers(1, 4)),
        bool(rng.integers(2)),
        int(rng.integers(1, 3)),
    )
    extents = [8 * int(rng.integers(1, most)) for most in (70, 30, 20)]
    mnkl = (*extents, int(rng.integers(1, 3)))
    check(cfg, mnkl, majors=tuple(bool(x) for x in rng.integers(0, 2, 3)))


REGISTERS = 128  # of a thread at most: 7 warps could have 255


@pytest.mark.skipif(ptxas.find_ptxas() is None, reason="there is no ptxas")
@pytest.mark.parametrize("arch", ["sm_100a", "sm_103a"])
@pytest.mark.parametrize("tile", [(256, 256), (256, 128), (128, 128)])
def test_ptxas_uses_no_local_memory(tile, arch):
    pair = tile[0] == 256
    cfg = Config(tile, pair, (2, 1) if pair else (1, 1))
    tensors, *_ = prepare(cfg, (256, 256, 64, 1))
    compiled = cute.compile(gemm, *tensors, 4, cfg, options=f"--arch {arch}")
    (kernel,) = compiled.resources.values()
    assert (kernel.spill_stores, kernel.spill_loads, kernel.local) == (0, 0, 0)
    assert kernel.registers <= REGISTERS


def test_large_products_take_pairs_and_small_ones_single_blocks():
    assert choose_config(8192, 8192, 8192, 16).pair
    assert not choose_config(256, 256, 1024, 16).pair


def test_matmul_takes_a_configuration_of_blackwell(monkeypatch):
    monkeypatch.setenv(ENVIRONMENT_VARIABLE, "sim")
    rng = np.random.default_rng(2)
    a = rng.standard_normal((2, 136, 64)).astype(np.float16)
    b = rng.standard_normal((64, 72)).astype(np.float16)
    bias = rng.standard_normal(72).astype(np.float32)
    c = matmul(a, b, bias=bias, activation="relu", config=CONFIGS["one block"])
    wanted = np.maximum(a.astype(float) @ b.astype(float) + bias, 0)
    np.testing.assert_allclose(c.astype(float), wanted, rtol=4e-3, atol=0.05)


@pytest.mark.parametrize(
    ("target", "dtype", "stores", "kernel"),
    [
        ("sm_100a", cute.Float16, True, "blackwell"),
        ("sm_100f", cute.BFloat16, True, "blackwell"),
        ("sm_103a", cute.Float8E4M3FN, True, "blackwell"),
        ("sm_100a", cute.Int8, True, "blackwell"),
        ("sm_103a", cute.Int8, True, "warp-tma"),
        ("sm_100a", cute.Float16, False, "warp-tma"),
        ("sm_100", cute.Float16, True, "warp"),
        ("sm_120a", cute.Float16, True, "warp-tma"),
    ],
)
def test_matmul_takes_the_kernel_that_the_target_has(monkeypatch, target, dtype, stores, kernel):
    monkeypatch.setenv(ENVIRONMENT_VARIABLE, target)
    shape = ProblemShape(4096, 4096, 4096, 1, (True, True), False)
    tma = TmaSupport(True, True, stores)
    out = cute.Int32 if dtype is cute.Int8 else cute.Float16
    assert choose_kernel(dtype, dtype, out, shape, False, tma, None, 148)[0] == kernel
