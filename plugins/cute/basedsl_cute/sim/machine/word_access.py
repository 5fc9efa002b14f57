"""An access of lanes to words of memory, as the race checker compares it with earlier ones."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from basedsl_cute.sim.machine.access import MemoryAccess
from basedsl_cute.sim.machine.memory import Segment
from basedsl_cute.sim.machine.word_history import WordHistory


@dataclass(slots=True)
class WordAccess:
    """An access of the lanes `who` (None: all) of a group `g` of warps to the words `index` of a
    history, one column a lane; `start` is the history's byte at which the segment begins.
    """

    g: Any
    a: MemoryAccess
    segment: Segment
    history: WordHistory
    start: int
    index: Any
    thread: Any
    who: Any
    kind: int
