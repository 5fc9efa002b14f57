"""Requests to cancel launches (PTX ISA, clusterlaunchcontrol).

A GPU starts clusters as there is room for them, so that any number of those left can be cancelled.
Here a cluster gets at most half of those that had not started when it did, rounded up, in the
order of the grid: requests succeed, and fail while clusters are left. A response lands when someone
looks at its mbarrier.
"""

from __future__ import annotations

import functools
from typing import Any

import numpy as np

from basedsl_cute.sim.errors import MemoryAccessError, SimulationError
from basedsl_cute.sim.machine import races
from basedsl_cute.sim.machine.mbarriers import find_mbarrier, land_bytes, send_to_mbarrier
from basedsl_cute.sim.machine.state import Group, Mask
from basedsl_cute.sim.site import Site

_SIZE = 16  # bytes of a response: whether there is one, x, y, z


def try_cancel(g: Group, m: Mask, site: Site, response: Any, mbar: Any, to_cluster: bool) -> None:
    """Request a cluster for each active lane. Raises SimulationError after a request that failed,
    and for a response that is not aligned.
    """
    for lane in range(g.lanes) if m is None else np.flatnonzero(m).tolist():
        at, barrier = int(response[lane]), int(mbar[lane])
        shared, cluster = g.shared, g.block.cluster
        if at % _SIZE or not shared.base <= at <= shared.end - _SIZE:
            raise MemoryAccessError(
                f"a response of {_SIZE} bytes at {at:#x} is misaligned or beyond the shared memory",
                site,
                g.thread(lane),
            )
        if cluster.refused is not None:
            raise SimulationError(
                "clusterlaunchcontrol.try_cancel after a request that failed",
                site,
                g.thread(lane),
                hint="stop when the work tile is not valid",
                notes=(("that request was here", cluster.refused.span),),
            )
        first = None
        if cluster.cancelable > 0:
            first = g.launch.unstarted.cancel()
            cluster.cancelable -= 1
        if first is None:
            cluster.refused = site
        words = np.array([first is not None, *(first or (-1, -1, -1))], np.int32)
        place = (np.arange(at, at + _SIZE) - shared.base)[:, None]
        for block in cluster.blocks if to_cluster else [g.block]:
            find_mbarrier(block, barrier, g, site, lane)
            stamp = None
            if block.shadow is not None:
                stamp = races.begin_async_write(
                    block.shadow, g, site, "response to a request to cancel", place, lane
                )
            data = words.view(np.uint8)[:, None].copy()
            land = functools.partial(land_bytes, block, barrier, place, data, stamp)
            send_to_mbarrier(block, barrier, land)
