"""Tuning of matrix products: the fastest of what is measured, kept on disk; configurations fit."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import basedsl_cute as cute
from basedsl.errors import DSLCallError, DSLTypeError
from basedsl_cute.device import driver
from basedsl_cute.lowering.ptx import ptxas
from basedsl_cute.ops import matmul
from basedsl_cute.ops.ampere import gemm as ampere_gemm
from basedsl_cute.ops.gemm import tuning
from basedsl_cute.ops.gemm.matmul import product
from basedsl_cute.ops.hopper import gemm as hopper_gemm
from basedsl_cute.ops.hopper import heuristics, parallel_split_k, split_k_gemm
from basedsl_cute.ops.hopper.config import HopperGemmKinds, every_config
from basedsl_cute.utils import hopper_helpers as sm90

ROW = sm90.LayoutEnum.ROW_MAJOR


@pytest.fixture
def kept(monkeypatch, tmp_path):
    monkeypatch.setenv("CUTE_DSL_CACHE", "1")
    monkeypatch.setenv("CUTE_DSL_CACHE_DIR", str(tmp_path))
    return tmp_path


class Watch:
    """Times by name, of which each measurement takes the next; a missing one does not fit."""

    def __init__(self, **times: list[float]) -> None:
        self.times = times
        self.measured: list[str] = []

    def __call__(self, name: str) -> float:
        self.measured.append(name)
        if name not in self.times:
            raise DSLTypeError("it does not fit")
        return self.times[name].pop(0)


def test_the_fastest_is_found_and_kept(kept, monkeypatch):
    monkeypatch.setattr(driver, "call", lambda *_: 0)  # no stream is being captured
    watch = Watch(a=[5.0], b=[3.0, 3.4, 3.5], c=[3.2, 2.9, 3.1])
    every = ["a", "b", "c", "d"]
    assert tuning.fastest_config(every, watch, product, "some arrays", 0) == "c"
    # What is far from the best, or fails, is measured once.
    assert sorted(watch.measured) == ["a", *"bbb", *"ccc", "d"]
    nothing = Watch()
    assert tuning.fastest_config(every, nothing, product, "some arrays", 0) == "c"
    assert nothing.measured == []
    assert tuning.fastest_config(every, nothing, product, "other arrays", 0) is None
    assert tuning.fastest_config(["a"], Watch(a=[1.0] * 3), product, "some arrays", 0) == "a"


def test_nothing_is_measured_during_a_capture(kept, monkeypatch):
    call = driver.call
    answers = {"cuStreamIsCapturing": 1}
    monkeypatch.setattr(driver, "call", lambda name, *args: answers.get(name) or call(name, *args))
    with pytest.raises(DSLCallError, match="while a CUDA graph is captured"):
        tuning.fastest_config(["a"], Watch(a=[1.0]), product, "arrays", 0)


@pytest.mark.slow
def test_on_the_simulator_the_model_chooses(sim):
    rng = np.random.default_rng(0)
    a, b = rng.standard_normal((9, 24), np.float32), rng.standard_normal((24, 5), np.float32)
    assert np.array_equal(matmul(a, b, config="tune"), matmul(a, b))


def test_other_words_are_no_configuration():
    a, b = np.zeros((8, 16), np.float16), np.zeros((16, 8), np.float16)
    with pytest.raises(DSLTypeError, match="config is a str"):
        matmul(a, b, config="fast")
    assert matmul(a[:0], b, config="tune").shape == (0, 8)


@pytest.mark.gpu
def test_what_is_fastest_is_right(kept):
    torch = pytest.importorskip("torch", reason="PyTorch is not installed")
    a, b = torch.randn(96, 512, device="cuda").half(), torch.randn(512, 1000, device="cuda").half()
    y = matmul(a, b, config="tune")
    assert (y.double() - a.double() @ b.double()).abs().max() < 0.1
    (file,) = (kept / "tuning").iterdir()
    assert "Config(" in file.read_text()


@pytest.mark.parametrize("bits, out", [(8, cute.BFloat16), (16, cute.Float16), (32, cute.Float32)])
def test_what_is_measured_fits(bits, out):
    dtype = {8: cute.Float8E4M3FN, 16: cute.Float16, 32: cute.TFloat32}[bits]
    seen = set()
    for shape in ((64, 14336, 4096), (1536, 1536, 8192), (128, 128, 65536), (1000,) * 3):
        for turned in (False, True):
            problem = heuristics.Problem(*shape, 1, bits, out.width, 132, True, turned)
            every = heuristics.ranked_hopper_kernels(problem)
            assert len(every) == len(set(every)) > 5
            for cfg in every:
                c, inner = out, cfg
                if isinstance(cfg, parallel_split_k.Config):
                    cfg.check_parts(shape[2])
                    c, inner = cute.Float32, cfg.gemm
                kinds = HopperGemmKinds(dtype, dtype, c, ROW, ROW, ROW)
                is_split = isinstance(inner, split_k_gemm.Config)
                if is_split:
                    split_k_gemm.check_config(kinds, inner)
                else:
                    hopper_gemm.check_config(kinds, replace(inner, swap=False))
                seen.add(type(cfg))
    assert len(seen) == 3


@pytest.mark.parametrize("bits", [8, 16, 32])
def test_balanced_tiles_fit(bits):
    dtype = {8: cute.Float8E4M3FN, 16: cute.Float16, 32: cute.TFloat32}[bits]
    for short in (1, 48, 65, 128, 192):
        for long in (2560, 5504, 21504, 50304):
            for m, n in ((short, long), (long, short)):
                problem = heuristics.Problem(m, n, 4096, 1, bits, 32, 132, True)
                for cfg in heuristics.balanced_configurations(problem):
                    split_k_gemm.check_config(
                        HopperGemmKinds(dtype, dtype, cute.Float32, ROW, ROW, ROW), cfg
                    )
                    across, along = (n, m) if cfg.swap else (m, n)
                    rows, columns, _ = cfg.tile
                    assert across <= rows
                    assert -(-along // columns) * cfg.split <= 2 * 132
    many = heuristics.Problem(193, 5504, 4096, 1, bits, 32, 132, True)
    assert not heuristics.balanced_configurations(many)
    few = heuristics.Problem(192, 21504, 6144, 1, 16, 16, 132, True)
    rows, columns, _ = heuristics.choose_hopper_kernel(few)[1].tile
    assert rows == 192
    assert 0.9 * 132 <= 21504 / columns <= 132
    # Narrower pieces of rows are slower to load where N is contiguous, and few rows were slower.
    for shape, balances in (((192, 21504, 6144), False), ((1, 4608, 3072), True)):
        problem = heuristics.Problem(*shape, 1, 16, 16, 132, True, balances=balances)
        _, cfg = heuristics.choose_hopper_kernel(problem)
        assert cfg not in heuristics.balanced_configurations(problem)


def test_other_kernels_have_configurations_too():
    for width in (8, 16, 32, 64):
        every: list[Any] = ampere_gemm.every_config(width, 100 << 10)
        assert len(every) > 2
        assert all(one.smem_bytes(width) * one.blocks_per_sm <= 100 << 10 for one in every)


@pytest.mark.skipif(ptxas.find_ptxas() is None, reason="no ptxas here")
@pytest.mark.parametrize("tile", [(128, 144), (192, 96)])
def test_tiles_of_any_width_stay_in_registers(monkeypatch, tile):
    monkeypatch.setenv("CUTE_DSL_ARCH", "sm_90a")
    (cfg,) = (x for x in every_config(16) if (*x.tile[:2], *x.cluster) == (*tile, 2, 1))
    a = b = c = np.zeros((256, 256), np.float16)
    ptx = cute.compile(hopper_gemm.gemm, a, b, c, 132, cfg).stages.text("ptx")
    made = ptxas.start(ptx, "sm_90a").finish()
    assert made.warnings == ()
    (kernel,) = made.kernels.values()
    assert (kernel.spill_stores, kernel.spill_loads, kernel.stack) == (0, 0, 0)


@pytest.mark.skipif(ptxas.find_ptxas() is None, reason="no ptxas here")
@pytest.mark.parametrize("shape", [(256, 21504, 7168), (512, 1536, 4096), (1536, 1536, 8192)])
def test_one_round_stays_in_registers_with_an_epilogue(monkeypatch, shape):
    monkeypatch.setenv("CUTE_DSL_ARCH", "sm_90a")
    _, cfg = heuristics.choose_hopper_kernel(heuristics.Problem(*shape, 1, 16, 16, 132, True))
    a = b = c = d = np.zeros((256, 256), np.float16)
    compiled = cute.compile(hopper_gemm.gemm, a, b, c, 132, cfg, tanh_and_add, (d,))
    made = ptxas.start(compiled.stages.text("ptx"), "sm_90a").finish()
    assert made.warnings == ()
    (kernel,) = made.kernels.values()
    assert (kernel.spill_stores, kernel.spill_loads, kernel.stack) == (0, 0, 0)


def tanh_and_add(x, y):
    return cute.math.tanh(x) + y


@pytest.mark.parametrize("bits", [8, 16, 32])
def test_filled_tiles_fit(bits):
    dtype = {8: cute.Float8E4M3FN, 16: cute.Float16, 32: cute.TFloat32}[bits]
    kinds = HopperGemmKinds(dtype, dtype, cute.Float16, ROW, ROW, ROW)
    for cfg in every_config(bits):
        hopper_gemm.check_config(kinds, cfg)
        # Where consumers take turns, and beside five stages, room is left.
        if not cfg.pingpong and (cfg.consumers == 3 or cfg.stages < 5) and cfg.stages < 10:
            with pytest.raises(DSLTypeError, match="shared memory"):
                hopper_gemm.check_config(kinds, replace(cfg, stages=cfg.stages + 1))
