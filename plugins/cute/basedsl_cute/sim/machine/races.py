"""Races on shared memory: vector clocks per warp, and per byte who touched it last.

Two accesses race when different agents touch the same byte, at least one writes, they are not both
atomic, and nothing that orders them lies between. The agents are the warps, whose lanes are taken
to be in step; the asynchronous unit of each warp (TMA and wgmma), whose accesses last until a wait
for them; and the cp.async copies of each warp.

An asynchronous unit sees an ordinary write only past a proxy fence (PTX ISA, "Causality order":
proxy-preserved base causality order), so a clock has two rows: what a warp knows of every agent's
time, and what of that is known to the asynchronous proxy too.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from basedsl_cute.sim.errors import RaceError, Thread
from basedsl_cute.sim.site import Site

if TYPE_CHECKING:
    from basedsl_cute.sim.machine.access import Access
    from basedsl_cute.sim.machine.group import Group

SEEN, FENCED = 0, 1  # rows of a clock


class Stamp(NamedTuple):
    """An asynchronous access: over for whoever knows that its agent's time is at least `time`."""

    agent: int
    time: int


class Order:
    """What each of a cluster's `warps` knows: the clocks, and what barriers hand on."""

    def __init__(self, warps: int) -> None:
        self.warps = warps
        self.clocks = np.zeros((warps, 2, 3 * warps), np.int32)
        self.clocks[np.arange(warps), SEEN, np.arange(warps)] = 1  # own time starts at 1
        self._issued = np.zeros(3 * warps, np.int32)
        self._made = np.zeros(warps, np.int32)
        self._gathering: dict[Any, Any] = {}
        self._published: dict[Any, Any] = {}

    def release(self, token: Any, warp: int) -> None:
        """What `warp` did so far is known to whoever acquires `token` after it is published."""
        self._gather(token, self.clocks[warp])
        self.clocks[warp, SEEN, warp] += 1

    def land(self, token: Any, stamp: Stamp) -> None:
        """An asynchronous access is over for whoever acquires `token` after it is published."""
        clock = np.zeros_like(self.clocks[0])
        self._note(clock, stamp)
        self._gather(token, clock)

    def _gather(self, token: Any, clock: Any) -> None:
        known = self._gathering.get(token)
        self._gathering[token] = clock.copy() if known is None else np.maximum(known, clock)

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

    def fence_mbarriers(self, warp: int) -> None:
        """What `warp` has made so far, mbarriers, is known past a relaxed barrier of the cluster
        and to the asynchronous proxy too (PTX ISA, fence.mbarrier_init).
        """
        self._made[warp] = self.clocks[warp, SEEN, warp]
        self.clocks[warp, FENCED, warp] = self._made[warp]
        self.clocks[warp, SEEN, warp] += 1

    def release_mbarriers(self, token: Any, warp: int) -> None:
        """Hand on no more than that."""
        clock = np.zeros_like(self.clocks[0])
        clock[:, warp] = self._made[warp]
        self._gather(token, clock)

    def fence(self, warp: int) -> None:
        """A proxy fence: what `warp` knows of, the asynchronous proxy sees from now on."""
        self.clocks[warp, FENCED] = self.clocks[warp, SEEN]
        self.clocks[warp, SEEN, warp] += 1

    def issue(self, agent: int) -> Stamp:
        """An asynchronous access begins."""
        self._issued[agent] += 1
        return Stamp(agent, int(self._issued[agent]))

    def complete(self, stamp: Stamp, warp: int) -> None:
        """`warp` has waited for an asynchronous access of its own."""
        self._note(self.clocks[warp], stamp)

    def _note(self, clock: Any, stamp: Stamp) -> None:
        agent, time = stamp
        clock[SEEN, agent] = max(clock[SEEN, agent], time)
        if self.warps <= agent < 2 * self.warps:  # its own proxy sees it anyway
            clock[FENCED, agent] = max(clock[FENCED, agent], time)

    def name(self, agent: int, per_block: int) -> str:
        """Who an agent is."""
        kind, warp = divmod(agent, self.warps)
        block, warp = divmod(warp, per_block)
        who = f"warp {warp}" if self.warps == per_block else f"warp {warp} of block {block}"
        return ("", "the asynchronous unit for ", "cp.async of ")[kind] + who


class _Touch(NamedTuple):
    """An access to some bytes: `touched[i]` are those of lane `lanes[i]`."""

    g: Group
    site: Site
    verb: str
    touched: Any
    lanes: Any
    agent: int
    asynchronous: bool = False
    atomic: bool = False


