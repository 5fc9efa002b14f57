"""The Hopper GEMM whose blocks share K: tiles, parts, borders, epilogues, what ptxas says of it."""

import itertools
import math
import random
from dataclasses import replace

import ml_dtypes
import numpy as np
import pytest

import basedsl_cute as cute
from basedsl.errors import DSLTypeError
from basedsl_cute.lowering.ptx import ptxas
from basedsl_cute.ops import matmul
from basedsl_cute.ops.gemm import kernel_selection
from basedsl_cute.ops.hopper import config, heuristics
from basedsl_cute.ops.hopper import gemm as hopper_gemm
from basedsl_cute.ops.hopper.config import HopperGemmKinds
from basedsl_cute.ops.hopper.split_k_gemm import Config, gemm
from basedsl_cute.ops.hopper.split_k_gemm import check_config as check_split
from basedsl_cute.utils import hopper_helpers as sm90
from basedsl_cute.utils.epilogue import per_column, per_row

# The shapes whose speed is promised: bench/goals.py
GEMM = [(8192,) * 3, (4096,) * 3, (2048,) * 3, (8192, 8192, 1024), (16384, 16384, 4096)]

SMALL = {"tile": (64, 32, 64), "stages": 3}
CASES = {
    "one block": ((64, 32, 192), {}),
    "two parts": ((64, 32, 192), {"split": 2}),
    "parts of unequal length": ((64, 32, 320), {"split": 3}),
    "parts without any of K": ((64, 32, 128), {"split": 4}),
    "a ring that wraps": ((64, 32, 640), {"split": 2, "stages": 2}),
    "ragged in M, N and K": ((72, 40, 200), {"split": 2}),
    "bands along N": ((136, 104, 72), {"swizzle": 2, "along_m": False}),
    "two consumers": ((136, 40, 136), {"tile": (128, 16, 64), "consumers": 2, "split": 2}),
    "rows of each consumer twice": ((136, 40, 72), {"tile": (128, 16, 64), "split": 2}),
    "swapped": ((5, 72, 136), {"tile": (64, 8, 64), "swap": True, "split": 2}),
    "swapped, a row": ((1, 72, 136), {"tile": (64, 8, 64), "swap": True, "split": 3}),
    "swapped, several tiles": ((40, 72, 72), {"swap": True}),
    "blocks that share B": ((136, 32, 328), {"sharing": 2, "stages": 2}),
    "swapped, blocks that share B": (
        (5, 200, 328),
        {"tile": (64, 8, 64), "swap": True, "sharing": 4},
    ),
    "swapped, steps of 128, the last one ragged": (
        (5, 72, 328),
        {"tile": (64, 8, 128), "stages": 2, "swap": True, "split": 2},
    ),
    "more sums than stages hold": ((64, 96, 64), {"tile": (64, 96, 64), "stages": 2}),
    "takes nothing over": ((64, 32, 64), {"overlap": False}),
}


def operands(shape, dtype=np.float16, transpose=(False, False, False), batch=(), out=None):
    """A, B and C of a product, C full of rubbish; where `transpose`d, mode 0 is contiguous."""
    m, n, k = shape
    rng = np.random.default_rng(1)

    def make(rows, columns, transposed):
        size = (*batch, columns, rows) if transposed else (*batch, rows, columns)
        integers = np.dtype(dtype).kind in "iu"
        x = rng.integers(-50, 50, size) if integers else rng.standard_normal(size)
        x = np.moveaxis(x.astype(dtype), 0, -1) if batch else x.astype(dtype)
        return np.swapaxes(x, 0, 1) if transposed else x

    a, b, c = (make(*x) for x in zip((m, n, m), (k, k, n), transpose, strict=True))
    c = c.astype(out or dtype, order="K")
    c.fill(77)
    return a, b, c


def product(a, b):
    return np.einsum("mk...,nk...->mn...", a.astype(np.float64), b.astype(np.float64))


