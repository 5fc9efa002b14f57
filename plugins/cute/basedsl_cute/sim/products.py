"""wgmma in flight: an instruction reads shared memory and writes its accumulators when its group is
waited for (PTX ISA, wgmma.wait_group). Until then nobody may touch the registers that it uses.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

from basedsl_cute.sim.errors import SimulationError
from basedsl_cute.sim.races import Stamp
from basedsl_cute.sim.site import Site

if TYPE_CHECKING:
    from basedsl_cute.sim.group import Group
    from basedsl_cute.sim.registers import RegisterArray


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
    """The wgmma that one warp has issued and not waited for."""

    def __init__(self) -> None:
        self._committed = 0
        self._products: list[_Product] = []
        self.held: list[Held] = []

    def issue(
        self, perform: Callable[[], None], held: tuple[Held, ...], stamps: tuple[Stamp, ...]
    ) -> None:
        """Remember an instruction."""
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
        for product in due:
            product.perform()
            for stamp in product.stamps:
                if g.races is not None:
                    g.races.order.complete(stamp, g.agent)
        self.held = [held for p in self._products for held in p.held]

    def check(self, g: Group, array: RegisterArray, rows: Any, writes: bool, site: Site) -> None:
        """Raise if rows of a register array are still in use."""
        for held in self.held:
            touched = (rows >= held.first) & (rows < held.end)
            if held.array is array and (writes or held.is_accumulator) and touched.any():
                what = "the accumulators" if held.is_accumulator else "operand A in registers"
                raise SimulationError(
                    f"{'a write to' if writes else 'a read of'} {what} of a wgmma that is still "
                    "running",
                    site,
                    g.thread(0),
                    hint="first warpgroup.commit_group() and warpgroup.wait_group(0), or another "
                    "number of later groups that may go on",
                    notes=(("the wgmma", held.site.span),),
                )
