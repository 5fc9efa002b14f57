"""Barriers as generated code uses them: enter, wait, leave; or, in lock step, all at once."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from basedsl_cute.sim.errors import BarrierError, SimulationError
from basedsl_cute.sim.machine.schedule import Wait
from basedsl_cute.sim.site import Site

if TYPE_CHECKING:
    from basedsl_cute.sim.machine.block import NamedBarrier
    from basedsl_cute.sim.machine.group import Group

Mask = Any


def require_whole_group(g: Group, m: Any, site: Site, branch: Site | None) -> None:
    """A barrier needs every lane: raise if some lanes of the group do not reach it."""
    if m is None:
        return
    missing = g.thread(int((~m).argmax()))
    notes = (("threads part ways here", branch.span),) if branch is not None else ()
    raise BarrierError(
        f"a barrier in divergent control flow: {g.thread(int(m.argmax()))} reaches it, "
        f"{missing} of the same warp does not",
        site,
        notes=notes,
        hint="move the barrier out of the branch or loop, so that all threads reach it",
    )


def one(g: Group, value: Any, m: Mask, site: Site, what: str) -> int:
    """An operand that must be the same in all active lanes, as an int."""
    if np.ndim(value) == 0:
        return int(value)
    active = value if m is None else value[m]
    if (active != active[0]).any():
        raise SimulationError(f"{what} differs between lanes of one warp", site, g.thread(0))
    return int(active[0])


def in_step(g: Group, m: Mask, site: Site, branch: Site | None) -> None:
    """A barrier of the whole block where all its lanes run together."""
    require_whole_group(g, m, site, branch)
    g.block.passed()


def reduce_in_step(
    g: Group, kind: str, predicate: Any, m: Mask, site: Site, branch: Site | None
) -> Any:
    """The same with a vote: per lane, the outcome in its block."""
    in_step(g, m, site, branch)
    blocks = np.not_equal(predicate, 0).reshape(g.shape.blocks, -1)
    return np.repeat(_outcome(kind, blocks), g.shape.threads)


def _outcome(kind: str, votes: Any) -> Any:
    if kind == "popc":
        return votes.sum(axis=-1).astype(np.int32)
    return (votes.all(axis=-1) if kind == "and" else votes.any(axis=-1)).astype(np.int32)


def enter(
    g: Group,
    m: Mask,
    site: Site,
    branch: Site | None,
    number: Any = 0,
    count: Any = None,
    votes: Any = None,
) -> tuple[NamedBarrier, int, Wait | None]:
    """The warp arrives at barrier `number`: the barrier, its generation, and what to wait for."""
    require_whole_group(g, m, site, branch)
    number = one(g, number, m, site, "the barrier's number")
    threads = None if count is None else one(g, count, m, site, "the barrier's thread count")
    known = g.block.barriers.get(number)
    before = known.generation if known is not None else 0
    barrier = g.block.arrive(g, site, number, threads, votes)
    return barrier, before, g.block.wait_for(barrier, before, g, site, threads is None)


def leave(g: Group, barrier: NamedBarrier) -> None:
    """The warp goes on: it knows what the others did before they arrived."""
    if g.races is not None:
        g.races.order.acquire(("barrier", g.block.linear, barrier.number), g.agent)


def outcome(g: Group, barrier: NamedBarrier, kind: str) -> Any:
    """The result of a barrier's vote, for every lane."""
    votes = np.concatenate([np.not_equal(v, 0) for v in barrier.outcome])
    return np.full(g.lanes, _outcome(kind, votes), np.int32)


def arrive(g: Group, m: Mask, site: Site, branch: Site | None, number: Any, count: Any) -> None:
    """The warp arrives and does not wait."""
    require_whole_group(g, m, site, branch)
    number = one(g, number, m, site, "the barrier's number")
    threads = one(g, count, m, site, "the barrier's thread count")
    g.block.arrive(g, site, number, threads)


def fence_proxy(g: Group) -> None:
    """The asynchronous proxy sees what the warp knows of."""
    if g.races is not None:
        g.races.order.fence(g.agent)


def fence_mbarriers(g: Group) -> None:
    """The cluster knows the mbarriers that the warp has made."""
    if g.races is not None:
        g.races.order.fence_mbarriers(g.agent)
