"""Races on shared memory: vector clocks per warp, and per byte who touched it last.

Two accesses race when different warps touch the same byte, at least one writes, they are not both
atomic, and no chain of barriers or mbarriers lies between. Lanes of one warp are taken to be in
step.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from basedsl_cute.sim.errors import RaceError
from basedsl_cute.sim.records import Site

if TYPE_CHECKING:
    from basedsl_cute.sim.access import Access
    from basedsl_cute.sim.group import Group


class RaceDetector:
    """The shadow of one block's shared memory of `size` bytes, for `warps` warps."""

    def __init__(self, warps: int, size: int) -> None:
        self.warps = warps
        # clocks[w, u]: what warp w knows of warp u's time. Own time starts at 1.
        self.clocks = np.eye(warps, dtype=np.int32)
        self.write_warp = np.zeros(size, np.int16)
        self.write_time = np.zeros(size, np.int32)  # 0: never written
        self.write_site = np.zeros(size, np.int32)
        self.write_atomic = np.zeros(size, np.bool_)
        self.read_time = np.zeros((warps, size), np.int32)
        self.read_site = np.zeros((warps, size), np.int32)
        self.sites: list[Site] = []
        self._numbers: dict[Site, int] = {}
        self._gathering: dict[Any, Any] = {}
        self._published: dict[Any, Any] = {}

    def _number(self, site: Site) -> int:
        found = self._numbers.get(site)
        if found is None:
            found = self._numbers[site] = len(self.sites)
            self.sites.append(site)
        return found

    # Order -----------------------------------------------------------------------------------

    def release(self, token: Any, warp: int) -> None:
        """What `warp` did so far is known to whoever acquires `token` after it is published."""
        known = self._gathering.get(token)
        mine = self.clocks[warp]
        self._gathering[token] = mine.copy() if known is None else np.maximum(known, mine)
        self.clocks[warp, warp] += 1

    def publish(self, token: Any) -> None:
        """All releases of `token` so far belong to one completed barrier or phase."""
        known = self._gathering.pop(token, None)
        if known is not None:
            before = self._published.get(token)
            self._published[token] = known if before is None else np.maximum(before, known)

    def acquire(self, token: Any, warp: int) -> None:
        """`warp` has waited for `token`."""
        known = self._published.get(token)
        if known is not None:
            np.maximum(self.clocks[warp], known, out=self.clocks[warp])

    # Accesses --------------------------------------------------------------------------------

    def read(self, g: Group, a: Access, offset: Any, m: Any) -> None:
        who = np.arange(offset.size) if m is None else np.flatnonzero(m)
        touched = offset[who][:, None] + np.arange(a.nbytes)
        warp = g.first_warp
        self._against_writes(g, a, touched, who, warp, atomic=False)
        self.read_time[warp, touched] = self.clocks[warp, warp]
        self.read_site[warp, touched] = self._number(a.site)

    def write(self, g: Group, a: Access, offset: Any, who: Any, atomic: bool = False) -> None:
        who = np.arange(offset.size) if who is None else who
        touched = offset[:, None] + np.arange(a.nbytes)
        warp = g.first_warp
        self._against_writes(g, a, touched, who, warp, atomic)
        times = self.read_time[:, touched]
        known = self.clocks[warp][:, None, None]
        late = times > known
        late[warp] = False
        if late.any():
            other, lane, byte = (int(i) for i in np.argwhere(late)[0])
            site = self.sites[self.read_site[other, touched[lane, byte]]]
            self._report(g, a, int(touched[lane, byte]), int(who[lane]), other, site, "read")
        self.write_warp[touched] = warp
        self.write_time[touched] = self.clocks[warp, warp]
        self.write_site[touched] = self._number(a.site)
        self.write_atomic[touched] = atomic

    def _against_writes(
        self, g: Group, a: Access, touched: Any, who: Any, warp: int, atomic: bool
    ) -> None:
        writer = self.write_warp[touched]
        late = (self.write_time[touched] > self.clocks[warp][writer]) & (writer != warp)
        if atomic:
            late &= ~self.write_atomic[touched]
        if late.any():
            lane, byte = (int(i) for i in np.argwhere(late)[0])
            at = int(touched[lane, byte])
            site = self.sites[self.write_site[at]]
            self._report(g, a, at, int(who[lane]), int(writer[lane, byte]), site, "write")

    def _report(
        self, g: Group, a: Access, at: int, lane: int, other: int, site: Site, verb: str
    ) -> None:
        name, start, _ = g.shared_variable(at + g.shared.base)
        raise RaceError(
            f"race on shared memory: this {a.verb} and a {verb} by warp {other} touch byte "
            f"{at + g.shared.base - start} of `{name}` with nothing that orders them",
            a.site,
            g.thread(lane),
            notes=((f"the {verb} by warp {other}", site.span),),
            hint="put a barrier between them",
        )
