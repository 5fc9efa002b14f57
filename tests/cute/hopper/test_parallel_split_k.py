"""The Hopper GEMM of parts of K and their sum: either kernel, borders, epilogues, `matmul`."""

from dataclasses import replace

import ml_dtypes
import numpy as np
import pytest

import basedsl_cute as cute
from basedsl.errors import DSLTypeError
from basedsl_cute.ops import matmul
from basedsl_cute.ops.hopper import gemm as hopper_gemm
from basedsl_cute.ops.hopper import split_k_gemm
from basedsl_cute.ops.hopper.parallel_split_k import Config, gemm
from basedsl_cute.utils.epilogue import per_column

PERSISTENT = hopper_gemm.Config(tile=(64, 64, 64), consumers=1, stages=2)
SPLIT = split_k_gemm.Config(tile=(64, 32, 64), stages=2, split=2)
CASES = {
    "two parts": ((64, 64, 256), Config(2, PERSISTENT)),
    "ragged in M and N": ((72, 40, 192), Config(3, PERSISTENT)),
    "parts that end within a step of K": ((72, 40, 216), Config(3, PERSISTENT)),
    "parts of one and two steps": ((72, 40, 296), Config(3, PERSISTENT)),
    "a part without a step": ((72, 40, 328), Config(5, PERSISTENT)),
    "parts of a prime number of steps": ((72, 40, 440), Config(3, SPLIT)),
    "parts that are split again": ((72, 40, 256), Config(2, SPLIT)),
    "more parts than are added at once": ((8, 16, 640), Config(20, SPLIT)),
    "sums that warps store": ((72, 40, 192), Config(3, replace(PERSISTENT, by_warps=True))),
    "neighbours of the raster apart": (
        (136, 136, 640),
        Config(10, replace(PERSISTENT, cluster=(2, 1), apart=8)),
    ),
    "parts that threads share": ((72, 40, 192), Config(3, PERSISTENT, 2)),
    "many that they share": ((24, 16, 640), Config(20, SPLIT, 8)),
    "tiles of the transposed product": (
        (72, 136, 192),
        Config(3, replace(PERSISTENT, tile=(64, 32, 64), swap=True)),
    ),
}


def normal(*shape, dtype=np.float16):
    return np.random.default_rng(1).standard_normal(shape).astype(dtype)


def exact_of(a, b):
    return a.astype(np.float64) @ b.astype(np.float64).T


def check(c, exact, tolerance=1e-3):
    epsilon = float(ml_dtypes.finfo(c.dtype).eps)
    np.testing.assert_allclose(c.astype(np.float64), exact, rtol=epsilon, atol=tolerance)


def run(a, b, c, cfg, vector=1, call=gemm, **more):
    workspace = np.full(cfg.workspace(*c.shape, not c.flags.c_contiguous), np.nan, np.float32)
    call(a, b, c, workspace, 2, cfg, vector=vector, **more)
    cute.synchronize()


@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("is_column_major", [False, True])
def test_against_numpy(hopper, case, is_column_major):
    (m, n, k), cfg = CASES[case]
    a, b = normal(m, k), normal(n, k)
    c = np.full((n, m), 77, np.float16).T if is_column_major else np.full((m, n), 77, np.float16)
    run(a, b, c, cfg, 4)
    check(c, exact_of(a, b))


@pytest.mark.parametrize("transposed", [(True, False), (False, True), (True, True)])
def test_which_mode_is_contiguous(hopper, transposed):
    a, b = (
        normal(192, rows).T if turned else normal(rows, 192)
        for rows, turned in zip((72, 40), transposed, strict=True)
    )
    c = np.full((72, 40), 77, np.float16)
    run(a, b, c, Config(3, PERSISTENT), 4)
    check(c, exact_of(a, b))


@pytest.mark.parametrize("columns", [41, 42])
def test_rows_of_c_that_begin_anywhere(hopper, columns):
    a, b = normal(9, 192), normal(columns, 192)
    c = np.full((9, columns), 77, np.float16)
    run(a, b, c, Config(3, PERSISTENT), 2 - columns % 2)
    check(c, exact_of(a, b))


def relu(sums, bias):
    x = sums + bias.to(cute.Float32)
    return cute.where(x > 0.0, x, 0.0)


@cute.jit
def linear(
    a: cute.Tensor, b: cute.Tensor, c: cute.Tensor, workspace: cute.Tensor, blocks: cute.Int32,
    cfg: cute.Constexpr, bias: cute.Tensor, vector: cute.Constexpr,
):  # fmt: skip
    operands = (per_column(bias, c.shape),)
    gemm(a, b, c, workspace, blocks, cfg, relu, operands, vector)


def test_an_epilogue_of_the_whole_sum(hopper):
    """A ReLU of the parts would be another number."""
    a, b, bias = normal(72, 192), normal(40, 192), np.linspace(-5, 5, 40, dtype=np.float16)
    c = np.full((72, 40), 77, np.float16)
    run(a, b, c, Config(3, PERSISTENT), 4, linear, bias=bias)
    check(c, np.maximum(exact_of(a, b) + bias, 0), 2e-3)


@pytest.mark.parametrize("columns", [40, 41])
def test_a_linear_layer(sim, columns):
    x, weight, bias = normal(2, 3, 128), normal(columns, 128), normal(columns)
    for _ in range(2):  # the second call finds its plan
        y = matmul(x, weight.T, bias=bias, activation="relu", config=Config(2, PERSISTENT))
        check(y, np.maximum(x.astype(np.float64) @ weight.T.astype(np.float64) + bias, 0), 2e-3)


def test_integers(sim):
    a, b = (np.random.default_rng(2).integers(-99, 99, s).astype(np.int8) for s in ((9, 256),) * 2)
    cfg = Config(2, hopper_gemm.Config(tile=(64, 64, 128), consumers=1, stages=2))
    np.testing.assert_array_equal(matmul(a, b.T, config=cfg), a.astype(int) @ b.T.astype(int))


def test_what_has_no_parts(sim):
    with pytest.raises(DSLTypeError, match="2 steps of 64, which do not make 16 parts"):
        matmul(normal(8, 72), normal(72, 8), config=Config(16, PERSISTENT))
    with pytest.raises(DSLTypeError, match="there are 2 batches"):
        matmul(normal(2, 8, 128), normal(2, 128, 8), config=Config(2, PERSISTENT))
    with pytest.raises(ValueError, match="2 parts or more"):
        Config(1, PERSISTENT)
    with pytest.raises(ValueError, match="gemm must be a Config"):
        Config(2, None)
    with pytest.raises(ValueError, match="threads share a vector"):
        Config(2, PERSISTENT, 4)


def test_sums_are_read_in_wide_accesses(monkeypatch):
    monkeypatch.setenv("CUTE_DSL_ARCH", "sm_90a")
    a = b = c = np.zeros((256, 256), np.float16)
    cfg = Config(2, PERSISTENT)
    workspace = np.zeros(cfg.workspace(256, 256, False), np.float32)
    ptx = cute.compile(gemm, a, b, c, workspace, 132, cfg, None, (), 4).stages.text("ptx")
    assert "ld.global.v4" in ptx and "st.global.v2" in ptx
