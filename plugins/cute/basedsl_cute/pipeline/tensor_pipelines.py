"""Pipelines whose producer or consumer is tcgen05.mma, of one block or of a pair (sm_100f).

The cluster's blocks are in a layout (V, M, N, K), whose mode V has the 1 or 2 blocks of an MMA. The
even block of a pair, its leader, issues the MMAs: only it waits for full stages of operands, and
arrivals for it go to its mbarriers. What tcgen05.mma has read or written is told by tcgen05.commit.

A thread orders its tcgen05 instructions around the mbarriers of other threads by
`tcgen05.fence` (PTX ISA, of that title): the pipelines emit these.
"""

from __future__ import annotations

from typing import Any, Self

from basedsl import DSLTypeError, Int16
from basedsl_cute import algebra, arch, nvgpu
from basedsl_cute.algebra.ignored_location import takes_location, takes_location_untyped
from basedsl_cute.arch.events import trace
from basedsl_cute.atoms.copy_instruction import predicated
from basedsl_cute.pipeline.groups import CooperativeGroup
from basedsl_cute.pipeline.mbarrier_array import PipelineOp
from basedsl_cute.pipeline.mbarrier_pipelines import (
    PipelineAsync,
    StaticFacts,
    initialise_stages,
    wait_unless,
)
from basedsl_cute.pipeline.state import PipelineState


class PipelineOfMma(PipelineAsync):
    """The base of pipelines with tcgen05.mma at one end.

    `release` has the blocks at whose mbarriers a commit arrives, as bits, and the rank of the
    pair's leader; each None where it is this block.
    """

    def __init__(self, full: Any, empty: Any, facts: StaticFacts, release: Any = None) -> None:
        super().__init__(full, empty, facts, release or (None, None))

    @classmethod
    def _make(
        cls,
        barrier_storage: Any,
        num_stages: int,
        groups: tuple[CooperativeGroup, CooperativeGroup],
        cta_layout_vmnk: Any,
        defer_sync: bool,
        modes: tuple[int, int] | None = None,
        consumers: int | None = None,
        tx_count: int = 0,
    ) -> Any:
        """Make a pipeline of groups (producer, consumer) and initialise its barriers. With `modes`
        a commit arrives at all blocks that multicast here, along N and M; else at the pair's.
        """
        producer, consumer = groups
        arrivals = producer.size, consumer.size if consumers is None else consumers
        full, empty = initialise_stages(barrier_storage, num_stages, *arrivals)
        blocks = 1 if cta_layout_vmnk is None else int(algebra.size(cta_layout_vmnk))
        pair = 1 if cta_layout_vmnk is None else int(algebra.size(cta_layout_vmnk.shape[0]))
        if pair not in (1, 2):
            raise DSLTypeError(
                f"mode 0 of cta_layout_vmnk has the blocks of an MMA, 1 or 2, not {pair}",
                hint="tiled_divide(make_layout(cluster_shape), (tiled_mma.thr_id.shape,))",
            )
        if not defer_sync:
            arch.mbarrier_init_fence()
            if blocks > 1:
                arch.cluster_arrive_relaxed()
                arch.cluster_wait()
            else:
                arch.sync_threads()
        facts = StaticFacts(
            num_stages=num_stages, tx_count=tx_count, producer=producer, consumer=consumer,
            group=nvgpu.tcgen05.CtaGroup(pair),
        )  # fmt: skip
        if blocks == 1:
            return cls(full, empty, facts)
        rank = arch.make_warp_uniform(arch.block_idx_in_cluster())
        leader = rank & ~1 if pair == 2 else None
        if modes is not None:
            mask = _sharing_blocks(cta_layout_vmnk, rank, pair, modes)
        else:
            mask = None if pair == 1 else _bits_of_pair(rank)
        return cls(full, empty, facts, (mask, leader))

    @takes_location
    def producer_acquire(self, state: PipelineState, try_token: Any = None) -> None:
        """Wait until the stage of `state` is empty; `try_token` spares the wait where it is
        True.
        """
        super().producer_acquire(state, try_token)
        arch.tcgen05_after_thread_sync()

    @takes_location
    def consumer_wait(self, state: PipelineState, try_token: Any = None) -> None:
        """Wait until the stage of `state` is full; `try_token` spares the wait where it is True."""
        super().consumer_wait(state, try_token)
        arch.tcgen05_after_thread_sync()

    def _is_leader(self) -> Any:
        """Return whether this block issues the MMAs; None where there are no pairs."""
        if self.release[1] is None:
            return None
        return arch.make_warp_uniform(arch.block_idx_in_cluster()) == self.release[1]

    def _commit(self, barrier: Any) -> None:
        """Have a barrier of every block that waits arrive when the MMAs so far are complete."""
        nvgpu.tcgen05.commit(barrier, self.release[0], self._facts.group)

    def _arrive(self, barrier: Any, group: CooperativeGroup) -> None:
        """Arrive at the leader's barrier."""
        arch.tcgen05_before_thread_sync()
        with group.arriving():
            arch.mbarrier_arrive(barrier, self.release[1])


