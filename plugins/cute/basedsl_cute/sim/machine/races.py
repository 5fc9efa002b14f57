"""Races on shared memory, found with vector clocks per warp and a shadow of every byte.

Two accesses race when different agents touch the same byte, at least one writes, they are not both
atomic, and nothing that orders them lies between (`vector_clock` says who the agents are). An
asynchronous access lasts until somebody has waited for it.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from basedsl import with_article
from basedsl_cute.sim.errors import RaceError, Thread
from basedsl_cute.sim.machine.access import MemoryAccess
from basedsl_cute.sim.machine.reports import report
from basedsl_cute.sim.machine.shadow_memory import ShadowMemory
from basedsl_cute.sim.machine.state import Block, Group, Mask, SimLaunch
from basedsl_cute.sim.machine.vector_clock import FENCED, READ, SEEN, Stamp
from basedsl_cute.sim.site import Site


class _Touch(NamedTuple):
    """An access to some bytes: `touched[i]` are those of lane `lanes[i]`."""

    g: Group
    site: Site
    verb: str
    touched: Any
    lanes: Any
    agent: int
    asynchronous: bool = False
    atomic: bool = False


# Accesses to the memory that `shadow` shadows, at offsets in bytes from its beginning -----------


def check_read(shadow: ShadowMemory, g: Group, a: MemoryAccess, offset: Any, m: Mask) -> None:
    """Record an ordinary read at `offset`, `(lanes,)`, by the lanes in `m`. Raises RaceError."""
    who = np.arange(offset.size) if m is None else np.flatnonzero(m)
    touched = offset[who][:, None] + np.arange(a.nbytes)
    touch = _Touch(g, a.site, a.verb, touched, who, g.agent, atomic=a.strong)
    _read(shadow, touch, shadow.order.time_of(g.agent))


def check_write(shadow: ShadowMemory, g: Group, a: MemoryAccess, offset: Any, who: Any) -> None:
    """Record a write by the lanes `who`, to one offset each. Raises RaceError."""
    touch = _lanewise(g, a, offset, who, g.agent, a.strong)
    _write(shadow, touch, shadow.order.time_of(g.agent))


def begin_copy_write(
    shadow: ShadowMemory, g: Group, a: MemoryAccess, offset: Any, who: Any
) -> Stamp:
    """Record that a cp.async of the lanes `who` begins to write. Raises RaceError."""
    stamp = shadow.order.begin_access(2 * shadow.order.warps + g.agent)
    _write(shadow, _lanewise(g, a, offset, who, stamp.agent), stamp.time)
    return stamp


def begin_async_read(
    shadow: ShadowMemory, g: Group, site: Site, verb: str, touched: Any, lane: int
) -> Stamp:
    """Record that the asynchronous unit begins to read the bytes `touched`, for `lane`. Raises
    RaceError.
    """
    stamp = shadow.order.begin_access(shadow.order.warps + g.agent)
    _read(shadow, _bulk(g, site, verb, touched, lane, stamp), stamp.time)
    return stamp


def begin_async_write(
    shadow: ShadowMemory, g: Group, site: Site, verb: str, touched: Any, lane: int
) -> Stamp:
    """Record that the asynchronous unit begins to write the bytes `touched`, for `lane`. Raises
    RaceError.
    """
    stamp = shadow.order.begin_access(shadow.order.warps + g.agent)
    _write(shadow, _bulk(g, site, verb, touched, lane, stamp), stamp.time)
    return stamp


def check_mbarrier_init(shadow: ShadowMemory, g: Group, site: Site, at: int, lane: int) -> None:
    """Record that `lane` initialises an mbarrier at the offset `at`. Raises RaceError."""
    time = shadow.order.time_of(g.agent)
    _write(shadow, _mbarrier(g, site, "mbarrier_init", at, lane), time)


def check_mbarrier_use(
    shadow: ShadowMemory, g: Group, site: Site, verb: str, at: int, lane: int
) -> None:
    """Record an operation on the mbarrier at the offset `at`: uses are atomic to each other, and
    must come after it was initialised. Raises RaceError.
    """
    _read(shadow, _mbarrier(g, site, verb, at, lane), shadow.order.time_of(g.agent))


def check_mbarrier_fenced(shadow: ShadowMemory, g: Group, site: Site, at: int, lane: int) -> None:
    """Raise RaceError unless the asynchronous unit, whose copy is to count at the mbarrier at the
    offset `at`, sees that it was initialised.
    """
    clock = shadow.order.clocks[g.agent]
    writer, time = int(shadow.write_agent[at]), int(shadow.write_time[at])
    is_seen = writer == g.agent or time <= clock[SEEN, writer]
    if clock[FENCED, writer] < time and is_seen:
        who = shadow.order.agent_name(writer, shadow.warps)
        error = RaceError(
            f"missing fence: this copy counts at the mbarrier at {_byte(g, at)}",
            site,
            g.thread(lane),
            notes=(
                (f"initialised by {who}", shadow.sites[shadow.write_site[at]].span),
                ("with no fence since, the asynchronous unit may not know the mbarrier", None),
            ),
            hint="cute.arch.mbarrier_init_fence() after mbarrier_init, and before the barrier",
        )
        report(g.launch, "races", error)


COMMIT = "arrival by tcgen05.commit"


def check_visits(launch: SimLaunch, block: Block, barriers: int) -> None:
    """Raise RaceError unless `block`, which has ended, knew that all accesses of other blocks to
    its shared memory were over. All its warps have waited at `barriers` barriers of the cluster: a
    read is over at the reader's next arrival, a relaxed one too, and so is `COMMIT` taken to be.
    """
    shadow = block.shadow
    if shadow is None:
        return
    own = shadow.own_warps
    clocks = shadow.order.clocks[own.start : own.stop]
    ends, reads = clocks[:, SEEN].max(axis=0), clocks[:, READ].max(axis=0)
    for agent, (time, site, verb, thread, arrivals) in shadow.visits.items():
        known = ends[agent] if verb in shadow.writes else max(ends[agent], reads[agent])
        if time > known and not (verb in ("read", COMMIT) and arrivals < barriers):
            error = RaceError(
                f"this {verb} is in the shared memory of another block, which may have ended",
                site,
                thread,
                hint="let that block wait: cute.arch.cluster_arrive() and cluster_wait() by "
                "all of the cluster, or the producer's tail(), before its end",
            )
            report(launch, "races", error)


def _mbarrier(g: Group, site: Site, verb: str, at: int, lane: int) -> _Touch:
    touched = (at + np.arange(8)).reshape(1, -1)
    return _Touch(g, site, verb, touched, np.array([lane]), g.agent)


def _lanewise(
    g: Group, a: MemoryAccess, offset: Any, who: Any, agent: int, atomic: bool = False
) -> _Touch:
    who = np.arange(offset.size) if who is None else who
    touched = offset[:, None] + np.arange(a.nbytes)
    return _Touch(g, a.site, a.verb, touched, who, agent, atomic=atomic)


def _bulk(g: Group, site: Site, verb: str, touched: Any, lane: int, stamp: Stamp) -> _Touch:
    lanes = np.array([lane])
    return _Touch(g, site, verb, touched.reshape(1, -1), lanes, stamp.agent, asynchronous=True)


# Against the last accesses ----------------------------------------------------------------------


def _note_visit(shadow: ShadowMemory, touch: _Touch, time: int) -> None:
    """Remember the last access by an agent of another block."""
    if touch.agent % shadow.order.warps not in shadow.own_warps:
        thread = touch.g.thread(int(touch.lanes[0]))
        _check_started(shadow, touch, thread)
        arrivals = touch.g.cluster_phase
        shadow.visits[touch.agent] = (time, touch.site, touch.verb, thread, arrivals)


def _check_started(shadow: ShadowMemory, touch: _Touch, thread: Thread) -> None:
    """Report an access to the shared memory of a block that may not have started."""
    own = shadow.own_warps
    known = shadow.order.clocks[touch.g.agent, (SEEN, READ), own.start : own.stop]
    if known.max() < shadow.order.start:
        error = RaceError(
            f"this {touch.verb} is in the shared memory of another block, which may not have "
            "started",
            touch.site,
            thread,
            notes=(("the blocks of a cluster start at different times", None),),
            hint="wait for it first: cute.arch.cluster_arrive() and cluster_wait()",
        )
        report(touch.g.launch, "races", error)


def _read(shadow: ShadowMemory, touch: _Touch, time: int) -> None:
    _note_visit(shadow, touch, time)
    _check_writes(shadow, touch)
    row = shadow.row_of(touch.agent)
    shadow.last_read[row] = max(shadow.last_read[row], time)
    shadow.read_time[row, touch.touched] = time
    shadow.read_site[row, touch.touched] = shadow.number_of(touch.site)
    shadow.has_strong |= touch.atomic
    if shadow.has_strong:
        shadow.read_atomic[row, touch.touched] = touch.atomic


def _write(shadow: ShadowMemory, touch: _Touch, time: int) -> None:
    _note_visit(shadow, touch, time)
    shadow.writes.add(touch.verb)
    _check_writes(shadow, touch)
    touched, warp = touch.touched, touch.g.agent
    clock = shadow.order.clocks[warp]
    known = np.maximum(clock[SEEN], clock[READ])[shadow.readers]
    own = shadow.reader_rows.get(warp)
    for row in np.flatnonzero(shadow.last_read > known).tolist():
        if row == own:
            continue
        late = shadow.read_time[row, touched] > known[row]
        if touch.atomic:
            late &= ~shadow.read_atomic[row, touched]
        if late.any():
            lane, byte = (int(i) for i in np.argwhere(late)[0])
            at = int(touched[lane, byte])
            site = shadow.sites[shadow.read_site[row, at]]
            found = _race(shadow, touch, at, lane, int(shadow.readers[row]), site, "read")
            report(touch.g.launch, "races", found)
            break
    shadow.last_write[touch.agent] = max(shadow.last_write[touch.agent], time)
    shadow.write_agent[touched] = touch.agent
    shadow.write_time[touched] = time
    shadow.write_site[touched] = shadow.number_of(touch.site)
    shadow.has_strong |= touch.atomic
    if shadow.has_strong:
        shadow.write_atomic[touched] = touch.atomic


def _check_writes(shadow: ShadowMemory, touch: _Touch) -> None:
    """Raise if some byte was written last by an access that `touch` does not know to be over."""
    touched, warp = touch.touched, touch.g.agent
    clock = shadow.order.clocks[warp]
    unknown = shadow.last_write > clock[FENCED if touch.asynchronous else SEEN]
    if not touch.asynchronous:
        unknown[warp] = False
    if not unknown.any():
        return
    writer, time = shadow.write_agent[touched], shadow.write_time[touched]
    late = time > clock[FENCED if touch.asynchronous else SEEN][writer]
    if not touch.asynchronous:
        late &= writer != warp
    if touch.atomic:
        late &= ~shadow.write_atomic[touched]
    if not late.any():
        return
    lane, byte = (int(i) for i in np.argwhere(late)[0])
    at, other = int(touched[lane, byte]), int(writer[lane, byte])
    site = shadow.sites[shadow.write_site[at]]
    if other == warp or int(time[lane, byte]) <= int(clock[SEEN][other]):
        found = _unfenced(shadow, touch, at, lane, other, site)
    else:
        found = _race(shadow, touch, at, lane, other, site, "write")
    report(touch.g.launch, "races", found)


def _byte(g: Group, at: int) -> str:
    name, start, _ = g.shared_variable(at + g.shared.base)
    return f"byte {at + g.shared.base - start} of `{name}`"


def _unfenced(
    shadow: ShadowMemory, touch: _Touch, at: int, lane: int, other: int, site: Site
) -> RaceError:
    who = shadow.order.agent_name(other, shadow.warps)
    return RaceError(
        f"missing proxy fence: this {touch.verb} touches {_byte(touch.g, at)}",
        touch.site,
        touch.g.thread(int(touch.lanes[lane])),
        notes=(
            (f"the write by {who}", site.span),
            ("with no proxy fence since, the asynchronous unit may not see that write", None),
        ),
        hint="after writing, and before the barrier: cute.arch.fence_proxy('async.shared', "
        "space='cta')",
    )


def _race(
    shadow: ShadowMemory, touch: _Touch, at: int, lane: int, other: int, site: Site, verb: str
) -> RaceError:
    who = shadow.order.agent_name(other, shadow.warps)
    asynchronous = other >= shadow.order.warps
    return RaceError(
        f"race on shared memory: this {touch.verb} and {with_article(verb)} by {who} touch "
        f"{_byte(touch.g, at)}",
        touch.site,
        touch.g.thread(int(touch.lanes[lane])),
        notes=((f"the {verb} by {who}", site.span),),
        hint=f"wait for the asynchronous {verb} first"
        if asynchronous
        else "put a barrier between them",
    )
