"""cp.async: copies that are performed when they are waited for, so that a missing wait shows.

Each lane numbers its commit groups; `wait_group n` completes all but the lane's last n groups (PTX
ISA, cp.async.wait_group).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np

from basedsl_cute.sim.machine import races
from basedsl_cute.sim.machine.access import MemoryAccess
from basedsl_cute.sim.machine.load_store import (
    check_access,
    is_inside,
    load_memory,
    shared_offset,
    store_shared_bytes,
)
from basedsl_cute.sim.machine.state import Group, Mask, PendingCopy
from basedsl_cute.sim.machine.vector_clock import Stamp

_UNITS = {size: np.dtype(f"V{size}") for size in (4, 8, 16)}  # of copies, by bytes
_WRITTEN = {size: np.frombuffer(b"\xff" * size, unit)[0] for size, unit in _UNITS.items()}


def issue_copy(
    g: Group,
    read: MemoryAccess,
    write: MemoryAccess,
    to: Any,
    source: Any,
    sizes: Any,
    m: Mask,
) -> None:
    """Queue a copy by the lanes in `m`, from the global addresses `source` to the shared addresses
    `to`. `sizes` are bytes to read, the rest is zero; None reads all. Raises MemoryAccessError for
    a bad shared address, and RaceError.
    """
    check_access(g, write, to, m)
    queue = g.copies
    lanes = np.arange(g.lanes) if m is None else np.flatnonzero(m)
    sizes = None if sizes is None else np.broadcast_to(sizes, (g.lanes,))[lanes]
    number = queue.committed[lanes].copy()
    to, source = to[lanes], source[lanes]
    stamp = None
    if g.shadow is not None:
        stamp = races.begin_copy_write(g.shadow, g, write, to - g.shared.base, lanes)
    elif g.races is not None:
        g.races.begin_copy(g, write, shared_offset(g, to, lanes), lanes)
    queue.issued += 1
    copy = PendingCopy(read, write, to, source, sizes, lanes, number, queue.issued, stamp)
    queue.pending.append(copy)


def issue_copies(
    g: Group, read: MemoryAccess, write: MemoryAccess, to: tuple[Any, ...], source: tuple[Any, ...]
) -> bool:
    """Queue copies of one line by all lanes, as `issue_copy` does for each pair of addresses.
    False, and nothing is done, where an address is bad or clocks of warps are kept.
    """
    targets = np.concatenate(to)
    if g.shadow is not None or not is_inside(write, g.shared, targets):
        return False
    count = len(to)
    lanes = g.shape.repeated(count)
    if g.races is not None:
        g.races.begin_copy(g, write, shared_offset(g, targets, lanes), lanes)
    queue = g.copies
    queue.issued += 1
    number = np.tile(queue.committed, count)
    copy = PendingCopy(
        read, write, targets, np.concatenate(source), None, lanes, number, queue.issued, None
    )
    queue.pending.append(copy)
    return True


def commit_copies(g: Group, m: Mask) -> None:
    """Close the commit group of the lanes in `m`."""
    if m is None:
        g.copies.committed += 1
    else:
        g.copies.committed[m] += 1


def wait_for_copies(g: Group, groups: int | None, m: Mask) -> None:
    """Perform the copies of the lanes in `m`, but for the last `groups` groups; None: all."""

    def due(copy: PendingCopy) -> Any:
        if groups is None:
            return np.ones(copy.lanes.size, np.bool_)
        return copy.number < g.copies.committed[copy.lanes] - groups

    for stamp in _complete(g, due, m):
        if g.shadow is not None:
            g.shadow.order.end_access(stamp, g.agent)


def complete_copies(g: Group, serial: int, m: Mask) -> list[Stamp]:
    """Perform the copies by the lanes in `m` up to the one numbered `serial`. The caller says who
    learns that the accesses returned are over.
    """

    def due(copy: PendingCopy) -> Any:
        return np.full(copy.lanes.size, copy.serial <= serial)

    return _complete(g, due, m)


def _complete(g: Group, is_due: Callable[[PendingCopy], Any], m: Mask) -> list[Stamp]:
    left, stamps = [], []
    for copy in g.copies.pending:
        due = is_due(copy)
        if m is not None:
            due = due & m[copy.lanes]
        if due.any():
            _perform(g, copy if due.all() else _rest(copy, due))
            if copy.stamp is not None:
                stamps.append(copy.stamp)
        if not due.all():
            left.append(_rest(copy, ~due))
    g.copies.pending = left
    return stamps


def _rest(copy: PendingCopy, chosen: Any) -> PendingCopy:
    """The part of a copy by the chosen ones of its lanes."""
    return replace(
        copy,
        to=copy.to[chosen],
        source=copy.source[chosen],
        sizes=None if copy.sizes is None else copy.sizes[chosen],
        lanes=copy.lanes[chosen],
        number=copy.number[chosen],
    )


def _perform(g: Group, copy: PendingCopy) -> None:
    if g.shadow is None and g.races is not None:
        g.races.end_copy(g, copy.write, shared_offset(g, copy.to, copy.lanes), copy.lanes)
    if copy.sizes is None:
        if _move_at_once(g, copy):
            return
        _move(g, copy, copy.read, np.ones(copy.lanes.size, np.bool_), None)
        return
    for size in np.unique(copy.sizes).tolist():
        chosen = copy.sizes == size
        clipped = max(0, min(int(size), copy.read.count))
        _move(g, copy, replace(copy.read, shape=(clipped,)), chosen, clipped)


def _move_at_once(g: Group, copy: PendingCopy) -> bool:
    """Move what lies in the memory that its pointers come from; False if that is not known."""
    read, size = copy.read, copy.read.count
    segment = None if read.root is None else g.roots[read.root]
    if segment is None or copy.stamp is not None or g.launch.guards or segment.written is not None:
        return False
    if (segment.base | g.shared.base | g.shared.stride) & (size - 1):
        return False
    if not is_inside(read, segment, copy.source):
        return False
    offset = copy.source - segment.base
    if g.races is not None:
        g.races.record_read(g, read, segment, offset, copy.lanes)
    unit = _UNITS[size]
    index = shared_offset(g, copy.to, copy.lanes) >> size.bit_length() - 1
    g.shared.view(unit)[index] = segment.view(unit).take(offset >> size.bit_length() - 1)
    if g.shared.written is not None:
        g.shared.written[: g.shared.written.size & -size].view(unit)[index] = _WRITTEN[size]
    return True


def _move(g: Group, copy: PendingCopy, read: MemoryAccess, chosen: Any, size: int | None) -> None:
    """Move the bytes of the chosen lanes; a lane may have several copies, one after another."""
    if copy.lanes.size > g.lanes:
        for part in np.split(
            np.arange(copy.lanes.size), 1 + np.flatnonzero(np.diff(copy.lanes) <= 0)
        ):
            if chosen[part].any():
                some = np.zeros(copy.lanes.size, np.bool_)
                some[part] = True
                _move(g, _rest(copy, some), read, chosen[part], size)
        return
    lanes = copy.lanes[chosen]
    data = np.zeros((copy.write.count, lanes.size), np.uint8)
    if size != 0:
        m = np.zeros(g.lanes, np.bool_)
        m[lanes] = True
        full = np.zeros(g.lanes, np.int64)
        full[lanes] = copy.source[chosen]
        data[: read.count] = load_memory(g, read, full, m)[:, lanes]
    store_shared_bytes(g, copy.write, copy.to[chosen], data, lanes)
