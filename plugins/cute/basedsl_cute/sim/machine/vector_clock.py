"""Vector clocks of the warps of a cluster: what each of them knows to be over.

The agents are the warps, whose lanes run in step; the asynchronous unit of each warp (TMA and
wgmma), whose accesses last until a wait for them; and the cp.async copies of each warp. With n
warps they are numbered 0 to n - 1, n to 2 n - 1, and 2 n to 3 n - 1.

An asynchronous unit sees an ordinary write only past a proxy fence (PTX ISA, "Causality order":
proxy-preserved base causality order), and tcgen05 instructions see what other threads' tcgen05
instructions did only past a tcgen05.fence::after_thread_sync (PTX ISA, "tcgen05.fence"). So a clock
has rows: what a warp knows of every agent's time, what of that the asynchronous proxy sees too,
what its tcgen05 instructions do, and up to which time only the reads of an agent are known to be
over.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from basedsl_cute.sim.machine.happens_before import Knowledge, merge

SEEN, FENCED, TENSOR, READ = range(4)  # rows of a clock


class Stamp(NamedTuple):
    """An asynchronous access: over for whoever knows that its agent's time is at least `time`."""

    agent: int
    time: int


class VectorClocks:
    """The clocks of a cluster's `warps`, `(warps, 4, 3 * warps)`, and what barriers hand on. Who
    knows of any time of an agent, from `start` on, knows that it runs.

    A token names a barrier or an mbarrier. Releases of it gather; when it completes they are
    published; who waits for it acquires what is published.
    """

    def __init__(self, warps: int, events: list[Any] | None = None) -> None:
        self.warps = warps
        self.events: list[Any] = [None] if events is None else events
        self.events.append(None)
        self.start = len(self.events) - 1
        self.clocks = np.zeros((warps, 4, 3 * warps), np.int32)
        # What each warp has acquired from beyond the cluster, and what says what it can hand on.
        self.knowledge: list[Knowledge] = [{} for _ in range(warps)]
        self.acquired: list[Callable[[], Knowledge]] = [dict] * warps
        self._known: dict[Any, Knowledge] = {}
        # The same for what was read without acquiring it.
        self.pending: list[Knowledge] = [{} for _ in range(warps)]
        self.read: list[Callable[[], Knowledge]] = [dict] * warps
        self._read: dict[Any, Knowledge] = {}
        self._issued = np.zeros(3 * warps, np.int32)
        self._made = np.full(
            warps, self.start, np.int32
        )  # time of each warp's last fence_mbarriers
        self._gathering: dict[Any, Any] = {}
        self._published: dict[Any, Any] = {}

    def time_of(self, warp: int) -> int:
        """The time of the next access of `warp`: the number of a new event of the launch."""
        self.events.append(None)
        return len(self.events) - 1

    def _own_clock(self, warp: int) -> Any:
        """The clocks that `warp` knows, and that its own accesses so far are over."""
        clock = self.clocks[warp].copy()
        clock[SEEN, warp] = len(self.events) - 1
        self.events.append(None)
        return clock

    def release(self, token: Any, warp: int) -> None:
        """Release to `token` all that `warp` knows and did so far."""
        self._gather(token, self._own_clock(warp))
        known = {**self.knowledge[warp]}
        merge(known, self.acquired[warp]())
        if known:
            merge(self._known.setdefault(token, {}), known)
        read = {**self.pending[warp]}
        merge(read, self.read[warp]())
        if read:
            merge(self._read.setdefault(token, {}), read)

    def release_reads(self, token: Any, warp: int) -> None:
        """Release to `token` what `warp` knows but for ordinary writes: that reads are over, and
        what asynchronous units did.
        """
        clock = self._own_clock(warp)
        clock[READ] = np.maximum(clock[SEEN], clock[READ])
        clock[:READ, : self.warps] = 0
        self._gather(token, clock)

    def release_access(self, token: Any, stamp: Stamp) -> None:
        """Release to `token` that an asynchronous access is over."""
        clock = np.zeros_like(self.clocks[0])
        self._note(clock, stamp)
        self._gather(token, clock)

    def _gather(self, token: Any, clock: Any) -> None:
        known = self._gathering.get(token)
        self._gathering[token] = clock.copy() if known is None else np.maximum(known, clock)

    def publish(self, token: Any) -> None:
        """Complete the barrier or phase of `token`: its releases so far can be acquired."""
        known = self._gathering.pop(token, None)
        if known is not None:
            before = self._published.get(token)
            self._published[token] = known if before is None else np.maximum(before, known)

    def forget(self, token: Any) -> None:
        """Forget what was released to `token`."""
        self._published.pop(token, None)
        self._known.pop(token, None)
        self._read.pop(token, None)

    def acquire(self, token: Any, warp: int) -> None:
        """Let `warp`, which has waited for `token`, know what is published there."""
        known = self._published.get(token)
        if known is not None:
            np.maximum(self.clocks[warp], known, out=self.clocks[warp])
            if token in self._known:
                merge(self.knowledge[warp], self._known[token])
            if token in self._read:
                merge(self.pending[warp], self._read[token])

    def fence_mbarriers(self, warp: int) -> None:
        """Record the mbarriers that `warp` has initialised so far, for `release_mbarriers`; the
        asynchronous proxy sees them from now on (PTX ISA, fence.mbarrier_init).
        """
        self._made[warp] = len(self.events) - 1
        self.events.append(None)
        self.clocks[warp, FENCED, warp] = self._made[warp]

    def release_mbarriers(self, token: Any, warp: int) -> None:
        """Release to `token` only what `fence_mbarriers` recorded for `warp`, no other writes: what
        a relaxed arrival at the cluster's barrier hands on.
        """
        clock = np.zeros_like(self.clocks[0])
        clock[:TENSOR, warp] = self._made[warp]
        self._gather(token, clock)

    def fence_proxy(self, warp: int) -> None:
        """Let the asynchronous proxy see all that `warp` knows (PTX ISA, fence.proxy.async)."""
        self.clocks[warp, FENCED] = self._own_clock(warp)[SEEN]

    def fence_tensor(self, warp: int) -> None:
        """Let the tcgen05 instructions of `warp` see all that it knows (tcgen05.fence)."""
        self.clocks[warp, TENSOR] = self.clocks[warp, SEEN]

    def begin_access(self, agent: int) -> Stamp:
        """Begin an asynchronous access of `agent`."""
        self._issued[agent] += 1
        return Stamp(agent, int(self._issued[agent]))

    def end_access(self, stamp: Stamp, warp: int) -> None:
        """End an asynchronous access for `warp` alone, which has waited for it."""
        self._note(self.clocks[warp], stamp)

    def _note(self, clock: Any, stamp: Stamp) -> None:
        agent, time = stamp
        clock[SEEN, agent] = max(clock[SEEN, agent], time)
        if self.warps <= agent < 2 * self.warps:  # its own proxy sees it anyway
            clock[FENCED, agent] = max(clock[FENCED, agent], time)

    def agent_name(self, agent: int, per_block: int) -> str:
        """The name of an agent in messages, in blocks of `per_block` warps."""
        kind, warp = divmod(agent, self.warps)
        block, warp = divmod(warp, per_block)
        who = f"warp {warp}" if self.warps == per_block else f"warp {warp} of block {block}"
        return ("", "the asynchronous unit for ", "cp.async of ")[kind] + who
