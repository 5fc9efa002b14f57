"""Tensors in tensor memory that overlap by mistake.

Each word belongs to what wrote it last: the D of one tcgen05.mma, a copy of tcgen05.cp, or a
tcgen05.st. A program may reuse columns as soon as somebody has read them. Where D, a copy or a
store takes columns of accumulators that nobody has read yet, D those of such a copy, or an
instruction reads scale factors or an operand A that D of another one has overwritten, two tensors
have the same columns at one time.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from basedsl_cute.hardware.tensor_memory import TMEM_COLUMNS, TMEM_LANES
from basedsl_cute.sim.errors import SimulationError
from basedsl_cute.sim.machine.state import Block, Group, TensorMemory
from basedsl_cute.sim.site import Site

D, COPY, STORE = "D of a tcgen05.mma", "the copy of a tcgen05.cp", "a tcgen05.st"
_HINT = "place them behind each other: tcgen05.find_tmem_tensor_col_offset(tensor)"


@dataclass(slots=True, eq=False)
class TensorUse:
    """One tensor: what writes it, to which columns, and where; `is_unread` until somebody has
    loaded a part of it, or an instruction has taken it as an operand.
    """

    what: str
    name: str | None  # in the source, if the line has it
    columns: range
    site: Site
    is_unread: bool = True

    def takes(self, here: bool = False) -> str:
        """Text about its columns."""
        name = self.what if self.name is None else f"`{self.name}`"
        where = ", written here" if here else ""
        return f"{name} takes columns {self.columns.start} to {self.columns.stop - 1}{where}"


class TensorOwners:
    """The tensors of a block's tensor memory, and the number of the one that each word belongs to,
    0 for none.
    """

    def __init__(self) -> None:
        self.owner = np.zeros((TMEM_LANES, TMEM_COLUMNS), np.int32)
        self.uses: list[TensorUse | None] = [None]
        self.numbers: dict[Any, int] = {}

    def number_of(self, key: Any, use: TensorUse) -> int:
        """Return the number of the tensor `key`, which `use` describes anew."""
        number = self.numbers.get(key)
        if number is None:
            number = self.numbers[key] = len(self.uses)
            self.uses.append(use)
        else:
            self.uses[number] = use
        return number

    def others(self, place: Any, own: int) -> list[TensorUse]:
        """Return the other tensors that the words at `place` belong to."""
        found = self.owner[place]
        if (found == own).all():
            return []
        return [
            use
            for number in np.unique(found).tolist()
            if number != own and (use := self.uses[number]) is not None
        ]


def _owners(block: Block) -> TensorOwners:
    tmem: TensorMemory = block.tensor_memory
    if tmem.owners is None:
        tmem.owners = TensorOwners()
    found: TensorOwners = tmem.owners
    return found


def take(g: Group, block: Block, place: Any, key: Any, what: str, span: range, site: Site) -> None:
    """Record that D of an instruction, or a copy, takes the words at `place`, in columns `span`.
    Raises SimulationError for those of another tensor that nobody has read.
    """
    owners = _owners(block)
    use = TensorUse(what, site.argument(1 if what == D else 2), span, site)
    number = owners.number_of(key, use)
    for other in owners.others(place, number):
        if other.is_unread and other.what != STORE:
            overlap = f"{what} overlaps {_the_other(other, what)}"
            raise _unread(f"{overlap} that nobody has read, in tensor memory", g, use, other)
    owners.owner[place] = number


def _unread(message: str, g: Group, use: TensorUse, other: TensorUse) -> SimulationError:
    """The error of a use that takes words of another one, which nobody has read."""
    notes = ((use.takes(), None), (other.takes(here=True), other.site.span))
    return SimulationError(message, use.site, g.thread(0), notes=notes, hint=_HINT)


def _the_other(use: TensorUse, what: str) -> str:
    if use.what == COPY:
        return f"{'another' if what == COPY else 'a'} copy by tcgen05.cp"
    return f"accumulators of {'another' if what == D else 'a'} tcgen05.mma"


def store(g: Group, place: Any, site: Site) -> None:
    """Record that a tcgen05.st has written words. Raises SimulationError for accumulators that
    nobody has read.
    """
    columns = place[1]
    span = range(int(np.min(columns)), int(np.max(columns)) + 1)
    owners = _owners(g.block)
    use = TensorUse(STORE, None, span, site)
    number = owners.number_of((STORE, site), use)
    for other in owners.others(place, number):
        if other.is_unread and other.what == D:
            message = f"{STORE} overwrites accumulators of a tcgen05.mma that nobody has read"
            raise _unread(message, g, use, other)
    owners.owner[place] = number


def load(block: Block, place: Any) -> None:
    """Record that a tcgen05.ld reads words."""
    for use in _owners(block).others(place, -1):
        use.is_unread = False


def read(g: Group, block: Block, place: Any, what: str, site: Site, whole: bool = False) -> None:
    """Record that an instruction reads `what` at words. Raises SimulationError for words that D of
    an instruction has taken; with `whole`, only if they are not all of one.
    """
    columns = np.asarray(place[1])
    span = range(int(columns.min()), int(columns.max()) + 1)
    found = _owners(block).others(place, -1)
    for use in found:
        if use.what == D and not (whole and len(found) == 1):
            raise SimulationError(
                f"{what} of a tcgen05.mma has columns that D of another has overwritten",
                site,
                g.thread(0),
                notes=(
                    (f"{what} takes columns {span.start} to {span.stop - 1}", None),
                    (use.takes(here=True), use.site.span),
                ),
                hint=_HINT,
            )
        use.is_unread = False


def forget(block: Block, columns: slice) -> None:
    """Record that columns were allocated anew."""
    _owners(block).owner[:, columns] = 0
