"""mbarrier operations, lane by lane (PTX ISA, mbarrier).

An mbarrier lies at a shared address; its eight bytes are opaque, its state is kept by the block.
Its phase ends when no arrivals and no transaction bytes are pending. The state token that arriving
returns is the number of the phase arrived at. Asynchronous operations that count at an mbarrier
happen when somebody next looks at it, as late as the program lets them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from basedsl_cute.sim.errors import SimulationError
from basedsl_cute.sim.machine import races
from basedsl_cute.sim.machine.async_copy import complete_copies
from basedsl_cute.sim.machine.cluster import owner_block
from basedsl_cute.sim.machine.memory import SHARED_WINDOW, WRITTEN
from basedsl_cute.sim.machine.schedule import Wait
from basedsl_cute.sim.machine.state import Block, Group, Mask, MBarrier
from basedsl_cute.sim.machine.vector_clock import Stamp
from basedsl_cute.sim.site import Site

MAX_COUNT = (1 << 20) - 1


# What counts at an mbarrier ----------------------------------------------------------------------


def find_mbarrier(block: Block, address: int, g: Group, site: Site, lane: int) -> MBarrier:
    """The mbarrier at a shared address of `block`. Raises SimulationError if nobody initialised
    one.
    """
    found = block.mbarriers.get(address)
    if found is None:
        name, start, _ = g.shared_variable(address)
        raise SimulationError(
            f"no mbarrier was initialised at byte offset {address - start} of `{name}`",
            site,
            g.thread(lane),
            hint="initialise it in one thread and put a barrier before its first use",
        )
    return found


def send_to_mbarrier(block: Block, address: int, land: Callable[[], None]) -> None:
    """Queue an asynchronous operation that counts at an mbarrier; `land` completes it."""
    block.in_flight.setdefault(address, []).append(land)


def land_bytes(
    block: Block,
    address: int,
    place: Any,
    data: Any,
    stamp: Stamp | None,
    counting: Block | None = None,
) -> None:
    """Put bytes at `place`, their offsets in shared memory of `block`. They count at the mbarrier
    at `address` of the block `counting`, by default the same.
    """
    counting = block if counting is None else counting
    block.shared.raw[place] = data
    if block.shared.written is not None:
        block.shared.written[place] = WRITTEN
    counting.mbarriers[address].transactions -= data.nbytes
    if stamp is not None and block.shadow is not None:
        block.shadow.order.release_access(_token(counting, address), stamp)


def _receive(block: Block, address: int) -> None:
    """Complete what counts at an mbarrier."""
    if address in block.in_flight:
        for land in block.in_flight.pop(address):
            land()
        _settle(block, address)


def _settle(block: Block, address: int) -> None:
    """End the phase of an mbarrier if nothing of it is pending."""
    barrier = block.mbarriers[address]
    if barrier.pending == 0 and barrier.transactions == 0:
        barrier.phase += 1
        barrier.pending = barrier.count
        barrier.arrived.clear()
        if block.order is not None:
            block.order.publish(_token(block, address))


def _token(block: Block, address: int) -> tuple[str, int, int]:
    """The race check's token of an mbarrier."""
    return ("mbarrier", block.linear, address)


def _count_arrivals(g: Group, barrier: MBarrier, number: int, site: Site, lane: int) -> None:
    if number > barrier.pending:
        raise SimulationError(
            f"too many arrivals at an mbarrier: {number} where its phase waits for "
            f"{barrier.pending} more of {barrier.count}",
            site,
            g.thread(lane),
            hint="a stage is released or committed once, and the CooperativeGroup has as many "
            "threads as arrive",
            notes=(
                (f"the barrier was initialised at {barrier.site.line}", None),
                *((f"{n} arrived at {at.line}", None) for at, n in barrier.arrived.items()),
            ),
        )
    barrier.pending -= number
    barrier.arrived[site] = barrier.arrived.get(site, 0) + number


# Operations, on one address per lane -------------------------------------------------------------


def _addresses(g: Group, address: Any, m: Mask) -> Iterator[tuple[int, int]]:
    """Active lanes, each with the shared address that it means."""
    for lane in range(g.lanes) if m is None else np.flatnonzero(m).tolist():
        at = int(address[lane])
        yield lane, at - SHARED_WINDOW if at >= SHARED_WINDOW else at


def init_mbarrier(g: Group, address: Any, count: Any, m: Mask, site: Site) -> None:
    """Initialise an mbarrier for `count` arrivals a phase (mbarrier.init). Raises SimulationError
    for a bad address or count, and for an mbarrier that is in use.
    """
    for lane, at in _addresses(g, address, m):
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
        if g.shadow is not None:
            races.check_mbarrier_init(g.shadow, g, site, at - g.shared.base, lane)
        g.block.mbarriers[at] = MBarrier(number, number, site)
        if g.shared.written is not None:
            g.shared.written[at - g.shared.base : at - g.shared.base + 8] = WRITTEN


def invalidate_mbarrier(g: Group, address: Any, m: Mask, site: Site) -> None:
    """Give the memory of an mbarrier back to other uses (mbarrier.inval)."""
    for lane, at in _addresses(g, address, m):
        find_mbarrier(g.block, at, g, site, lane)
        del g.block.mbarriers[at]


