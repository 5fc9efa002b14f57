"""Pipelines over two mbarriers a stage: "full", for which consumers wait, and "empty", for
producers.

`barrier_storage` points to 2 * num_stages words (Int64) of shared memory: the full barriers, then
the empty ones.
"""

from __future__ import annotations

from typing import Any

from basedsl import DSLTypeError, Int32, Int64, is_dynamic, logical_not, user_span
from basedsl_cute import algebra, arch
from basedsl_cute.algebra.ignored_location import takes_location, takes_location_untyped
from basedsl_cute.arch import mbarrier
from basedsl_cute.arch.events import trace
from basedsl_cute.atoms.copy_instruction import predicated
from basedsl_cute.pipeline.groups import Agent, CooperativeGroup
from basedsl_cute.pipeline.mbarrier_array import PipelineOp, StageBarriers
from basedsl_cute.pipeline.participants import PipelineConsumer, PipelineProducer
from basedsl_cute.pipeline.state import PipelineState, check_stages
from basedsl_cute.tensors.kernel_scope import block_threads


class StaticFacts:
    """The static facts of a pipeline: one leaf that no loop carries. Each pipeline sets those it
    needs.
    """

    __dsl_leaf__ = True

    num_stages: int
    tx_count: int
    length: int
    producer: CooperativeGroup
    consumer: CooperativeGroup
    group: Any
    producer_mask: int | None
    consumer_mask: int | None
    by_threads: bool

    def __init__(self, **facts: Any) -> None:
        self.__dict__.update(facts)


