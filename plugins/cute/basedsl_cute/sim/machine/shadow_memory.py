"""Shadow of one block's shared memory: who read and wrote each byte last, and when."""

from __future__ import annotations

import contextlib
from typing import Any

import numpy as np

from basedsl_cute.sim.errors import Thread
from basedsl_cute.sim.machine.vector_clock import VectorClocks
from basedsl_cute.sim.site import Site

_MOST = 8
_free: dict[tuple[int, int], list[Any]] = {}
"""Tables of blocks that have ended, by warps and size: fresh memory costs more than the checks."""


def _tables(warps: int, size: int) -> tuple[Any, ...]:
    """Tables whose times are all 0: of writes `(size,)`, and of reads `(2 * warps, size)`."""
    kept = _free.get((warps, size))
    if kept:
        with contextlib.suppress(IndexError):  # another thread was first
            found: tuple[Any, ...] = kept.pop()
            return found
    if len(_free) > _MOST:
        _free.clear()
    kinds = (np.int16, np.int32, np.int32, np.bool_)
    writes = [np.zeros(size, kind) for kind in kinds]
    return (*writes, *(np.zeros((2 * warps, size), kind) for kind in kinds[1:]))


class ShadowMemory:
    """The last accesses to the `size` bytes of a block that has `warps` warps and is block `rank`
    of its cluster. `order` holds the cluster's clocks.

    Of each byte: agent, time and place of the last write, `(size,)`, whose time is 0 if there was
    none; and time and place of the last read by each of `readers`, `(readers, size)`. Places are
    numbers of `sites`; `write_atomic` and `read_atomic` mark strong accesses.
    """

    def __init__(self, order: VectorClocks, rank: int, warps: int, size: int) -> None:
        self.order = order
        self.warps = warps
        first = rank * warps
        # The block's warps, and their asynchronous units. Agents of other blocks come later.
        self.readers = first + np.concatenate([np.arange(warps), order.warps + np.arange(warps)])
        self.reader_rows = {int(agent): row for row, agent in enumerate(self.readers)}
        self._tables = _tables(warps, size)
        self.write_agent, self.write_time, self.write_site, self.write_atomic = self._tables[:4]
        self.read_time, self.read_site, self.read_atomic = self._tables[4:]
        # The time of the last read by each reader, and of the last write by each agent.
        self.last_read = np.zeros(2 * warps, np.int32)
        self.last_write = np.zeros(3 * order.warps, np.int32)
        self.has_strong = False  # if `write_atomic` or `read_atomic` marks any
        self._key = warps, size
        self.own_warps = range(first, first + warps)
        # The last access by each agent of another block: time, place, verb, thread.
        self.visits: dict[int, tuple[int, Site, str, Thread, int]] = {}
        self.writes: set[str] = set()  # the verbs of those that write
        self.sites: list[Site] = []
        self._site_numbers: dict[Site, int] = {}

    def give_back(self) -> None:
        """Let the shadow of another block have the tables, when the block has ended."""
        write_agent, write_time, read_time = self._tables[0], self._tables[1], self._tables[4]
        write_agent.fill(0)  # another cluster may have fewer
        write_time.fill(0)
        read_time[self.last_read[: read_time.shape[0]] != 0] = 0
        if self.has_strong:
            for marks in (self._tables[3], self._tables[6]):
                marks.fill(False)
        kept = _free.setdefault(self._key, [])
        if len(kept) < _MOST:
            kept.append(self._tables)

    def row_of(self, agent: int) -> int:
        """The row of a reader; an agent of another block of the cluster gets one when it comes."""
        found = self.reader_rows.get(agent)
        if found is None:
            found = self.reader_rows[agent] = self.readers.size
            self.readers = np.append(self.readers, agent)
            self.last_read = np.append(self.last_read, np.int32(0))
            more = np.zeros((1, self.read_time.shape[1]), np.int32)
            self.read_time = np.concatenate([self.read_time, more])
            self.read_site = np.concatenate([self.read_site, more])
            self.read_atomic = np.concatenate([self.read_atomic, more != 0])
        return found

    def number_of(self, site: Site) -> int:
        """The number of a place in `sites`."""
        found = self._site_numbers.get(site)
        if found is None:
            found = self._site_numbers[site] = len(self.sites)
            self.sites.append(site)
        return found
