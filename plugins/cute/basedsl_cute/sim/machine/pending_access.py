"""Accesses that the race check has not told words yet: most are never asked for.

An access is the places of the lanes' first bytes: coefficients of the lanes' coordinates
(`sim.affine`), or an array. While no two accesses can conflict, a list of them is all that is kept;
a barrier ends those before it.
"""

from __future__ import annotations

import functools
from dataclasses import dataclass
from typing import Any

import numpy as np

from basedsl_cute.sim.affine import Extents, LaneGrid

_MOST = 256
"""Accesses that are looked at one by one, to see whether another one meets them."""

_TRIES = 4
"""Distances along one axis that are looked at to see whether lanes meet."""

_INT64 = np.dtype(np.int64)


@dataclass(frozen=True, slots=True, eq=False)
class Mesh:
    """The places of all lanes of a grid: `first`, and the distance along each axis, in bytes."""

    grid: LaneGrid
    first: int
    parts: Extents
    low: int
    high: int

    def moved(self, more: int) -> Mesh:
        """The places `more` bytes further."""
        low, high = self.low + more, self.high + more
        return Mesh(self.grid, self.first + more, self.parts, low, high)

    @property
    def places(self) -> Any:
        """The place of each lane, `(lanes,)` in int64."""
        return self.grid.sum_of(self.parts, _INT64) + self.first


@dataclass(slots=True, eq=False)
class PendingAccess:
    """An access of `nbytes` bytes by each of the lanes of a group, as elements of `itemsize`, at
    offsets into a history's memory. `places` is a Mesh or an array, `threads` are the numbers of
    those lanes, or None for all, and `known` is the group's ThreadOrder. One that `updates` reads
    what it writes.
    """

    kind: int
    event: int
    nbytes: int
    itemsize: int
    places: Any
    threads: Any
    known: Any
    updates: bool = False


@functools.lru_cache(maxsize=4096)  # of many instructions alike there are few distances
def _lanes_meet(
    distance: int, parts: Extents, extents: Extents, ends: tuple[int, int], moved: bool
) -> bool:
    pairs = zip(parts, extents, strict=True)
    axes = [(abs(part), extent) for part, extent in pairs if extent > 1]
    axes.sort(reverse=True)
    return _meet(distance, axes, 0, ends, moved)


def _meet(
    distance: int, axes: list[tuple[int, int]], at: int, ends: tuple[int, int], moved: bool
) -> bool:
    """True if two lanes may be `distance` and a multiple of each of `axes` from `at` on apart, and
    between the `ends`; `moved` says that they are different lanes already.
    """
    low, high = ends
    if at == len(axes):
        return moved and low < distance < high
    part, extent = axes[at]
    reach = sum(part * (extent - 1) for part, extent in axes[at + 1 :])
    if not part:  # all lanes along the rest of the axes have one place
        return low < distance < high
    # The lanes are j * part apart along this axis, for j that let the rest bring them together.
    first = max((low - reach - distance) // part + 1, 1 - extent)
    last = min(-((distance - high - reach) // part) - 1, extent - 1)
    if last - first >= _TRIES:
        return True
    return any(
        _meet(distance + j * part, axes, at + 1, ends, moved or j != 0)
        for j in range(first, last + 1)
    )


class _Alike:
    """Accesses of one kind whose lanes lie alike, of one group's lanes: where each begins."""

    def __init__(self, model: PendingAccess) -> None:
        self.model = model
        self.begins: list[tuple[int, int]] = []  # events and the first lanes' places
        self._meet: dict[int, bool] = {}  # accesses of the last asked for, by their distance
        self._asked: tuple[int, bool] | None = None

    def may_meet(self, access: PendingAccess, floor: int) -> bool:
        """True unless it is certain that no access after the event `floor` meets another one."""
        places, model = access.places, self.model
        mine = model.places
        if places.grid is not mine.grid or places.parts != mine.parts:
            size = mine.high - mine.first
            low, high = places.low - size, places.high - mine.low + mine.first
            return any(event > floor and low < first < high for event, first in self.begins)
        asked = access.nbytes, access.known is not model.known
        if asked != self._asked:
            self._asked, self._meet = asked, {}
        known = self._meet
        for event, first in self.begins:
            distance = places.first - first
            meets = known.get(distance)
            if meets is None:
                ends = -access.nbytes, model.nbytes
                meets = _lanes_meet(distance, mine.parts, mine.grid.extents, ends, asked[1])
                known[distance] = meets
            if meets and event > floor:
                return True
        return False


class PendingAccesses:
    """The accesses to one memory that its words do not know of, in the order of their events."""

    def __init__(self) -> None:
        self.all: list[PendingAccess] = []
        self._alike: dict[Any, _Alike] = {}
        self._scattered: list[PendingAccess] = []  # those that are no mesh
        self.kinds = [0, 0, 0, 0]  # how many of each there are
        self.ends: list[tuple[int, int] | None] = [(0, 0)] * 4  # of each, None where not known
        self.size = 0  # numbers in their arrays

    def end_before(self, floor: int) -> None:
        """Forget the accesses up to an event, if that is all of them."""
        if self.all and self.all[-1].event <= floor:
            self.clear()

    def clear(self) -> None:
        """Forget all accesses."""
        self.all = []
        self._alike, self._scattered = {}, []
        self.kinds = [0, 0, 0, 0]
        self.ends = [(0, 0)] * 4
        self.size = 0

    def conflicts(self, access: PendingAccess, others: tuple[int, ...], floor: int) -> bool:
        """True unless it is certain that none of the kinds `others`, after the event `floor`, races
        with another access.
        """
        others = tuple([kind for kind in others if self._may_reach(kind, access.places)])
        count = sum([self.kinds[kind] for kind in others])
        if not count:
            return False
        if count > _MOST:
            return True
        if type(access.places) is not Mesh:
            return any(one.event > floor and one.kind in others for one in self.all)
        if any(one.event > floor and one.kind in others for one in self._scattered):
            return True
        return any(
            alike.model.kind in others and alike.may_meet(access, floor)
            for alike in self._alike.values()
        )

    def add(self, access: PendingAccess) -> None:
        """Keep an access."""
        self.all.append(access)
        kind, places = access.kind, access.places
        ends = self.ends[kind]
        self.kinds[kind] += 1
        if type(places) is not Mesh:
            self._scattered.append(access)
            self.size += places.size
            self.ends[kind] = None
            return
        key = kind, access.nbytes, places.parts, places.grid, access.known
        alike = self._alike.get(key)
        if alike is None:
            alike = self._alike[key] = _Alike(access)
        alike.begins.append((access.event, places.first))
        if ends is None:
            return
        if self.kinds[kind] == 1:
            self.ends[kind] = places.low, places.high
        else:
            self.ends[kind] = min(ends[0], places.low), max(ends[1], places.high)

    def _may_reach(self, kind: int, places: Any) -> bool:
        """True unless all accesses of a kind are elsewhere."""
        if not self.kinds[kind]:
            return False
        ends = self.ends[kind]
        if ends is None or type(places) is not Mesh:
            return True
        return bool(places.low < ends[1] and ends[0] < places.high)
