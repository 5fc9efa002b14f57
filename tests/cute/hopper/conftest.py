"""`hopper`: the simulator, and the GPU where it is one of compute capability 9.0."""

import pytest


@pytest.fixture
def hopper(target):
    """Compile for this target; skipped on other GPUs."""
    if target == "gpu":
        from basedsl_cute.device import driver

        if driver.capability_or_none() != (9, 0):
            pytest.skip("needs compute capability 9.0")
    return target
