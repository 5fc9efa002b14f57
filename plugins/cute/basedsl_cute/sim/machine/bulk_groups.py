"""Bulk asynchronous stores, performed when they are waited for, so that a missing wait shows.

Each lane numbers its bulk groups; `wait_group n` completes all but the lane's last n groups, and
`wait_group.read n` only their reads (PTX ISA, cp.async.bulk.wait_group). Stores that
nobody waits for are performed when the block ends.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from basedsl_cute.sim.errors import RaceError
from basedsl_cute.sim.machine.guards import GuardedBytes
from basedsl_cute.sim.machine.reports import report
from basedsl_cute.sim.machine.state import Group, Mask, PendingStore
from basedsl_cute.sim.machine.vector_clock import Stamp
from basedsl_cute.sim.site import Site


def issue_bulk_store(
    g: Group,
    lane: int,
    read: Callable[[], Any],
    write: Callable[[Any], None],
    site: Site,
    stamp: Stamp | None,
    guard: GuardedBytes | None = None,
) -> None:
    """Queue a store: `read` gives its bytes, `write` puts them into the target, of which `guard`
    keeps threads off until then.
    """
    number = int(g.bulk.committed[lane])
    g.bulk.pending.append(PendingStore(lane, number, read, write, site, stamp, guard=guard))


def commit_bulk_group(g: Group, m: Mask) -> None:
    """Close the bulk group of the lanes in `m`."""
    if m is None:
        g.bulk.committed += 1
    else:
        g.bulk.committed[m] += 1


def wait_for_bulk_groups(g: Group, groups: int, only_read: bool, m: Mask) -> None:
    """Perform the stores of the lanes in `m`, or only their reads, but for the last `groups` groups
    of each lane.
    """
    queue = g.bulk
    left = []
    for store in queue.pending:
        here = m is None or m[store.lane]
        if not here or store.number >= queue.committed[store.lane] - groups:
            left.append(store)
            continue
        if store.data is None:
            store.data = store.read()
            if store.stamp is not None and g.shadow is not None:
                g.shadow.order.end_access(store.stamp, g.agent)
        if only_read:
            left.append(store)
        else:
            _complete(g, store, store.data)
    queue.pending = left


def finish_bulk_stores(g: Group) -> None:
    """Perform what is left when the block ends. Raises RaceError for a store that nobody has waited
    for to read its source, if races are checked.
    """
    for store in g.bulk.pending:
        if store.data is None and g.shadow is not None:
            error = RaceError(
                "the block ends while a bulk store may still read its shared memory",
                store.site,
                g.thread(store.lane),
                hint="wait for it: cp_async_bulk_wait_group(0, read=True) by the thread that "
                "stored, or the pipeline's producer_tail()",
            )
            report(g.launch, "races", error)
        if store.guard is not None and g.races is not None and g.races.syncs:
            store.guard.note()  # nothing that a thread has released before is after the store
        _complete(g, store, store.read() if store.data is None else store.data)
    g.bulk.pending = []


def _complete(g: Group, store: PendingStore, data: Any) -> None:
    if store.guard is not None:
        g.launch.guards.remove(store.guard)
    store.write(data)
