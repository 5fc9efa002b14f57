"""Races between threads of a launch: on global memory, and on shared memory in lock step.

Two accesses race when different threads touch the same word, at least one writes, they are not both
strong (atomics, and loads and stores with an order), and nothing orders them (PTX ISA, "Memory
Consistency Model"). Lanes of one warp are different threads: `sync_warp` orders them.
"""

from __future__ import annotations

from functools import cached_property
from typing import Any

import numpy as np

from basedsl_cute.sim.machine.access import MemoryAccess
from basedsl_cute.sim.machine.happens_before import (
    Knowledge,
    Released,
    merge,
    of_block,
    of_thread,
    of_warp,
)
from basedsl_cute.sim.machine.memory import Memory, Segment
from basedsl_cute.sim.machine.pending_access import Mesh, PendingAccess
from basedsl_cute.sim.machine.race_report import different, report_race
from basedsl_cute.sim.machine.rank_order import (
    BLOCK_NUMBERS,
    RankLaunch,
    RankOrder,
    of_launch,
)
from basedsl_cute.sim.machine.scope_races import check_blocks, check_ranks
from basedsl_cute.sim.machine.word_access import WordAccess
from basedsl_cute.sim.machine.word_history import (
    ASYNC,
    BLOCK,
    CONFLICTS,
    EVENT_SHIFT,
    PLAIN_READ,
    PLAIN_WRITE,
    SAME,
    SPREAD_SHIFT,
    STRONG_READ,
    STRONG_WRITE,
    THREADS,
    WARP,
    WordHistory,
    add_many,
)

_WHO = np.int64((1 << EVENT_SHIFT) - 1)  # thread and spread of a last access
_PENDING = 1 << 22  # numbers that accesses are kept as which words do not know of, at most


def one_run(index: Any) -> slice | None:
    """The words of an index if each lane has the one after that of the lane before."""
    if index.ndim != 1:
        return None
    first, count = int(index[0]), index.size
    if int(index[-1]) - first != count - 1 or (index[1:] - index[:-1] != 1).any():
        return None
    return slice(first, first + count)


def _settled(g: Any, history: WordHistory, is_shared: bool, before: Any, thread: Any) -> bool:
    """True if the last accesses plainly precede a new one: there were none, or they are the
    thread's own, or they come before a barrier of the block to its shared memory.
    """
    if is_shared and not history.copies:
        most = before.max()
        return bool(most == 0 or most >> EVENT_SHIFT <= g.known.floor)
    if not before.any():
        return True
    return not ((before != 0) & ((before & _WHO) != thread)).any()


def _updates(a: MemoryAccess, kind: int) -> bool:
    """True for an atomic: it reads what it writes."""
    return kind == STRONG_WRITE and a.reads


