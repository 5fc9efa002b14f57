"""Pipelines over two mbarriers a stage: "full", which consumers wait for, and "empty".

`barrier_storage` holds 2 * num_stages words: the full barriers, then the empty ones.
"""

from __future__ import annotations

from typing import Any

from basedsl.errors import DSLTypeError
from basedsl.location import user_span
from basedsl.numeric import Int32, is_dynamic, logical_not
from basedsl_cute import algebra, arch
from basedsl_cute.algebra.ignored_location import takes_location
from basedsl_cute.arch import mbarrier
from basedsl_cute.atoms.copy_instruction import predicated
from basedsl_cute.pipeline.groups import Agent, CooperativeGroup
from basedsl_cute.pipeline.participants import PipelineConsumer, PipelineProducer
from basedsl_cute.pipeline.state import PipelineState, check_stages
from basedsl_cute.tensors.kernel_scope import block_threads


class StaticFacts:
    """The static facts of a pipeline: one leaf that no loop carries. Each pipeline has some."""

    __dsl_leaf__ = True

    num_stages: int
    tx_count: int
    length: int
    producer: CooperativeGroup
    consumer: CooperativeGroup

    def __init__(self, **facts: Any) -> None:
        self.__dict__.update(facts)


class PipelineAsync:
    """Threads fill stages and say so; threads read them and say so."""

    def __init__(self, full: Any, empty: Any, facts: StaticFacts, release: Any = None) -> None:
        self.full = full
        self.empty = empty
        self.release = release  # (rank to arrive at, whether this thread does), or None
        self._facts = facts

    @property
    def num_stages(self) -> int:
        return self._facts.num_stages

    @classmethod
    @takes_location
    def create(
        cls,
        *,
        barrier_storage: Any,
        num_stages: int,
        producer_group: CooperativeGroup,
        consumer_group: CooperativeGroup,
        defer_sync: bool = False,
    ) -> PipelineAsync:
        """Initialise the barriers; unless `defer_sync`, all threads of the block wait for that."""
        arrivals = cls._producer_arrivals(producer_group), consumer_group.size
        full, empty = _initialise(barrier_storage, num_stages, *arrivals)
        if not defer_sync:
            arch.mbarrier_init_fence()
            arch.sync_threads()
        facts = StaticFacts(num_stages=num_stages, producer=producer_group, consumer=consumer_group)
        return cls(full, empty, facts)

    @classmethod
    def _producer_arrivals(cls, producers: CooperativeGroup) -> int:
        return producers.size

    @takes_location
    def make_participants(self) -> tuple[PipelineProducer, PipelineConsumer]:
        """A producer and a consumer that own their states."""
        return PipelineProducer(self), PipelineConsumer(self)

    # Producer ---------------------------------------------------------------------------------

    @takes_location
    def producer_acquire(self, state: PipelineState, try_token: Any = None) -> None:
        """Wait until the stage is empty."""
        _wait_unless(try_token, self.empty + state.index, state.phase, self.num_stages)

    @takes_location
    def producer_try_acquire(self, state: PipelineState) -> Any:
        """Whether the stage is empty by now."""
        return mbarrier.try_wait(self.empty + state.index, state.phase, self.num_stages)

    @takes_location
    def producer_get_barrier(self, state: PipelineState) -> Any:
        """The barrier that says that the stage is full."""
        return self.full + state.index

    @takes_location
    def producer_commit(self, state: PipelineState) -> None:
        """The stage is full."""
        with self._facts.producer.arriving():
            arch.mbarrier_arrive(self.full + state.index)

    @takes_location
    def producer_tail(self, state: PipelineState) -> None:
        """Wait until the consumers have let go of every stage: before the block ends."""
        for _ in range(self.num_stages):
            arch.mbarrier_wait(self.empty + state.index, state.phase)
            state.advance()

    # Consumer ---------------------------------------------------------------------------------

    @takes_location
    def consumer_wait(self, state: PipelineState, try_token: Any = None) -> None:
        """Wait until the stage is full."""
        _wait_unless(try_token, self.full + state.index, state.phase)

    @takes_location
    def consumer_try_wait(self, state: PipelineState) -> Any:
        """Whether the stage is full by now."""
        return arch.mbarrier_try_wait(self.full + state.index, state.phase)

    @takes_location
    def consumer_release(self, state: PipelineState) -> None:
        """The stage is empty."""
        with self._facts.consumer.arriving():
            arch.mbarrier_arrive(self.empty + state.index)


class PipelineCpAsync(PipelineAsync):
    """Threads fill stages by cp.async: a stage is full when the copies of all of them are there."""

    @classmethod
    def _producer_arrivals(cls, producers: CooperativeGroup) -> int:
        """Each thread waits for its own copies, whatever the agent is."""
        each = arch.WARP_SIZE if producers.agent is Agent.Warp else 1
        return producers.size * each

    @takes_location
    def producer_commit(self, state: PipelineState) -> None:
        """Arrive when this thread's copies so far are complete."""
        arch.cp_async_mbarrier_arrive_noinc(self.full + state.index)