def check(c, exact, tolerance=1e-3):
    epsilon = float(ml_dtypes.finfo(c.dtype).eps) if c.dtype.kind not in "iu" else 0
    np.testing.assert_allclose(c.astype(np.float64), exact, rtol=epsilon, atol=tolerance)


def compare(shape, options, vector=1, tolerance=1e-3, **kinds):
    a, b, c = operands(shape, **kinds)
    gemm(a, b, c, Config(**SMALL | options), None, (), vector)
    cute.synchronize()
    check(c, product(a, b), tolerance)


@pytest.mark.parametrize("case", CASES)
def test_against_numpy(hopper, case):
    compare(*CASES[case])


@pytest.mark.parametrize("swap", [False, True])
@pytest.mark.parametrize(
    "transpose",
    [(True, False, False), (False, True, False), (True, True, False), (False, False, True)],
)
def test_which_mode_is_contiguous(hopper, transpose, swap):
    compare((72, 40, 136), {"swap": swap, "split": 2}, transpose=transpose, vector=4)


@pytest.mark.parametrize("vector", [1, 2, 4, 8])
@pytest.mark.parametrize("swap", [False, True])
def test_how_much_of_c_is_written_at_once(hopper, swap, vector):
    compare((9, 5 * vector, 136), {"swap": swap, "split": 2}, vector)


@pytest.mark.parametrize("out", [np.float32, ml_dtypes.bfloat16, ml_dtypes.float8_e4m3fn])
def test_what_c_may_be(hopper, out):
    compare((9, 40, 136), {"split": 2}, 8, dtype=ml_dtypes.bfloat16, out=out)


def test_floats_of_8_bits(hopper):
    a, b, c = operands((9, 40, 320), ml_dtypes.float8_e4m3fn, out=np.float32)
    gemm(a, b, c, Config(tile=(64, 16, 128), stages=2, split=2, swap=True), None, (), 4)
    cute.synchronize()
    # Hopper adds products of 8-bit floats with 13 bits behind the point or so.
    check(c, product(a, b), 1e-3 * np.abs(product(np.abs(a), np.abs(b))).max())


def test_integers(hopper):
    compare((9, 40, 320), {"tile": (64, 32, 128), "split": 2}, dtype=np.int8, out=np.int32)


def test_float32_is_rounded_to_tf32(hopper):
    a, b, c = operands((9, 40, 80), np.float32)
    gemm(a, b, c, Config(tile=(64, 32, 32), stages=2, split=2))
    cute.synchronize()
    a, b = ((x.view(np.uint32) & 0xFFFFE000).view(np.float32) for x in (a, b))
    check(c, product(a, b))


@pytest.mark.parametrize("swap", [False, True])
def test_batches(hopper, swap):
    compare((9, 40, 136), {"swap": swap, "split": 2}, 8, batch=(3,))


def test_sums_are_added_in_the_order_of_k(hopper):
    """Large numbers that cancel: any other order leaves something else of the small ones."""
    values = np.array([1e4, 1.0, -1e4, 3.0], np.float32).repeat(64)
    a, b = np.zeros((64, 256), np.float16), np.zeros((32, 256), np.float16)
    a[:, ::64], b[:] = values[::64], 3000
    c = np.full((64, 32), np.nan, np.float32)
    for _ in range(3):
        gemm(a, b, c, Config(**SMALL | {"split": 4}))
        cute.synchronize()
        parts = (np.float32(x) * np.float32(3000) for x in values[::64])
        total = next(parts)
        for part in parts:
            total = np.float32(total + part)
        assert (c == total).all()


# Epilogues ---------------------------------------------------------------------------------------


def bias_relu(acc, bias):
    x = acc + bias.to(cute.Float32)
    return cute.where(x > 0.0, x, 0.0)


def scaled_residual(acc, scale, x, shift):
    return acc * scale + x.to(cute.Float32) + shift


@cute.jit
def linear(
    a: cute.Tensor, b: cute.Tensor, c: cute.Tensor, bias: cute.Tensor,
    cfg: cute.Constexpr, vector: cute.Constexpr,
):  # fmt: skip
    gemm(a, b, c, cfg, bias_relu, (per_column(bias, c.shape),), vector)


