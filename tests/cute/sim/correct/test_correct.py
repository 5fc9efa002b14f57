"""Correct kernels with unusual synchronisation: no check alarms, and the results are right."""

import importlib.util
import sys
from pathlib import Path

import numpy as np
import pytest

import basedsl_cute as cute

HERE = Path(__file__).parent


def module(name):
    known = f"correct_{name}"
    if known not in sys.modules:
        spec = importlib.util.spec_from_file_location(known, HERE / f"{name}.py")
        sys.modules[known] = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(sys.modules[known])
    return sys.modules[known]


CASES = [
    pytest.param(*case, id=f"{name}-{case[0].__name__}")
    for name in ("algorithms", "globally", "in_blocks", "stages")
    for case in module(name).CASES
]


@cute.jit
def host(
    kernel: cute.Constexpr,
    x: cute.Tensor,
    y: cute.Tensor,
    c: cute.Tensor,
    launch: cute.Constexpr,
):
    kernel(x, y, c).launch(**dict(launch))


@pytest.mark.parametrize("seed", ["", "7"])
@pytest.mark.parametrize(("kernel", "about", "is_right"), CASES)
def test_nothing_alarms(kernel, about, is_right, seed, sim, monkeypatch):
    if seed:
        monkeypatch.setenv("CUTE_DSL_SCHEDULE_SEED", seed)
    x, y = np.arange(512, dtype=np.float32), np.zeros(512, np.float32)
    c = np.zeros(64, np.int32)
    launch = {"grid": 1, "block": 64} | about
    host(kernel, x, y, c, tuple(launch.items()))
    assert is_right(x, y, c)


def test_there_are_many():
    assert len({p.id for p in CASES}) == len(CASES) >= 40
