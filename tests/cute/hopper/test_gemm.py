"""The Hopper GEMM of the examples: every path of it against NumPy, and what ptxas says of it."""

import sys
from pathlib import Path

import ml_dtypes
import numpy as np
import pytest

import basedsl_cute as cute
from basedsl_cute.lowering import ptxas

sys.path.insert(0, str(Path(__file__).parents[3] / "examples" / "cute"))

from hopper_gemm import Config, gemm

CASES = {
    "one tile, one consumer": ((64, 64, 64), 1, {"tile": (64, 64, 64), "consumers": 1}),
    "tiles of 128, a ring that wraps": ((256, 256, 384), 3, {"tile": (128, 128, 64), "stages": 2}),
    "ragged in M, N and K": ((200, 136, 72), 4, {"tile": (128, 128, 64)}),
    "B is multicast": ((256, 128, 128), 4, {"tile": (128, 64, 64), "cluster": (2, 1)}),
    "A is multicast, ragged": ((136, 200, 72), 4, {"tile": (128, 64, 64), "cluster": (1, 2)}),
    "both are multicast": ((256, 256, 64), 4, {"tile": (128, 128, 64), "cluster": (2, 2)}),
    "bands along N": (
        (192, 320, 64),
        3,
        {"tile": (64, 64, 64), "consumers": 1, "swizzle": 2, "along_m": False},
    ),
    "two blocks of rows each": ((300, 128, 64), 2, {"tile": (256, 64, 64), "stages": 2}),
    "three consumers": ((192, 64, 64), 1, {"tile": (192, 64, 64), "consumers": 3}),
    "the tile that is fast": ((128, 256, 128), 1, {}),
}


def compare(shape, blocks, options, dtype=np.float16, transpose=(False, False)):
    m, n, k = shape
    rng = np.random.default_rng(1)
    a = rng.standard_normal((k, m) if transpose[0] else (m, k)).astype(dtype)
    b = rng.standard_normal((k, n) if transpose[1] else (n, k)).astype(dtype)
    a, b = a.T if transpose[0] else a, b.T if transpose[1] else b
    c = np.full((m, n), np.nan, dtype)
    gemm(a, b, c, blocks, Config(**options))
    cute.synchronize()
    exact = a.astype(np.float64) @ b.astype(np.float64).T
    wide = c.astype(np.float64)
    epsilon = float(ml_dtypes.finfo(dtype).eps)
    np.testing.assert_allclose(wide, exact, rtol=epsilon, atol=1e-3)


@pytest.mark.parametrize("case", CASES)
def test_against_numpy(hopper, case):
    compare(*CASES[case])


@pytest.mark.parametrize("transpose", [(True, False), (False, True), (True, True)])
def test_operands_that_are_not_k_major(hopper, transpose):
    compare((128, 64, 80), 2, {"tile": (64, 64, 64), "consumers": 1}, transpose=transpose)


def test_bfloat16(hopper):
    compare((64, 128, 64), 2, {"tile": (64, 64, 64), "consumers": 1}, dtype=ml_dtypes.bfloat16)


@pytest.mark.skipif(ptxas.find_ptxas() is None, reason="no ptxas here")
@pytest.mark.parametrize("cluster", [(1, 1), (2, 1)])
def test_the_accumulator_stays_in_registers(monkeypatch, cluster):
    monkeypatch.setenv("CUTE_DSL_ARCH", "sm_90a")
    a = b = c = np.zeros((256, 256), np.float16)
    stages = cute.compile(gemm, a, b, c, 132, Config(cluster=cluster)).stages
    ptx = stages.text("ptx")
    assert ptx.count("wgmma.mma_async") == 4
    assert ".local" not in ptx
    made = ptxas.start(ptx, "sm_90a").finish()
    assert made.warnings == ()
    (kernel,) = made.kernels.values()
    assert (kernel.spill_stores, kernel.spill_loads, kernel.stack) == (0, 0, 0)
    assert kernel.registers <= 168  # 384 threads share 65536, before they are moved