class PipelineTmaUmma(PipelineOfMma):
    """A ring of stages that TMA fills and tcgen05.mma reads.

    The producer's warp and the MMA's call whole. In a pair each block loads its own half of the
    operands, and the bytes of both count at the leader's barrier, which alone waits for them:
    `tx_count` is of both blocks.
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
        mcast_mode_mn: tuple[int, int] = (1, 1),
        tidx: Any = None,
        defer_sync: bool = False,
    ) -> PipelineTmaUmma:
        """Make a pipeline and initialise its barriers; every thread of the cluster calls it.

        - `barrier_storage`, `num_stages`, `defer_sync`: as for `PipelineAsync.create`.
        - `producer_group`: of size 1, the thread that expects the bytes.
        - `consumer_group`: its size is the number of MMA warps that release a stage, in all blocks
          (or pairs) that a stage is multicast to or from: those along M and along N, minus 1.
        - `tx_count`: the bytes that the copies of one stage bring to this block, or to its pair.
        - `cta_layout_vmnk`: the layout of the cluster's blocks; None for one block.
        - `mcast_mode_mn`: whether A is multicast along N, and B along M.
        - `tidx`: accepted and not used.

        Raises DSLTypeError for another layout or number of stages.
        """
        groups = producer_group, consumer_group
        made: PipelineTmaUmma = cls._make(
            barrier_storage, num_stages, groups, cta_layout_vmnk, defer_sync, mcast_mode_mn,
            tx_count=tx_count,
        )  # fmt: skip
        return made

    @takes_location
    def producer_acquire(self, state: PipelineState, try_token: Any = None) -> None:
        """Wait until the stage of `state` is empty; the leader's full barrier expects `tx_count`
        bytes. `try_token` spares the wait where it is True.
        """
        with trace("producer_acquire"):
            wait_unless(try_token, self.empty + state.index, state.phase, self.num_stages)
        self._expect(state)

    def _expect(self, state: PipelineState) -> None:
        with predicated(self._is_leader()), arch.elect_one():
            arch.mbarrier_arrive_and_expect_tx(self.full + state.index, self._facts.tx_count)

    @takes_location
    def producer_commit(self, state: PipelineState) -> None:
        """Do nothing: the bytes of the copies complete the phase of the stage of `state`."""

    @takes_location
    def consumer_release(self, state: PipelineState) -> None:
        """Have the empty barriers of all blocks that fill the stage of `state` arrive when the
        MMAs so far have read it.
        """
        self._commit(self.empty + state.index)


class PipelineOfMmaAndThreads(PipelineOfMma):
    """The base of pipelines with tcgen05.mma at one end and threads at the other."""

    @classmethod
    @takes_location_untyped
    def create(  # type: ignore[override]
        cls,
        *,
        barrier_storage: Any = None,
        num_stages: int,
        producer_group: CooperativeGroup,
        consumer_group: CooperativeGroup,
        cta_layout_vmnk: Any = None,
        defer_sync: bool = False,
    ) -> Self:
        """Make a pipeline and initialise its barriers; every thread of the cluster calls it.

        - `barrier_storage`, `num_stages`, `defer_sync`: as for `PipelineAsync.create`.
        - `producer_group`, `consumer_group`: the size of the MMA's is the number of warps that
          multiply; that of the threads' the arrivals that fill or release a stage, of both blocks
          of a pair.
        - `cta_layout_vmnk`: the layout of the cluster's blocks; None for one block.

        Raises DSLTypeError for another layout or number of stages.
        """
        groups = producer_group, consumer_group
        made: Self = cls._make(barrier_storage, num_stages, groups, cta_layout_vmnk, defer_sync)
        return made


class PipelineUmmaAsync(PipelineOfMmaAndThreads):
    """A ring of accumulators that tcgen05.mma writes and threads read, as those of an epilogue.

    In a pair both blocks' threads read their own tensor memory: a commit tells both, and all of
    them arrive at the leader's empty barrier.
    """

    _filled_by = PipelineOp.TCGen05Mma

    @takes_location
    def producer_commit(self, state: PipelineState) -> None:
        """Have the full barriers of the block, or of the pair, of the stage of `state` arrive when
        the MMAs so far are complete.
        """
        self._commit(self.full + state.index)

    @takes_location
    def producer_tail(self, state: PipelineState) -> None:
        """Wait until the consumers have released every stage, from that of `state` on; the other
        block of a pair, at whose empty barriers nobody arrives, does not wait.
        """
        with predicated(self._is_leader()):
            super().producer_tail(state.clone())

    @takes_location
    def consumer_release(self, state: PipelineState) -> None:
        """Arrive at the leader's empty barrier: this consumer has read its accumulators in the
        stage of `state`.
        """
        self._arrive(self.empty + state.index, self._facts.consumer)


class PipelineAsyncUmma(PipelineOfMmaAndThreads):
    """A ring of stages that threads fill and tcgen05.mma reads, in shared or tensor memory.

    Stores to shared memory come before a `fence_view_async_shared`, those to tensor memory before a
    `fence_view_async_tmem_store`, and both before `producer_commit`. In a pair the threads of both
    blocks arrive at the leader's full barrier.
    """

    @takes_location
    def producer_commit(self, state: PipelineState) -> None:
        """Arrive at the leader's full barrier: this producer has written its part of the stage of
        `state`.
        """
        self._arrive(self.full + state.index, self._facts.producer)

    @takes_location
    def consumer_release(self, state: PipelineState) -> None:
        """Have the empty barriers of the block, or of the pair, arrive when the MMAs so far have
        read the stage of `state`.
        """
        self._commit(self.empty + state.index)


class PipelineTmaMultiConsumersAsync(PipelineTmaUmma):
    """A ring of stages that TMA fills, and that both tcgen05.mma and threads read."""

    @classmethod
    @takes_location_untyped
    def create(  # type: ignore[override]
        cls,
        *,
        barrier_storage: Any = None,
        num_stages: int,
        producer_group: CooperativeGroup,
        consumer_group_umma: CooperativeGroup,
        consumer_group_async: CooperativeGroup,
        tx_count: int,
        cta_layout_vmnk: Any = None,
        defer_sync: bool = False,
    ) -> PipelineTmaMultiConsumersAsync:
        """Make a pipeline and initialise its barriers; every thread of the block calls it.

        - `consumer_group_umma`, `consumer_group_async`: the MMA warps, and the arrivals of threads,
          that together release a stage.
        - `barrier_storage`, `num_stages`, `producer_group`, `tx_count`, `defer_sync`: as for
          `PipelineTmaUmma.create`.
        - `cta_layout_vmnk`: the layout of the cluster's blocks, of which there is one; or None.

        Raises DSLTypeError for a cluster of several blocks.
        """
        if cta_layout_vmnk is not None and int(algebra.size(cta_layout_vmnk)) > 1:
            raise DSLTypeError(
                "PipelineTmaMultiConsumersAsync is for blocks without a cluster",
                notes=((f"cta_layout_vmnk is {cta_layout_vmnk}", None),),
            )
        made: PipelineTmaMultiConsumersAsync = cls._make(
            barrier_storage, num_stages, (producer_group, consumer_group_async), None, defer_sync,
            consumers=consumer_group_umma.size + consumer_group_async.size, tx_count=tx_count,
        )  # fmt: skip
        return made

    @takes_location
    def consumer_release(
        self, state: PipelineState, op_type: PipelineOp = PipelineOp.TCGen05Mma
    ) -> None:
        """Release the stage of `state` for the MMAs so far, if `op_type` is
        `PipelineOp.TCGen05Mma`, or for this thread (`PipelineOp.AsyncThread`). Raises DSLTypeError
        for another kind of work.
        """
        if op_type is PipelineOp.TCGen05Mma:
            super().consumer_release(state)
        elif op_type is PipelineOp.AsyncThread:
            with self._facts.consumer.arriving():
                arch.mbarrier_arrive(self.empty + state.index)
        else:
            raise DSLTypeError(f"{op_type} is no consumer: TCGen05Mma and AsyncThread are")


def _bits_of_pair(rank: Any) -> Any:
    """Return the two blocks of the pair of block `rank`, as bits."""
    return Int16(3) << (rank & ~1).to(Int16)


def _sharing_blocks(layout: Any, rank: Any, pair: int, modes: tuple[int, int]) -> Any:
    """Return the blocks that load for this one, or for its pair, as bits: those in the same row if
    A is multicast along N, and in the same column if B is along M.
    """
    v, m, n, k = layout.get_flat_coord(rank)
    mask: Any = None
    for i in range(pair):
        at = (v ^ i if i else v, m, n, k)
        for mode, is_multicast in ((2, modes[0]), (1, modes[1])):
            # A mode that is not multicast leaves the block itself.
            part = algebra.make_layout_image_mask(layout, at, mode) if is_multicast else (
                1 << layout(at) if type(layout(at)) is int else Int16(1) << layout(at).to(Int16)
            )  # fmt: skip
            mask = part if mask is None else mask | part
    return Int16(mask) if type(mask) is int else mask.to(Int16)
