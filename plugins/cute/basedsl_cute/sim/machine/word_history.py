"""History of words: who read and wrote each word of memory last, at constant cost a word.

A word is as large as the smallest element that is accessed there, 1 to 8 bytes. Of each word one
number is kept for each kind of access: an event (`RaceChecker.events` numbers the accesses of a
launch), a thread, and how far apart the threads are of which it is the last one: the same thread,
threads of one warp, of one block, or of several. This is enough where all that orders threads is a
barrier of a warp or a block, as in HiRace (arXiv 2401.04701); where threads may be
ordered otherwise, the accesses are listed too.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from basedsl_cute.sim.machine.pending_access import PendingAccesses

EVENT_SHIFT, SPREAD_SHIFT = 33, 31
THREADS = np.int64((1 << SPREAD_SHIFT) - 1)
ASYNC = np.int64(1 << 30)
"""The bit of a thread's number that marks a write by a copy which it has not waited for."""

SAME, WARP, BLOCK, GRID = range(4)  # how far apart threads are

PLAIN_WRITE, PLAIN_READ, STRONG_WRITE, STRONG_READ = range(4)
CONFLICTS = {
    PLAIN_READ: (PLAIN_WRITE, STRONG_WRITE),
    PLAIN_WRITE: (PLAIN_WRITE, PLAIN_READ, STRONG_WRITE, STRONG_READ),
    STRONG_READ: (PLAIN_WRITE,),
    STRONG_WRITE: (PLAIN_WRITE, PLAIN_READ),
}
"""The kinds of accesses that one of each kind may race with."""

_LOGGED = 1 << 22  # words in the list of accesses, at most


class Shared(NamedTuple):
    """An access to words that several blocks touch: `index` and `thread` broadcast together."""

    kind: int
    event: int
    index: Any
    thread: Any


class WordHistory:
    """The history of `size` bytes. `listed` says that more than barriers may order threads."""

    def __init__(self, size: int, itemsize: int, listed: bool) -> None:
        self.size = size
        self.shift = itemsize.bit_length() - 1
        self.listed = listed
        self.last: list[Any] = [None, None, None, None]  # by kind
        self.wrote = 0  # the last event that wrote
        self.latest = 0  # the last event that the words know of
        self.copies = 0  # words that a cp.async writes which nobody has waited for
        self.narrow = False  # if a strong access had the scope of its block alone
        self.pending = PendingAccesses()
        self.accesses: list[Shared] = []
        self.logged = 0
        # Of shared memory: the events of each warp's accesses, where groups are warps.
        self.made: dict[int, list[int]] = {}

    def words(self, kind: int) -> Any:
        """The last accesses of a kind, int64 for each word."""
        found = self.last[kind]
        if found is None:
            found = self.last[kind] = np.zeros((self.size >> self.shift) + 1, np.int64)
        return found

    def index(self, offset: Any, nbytes: int, itemsize: int) -> Any:
        """Numbers of the words of accesses at byte offsets: `(lanes,)` or `(words, lanes)`."""
        while itemsize < 1 << self.shift:
            self._halve()
        count = nbytes >> self.shift
        first = offset >> self.shift
        return first if count == 1 else first + np.arange(count)[:, None]

    def _halve(self) -> None:
        """Make words half as large."""
        self.shift -= 1
        self.last = [None if kind is None else np.repeat(kind, 2) for kind in self.last]
        self.accesses = [s._replace(index=_halved(s.index), thread=s.thread) for s in self.accesses]

    @property
    def is_complete(self) -> bool:
        """True while all accesses of several threads are listed."""
        return self.logged < _LOGGED

    def note(self, kind: int, event: int, index: Any, thread: Any) -> None:
        """List an access of threads of several blocks."""
        if self.logged < _LOGGED:
            self.accesses.append(Shared(kind, event, index, thread))
            self.logged += index.size


def _halved(index: Any) -> Any:
    both = np.stack([2 * index, 2 * index + 1])
    return both.reshape(-1, index.shape[-1])


def add_many(words: Any, index: Any, stamp: Any, before: Any, apart: Any, distance: Any) -> None:
    """Add an access of several threads to the last ones.

    `before` are these, `apart` says where they stay part of the state (they do not precede the
    access), and `distance(a, b)` is how far apart two threads are.
    """
    if apart is not None:
        spread = np.maximum(
            (before >> SPREAD_SHIFT) & 3, distance(before & THREADS, stamp & THREADS)
        )
        stamp = np.where(apart, stamp | (spread << SPREAD_SHIFT), stamp)
    words[index] = stamp
    got = words.take(index)
    other = got != stamp
    if not other.any():
        return
    index, got, stamp = (np.broadcast_to(part, other.shape)[other] for part in (index, got, stamp))
    spread = np.maximum(distance(got & THREADS, stamp & THREADS), (stamp >> SPREAD_SHIFT) & 3)
    spread = np.maximum(spread, (got >> SPREAD_SHIFT) & 3)
    alone = got & ~np.int64(3 << SPREAD_SHIFT)
    for step in (WARP, BLOCK, GRID):
        wide = spread >= step
        if wide.any():
            words[index[wide]] = alone[wide] | np.int64(step << SPREAD_SHIFT)
