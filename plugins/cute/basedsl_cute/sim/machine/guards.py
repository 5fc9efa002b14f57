"""Guards: global memory that threads must not touch yet, since something else may still write it.

Two things guard memory: a bulk store that is not known to be complete, and, in a dependent launch
(programmatic dependent launch), the kernel in front of it until `griddepcontrol.wait`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from basedsl_cute.sim.errors import Note, RaceError
from basedsl_cute.sim.machine.access import MemoryAccess
from basedsl_cute.sim.machine.memory import Segment, distinct
from basedsl_cute.sim.machine.reports import report


@dataclass(slots=True, eq=False)
class GuardedBytes:
    """Bytes at host addresses that are not to be touched: from `low` to below `high`, or of these
    the sorted `places`. `reason` and `hint` are for the report, and `note` tells the race check of
    the write.
    """

    low: int
    high: int
    places: Any
    reason: Note
    hint: str
    in_front: bool = False  # of a dependent launch
    is_read: bool = False  # not to be written; reads do no harm
    note: Callable[[], None] | None = None


def check_guards(g: Any, a: MemoryAccess, segment: Segment, offset: Any, lanes: Any) -> None:
    """Report a lane whose access touches guarded bytes; `offset` is per lane of `lanes`."""
    if segment.kind != "global":
        return
    first = segment.base + offset
    for guard in g.launch.guards:
        if guard.is_read and a.verb == "read":
            continue
        meets = (first < guard.high) & (first + a.nbytes > guard.low)
        if not meets.any():
            continue
        if guard.places is not None:
            begin = np.searchsorted(guard.places, first)
            meets &= np.searchsorted(guard.places, first + a.nbytes) > begin
            if not meets.any():
                continue
        at = int(meets.argmax())
        element = int(offset[at]) // a.dtype.itemsize
        lane = at if lanes is None else int(lanes[at])
        error = RaceError(
            f"race on global memory: this {a.verb} touches element {element} of `{segment.name}` "
            f"{'while it may be read' if guard.is_read else 'before it is written'}",
            a.site,
            g.thread(lane),
            notes=(guard.reason,),
            hint=guard.hint,
        )
        report(g.launch, "races", error)


def guard_store(
    g: Any, segment: Segment, places: Any, site: Any, lane: int, note: Callable[[], None]
) -> GuardedBytes | None:
    """Guard the bytes of a segment that a bulk store of a lane will write; `places` are offsets,
    and `note` tells the race check of the write.
    """
    if g.races is None or not places.size:
        return None
    note()
    places = distinct(places) + segment.base
    guard = GuardedBytes(
        int(places[0]),
        int(places[-1]) + 1,
        None if places.size == places[-1] - places[0] + 1 else places,
        (f"the bulk store by {g.thread(lane)} is not known to be complete", site.span),
        "wait until it is complete, not only until it has read: cp_async_bulk_wait_group(0)",
        note=note,
    )
    g.launch.guards.append(guard)
    return guard


@dataclass(frozen=True, slots=True)
class KernelInFront:
    """The memory that a kernel may have written, and what it may have read: address ranges."""

    kernel: str
    written: tuple[tuple[int, int], ...]
    read: tuple[tuple[int, int], ...]

    def guards(self) -> list[GuardedBytes]:
        """The guards of a launch that depends on the kernel."""
        reason = f"the kernel in front, {self.kernel}, may not have written it yet", None
        hint = "cute.arch.griddepcontrol_wait() before the first access to what it writes"
        found = [GuardedBytes(low, high, None, reason, hint, True) for low, high in self.written]
        reason = f"the kernel in front, {self.kernel}, may not have read it yet", None
        hint = "cute.arch.griddepcontrol_wait() before the first write to what it reads"
        for low, high in self.read:
            found.append(GuardedBytes(low, high, None, reason, hint, True, is_read=True))
        return found


def end_dependency(launch: Any) -> None:
    """Note that a dependent launch has waited for the kernel in front."""
    launch.waited = True
    launch.guards = [guard for guard in launch.guards if not guard.in_front]
