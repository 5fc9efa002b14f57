"""`ops.ampere.gemm_tma`: types, orders of modes and raggedness against NumPy; when it is taken."""

import sys
from dataclasses import replace
from pathlib import Path

import ml_dtypes
import numpy as np
import pytest

import basedsl_cute as cute
from basedsl.errors import DSLTypeError
from basedsl_cute.lowering.ptx import ptxas
from basedsl_cute.ops import matmul
from basedsl_cute.ops.ampere import gemm as ampere_gemm
from basedsl_cute.ops.ampere.gemm_tma import Config, gemm
from basedsl_cute.ops.blackwell import config as blackwell_config
from basedsl_cute.ops.gemm import kernel_selection
from basedsl_cute.ops.hopper import gemm as hopper_gemm

sys.path.insert(0, str(Path(__file__).parent))

from gemm_problems import check_epilogue, close, operands

SMALL = Config(tile=(32, 32, 32), warps=(2, 2))  # few operations, so that it compiles fast


@pytest.fixture
def hopper(target):
    if target == "gpu":
        from basedsl_cute.device import driver

        if driver.capability_or_none() < (9, 0):
            pytest.skip("needs compute capability 9.0")
    return target


def run(shape, cfg=SMALL, blocks=2, vector=8, acc=None, **options):
    a, b, c, exact = operands(shape, **options)
    gemm(a, b, c, blocks, cfg, None, (), vector, acc)
    cute.synchronize()
    close(c, exact, truncated=(a, b) if a.dtype == np.float32 else None)


@pytest.mark.parametrize("majors", ["kkn", "mkn", "knn", "mnn", "kkm", "mnm"])
def test_orders_of_modes_and_ragged_extents(hopper, majors):
    run((136, 72, 104), majors=majors)