@cute.jit
def residual(
    a: cute.Tensor, b: cute.Tensor, c: cute.Tensor, scale: cute.Tensor, x: cute.Tensor, shift,
    cfg: cute.Constexpr,
):  # fmt: skip
    gemm(a, b, c, cfg, scaled_residual, (per_row(scale, c.shape), x, shift))


@pytest.mark.parametrize("swap", [False, True])
@pytest.mark.parametrize("vector", [1, 8])
def test_an_epilogue_of_the_whole_sum(hopper, swap, vector):
    """A ReLU of parts of the sum would be another number."""
    a, b, c = operands((9, 40, 320))
    bias = np.linspace(-5, 5, 40, dtype=np.float16)
    linear(a, b, c, bias, Config(**SMALL | {"split": 4, "swap": swap}), vector)
    cute.synchronize()
    check(c, np.maximum(product(a, b) + bias, 0), 2e-3)


@pytest.mark.parametrize("swap", [False, True])
@pytest.mark.parametrize("transposed", [False, True])
def test_operands_of_every_kind(hopper, swap, transposed):
    a, b, c = operands((9, 40, 136), transpose=(False, False, transposed), out=np.float32)
    scale = np.linspace(1, 2, 9, dtype=np.float32)
    x = np.random.default_rng(2).standard_normal((9, 40)).astype(np.float16)
    residual(a, b, c, scale, x, 3.0, Config(**SMALL | {"split": 2, "swap": swap}))
    cute.synchronize()
    check(c, product(a, b) * scale[:, None] + x + 3)


# `matmul` ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("swap", [False, True])
@pytest.mark.parametrize("columns", [41, 40])
def test_a_linear_layer(sim, swap, columns):
    """Rows of C that begin anywhere, too, which TMA could not write."""
    rng = np.random.default_rng(3)
    x, weight, bias = (
        rng.standard_normal(s).astype(np.float16) for s in ((2, 3, 72), (columns, 72), (columns,))
    )
    cfg = Config(**SMALL | {"split": 2, "swap": swap})
    y = matmul(x, weight.T, bias=bias, activation="relu", config=cfg)
    exact = np.maximum(x.astype(np.float64) @ weight.T.astype(np.float64) + bias, 0)
    check(y, exact, 2e-3)


def test_operands_that_tma_cannot_load(sim):
    a, b = np.zeros((8, 9), np.float16), np.zeros((9, 8), np.float16)
    with pytest.raises(DSLTypeError, match="multiples of 16 bytes"):
        matmul(a, b, config=Config(**SMALL))


# Which is chosen ---------------------------------------------------------------------------------

BITS = {cute.Float8E4M3FN: 8, cute.Float16: 16, cute.TFloat32: 32}


def chosen_kernel(m, n, k, batches=1):
    """The choice by rules for Float16 on an H200."""
    return heuristics.choose_by_rules(heuristics.Problem(m, n, k, batches, 16, 16, 132, True))


@pytest.mark.parametrize("dtype", BITS)
@pytest.mark.parametrize("out", [cute.Float16, cute.Float32])
def test_what_is_chosen_fits(dtype, out):
    extents = (1, 8, 24, 64, 200, 1000, 4096)
    seen = set()
    for m, n, k in itertools.product(extents, extents, (8, 512, 4096, 65536)):
        for swap in (m < n, m >= n):
            problem = heuristics.Problem(m, n, k, 1, BITS[dtype], out.width, 132, False)
            kernel, cfg = heuristics.choose_hopper_kernel(problem)
            major = sm90.LayoutEnum.COL_MAJOR if swap else sm90.LayoutEnum.ROW_MAJOR
            c = out
            if kernel == "hopper parts":
                cfg.check_parts(k)
                cfg, c = cfg.gemm, cute.Float32
            check = hopper_gemm.check_config if isinstance(cfg, hopper_gemm.Config) else check_split
            check(HopperGemmKinds(dtype, dtype, c, None, None, major), cfg)
            assert cfg.tile[2] * BITS[dtype] == 1024
            seen.add(cfg)
    assert len(seen) > 20


