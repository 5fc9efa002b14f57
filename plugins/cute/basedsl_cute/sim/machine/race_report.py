"""Reports of races: both accesses with their lines, thread, index and the array's name."""

from __future__ import annotations

from typing import Any

import numpy as np

from basedsl import with_article
from basedsl_cute.sim.errors import RaceError, Thread
from basedsl_cute.sim.machine.access import SYSTEM_SCOPE, MemoryAccess
from basedsl_cute.sim.machine.memory import Segment
from basedsl_cute.sim.machine.rank_order import BLOCK_NUMBERS
from basedsl_cute.sim.machine.reports import report
from basedsl_cute.sim.machine.word_access import WordAccess
from basedsl_cute.sim.machine.word_history import (
    ASYNC,
    EVENT_SHIFT,
    GRID,
    PLAIN_READ,
    PLAIN_WRITE,
    SPREAD_SHIFT,
    STRONG_READ,
    THREADS,
    WARP,
)


def different(
    a: MemoryAccess, index: Any, late: Any, value: Any, distance: Any, thread: Any
) -> Any:
    """True where a lane's value is not that of every other lane of its warp that writes the same
    element: of equal values it does not matter which one is kept.
    """
    lanes = late.shape[-1]
    value = np.broadcast_to(value, (*np.shape(value)[:-1], lanes)).reshape(-1, lanes)
    raw = np.ascontiguousarray(value.T.astype(a.dtype, copy=False)).view(np.uint8)
    raw = raw.reshape(lanes, -1)
    first = np.atleast_2d(index)[0]
    out = np.zeros(lanes, np.bool_)
    columns = np.flatnonzero(np.atleast_2d(late).any(axis=0))
    owner: dict[int, int] = {int(first[lane]): lane for lane in range(lanes)}
    for lane in columns.tolist():
        winner = owner.get(int(first[lane]), -1)
        near = winner >= 0 and (
            distance(thread[..., winner].flat[0], thread[..., lane].flat[0]) <= WARP
        )
        out[lane] = not (near and (raw[winner] == raw[lane]).all())
    return np.broadcast_to(out, late.shape)


def report_race(checker: Any, access: WordAccess, before: Any, other: int, late: Any) -> None:
    """Report a race with the last accesses `before` of the kind `other`, for the first lane of
    which `late` holds. Raises RaceError.
    """
    found = _race(checker, access, before, other, late)
    report(access.g.launch, "races", found)


def _race(checker: Any, access: WordAccess, before: Any, other: int, late: Any) -> RaceError:
    g, a, who = access.g, access.a, access.who
    late = np.atleast_2d(late)
    column = int(late.any(axis=0).argmax())
    row = int(late[:, column].argmax())
    word = int(np.atleast_2d(access.index)[row, column])
    last = int(np.atleast_2d(np.broadcast_to(before, late.shape))[row, column])
    lane = column if who is None else int(who[column])
    at = (word << access.history.shift) - access.start
    if access.segment.stride:
        at %= access.segment.stride
    one = checker.events[last >> EVENT_SHIFT]
    verb = "read" if other in (PLAIN_READ, STRONG_READ) else "write"
    name = one.verb if one is not None else verb
    number = last & int(THREADS) & ~int(ASYNC)
    them = thread_of(g, checker, number)
    asynchronous = bool(last & int(ASYNC))
    whom = f"cp.async of {them}" if asynchronous else str(them)
    if (last >> SPREAD_SHIFT) & 3:
        whom = f"several threads, the last of them {them},"
    kind = "shared" if access.segment.kind == "shared" else "global"
    mine = int(np.broadcast_to(access.thread, late.shape[-1:])[column])
    whom, ranks = of_ranks(checker, number, whom)
    distance = int(checker.distance(np.int64(number), np.int64(mine)))
    distance = max(distance, (last >> SPREAD_SHIFT) & 3)
    where, byte = place(g, a, access.segment, at)
    return RaceError(
        f"race on {kind} memory: this {a.verb} and {with_article(name)} touch {where}",
        a.site,
        g.thread(lane),
        notes=(
            (f"the {name} by {whom}".rstrip(","), one.site.span if one is not None else None),
            (f"nothing orders the two, which touch {byte}", None),
        ),
        hint=_hint(distance, asynchronous, verb, other, a, ranks, one),
    )


def of_ranks(checker: Any, number: int, whom: str) -> tuple[str, bool]:
    """The thread of another access with its rank, and whether that is another rank."""
    launch = None if checker.shared is None else checker.shared.launch_of(number // BLOCK_NUMBERS)
    if launch is None:
        return whom, False
    if launch.grid is None:
        return f"the host code of rank {launch.rank}", launch.rank != checker.rank
    return f"{whom} of rank {launch.rank}", launch.rank != checker.rank


def _hint(
    distance: int,
    asynchronous: bool,
    verb: str,
    other: int,
    a: MemoryAccess,
    ranks: bool,
    one: MemoryAccess | None,
) -> str:
    if ranks:
        if any(x is not None and x.strong and x.scope != SYSTEM_SCOPE for x in (a, one)):
            return "threads of other ranks are beyond this scope: scope='sys' on both sides"
        return (
            "let one rank signal and the other wait before: x.signals.notify and wait, or "
            "x.signals.barrier, by scope='sys'"
        )
    both = [x for x in (a, one) if x is not None]
    if distance == GRID and all(x.strong for x in both) and not all(x.wide for x in both):
        return "threads of other blocks are beyond this scope: scope='gpu' on both sides"
    if asynchronous:
        return f"wait for the asynchronous {verb} first: cute.arch.cp_async_wait_group(0)"
    if distance <= WARP:
        return "put cute.arch.sync_warp() between them, or give each lane an element of its own"
    if distance < GRID:
        return "put a barrier between them: cute.arch.sync_threads()"
    if other == PLAIN_WRITE and a.verb == "write":
        return "give each block elements of its own, or combine by cute.arch.atomic_add"
    return (
        "no barrier orders blocks: use an atomic, a flag with sem='release' and sem='acquire', or "
        "a second launch"
    )


def place(g: Any, a: MemoryAccess, segment: Segment, at: int) -> tuple[str, str]:
    """The element of an array at an offset, and the byte and the array's extent."""
    size, name = segment.size, segment.name or "an unnamed buffer"
    if segment.kind == "shared":
        name, begin, size = g.shared_variable(at + segment.base)
        at = at + segment.base - begin
    item = a.dtype.itemsize
    return f"element {at // item} of `{name}`", f"byte {at} of {size} ({size // item} elements)"


def thread_of(g: Any, checker: Any, number: int) -> Thread:
    """The thread with a number in the grid."""
    block, linear = divmod(number, int(checker.block_threads))
    grid, threads = g.grid_dim, g.block_dim
    if checker.shared is not None and (launch := checker.shared.launch_of(block)) is not None:
        block -= launch.first_block
        grid, threads = launch.grid or grid, launch.block or threads
    gx, gy, _ = grid
    x, y, _ = threads
    return Thread(
        (linear % x, linear // x % y, linear // (x * y)),
        (block % gx, block // gx % gy, block // (gx * gy)),
    )
