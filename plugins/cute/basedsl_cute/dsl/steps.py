"""Pipeline steps that produce data beside IR: launch tables, simulator programs, reports."""

from __future__ import annotations

import contextlib
import pickle
from typing import Any

from basedsl import DSLError, PipelineContext
from basedsl_cute.lowering.host.launch import launch_table
from basedsl_cute.lowering.kernel_build import kernel_build


def simulator_records(op: Any, context: PipelineContext) -> bytes:
    """Read lowered kernels into plain Python records, which the simulator translates."""
    from basedsl_cute.sim.translate.records import read_kernel

    names = [entry.name for entry in launch_table(op, context.bindings).kernels]
    return pickle.dumps({name: read_kernel(op, name) for name in names})


def simulator_programs(op: Any, context: PipelineContext) -> bytes:
    """Translate the records to Python. A kernel with an operation that the simulator has no rule
    for is left out; launching it raises the error.
    """
    from basedsl_cute.sim import SimKernel, SimOptions

    made = {}
    options = SimOptions.of(context.options)
    for name, record in pickle.loads(context.artifacts["kernels"]).items():
        with contextlib.suppress(DSLError):
            made[name] = SimKernel(record).prepared(options).pack()
    return pickle.dumps(made)


def launch_records(op: Any, context: PipelineContext) -> bytes:
    """List the kernels that host code launches, with their parameters and shared memory.

    This step precedes the lowering to NVVM, which hides parameters that are passed by value.
    """
    table = kernel_build(context).launches = launch_table(op, context.bindings)
    return pickle.dumps(table)


def resource_report(op: Any, context: PipelineContext) -> str:
    """Report the registers, spills and shared memory of each kernel, as ptxas prints them."""
    made = kernel_build(context).assembly
    assert made is not None
    lines = [f"{name}: {resources}" for name, resources in made.kernels.items()]
    return "\n".join([*lines, *made.warnings]) + "\n"
