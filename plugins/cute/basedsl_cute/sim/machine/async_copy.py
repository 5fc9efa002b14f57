"""cp.async: copies that happen when they are waited for, so that a missing wait shows.

Each lane numbers its commit groups; `wait_group n` completes all but the lane's last n groups (PTX
ISA, cp.async.wait_group).
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from basedsl_cute.sim.machine.access import Access, check, load, put
from basedsl_cute.sim.machine.races import Stamp

if TYPE_CHECKING:
    from basedsl_cute.sim.machine.group import Group


@dataclass(slots=True, eq=False, repr=False)
class _Copy:
    read: Access
    write: Access
    to: Any
    source: Any
    sizes: Any  # bytes to read per lane, the rest is zero; None when all
    lanes: Any
    number: Any  # the commit group of each lane
    serial: int
    stamp: Stamp | None


class CopyQueue:
    """The copies that the lanes of one group have issued and not waited for."""

    def __init__(self, lanes: int) -> None:
        self._lanes = lanes
        self._committed = np.zeros(lanes, np.int64)
        self._copies: list[_Copy] = []
        self.issued = 0

    def issue(
        self, g: Group, read: Access, write: Access, to: Any, source: Any, sizes: Any, m: Any
    ) -> None:
        """Remember a copy by the lanes in `m`."""
        check(g, write, to, m)
        lanes = np.arange(self._lanes) if m is None else np.flatnonzero(m)
        sizes = None if sizes is None else np.broadcast_to(sizes, (self._lanes,))[lanes]
        number = self._committed[lanes].copy()
        to, source = to[lanes], source[lanes]
        stamp = None
        if g.races is not None:
            stamp = g.races.copy_write(g, write, to - g.shared.base, lanes)
        self.issued += 1
        copy = _Copy(read, write, to, source, sizes, lanes, number, self.issued, stamp)
        self._copies.append(copy)

    def commit(self, m: Any) -> None:
        """Close the commit group of the lanes in `m`."""
        if m is None:
            self._committed += 1
        else:
            self._committed[m] += 1

    def wait(self, g: Group, groups: int | None, m: Any) -> None:
        """Complete all but the last `groups` groups of the lanes in `m`; None: everything."""

        def due(copy: _Copy) -> Any:
            if groups is None:
                return np.ones(copy.lanes.size, np.bool_)
            return copy.number < self._committed[copy.lanes] - groups

        for stamp in self._complete(g, due, m):
            if g.races is not None:
                g.races.order.complete(stamp, g.agent)

    def land(self, g: Group, serial: int, m: Any) -> list[Stamp]:
        """Complete the copies by the lanes in `m` up to the one numbered `serial`; whoever learns
        of it is the caller's business.
        """

        def due(copy: _Copy) -> Any:
            return np.full(copy.lanes.size, copy.serial <= serial)

        return self._complete(g, due, m)

    def _complete(self, g: Group, is_due: Any, m: Any) -> list[Stamp]:
        left, stamps = [], []
        for copy in self._copies:
            due = is_due(copy)
            if m is not None:
                due = due & m[copy.lanes]
            if due.any():
                _perform(g, copy if due.all() else _rest(copy, due))
                if copy.stamp is not None:
                    stamps.append(copy.stamp)
            if not due.all():
                left.append(_rest(copy, ~due))
        self._copies = left
        return stamps


def _rest(copy: _Copy, chosen: Any) -> _Copy:
    return replace(
        copy,
        to=copy.to[chosen],
        source=copy.source[chosen],
        sizes=None if copy.sizes is None else copy.sizes[chosen],
        lanes=copy.lanes[chosen],
        number=copy.number[chosen],
    )


def _perform(g: Group, copy: _Copy) -> None:
    if copy.sizes is None:
        _move(g, copy, copy.read, np.ones(copy.lanes.size, np.bool_), None)
        return
    for size in np.unique(copy.sizes).tolist():
        chosen = copy.sizes == size
        clipped = max(0, min(int(size), copy.read.count))
        _move(g, copy, replace(copy.read, shape=(clipped,)), chosen, clipped)


def _move(g: Group, copy: _Copy, read: Access, chosen: Any, size: int | None) -> None:
    lanes = copy.lanes[chosen]
    data = np.zeros((copy.write.count, lanes.size), np.uint8)
    if size != 0:
        m = np.zeros(g.lanes, np.bool_)
        m[lanes] = True
        full = np.zeros(g.lanes, np.int64)
        full[lanes] = copy.source[chosen]
        data[: read.count] = load(g, read, full, m)[:, lanes]
    put(g, copy.write, copy.to[chosen], data, lanes)