OUT = {8: cute.Float8E4M3FN, 16: cute.Float16, 32: cute.Float32}
LENGTHS = (1, 8, 32, 64, 100, 128, 192, 256, 512, 640, 1000, 1536, 2048, 2240, 4096, 8192, 21504)


def test_what_is_chosen_for_random_products_fits():
    draw = random.Random(0)
    for _ in range(4000):
        m, n, k = draw.choice(LENGTHS), draw.choice(LENGTHS), draw.choice(LENGTHS[3:])
        dtype, out = draw.choice(list(BITS)), draw.choice(list(OUT))
        turned, *flags = draw.choices((False, True), k=4)
        processors, batches = draw.choice((114, 132)), draw.choice((1, 1, 64))
        problem = heuristics.Problem(
            m, n, k, batches, BITS[dtype], out, processors, flags[0], turned, *flags[1:]
        )
        kernel, cfg = heuristics.choose_hopper_kernel(problem)
        major = sm90.LayoutEnum.COL_MAJOR if turned else sm90.LayoutEnum.ROW_MAJOR
        kinds = HopperGemmKinds(dtype, dtype, OUT[out], None, None, major)
        if kernel == "hopper parts":
            cfg.check_parts(k)
            cfg, kinds = cfg.gemm, replace(kinds, c=cute.Float32, major_c=sm90.LayoutEnum.ROW_MAJOR)
        if isinstance(cfg, hopper_gemm.Config):
            hopper_gemm.check_config(kinds, replace(cfg, swap=False))
        else:
            check_split(kinds, cfg)


def test_few_rows_are_loaded_by_blocks_for_each_other():
    def chosen(m, n, k):
        return chosen_kernel(m, n, k)[1]

    found = chosen(16, 5120, 5120)
    assert (found.tile, found.sharing, found.blocks_per_sm) == ((64, 16, 64), 4, 2)
    assert chosen(5120, 16, 5120) == replace(found, swap=False)
    assert chosen(96, 7168, 8192).sharing == 4
    found = chosen(128, 128, 65536)
    assert (found.parts, found.gemm.sharing) == (64, 2)


def test_a_column_major_result_is_computed_the_same_way(monkeypatch):
    monkeypatch.setenv("CUTE_DSL_ARCH", "sm_90a")
    by_tma = kernel_selection.TmaSupport(loads=True, wgmma=True, stores=True)

    def chosen(m, n, k, is_turned):
        extents = (n, m) if is_turned else (m, n)  # as kernels of mma.sync walk it
        shape = kernel_selection.ProblemShape(*extents, k, 1, (True, True), is_turned)
        f16 = cute.Float16
        return kernel_selection.choose_kernel(f16, f16, f16, shape, False, by_tma, None, 132)

    assert chosen(16, 4096, 4096, True) == chosen(16, 4096, 4096, False)
    # What sums parts multiplies C^T = B A^T itself.
    wide, tall = chosen(64, 256, 65536, False), chosen(256, 64, 65536, True)
    assert wide == tall and wide[0] == "hopper parts"


def test_large_products_are_not_split():
    for m, n, k in GEMM:
        chosen = chosen_kernel(m, n, k)
        assert chosen == ("hopper", hopper_gemm.choose_config(m, n, k, 16, 132))


@pytest.mark.parametrize(
    "shape, tile, split, swap",
    [
        ((1, 4096, 4096), (64, 8), 2, True),
        ((16, 4096, 4096), (64, 16), 2, True),
        ((4096, 16, 4096), (64, 16), 2, False),
        ((128, 4096, 14336), (64, 128), 2, True),
        ((16, 14336, 4096), (128, 16), 1, True),
    ],
)
def test_what_is_chosen_is_what_was_fast(shape, tile, split, swap):
    """On an H200 of 132 multiprocessors: bench/results."""
    kernel, cfg = chosen_kernel(*shape)
    assert (kernel, cfg.tile[:2], cfg.split, cfg.swap) == ("hopper split", tile, split, swap)


