"""Copies of contiguous memory by the TMA unit (PTX ISA, cp.async.bulk).

They are performed as late as the program lets them, as copies of tensors are (`tma`).
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import numpy as np

from basedsl_cute.sim.errors import MemoryAccessError
from basedsl_cute.sim.machine import races
from basedsl_cute.sim.machine.bulk_groups import issue_bulk_store
from basedsl_cute.sim.machine.global_copies import note_load, note_store
from basedsl_cute.sim.machine.guards import guard_store
from basedsl_cute.sim.machine.mbarriers import find_mbarrier, land_bytes, send_to_mbarrier
from basedsl_cute.sim.machine.memory import Segment
from basedsl_cute.sim.machine.state import Group, Mask
from basedsl_cute.sim.machine.tensor_maps import active_lanes
from basedsl_cute.sim.machine.tma import read_shared
from basedsl_cute.sim.site import Site

_UNIT = 16  # bytes: of the size and of both addresses


def bulk_load(g: Group, m: Mask, site: Site, to: Any, source: Any, sizes: Any, mbar: Any) -> None:
    """Copy `sizes` bytes of each lane from the global address `source` to the address `to` in the
    block's own shared memory; they count at the mbarrier at `mbar`.
    """
    for lane in active_lanes(g, m):
        at, first, size = int(to[lane]), int(source[lane]), int(sizes[lane])
        place = _shared_place(g, at, size, lane, site)
        segment = _global_place(g, first, size, lane, site, "read")
        barrier = int(mbar[lane])
        find_mbarrier(g.block, barrier, g, site, lane)
        stamp = None
        note_load(g, segment, first - segment.base + np.arange(0, size, 4), 4, site, lane)
        if g.shadow is not None:
            races.check_mbarrier_fenced(g.shadow, g, site, barrier - g.shared.base, lane)
            stamp = races.begin_async_write(g.shadow, g, site, "write by a bulk load", place, lane)
        start = first - segment.base
        data = segment.raw[start : start + size].copy().reshape(size, 1)
        land = functools.partial(land_bytes, g.block, barrier, place, data, stamp)
        send_to_mbarrier(g.block, barrier, land)


def bulk_store(
    g: Group,
    m: Mask,
    site: Site,
    to: Any,
    source: Any,
    sizes: Any,
    reduction: tuple[Any, Callable[[Any, Any], Any]] | None = None,
) -> None:
    """Copy `sizes` bytes of each lane from the shared address `source` to the global address `to`,
    in the lane's bulk group. `reduction` is a NumPy type and what combines the numbers there with
    those that come.
    """
    for lane in active_lanes(g, m):
        first, at, size = int(to[lane]), int(source[lane]), int(sizes[lane])
        place = _shared_place(g, at, size, lane, site)
        segment = _global_place(g, first, size, lane, site, "write")
        if not segment.writable:
            raise MemoryAccessError(
                f"write to `{segment.name}`, which is read-only", site, g.thread(lane)
            )
        stamp = None
        if g.shadow is not None:
            stamp = races.begin_async_read(g.shadow, g, site, "read by a bulk store", place, lane)
        read = functools.partial(read_shared, g, place, lane, site)
        write = functools.partial(_put, segment, first - segment.base, reduction)
        target = first - segment.base + np.arange(size)
        reduces = reduction is not None
        note = functools.partial(note_store, g, segment, target[::4], 4, site, lane, reduces)
        guard = guard_store(g, segment, target, site, lane, note)
        issue_bulk_store(g, lane, read, write, site, stamp, guard)


def _put(segment: Segment, start: int, reduction: Any, data: Any) -> None:
    values = data.ravel()
    there = slice(start, start + values.size)
    if reduction is not None:
        dtype, combine = reduction
        before = np.ascontiguousarray(segment.raw[there]).view(dtype)
        with np.errstate(all="ignore"):
            after = combine(before, np.ascontiguousarray(values).view(dtype))
        values = after.astype(dtype).view(np.uint8)
    segment.raw[there] = values


def _shared_place(g: Group, at: int, size: int, lane: int, site: Site) -> Any:
    """The byte offsets in shared memory, `(size, 1)`."""
    _check_units(g, at, size, "shared", lane, site)
    if at < g.shared.base or at + size > g.shared.end:
        raise MemoryAccessError(
            f"a bulk copy of {size} bytes at {at:#x} reaches beyond the block's shared memory",
            site,
            g.thread(lane),
            notes=((f"shared memory ends at {g.shared.end:#x}", None),),
        )
    return (at - g.shared.base + np.arange(size, dtype=np.int64))[:, None]


def _global_place(g: Group, first: int, size: int, lane: int, site: Site, verb: str) -> Segment:
    _check_units(g, first, size, "global", lane, site)
    segment = g.memory.find(first)
    if segment is None or first + size > segment.end:
        near = g.memory.nearest(first)
        closest = (
            () if near is None else ((f"`{near.name}`, the closest, ends at {near.end:#x}", None),)
        )
        raise MemoryAccessError(
            f"out-of-bounds {verb} of {size} bytes at address {first:#x} by a bulk copy",
            site,
            g.thread(lane),
            hint="copy no more bytes than the array has left",
            notes=closest,
        )
    return segment


def _check_units(g: Group, at: int, size: int, space: str, lane: int, site: Site) -> None:
    if at % _UNIT or size % _UNIT or size <= 0:
        raise MemoryAccessError(
            f"a bulk copy of {size} bytes at {space} address {at:#x}, not in {_UNIT}s",
            site,
            g.thread(lane),
            hint=f"its size and both addresses must be multiples of {_UNIT} bytes",
            notes=_nearest(g, at, space),
        )


def _nearest(g: Group, at: int, space: str) -> tuple[tuple[str, None], ...]:
    """The note of the array that an address belongs to."""
    if space == "shared":
        name, start, size = g.shared_variable(at)
    else:
        segment = g.memory.nearest(at)
        if segment is None:
            return ()
        name, start, size = segment.name, segment.base, segment.size
    return ((f"that is byte {at - start} of `{name}`, which has {size} bytes", None),)
