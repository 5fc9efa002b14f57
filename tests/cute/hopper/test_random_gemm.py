"""Random problems for the Hopper GEMM: small ones on the simulator, 200 on a GPU."""

import subprocess
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))

import random_gemm


@pytest.mark.parametrize("seed", range(8))
def test_a_small_problem(sim, seed):
    random_gemm.run(random_gemm.draw(seed, 160), seed)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(100, 180))
def test_more_small_problems(sim, seed):
    random_gemm.run(random_gemm.draw(seed, 300), seed)


@pytest.mark.gpu
@pytest.mark.slow
def test_fresh_problems_on_the_gpu():
    from basedsl_cute.runtime import driver

    if driver.capability_or_none() != (9, 0):
        pytest.skip("needs compute capability 9.0")
    command = [sys.executable, random_gemm.__file__, "--count", "200"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=600)
    assert done.returncode == 0, done.stdout
    assert "200 passed, 0 failed" in done.stdout


def test_what_is_not_computed_is_noticed(sim, monkeypatch):
    problem = random_gemm.draw(4, 200)
    monkeypatch.setattr(random_gemm, "gemm", lambda *args: None)
    monkeypatch.setattr(random_gemm, "with_bias", lambda *args: None)
    with pytest.raises(AssertionError):
        random_gemm.run(problem, 4)
