"""Strong accesses whose scopes leave each other out: of them the memory model makes no promise (PTX
ISA, "Morally strong operations").
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from basedsl_cute.sim.machine.access import SYSTEM_SCOPE, MemoryAccess
from basedsl_cute.sim.machine.race_report import report_race
from basedsl_cute.sim.machine.word_access import WordAccess
from basedsl_cute.sim.machine.word_history import (
    EVENT_SHIFT,
    GRID,
    STRONG_READ,
    STRONG_WRITE,
    THREADS,
)


def check_ranks(checker: Any, access: WordAccess) -> None:
    """Report strong accesses of two ranks to one word unless both have the system's scope: of
    narrower ones the memory model makes no promise (PTX ISA, "Morally strong operations").
    """

    def apart(others: Any) -> Any:
        return checker.shared.ranks_of(others) != checker.rank

    def is_wide(one: MemoryAccess) -> bool:
        return one.scope == SYSTEM_SCOPE

    _check_last(checker, access, apart, is_wide)


def check_blocks(checker: Any, access: WordAccess) -> None:
    """Report strong accesses of two blocks to one word if one has the scope of its block alone:
    they are not morally strong, and race like plain ones.
    """
    thread = access.thread
    if access.kind == STRONG_WRITE and not access.a.wide:
        words = access.history.words(STRONG_WRITE).copy()
        words[access.index] = thread
        last = words.take(access.index)
        late = checker.distance(last, thread) == GRID
        if late.any():
            last |= np.int64((len(checker.events) - 1) << EVENT_SHIFT)
            report_race(checker, access, last, STRONG_WRITE, late)

    def apart(others: Any) -> Any:
        return checker.distance(others, thread) == GRID

    def is_wide(one: MemoryAccess) -> bool:
        return one.wide

    _check_last(checker, access, apart, is_wide)


def _check_last(
    checker: Any,
    access: WordAccess,
    apart: Callable[[Any], Any],
    is_wide: Callable[[MemoryAccess], bool],
) -> None:
    """Report the last strong accesses of threads that are `apart`, where one of two is not wide."""
    kinds = (STRONG_WRITE,) if access.kind == STRONG_READ else (STRONG_WRITE, STRONG_READ)
    for other in kinds:
        words = access.history.last[other]
        if words is None:
            continue
        before = words.take(access.index)
        late = (before != 0) & apart(before & THREADS)
        if is_wide(access.a) and late.any():
            events, which = np.unique(before >> EVENT_SHIFT, return_inverse=True)
            accesses = [checker.events[event] for event in events.tolist()]
            narrow = [e is not None and not is_wide(e) for e in accesses]
            late &= np.array(narrow)[which.reshape(late.shape)]
        if late.any():
            late &= checker.unordered(access.g, before, access.thread)
        if late.any():
            report_race(checker, access, before, other, late)
