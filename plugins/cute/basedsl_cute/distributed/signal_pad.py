"""Layout of a rank's signal pad, in words of 32 bits, and the report of a wait that took too long.

    flags     slots x ranks   [slot, source]: written by rank `source` alone, counts only up
    counters  slots           this rank's own: what its barrier in each slot has counted to
    claim     1               this rank's own: 1 once a wait took too long

The report lies in memory that the host can read while kernels run: REPORT_WORDS words.
"""

from __future__ import annotations

import sys
import zlib
from typing import NamedTuple

from basedsl import DSLCallError, DSLRuntimeError, Span

WORD = 4
SLOTS = 256
"""Slots of a pad by default: a slot for each block of a kernel that meets its peers'."""

# Words of the report.
FAILED, LINE, FILE, SLOT, SOURCE, EXPECTED, SEEN = range(7)
REPORT_WORDS = 8


class PadLayout(NamedTuple):
    """The places in the signal pads of a group of `ranks` ranks with `slots` slots, in words."""

    ranks: int
    slots: int

    @property
    def counters(self) -> int:
        """The first counter."""
        return self.ranks * self.slots

    @property
    def claim(self) -> int:
        """The word of the thread that reports."""
        return self.counters + self.slots

    @property
    def words(self) -> int:
        """The words of a pad."""
        return self.claim + 1

    def describe(self, rank: int, byte: int) -> str:
        """The meaning of a byte of the pad of `rank`."""
        word = byte // WORD
        if word < self.counters:
            slot, source = divmod(word, self.ranks)
            return f"the signal of rank {source} in slot {slot} of rank {rank}"
        return f"the counter of slot {word - self.counters} of rank {rank}"


class PeerTimeoutError(DSLRuntimeError):
    """A rank waited for the signal of another one longer than its limit.

    `rank` waited for `source`, in `slot`.
    """

    def __init__(self, rank: int, report: list[int], seconds: float) -> None:
        self.rank, self.source, self.slot = rank, report[SOURCE], report[SLOT]
        span = _span(report[FILE], report[LINE])
        super().__init__(
            f"rank {rank} waited {seconds:g} s for the signal of rank {self.source} in slot "
            f"{self.slot}",
            span,
            notes=((f"it waited for {report[EXPECTED]}, and the signal is {report[SEEN]}", None),),
            hint=f"rank {self.source} has ended, is late, or skipped a signal; results of this "
            "kernel are not valid. A longer limit: signals with timeout=",
        )


def checked_limit(timeout: float) -> int:
    """The nanoseconds of a time limit in seconds. Raises DSLCallError for one that is not above 0
    and at most an hour.
    """
    if not isinstance(timeout, (int, float)) or not 0 < timeout <= 3600:
        raise DSLCallError(f"a time limit is above 0 and at most 3600 seconds, not {timeout!r}")
    return int(timeout * 1e9)


def file_number(path: str) -> int:
    """The number, of 31 bits, by which a report names a Python file."""
    return zlib.crc32(path.encode(errors="surrogateescape")) & 0x7FFF_FFFF


def _span(number: int, line: int) -> Span | None:
    """The place of a wait: the file is found among those of the modules that are loaded."""
    for module in sys.modules.copy().values():
        path = getattr(module, "__file__", None)
        if isinstance(path, str) and file_number(path) == number:
            return Span(path, line)
    return None
