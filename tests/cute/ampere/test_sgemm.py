"""`ops.sgemm`: orders of modes and raggedness against NumPy; its machine code."""

import sys
from pathlib import Path

import numpy as np
import pytest

import basedsl_cute as cute
from basedsl.errors import DSLTypeError
from basedsl_cute.lowering import ptxas
from basedsl_cute.ops.sgemm import Config, sgemm
from basedsl_cute.utils.epilogue import per_column

sys.path.insert(0, str(Path(__file__).parent))

from gemm_problems import close, operands

SMALL = Config(tile=(32, 64, 8), warps=(2, 1))


def run(shape, cfg=SMALL, vectors=(4, 4, 4), **options):
    a, b, c, exact = operands(shape, dtype=np.float32, **options)
    sgemm(a, b, c, cfg, None, (), vectors)
    cute.synchronize()
    close(c, exact, bits=20)


@pytest.mark.parametrize("majors", ["kkn", "mkn", "knn", "mnn", "kkm", "mnm"])
def test_orders_of_modes_and_ragged_extents(target, majors):
    run((36, 72, 20), majors=majors)


def test_extents_that_no_wide_access_divides(target):
    run((37, 33, 7), vectors=(1, 1, 1), majors="mnn")


def test_batches(target):
    run((32, 36, 12), batches=3, majors="knn")


def test_more_stages_than_steps(target):
    run((32, 32, 8), Config((32, 64, 8), (1, 2), stages=4))


@cute.jit
def with_bias(a: cute.Tensor, b: cute.Tensor, c: cute.Tensor, bias: cute.Tensor):
    sgemm(a, b, c, SMALL, lambda acc, bias: acc + bias, (per_column(bias, c.shape),), (4, 4, 4))


@pytest.mark.parametrize("majors", ["kkn", "kkm"])
def test_an_epilogue(target, majors):
    a, b, c, exact = operands((36, 44, 12), dtype=np.float32, majors=majors)
    bias = np.random.default_rng(1).standard_normal(44).astype(np.float32)
    with_bias(a, b, c, bias)
    cute.synchronize()
    close(c, exact + bias, bits=20)


@pytest.mark.skipif(ptxas.find_ptxas() is None, reason="no ptxas here")
def test_machine_code(monkeypatch):
    monkeypatch.setenv("CUTE_DSL_ARCH", "sm_80")
    a, b, c, _ = operands((64, 64, 64), dtype=np.float32, majors="knn")
    ptx = cute.compile(sgemm, a, b, c, Config(), None, (), (4, 4, 4)).stages.text("ptx")
    assert ptx.count("fma.rn.f32") == 8 * 8 * 16  # 8 x 16 elements a thread, 8 columns of K
    assert ptx.count("ld.shared.v4.b32") == (2 + 4) * (8 + 1)
    (kernel,) = ptxas.start(ptx, "sm_80").finish().kernels.values()
    assert (kernel.spill_stores, kernel.spill_loads, kernel.stack) == (0, 0, 0)


def test_a_tile_that_threads_do_not_share(sim):
    a, b, c, _ = operands((64, 64, 32), np.float32, "mkn")
    with pytest.raises(DSLTypeError, match="256 threads cannot copy tiles of 64 x 8, 4 element"):
        sgemm(a, b, c, Config(tile=(64, 64, 8), warps=(4, 2)), vectors=(4, 4, 4))
