"""Rates of a GPU's units: what the clock of a profile counts with.

Those of an H200 were measured by `bench/gpu/units.py`, whose results lie beside this module as
`h200.json`, the copy of a file in `bench/results`. Those of other architectures are derived from
them by published figures: `derived_from` says which.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from basedsl import DSLCallError

# Where the measured rates are, by architecture.
_MEASURED = {"sm_90a": "h200.json", "sm_90": "h200.json"}


@dataclass(frozen=True)
class Rates:
    """Rates of a GPU: `clock` in Hz, latencies in cycles, throughputs of one multiprocessor in a
    cycle: warp instructions, bytes, wavefronts of shared memory, operations of tensor cores.
    `memory` is bytes of HBM in a second for the whole GPU; `launch` and `block_start` are seconds
    and cycles. Where memory is busy for a part u of the time, an access takes `memory_queue` times
    u / (2 - 2 u) cycles longer (the waiting time of a queue with constant service). `source` says
    where they come from.
    """

    source: str
    processors: int
    clock: float
    issue: float
    fma: float
    integer: float
    special: float
    warp: float
    arithmetic_latency: float
    special_latency: float
    warp_latency: float
    shared_latency: float
    l2_latency: float
    memory_latency: float
    memory_queue: float
    l2: float
    memory: float
    l2_size: int
    mma: float
    mma_latency: float
    wgmma: float
    wgmma_latency: float
    tma_latency: float
    barrier: float
    barrier_warp: float
    mbarrier: float
    launch: float
    block_start: float


def rates_of(arch: str) -> Rates:
    """The rates of the GPU of an architecture. Raises DSLCallError for one that has
    none."""
    if arch in _MEASURED:
        facts = json.loads((Path(__file__).parent / _MEASURED[arch]).read_text())
        return measured_rates(facts)
    if arch in _DERIVED:
        base, source, changes = _DERIVED[arch]
        known = rates_of(base)
        scaled = {name: getattr(known, name) * factor for name, factor in changes.items()}
        scaled["processors"] = round(scaled.get("processors", known.processors))
        return replace(known, source=f"derived from {known.source}: {source}", **scaled)
    names = ", ".join(sorted([*_MEASURED, *_DERIVED]))
    raise DSLCallError(f"no rates are known for {arch!r}", hint=f"they are for {names}")


def measured_rates(facts: dict[str, Any]) -> Rates:
    """The rates that a file of `bench/gpu/units.py` holds."""
    units = facts["units"]

    def unit(name: str, otherwise: float | None = None) -> float:
        if name not in units and otherwise is not None:
            return otherwise
        return float(units[name]["value"])

    clock = unit("clock") * 1e6
    processors = int(facts["multiprocessors"])
    barrier = (unit("barrier_32warps") - unit("barrier_4warps")) / 28
    per_cycle = 1e12 / clock / processors
    # By Little's law, from the bytes in flight: with one warp on a multiprocessor, and with 32.
    latency, loaded = (
        512 * warps / (unit(f"hbm_read_{warps}warps") * 1e9 / clock / processors)
        for warps in (1, 32)
    )
    use = unit("hbm_read_32warps") / unit("hbm_read")
    return Rates(
        source=f"{facts['device']}, measured by {facts['program']}",
        processors=processors,
        clock=clock,
        issue=4.0,  # one instruction a cycle in each of the four partitions
        fma=4.0,
        integer=unit("alu_rate"),
        special=unit("mufu_rate"),
        warp=unit("shuffle_rate"),
        arithmetic_latency=unit("ffma_latency"),
        special_latency=unit("mufu_latency"),
        warp_latency=unit("shared_latency"),
        shared_latency=unit("shared_latency"),
        l2_latency=unit("l2_latency"),
        memory_latency=latency,
        memory_queue=(loaded - latency) / (use / (2 - 2 * use)),
        l2=max(unit("l2_read_32mib") * 1e9 / clock / processors, unit("tma_l2_32768x4")),
        memory=unit("hbm_copy_1") * 1e9,
        l2_size=int(facts["l2_bytes"]),
        mma=unit("mma_sustained", unit("mma_rate_16warps") / per_cycle) * per_cycle,
        mma_latency=unit("mma_latency"),
        wgmma=unit("wgmma_sustained", unit("wgmma_rate_n256_2groups") / per_cycle) * per_cycle,
        wgmma_latency=unit("wgmma_trip_n64") - unit("wgmma_step_n64"),
        tma_latency=unit("tma_l2_1024x1_trip") - unit("l2_latency"),
        barrier=unit("barrier_4warps") - 4 * barrier,
        barrier_warp=barrier,
        mbarrier=unit("mbarrier_1warps"),
        launch=unit("launch_queued", 1.5) * 1e-6,
        block_start=unit("block_start_256") * 1e-9 * clock * processors,
    )


_DERIVED: dict[str, tuple[str, str, dict[str, float]]] = {
    "sm_100a": (
        "sm_90a",
        "148 multiprocessors, 8 TB/s, twice the dense fp16 rate (NVIDIA Blackwell Architecture "
        "Technical Brief)",
        {"processors": 148 / 132, "memory": 8.0 / 4.8, "wgmma": 2.0},
    ),
    "sm_80": (
        "sm_90a",
        "108 multiprocessors at 1.41 GHz, 2.0 TB/s, 1024 dense fp16 multiply-adds a cycle (NVIDIA "
        "A100 Tensor Core GPU Architecture)",
        {"processors": 108 / 132, "clock": 1.41 / 1.95, "memory": 2.0 / 4.8, "mma": 2048 / 2706},
    ),
}
