"""Shadow of one block's shared memory: who read and wrote each byte last, and when."""

from __future__ import annotations

import numpy as np

from basedsl_cute.sim.errors import Thread
from basedsl_cute.sim.machine.vector_clock import VectorClocks
from basedsl_cute.sim.site import Site


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
        self.write_agent = np.zeros(size, np.int16)
        self.write_time = np.zeros(size, np.int32)
        self.write_site = np.zeros(size, np.int32)
        self.write_atomic = np.zeros(size, np.bool_)
        self.read_time = np.zeros((2 * warps, size), np.int32)
        self.read_site = np.zeros((2 * warps, size), np.int32)
        self.read_atomic = np.zeros((2 * warps, size), np.bool_)
        self.own_warps = range(first, first + warps)
        # The last access by each agent of another block: time, place, verb, thread.
        self.visits: dict[int, tuple[int, Site, str, Thread, int]] = {}
        self.writes: set[str] = set()  # the verbs of those that write
        self.sites: list[Site] = []
        self._site_numbers: dict[Site, int] = {}

    def row_of(self, agent: int) -> int:
        """The row of a reader; an agent of another block of the cluster gets one when it comes."""
        found = self.reader_rows.get(agent)
        if found is None:
            found = self.reader_rows[agent] = self.readers.size
            self.readers = np.append(self.readers, agent)
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
