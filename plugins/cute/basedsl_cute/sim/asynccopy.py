"""cp.async: copies that happen when they are waited for, so that a missing wait shows.

Each lane numbers its commit groups; `wait_group n` completes all but the lane's last n groups (PTX
ISA, cp.async.wait_group).
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from basedsl_cute.sim.access import Access, load, store

if TYPE_CHECKING:
    from basedsl_cute.sim.group import Group


@dataclass(slots=True)
class _Copy:
    read: Access
    write: Access
    to: Any
    source: Any
    sizes: Any  # bytes to read per lane, the rest is zero; None when all
    lanes: Any
    number: Any  # the commit group of each lane


class CopyQueue:
    """The copies that the lanes of one group have issued and not waited for."""

    def __init__(self, lanes: int) -> None:
        self._lanes = lanes
        self._committed = np.zeros(lanes, np.int64)
        self._copies: list[_Copy] = []

    def issue(self, read: Access, write: Access, to: Any, source: Any, sizes: Any, m: Any) -> None:
        """Remember a copy by the lanes in `m`."""
        lanes = np.arange(self._lanes) if m is None else np.flatnonzero(m)
        sizes = None if sizes is None else np.broadcast_to(sizes, (self._lanes,))[lanes]
        number = self._committed[lanes].copy()
        self._copies.append(_Copy(read, write, to[lanes], source[lanes], sizes, lanes, number))

    def commit(self, m: Any) -> None:
        """Close the commit group of the lanes in `m`."""
        if m is None:
            self._committed += 1
        else:
            self._committed[m] += 1

    def wait(self, g: Group, groups: int | None, m: Any) -> None:
        """Complete all but the last `groups` groups of the lanes in `m`; None: everything."""
        left = []
        for copy in self._copies:
            due = np.ones(copy.lanes.size, np.bool_)
            if groups is not None:
                due = copy.number < self._committed[copy.lanes] - groups
            if m is not None:
                due &= m[copy.lanes]
            if due.any():
                _perform(g, copy, due)
            if not due.all():
                left.append(_rest(copy, ~due))
        self._copies = left


def _rest(copy: _Copy, chosen: Any) -> _Copy:
    return replace(
        copy,
        to=copy.to[chosen],
        source=copy.source[chosen],
        sizes=None if copy.sizes is None else copy.sizes[chosen],
        lanes=copy.lanes[chosen],
        number=copy.number[chosen],
    )


def _perform(g: Group, copy: _Copy, due: Any) -> None:
    if not due.all():
        copy = _rest(copy, due)
    if copy.sizes is None:
        _move(g, copy, copy.read, copy.write, np.ones(copy.lanes.size, np.bool_), None)
        return
    for size in np.unique(copy.sizes).tolist():
        chosen = copy.sizes == size
        clipped = max(0, min(int(size), copy.read.count))
        _move(g, copy, replace(copy.read, shape=(clipped,)), copy.write, chosen, clipped)


def _move(
    g: Group, copy: _Copy, read: Access, write: Access, chosen: Any, size: int | None
) -> None:
    lanes = copy.lanes[chosen]
    m = np.zeros(g.lanes, np.bool_)
    m[lanes] = True
    full = np.zeros(g.lanes, np.int64)
    full[lanes] = copy.source[chosen]
    data = np.zeros((write.count, g.lanes), np.uint8)
    if size != 0:
        data[: read.count] = load(g, read, full, m)
    full = np.zeros(g.lanes, np.int64)
    full[lanes] = copy.to[chosen]
    store(g, write, full, data, m)
