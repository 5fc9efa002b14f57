"""Clusters: blocks that run together, the barrier of all their threads (PTX ISA, barrier.cluster),
and stores into each other's shared memory. A block's rank is its place in `blocks`.
"""

from __future__ import annotations

import functools
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from basedsl_cute.sim.errors import MemoryAccessError, SimulationError
from basedsl_cute.sim.machine.barriers import require_whole_group
from basedsl_cute.sim.machine.memory import CLUSTER_SHIFT
from basedsl_cute.sim.machine.schedule import Wait
from basedsl_cute.sim.site import Site

if TYPE_CHECKING:
    from basedsl_cute.sim.machine.block import Block
    from basedsl_cute.sim.machine.group import Group


@dataclass(slots=True, eq=False, repr=False)
class Cluster:
    """Blocks in the order of their ranks, with `warps` in all of them."""

    blocks: list[Block]
    warps: int
    arrived: int = 0
    phase: int = 0  # of the barrier: how often it has completed


def arrive(g: Group, m: Any, site: Site, branch: Site | None) -> None:
    """The warp arrives at the cluster's barrier and goes on."""
    require_whole_group(g, m, site, branch)
    cluster = g.block.cluster
    if g.cluster_waits < g.cluster_phase:
        raise SimulationError(
            "cluster_arrive() for the second time with no cluster_wait() between", site, g.thread(0)
        )
    g.cluster_phase += 1
    cluster.arrived += 1
    if g.races is not None:
        is_relaxed = site.op == "nvvm.cluster.arrive.relaxed"
        order = g.races.order
        (order.release_mbarriers if is_relaxed else order.release)("cluster", g.agent)
    if cluster.arrived == cluster.warps:
        cluster.arrived = 0
        cluster.phase += 1
        if g.races is not None:
            g.races.order.publish("cluster")


def wait(g: Group, m: Any, site: Site, branch: Site | None) -> Wait | None:
    """What to wait for until the phase that the warp has arrived at is complete."""
    require_whole_group(g, m, site, branch)
    cluster, phase = g.block.cluster, g.cluster_phase
    if g.cluster_waits == phase:
        raise SimulationError("cluster_wait() with no cluster_arrive() before", site, g.thread(0))
    g.cluster_waits += 1
    if cluster.phase >= phase:
        return None

    def describe() -> str:
        return f"the cluster's barrier ({cluster.arrived} of {cluster.warps} warps have arrived)"

    return Wait(lambda: cluster.phase >= phase, describe, site)


def leave(g: Group) -> None:
    """The warp goes on: it knows what the others did before they arrived."""
    if g.races is not None:
        g.races.order.acquire("cluster", g.agent)


def home(g: Group, at: int, lane: int, site: Site) -> tuple[Block, int]:
    """The block whose shared memory an address of the cluster means, and the address there."""
    rank, offset = at >> CLUSTER_SHIFT, at & ((1 << CLUSTER_SHIFT) - 1)
    if not rank:
        return g.block, at
    blocks = g.block.cluster.blocks
    if rank > len(blocks):
        message = f"block {rank - 1} of a cluster of {len(blocks)}"
        raise SimulationError(message, site, g.thread(lane))
    return blocks[rank - 1], offset


def store(g: Group, m: Any, site: Site, target: Any, barrier: Any, value: Any, size: int) -> None:
    """st.async: the bytes arrive when someone next looks at the mbarrier, which counts them."""
    data = np.ascontiguousarray(value.T).view(np.uint8).reshape(g.lanes, size)
    for lane in range(g.lanes) if m is None else np.flatnonzero(m).tolist():
        block, at = home(g, int(target[lane]), lane, site)
        there, word = home(g, int(barrier[lane]), lane, site)
        if there is not block:
            raise SimulationError(
                f"a store into block {block.rank} of the cluster completes an mbarrier of block "
                f"{there.rank}: it must be in the same block",
                site,
                g.thread(lane),
            )
        shared = block.shared
        if at % size or not shared.base <= at <= shared.end - size:
            raise MemoryAccessError(
                f"a store of {size} bytes to shared address {at:#x} is misaligned or beyond the "
                f"block's shared memory, which ends at {shared.end:#x}",
                site,
                g.thread(lane),
            )
        block.mbarrier(word, g, site, lane)
        place = np.arange(at - shared.base, at - shared.base + size)
        stamp = None
        if block.races is not None:
            stamp = block.races.async_write(g, site, "asynchronous store", place, lane)
        block.send(word, functools.partial(block.land, word, place, data[lane].copy(), stamp))
