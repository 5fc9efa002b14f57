"""The pipeline of requests to take over the work of clusters that have not started (sm_100)."""

from __future__ import annotations

from typing import Any

from basedsl import DSLTypeError
from basedsl_cute import algebra, arch
from basedsl_cute.algebra.ignored_location import takes_location, takes_location_untyped
from basedsl_cute.arch.events import trace
from basedsl_cute.arch.launch_control import RESPONSE_BYTES
from basedsl_cute.atoms.copy_instruction import predicated
from basedsl_cute.pipeline.groups import CooperativeGroup
from basedsl_cute.pipeline.mbarrier_pipelines import (
    PipelineAsync,
    StaticFacts,
    initialise_stages,
    wait_unless,
)
from basedsl_cute.pipeline.state import PipelineState


class PipelineClcFetchAsync(PipelineAsync):
    """A ring of responses of cluster launch control, each the number of the next tile: one warp of
    the cluster's first block requests them, all roles of all blocks read them.

    Each block gets each response, and has full barriers of its own; every consumer thread arrives
    at the empty barrier of the first block.
    """

    @classmethod
    @takes_location_untyped
    def create(  # type: ignore[override]
        cls,
        *,
        barrier_storage: Any = None,
        num_stages: int,
        producer_group: CooperativeGroup,
        consumer_group: CooperativeGroup,
        tx_count: int = RESPONSE_BYTES,
        cta_layout_vmnk: Any = None,
        defer_sync: bool = False,
    ) -> PipelineClcFetchAsync:
        """Make a pipeline and initialise its barriers; every thread of the cluster calls it.

        - `barrier_storage`, `num_stages`, `defer_sync`: as for `PipelineAsync.create`.
        - `producer_group`: of size 1, the warp that requests.
        - `consumer_group`: its size is the number of threads that release a stage, in all blocks.
        - `tx_count`: the bytes of a response, 16 (DSLTypeError for others).
        - `cta_layout_vmnk`: the layout of the cluster's blocks; None for one block.
        """
        if tx_count != RESPONSE_BYTES:
            raise DSLTypeError(f"a response has {RESPONSE_BYTES} bytes, not {tx_count}")
        arrivals = producer_group.size, consumer_group.size
        full, empty = initialise_stages(barrier_storage, num_stages, *arrivals)
        blocks = 1 if cta_layout_vmnk is None else int(algebra.size(cta_layout_vmnk))
        if not defer_sync:
            arch.mbarrier_init_fence()
            if blocks > 1:
                arch.cluster_arrive_relaxed()
                arch.cluster_wait()
            else:
                arch.sync_threads()
        facts = StaticFacts(
            num_stages=num_stages, producer=producer_group, consumer=consumer_group,
            tx_count=tx_count, length=blocks,
        )  # fmt: skip
        return cls(full, empty, facts)

    @takes_location
    def producer_acquire(self, state: PipelineState, try_token: Any = None) -> None:
        """Wait until the stage of `state` is empty, and have the full barrier of each block of the
        cluster expect a response; called by the whole warp. `try_token` spares the wait where it is
        True.
        """
        with trace("producer_acquire"):
            wait_unless(try_token, self.empty + state.index, state.phase, self.num_stages)
        barrier, blocks = self.full + state.index, self._facts.length
        if blocks == 1:
            with arch.elect_one():
                arch.mbarrier_arrive_and_expect_tx(barrier, RESPONSE_BYTES)
            return
        lane = arch.lane_idx()
        with predicated(lane < blocks):
            arch.mbarrier_arrive_and_expect_tx(barrier, RESPONSE_BYTES, lane)

    @takes_location
    def producer_commit(self, state: PipelineState) -> None:
        """Do nothing: the response completes the phase of the stage of `state`."""

    @takes_location
    def consumer_release(self, state: PipelineState) -> None:
        """Arrive at the empty barrier of the cluster's first block: this thread has read the
        response in the stage of `state`.
        """
        barrier = self.empty + state.index
        with self._facts.consumer.arriving():
            if self._facts.length == 1:
                arch.mbarrier_arrive(barrier)
            else:
                arch.mbarrier_arrive(barrier, 0)
