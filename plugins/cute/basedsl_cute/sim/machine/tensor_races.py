"""Races on tensor memory, found with the vector clocks of the cluster's warps.

Of every word the last write and the last read by each agent are kept. An agent is a warp, for
tcgen05.ld and st, or its asynchronous unit, for tcgen05.mma, cp and shift, whose accesses last
until somebody has waited for the mbarrier of a commit behind them (`vector_clock`). Those of one
warp's unit are in order; other warps load what it wrote past a tcgen05.fence::after_thread_sync
behind that wait. A store lasts until `tcgen05.wait::st`.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from basedsl_cute.hardware.tensor_memory import TMEM_COLUMNS, TMEM_LANES
from basedsl_cute.sim.errors import RaceError
from basedsl_cute.sim.machine.reports import report
from basedsl_cute.sim.machine.state import Block, Group
from basedsl_cute.sim.machine.vector_clock import SEEN, TENSOR, Stamp
from basedsl_cute.sim.site import Site

_WORDS = TMEM_LANES * TMEM_COLUMNS


class TensorShadow:
    """The last accesses to each word of a block's tensor memory. Places are numbers of `sites`."""

    def __init__(self) -> None:
        self.agent, self.time, self.site = np.zeros((3, _WORDS), np.int32)
        self.reads: dict[int, Any] = {}  # by agent: times and places, (2, words)
        self.sites: list[Site] = []
        self._numbers: dict[Site, int] = {}

    def number_of(self, site: Site) -> int:
        """Return the number of a place in `sites`."""
        found = self._numbers.get(site)
        if found is None:
            found = self._numbers[site] = len(self.sites)
            self.sites.append(site)
        return found

    def write(self, index: Any, agent: int, time: int, site: Site) -> None:
        """Record a write of words."""
        self.agent[index], self.time[index] = agent, time
        self.site[index] = self.number_of(site)

    def read(self, index: Any, agent: int, time: int, site: Site) -> None:
        """Record a read of words."""
        found = self.reads.get(agent)
        if found is None:
            found = self.reads[agent] = np.zeros((2, _WORDS), np.int32)
        found[0, index], found[1, index] = time, self.number_of(site)


def words_at(lanes: Any, columns: Any) -> Any:
    """Return the numbers of words in lanes and columns that broadcast together."""
    return (lanes * TMEM_COLUMNS + columns).ravel()


def _shadow(block: Block) -> TensorShadow:
    tmem = block.tensor_memory
    if tmem.shadow is None:
        tmem.shadow = TensorShadow()
    found: TensorShadow = tmem.shadow
    return found


def check_load(g: Group, index: Any, site: Site) -> None:
    """Record a tcgen05.ld by a warp. Raises RaceError."""
    order = g.block.order
    if order is None:
        return
    shadow = _shadow(g.block)
    _check_writes(shadow, g, index, "tcgen05.ld", site, (g.agent,))
    _check_fence(shadow, g, index, site)
    shadow.read(index, g.agent, order.time_of(g.agent), site)


def fence(g: Group) -> None:
    """Order the later tcgen05 instructions of a warp behind all that it knows to be over
    (tcgen05.fence::after_thread_sync).
    """
    if g.block.order is not None:
        g.block.order.fence_tensor(g.agent)


def check_store(g: Group, index: Any, site: Site, is_complete: bool) -> None:
    """Record a tcgen05.st by a warp when it begins, and when it `is_complete`. Raises RaceError."""
    order = g.block.order
    if order is None:
        return
    shadow = _shadow(g.block)
    if not is_complete:
        _check_writes(shadow, g, index, "tcgen05.st", site, (g.agent,))
        _check_reads(shadow, g, index, "tcgen05.st", site, (g.agent,))
    shadow.write(index, g.agent, order.time_of(g.agent), site)


