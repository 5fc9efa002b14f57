"""Barriers of a block (PTX ISA, bar and barrier): arrive, wait, leave; or, in lock step, all at
once. A block has 16 of them, which count threads in whole warps.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from basedsl import Span
from basedsl_cute.sim.errors import BarrierError, SimulationError
from basedsl_cute.sim.machine.schedule import Wait
from basedsl_cute.sim.machine.shadow_order import acquire_behind_fence
from basedsl_cute.sim.machine.state import Block, BlockBarrier, Group, Mask
from basedsl_cute.sim.site import Site

BARRIERS = 16


def require_whole_group(g: Group, m: Mask, site: Site, branch: Site | None) -> None:
    """Raise BarrierError if some lanes of the group do not reach an operation that needs all.
    `branch` is the innermost branch or loop that divided them.
    """
    if m is None:
        return
    here, missing = g.thread(int(m.argmax())), g.thread(int((~m).argmax()))
    notes: list[tuple[str, Span | None]] = [
        (f"{here} reaches it, {missing} of the same warp does not", None)
    ]
    if branch is not None:
        notes.append(("threads part ways here", branch.span))
    raise BarrierError(
        "a barrier in divergent control flow: not all threads of the warp reach it",
        site,
        missing,
        notes=tuple(notes),
        hint="move the barrier out of the branch or loop, so that all threads reach it",
    )


def uniform_int(g: Group, value: Any, m: Mask, site: Site, name: str) -> int:
    """The value of an operand that must be the same in all active lanes, as an int. Raises
    SimulationError, which calls it `name`, if it differs.
    """
    if np.ndim(value) == 0:
        return int(value)
    active = value if m is None else value[m]
    if (active != active[0]).any():
        raise SimulationError(f"{name} differs between lanes of one warp", site, g.thread(0))
    return int(active[0])


# In lock step ------------------------------------------------------------------------------------


def sync_in_step(g: Group, m: Mask, site: Site, branch: Site | None) -> None:
    """A barrier of all threads of the block, all of whose lanes run together."""
    require_whole_group(g, m, site, branch)
    _pass_block_barrier(g.block)
    if g.known is not None:
        g.known.pass_barrier()


def reduce_in_step(
    g: Group, kind: str, predicate: Any, m: Mask, site: Site, branch: Site | None
) -> Any:
    """A barrier with a vote (`popc`, `and`, `or`): the outcome in each lane's block, int32."""
    sync_in_step(g, m, site, branch)
    blocks = np.not_equal(predicate, 0).reshape(g.shape.blocks, -1)
    return np.repeat(_outcome(kind, blocks), g.shape.threads)


def _outcome(kind: str, votes: Any) -> Any:
    if kind == "popc":
        return votes.sum(axis=-1).astype(np.int32)
    return (votes.all(axis=-1) if kind == "and" else votes.any(axis=-1)).astype(np.int32)


# By warp -----------------------------------------------------------------------------------------


def enter_barrier(
    g: Group,
    m: Mask,
    site: Site,
    branch: Site | None,
    number: Any = 0,
    count: Any = None,
    votes: Any = None,
) -> tuple[BlockBarrier, int, Wait | None]:
    """Let the warp arrive at barrier `number`, of `count` threads or, if that is None, all of the
    block: the barrier, its generation before, and the wait for its completion, None if it is
    complete.
    """
    require_whole_group(g, m, site, branch)
    number = uniform_int(g, number, m, site, "the barrier's number")
    threads = None
    if count is not None:
        threads = uniform_int(g, count, m, site, "the barrier's thread count")
    known = g.block.barriers.get(number)
    before = known.generation if known is not None else 0
    barrier = _arrive(g, site, number, threads, votes)
    if barrier.generation > before:
        return barrier, before, None
    what = f"barrier {barrier.number}"
    what += " of all threads" if threads is None else f" of {barrier.expected} threads"
    wait = Wait(
        lambda: barrier.generation > before, lambda: what, site, whole_block=threads is None
    )
    return barrier, before, wait


def leave_barrier(g: Group, barrier: BlockBarrier) -> None:
    """Let the warp go on, with knowledge of what the others did before they arrived."""
    if g.block.order is not None:
        g.block.order.acquire(_token(g.block, barrier.number), g.agent)
        g.known.floor = max(g.known.floor, barrier.floor)


def barrier_outcome(g: Group, barrier: BlockBarrier, kind: str) -> Any:
    """The result of a barrier's vote (`popc`, `and`, `or`), int32, for every lane."""
    votes = np.concatenate([np.not_equal(v, 0) for v in barrier.outcome])
    return np.full(g.lanes, _outcome(kind, votes), np.int32)


