"""Order between simulated ranks: the history of symmetric memory, and the launch and the rank that
a thread belongs to, as the race checks of all ranks share them.

Threads of all launches are numbered together, each launch from its own first block. A launch comes
after those before it on its rank; only releases and acquires of system scope order two ranks.
"""

from __future__ import annotations

import bisect
from typing import Any, NamedTuple

import numpy as np

from basedsl_cute.hardware.targets import WARP_SIZE
from basedsl_cute.sim.errors import LaunchError
from basedsl_cute.sim.machine.happens_before import (
    Knowledge,
    Released,
    merge,
    of_block,
    of_thread,
    of_warp,
)
from basedsl_cute.sim.machine.word_history import (
    ASYNC,
    EVENT_SHIFT,
    PLAIN_READ,
    PLAIN_WRITE,
    STRONG_READ,
    STRONG_WRITE,
    THREADS,
    WordHistory,
)

BLOCK_NUMBERS = 1024
"""The numbers of threads that each block takes: the most threads that a block can have."""

_MOST_BLOCKS = int(ASYNC) // BLOCK_NUMBERS


class RankLaunch(NamedTuple):
    """A launch of a rank, or (without a grid) what its host code wrote before one."""

    rank: int
    first_block: int
    grid: tuple[int, int, int] | None
    block: tuple[int, int, int] | None


class SymmetricRange(NamedTuple):
    """Symmetric memory of one rank, from address `low` to before `high`."""

    low: int
    high: int
    rank: int
    raw: Any  # its bytes, uint8
    history: WordHistory


class HostConflict(NamedTuple):
    """An access of another rank, at a byte of symmetric memory that host code writes meanwhile."""

    access: Any
    rank: int
    byte: int


class RankOrder:
    """The order of accesses between `ranks` ranks."""

    def __init__(self, ranks: int) -> None:
        self.events: list[Any] = [None]
        self.released = Released()
        self.memory: list[SymmetricRange] = []
        self.known: list[Knowledge] = [{} for _ in range(ranks)]
        self._launches: list[RankLaunch] = []
        self._first_blocks: list[int] = []
        self._next_block = 1
        self._kept: list[dict[int, Any]] = [{} for _ in range(ranks)]

    def add_memory(self, address: int, raw: Any, rank: int) -> None:
        """Follow the accesses to bytes of `rank` from `address`, whose first content everybody
        knows.
        """
        history = WordHistory(raw.size, 8, True)
        self.memory.append(SymmetricRange(address, address + raw.size, rank, raw, history))

    def range_at(self, address: int) -> SymmetricRange | None:
        """The symmetric memory that holds an address, or None."""
        return next((one for one in self.memory if one.low <= address < one.high), None)

    # Launches ------------------------------------------------------------------------------------

    def begin(self, rank: int, grid: Any, block: Any) -> RankLaunch:
        """Number a launch's blocks. Raises LaunchError when the numbers have run out."""
        blocks = 1 if grid is None else grid[0] * grid[1] * grid[2]
        if self._next_block + blocks > _MOST_BLOCKS:
            raise LaunchError(
                "the race check of several ranks has no numbers left for so many blocks",
                hint="begin anew with another `ranks`, or CUTE_DSL_CHECK_RACES=off",
            )
        launch = RankLaunch(rank, self._next_block, grid, block)
        self._launches.append(launch)
        self._first_blocks.append(launch.first_block)
        self._next_block += blocks
        return launch

    def end(self, launch: RankLaunch, gathered: list[Knowledge]) -> None:
        """Let the rank know that a launch is over, and what its threads have acquired."""
        for known in gathered:
            merge(self.known[launch.rank], known)
        self.known[launch.rank][of_launch(launch)] = len(self.events) - 1
        self.events.append(None)

    # Host code -----------------------------------------------------------------------------------

    def enter_host(self, rank: int) -> None:
        """Note what is in the memory of a rank whose host code goes on."""
        self._kept[rank] = {one.low: one.raw.copy() for one in self.memory if one.rank == rank}

    def leave_host(self, rank: int) -> HostConflict | None:
        """Take what has changed in the memory of a rank as written by its host code, as nobody else
        has run; return the access of another rank that may be going on meanwhile, if one is.
        """
        found = None
        for one in self.memory:
            before = self._kept[rank].get(one.low)
            if one.rank != rank or before is None:
                continue
            differs = np.flatnonzero(before != one.raw)
            if not differs.size:
                continue
            words = np.unique(differs >> one.history.shift)
            found = found or self._conflict(one, words)
            launch = self.begin(rank, None, None)
            event = len(self.events)
            self.events.append(None)
            stamp = (launch.first_block * BLOCK_NUMBERS) | (event << EVENT_SHIFT)
            one.history.words(PLAIN_WRITE)[words] = stamp
            one.history.wrote = event
            self.end(launch, [])
        return found

    def _conflict(self, one: SymmetricRange, words: Any) -> HostConflict | None:
        for kind in (PLAIN_READ, PLAIN_WRITE, STRONG_READ, STRONG_WRITE):
            last = one.history.last[kind]
            if last is None:
                continue
            before = last[words]
            foreign = (before != 0) & (self.ranks_of(before & THREADS) != one.rank)
            for word, stamp in zip(words[foreign].tolist(), before[foreign].tolist(), strict=True):
                thread, event = stamp & int(THREADS), stamp >> EVENT_SHIFT
                block = thread // BLOCK_NUMBERS
                launch = self.launch_of(block)
                keys = [of_thread(thread), of_warp(thread // WARP_SIZE), of_block(block)]
                keys += [] if launch is None else [of_launch(launch)]
                known = self.known[one.rank]
                if launch is not None and not any(known.get(k, 0) >= event for k in keys):
                    return HostConflict(self.events[event], launch.rank, word << one.history.shift)
        return None

    def meet(self) -> None:
        """Let all ranks know what each of them knows: they have met at a barrier of the host."""
        together: Knowledge = {}
        for known in self.known:
            merge(together, known)
        self.known = [dict(together) for _ in self.known]

    # Threads -------------------------------------------------------------------------------------

    def launch_of(self, block: int) -> RankLaunch | None:
        """The launch that a block's number belongs to."""
        at = bisect.bisect_right(self._first_blocks, block) - 1
        return self._launches[at] if at >= 0 else None

    def ranks_of(self, threads: Any) -> Any:
        """The rank of each thread, by number; -1 for none."""
        if not self._launches:
            return np.full(np.shape(threads), -1)
        at = np.searchsorted(self._first_blocks, threads // BLOCK_NUMBERS, "right") - 1
        ranks = np.array([one.rank for one in self._launches])
        return np.where(at < 0, -1, ranks[np.maximum(at, 0)])


def of_launch(launch: RankLaunch) -> int:
    """The key of a whole launch in a `Knowledge`."""
    return (launch.first_block << 2) | 3
