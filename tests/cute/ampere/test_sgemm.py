"""`ops.ampere.sgemm`: orders of modes and raggedness against NumPy; its machine code."""

import itertools
import re
import sys
from pathlib import Path

import numpy as np
import pytest

import basedsl_cute as cute
from basedsl.errors import DSLTypeError
from basedsl_cute.lowering.ptx import ptxas
from basedsl_cute.ops.ampere.sgemm import Config, choose_config, sgemm
from basedsl_cute.utils.epilogue import per_column

sys.path.insert(0, str(Path(__file__).parent))

from gemm_problems import close, operands

SMALL = Config(tile=(32, 64, 8), warps=(2, 1))


def run(shape, cfg=SMALL, vectors=(4, 4, 4), **options):
    a, b, c, exact = operands(shape, dtype=np.float32, **options)
    sgemm(a, b, c, cfg, None, (), vectors)
    cute.synchronize()
    close(c, exact, summed=(a, b))


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
    close(c, exact + bias, summed=(a, b))


@pytest.mark.skipif(ptxas.find_ptxas() is None, reason="no ptxas here")
def test_machine_code(monkeypatch):
    monkeypatch.setenv("CUTE_DSL_ARCH", "sm_80")
    a, b, c, _ = operands((64, 64, 64), dtype=np.float32, majors="knn")
    ptx = cute.compile(sgemm, a, b, c, Config(), None, (), (4, 4, 4)).stages.text("ptx")
    assert ptx.count("fma.rn.f32") == 8 * 8 * 16  # 8 x 16 elements a thread, 8 columns of K
    assert ptx.count("ld.shared.v4.b32") == (2 + 4) * (8 + 1)
    (kernel,) = ptxas.start(ptx, "sm_80").finish().kernels.values()
    assert (kernel.spill_stores, kernel.spill_loads, kernel.stack) == (0, 0, 0)
    # Down a column of the sums, up the next: neighbours share a factor. No branch is in the way.
    loop = max(re.split(r"\n\$L\w+:|\n\t(?:@!?%p\d+ )?bra", ptx), key=lambda x: x.count("fma.rn"))
    factors = [set(x.split(", ")[:2]) for x in re.findall(r"fma\.rn\.f32 \t%\w+, (.*);", loop)]
    assert len(factors) == 8 * 8 * 16
    shared = sum(bool(x & y) for x, y in itertools.pairwise(factors))
    assert shared == len(factors) - 8  # but from one column of K to the next


@pytest.mark.skipif(ptxas.find_ptxas() is None, reason="no ptxas here")
@pytest.mark.parametrize("k_contiguous", [(False, False), (True, False), (True, True)])
def test_the_chosen_kernel_fits_its_registers(monkeypatch, k_contiguous):
    monkeypatch.setenv("CUTE_DSL_ARCH", "sm_90a")
    majors = "".join("k" if x else y for x, y in zip(k_contiguous, "mn", strict=True)) + "n"
    a, b, c, _ = operands((64, 64, 64), dtype=np.float32, majors=majors)
    cfg = choose_config(4096, 4096, 132, 1, k_contiguous)
    assert cfg.tile[:2] == (128, 256)
    ptx = cute.compile(sgemm, a, b, c, cfg, None, (), (4, 4, 4)).stages.text("ptx")
    (kernel,) = ptxas.start(ptx, "sm_90a").finish().kernels.values()
    assert (kernel.spill_stores, kernel.spill_loads, kernel.stack) == (0, 0, 0)


def test_a_tile_that_threads_do_not_share(sim):
    a, b, c, _ = operands((64, 64, 32), np.float32, "mkn")
    with pytest.raises(DSLTypeError, match="256 threads cannot copy tiles of 64 x 8, 4 element"):
        sgemm(a, b, c, Config(tile=(64, 64, 8), warps=(4, 2)), vectors=(4, 4, 4))


@pytest.mark.parametrize("options", [{"tile": (32, 64, 1)}, {"stages": 1}])
def test_what_leaves_no_room_for_copies(options):
    with pytest.raises(ValueError, match="two columns of K at least, and two stages"):
        Config(**options)
