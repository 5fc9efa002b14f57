"""Questions of a program about the machine that it runs on, a GPU or the simulator."""

from __future__ import annotations

from basedsl_cute.dsl.cute import CUTE
from basedsl_cute.hardware.targets import Target


def current_target() -> Target:
    """Return the target that a call compiles for at this moment."""
    return CUTE.language.target(CUTE.options)


def target_description() -> str:
    """Return the target in words, for reports."""
    target = current_target()
    if not target.is_gpu:
        return "the CPU simulator (no CUDA driver and device here, or CUTE_DSL_ARCH=sim)"
    from basedsl_cute.device import driver

    if driver.is_available() and driver.device_count():
        return f"{driver.device().name} ({target.name})"
    return f"{target.name} (cross-compilation: no such GPU here)"


def synchronize() -> None:
    """Wait until all launched kernels have finished. On the simulator, launches return finished."""
    if current_target().is_gpu:
        from basedsl_cute.device import driver

        driver.synchronize()
