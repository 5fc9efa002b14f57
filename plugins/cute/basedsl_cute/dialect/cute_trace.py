"""The record that cute keeps beside the core's trace while a function is traced."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from basedsl import Span, Trace


@dataclass(eq=False, repr=False)
class CuteTrace:
    """The record of one compilation's kernels and host code."""

    #: The `gpu.module` of the kernels, made with the first one.
    gpu_module: Any = None
    #: The `KernelCall`s made: each must be launched.
    kernel_calls: list[Any] = field(default_factory=list)
    #: The number of each symbolic extent or stride, and the argument where it was met first.
    symbols: dict[str, tuple[Any, str]] = field(default_factory=dict)
    #: True once the kernel that is being traced has allocated shared memory.
    allocates: bool = False
    #: The first place where host code reads or writes an element of a tensor.
    host_access: Span | None = None
    #: True if kernels check the coordinates of elements: for the simulator.
    checks_coordinates: bool = False
    #: The values of arguments whose arrays are read-only, with the arguments' names.
    read_only: list[tuple[Any, str]] = field(default_factory=list)
    #: The parameters of kernels in the IR, with what each launch passes.
    kernel_operands: list[tuple[Any, Any]] = field(default_factory=list)
    #: The name of an argument whose memory only the GPU reaches.
    on_gpu: str | None = None


def cute_trace(trace: Trace) -> CuteTrace:
    """The record of `trace`, a trace of cute's."""
    record: CuteTrace = trace.extension
    return record
