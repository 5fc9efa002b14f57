"""Asynchronous tcgen05 instructions in flight, and their commit (PTX ISA, "Issue
granularity", and "Memory consistency model").

One thread issues an instruction for one block, or the even block of a pair for both. Those of a
thread complete in order, when somebody looks at the mbarrier of a later commit: as late as the
program allows.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from basedsl_cute.sim.errors import SimulationError
from basedsl_cute.sim.machine import races, tensor_races
from basedsl_cute.sim.machine.mbarriers import arrive_later, check_commit
from basedsl_cute.sim.machine.state import Block, Group, Mask, PendingTmemWrite, TensorQueue
from basedsl_cute.sim.machine.tensor_memory import group_blocks
from basedsl_cute.sim.machine.vector_clock import Stamp
from basedsl_cute.sim.site import Site


def issuer(g: Group, m: Mask, what: str, site: Site) -> int:
    """The lane that issues an instruction; SimulationError unless it is one."""
    lanes = np.arange(g.lanes) if m is None else np.flatnonzero(m)
    if len(lanes) != 1:
        raise SimulationError(
            f"{what} by {len(lanes)} threads: one thread issues it",
            site,
            g.thread(int(lanes[0])),
            hint="with cute.arch.elect_one():",
        )
    return int(lanes[0])


def leading_blocks(g: Group, blocks: int, what: str, lane: int, site: Site) -> list[Block]:
    """The blocks that an instruction works on. Raises SimulationError for a pair's instruction
    that the block of odd rank issues.
    """
    members = group_blocks(g, blocks, what, site)
    if members[0] is not g.block:
        raise SimulationError(
            f"{what} of two blocks is issued by block {g.block.rank} of the cluster, the odd one",
            site,
            g.thread(lane),
            hint="the block of even rank issues it for both: if is_leader_cta:",
        )
    return members


def issue(
    g: Group,
    lane: int,
    writes: Sequence[tuple[Block, PendingTmemWrite]],
    perform: Callable[[], None],
    stamp: Stamp | None = None,
) -> None:
    """Queue an instruction that writes these words of the blocks' tensor memories; `stamp` is its
    read of shared memory.
    """
    for block, write in writes:
        block.tensor_memory.pending.append(write)
        stamp = tensor_races.begin_write(g, block, write.mask, write.site) or stamp

    def complete() -> None:
        perform()
        for block, write in writes:
            block.tensor_memory.pending.remove(write)

    queue = g.tensor_queues.setdefault(lane, TensorQueue())
    queue.pending.append(complete)
    queue.issued += 1
    queue.stamp = stamp or queue.stamp


def begin_smem_read(
    g: Group, block: Block, verb: str, touched: Sequence[Any], lane: int, site: Site
) -> Stamp | None:
    """Record for the race check that an instruction begins to read bytes of a block's shared
    memory, at offsets `(bytes, 1)`. Raises RaceError.
    """
    if block.shadow is None:
        return None
    return races.begin_async_read(block.shadow, g, site, verb, np.concatenate(touched), lane)


def commit(g: Group, blocks: int, address: Any, masks: Any, m: Mask, site: Site) -> None:
    """Have mbarriers arrive when all that this thread has issued so far is complete
    (tcgen05.commit): the block's own, or with `masks` those at the same address of the cluster's
    blocks whose bits are set.
    """
    what = "tcgen05.commit"
    lane = issuer(g, m, what, site)
    group_blocks(g, blocks, what, site)
    queue = g.tensor_queues.setdefault(lane, TensorQueue())
    serial = queue.issued

    def complete() -> None:
        while queue.pending and queue.issued - len(queue.pending) < serial:
            queue.pending.pop(0)()

    targets = [g.block]
    if masks is not None:
        mask = int(masks[lane]) & 0xFFFF
        members = g.block.cluster.blocks
        if mask >> len(members) or not mask:
            raise SimulationError(
                f"{what} to the blocks of mask {mask:#x} of a cluster of {len(members)}",
                site,
                g.thread(lane),
            )
        targets = [block for block in members if mask >> block.rank & 1]
    for block in targets:
        if block is not g.block:  # which may end before this arrives
            check_commit(g, block, int(address[lane]), lane, site)
        arrive_later(g, int(address[lane]), lane, site, complete, block, queue.stamp)