class RaceDetector:
    """The shadow of one block's shared memory of `size` bytes; it is block `rank` of a cluster."""

    def __init__(self, order: Order, rank: int, warps: int, size: int) -> None:
        self.order = order
        self.warps = warps
        first = rank * warps
        # Who reads this memory: the block's warps, and their asynchronous units.
        self.readers = first + np.concatenate([np.arange(warps), order.warps + np.arange(warps)])
        self._reader = {int(agent): row for row, agent in enumerate(self.readers)}
        self.write_agent = np.zeros(size, np.int16)
        self.write_time = np.zeros(size, np.int32)  # 0: never written
        self.write_site = np.zeros(size, np.int32)
        self.write_atomic = np.zeros(size, np.bool_)
        self.read_time = np.zeros((2 * warps, size), np.int32)
        self.read_site = np.zeros((2 * warps, size), np.int32)
        self._own = range(first, first + warps)
        self._visits: dict[int, tuple[int, Site, str, Thread]] = {}
        self.sites: list[Site] = []
        self._numbers: dict[Site, int] = {}

    def _row(self, agent: int) -> int:
        """The row of a reader: those of other blocks of the cluster get theirs when they come."""
        found = self._reader.get(agent)
        if found is None:
            found = self._reader[agent] = self.readers.size
            self.readers = np.append(self.readers, agent)
            more = np.zeros((1, self.read_time.shape[1]), np.int32)
            self.read_time = np.concatenate([self.read_time, more])
            self.read_site = np.concatenate([self.read_site, more])
        return found

    def _number(self, site: Site) -> int:
        found = self._numbers.get(site)
        if found is None:
            found = self._numbers[site] = len(self.sites)
            self.sites.append(site)
        return found

    def _own_time(self, warp: int) -> int:
        return int(self.order.clocks[warp, SEEN, warp])

    # Accesses --------------------------------------------------------------------------------

    def _from_outside(self, touch: _Touch, time: int) -> None:
        """Remember the last access by an agent of another block."""
        if touch.agent % self.order.warps not in self._own:
            self._visits[touch.agent] = (
                time,
                touch.site,
                touch.verb,
                touch.g.thread(int(touch.lanes[0])),
            )

    def check_visits(self) -> None:
        """The block has ended: raise unless it knew that what other blocks do here was done."""
        known = self.order.clocks[self._own.start : self._own.stop, SEEN].max(axis=0)
        for agent, (time, site, verb, thread) in self._visits.items():
            if time > known[agent]:
                raise RaceError(
                    f"this {verb} is in the shared memory of another block of the cluster, which "
                    "may have ended by then",
                    site,
                    thread,
                    hint="let that block wait: cute.arch.cluster_arrive() and cluster_wait() by "
                    "all of the cluster, or the producer's tail(), before its end",
                )

    def read(self, g: Group, a: Access, offset: Any, m: Any) -> None:
        """An ordinary read at `offset`, one entry per lane."""
        who = np.arange(offset.size) if m is None else np.flatnonzero(m)
        touched = offset[who][:, None] + np.arange(a.nbytes)
        self._read(_Touch(g, a.site, a.verb, touched, who, g.agent), self._own_time(g.agent))

    def write(self, g: Group, a: Access, offset: Any, who: Any, atomic: bool = False) -> None:
        """An ordinary write by the lanes `who`."""
        touch = self._lanewise(g, a, offset, who, g.agent, atomic)
        self._write(touch, self._own_time(g.agent))

    def copy_write(self, g: Group, a: Access, offset: Any, who: Any) -> Stamp:
        """The write of a cp.async begins."""
        stamp = self.order.issue(2 * self.order.warps + g.agent)
        self._write(self._lanewise(g, a, offset, who, stamp.agent), stamp.time)
        return stamp

    def async_read(self, g: Group, site: Site, verb: str, touched: Any, lane: int) -> Stamp:
        """The asynchronous unit begins to read these bytes."""
        stamp = self.order.issue(self.order.warps + g.agent)
        self._read(self._bulk(g, site, verb, touched, lane, stamp), stamp.time)
        return stamp

    def async_write(self, g: Group, site: Site, verb: str, touched: Any, lane: int) -> Stamp:
        """The asynchronous unit begins to write these bytes."""
        stamp = self.order.issue(self.order.warps + g.agent)
        self._write(self._bulk(g, site, verb, touched, lane, stamp), stamp.time)
        return stamp

    def initialise(self, g: Group, site: Site, at: int, lane: int) -> None:
        """An mbarrier is made at the offset `at`."""
        self._write(self._mbarrier(g, site, "mbarrier_init", at, lane), self._own_time(g.agent))

    def use(self, g: Group, site: Site, verb: str, at: int, lane: int) -> None:
        """An operation on the mbarrier at the offset `at`: atomic, and after it was made."""
        self._read(self._mbarrier(g, site, verb, at, lane), self._own_time(g.agent))

    def promise(self, g: Group, site: Site, at: int, lane: int) -> None:
        """Bytes that the asynchronous unit copies will count at the mbarrier at the offset `at`."""
        touch = self._mbarrier(g, site, "copy", at, lane)
        clock = self.order.clocks[g.agent]
        writer, time = int(self.write_agent[at]), int(self.write_time[at])
        if clock[FENCED, writer] < time <= clock[SEEN, writer]:
            who = self.order.name(writer, self.warps)
            raise RaceError(
                f"this copy counts at the mbarrier at {self._place(touch, at)}, which {who} has "
                "initialised with no fence since: the asynchronous unit may not know it",
                site,
                g.thread(lane),
                notes=((f"initialised by {who}", self.sites[self.write_site[at]].span),),
                hint="cute.arch.mbarrier_init_fence() after mbarrier_init, and before the barrier",
            )

    @staticmethod
    def _mbarrier(g: Group, site: Site, verb: str, at: int, lane: int) -> _Touch:
        touched = (at + np.arange(8)).reshape(1, -1)
        return _Touch(g, site, verb, touched, np.array([lane]), g.agent)

    @staticmethod
    def _lanewise(
        g: Group, a: Access, offset: Any, who: Any, agent: int, atomic: bool = False
    ) -> _Touch:
        who = np.arange(offset.size) if who is None else who
        touched = offset[:, None] + np.arange(a.nbytes)
        return _Touch(g, a.site, a.verb, touched, who, agent, atomic=atomic)

    @staticmethod
    def _bulk(g: Group, site: Site, verb: str, touched: Any, lane: int, stamp: Stamp) -> _Touch:
        lanes = np.array([lane])
        return _Touch(g, site, verb, touched.reshape(1, -1), lanes, stamp.agent, asynchronous=True)

    def _read(self, touch: _Touch, time: int) -> None:
        self._from_outside(touch, time)
        self._against_writes(touch)
        row = self._row(touch.agent)
        self.read_time[row, touch.touched] = time
        self.read_site[row, touch.touched] = self._number(touch.site)

    def _write(self, touch: _Touch, time: int) -> None:
        self._from_outside(touch, time)
        self._against_writes(touch)
        touched, warp = touch.touched, touch.g.agent
        known = self.order.clocks[warp, SEEN][self.readers]
        late = self.read_time[:, touched] > known[:, None, None]
        own = self._reader.get(warp)
        if own is not None:
            late[own] = False
        if late.any():
            row, lane, byte = (int(i) for i in np.argwhere(late)[0])
            at = int(touched[lane, byte])
            site = self.sites[self.read_site[row, at]]
            self._report(touch, at, lane, int(self.readers[row]), site, "read")
        self.write_agent[touched] = touch.agent
        self.write_time[touched] = time
        self.write_site[touched] = self._number(touch.site)
        self.write_atomic[touched] = touch.atomic

    def _against_writes(self, touch: _Touch) -> None:
        touched, warp = touch.touched, touch.g.agent
        clock = self.order.clocks[warp]
        writer, time = self.write_agent[touched], self.write_time[touched]
        late = time > clock[FENCED if touch.asynchronous else SEEN][writer]
        if not touch.asynchronous:
            late &= writer != warp
        if touch.atomic:
            late &= ~self.write_atomic[touched]
        if not late.any():
            return
        lane, byte = (int(i) for i in np.argwhere(late)[0])
        at, other = int(touched[lane, byte]), int(writer[lane, byte])
        site = self.sites[self.write_site[at]]
        if other == warp or int(time[lane, byte]) <= int(clock[SEEN][other]):
            self._report_unfenced(touch, at, lane, other, site)
        self._report(touch, at, lane, other, site, "write")

    # Reports ---------------------------------------------------------------------------------

    def _place(self, touch: _Touch, at: int) -> str:
        g = touch.g
        name, start, _ = g.shared_variable(at + g.shared.base)
        return f"byte {at + g.shared.base - start} of `{name}`"

    def _report_unfenced(self, touch: _Touch, at: int, lane: int, other: int, site: Site) -> None:
        who = self.order.name(other, self.warps)
        raise RaceError(
            f"this {touch.verb} touches {self._place(touch, at)}, which {who} has written with no "
            "proxy fence since: the asynchronous unit may not see it",
            touch.site,
            touch.g.thread(int(touch.lanes[lane])),
            notes=((f"the write by {who}", site.span),),
            hint="after writing, and before the barrier: cute.arch.fence_proxy('async.shared', "
            "space='cta')",
        )

    def _report(self, touch: _Touch, at: int, lane: int, other: int, site: Site, verb: str) -> None:
        who = self.order.name(other, self.warps)
        asynchronous = other >= self.order.warps
        raise RaceError(
            f"race on shared memory: this {touch.verb} and a {verb} by {who} touch "
            f"{self._place(touch, at)} with nothing that orders them",
            touch.site,
            touch.g.thread(int(touch.lanes[lane])),
            notes=((f"the {verb} by {who}", site.span),),
            hint=f"wait for the asynchronous {verb} first"
            if asynchronous
            else "put a barrier between them",
        )
