"""The accesses that the lanes of a group know to be over: by barriers and by acquiring."""

from __future__ import annotations

from bisect import bisect_right
from typing import Any

import numpy as np

from basedsl_cute.sim.machine.access import SYSTEM_SCOPE
from basedsl_cute.sim.machine.happens_before import Knowledge, merge, of_block, of_warp
from basedsl_cute.sim.machine.vector_clock import SEEN, VectorClocks


class ThreadOrder:
    """The order of the lanes of one group among the threads of the grid.

    `threads` numbers them in the grid, `(lanes,)`: a block has whole warps of numbers. All accesses
    of the block up to the event `floor` are over. `order` has the clocks of the cluster's warps,
    where groups are warps; a block has `warps`. `known` is what precedes the launch.
    """

    def __init__(
        self,
        events: list[Any],
        block_threads: int,
        numbers: range,
        shape: Any,
        order: VectorClocks | None,
        agent: int,
        ranks: dict[int, int],
        warps: int,
        known: Knowledge | None = None,
    ) -> None:
        self.events = events
        self.block_threads = block_threads
        self.shape = shape
        self.numbers = numbers
        self._threads: Any = None
        self.first_block = numbers[0]
        self._first_lane = shape.first
        self.floor = 0
        self.order = order
        self.agent = agent
        self.ranks = ranks  # of the cluster's blocks, by their number in the grid
        self.warps = warps
        self._warp_floor = 0
        self._lane_floors: Any = None
        self.fences: Any = None
        self._lanes: dict[int, Knowledge] = {}
        self._warps: dict[int, Knowledge] = {}
        self._blocks: dict[int, Knowledge] = {}
        if known:
            self._blocks = {n: dict(known) for n in numbers}
        # What was read without acquiring, which a later fence acquires: by lane, and by block past
        # a barrier.
        self._pending: dict[int, Knowledge] = {}
        self._pending_blocks: dict[int, Knowledge] = {}

    @property
    def threads(self) -> Any:
        """The number of each lane's thread in the grid, `(lanes,)`."""
        if self._threads is None:
            first = (self.shape.block_number + self.first_block) * self.block_threads
            self._threads = first + self.shape.linear.astype(np.int64)
        return self._threads

    def threads_of(self, lanes: Any) -> Any:
        """The numbers of the threads of some lanes; None: of all."""
        if lanes is None or self._threads is not None:
            return self.threads if lanes is None else self.threads[lanes]
        first = (self.shape.block_number[lanes] + self.first_block) * self.block_threads
        return first + self.shape.linear[lanes]

    @property
    def now(self) -> int:
        """The last event."""
        return len(self.events) - 1

    @property
    def acquired(self) -> bool:
        """True if lanes may know more than barriers of the whole block tell."""
        return self.order is not None or bool(self._lanes or self._warps or self._blocks)

    # Barriers --------------------------------------------------------------------------------

    def pass_barrier(self) -> None:
        """Note that all threads of the group's blocks have reached a barrier."""
        self.floor = self.now
        self.events.append(None)
        for lane, known in self._lanes.items():
            block = int(self.threads[lane]) // self.block_threads
            merge(self._blocks.setdefault(block, {}), known)
        for warp, known in self._warps.items():
            block = warp * self.shape.of_warp // self.block_threads
            merge(self._blocks.setdefault(block, {}), known)
        self._lanes, self._warps = {}, {}
        for lane, known in self._pending.items():
            block = int(self.threads[lane]) // self.block_threads
            merge(self._pending_blocks.setdefault(block, {}), known)
        self._pending = {}

    def pass_warp_barrier(self, m: Any, members: Any) -> None:
        """Note that the lanes in `m` of each warp have synchronised, by a member mask."""
        if m is None and np.ndim(members) == 0 and int(members) == -1:
            self._warp_floor = self.now
        else:
            if self._lane_floors is None:
                self._lane_floors = np.zeros(self.threads.size, np.int64)
            self._lane_floors[slice(None) if m is None else m] = self.now
        self.events.append(None)
        if self._lanes:
            self._hand_on(m)

    def _hand_on(self, m: Any) -> None:
        """Let each warp's lanes in `m` know what one of them has acquired."""
        by_warp: dict[int, Knowledge] = {}
        for lane, known in self._lanes.items():
            if m is None or m[lane]:
                merge(by_warp.setdefault(int(self.threads[lane]) // self.shape.of_warp, {}), known)
        for lane, thread in enumerate(self.threads.tolist()):
            if thread // self.shape.of_warp in by_warp and (m is None or m[lane]):
                self._lanes[lane] = dict(by_warp[thread // self.shape.of_warp])

    def warp_floors(self, thread: Any, other: Any) -> Any:
        """The event up to which the accesses of `other`, a lane of the same warp, are over."""
        if self._lane_floors is None:
            return self._warp_floor
        both = np.minimum(
            self._lane_floors[self._lane_of(thread)], self._lane_floors[self._lane_of(other)]
        )
        return np.maximum(both, self._warp_floor)

    def _lane_of(self, thread: Any) -> Any:
        block = thread // self.block_threads - self.first_block
        lane = block * self.shape.threads + thread % self.block_threads - self._first_lane
        return np.clip(lane, 0, self.threads.size - 1)

    def known_by_warp(self, other: Any, event: Any) -> Any:
        """True where the clock of this warp has that `other` is over up to `event`."""
        assert self.order is not None
        clock = self.order.clocks[self.agent, SEEN]
        warps = self.warps
        block, warp = other // self.block_threads, other % self.block_threads // self.shape.of_warp
        out = np.zeros(np.shape(other), np.bool_)
        for number, rank in self.ranks.items():
            mine = block == number
            if mine.any():
                agent = np.where(mine, rank * warps + warp, 0)
                out |= mine & (event <= clock[agent])
        return out

    def knows_all(self, made: dict[int, list[int]], event: int) -> bool:
        """True if this warp knows that the accesses up to `event` are over which each agent has
        `made`, lists of events.
        """
        assert self.order is not None
        clock = self.order.clocks[self.agent, SEEN]
        for agent, events in made.items():
            upto = bisect_right(events, event)
            over = max(int(clock[agent]), self._warp_floor if agent == self.agent else 0)
            if upto and events[upto - 1] > over:
                return False
        return True

    # Fences and acquired knowledge ---------------------------------------------------------------

    def fence(self, m: Any, scope: int) -> None:
        """Record a fence of the lanes in `m`, for a scope and those within it."""
        if self.fences is None:
            self.fences = np.zeros((SYSTEM_SCOPE + 1, self.threads.size), np.int64)
        self.events.append(None)
        chosen = slice(None) if m is None else m
        self.fences[: scope + 1, chosen] = self.now
        for lane in [one for one in self._pending if m is None or m[one]]:
            merge(self._lanes.setdefault(lane, {}), self._pending.pop(lane))
        if self.order is not None and self.order.pending[self.agent]:
            merge(self.order.knowledge[self.agent], self.order.pending[self.agent])
        if self._pending_blocks:
            numbers = self.threads[chosen] // self.block_threads
            for block in [one for one in self._pending_blocks if (numbers == one).any()]:
                merge(self._blocks.setdefault(block, {}), self._pending_blocks.pop(block))

    def learn(self, lane: int, known: Knowledge, at_once: bool) -> None:
        """Let a lane know what it has acquired, `at_once` or after its next fence."""
        merge((self._lanes if at_once else self._pending).setdefault(lane, {}), known)

    def knowledge_of(self, thread: int) -> list[Knowledge]:
        """The clocks that a thread of the group, its warp or its block has acquired."""
        block, number = divmod(thread, self.block_threads)
        lane = (block - self.first_block) * self.shape.threads + number - self._first_lane
        out = [
            self._lanes.get(lane, {}),
            self._warps.get(thread // self.shape.of_warp, {}),
            self._blocks.get(thread // self.block_threads, {}),
        ]
        if self.order is not None:
            out.append(self.order.knowledge[self.agent])
        return out

    def barrier_knowledge(self, lane: int, thread: int, block: int) -> Knowledge:
        """The clocks that a lane knows by barriers."""
        warp = thread // self.shape.of_warp
        known = {of_block(block): self.floor, of_warp(warp): self._warp_floor}
        if self._lane_floors is not None:
            known[of_warp(warp)] = max(self._warp_floor, int(self._lane_floors[lane]))
        if self.order is not None:
            warps = self.warps
            clock = self.order.clocks[self.agent, SEEN]
            for number, rank in self.ranks.items():
                for warp in range(warps):
                    key = of_warp(number * (self.block_threads // self.shape.of_warp) + warp)
                    known[key] = max(known.get(key, 0), int(clock[rank * warps + warp]))
        return known

    def gathered_pending(self) -> Knowledge:
        """The clocks that lanes have read without acquiring them, as a barrier hands it on."""
        known: Knowledge = {}
        for one in (*self._pending.values(), *self._pending_blocks.values()):
            merge(known, one)
        return known

    def gathered(self) -> Knowledge:
        """The clocks that all lanes have acquired, as a barrier hands it on."""
        known: Knowledge = {}
        for one in (*self._lanes.values(), *self._warps.values(), *self._blocks.values()):
            merge(known, one)
        return known
