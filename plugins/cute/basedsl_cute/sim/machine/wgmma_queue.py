"""wgmma in flight: an instruction reads shared memory and writes its accumulators when its group is
waited for (PTX ISA, wgmma.wait_group), so that a missing wait shows.

Until then nobody may touch the registers that it uses, and what was done to them before is ordered
by a fence (PTX ISA, wgmma.fence).
"""

from __future__ import annotations

import itertools
from collections.abc import Callable

from basedsl import Span
from basedsl_cute.sim.errors import SimulationError
from basedsl_cute.sim.machine.access import RegisterArray
from basedsl_cute.sim.machine.state import (
    Group,
    PendingRegisters,
    PendingWgmma,
    TouchedRows,
)
from basedsl_cute.sim.machine.vector_clock import Stamp
from basedsl_cute.sim.site import Site


def fence_wgmma(g: Group) -> None:
    """Order what was done to registers so far before the wgmma from here on (wgmma.fence)."""
    queue = g.wgmmas
    queue.fenced = True
    for touched in queue.touched:
        touched.clear()


def issue_wgmma(
    g: Group,
    site: Site,
    perform: Callable[[], None],
    registers: tuple[PendingRegisters, ...],
    stamps: tuple[Stamp, ...],
) -> None:
    """Queue an instruction; `perform` executes it. Raises SimulationError if no fence orders its
    `registers`.
    """
    _check_fenced(g, site, registers)
    queue = g.wgmmas
    queue.issued.append(site)
    queue.pending.append(PendingWgmma(queue.committed, perform, registers, stamps))
    queue.registers += registers


def commit_wgmma(g: Group) -> None:
    """Close the group of the wgmma issued so far (wgmma.commit_group)."""
    g.wgmmas.committed += 1


def wait_wgmma(g: Group, groups: int) -> None:
    """Execute all but the last `groups` groups (wgmma.wait_group)."""
    queue = g.wgmmas
    due = [p for p in queue.pending if p.number < queue.committed - groups]
    queue.pending = queue.pending[len(due) :]
    queue.registers = []  # the instructions themselves may touch their registers
    queue.performing = True
    for wgmma in due:
        wgmma.perform()
        for stamp in wgmma.stamps:
            if g.shadow is not None:
                g.shadow.order.end_access(stamp, g.agent)
    queue.performing = False
    queue.registers = [registers for p in queue.pending for registers in p.registers]


def touch_registers(
    g: Group, array: RegisterArray, first: int, end: int, writes: bool, site: Site
) -> None:
    """Record that an ordinary instruction reads or writes rows `first` to `end` of an array. Raises
    SimulationError if a wgmma in flight uses them.
    """
    queue = g.wgmmas
    if queue.performing:
        return
    for used in queue.registers:
        touched = first < used.end and used.first < end
        if used.array is array and (writes or used.is_accumulator) and touched:
            raise SimulationError(
                f"{'a write to' if writes else 'a read of'} {_operand(used)} of a wgmma that is "
                "still running",
                site,
                g.thread(0),
                hint="first warpgroup.commit_group() and warpgroup.wait_group(0), or another "
                "number of later groups that may go on",
                notes=(("the wgmma", used.site.span),),
            )
    touches = queue.touched[writes]
    before = touches.get(array)
    if before is None:
        touches[array] = TouchedRows(first, end, site)
    elif first < before.first or before.end < end:
        touches[array] = TouchedRows(min(first, before.first), max(end, before.end), site)


def _check_fenced(g: Group, site: Site, registers: tuple[PendingRegisters, ...]) -> None:
    """Raise if nothing orders what was done to an instruction's registers before it."""
    hint = "warpgroup.fence() before the first wgmma, and after registers of one were used"
    queue = g.wgmmas
    if not queue.fenced:
        raise SimulationError("a wgmma with no warpgroup.fence() before", site, g.thread(0), hint)
    for use in registers:
        for writes in (True, False) if use.is_accumulator else (True,):
            at = queue.touched[writes].get(use.array)
            if at is not None and at.first < use.end and use.first < at.end:
                verb = "written" if writes else "read"
                raise SimulationError(
                    f"{_operand(use)} of this wgmma were {verb} since the last warpgroup.fence()",
                    site,
                    g.thread(0),
                    hint,
                    notes=((f"{verb} here", at.site.span),),
                )


def check_warpgroups_agree(groups: list[Group]) -> None:
    """Raise SimulationError unless the four warps of each warpgroup have executed the same wgmma;
    for blocks that have ended.
    """
    for first, other in itertools.pairwise(groups):
        if first.block is not other.block or first.first_warp // 4 != other.first_warp // 4:
            continue
        one, two = first.wgmmas.issued, other.wgmmas.issued
        if one == two:
            continue
        at = next((i for i, (a, b) in enumerate(zip(one, two, strict=False)) if a is not b), None)
        at = min(len(one), len(two)) if at is None else at
        has, lacks = (first, other) if len(one) > at else (other, first)
        site = has.wgmmas.issued[at]
        notes: list[tuple[str, Span | None]] = [
            (f"warp {has.first_warp} executes this one as number {at + 1}", None)
        ]
        notes += [
            (f"warp {lacks.first_warp} is here instead", x.span)
            for x in lacks.wgmmas.issued[at : at + 1]
        ]
        warps = f"warps {has.first_warp} and {lacks.first_warp}"
        raise SimulationError(
            f"{warps} of one warpgroup execute different wgmma",
            site,
            has.thread(0),
            hint="a wgmma is executed by the four warps of a warpgroup, 4 n to 4 n + 3",
            notes=tuple(notes),
        )


def _operand(used: PendingRegisters) -> str:
    return "the accumulators" if used.is_accumulator else "operand A in registers"
