"""Levels of the checks: `warn` reports once for each place and goes on, `off` does not look."""

import warnings

import numpy as np
import pytest

import basedsl_cute as cute
from basedsl_cute import arch
from basedsl_cute.sim import CoordinateError, RaceError, SimulationWarning

pytestmark = pytest.mark.usefixtures("sim")


@cute.kernel
def exchange(x: cute.Tensor):
    t = arch.thread_idx()[0]
    x[0, 63 - t] = x[0, t] + 1.0


@cute.kernel
def beyond(x: cute.Tensor):
    t = arch.thread_idx()[0]
    x[0, t + 1] = 1.0


@cute.jit
def host(kernel: cute.Constexpr, x: cute.Tensor):
    kernel(x).launch(grid=1, block=64)


CHECKS = [("RACES", exchange, RaceError), ("COORDINATES", beyond, CoordinateError)]


@pytest.mark.parametrize(("check", "kernel", "error"), CHECKS)
def test_levels(monkeypatch, check, kernel, error):
    x = np.zeros((2, 64), np.float32)
    with pytest.raises(error) as caught:
        host(kernel, x)
    headline = str(caught.value).splitlines()[0]
    monkeypatch.setenv(f"CUTE_DSL_CHECK_{check}", "warn")
    with pytest.warns(SimulationWarning) as found:
        host(kernel, x)
    assert [str(one.message).splitlines()[0] for one in found] == [headline]
    monkeypatch.setenv(f"CUTE_DSL_CHECK_{check}", "off")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        host(kernel, x)