def arrive_at_barrier(
    g: Group, m: Mask, site: Site, branch: Site | None, number: Any, count: Any
) -> None:
    """Let the warp arrive at barrier `number` of `count` threads, and not wait."""
    require_whole_group(g, m, site, branch)
    number = uniform_int(g, number, m, site, "the barrier's number")
    threads = uniform_int(g, count, m, site, "the barrier's thread count")
    _arrive(g, site, number, threads, waits=False)


def _arrive(
    g: Group, site: Site, number: int, count: int | None, votes: Any = None, waits: bool = True
) -> BlockBarrier:
    """Count the warp as arrived, and complete the barrier if it is the last one."""
    if not 0 <= number < BARRIERS:
        raise SimulationError(
            f"barrier {number} does not exist: they are numbered 0 to {BARRIERS - 1}",
            site,
            g.thread(0),
        )
    block = g.block
    barrier = block.barriers.setdefault(number, BlockBarrier(number))
    warp = g.shape.of_warp
    whole = block.warps * warp
    expected = whole if count is None else count
    if expected <= 0 or expected % warp:
        raise BarrierError(
            f"a barrier of {expected} threads: it must be a positive multiple of {warp}",
            site,
            g.thread(0),
        )
    _check_agreement(barrier, g, site, expected, count is None)
    barrier.expected = expected
    barrier.arrived += warp
    barrier.sites.append((g, site))
    if votes is not None:
        barrier.votes.append(votes)
    if block.order is not None:
        block.order.release(_token(block, number), g.agent)
        if not waits and barrier.early < 0:
            barrier.early = len(block.order.events) - 2
    if barrier.arrived >= expected:
        barrier.generation += 1
        barrier.arrived = 0
        barrier.sites = []
        barrier.outcome, barrier.votes = barrier.votes, []
        if expected == whole:
            _pass_block_barrier(block)
        if block.order is not None:
            block.order.publish(_token(block, number))
            floor = barrier.early if barrier.early >= 0 else len(block.order.events) - 1
            barrier.floor = floor if expected == whole else 0
            barrier.early = -1
            block.order.events.append(None)
    return barrier


def _token(block: Block, number: int) -> tuple[str, int, int]:
    """The race check's token of a barrier."""
    return ("barrier", block.linear, number)


def _pass_block_barrier(block: Block) -> None:
    """Note that all threads of the block have reached a barrier."""
    block.epoch += 1
    block.shared.settle_writes()


def _check_agreement(
    barrier: BlockBarrier, g: Group, site: Site, expected: int, whole: bool
) -> None:
    """Raise if the warps that have arrived wait for something else than this one does."""
    if not barrier.sites:
        return
    other, first = barrier.sites[0]
    if barrier.expected != expected:
        raise BarrierError(
            f"barrier {barrier.number} is waited at for {expected} threads here and for "
            f"{barrier.expected} elsewhere",
            site,
            g.thread(0),
            notes=((f"{other.thread(0)} is here", first.span),),
            hint="give number_of_threads= the same number wherever threads use this barrier",
        )
    if whole and first is not site:
        raise BarrierError(
            "threads of one block wait at different barriers",
            site,
            g.thread(0),
            notes=((f"{other.thread(0)} waits at this one", first.span),),
            hint="move the barrier out of the branch, so that all threads reach the same one",
        )


# Fences, which only the race check minds ---------------------------------------------------------


def fence_memory(g: Group, m: Mask, scope: int) -> None:
    """Order the accesses of the lanes in `m` for the threads of a scope (PTX ISA, fence.acq_rel and
    membar).
    """
    if g.known is not None:
        g.known.fence(m, scope)
    if g.unfenced:
        acquire_behind_fence(g)


def fence_proxy(g: Group) -> None:
    """Let the asynchronous proxy see what the warp knows (PTX ISA, fence.proxy.async)."""
    if g.block.order is not None:
        g.block.order.fence_proxy(g.agent)


def fence_global_proxy(g: Group) -> None:
    """Note that the block's writes to global memory are shown to the asynchronous proxy."""
    if g.races is not None:
        g.races.events.append(None)
        for number in g.known.numbers:
            g.races.proxy_fences[number] = len(g.races.events) - 1
        g.races.events.append(None)


def fence_mbarriers(g: Group) -> None:
    """Let the cluster know the mbarriers that the warp has initialised (PTX ISA,
    fence.mbarrier_init).
    """
    if g.block.order is not None:
        g.block.order.fence_mbarriers(g.agent)