@pytest.mark.parametrize(
    "shape, along_n, tile, cluster",
    [
        ((512, 1536, 3072), True, (64, 128), (4, 1)),  # 10.1 us, and 10.7 with 128 x 64
        ((512, 1536, 4096), False, (64, 128), (4, 1)),  # 12.8, and 13.6 with 64 x 96
        ((512, 1120, 2560), True, (64, 96), (4, 1)),  # 7.6, and 8.3 in pairs
        ((4096, 384, 1536), False, (128, 96), (1, 2)),  # 8.9, and 10.0 with (2, 1)
        ((256, 4096, 4096), False, (64, 128), (2, 1)),  # 16.2, and 19.3 with 128 x 64
        ((768, 2048, 8192), True, (192, 64), (2, 1)),  # 38.3, and 40.6 with (1, 2)
        ((1536, 1536, 8192), False, (192, 96), (1, 2)),  # 52.8, and 53.6 with 128 x 144
        ((256, 21504, 7168), False, (256, 176), (1, 2)),  # 114.9, and 122.3 with 128 x 192
        ((2048, 2240, 2560), False, (256, 144), (2, 1)),  # 34.1, and 34.9 with 128 x 144
        ((128, 50304, 1536), False, (128, 128), (1, 1)),  # 44.7, and 48.7 without persistence
        ((1000, 1000, 1000), False, (128, 72), (4, 2)),  # 7.4, and 7.6 with 64 x 128
        ((4096, 2560, 10240), True, (256, 160), (1, 2)),  # 269, and 284 with 128 x 160
        ((64, 14336, 4096), True, (64, 128), (1, 8)),  # 30.0, and 30.9 without persistence
        ((192, 6144, 2048), False, (192, 48), (1, 1)),  # 11.0, and 13.2 where two share K
        ((512, 1696, 5120), False, (64, 128), (4, 1)),  # 15.9, and 19.6 in pairs
        ((1024, 768, 2688), False, (64, 96), (1, 2)),  # 8.8, and 9.0 with 64 x 128 in fours
    ],
)
def test_what_was_measured_to_be_fast_is_chosen(shape, along_n, tile, cluster):
    """The microseconds are an H200's."""
    problem = heuristics.Problem(*shape, 1, 16, 16, 132, True, balances=not along_n)
    kernel, cfg = heuristics.choose_by_rules(problem)
    assert (kernel, cfg.tile[:2], cfg.cluster) == ("hopper", tile, cluster)
    kinds = HopperGemmKinds(cute.Float16, cute.Float16, cute.Float16, None, None, None)
    hopper_gemm.check_config(kinds, cfg)
    assert cfg in heuristics.ranked_hopper_kernels(problem)


@pytest.mark.parametrize(
    "shape, tile, cluster",
    [
        ((1152, 1536, 2048), (128, 128), (1, 2)),  # 12.5, and 13.7 with (2, 1)
        ((1344, 2048, 8192), (192, 128), (1, 2)),  # 64.4, and 67.6 with 128 x 192
        ((768, 1536, 1024), (64, 192), (2, 1)),  # 6.4, and 7.8 with 64 x 160
        ((2560, 2560, 1024), (128, 128), (2, 1)),  # 22.8, and 25.6 with 64 x 160
        ((2560, 2560, 512), (128, 128), (2, 1)),  # 13.0, and 14.8 with 64 x 160
    ],
)
def test_what_is_chosen_for_gradients_of_weights(shape, tile, cluster):
    """K of neither operand is contiguous. The microseconds are an H200's."""
    problem = heuristics.Problem(*shape, 1, 16, 16, 132, True, False, False, False)
    kernel, cfg = heuristics.choose_by_rules(problem)
    assert (kernel, cfg.tile[:2], cfg.cluster) == ("hopper", tile, cluster)


BETWEEN = [hopper_gemm.Config(**c | {"tile": (*c["tile"], 64)}) for c in config.EXTRA_CANDIDATES]


