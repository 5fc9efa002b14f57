"""Clusters: blocks that run together, and the barrier of all their threads (PTX ISA,
barrier.cluster). A block's rank is its place in `Cluster.blocks`.
"""

from __future__ import annotations

from basedsl_cute.sim.errors import SimulationError
from basedsl_cute.sim.machine.barriers import require_whole_group
from basedsl_cute.sim.machine.memory import CLUSTER_SHIFT
from basedsl_cute.sim.machine.schedule import Wait
from basedsl_cute.sim.machine.state import Block, Group, Mask
from basedsl_cute.sim.site import Site


def cluster_arrive(g: Group, m: Mask, site: Site, branch: Site | None) -> None:
    """Let the warp arrive at the cluster's barrier and go on."""
    require_whole_group(g, m, site, branch)
    cluster = g.block.cluster
    if g.cluster_waits < g.cluster_phase:
        raise SimulationError(
            "cluster_arrive() for the second time with no cluster_wait() between", site, g.thread(0)
        )
    g.cluster_phase += 1
    cluster.arrived += 1
    if g.block.order is not None:
        is_relaxed = site.op == "nvvm.cluster.arrive.relaxed"
        order = g.block.order
        (order.release_mbarriers if is_relaxed else order.release)("cluster", g.agent)
    if cluster.arrived == cluster.warps:
        cluster.arrived = 0
        cluster.phase += 1
        if g.block.order is not None:
            g.block.order.publish("cluster")


def cluster_wait(g: Group, m: Mask, site: Site, branch: Site | None) -> Wait | None:
    """The wait until the phase that the warp has arrived at is complete; None if it is."""
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


def leave_cluster_barrier(g: Group) -> None:
    """Let the warp go on, with knowledge of what the others did before they arrived."""
    if g.block.order is not None:
        g.block.order.acquire("cluster", g.agent)


def owner_block(g: Group, address: int, lane: int, site: Site) -> tuple[Block, int]:
    """The block whose shared memory an address of the cluster means, and the address there. Raises
    SimulationError for a rank that the cluster does not have.
    """
    rank, offset = address >> CLUSTER_SHIFT, address & ((1 << CLUSTER_SHIFT) - 1)
    if not rank:
        return g.block, address
    blocks = g.block.cluster.blocks
    if rank > len(blocks):
        message = f"block {rank - 1} of a cluster of {len(blocks)}"
        raise SimulationError(message, site, g.thread(lane))
    return blocks[rank - 1], offset