class PipelineAsync:
    """A ring of stages that threads fill with ordinary stores and threads read.

    The producer of a stage waits until it is empty (`producer_acquire`), writes it, and arrives at
    its full barrier (`producer_commit`); the consumer waits until it is full (`consumer_wait`),
    reads it, and arrives at its empty barrier (`consumer_release`). Each has a `PipelineState` of
    its own, which it advances, or uses the objects of `make_participants()`. `create` makes a
    pipeline; the constructor takes the barriers `full` and `empty`, the static `facts`, and
    `release`, where consumers arrive.

    >>> from basedsl_cute import pipeline
    >>> @cute.struct
    ... class Storage:
    ...     barriers: cute.struct.MemRange[cute.Int64, 4]
    ...     stages: cute.struct.MemRange[cute.Int32, 2]
    >>> @cute.kernel
    ... def squares(y: cute.Tensor):
    ...     storage = cute.utils.SmemAllocator().allocate(Storage)
    ...     warp = pipeline.CooperativeGroup(pipeline.Agent.Warp)
    ...     pipe = pipeline.PipelineAsync.create(
    ...         barrier_storage=storage.barriers.data_ptr(),
    ...         num_stages=2,
    ...         producer_group=warp,
    ...         consumer_group=warp,
    ...     )
    ...     producer, consumer = pipe.make_participants()
    ...     stages = storage.stages.get_tensor(cute.make_layout(2))
    ...     if cute.arch.make_warp_uniform(cute.arch.warp_idx()) == 0:
    ...         for i in range(6):
    ...             handle = producer.acquire_and_advance()
    ...             with cute.arch.elect_one():
    ...                 stages[handle.index] = i * i
    ...             handle.commit()
    ...         producer.tail()
    ...     else:
    ...         for i in range(6):
    ...             handle = consumer.wait_and_advance()
    ...             y[i] = stages[handle.index]
    ...             handle.release()
    >>> @cute.jit
    ... def launch(y: cute.Tensor):
    ...     squares(y).launch(grid=1, block=64)
    >>> y = np.zeros(6, np.int32)
    >>> launch(y)
    >>> print(y)
    [ 0  1  4  9 16 25]
    """

    def __init__(self, full: Any, empty: Any, facts: StaticFacts, release: Any = None) -> None:
        self.full = full
        self.empty = empty
        self.release = release  # (rank to arrive at, whether this thread does), or None
        self._facts = facts

    @property
    def num_stages(self) -> int:
        """The number of stages of the ring, static."""
        return self._facts.num_stages

    # What pipelines derived by programs use.

    @property
    def sync_object_full(self) -> StageBarriers:
        """The full barriers as an object with `arrive` and `wait`."""
        stages, tx_count = self.num_stages, getattr(self._facts, "tx_count", 0)
        return StageBarriers(self.full, stages, self._filled_by, tx_count)

    @property
    def sync_object_empty(self) -> StageBarriers:
        """The empty barriers as an object with `arrive` and `wait`."""
        return StageBarriers(self.empty, self.num_stages, PipelineOp.AsyncThread)

    @property
    def producer_mask(self) -> int | None:
        """The rank in the cluster of the block whose full barriers producers arrive at; None is
        their own block.
        """
        return getattr(self._facts, "producer_mask", None)

    @property
    def consumer_mask(self) -> int | None:
        """The rank of the block whose empty barriers consumers arrive at; None is their own."""
        return getattr(self._facts, "consumer_mask", None)

    _filled_by = PipelineOp.AsyncThread

    @classmethod
    @takes_location_untyped
    def create(
        cls,
        *,
        barrier_storage: Any = None,
        num_stages: int,
        producer_group: CooperativeGroup,
        consumer_group: CooperativeGroup,
        producer_mask: int | None = None,
        consumer_mask: int | None = None,
        defer_sync: bool = False,
    ) -> PipelineAsync:
        """Make a pipeline and initialise its barriers; every thread of the block calls it.

        - `barrier_storage`: a pointer to 2 * num_stages words of 8 bytes of shared memory; by
          default they are allocated.
        - `num_stages`: a static number from 1.
        - `producer_group`, `consumer_group`: the arrivals that fill and that empty a stage.
        - `producer_mask`, `consumer_mask`: the static rank in the cluster of the block at whose
          barriers these arrive; by default at those of their own block.
        - `defer_sync`: leave the barrier of the block behind it to `pipeline_init_arrive` and
          `pipeline_init_wait`.

        Raises DSLTypeError for another number of stages.
        """
        arrivals = cls._producer_arrivals(producer_group), consumer_group.size
        full, empty = initialise_stages(barrier_storage, num_stages, *arrivals)
        if not defer_sync:
            arch.mbarrier_init_fence()
            arch.sync_threads()
        facts = StaticFacts(
            num_stages=num_stages,
            producer=producer_group,
            consumer=consumer_group,
            producer_mask=producer_mask,
            consumer_mask=consumer_mask,
        )
        return cls(full, empty, facts)

    @classmethod
    def _producer_arrivals(cls, producers: CooperativeGroup) -> int:
        return producers.size

    @takes_location
    def make_participants(self) -> tuple[PipelineProducer, PipelineConsumer]:
        """Return a producer and a consumer that own their states and advance them."""
        return PipelineProducer(self), PipelineConsumer(self)

    # Producer ---------------------------------------------------------------------------------

    @takes_location
    def producer_acquire(self, state: PipelineState, try_token: Any = None) -> None:
        """Wait until the stage of `state` is empty.

        `try_token`, the result of `producer_try_acquire`, spares the wait where it is True.
        """
        with trace("producer_acquire"):
            wait_unless(try_token, self.empty + state.index, state.phase, self.num_stages)

    @takes_location
    def producer_try_acquire(self, state: PipelineState) -> Any:
        """Return True (a Boolean) if the stage of `state` is empty by now; may wait a moment for
        it.
        """
        return mbarrier.phase_is_complete(self.empty + state.index, state.phase, self.num_stages)

    @takes_location
    def producer_get_barrier(self, state: PipelineState) -> Any:
        """Return a pointer to the full barrier of the stage of `state`, at which TMA copies can
        complete.
        """
        return self.full + state.index

    @takes_location
    def producer_commit(self, state: PipelineState) -> None:
        """Arrive at the full barrier: this producer has written its part of the stage of
        `state`.
        """
        with self._facts.producer.arriving():
            arch.mbarrier_arrive(self.full + state.index, self.producer_mask)

    @takes_location
    def producer_tail(self, state: PipelineState) -> None:
        """Wait until the consumers have released every stage, from that of `state` on.

        A producer calls it last, so that its block does not end while others arrive at its
        barriers.
        """
        for _ in range(self.num_stages):
            arch.mbarrier_wait(self.empty + state.index, state.phase)
            state.advance()

    # Consumer ---------------------------------------------------------------------------------

    @takes_location
    def consumer_wait(self, state: PipelineState, try_token: Any = None) -> None:
        """Wait until the stage of `state` is full.

        `try_token`, the result of `consumer_try_wait`, spares the wait where it is True.
        """
        with trace("consumer_wait"):
            wait_unless(try_token, self.full + state.index, state.phase)

    @takes_location
    def consumer_try_wait(self, state: PipelineState) -> Any:
        """Return True (a Boolean) if the stage of `state` is full by now; may wait a moment for
        it.
        """
        return arch.mbarrier_try_wait(self.full + state.index, state.phase)

    @takes_location
    def consumer_release(self, state: PipelineState) -> None:
        """Arrive at the empty barrier: this consumer has read its part of the stage of `state`."""
        with self._facts.consumer.arriving():
            arch.mbarrier_arrive(self.empty + state.index, self.consumer_mask)


