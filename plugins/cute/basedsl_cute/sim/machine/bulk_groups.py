"""Bulk asynchronous stores: they read their source and write their target when they are waited for.

Each lane numbers its bulk groups; `wait_group n` completes all but the lane's last n groups, and
`wait_group.read n` only their reads (PTX ISA, cp.async.bulk.wait_group). What nobody waits for
happens when the block ends.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from basedsl_cute.sim.errors import RaceError
from basedsl_cute.sim.machine.races import Stamp
from basedsl_cute.sim.site import Site

if TYPE_CHECKING:
    from basedsl_cute.sim.machine.group import Group


@dataclass(slots=True, eq=False, repr=False)
class _Store:
    lane: int
    number: int  # the lane's bulk group
    read: Callable[[], Any]
    write: Callable[[Any], None]
    site: Site
    stamp: Stamp | None
    data: Any = None  # what was read


class BulkQueue:
    """The bulk stores that the lanes of one group have issued and not waited for."""

    def __init__(self, lanes: int) -> None:
        self._committed = np.zeros(lanes, np.int64)
        self._stores: list[_Store] = []

    def issue(
        self,
        lane: int,
        read: Callable[[], Any],
        write: Callable[[Any], None],
        site: Site,
        stamp: Stamp | None,
    ) -> None:
        """Remember a store: `read` gives what it reads, `write` puts that into its target."""
        self._stores.append(_Store(lane, int(self._committed[lane]), read, write, site, stamp))

    def commit(self, m: Any) -> None:
        """Close the bulk group of the lanes in `m`."""
        if m is None:
            self._committed += 1
        else:
            self._committed[m] += 1

    def wait(self, g: Group, groups: int, only_read: bool, m: Any) -> None:
        """Complete all but the last `groups` groups of the lanes in `m`, or only their reads."""
        left = []
        for store in self._stores:
            here = m is None or m[store.lane]
            if not here or store.number >= self._committed[store.lane] - groups:
                left.append(store)
                continue
            if store.data is None:
                store.data = store.read()
                if store.stamp is not None and g.races is not None:
                    g.races.order.complete(store.stamp, g.agent)
            if only_read:
                left.append(store)
            else:
                store.write(store.data)
        self._stores = left

    def finish(self, g: Group) -> None:
        """The block ends."""
        for store in self._stores:
            if store.data is None and g.races is not None:
                raise RaceError(
                    "the block ends while a bulk store may still read its shared memory",
                    store.site,
                    g.thread(store.lane),
                    hint="wait for it: cp_async_bulk_wait_group(0, read=True) by the thread that "
                    "stored, or the pipeline's producer_tail()",
                )
            store.write(store.read() if store.data is None else store.data)
        self._stores = []
