"""Registers that warpgroups give back and ask for (PTX ISA, setmaxnreg).

A block keeps the registers that it was launched with: for each thread an equal share of those of a
multiprocessor, in multiples of 8, and at most as many as one thread can have. A warpgroup that asks
for more than the others have given back waits for them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from basedsl_cute.hardware.targets import (
    MAX_REGISTERS_PER_THREAD,
    REGISTERS_PER_SM,
    WARP_SIZE,
    WARPS_PER_WARPGROUP,
)
from basedsl_cute.sim.machine.barriers import require_whole_group
from basedsl_cute.sim.machine.schedule import Wait
from basedsl_cute.sim.site import Site

if TYPE_CHECKING:
    from basedsl_cute.sim.machine.group import Group


class RegisterPool:
    """Registers a thread of each warp, and how many the block has for all of them."""

    def __init__(self, warps: int) -> None:
        each = REGISTERS_PER_SM // (WARP_SIZE * warps)
        most = MAX_REGISTERS_PER_THREAD
        self.launched = each // 8 * 8 if each <= most else most
        self.total = self.launched * warps
        self.held = [self.launched] * warps

    def would_fit(self, warp: int, count: int) -> bool:
        return sum(self.held) - self.held[warp] + count <= self.total


def change(g: Group, count: int, m: Any, site: Site, branch: Site | None) -> Wait | None:
    """The warp keeps `count` registers a thread; what to wait for before it has them."""
    require_whole_group(g, m, site, branch)
    pool: RegisterPool = g.block.registers
    warp = g.first_warp

    def ready() -> bool:
        if not pool.would_fit(warp, count):
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