class PipelineCpAsync(PipelineAsync):
    """A ring of stages that threads fill by cp.async (`cpasync.CopyG2SOp`) and threads read
    (sm_80).

    A stage is full when the copies of all threads of the producer group have landed.
    `consumer_wait` makes them visible: no fence or barrier is needed besides.
    """

    _filled_by = PipelineOp.AsyncLoad

    @classmethod
    def _producer_arrivals(cls, producers: CooperativeGroup) -> int:
        """Return the arrivals of a stage: each thread waits for its own copies, whatever the agent
        is.
        """
        each = arch.WARP_SIZE if producers.agent is Agent.Warp else 1
        return producers.size * each

    @takes_location
    def producer_commit(self, state: PipelineState) -> None:
        """Arrive at the full barrier of the stage of `state` when this thread's cp.async copies
        are complete.
        """
        arch.cp_async_mbarrier_arrive_noinc(self.full + state.index)


class PipelineTmaAsync(PipelineAsync):
    """A ring of stages that TMA fills with `tx_count` bytes each and warps read (sm_90).

    All methods are called by whole warps, and a warp that calls `consumer_release` arrives once,
    whatever the agent of its group is: `consumer_group.size` is the number of warps that consume.
    With `cta_layout_vmnk` of several blocks, a stage is filled by the multicasts of the blocks in
    the same row and column of the cluster, and released to all of those; the size is then the
    number of such warps in all of them.
    """

    _filled_by = PipelineOp.TmaLoad

    @classmethod
    @takes_location_untyped
    def create(  # type: ignore[override]
        cls,
        *,
        barrier_storage: Any = None,
        num_stages: int,
        producer_group: CooperativeGroup,
        consumer_group: CooperativeGroup,
        tx_count: int,
        cta_layout_vmnk: Any = None,
        tidx: Any = None,
        mcast_mode_mn: tuple[int, int] = (1, 1),
        defer_sync: bool = False,
        by_threads: bool = False,
    ) -> PipelineTmaAsync:
        """Make a pipeline and initialise its barriers; every thread of the block (or cluster)
        calls it.

        - `barrier_storage`, `num_stages`, `producer_group`, `consumer_group`, `defer_sync`: as for
          `PipelineAsync.create`; a cluster waits at its own barrier.
        - `tx_count`: the bytes that the copies of one stage bring to this block, static.
        - `cta_layout_vmnk`: the layout (V, M, N, K) of the cluster's blocks, None for no
          multicast.
        - `tidx`: accepted and not used.
        - `mcast_mode_mn`: 1 or 0 for each of M and N: whether A is multicast along N and B along
          M.
        - `by_threads`: each thread that calls `consumer_release` arrives, not one for its warp, and
          `consumer_group.size` is the number of threads. Where threads read a stage by ordinary
          loads, compute-sanitizer's racecheck takes no other thread's arrival for theirs.

        Raises DSLTypeError if a group has more arrivals than the block has warps.
        """
        blocks = 1 if cta_layout_vmnk is None else int(algebra.size(cta_layout_vmnk))
        if not by_threads:
            _check_arrivals("released", "consumes", "consumer", consumer_group.size, blocks)
        _check_arrivals("filled", "acquires", "producer", producer_group.size, 1)
        arrivals = producer_group.size, consumer_group.size
        full, empty = initialise_stages(barrier_storage, num_stages, *arrivals)
        if not defer_sync:
            arch.mbarrier_init_fence()
            if blocks > 1:
                arch.cluster_arrive_relaxed()
                arch.cluster_wait()
            else:
                arch.sync_threads()
        facts = StaticFacts(num_stages=num_stages, tx_count=tx_count, by_threads=by_threads)
        release = None
        if blocks > 1:
            release = _release_targets(cta_layout_vmnk, blocks, mcast_mode_mn)
        return cls(full, empty, facts, release)

    @takes_location
    def producer_acquire(self, state: PipelineState, try_token: Any = None) -> None:
        """Wait until the stage of `state` is empty, and have its full barrier expect `tx_count`
        bytes. `try_token` spares the wait where it is True.
        """
        super().producer_acquire(state, try_token)
        with arch.elect_one():
            arch.mbarrier_arrive_and_expect_tx(self.full + state.index, self._facts.tx_count)

    @takes_location
    def producer_commit(self, state: PipelineState) -> None:
        """Do nothing: the bytes of the copies complete the phase of the stage of `state`."""

    @takes_location
    def consumer_release(self, state: PipelineState) -> None:
        """Arrive at the empty barrier: this warp has read the stage of `state`."""
        barrier = self.empty + state.index
        if self._facts.by_threads:
            arch.mbarrier_arrive(barrier)
            return
        if self.release is None:
            with arch.elect_one():
                arch.mbarrier_arrive(barrier)
            return
        rank, takes_part = self.release
        with predicated(takes_part):
            arch.mbarrier_arrive(barrier, rank, scope="cta")  # the stage was only read