class RaceChecker:
    """The race check of one launch of blocks of `threads` threads, whose warps have `lanes`, on the
    segments of `memory`. `written` are those that the kernel may write, None if that is not known;
    `syncs` says that it has fences, atomics or accesses with an order. `shared`
    and `launch` are of several ranks: what their checks share, and this launch there.
    """

    def __init__(
        self,
        threads: int,
        lanes: int,
        memory: Memory,
        written: list[Segment] | None,
        syncs: bool,
        shared: RankOrder | None = None,
        launch: RankLaunch | None = None,
    ) -> None:
        self._warp_bits = lanes.bit_length() - 1  # of a thread's number: its lane
        self.warps = -(-threads // lanes)
        self.block_threads = np.int64(self.warps * lanes)  # numbers of a block's threads
        self.threads = threads
        self.events: list[MemoryAccess | None] = [None]
        self.syncs = syncs or shared is not None
        self.released = Released()
        self.shared = shared
        self.rank = self.first_block = 0
        self.known: Knowledge = {}  # before the launch
        self.orders: list[Any] = []  # of the launch's groups
        self.proxy_fences: dict[int, int] = {}  # the event of a block's last one, global memory's
        self.number = launch
        if shared is not None and launch is not None:
            self.block_threads = np.int64(BLOCK_NUMBERS)
            self.events, self.released = shared.events, shared.released
            self.rank, self.first_block = launch.rank, launch.first_block
            self.known = shared.known[launch.rank]
        self._memory = memory
        self._written = written
        self.stored: set[Segment] = set()  # that asynchronous copies write
        self._homes: dict[Segment, tuple[WordHistory, int] | None] = {}
        self._ranges: list[tuple[int, int, WordHistory]] = []

    # Histories -----------------------------------------------------------------------------------

    def history(self, segment: Segment, itemsize: int) -> tuple[WordHistory, int] | None:
        """The history of a segment, and the offset of its first byte there; None for memory that
        nobody writes. Segments that overlap share one.
        """
        if segment in self._homes:
            return self._homes[segment]
        home: tuple[WordHistory, int] | None = None
        if segment.kind == "shared":
            home = (WordHistory(segment.raw.size, itemsize, self.syncs), 0)
        elif segment.kind == "global" and segment.size:
            together = self.shared.range_at(segment.base) if self.shared is not None else None
            if together is not None:
                found = self._homes[segment] = together.history, segment.base - together.low
                return found
            touched = self._written is None or any(
                s.base < segment.end and segment.base < s.end for s in self._written
            )
            if touched:
                home = self._range(segment, itemsize)
        self._homes[segment] = home
        return home

    def follow(self, segment: Segment, itemsize: int) -> None:
        """Give a segment a history, though no store of a thread may write it: a copy will."""
        if segment in self.stored:
            return
        self.stored.add(segment)
        if self.history(segment, itemsize) is None:
            self._homes = {one: home for one, home in self._homes.items() if home is not None}
            self._homes[segment] = self._range(segment, itemsize)
            self._written = None if self._written is None else [*self._written, segment]

    @cached_property
    def _spans(self) -> list[tuple[int, int]]:
        """The ranges of segments that overlap."""
        found: list[tuple[int, int]] = []
        for segment in sorted(self._memory, key=lambda s: s.base):
            if found and segment.base < found[-1][1]:
                found[-1] = found[-1][0], max(found[-1][1], segment.end)
            else:
                found.append((segment.base, segment.end))
        return found

    def _range(self, segment: Segment, itemsize: int) -> tuple[WordHistory, int]:
        low, high = next(s for s in self._spans if s[0] <= segment.base < max(s[1], s[0] + 1))
        low &= ~15  # words begin at multiples of their size
        for at, _, history in self._ranges:
            if at == low:
                return history, segment.base - low
        history = WordHistory(high - low, itemsize, self.syncs)
        self._ranges.append((low, high, history))
        return history, segment.base - low

    def touched(self) -> tuple[tuple[int, int, WordHistory], ...]:
        """The ranges of global memory that the launch may have touched: their ends, and which words
        it did.
        """
        for _, _, history in self._ranges:
            self._catch_up(history, False, 0)
        return tuple(self._ranges)

    # Accesses ------------------------------------------------------------------------------------

    def record(
        self,
        g: Any,
        a: MemoryAccess,
        segment: Segment,
        offset: Any,
        who: Any,
        kind: int,
        value: Any,
    ) -> None:
        """Record an access of the lanes `who` (None: all) at byte offsets into a segment's copies.
        `value` is what a plain write is about to store. Raises RaceError.
        """
        itemsize = min(a.dtype.itemsize, a.align)
        home = self.history(segment, itemsize)
        if home is None:
            return
        history, start = home
        if start:
            offset = offset + start
        thread = g.known.threads_of(who)
        event = len(self.events)
        self.events.append(a)
        is_shared = segment.kind == "shared"
        if is_shared and g.known.order is not None:
            history.made.setdefault(g.known.agent, []).append(event)
        among_blocks = kind in (STRONG_READ, STRONG_WRITE) and segment.kind == "global"
        if among_blocks and not a.wide:
            history.narrow = True
        elif kind != PLAIN_WRITE and history.pending.size + offset.size < _PENDING:
            threads = None if who is None else thread
            pending = PendingAccess(
                kind, event, a.nbytes, itemsize, offset, threads, g.known, _updates(a, kind)
            )
            if self._put_off(g, segment, history, pending):
                return
        self._catch_up(history, is_shared, g.known.floor if is_shared else 0)
        history.latest = event
        index = history.index(offset, a.nbytes, itemsize)
        run = one_run(index)
        access = WordAccess(g, a, segment, history, start, index, thread, who, kind)
        for other in CONFLICTS[kind]:
            words = history.last[other]
            if words is not None:
                before = words.take(index) if run is None else words[run]
                if not _settled(g, history, is_shared, before, thread):
                    self._check(access, before, other)
        if kind in (STRONG_READ, STRONG_WRITE):
            if self.shared is not None:
                check_ranks(self, access)
            elif among_blocks and history.narrow:
                check_blocks(self, access)
        bits = np.int64(event << EVENT_SHIFT)
        if run is not None and kind in (PLAIN_READ, PLAIN_WRITE):
            words = history.words(kind)[run]
            if kind == PLAIN_WRITE:
                history.wrote = event
            if kind == PLAIN_WRITE or _settled(g, history, is_shared, words, thread):
                if kind == PLAIN_READ and history.listed:
                    history.note(kind, event, index, thread)
                np.bitwise_or(thread, bits, out=words)
                return
        stamp = thread | bits
        if kind == PLAIN_WRITE:
            history.wrote = event
            words = history.words(PLAIN_WRITE)
            words[index] = stamp
            got = words.take(index)
            if (got != stamp).any():
                self._check_together(access, got, got != stamp, value)
            return
        if kind == STRONG_WRITE:
            history.wrote = event
        self._join(g, history, is_shared, kind, index, thread, stamp, _updates(a, kind))

    def record_read(self, g: Any, a: MemoryAccess, segment: Segment, offset: Any, who: Any) -> None:
        """Record a plain read of the lanes `who`, some of them several times, at byte offsets into
        a segment's copies. Raises RaceError.
        """
        self.record(g, a, segment, offset, who, PLAIN_READ, None)

    def record_mesh(self, g: Any, a: MemoryAccess, segment: Segment, mesh: Mesh, kind: int) -> None:
        """Record a plain access of all lanes to places of their own in a segment; for a read, lanes
        may share them. Raises RaceError.
        """
        home = self.history(segment, a.dtype.itemsize)
        if home is None:
            return
        history, start = home
        if start:
            mesh = mesh.moved(start)
        event = len(self.events)
        access = PendingAccess(kind, event, a.nbytes, a.dtype.itemsize, mesh, None, g.known)
        if self._put_off(g, segment, history, access):
            self.events.append(a)
            if segment.kind == "shared" and g.known.order is not None:
                history.made.setdefault(g.known.agent, []).append(event)
            if kind == PLAIN_WRITE:
                history.wrote = event
            return
        value = np.zeros(1, a.dtype) if kind == PLAIN_WRITE else None
        self.record(g, a, segment, mesh.places - start, None, kind, value)

    def _put_off(
        self, g: Any, segment: Segment, history: WordHistory, access: PendingAccess
    ) -> bool:
        """Keep an access that races with none, without telling the words; False if it may race, or
        if words must know.
        """
        pending, known = history.pending, g.known
        is_shared = segment.kind == "shared"
        floor = known.floor if is_shared else 0
        if is_shared:
            pending.end_before(floor)
        reads = access.kind == PLAIN_READ
        if known.order is not None or self.shared is not None:
            if not (reads and is_shared) or history.wrote > floor or history.copies:
                return False
        else:
            strong = access.kind in (STRONG_READ, STRONG_WRITE)
            if history.copies or (not is_shared and self.syncs and not strong):
                return False
            if history.latest > floor and (not reads or history.wrote > floor):
                return False
            if pending.conflicts(access, CONFLICTS[access.kind], floor):
                return False
        pending.add(access)
        return True

    def _join(
        self,
        g: Any,
        history: WordHistory,
        is_shared: bool,
        kind: int,
        index: Any,
        thread: Any,
        stamp: Any,
        updates: bool = False,
    ) -> None:
        """Add an access to the last ones. One that `updates` reads what it writes: it comes after
        the strong write that it read (PTX ISA, "Observation order" and "Causality order").
        """
        words = history.words(kind)
        before = words.take(index)
        apart = None
        if updates:
            apart = (before >> SPREAD_SHIFT) & 3 != SAME
            if not apart.any():
                if history.listed:
                    history.note(kind, int(np.ravel(stamp)[0] >> EVENT_SHIFT), index, thread)
                words[index] = stamp
                return
        elif kind in (STRONG_WRITE, STRONG_READ):
            apart = before != 0  # many threads use these: whoever asks, asks the list
        elif not _settled(g, history, is_shared, before, thread):
            apart = self.unordered(g, before, thread, history)
            if apart is not None and not apart.any():
                apart = None
        if history.listed:
            history.note(kind, int(np.ravel(stamp)[0] >> EVENT_SHIFT), index, thread)
        add_many(words, index, stamp, before, apart, self.distance)

    def _catch_up(self, history: WordHistory, is_shared: bool, floor: int) -> None:
        """Let the words know of the accesses that were put off, after the event `floor`."""
        later = history.pending.all
        if not later:
            return
        history.pending.clear()
        for one in later:
            if one.event <= floor:
                continue
            places = one.places.places if type(one.places) is Mesh else one.places
            index = history.index(places, one.nbytes, one.itemsize)
            thread = one.known.threads if one.threads is None else one.threads
            stamp = thread | np.int64(one.event << EVENT_SHIFT)
            if one.kind == PLAIN_WRITE:
                history.words(PLAIN_WRITE)[index] = stamp
            else:
                self._join(one, history, is_shared, one.kind, index, thread, stamp, one.updates)
            history.latest = one.event

    def begin_copy(self, g: Any, a: MemoryAccess, offset: Any, who: Any) -> None:
        """Record that copies of lanes begin to write shared memory. Raises RaceError."""
        self.record(g, a, g.shared, offset, who, PLAIN_WRITE, None)
        self._mark(g, offset, a, who, ASYNC, 1)

    def end_copy(self, g: Any, a: MemoryAccess, offset: Any, who: Any) -> None:
        """Record that lanes have waited for copies."""
        self._mark(g, offset, a, who, np.int64(0), -1)

    def _mark(self, g: Any, offset: Any, a: MemoryAccess, who: Any, bit: Any, begun: int) -> None:
        itemsize = min(a.dtype.itemsize, a.align)
        home = self.history(g.shared, itemsize)
        assert home is not None
        index = home[0].index(offset, a.nbytes, itemsize)
        thread = g.known.threads_of(who)
        self.events.append(a)
        self._catch_up(home[0], True, g.known.floor)
        home[0].wrote = home[0].latest = len(self.events) - 1
        home[0].copies += begun * index.size
        home[0].words(PLAIN_WRITE)[index] = (
            thread | bit | np.int64((len(self.events) - 1) << EVENT_SHIFT)
        )

    # Order ---------------------------------------------------------------------------------------

    def distance(self, a: Any, b: Any) -> Any:
        """The distance of threads: SAME, WARP, BLOCK or GRID."""
        apart = (a != b).astype(np.int64)
        apart += a >> self._warp_bits != b >> self._warp_bits
        apart += a // self.block_threads != b // self.block_threads
        return apart

    def unordered(
        self, g: Any, before: Any, thread: Any, history: WordHistory | None = None
    ) -> Any:
        """True where the last accesses `before` do not precede what `thread` does now, as far as
        barriers of warps and blocks tell. `history` is that of their words.
        """
        other = before & THREADS
        spread = (before >> SPREAD_SHIFT) & 3
        event = before >> EVENT_SHIFT
        apart = np.maximum(self.distance(other, thread), spread)
        late = (before != 0) & (apart != SAME)
        waited = (other & ASYNC) == 0
        late &= ~((apart <= BLOCK) & (event <= g.known.floor) & waited)
        if not late.any():
            return late
        late &= ~((apart == WARP) & (event <= g.known.warp_floors(thread, other)))
        if g.known.order is not None and late.any():
            late &= ~((spread <= WARP) & g.known.known_by_warp(other, event))
            if history is not None and history.made:
                many = late & (spread == BLOCK) & waited
                for last in set(event[many].tolist()):
                    if g.known.knows_all(history.made, last):
                        late &= ~(many & (event == last))
        if self.syncs and late.any():
            self._ask(g, late, other, thread, spread, event)
        return late

    def _ask(self, g: Any, late: Any, other: Any, thread: Any, spread: Any, event: Any) -> None:
        """Clear `late` where a thread has acquired what orders it after one other thread."""
        asked = late & (spread == SAME) & ((other & ASYNC) == 0)
        if not asked.any():
            return
        # Of few pairs of threads there are many words.
        threads = np.broadcast_to(thread, late.shape)[asked]
        pairs, which = np.unique((threads << SPREAD_SHIFT) | other[asked], return_inverse=True)
        known = [
            self._known_of(g, pair >> SPREAD_SHIFT, pair & int(THREADS)) for pair in pairs.tolist()
        ]
        late[asked] = np.array(known)[which.reshape(-1)] < event[asked]

    def _known_of(self, g: Any, thread: int, other: int) -> int:
        """The event up to which `thread` has acquired that the accesses of `other` are over."""
        block = other // int(self.block_threads)
        keys = [of_thread(other), of_warp(other >> self._warp_bits), of_block(block)]
        if self.shared is not None and (launch := self.shared.launch_of(block)) is not None:
            keys.append(of_launch(launch))
        found: int = max(
            known.get(key, 0) for known in g.known.knowledge_of(thread) for key in keys
        )
        return found

    def _check(self, access: WordAccess, before: Any, other: int) -> None:
        late = self.unordered(access.g, before, access.thread, access.history)
        if not late.any():
            return
        if access.history.listed and access.g.known.acquired:
            self._ask_list(access, late, before, other)
        if late.any():
            report_race(self, access, before, other, late)

    def _ask_list(self, access: WordAccess, late: Any, before: Any, other: int) -> None:
        """Clear `late` where all listed accesses to the word precede this one."""
        history = access.history
        thread = np.broadcast_to(access.thread, late.shape)
        for place in zip(*np.nonzero(late), strict=True):
            word, me = int(access.index[place]), int(thread[place])
            if int(before[place] >> SPREAD_SHIFT) & 3 == SAME:
                continue
            late[place] = history.is_complete and any(
                not self._precedes(access.g, me, int(one), event)
                for kind, event, words, threads in history.accesses
                if kind == other
                for one in np.broadcast_to(threads, words.shape)[words == word]
            )

    def _precedes(self, g: Any, me: int, other: int, event: int) -> bool:
        stamp = np.array([other | (event << EVENT_SHIFT)], np.int64)
        return not bool(self.unordered(g, stamp, np.array([me], np.int64))[0])

    def _check_together(self, access: WordAccess, got: Any, other: Any, value: Any) -> None:
        """Raise for lanes of one instruction that write different values to one word."""
        thread = np.broadcast_to(access.thread, other.shape)
        late = other & (thread != (got & THREADS))
        if value is not None:
            a, index = access.a, access.index
            late = late & different(a, index, late, value, self.distance, thread)
        if late.any():
            report_race(self, access, got, PLAIN_WRITE, late)

    # Fences, atomics and accesses with an order ---------------------------------------------------

    def synchronise(
        self, g: Any, a: MemoryAccess, segment: Segment, offset: Any, lanes: Any, writes: Any
    ) -> None:
        """Let strong accesses release and acquire, lane by lane. `writes` says which of them write:
        an array, or one boolean.
        """
        home = self.history(segment, min(a.dtype.itemsize, a.align))
        if home is None:
            return
        history, start = home
        writes = np.broadcast_to(writes, lanes.shape)
        fenced = g.known.fences.any() if g.known.fences is not None else False
        releases = a.releases or fenced
        if not releases and not self.released:
            return
        for lane, at, wrote in zip(lanes.tolist(), (offset + start).tolist(), writes, strict=True):
            place = (id(history), at)
            thread = int(g.known.threads[lane])
            block = thread // int(self.block_threads)
            if a.reads:
                known = self.released.acquire(place, block, self.rank, a.scope)
                if known:
                    g.known.learn(lane, known, a.acquires)
            if wrote:
                self._release(g, a, place, lane, thread, block)

    def _release(
        self, g: Any, a: MemoryAccess, place: Any, lane: int, thread: int, block: int
    ) -> None:
        event, scope = len(self.events) - 1, a.scope
        if not a.releases:
            if g.known.fences is None or not g.known.fences[0, lane]:
                if not a.reads:  # not part of what was released before
                    self.released.forget(place, block, self.rank)
                return
            while not g.known.fences[scope, lane]:
                scope -= 1
            event = int(g.known.fences[scope, lane])
        knowledge: Knowledge = {of_thread(thread): event}
        knowledge |= g.known.barrier_knowledge(lane, thread, block)
        for known in g.known.knowledge_of(thread):
            merge(knowledge, known)
        self.released.release(place, block, self.rank, scope, knowledge)
