"""Order of launches on several streams, and races between those that nothing orders.

Launches on one stream follow each other. The default stream waits for what all streams have, and
they wait for it, as the CUDA driver's legacy default stream does with blocking streams. Host code
orders them by waiting (`cute.cuda.stream_sync`), and by letting one stream wait for another
(`cute.cuda.wait_stream`). On the simulator a launch has ended when it returns; here it counts as
running until something has waited for it.

Of each launch on a stream of its own the words that it touched are kept (`WordHistory`), for the
next launches to be compared with.
"""

from __future__ import annotations

import threading
from dataclasses import dataclass
from typing import Any

import numpy as np

from basedsl import with_article
from basedsl_cute.sim.errors import RaceError, Thread
from basedsl_cute.sim.machine.race_checker import RaceChecker
from basedsl_cute.sim.machine.race_report import place, thread_of
from basedsl_cute.sim.machine.reports import report
from basedsl_cute.sim.machine.word_history import (
    ASYNC,
    CONFLICTS,
    EVENT_SHIFT,
    THREADS,
    WordHistory,
)

DEFAULT_STREAMS = (0, 1)
"""Handles of the default stream: none, and CU_STREAM_LEGACY (CUDA Driver API)."""

_MOST = 32  # launches of one stream that are kept


@dataclass(frozen=True, slots=True, eq=False)
class StreamLaunch:
    """A launch that may still be running: the `number`-th of its stream, and what it touched."""

    stream: int
    number: int
    kernel: str
    launch: Any  # the SimLaunch
    ranges: tuple[tuple[int, int, WordHistory], ...]


class StreamOrder:
    """The launches of this process that may still be running, and what each stream waited for."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._issued: dict[int, int] = {}  # launches of each stream
        self._seen: dict[int, dict[int, int]] = {}  # by stream: of another one, the last waited for
        self._host: dict[int, int] = {}  # that host code has waited for
        self._running: list[StreamLaunch] = []

    def follows(self, stream: int) -> bool:
        """True if a launch on `stream` must be told to `add`."""
        return stream not in DEFAULT_STREAMS

    def synchronise(self, stream: int) -> None:
        """Note that host code has waited for a stream."""
        with self._lock:
            self._wait_for(stream)

    def _wait_for(self, stream: int) -> None:
        if stream in DEFAULT_STREAMS:
            self._host = dict(self._issued)
            self._running = []
            return
        self._host[stream] = self._issued.get(stream, 0)
        for other, number in self._seen.get(stream, {}).items():
            self._host[other] = max(self._host.get(other, 0), number)
        self._running = [one for one in self._running if one.number > self._host.get(one.stream, 0)]

    def wait(self, stream: int, other: int) -> None:
        """Note that later launches on `stream` wait for those that `other` has now."""
        with self._lock:
            seen = self._seen.setdefault(stream, {})
            known = dict(self._issued) if other in DEFAULT_STREAMS else self._known_to(other)
            for one, number in known.items():
                seen[one] = max(seen.get(one, 0), number)

    def _known_to(self, stream: int) -> dict[int, int]:
        return self._seen.get(stream, {}) | {stream: self._issued.get(stream, 0)}

    def forget(self) -> None:
        """Take all launches as over: after an error nobody may wait for them any more."""
        self.synchronise(DEFAULT_STREAMS[0])

    def pass_default(self) -> None:
        """Note a launch on the default stream: it comes after all before, and before all later."""
        if self._running:
            self.forget()

    def add(self, stream: int, kernel: str, launch: Any) -> None:
        """Add a launch that has ended on the simulator. Raises RaceError where it touched what a
        launch touched that may run at the same time.
        """
        checker: RaceChecker = launch.races
        with self._lock:
            number = self._issued[stream] = self._issued.get(stream, 0) + 1
            seen = self._seen.get(stream, {})
            beside = [
                one
                for one in self._running
                if one.stream != stream and one.number > seen.get(one.stream, 0)
            ]
            new = StreamLaunch(stream, number, kernel, launch, checker.touched())
            own = [one for one in self._running if one.stream == stream][-_MOST + 1 :]
            others = [one for one in self._running if one.stream != stream]
            self._running = [*others, *own, new]
        for one in beside:
            found = _conflict(new, one)
            if found is not None:
                self.forget()
                report(launch, "races", found)


ORDER = StreamOrder()


def _conflict(new: StreamLaunch, old: StreamLaunch) -> RaceError | None:
    for low, high, history in new.ranges:
        for other_low, other_high, other in old.ranges:
            first, end = max(low, other_low), min(high, other_high)
            if first >= end:
                continue
            for kind, others in CONFLICTS.items():
                for other_kind in others:
                    mine = _bytes_of(history, kind, first - low, end - low)
                    theirs = _bytes_of(other, other_kind, first - other_low, end - other_low)
                    if mine is None or theirs is None:
                        continue
                    both = (mine != 0) & (theirs != 0)
                    if both.any():
                        at = int(both.argmax())
                        return _race(new, old, first + at, int(mine[at]), int(theirs[at]))
    return None


def _bytes_of(history: WordHistory, kind: int, first: int, end: int) -> Any:
    """The last accesses of a kind to each byte from `first` to before `end`; None without any."""
    words = history.last[kind]
    if words is None:
        return None
    begin = first >> history.shift
    each = np.repeat(words[begin : (end - 1 >> history.shift) + 1], 1 << history.shift)
    skip = first - (begin << history.shift)
    return each[skip : skip + end - first]


def _race(new: StreamLaunch, old: StreamLaunch, address: int, mine: int, theirs: int) -> RaceError:
    a, one = (
        new.launch.races.events[mine >> EVENT_SHIFT],
        old.launch.races.events[theirs >> EVENT_SHIFT],
    )
    segment = new.launch.memory.find(address)
    where, extent = place(None, a, segment, address - segment.base)
    return RaceError(
        f"race on global memory: this {a.verb} and {with_article(one.verb)} on another stream "
        f"touch {where}",
        a.site,
        _thread(new, mine),
        notes=(
            (f"this launch is on stream {new.stream:#x}", None),
            (
                f"the {one.verb} by {_thread(old, theirs)} of {old.kernel} on stream "
                f"{old.stream:#x}",
                one.site.span,
            ),
            (f"nothing orders the two, which touch {extent}", None),
        ),
        hint="launch both on one stream, let one wait: cute.cuda.wait_stream(stream, other), or "
        "wait in host code: cute.cuda.stream_sync(other)",
    )


def _thread(one: StreamLaunch, stamp: int) -> Thread:
    number = stamp & int(THREADS) & ~int(ASYNC)
    return thread_of(_Shape(one.launch.grid, one.launch.block), one.launch.races, number)


@dataclass(frozen=True, slots=True)
class _Shape:
    grid_dim: tuple[int, int, int]
    block_dim: tuple[int, int, int]
