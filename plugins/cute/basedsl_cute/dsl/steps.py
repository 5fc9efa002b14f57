"""Pipeline steps that produce data beside IR: launch tables, simulator programs, reports."""

from __future__ import annotations

import contextlib
import json
import math
import pickle
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from basedsl import DSLError, DSLWarning, PipelineContext, Span, warn
from basedsl_cute.lowering.host.launch import launch_table
from basedsl_cute.lowering.host.launch_abi import KernelEntry, LaunchTable
from basedsl_cute.lowering.kernel_build import kernel_build

if TYPE_CHECKING:
    from basedsl_cute.lowering.ptx import ptxas  # the simulator needs none


class SpillWarning(DSLWarning):
    """A kernel that keeps values in memory because it has no registers left for them."""


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


def simulator_source(programs: bytes) -> str:
    """Return the Python that `simulator_programs` made of the kernels."""
    from basedsl_cute.sim import SimKernel

    def unknown() -> Any:
        raise LookupError("only a launch needs the record")

    packed: dict[str, bytes] = pickle.loads(programs)
    return "\n\n".join(SimKernel.unpack(one, unknown).source for one in packed.values())


def launch_records(op: Any, context: PipelineContext) -> bytes:
    """List the kernels that host code launches, with their parameters and shared memory.

    This step precedes the lowering to NVVM, which hides parameters that are passed by value.
    """
    table = kernel_build(context).launches = launch_table(op, context.bindings)
    return pickle.dumps(table)


def resource_report(op: Any, context: PipelineContext) -> str:
    """Report the resources of each kernel as JSON: what ptxas counts, and what launches add. Warn
    of spilled registers, at the Python line that line tables tell, else at the kernel's.
    """
    build = kernel_build(context)
    made, table = build.assembly, build.launches
    assert made is not None and table is not None
    entries = {entry.name: entry for entry in table.kernels}
    report = {}
    for name, found in made.kernels.items():
        entry = entries.get(name)
        report[name] = {**asdict(found), **({} if entry is None else _launched(entry))}
        if found.spills:
            _warn_of_spills(name, made, entry, context.options)
    for text in made.warnings:
        if not text.startswith(_RESTATED):
            warn(context.options, f"ptxas: {text}", span=_only_kernel(table))
    return json.dumps({"kernels": report, "warnings": list(made.warnings)}, indent=2) + "\n"


# Warnings of ptxas that say what this compiler knows: registers of launch bounds, spills.
_RESTATED = ("Registers are spilled",)


def _launched(entry: KernelEntry) -> dict[str, Any]:
    return {
        "dynamic_smem": entry.smem_bytes,
        "uses_dynamic_smem": entry.uses_dynamic_smem,
        "threads": None if entry.block is None else math.prod(entry.block),
    }


def _only_kernel(table: LaunchTable) -> Span | None:
    known = [entry for entry in table.kernels if entry.file]
    return Span(known[0].file, known[0].line) if len(known) == 1 else None


def _warn_of_spills(
    name: str, made: ptxas.Assembly, entry: KernelEntry | None, settings: Any
) -> None:
    found = made.kernels[name]
    span = Span(entry.file, entry.line) if entry is not None and entry.file else None
    if settings.lineinfo and entry is not None:
        from basedsl_cute.lowering.ptx.sass import spill_line

        line = spill_line(made.cubin, name, entry.file)
        span = span if line is None else Span(*line)
    warn(
        settings,
        f"the kernel {name!r} spills registers: a thread stores {found.spill_stores} bytes and "
        f"loads {found.spill_loads}",
        SpillWarning,
        span,
        hint="use smaller tiles or fewer live values, or allow more registers than "
        f"{found.registers} a thread",
    )
