"""Registers that warpgroups give back and ask for (PTX ISA, setmaxnreg).

A warpgroup that asks for more than the others have given back waits for them.
"""

from __future__ import annotations

from basedsl_cute.hardware.targets import WARPS_PER_WARPGROUP
from basedsl_cute.sim.machine.barriers import require_whole_group
from basedsl_cute.sim.machine.schedule import Wait
from basedsl_cute.sim.machine.state import Group, Mask
from basedsl_cute.sim.site import Site


def set_max_registers(
    g: Group, count: int, m: Mask, site: Site, branch: Site | None
) -> Wait | None:
    """Let the warp hold `count` registers a thread: the wait until it does, None if it does now."""
    require_whole_group(g, m, site, branch)
    pool = g.block.registers
    warp = g.first_warp

    def ready() -> bool:
        if sum(pool.held) - pool.held[warp] + count > pool.total:
            return False
        pool.held[warp] = count
        return True

    def describe() -> str:
        groups = [pool.held[i] for i in range(0, len(pool.held), WARPS_PER_WARPGROUP)]
        room = pool.total // WARPS_PER_WARPGROUP
        return (
            f"{count} registers a thread: the warpgroups have {' + '.join(map(str, groups))}, and "
            f"all of them together at most {room}"
        )

    return None if ready() else Wait(ready, describe, site)