class PipelineTmaAsync(PipelineAsync):
    """TMA fills stages, `tx_count` bytes each; warps read them.

    All methods are called by whole warps, and a warp that calls `consumer_release` arrives once,
    whatever the agent of its group is: `consumer_group.size` is the number of warps that consume.
    With `cta_layout_vmnk` of several blocks, a stage is filled by the multicasts of the blocks in
    the same row and column of the cluster, and released to all of those; the size is then the
    number of such warps in all of them.
    """

    @classmethod
    @takes_location
    def create(  # type: ignore[override]
        cls,
        *,
        barrier_storage: Any,
        num_stages: int,
        producer_group: CooperativeGroup,
        consumer_group: CooperativeGroup,
        tx_count: int,
        cta_layout_vmnk: Any = None,
        tidx: Any = None,
        mcast_mode_mn: tuple[int, int] = (1, 1),
        defer_sync: bool = False,
    ) -> PipelineTmaAsync:
        """As `PipelineAsync.create`; a cluster waits at its own barrier."""
        blocks = 1 if cta_layout_vmnk is None else int(algebra.size(cta_layout_vmnk))
        _check_arrivals("released", "consumes", "consumer", consumer_group.size, blocks)
        _check_arrivals("filled", "acquires", "producer", producer_group.size, 1)
        arrivals = producer_group.size, consumer_group.size
        full, empty = _initialise(barrier_storage, num_stages, *arrivals)
        if not defer_sync:
            arch.mbarrier_init_fence()
            if blocks > 1:
                arch.cluster_arrive_relaxed()
                arch.cluster_wait()
            else:
                arch.sync_threads()
        facts = StaticFacts(num_stages=num_stages, tx_count=tx_count)
        release = None
        if blocks > 1:
            release = _release_targets(cta_layout_vmnk, blocks, mcast_mode_mn)
        return cls(full, empty, facts, release)

    @takes_location
    def producer_acquire(self, state: PipelineState, try_token: Any = None) -> None:
        """Wait until the stage is empty, and have its full barrier expect the bytes."""
        super().producer_acquire(state, try_token)
        with arch.elect_one():
            arch.mbarrier_arrive_and_expect_tx(self.full + state.index, self._facts.tx_count)

    @takes_location
    def producer_commit(self, state: PipelineState) -> None:
        """Nothing: the bytes themselves complete the phase."""

    @takes_location
    def consumer_release(self, state: PipelineState) -> None:
        """This warp is done with the stage."""
        barrier = self.empty + state.index
        if self.release is None:
            with arch.elect_one():
                arch.mbarrier_arrive(barrier)
            return
        rank, takes_part = self.release
        with predicated(takes_part):
            arch.mbarrier_arrive(barrier, rank, scope="cta")  # the stage was only read


def _check_arrivals(done: str, does: str, who: str, size: int, blocks: int) -> None:
    """A stage waits for an arrival of each warp; more than there are would never come."""
    threads = block_threads()
    if threads is None or size <= blocks * (warps := -(-threads // arch.WARP_SIZE)):
        return
    there = f"a block of {threads} threads has {warps} warp(s)"
    there += f", and the cluster {blocks} blocks" if blocks > 1 else ""
    several = ", in all blocks that a stage is multicast from" if who == "consumer" else ""
    raise DSLTypeError(
        f"a stage of this PipelineTmaAsync is {done} by {size} arrivals, one for each warp that "
        f"{does}; {there}",
        user_span(),
        hint=f"{who}_group's size is the number of {who} warps{several}",
    )


def _wait_unless(token: Any, barrier: Any, phase: Any, stages: int = 0) -> None:
    """Wait for a barrier, unless a test of it has just said that this is not needed. `stages` is
    given by producers.
    """
    if token is None or not is_dynamic(token):
        if token is None or not token:
            mbarrier.wait(barrier, phase, stages)
        return
    with predicated(logical_not(token)):
        mbarrier.wait(barrier, phase, stages)


def _initialise(storage: Any, stages: int, producers: int, consumers: int) -> tuple[Any, Any]:
    """The full and the empty barriers of every stage, for so many arrivals each."""
    check_stages(stages)
    full, empty = storage, storage + stages
    both = ((full, producers), (empty, consumers))
    initialise([(which + i, size) for i in range(stages) for which, size in both])
    return full, empty


def initialise(barriers: list[tuple[Any, int]]) -> None:
    """One thread initialises barriers, each for a number of arrivals."""
    with predicated(arch.make_warp_uniform(arch.warp_idx()) == 0):
        with arch.elect_one():
            for barrier, arrivals in barriers:
                arch.mbarrier_init(barrier, arrivals)


def _release_targets(layout: Any, blocks: int, modes: tuple[int, int]) -> tuple[Any, Any]:
    """Lane l of a warp answers for block l of the cluster: its rank, and whether that block
    multicasts to this one, being in the same row (A, along N) or column (B, along M).
    """
    lane = arch.lane_idx()
    rank = arch.make_warp_uniform(arch.block_idx_in_cluster())
    mine = _coordinates(layout, rank)
    its = _coordinates(layout, lane % blocks)
    along_n = (its[0] == mine[0]) & (modes[0] == 1)
    along_m = (its[1] == mine[1]) & (modes[1] == 1)
    same_block = lane == rank
    return Int32(lane % blocks), (lane < blocks) & (along_n | along_m | same_block)


def _coordinates(layout: Any, rank: Any) -> tuple[Any, Any]:
    """(m, n) in the cluster of the block `rank`; `layout` is (V, M, N, K), or (M, N)."""
    flat = layout.get_flat_coord(rank)
    return (flat[1], flat[2]) if len(flat) > 2 else (flat[0], flat[1])
