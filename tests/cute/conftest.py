"""Targets: a test that takes `target` runs on the simulator, and on the GPU where there is one."""

import pytest


@pytest.fixture(params=["sim", pytest.param("gpu", marks=pytest.mark.gpu)])
def target(request, monkeypatch):
    """Compile for this target, whatever the environment says."""
    if request.param == "sim":
        monkeypatch.setenv("CUTE_DSL_ARCH", "sim")
    else:
        monkeypatch.delenv("CUTE_DSL_ARCH", raising=False)
    return request.param


@pytest.fixture
def sim(monkeypatch):
    """Compile for the simulator."""
    monkeypatch.setenv("CUTE_DSL_ARCH", "sim")