def begin_write(g: Group, block: Block, mask: Any, site: Site) -> Stamp | None:
    """Record that an asynchronous instruction of a warp begins to write the words of `mask` in a
    block's tensor memory. Raises RaceError.
    """
    order = g.block.order
    if order is None:
        return None
    shadow, index, what = _shadow(block), np.flatnonzero(mask), site.op
    stamp = order.begin_access(order.warps + g.agent)
    own = (g.agent, stamp.agent)
    _check_writes(shadow, g, index, _name(what), site, own)
    _check_reads(shadow, g, index, _name(what), site, own)
    shadow.write(index, stamp.agent, stamp.time, site)
    return stamp


def begin_read(g: Group, block: Block, index: Any, site: Site) -> None:
    """Record that an asynchronous instruction of a warp begins to read words of a block's tensor
    memory; the stamp of what it writes covers that. Raises RaceError.
    """
    order = g.block.order
    if order is None:
        return
    stamp = order.begin_access(order.warps + g.agent)
    shadow = _shadow(block)
    _check_writes(shadow, g, index, _name(site.op), site, (g.agent, stamp.agent))
    shadow.read(index, stamp.agent, stamp.time, site)


def _name(op: str) -> str:
    return op.removeprefix("nvvm.").removesuffix(".block_scale")


def _check_writes(
    shadow: TensorShadow, g: Group, index: Any, verb: str, site: Site, own: tuple[int, ...]
) -> None:
    """Report a write that the warp does not know to be over."""
    assert g.block.order is not None
    clock = g.block.order.clocks[g.agent][SEEN]
    agents = shadow.agent[index]
    late = shadow.time[index] > clock[agents]
    for one in own:
        late &= agents != one
    if late.any():
        at = int(index[late.argmax()])
        _report(shadow, g, verb, site, at, int(shadow.agent[at]), int(shadow.site[at]), "write")


def _check_fence(shadow: TensorShadow, g: Group, index: Any, site: Site) -> None:
    """Report a load of what another warp's tcgen05.mma, cp or shift wrote, where this warp has
    waited for its commit, and neither it nor who told it has a fence behind that.
    """
    order = g.block.order
    assert order is not None
    clock, agents = order.clocks[g.agent], shadow.agent[index]
    late = (shadow.time[index] > clock[TENSOR][agents]) & (agents >= order.warps)
    late &= agents != order.warps + g.agent
    if not late.any():
        return
    at = int(index[late.argmax()])
    lane, column = divmod(at, TMEM_COLUMNS)
    error = RaceError(
        "a tcgen05.ld of another warp's data, without a tcgen05.fence behind the wait",
        site,
        g.thread(0),
        notes=(
            (f"it reads lane {lane}, column {column}", None),
            (f"{order.agent_name(int(shadow.agent[at]), g.block.warps)} wrote it",
             shadow.sites[int(shadow.site[at])].span),
        ),
        hint="cute.arch.tcgen05_after_thread_sync() behind the wait; consumer_wait of a pipeline "
        "has it",
    )  # fmt: skip
    report(g.launch, "races", error)


def _check_reads(
    shadow: TensorShadow, g: Group, index: Any, verb: str, site: Site, own: tuple[int, ...]
) -> None:
    """Report a read that the warp does not know to be over."""
    assert g.block.order is not None
    clock = g.block.order.clocks[g.agent][SEEN]
    for agent, (times, places) in shadow.reads.items():
        late = times[index] > clock[agent]
        if agent not in own and late.any():
            at = int(index[late.argmax()])
            _report(shadow, g, verb, site, at, agent, int(places[at]), "read")
            return


def _report(
    shadow: TensorShadow, g: Group, verb: str, site: Site, at: int, other: int, place: int,
    access: str,
) -> None:  # fmt: skip
    order = g.block.order
    assert order is not None
    there = shadow.sites[place]
    asynchronous = other >= order.warps
    who = order.agent_name(other, g.block.warps)
    lane, column = divmod(at, TMEM_COLUMNS)
    error = RaceError(
        f"race on tensor memory: this {verb} and a {access} by {who}",
        site,
        g.thread(0),
        notes=(
            (f"both touch lane {lane}, column {column}", None),
            (f"the {access} by {who}", there.span),
        ),
        hint="wait for the mbarrier of tcgen05.commit"
        if asynchronous
        else "let that warp arrive at a barrier or release the pipeline's stage first",
    )
    report(g.launch, "races", error)
