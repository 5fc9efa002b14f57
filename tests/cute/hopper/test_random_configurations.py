"""Random configurations of the matrix products: small ones on the simulator, 200 on the GPU."""

import subprocess
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))

import random_configurations
from random_cases import KERNELS, Draw


@pytest.mark.parametrize("kernel", KERNELS)
@pytest.mark.parametrize("number", range(2))
def test_some_on_the_simulator(sim, kernel, number):
    assert random_configurations.attempt(Draw(2, small=True, kernels=(kernel,)), number) <= 1


@pytest.mark.slow
@pytest.mark.parametrize("number", range(60))
def test_more_on_the_simulator(sim, number):
    assert random_configurations.attempt(Draw(3, small=True), number) <= 1


class Silent:
    """A kernel that leaves C as it is."""

    def __init__(self, kernel):
        self.draw = kernel.draw

    def run(self, *_):
        pass


class Overflowing(Silent):
    """One that writes behind the first row of C too."""

    def run(self, case, a, b, c, extras):
        c[...] = random_configurations.expected(case, a, b, extras)[0]
        c.base[...].reshape(-1)[-1] = 1


@pytest.mark.parametrize("number", range(4))
def test_what_is_not_computed_is_noticed(sim, monkeypatch, number):
    monkeypatch.setitem(KERNELS, "hopper", Silent(KERNELS["hopper"]))
    with pytest.raises(AssertionError, match="elements are wrong"):
        random_configurations.attempt(Draw(2, small=True, kernels=("hopper",)), number)


def test_what_is_written_elsewhere_is_noticed(sim, monkeypatch):
    monkeypatch.setitem(KERNELS, "hopper", Overflowing(KERNELS["hopper"]))
    draw = Draw(2, small=True, kernels=("hopper",))
    number = next(i for i in range(100) if draw.case(i).gaps[2])
    with pytest.raises(AssertionError, match="written behind the rows of C"):
        random_configurations.attempt(draw, number)


@pytest.mark.gpu
@pytest.mark.slow
def test_two_hundred_on_the_gpu():
    from basedsl_cute.device import driver

    if driver.capability_or_none() != (9, 0):
        pytest.skip("needs compute capability 9.0")
    command = [sys.executable, random_configurations.__file__, "--count", "200", "--seed", "1"]
    made = subprocess.run(command, capture_output=True, text=True, check=False, timeout=600)
    assert made.returncode == 0, made.stdout + made.stderr
    assert "200 of 200 right" in made.stdout
