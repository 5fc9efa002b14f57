"""Accesses of asynchronous units to global memory, as the race check takes them.

A copy counts as an access of the thread that issues it, when it does: others order themselves after
that thread. A load that reads what threads wrote by ordinary stores in the same launch needs a
proxy fence between (PTX ISA, "Causality order": proxy-preserved base causality order); one by a
thread of the writing or of the loading block is taken for that.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from basedsl_cute.sim.errors import RaceError
from basedsl_cute.sim.machine.access import GPU_SCOPE, MemoryAccess
from basedsl_cute.sim.machine.memory import Segment
from basedsl_cute.sim.machine.race_report import place, thread_of
from basedsl_cute.sim.machine.reports import report
from basedsl_cute.sim.machine.state import Group
from basedsl_cute.sim.machine.word_history import (
    EVENT_SHIFT,
    PLAIN_READ,
    PLAIN_WRITE,
    STRONG_WRITE,
    THREADS,
)
from basedsl_cute.sim.site import Site

_BY = " by the asynchronous unit"


def _access(site: Site, itemsize: int, verb: str, strong: bool = False) -> MemoryAccess:
    dtype = np.dtype(f"u{itemsize}")
    return MemoryAccess(
        dtype, (), itemsize, 1, None, site, str(dtype), verb, strong=strong, scope=GPU_SCOPE
    )


def note_load(
    g: Group, segment: Segment, offsets: Any, itemsize: int, site: Site, lane: int
) -> None:
    """Record that a copy of `lane` reads the elements at byte `offsets` of a segment. Raises
    RaceError.
    """
    if g.races is None or not offsets.size:
        return
    a = _access(site, itemsize, "read" + _BY)
    home = g.races.history(segment, itemsize)
    if home is None:
        return
    g.races.record(g, a, segment, offsets, np.full(offsets.size, lane), PLAIN_READ, None)
    history, start = home
    words = history.last[PLAIN_WRITE]
    if words is not None:
        index = history.index(offsets + start, itemsize, itemsize)
        _check_proxy(g, a, segment, history, start, index, words.take(index), lane)


def note_store(
    g: Group,
    segment: Segment,
    offsets: Any,
    itemsize: int,
    site: Site,
    lane: int,
    reduces: bool = False,
) -> None:
    """Record that a copy of `lane` writes the elements at byte `offsets` of a segment, or combines
    them into it. Raises RaceError.
    """
    if g.races is None or not offsets.size:
        return
    a = _access(site, itemsize, ("reduction" if reduces else "write") + _BY, reduces)
    g.races.follow(segment, itemsize)
    who = np.full(offsets.size, lane)
    kind = STRONG_WRITE if reduces else PLAIN_WRITE
    g.races.record(g, a, segment, offsets, who, kind, None)


def _check_proxy(
    g: Group,
    a: MemoryAccess,
    segment: Segment,
    history: Any,
    start: int,
    index: Any,
    last: Any,
    lane: int,
) -> None:
    """Report what ordinary stores wrote and no proxy fence has shown to the asynchronous unit."""
    checker = g.races
    own = checker.proxy_fences.get(checker.first_block + g.block.linear, 0)
    for stamp in np.unique(last[last >> EVENT_SHIFT > own]).tolist():
        event, thread = stamp >> EVENT_SHIFT, stamp & int(THREADS)
        one = checker.events[event]
        if one is None or one.verb.endswith(_BY):
            continue
        if checker.proxy_fences.get(thread // int(checker.block_threads), 0) > event:
            continue
        word = int(np.ravel(index)[int((np.ravel(last) == stamp).argmax())])
        where, _ = place(g, one, segment, (word << history.shift) - start)
        error = RaceError(
            f"missing proxy fence: this copy reads {where}",
            a.site,
            g.thread(lane),
            notes=(
                (f"the write by {thread_of(g, checker, thread)}", one.site.span),
                ("with no proxy fence since, the asynchronous unit may not see that write", None),
            ),
            hint="after writing, and before the barrier: cute.arch.fence_proxy('async')",
        )
        report(g.launch, "races", error)
        return
