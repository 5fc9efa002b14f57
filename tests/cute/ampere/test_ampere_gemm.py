"""`ops.ampere.gemm`: every type, order of modes and kind of raggedness against NumPy; its PTX."""

import sys
from pathlib import Path

import ml_dtypes
import numpy as np
import pytest

import basedsl_cute as cute
from basedsl_cute.lowering.ptx import ptxas
from basedsl_cute.ops.ampere.gemm import Config, gemm

sys.path.insert(0, str(Path(__file__).parent))

from gemm_problems import check_epilogue, close, operands

SMALL = Config(tile=(32, 32, 32), warps=(2, 1))  # few operations, so that it compiles fast


def run(shape, cfg=SMALL, blocks=2, vectors=(8, 8, 8), acc=None, **options):
    a, b, c, exact = operands(shape, **options)
    gemm(a, b, c, blocks, cfg, None, (), vectors, acc)
    cute.synchronize()
    close(c, exact, truncated=(a, b) if a.dtype == np.float32 else None)


@pytest.mark.parametrize("majors", ["kkn", "mkn", "knn", "mnn", "kkm", "mnm"])
def test_orders_of_modes_and_ragged_extents(target, majors):
    run((136, 72, 104), majors=majors)


@pytest.mark.parametrize("majors", ["kkn", "mnn"])
@pytest.mark.parametrize(
    "dtype", [
        ml_dtypes.bfloat16, np.float32, np.int8, np.uint8,
        ml_dtypes.float8_e4m3fn, ml_dtypes.float8_e5m2,
    ],
)  # fmt: skip
def test_types(target, dtype, majors):
    if target == "gpu" and "float8" in str(np.dtype(dtype)):
        from basedsl_cute.device import driver

        if driver.capability_or_none() < (8, 9):
            pytest.skip("mma.sync of 8-bit floats needs compute capability 8.9")
    size = np.dtype(dtype).itemsize
    out = np.int32 if np.dtype(dtype).kind in "iu" else np.float32
    cfg = Config(tile=(32, 32, 64 // size), warps=(1, 2))
    vectors = (16 // size,) * 3
    run((80, 48, 96), cfg, 1, vectors, dtype=dtype, out=out, majors=majors)


@pytest.mark.parametrize("vectors", [(1, 1, 1), (2, 1, 2), (1, 4, 1)])
def test_extents_that_no_wide_access_divides(target, vectors):
    va, vb, _ = vectors
    k = 35 * max(va, vb) if max(va, vb) > 1 else 35
    run((67, 45, k), blocks=1, vectors=(va, vb, 1))


CASES = {
    "more stages than steps": ((64, 64, 24), Config((64, 64, 32), (1, 2), stages=5), 1),
    "a block has many tiles": ((136, 200, 72), Config((64, 64, 32), (2, 2), stages=4), 1),
    "more blocks than tiles": ((40, 40, 40), SMALL, 7),
    "bands along N": ((200, 136, 40), Config((64, 64, 32), (2, 1), swizzle=2, along_m=False), 3),
    "steps of 64": ((128, 64, 192), Config((128, 64, 64), (2, 2), stages=2), 1),
    "nothing is ragged": ((128, 64, 96), Config((64, 64, 32), (2, 1), is_full=True), 1),
    "narrow parts of warps": ((64, 48, 40), Config((32, 32, 32), (2, 2)), 2),
}


@pytest.mark.parametrize("case", CASES)
def test_configurations(target, case):
    run(*CASES[case])


@pytest.mark.parametrize("majors", ["kkn", "mnn"])
def test_parts_of_warps_that_32_does_not_divide(target, majors):
    run((120, 96, 40), Config((96, 96, 32), (2, 2)), majors=majors)


def test_batches(target):
    run((72, 40, 40), blocks=3, batches=3)


def test_sums_in_float16(target):
    a, b, c, exact = operands((64, 64, 64))
    gemm(a, b, c, 1, SMALL, None, (), (8, 8, 8), cute.Float16)
    cute.synchronize()
    np.testing.assert_allclose(c.astype(np.float64), exact, rtol=1e-2, atol=5e-2)


@pytest.mark.parametrize("majors", ["kkn", "kkm"])
def test_an_epilogue_with_a_number_vectors_and_a_matrix(target, majors):
    check_epilogue(gemm, SMALL, (8, 8, 8), majors)


# The machine code --------------------------------------------------------------------------------


@pytest.fixture
def compiled(monkeypatch):
    monkeypatch.setenv("CUTE_DSL_ARCH", "sm_80")

    def make(cfg, majors="kkn", **options):
        a, b, c, _ = operands((64, 64, 64), majors=majors, **options)
        vectors = (16 // a.dtype.itemsize,) * 3
        return cute.compile(gemm, a, b, c, 108, cfg, None, (), vectors).stages

    return make


def test_instructions(compiled):
    """A warp of 64 x 32 x 32: 4 x 4 x 2 multiplications, and what they take."""
    ptx = compiled(Config((128, 64, 32), (2, 2), stages=3)).text("ptx")
    assert ptx.count("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32") == 32
    ldmatrix = "ldmatrix.sync.aligned.m8n8.x4.shared.b16"
    assert ptx.count(ldmatrix) == (4 + 2) * (2 + 1)  # the first ones are ahead of the loop
    copies = (128 + 64) * 32 * 2 // 16 // 128
    assert ptx.count("cp.async.cg.shared.global") == copies * (2 + 1)  # 2 stages are filled first
    assert ".local" not in ptx


def test_operands_that_are_turned_by_ldmatrix(compiled):
    ptx = compiled(Config((128, 64, 32), (2, 2)), "mnn").text("ptx")
    assert ptx.count("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16") == (4 + 2) * (2 + 1)


@pytest.mark.skipif(ptxas.find_ptxas() is None, reason="no ptxas here")
def test_sums_stay_in_registers(compiled):
    cfg = Config((128, 256, 64), (2, 4), 3)
    made = ptxas.start(compiled(cfg).text("ptx"), "sm_80").finish()
    (kernel,) = made.kernels.values()
    assert (kernel.spill_stores, kernel.spill_loads, kernel.stack) == (0, 0, 0)
    assert made.warnings == ()
