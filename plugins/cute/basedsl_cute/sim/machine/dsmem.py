"""Stores into the shared memory of other blocks of the cluster (PTX ISA, st.async)."""

from __future__ import annotations

import functools
from typing import Any

import numpy as np

from basedsl_cute.sim.errors import MemoryAccessError, SimulationError
from basedsl_cute.sim.machine import races
from basedsl_cute.sim.machine.cluster import owner_block
from basedsl_cute.sim.machine.mbarriers import find_mbarrier, land_bytes, send_to_mbarrier
from basedsl_cute.sim.machine.state import Group, Mask
from basedsl_cute.sim.site import Site


def store_async(
    g: Group, m: Mask, site: Site, target: Any, barrier: Any, value: Any, size: int
) -> None:
    """Store `size` bytes of each lane at its address `target`. They arrive when someone next looks
    at the mbarrier at the address `barrier`, which counts them.
    """
    data = np.ascontiguousarray(value.T).view(np.uint8).reshape(g.lanes, size)
    for lane in range(g.lanes) if m is None else np.flatnonzero(m).tolist():
        block, at = owner_block(g, int(target[lane]), lane, site)
        there, word = owner_block(g, int(barrier[lane]), lane, site)
        if there is not block:
            raise SimulationError(
                f"a store into block {block.rank} of the cluster completes an mbarrier of block "
                f"{there.rank}",
                site,
                g.thread(lane),
                hint="the mbarrier is in the block that the store goes to",
            )
        shared = block.shared
        if at % size or not shared.base <= at <= shared.end - size:
            raise MemoryAccessError(
                f"a store of {size} bytes to {at:#x} is misaligned or beyond the shared memory",
                site,
                g.thread(lane),
                notes=((f"the block's shared memory ends at {shared.end:#x}", None),),
            )
        find_mbarrier(block, word, g, site, lane)
        place = np.arange(at - shared.base, at - shared.base + size)
        stamp = None
        if block.shadow is not None:
            stamp = races.begin_async_write(
                block.shadow, g, site, "asynchronous store", place, lane
            )
        land = functools.partial(land_bytes, block, word, place, data[lane].copy(), stamp)
        send_to_mbarrier(block, word, land)
