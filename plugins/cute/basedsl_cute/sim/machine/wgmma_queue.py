"""wgmma in flight: an instruction reads shared memory and writes its accumulators when its group is
waited for (PTX ISA, wgmma.wait_group). Until then nobody may touch the registers that it uses, and
what was done to them before is ordered by a fence (PTX ISA, wgmma.fence).
"""

from __future__ import annotations

import itertools
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

from basedsl_cute.sim.errors import SimulationError
from basedsl_cute.sim.machine.races import Stamp
from basedsl_cute.sim.site import Site

if TYPE_CHECKING:
    from basedsl_cute.sim.machine.group import Group
    from basedsl_cute.sim.machine.registers import RegisterArray


class _Touched(NamedTuple):
    """Rows of a register array that ordinary instructions used last at `site`."""

    first: int
    end: int
    site: Site


_Touches = dict["RegisterArray", _Touched]


class Held(NamedTuple):
    """Rows `first` to `end` of a register array that an instruction in flight uses."""

    array: RegisterArray
    first: int
    end: int
    is_accumulator: bool
    site: Site


@dataclass(slots=True, eq=False, repr=False)
class _Product:
    number: int
    perform: Callable[[], None]
    held: tuple[Held, ...]
    stamps: tuple[Stamp, ...]


class ProductQueue:
    """The wgmma that one warp has issued and not waited for; `issued` are the places of all."""

    def __init__(self) -> None:
        self.issued: list[Site] = []
        self.held: list[Held] = []
        self._committed = 0
        self._products: list[_Product] = []
        self._fenced = False
        self._performing = False
        self._touched: tuple[_Touches, _Touches] = ({}, {})  # since the last fence: read, written

    def fence(self) -> None:
        """What was done to registers before is ordered before the instructions from here on."""
        self._fenced = True
        for touched in self._touched:
            touched.clear()

    def issue(
        self,
        g: Group,
        site: Site,
        perform: Callable[[], None],
        held: tuple[Held, ...],
        stamps: tuple[Stamp, ...],
    ) -> None:
        """Remember an instruction."""
        self._check_fenced(g, site, held)
        self.issued.append(site)
        self._products.append(_Product(self._committed, perform, held, stamps))
        self.held += held

    def commit(self) -> None:
        """Close the group of instructions issued so far."""
        self._committed += 1

    def wait(self, g: Group, groups: int) -> None:
        """Complete all but the last `groups` groups."""
        due = [p for p in self._products if p.number < self._committed - groups]
        self._products = self._products[len(due) :]
        self.held = []  # the instructions themselves may touch their registers
        self._performing = True
        for product in due:
            product.perform()
            for stamp in product.stamps:
                if g.races is not None:
                    g.races.order.complete(stamp, g.agent)
        self._performing = False
        self.held = [held for p in self._products for held in p.held]

    def touch(
        self, g: Group, array: RegisterArray, first: int, end: int, writes: bool, site: Site
    ) -> None:
        """An ordinary instruction reads or writes rows `first` to `end` of a register array: raise
        if a wgmma in flight uses them.
        """
        if self._performing:
            return
        for held in self.held:
            touched = first < held.end and held.first < end
            if held.array is array and (writes or held.is_accumulator) and touched:
                raise SimulationError(
                    f"{'a write to' if writes else 'a read of'} {_what(held)} of a wgmma that is "
                    "still running",
                    site,
                    g.thread(0),
                    hint="first warpgroup.commit_group() and warpgroup.wait_group(0), or another "
                    "number of later groups that may go on",
                    notes=(("the wgmma", held.site.span),),
                )
        touches = self._touched[writes]
        before = touches.get(array)
        if before is None:
            touches[array] = _Touched(first, end, site)
        elif first < before.first or before.end < end:
            touches[array] = _Touched(min(first, before.first), max(end, before.end), site)

    def _check_fenced(self, g: Group, site: Site, held: tuple[Held, ...]) -> None:
        """Raise if nothing orders what was done to an instruction's registers before it."""
        hint = "warpgroup.fence() before the first wgmma, and after registers of one were used"
        if not self._fenced:
            raise SimulationError(
                "a wgmma with no warpgroup.fence() before", site, g.thread(0), hint
            )
        for use in held:
            for writes in (True, False) if use.is_accumulator else (True,):
                at = self._touched[writes].get(use.array)
                if at is not None and at.first < use.end and use.first < at.end:
                    verb = "written" if writes else "read"
                    raise SimulationError(
                        f"{_what(use)} of this wgmma were {verb} since the last warpgroup.fence()",
                        site,
                        g.thread(0),
                        hint,
                        notes=((f"{verb} here", at.site.span),),
                    )


def check_together(groups: list[Group]) -> None:
    """When blocks have ended: the four warps of each warpgroup have executed the same wgmma."""
    for first, other in itertools.pairwise(groups):
        if first.block is not other.block or first.first_warp // 4 != other.first_warp // 4:
            continue
        one, two = first.products.issued, other.products.issued
        if one == two:
            continue
        at = next((i for i, (a, b) in enumerate(zip(one, two, strict=False)) if a is not b), None)
        at = min(len(one), len(two)) if at is None else at
        has, lacks = (first, other) if len(one) > at else (other, first)
        site = has.products.issued[at]
        notes = [
            (f"warp {lacks.first_warp} is here instead", x.span)
            for x in lacks.products.issued[at : at + 1]
        ]
        raise SimulationError(
            f"warps {has.first_warp} and {lacks.first_warp} are of one warpgroup and execute "
            f"different wgmma: warp {has.first_warp} this one as number {at + 1}",
            site,
            has.thread(0),
            hint="a wgmma is executed by the four warps of a warpgroup, 4 n to 4 n + 3",
            notes=tuple(notes),
        )


def _what(held: Held) -> str:
    return "the accumulators" if held.is_accumulator else "operand A in registers"