def arrive_at_mbarrier(
    g: Group,
    address: Any,
    count: Any,
    transactions: Any,
    m: Mask,
    site: Site,
    drop: bool = False,
    of_block: bool = False,
) -> Any:
    """Arrive `count` times, first expecting `transactions` more bytes; the phases arrived at, int64
    per lane. With `drop`, later phases expect that many arrivals fewer (mbarrier.arrive_drop). An
    arrival `of_block` releases to its own block; another block learns only that reads are over.
    """
    tokens = np.zeros(g.lanes, np.int64)
    for lane, at in _addresses(g, address, m):
        block, at = owner_block(g, at, lane, site)
        barrier = find_mbarrier(block, at, g, site, lane)
        _check_use(g, block, at, site, lane, "arrival")
        tokens[lane] = barrier.phase
        barrier.transactions += int(transactions[lane])
        number = int(count[lane])
        _count_arrivals(g, barrier, number, site, lane)
        if drop:
            barrier.count -= number
        if g.block.order is not None:
            order, is_narrow = g.block.order, of_block and block is not g.block
            (order.release_reads if is_narrow else order.release)(_token(block, at), g.agent)
        _settle(block, at)
    return tokens


def _check_use(g: Group, block: Block, at: int, site: Site, lane: int, verb: str) -> None:
    if block.shadow is not None:
        races.check_mbarrier_use(block.shadow, g, site, verb, at - block.shared.base, lane)


def check_commit(g: Group, block: Block, address: int, lane: int, site: Site) -> None:
    """Record for the race check that a commit is to arrive at an mbarrier of another block."""
    at = address - SHARED_WINDOW if address >= SHARED_WINDOW else address
    find_mbarrier(block, at, g, site, lane)
    _check_use(g, block, at, site, lane, races.COMMIT)


def arrive_after_copies(g: Group, address: Any, counted: bool, m: Mask, site: Site) -> None:
    """Arrive when the cp.async of the lane so far are complete (cp.async.mbarrier.arrive); unless
    `counted`, the phase expects one arrival more for it.
    """
    serial = g.copies.issued
    for lane, at in _addresses(g, address, m):
        barrier = find_mbarrier(g.block, at, g, site, lane)
        barrier.pending += not counted
        send_to_mbarrier(g.block, at, _arrival_after_copies(g, serial, lane, at, site))


def arrive_later(
    g: Group,
    address: int,
    lane: int,
    site: Site,
    complete: Callable[[], None],
    block: Block,
    stamp: Stamp | None,
) -> None:
    """Arrive once at an mbarrier of `block` when `complete` has been called, which is when somebody
    looks; the accesses up to `stamp` are over then.
    """
    at = address - SHARED_WINDOW if address >= SHARED_WINDOW else address
    find_mbarrier(block, at, g, site, lane)

    def land() -> None:
        complete()
        _count_arrivals(g, find_mbarrier(block, at, g, site, lane), 1, site, lane)
        if g.block.order is not None:
            g.block.order.release(_token(block, at), g.agent)
            if stamp is not None:
                g.block.order.release_access(_token(block, at), stamp)

    send_to_mbarrier(block, at, land)


def _arrival_after_copies(
    g: Group, serial: int, lane: int, at: int, site: Site
) -> Callable[[], None]:
    def land() -> None:
        only = np.zeros(g.lanes, np.bool_)
        only[lane] = True
        stamps = complete_copies(g, serial, only)
        _count_arrivals(g, find_mbarrier(g.block, at, g, site, lane), 1, site, lane)
        if g.shadow is not None:
            for stamp in stamps:
                g.shadow.order.release_access(_token(g.block, at), stamp)

    return land


def count_transactions(g: Group, address: Any, nbytes: Any, m: Mask, site: Site, sign: int) -> None:
    """Expect (`sign` 1) or complete (-1) some bytes of the current phase (mbarrier.expect_tx and
    complete_tx).
    """
    for lane, at in _addresses(g, address, m):
        block, at = owner_block(g, at, lane, site)
        barrier = find_mbarrier(block, at, g, site, lane)
        _check_use(g, block, at, site, lane, "count of bytes")
        barrier.transactions += sign * int(nbytes[lane])
        if sign < 0:
            _settle(block, at)


def _done_token(barrier: MBarrier, token: int) -> bool:
    return barrier.phase > token


def _done_parity(barrier: MBarrier, parity: int) -> bool:
    return barrier.phase & 1 != parity & 1


_DONE: dict[bool, Callable[[MBarrier, int], bool]] = {False: _done_token, True: _done_parity}


def test_mbarrier(g: Group, address: Any, which: Any, parity: bool, m: Mask, site: Site) -> Any:
    """True in the lanes whose phase is complete: that of the token `which`, or, with `parity`, the
    last one of that parity.
    """
    out = np.zeros(g.lanes, np.bool_)
    known: dict[tuple[int, int], bool] = {}  # the lanes of a warp look at few phases
    for lane, at in _addresses(g, address, m):
        phase = at, int(which[lane])
        if phase not in known:
            barrier = find_mbarrier(g.block, at, g, site, lane)
            _check_use(g, g.block, at, site, lane, "wait")
            _receive(g.block, at)
            known[phase] = _DONE[parity](barrier, phase[1])
            if known[phase] and g.block.order is not None:
                g.block.order.acquire(_token(g.block, at), g.agent)
        out[lane] = known[phase]
    return out


def wait_for_mbarrier(
    g: Group, address: Any, which: Any, parity: bool, m: Mask, site: Site
) -> Wait | None:
    """The wait until `test_mbarrier` holds in every active lane; None if it does already."""
    goals: dict[tuple[int, int], MBarrier] = {}
    for lane, at in _addresses(g, address, m):
        phase = at, int(which[lane])
        if phase not in goals:
            goals[phase] = find_mbarrier(g.block, at, g, site, lane)
    done = _DONE[parity]

    def ready() -> bool:
        for at, _ in goals:
            _receive(g.block, at)
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
