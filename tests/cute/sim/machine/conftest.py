"""Parts of a simulated machine, made by hand: no kernel is translated."""

from __future__ import annotations

import pytest

from basedsl_cute.hardware.targets import WARP_SIZE
from basedsl_cute.sim import NVIDIA, Memory, SimOptions
from basedsl_cute.sim.machine.lanes import Lanes
from basedsl_cute.sim.machine.memory import SHARED_BASE, private_segment
from basedsl_cute.sim.machine.memory_map import MemoryMap
from basedsl_cute.sim.machine.shadow_memory import ShadowMemory
from basedsl_cute.sim.machine.state import Block, Cluster, Group, SimLaunch
from basedsl_cute.sim.machine.vector_clock import VectorClocks


def make_groups(warps: int, blocks: int = 1, size: int = 64) -> list[Group]:
    """The warps of a cluster whose blocks have `size` bytes of shared memory, `tile`, and a shadow
    of it.
    """
    memory_map = MemoryMap()
    memory_map.static_size = size
    memory_map.variables = [(SHARED_BASE, "tile", size)]
    extent = (warps * WARP_SIZE, 1, 1)
    options = SimOptions(check_races="error")
    launch = SimLaunch((blocks, 1, 1), extent, memory_map, 0, Memory(), {}, options, NVIDIA)
    order = VectorClocks(warps * blocks)
    made = []
    for rank in range(blocks):
        shared = private_segment(SHARED_BASE, size, 1, "shared memory", "shared", False)
        shadow = ShadowMemory(order, rank, warps, size)
        made.append(Block((rank, 0, 0), rank, extent[0], warps, shared, shadow, rank))
    cluster = Cluster(made, warps * blocks)
    groups = []
    for block in made:
        block.cluster = cluster
        for warp in range(warps):
            lanes = Lanes(extent, warp * WARP_SIZE, WARP_SIZE, (1, 1, 1), WARP_SIZE)
            groups.append(Group(launch, lanes, block, warp))
    return groups


@pytest.fixture
def warps():
    """`warps(count, blocks=1, size=64)`: groups that share memory and clocks."""
    return make_groups