def _check_arrivals(done: str, does: str, who: str, size: int, blocks: int) -> None:
    """DSLTypeError if a stage waits for more arrivals, one of each warp, than there are warps."""
    threads = block_threads()
    if threads is None or size <= blocks * (warps := -(-threads // arch.WARP_SIZE)):
        return
    there = f"a block of {threads} threads has {warps} warp(s)"
    there += f", and the cluster {blocks} blocks" if blocks > 1 else ""
    several = ", in all blocks that a stage is multicast from" if who == "consumer" else ""
    raise DSLTypeError(
        f"a stage of this PipelineTmaAsync is {done} by {size} arrivals: more than there are warps",
        user_span(),
        notes=((f"each warp that {does} arrives once; {there}", None),),
        hint=f"{who}_group's size is the number of {who} warps{several}",
    )


def wait_unless(token: Any, barrier: Any, phase: Any, stages: int = 0) -> None:
    """Wait for a barrier, unless `token` says that a test found its phase complete.

    `stages` marks the wait of a producer who fills so many.
    """
    if token is None or not is_dynamic(token):
        if token is None or not token:
            mbarrier.wait_for_phase(barrier, phase, stages)
        return
    with predicated(logical_not(token)):
        mbarrier.wait_for_phase(barrier, phase, stages)


def initialise_stages(storage: Any, stages: int, producers: int, consumers: int) -> tuple[Any, Any]:
    """Return the full and the empty barriers of all stages, initialised for so many arrivals
    each.
    """
    check_stages(stages)
    if storage is None:
        storage = alloc_reserved_mbarrier(2 * stages)
    full, empty = storage, storage + stages
    both = ((full, producers), (empty, consumers))
    initialise_barriers([(which + i, size) for i in range(stages) for which, size in both])
    return full, empty


@takes_location
def alloc_reserved_mbarrier(count: int) -> Any:
    """Allocate shared memory for `count` barriers, of 8 bytes each, and return the pointer. A
    pipeline that is made without `barrier_storage` does so.
    """
    return arch.alloc_smem(Int64, count, alignment=8)


def initialise_barriers(barriers: list[tuple[Any, int]]) -> None:
    """Initialise barriers, each for a number of arrivals, by one thread of warp 0."""
    with predicated(arch.make_warp_uniform(arch.warp_idx()) == 0):
        with arch.elect_one():
            for barrier, arrivals in barriers:
                arch.mbarrier_init(barrier, arrivals)


def _release_targets(layout: Any, blocks: int, modes: tuple[int, int]) -> tuple[Any, Any]:
    """Return the block at which this lane arrives on a release, and whether it does.

    Lane l of a warp answers for block l of the cluster, which multicasts to this one if it is in
    the same row (A, along N) or column (B, along M), and at the same place of its pair.
    """
    lane = arch.lane_idx()
    rank = arch.make_warp_uniform(arch.block_idx_in_cluster())
    mine = _coordinates(layout, rank)
    its = _coordinates(layout, lane % blocks)
    along_n = (its[1] == mine[1]) & (modes[0] == 1)
    along_m = (its[2] == mine[2]) & (modes[1] == 1)
    same_block = lane == rank
    takes_part = (its[0] == mine[0]) & (along_n | along_m) | same_block
    return Int32(lane % blocks), (lane < blocks) & takes_part


def _coordinates(layout: Any, rank: Any) -> tuple[Any, Any, Any]:
    """Return (v, m, n) in the cluster of the block `rank`; `layout` is (V, M, N, K), or (M, N)."""
    flat = layout.get_flat_coord(rank)
    return (flat[0], flat[1], flat[2]) if len(flat) > 2 else (0, flat[0], flat[1])