@pytest.mark.parametrize("cfg", BETWEEN, ids=str)
def test_tiles_in_between(hopper, cfg):
    a, b, c = operands((264, 200, 136))
    hopper_gemm.gemm(a, b, c, 2, cfg)
    cute.synchronize()
    check(c, product(a, b))


@pytest.mark.skipif(ptxas.find_ptxas() is None, reason="no ptxas here")
@pytest.mark.parametrize("cfg", BETWEEN, ids=str)
def test_tiles_in_between_stay_in_registers(monkeypatch, cfg):
    monkeypatch.setenv("CUTE_DSL_ARCH", "sm_90a")
    a = b = c = np.zeros((256, 256), np.float16)
    ptx = cute.compile(hopper_gemm.gemm, a, b, c, 132, cfg).stages.text("ptx")
    made = ptxas.start(ptx, "sm_90a").finish()
    assert made.warnings == ()
    (kernel,) = made.kernels.values()
    assert (kernel.spill_stores, kernel.spill_loads, kernel.stack) == (0, 0, 0)


@pytest.mark.parametrize(
    "shape, tile",
    [((1024, 3072, 8192), (128, 192)), ((1536, 1536, 8192), (192, 96)), ((4096,) * 3, (128, 256))],
)
def test_tiles_that_leave_few_multiprocessors_out(shape, tile):
    kernel, cfg = chosen_kernel(*shape)
    assert (kernel, cfg.tile[:2]) == ("hopper", tile)


@pytest.mark.parametrize(
    "shape, tile",
    [
        ((128, 2048, 8192), (64, 128)),  # 13.9 us, and 16.3 with clusters that share K
        ((128, 2048, 4096), (64, 128)),  # 8.8, and 9.5
        ((96, 1536, 6144), (64, 96)),  # 9.5, and 10.7
        ((256, 1280, 8192), (128, 80)),  # 12.9, and 21.7 with clusters that share K
        ((128, 2560, 8192), None),
        ((192, 1280, 5120), None),
    ],
)
def test_few_tiles_are_multiplied_in_parts(shape, tile):
    """The microseconds are an H200's."""
    kernel, cfg = chosen_kernel(*shape)
    assert (kernel == "hopper parts") == (tile is not None)
    assert tile is None or (cfg.parts, cfg.gemm.tile[:2]) == (4, tile)


@pytest.mark.parametrize(
    "shape, tile, stages, split, blocks",
    [
        ((4, 10752, 2048), (128, 8), 6, 1, 2),  # 12.6 us, and 13.8 with three blocks of 64 x 16
        ((8, 10752, 3072), (128, 8), 6, 1, 2),  # 18.0, and 18.9
        ((4, 9216, 3072), (64, 16), 7, 1, 3),  # 15.9, and 17.6 with 128 x 8
        ((16, 6400, 5120), (64, 16), 7, 1, 3),  # 19.0, and 19.9 with one block
        ((8, 6144, 4096), (64, 8), 8, 1, 3),  # 14.7, and 15.6 with one
        ((16, 32000, 1536), (64, 16), 5, 1, 4),  # 25.9, and 28.4 with 128 x 16
        ((32, 2560, 2560), (64, 32), 9, 3, 2),  # 6.5, and 7.4 with 64 x 40 of empty rows
        ((32, 6144, 4096), (64, 32), 9, 1, 2),  # 15.0, and 16.2 with one block
        ((2, 13568, 5120), (128, 16), 6, 1, 2),  # 35.0, and 36.7 with three blocks
        ((96, 4096, 2048), (64, 96), 11, 1, 1),  # 7.2, and 7.8 where two share K
        ((192, 8192, 5440), (192, 64), 7, 1, 1),  # 28.8, and 31.2 where two share K
    ],
)
def test_room_for_the_next_kernel(shape, tile, stages, split, blocks):
    """The microseconds are an H200's."""
    kernel, cfg = chosen_kernel(*shape)
    assert (kernel, cfg.tile[:2], cfg.stages) == ("hopper split", tile, stages)
    assert (cfg.split, cfg.blocks_per_sm, cfg.sharing) == (split, blocks, 1)