@pytest.mark.parametrize("majors", ["kkn", "mnn"])
@pytest.mark.parametrize(
    "dtype", [
        ml_dtypes.bfloat16, np.float32, np.int8, np.uint8,
        ml_dtypes.float8_e4m3fn, ml_dtypes.float8_e5m2,
    ],
)  # fmt: skip
def test_types(hopper, dtype, majors):
    size = np.dtype(dtype).itemsize
    out = np.int32 if np.dtype(dtype).kind in "iu" else np.float32
    cfg = Config(tile=(32, 64, 64 // size), warps=(1, 4))
    run((80, 48, 96), cfg, 1, 16 // size, dtype=dtype, out=out, majors=majors)


def test_a_result_that_no_wide_access_divides(hopper):
    run((67, 45, 40), blocks=1, vector=1)


CASES = {
    "more stages than steps": ((64, 64, 24), replace(SMALL, stages=5), 1),
    "a block has many tiles": ((136, 200, 72), replace(SMALL, stages=4), 1),
    "more blocks than tiles": ((40, 40, 40), SMALL, 7),
    "bands along N": ((200, 136, 40), replace(SMALL, swizzle=2, along_m=False), 3),
    "steps of 64": ((128, 64, 192), Config((128, 64, 64), (2, 2), stages=2), 1),
    "nothing is ragged": ((128, 64, 96), replace(SMALL, is_full=True), 1),
    "two warpgroups": ((136, 72, 40), Config((128, 64, 32), (4, 2)), 1),
    "two blocks of a multiprocessor": ((136, 72, 40), replace(SMALL, blocks_per_sm=2), 2),
    "pairs along M": ((136, 72, 104), replace(SMALL, cluster=(2, 1)), 4),
    "pairs along N": ((136, 200, 104), replace(SMALL, cluster=(1, 2)), 4),
    "launches that do not overlap": ((72, 72, 40), replace(SMALL, overlap=False), 1),
}


@pytest.mark.parametrize("case", CASES)
def test_configurations(hopper, case):
    run(*CASES[case])


def test_batches(hopper):
    run((72, 40, 40), blocks=3, batches=3)


def test_sums_in_float16(hopper):
    a, b, c, exact = operands((64, 64, 64))
    gemm(a, b, c, 1, SMALL, None, (), 8, cute.Float16)
    cute.synchronize()
    np.testing.assert_allclose(c.astype(np.float64), exact, rtol=1e-2, atol=5e-2)


@pytest.mark.parametrize("majors", ["kkn", "kkm"])
def test_an_epilogue_with_a_number_vectors_and_a_matrix(hopper, majors):
    check_epilogue(gemm, SMALL, 8, majors)


def test_warps_that_are_no_warpgroups(sim):
    with pytest.raises(DSLTypeError, match=r"2 x 1 warps do not form whole warpgroups"):
        run((64, 64, 32), replace(SMALL, warps=(2, 1)))


# matmul -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("shape", [((3, 40, 24), (3, 24, 56)), ((2, 5, 8, 24), (24, 56))])
def test_matmul(hopper, shape):
    rng = np.random.default_rng(4)
    a, b = (rng.standard_normal(x).astype(np.float16) for x in shape)
    bias = rng.standard_normal(56).astype(np.float16)
    c = np.asarray(matmul(a, b, bias=bias, activation="relu", config=SMALL))
    cute.synchronize()
    exact = a.astype(np.float64) @ b.astype(np.float64) + bias.astype(np.float64)
    close(c, np.maximum(exact, 0))


def test_what_tma_cannot_read(sim):
    a, b = np.zeros((40, 23), np.float16), np.zeros((23, 56), np.float16)
    with pytest.raises(DSLTypeError, match="TMA reads arrays whose addresses and strides are"):
        matmul(a, b, config=SMALL)


TAKEN = {
    # target, type, whether TMA reads A and B, whether wgmma has them: the Config
    "wgmma": ("sm_90a", cute.Float16, True, True, hopper_gemm.Config),
    "no wgmma of such an order": ("sm_90a", cute.Int8, True, False, Config),
    "rows of no 16 bytes": ("sm_90a", cute.Float16, False, False, ampere_gemm.Config),
    "no setmaxnreg": ("sm_90", cute.Float16, True, True, ampere_gemm.Config),
    "no TMA": ("sm_80", cute.Float16, True, True, ampere_gemm.Config),
    "tcgen05": ("sm_100a", cute.Float16, True, True, blackwell_config.Config),
    "less shared memory": ("sm_120a", cute.Float16, True, True, Config),
}


@pytest.mark.parametrize("case", TAKEN)
def test_which_kernel_is_taken(monkeypatch, case):
    name, dtype, tma, wgmma, kind = TAKEN[case]
    monkeypatch.setenv("CUTE_DSL_ARCH", name)
    shape = kernel_selection.ProblemShape(4096, 4096, 512, 1, (True, True), is_turned=False)
    by_tma = kernel_selection.TmaSupport(tma, wgmma, stores=True)
    _, cfg = kernel_selection.choose_kernel(dtype, dtype, dtype, shape, False, by_tma, None, 100)
    assert type(cfg) is kind
    if kind is Config:
        most = kernel_selection.current_target().smem_per_block
        assert cfg.smem_bytes(dtype.width) * cfg.blocks_per_sm <= most
        assert cfg.is_full
        assert cfg.cluster == ((1, 1) if name == "sm_120a" or cfg.blocks_per_sm > 1 else (2, 1))


# The machine code ---------------------------------------------------------------------------------


@pytest.fixture
def compiled(monkeypatch):
    monkeypatch.setenv("CUTE_DSL_ARCH", "sm_90a")

    def make(cfg, majors="kkn"):
        a, b, c, _ = operands((64, 64, 64), majors=majors)
        return cute.compile(gemm, a, b, c, 132, cfg, None, (), 8).stages

    return make


def test_instructions(compiled):
    """A warp of 64 x 32 x 32: 4 x 4 x 2 multiplications, in the loop and in a tile's last step."""
    ptx = compiled(Config((128, 64, 32), (2, 2), stages=3)).text("ptx")
    assert ptx.count("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32") == 2 * 32
    ldmatrix = "ldmatrix.sync.aligned.m8n8.x4.shared.b16"
    assert ptx.count(ldmatrix) == (4 + 2) * (1 + 2 + 1)  # a tile's first ones, and the last step's
    assert ptx.count("cp.async.bulk.tensor.3d") == 2
    assert "cp.async.cg" not in ptx and ".local" not in ptx


@pytest.mark.skipif(ptxas.find_ptxas() is None, reason="no ptxas here")
@pytest.mark.parametrize("cfg", [
    Config((128, 256, 64), (2, 4), 4, is_full=True, cluster=(2, 1)),
    Config((128, 128, 64), (2, 2), 3, blocks_per_sm=2, is_full=True),
])  # fmt: skip
def test_sums_stay_in_registers(compiled, cfg):
    made = ptxas.start(compiled(cfg).text("ptx"), "sm_90a").finish()
    (kernel,) = made.kernels.values()
    assert (kernel.spill_stores, kernel.spill_loads, kernel.stack) == (0, 0, 0)
    assert made.warnings == ()
