"""mbarrier operations as generated code uses them, lane by lane (PTX ISA, mbarrier).

An mbarrier lives at a shared address; its eight bytes are opaque, its state is kept by the block.
The state token that arriving returns is the number of the phase arrived at.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

import numpy as np

from basedsl_cute.sim.errors import SimulationError
from basedsl_cute.sim.machine.block import Block, MBarrier
from basedsl_cute.sim.machine.cluster import home
from basedsl_cute.sim.machine.memory import SHARED_WINDOW
from basedsl_cute.sim.machine.schedule import Wait
from basedsl_cute.sim.site import Site

if TYPE_CHECKING:
    from basedsl_cute.sim.machine.async_copy import CopyQueue
    from basedsl_cute.sim.machine.group import Group

Mask = Any
MAX_COUNT = (1 << 20) - 1


def _lanes(g: Group, address: Any, m: Mask) -> Iterator[tuple[int, int]]:
    """Active lanes with the shared address they mean."""
    for lane in range(g.lanes) if m is None else np.flatnonzero(m).tolist():
        at = int(address[lane])
        yield lane, at - SHARED_WINDOW if at >= SHARED_WINDOW else at


def init(g: Group, address: Any, count: Any, m: Mask, site: Site) -> None:
    for lane, at in _lanes(g, address, m):
        number = int(count[lane])
        inside = g.shared.base <= at <= g.shared.end - 8
        if at % 8 or not inside:
            why = "is not in shared memory" if not inside else "is not 8-byte aligned"
            raise SimulationError(f"an mbarrier at {at:#x} {why}", site, g.thread(lane))
        if not 1 <= number <= MAX_COUNT:
            raise SimulationError(
                f"an mbarrier for {number} arrivals: 1 to {MAX_COUNT}", site, g.thread(lane)
            )
        before = g.block.mbarriers.get(at)
        if before is not None and before.site is not site and before.is_needed:
            name, start, _ = g.shared_variable(at)
            raise SimulationError(
                f"there is an mbarrier at byte offset {at - start} of `{name}` already",
                site,
                g.thread(lane),
                hint="a pipeline of n stages has 2 n of them, 8 bytes each",
                notes=(("it was initialised here", before.site.span),),
            )
        if g.races is not None:
            g.races.initialise(g, site, at - g.shared.base, lane)
        g.block.mbarriers[at] = MBarrier(number, number, site)
        if g.shared.written is not None:
            g.shared.written[at - g.shared.base : at - g.shared.base + 8] = 255


def invalidate(g: Group, address: Any, m: Mask, site: Site) -> None:
    for lane, at in _lanes(g, address, m):
        g.block.mbarrier(at, g, site, lane)
        del g.block.mbarriers[at]


def arrive(
    g: Group, address: Any, count: Any, transactions: Any, m: Mask, site: Site, drop: bool = False
) -> Any:
    """Arrive `count` times, first expecting `transactions` more bytes; the phases arrived at."""
    tokens = np.zeros(g.lanes, np.int64)
    for lane, at in _lanes(g, address, m):
        block, at = home(g, at, lane, site)
        barrier = block.mbarrier(at, g, site, lane)
        _used(g, block, at, site, lane, "arrival")
        tokens[lane] = barrier.phase
        barrier.transactions += int(transactions[lane])
        number = int(count[lane])
        _check_count(g, barrier, number, site, lane)
        if drop:
            barrier.count -= number
        barrier.arrive(number, site)
        if g.races is not None:
            g.races.order.release(block.token(at), g.agent)
        block.settle(at)
    return tokens


def _used(g: Group, block: Block, at: int, site: Site, lane: int, verb: str) -> None:
    if block.races is not None:
        block.races.use(g, site, verb, at - block.shared.base, lane)


def follow(g: Group, address: Any, counted: bool, m: Mask, site: Site) -> None:
    """Arrive when the cp.async of the lane so far are complete; unless `counted`, the phase
    expects one arrival more for it.
    """
    assert g.copies is not None
    queue, serial = g.copies, g.copies.issued
    for lane, at in _lanes(g, address, m):
        barrier = g.block.mbarrier(at, g, site, lane)
        barrier.pending += not counted
        g.block.send(at, _arrival(g, queue, serial, lane, at, site))


def _arrival(g: Group, queue: CopyQueue, serial: int, lane: int, at: int, site: Site) -> Any:
    def land() -> None:
        only = np.zeros(g.lanes, np.bool_)
        only[lane] = True
        stamps = queue.land(g, serial, only)
        barrier = g.block.mbarrier(at, g, site, lane)
        _check_count(g, barrier, 1, site, lane)
        barrier.arrive(1, site)
        if g.races is not None:
            for stamp in stamps:
                g.races.order.land(g.block.token(at), stamp)

    return land


def _check_count(g: Group, barrier: MBarrier, number: int, site: Site, lane: int) -> None:
    if number > barrier.pending:
        raise SimulationError(
            f"{number} arrivals at an mbarrier that waits for {barrier.pending} of "
            f"{barrier.count} in this phase",
            site,
            g.thread(lane),
        )


def transact(g: Group, address: Any, nbytes: Any, m: Mask, site: Site, sign: int) -> None:
    """Expect (`sign` 1) or complete (-1) some bytes of the current phase."""
    for lane, at in _lanes(g, address, m):
        block, at = home(g, at, lane, site)
        barrier = block.mbarrier(at, g, site, lane)
        _used(g, block, at, site, lane, "count of bytes")
        barrier.transactions += sign * int(nbytes[lane])
        if sign < 0:
            block.settle(at)


def _done_token(barrier: MBarrier, token: int) -> bool:
    return barrier.phase > token


def _done_parity(barrier: MBarrier, parity: int) -> bool:
    return barrier.phase & 1 != parity & 1


_DONE: dict[bool, Callable[[MBarrier, int], bool]] = {False: _done_token, True: _done_parity}


def test(g: Group, address: Any, which: Any, parity: bool, m: Mask, site: Site) -> Any:
    """Whether the phase of a token, or the last one of a parity, is complete, per lane."""
    out = np.zeros(g.lanes, np.bool_)
    for lane, at in _lanes(g, address, m):
        barrier = g.block.mbarrier(at, g, site, lane)
        _used(g, g.block, at, site, lane, "wait")
        g.block.receive(at)
        out[lane] = _DONE[parity](barrier, int(which[lane]))
        if out[lane] and g.races is not None:
            g.races.order.acquire(g.block.token(at), g.agent)
    return out


def wait(g: Group, address: Any, which: Any, parity: bool, m: Mask, site: Site) -> Wait | None:
    """What to wait for until `test` holds in every active lane; None when it does already."""
    goals = {
        (at, int(which[lane])): g.block.mbarrier(at, g, site, lane)
        for lane, at in _lanes(g, address, m)
    }
    done = _DONE[parity]

    def ready() -> bool:
        for at, _ in goals:
            g.block.receive(at)
        return all(done(barrier, goal) for (_, goal), barrier in goals.items())

    if ready():
        return None

    def describe() -> str:
        (at, goal), barrier = next((k, b) for k, b in goals.items() if not done(b, k[1]))
        name, start, _ = g.shared_variable(at)
        return (
            f"phase{' parity' if parity else ''} {goal} of the mbarrier at byte offset "
            f"{at - start} of `{name}` ({barrier})"
        )

    return Wait(ready, describe, site)
