"""Predictions: the time of a launch on a GPU, and what limits it.

A few blocks are simulated, and replayed on one modelled multiprocessor with as many of them
resident as registers and shared memory allow. A multiprocessor gets the launch's blocks divided by
the number of multiprocessors, rounded up; beyond `WAVES` rounds of residents, each further block
takes what the last ones took on average.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from basedsl_cute.hardware.occupancy import occupancy
from basedsl_cute.hardware.targets import target_of
from basedsl_cute.sim.profiling.counting import KernelRun
from basedsl_cute.sim.profiling.rates import Rates
from basedsl_cute.sim.profiling.replay import (
    Multiprocessor,
    Recording,
    Slice,
    fraction_from_memory,
)
from basedsl_cute.sim.profiling.timeline import write_timeline

WAVES = 3


@dataclass
class Prediction:
    """The predicted time of one launch, in seconds.

    `bounds` are the seconds that each unit alone would need, `waits` the part of the warps' time
    spent waiting for each kind of operation. `flops` are of tensor cores and floats, `bytes` those
    that cross the memory interface, of the whole launch.
    """

    kernel: str
    arch: str
    seconds: float
    launch_seconds: float
    bounds: dict[str, float]
    waits: dict[str, float]
    resident: int
    flops: float
    bytes: float
    rates: Rates
    slices: list[Slice]
    peak: float = 0.0  # operations in a second that the kernel's units can do

    @property
    def limited_by(self) -> str:
        """The unit that is busy for the greatest part of the time; latency if none is for half."""
        name, seconds = max(self.bounds.items(), key=lambda pair: pair[1])
        if seconds < 0.5 * (self.seconds - self.launch_seconds):
            return "latency"
        return name

    def timeline(self, path: str | Path) -> Path:
        """Write what warps and units do as a file for ui.perfetto.dev, and return its path. Raises
        ValueError for a prediction that was made without `timeline=True`.
        """
        if not self.slices:
            raise ValueError("predict(..., timeline=True) keeps what a timeline draws")
        return write_timeline(path, [(self.kernel, self.slices, self.rates.clock)])

    def __str__(self) -> str:
        bounds = sorted(self.bounds.items(), key=lambda pair: -pair[1])
        shown = ", ".join(f"{name} {_time(t)}" for name, t in bounds if t > 0.02 * self.seconds)
        waited = sorted(self.waits.items(), key=lambda pair: -pair[1])[:4]
        lines = [
            f"{self.kernel}: {_time(self.seconds)} predicted for {self.arch}, limited by "
            f"{self.limited_by}",
            f"  units alone: {shown or 'none'}; launching {_time(self.launch_seconds)}",
            "  warps wait: "
            + (", ".join(f"{part:.0%} for {name}" for name, part in waited) or "-"),
            f"  {self.resident} blocks resident; rates: {self.rates.source}",
        ]
        return "\n".join(lines)


def predict_run(
    run: KernelRun, rates: Rates, arch: str, registers: int | None, keeps_slices: bool = False
) -> Prediction:
    """Predict the time of a launch whose first blocks were counted with their events."""
    launch = run.launch
    assert launch is not None
    blocks = math.prod(launch.grid)
    resident = max(
        occupancy(target_of(arch), launch.threads, registers or 0, launch.shared_size).blocks, 1
    )
    processors = min(rates.processors, blocks)
    each = -(-blocks // rates.processors)
    cold = fraction_from_memory(run)
    recording = Recording(run, rates)

    def replayed(count: int, keeps: bool = False) -> Any:
        return Multiprocessor(recording, rates, resident, count, processors, cold, keeps).replay()

    most = min(each, WAVES * resident)
    full = replayed(most, keeps_slices)
    cycles = full.cycles
    scale = each / most
    if each > most:
        before = replayed(max(most - resident, 1))
        rate = (full.cycles - before.cycles) / (most - max(most - resident, 1))
        cycles += (each - most) * rate
    busy = {name: number * scale / rates.clock for name, number in full.busy.items()}
    waited = sum(full.waits.values())
    whole = blocks / launch.blocks
    tensor = sum(c.warps * o.flops for c in run.chunks for o in c.operations) * whole
    floats = sum(
        c.lanes * o.count * (2 if o.kind == "float multiply-add" else 1)
        for c in run.chunks
        for o in c.operations
        if o.kind.startswith("float ")
    )
    moved = sum(run.requested.values()) * whole * cold
    wgmma = any(o.op.name == "cute.ptx_wgmma" for c in run.chunks for o in c.operations)
    unit = (rates.wgmma if wgmma else rates.mma) if tensor else 64.0 * rates.fma
    return Prediction(
        run.kernel, arch, cycles / rates.clock + rates.launch, rates.launch, busy,
        {name: number / waited for name, number in full.waits.items()} if waited else {},
        resident, tensor or floats * whole, moved, rates, full.slices,
        unit * rates.processors * rates.clock,
    )  # fmt: skip


def _time(seconds: float) -> str:
    for unit, size in (("s", 1.0), ("ms", 1e-3), ("us", 1e-6)):
        if seconds >= size:
            return f"{seconds / size:.3g} {unit}"
    return f"{seconds * 1e9:.3g} ns"
