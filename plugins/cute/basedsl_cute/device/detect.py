"""Detection of the target: this machine's GPU architecture, or the simulator.

The environment variable CUTE_DSL_ARCH overrides it, also on a machine without a GPU, where
everything except launching works.
"""

from __future__ import annotations

import os

from basedsl_cute.device import driver
from basedsl_cute.hardware.targets import (
    ENVIRONMENT_VARIABLE,
    SIM,
    TARGETS,
    Target,
    target_for_capability,
    target_of,
)


def detect() -> Target:
    """The target that CUTE_DSL_ARCH names, or that of the current device, or the simulator."""
    asked = os.environ.get(ENVIRONMENT_VARIABLE)
    if asked:
        return target_of(asked)
    capability = driver.capability_or_none()
    return TARGETS[SIM] if capability is None else target_for_capability(*capability)
