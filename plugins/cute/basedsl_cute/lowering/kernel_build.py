"""The record in which steps of cute's pipelines leave notes for later steps of the same run."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from basedsl import PipelineContext, Snapshot
from basedsl_cute.lowering.host.launch_abi import LaunchTable

if TYPE_CHECKING:
    from basedsl_cute.lowering.ptx.ptxas import Assembly, Running  # the simulator needs no ptxas


@dataclass(eq=False, repr=False)
class KernelBuild:
    """The state of one compilation's kernels; a field is None before the step that sets it."""

    #: The kernels that host code launches.
    launches: LaunchTable | None = None
    #: The version of the PTX ISA that the kernels need, 0 if the target's is enough.
    ptx_version: int = 0
    #: ptxas at work, from the step `ptx` until the step `cubin` waits for it.
    ptxas: Running | None = None
    #: The machine code and the resource report of ptxas.
    assembly: Assembly | None = None
    #: How the step `ptx` makes PTX, and its input: to make it again with line tables.
    emitted: tuple[Callable[[Any, PipelineContext], str], Snapshot | None] | None = None


def kernel_build(context: PipelineContext) -> KernelBuild:
    """The record of this run, made when the first step asks for it."""
    if context.extension is None:
        context.extension = KernelBuild()
    record: KernelBuild = context.extension
    return record
