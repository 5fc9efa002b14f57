"""Questions of a program about the machine that it runs on, a GPU or the simulator."""

from __future__ import annotations

from basedsl import current_trace_or_none
from basedsl_cute.dsl.cute import CUTE
from basedsl_cute.hardware.targets import Target


def current_target() -> Target:
    """Return the target that a call compiles for at this moment; while a function is traced, the
    one that it is compiled for.
    """
    trace = current_trace_or_none()
    if trace is not None and trace.language is CUTE.language and trace.options is not None:
        return CUTE.language.target(trace.options)
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
