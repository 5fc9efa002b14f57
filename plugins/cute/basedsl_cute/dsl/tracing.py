"""Calls of kernels in traced host code, and the checks of a traced module."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from basedsl import DSLError, DSLFunction, Trace, current_trace_or_none
from basedsl_cute.dialect.cute_trace import cute_trace
from basedsl_cute.hardware.targets import Target
from basedsl_cute.host.kernel_launch import KernelCall, check_launched
from basedsl_cute.host.read_only import check_read_only


def kernel_call(
    kernel: DSLFunction,
    args: tuple[Any, ...],
    kwargs: dict[str, Any],
    target: Callable[[Any], Target],
) -> KernelCall:
    """Return the call of `kernel` that the program launches; `target` gives that of a
    compilation's options.
    """
    trace = current_trace_or_none()
    if trace is not None:
        on_simulator = not target(trace.options).is_gpu
        asked = trace.options.check_coordinates != "off"
        cute_trace(trace).checks_coordinates = on_simulator and asked
    return KernelCall(kernel, args, kwargs)


def check_traced(trace: Trace, target: Target) -> None:
    """Raise DSLError for a module that traces of programs must not leave: a kernel that was not
    launched, a store to a read-only array, host code that accesses memory of the GPU.
    """
    check_launched(trace)
    check_read_only(trace)
    access = cute_trace(trace).host_access
    if access is not None and target.is_gpu:
        _check_host_access(trace, access)


def _check_host_access(trace: Trace, span: Any) -> None:
    """Raise DSLError for host code that accesses an element of a tensor in GPU memory."""
    record = cute_trace(trace)
    name = record.on_gpu
    if name is None and record.gpu_module is None:
        return
    why = "for the kernels that this function launches, its memory is the GPU's"
    if name is not None:
        why = f"the memory of '{name}' is the GPU's"
    raise DSLError(
        f"an element of a tensor is read or written on the host; {why}",
        span,
        hint="do it in a kernel, or in a function of its own that gets an array in host memory",
    )