def test_how_many_threads_add_parts():
    """Measured of 512 x 512 x 65536: 57.4 us by 2, 56.4 by 4 and 8."""
    assert chosen_kernel(512, 512, 65536)[1].sharing == 4


@pytest.mark.parametrize(
    "shape, tile, swap",
    [
        ((48, 6144, 3072), (64, 48), False),
        ((128, 14336, 4096), (128, 112), False),  # 44.6 us with two blocks on a multiprocessor
    ],
)
def test_tiles_of_few_rows(shape, tile, swap):
    _, cfg = chosen_kernel(*shape)
    assert (cfg.tile[:2], cfg.swap, cfg.split, cfg.blocks_per_sm) == (tile, swap, 1, 1)


@pytest.mark.parametrize(
    "shape, parts",
    [((512, 512, 65536), 16), ((1000, 1000, 16384), 4), ((64, 64, 65536), 32), ((512,) * 3, None)],
)
def test_which_have_parts(shape, parts):
    kernel, cfg = chosen_kernel(*shape)
    assert (cfg.parts if kernel == "hopper parts" else None) == parts
    # Batches have none.
    assert chosen_kernel(*shape, batches=2)[0] != "hopper parts"


def test_a_workspace_is_not_large():
    for m, n, k in itertools.product((64, 1024, 1536, 3072, 8192), repeat=3):
        kernel, cfg = chosen_kernel(m, n, 16 * k)
        if kernel == "hopper parts":
            assert 4 * math.prod(cfg.workspace(m, n, False)) <= 2**24


# What does not fit -------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "options, text",
    [
        ({"tile": (32, 32, 64)}, "M is a multiple of 64"),
        ({"tile": (64, 12, 64)}, "N and K of 8"),
        ({"tile": (64, 32, 64), "consumers": 2}, "M is a multiple of 128"),
        ({"stages": 1}, "stages from 2"),
        ({"split": 17}, "1 to 16 parts"),
        ({"split": 0}, "1 to 16 parts"),
    ],
)
def test_no_such_configuration(options, text):
    with pytest.raises(ValueError, match=text):
        Config(**SMALL | options)


def test_a_block_that_does_not_fit(sim):
    with pytest.raises(DSLTypeError, match=r"bytes of shared memory; a block has 232448"):
        compare((64, 64, 64), {"tile": (256, 256, 64), "consumers": 2, "stages": 4})


# What is compiled --------------------------------------------------------------------------------


@pytest.mark.skipif(ptxas.find_ptxas() is None, reason="no ptxas here")
@pytest.mark.parametrize(
    "options",
    [
        {"tile": (64, 16, 64), "stages": 8, "split": 4, "swap": True},
        {"tile": (128, 128, 64), "consumers": 2, "stages": 6, "split": 8},
        {"tile": (128, 256, 64), "consumers": 2, "stages": 4, "split": 2},
    ],
)
def test_registers_and_instructions(monkeypatch, options):
    monkeypatch.setenv("CUTE_DSL_ARCH", "sm_90a")
    a = b = c = np.zeros((256, 256), np.float16)
    cfg = Config(**options)
    ptx = cute.compile(gemm, a, b, c, cfg, None, (), 8).stages.text("ptx")
    # Four for the first step of K, four for the others, for each 64 rows of a consumer.
    assert ptx.count("wgmma.mma_async") == 8 * (cfg.tile[0] // (64 * cfg.consumers))
    m, n, _ = cfg.tile
    turns = min(4, -(-m * n // (8 * 128 * cfg.consumers * cfg.split)))  # more are a loop
    assert ptx.count("ld.shared::cluster.v4.b32") == 2 * cfg.split * turns
    made = ptxas.start(ptx, "sm_90a").finish()
    assert made.warnings == ()
    (kernel,) = made.kernels.values()
    assert (kernel.spill_stores, kernel.spill_loads, kernel.stack) == (0, 0, 0)
