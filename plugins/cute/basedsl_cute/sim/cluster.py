"""Clusters: blocks that run together, and the barrier of all their threads (PTX ISA,
barrier.cluster). A block's rank is its place in `blocks`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from basedsl_cute.sim.barriers import require_whole_group
from basedsl_cute.sim.schedule import Wait
from basedsl_cute.sim.site import Site

if TYPE_CHECKING:
    from basedsl_cute.sim.block import Block
    from basedsl_cute.sim.group import Group


@dataclass(slots=True, eq=False)
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
    g.cluster_phase += 1
    cluster.arrived += 1
    if g.races is not None and site.op != "nvvm.cluster.arrive.relaxed":
        g.races.order.release("cluster", g.agent)
    if cluster.arrived == cluster.warps:
        cluster.arrived = 0
        cluster.phase += 1
        if g.races is not None:
            g.races.order.publish("cluster")


def wait(g: Group, m: Any, site: Site, branch: Site | None) -> Wait | None:
    """What to wait for until the phase that the warp has arrived at is complete."""
    require_whole_group(g, m, site, branch)
    cluster, phase = g.block.cluster, g.cluster_phase
    if cluster.phase >= phase:
        return None

    def describe() -> str:
        return f"the cluster's barrier ({cluster.arrived} of {cluster.warps} warps have arrived)"

    return Wait(lambda: cluster.phase >= phase, describe, site)


def leave(g: Group) -> None:
    """The warp goes on: it knows what the others did before they arrived."""
    if g.races is not None:
        g.races.order.acquire("cluster", g.agent)
