"""Registers that warpgroups give back and ask for (PTX ISA, setmaxnreg).

A block keeps the registers that it was launched with: at most an equal share of the 65536 of a
multiprocessor for each thread, in multiples of 8, and 255. What a warpgroup asks for beyond what
the others have given back it waits for.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from basedsl_cute.sim.machine.barriers import require_whole_group
from basedsl_cute.sim.machine.schedule import Wait
from basedsl_cute.sim.site import Site

if TYPE_CHECKING:
    from basedsl_cute.sim.machine.group import Group

REGISTERS = 65536
MOST_AT_LAUNCH = 255
WARPGROUP = 4  # warps


class RegisterPool:
    """Registers a thread of each warp, and how many the block has for all of them."""

    def __init__(self, warps: int) -> None:
        each = REGISTERS // (32 * warps)
        self.launched = each // 8 * 8 if each <= MOST_AT_LAUNCH else MOST_AT_LAUNCH
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
        groups = [pool.held[i] for i in range(0, len(pool.held), WARPGROUP)]
        room = pool.total // WARPGROUP
        return (
            f"{count} registers a thread: the warpgroups have {' + '.join(map(str, groups))}, and "
            f"all of them together at most {room}"
        )

    return None if ready() else Wait(ready, describe, site)
