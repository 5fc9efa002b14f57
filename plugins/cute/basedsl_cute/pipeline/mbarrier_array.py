"""The mbarriers of a pipeline's stages as an object, for pipelines that programs define."""

from __future__ import annotations

import enum
from typing import Any

from basedsl import Boolean, DSLTypeError, Integer
from basedsl_cute import arch
from basedsl_cute.algebra.ignored_location import takes_location
from basedsl_cute.pipeline.groups import Agent, CooperativeGroup


class PipelineOp(enum.Enum):
    """The kind of work that arrives at an mbarrier: threads, or an asynchronous unit for them."""

    AsyncThread = "threads"
    TmaLoad = "TMA loads"
    TmaStore = "TMA stores"
    AsyncLoad = "cp.async copies"
    TCGen05Mma = "tcgen05.mma"
    Composite = "several kinds"


class MbarrierArray:
    """An mbarrier for each of `num_stages` stages, in consecutive words of shared memory.

    - `barrier_storage`: a pointer to `num_stages` words of 8 bytes.
    - `agent`: the kind of work that arrives, and the group whose size is the number of arrivals.
    - `tx_count`: the bytes that TMA loads bring in each phase.

    Making one initialises the barriers by one thread of the block; a fence and a barrier of the
    block come before their use. A program may derive its own, with an `__init__` that sets
    `mbarrier_base`, `num_stages`, `arrive_count`, `op_type`, `cg` and `tx_count`.
    """

    @takes_location
    def _setup(self, storage: Any, stages: int, agent: Any, tx_count: int) -> None:
        self.barrier_storage = self.mbarrier_base = storage
        self.num_stages = stages
        self.op_type, self.cg = agent
        self.arrive_count: Any = self.cg.size
        self.tx_count = tx_count
        self.mbarrier_init()

    def __init__(
        self,
        barrier_storage: Any,
        num_stages: int,
        agent: tuple[PipelineOp, CooperativeGroup],
        tx_count: int = 0,
        *,
        loc: Any = None,
        ip: Any = None,
    ) -> None:
        self._setup(barrier_storage, num_stages, agent, tx_count)

    @takes_location
    def mbarrier_init(self) -> None:
        """Initialise each barrier for `arrive_count` arrivals, by one thread of warp 0."""
        from basedsl_cute.pipeline.mbarrier_pipelines import initialise_barriers

        initialise_barriers(
            [(self.get_barrier(i), self.arrive_count) for i in range(self.num_stages)]
        )

    @takes_location
    def get_barrier(self, index: int | Integer) -> Any:
        """Return a pointer to the barrier of stage `index`, from 0 on."""
        return self.mbarrier_base + index

    @takes_location
    def arrive(self, index: int | Integer, dst: Any = None) -> None:
        """Arrive at the barrier of stage `index`; for TMA loads one lane does, and expects
        `tx_count` bytes. `dst` is the block of the cluster whose barrier it is, by default this
        one. Raises DSLTypeError for work that arrives by an instruction of its own.
        """
        if self.op_type is PipelineOp.TmaLoad:
            with arch.elect_one():
                arch.mbarrier_arrive_and_expect_tx(self.get_barrier(index), self.tx_count)
        elif self.op_type is PipelineOp.AsyncLoad:
            arch.cp_async_mbarrier_arrive_noinc(self.get_barrier(index))
        elif self.op_type is PipelineOp.AsyncThread:
            arch.mbarrier_arrive(self.get_barrier(index), dst)
        else:
            raise DSLTypeError(f"{self.op_type} arrives by an instruction of its own")

    @takes_location
    def arrive_and_expect_tx(self, index: int | Integer, tx_count: int | Integer) -> None:
        """Have the barrier of stage `index` expect `tx_count` bytes, and arrive, by one lane."""
        with arch.elect_one():
            arch.mbarrier_arrive_and_expect_tx(self.get_barrier(index), tx_count)

    @takes_location
    def wait(self, index: int | Integer, phase: int | Integer) -> None:
        """Wait until the phase of parity `phase`, 0 or 1, of the barrier of stage `index` is
        complete.
        """
        arch.mbarrier_wait(self.get_barrier(index), phase)

    @takes_location
    def try_wait(self, index: int | Integer, phase: int | Integer) -> Boolean:
        """Return True if the phase of parity `phase` of the barrier of stage `index` is complete;
        may wait a moment for it.
        """
        return arch.mbarrier_try_wait(self.get_barrier(index), phase)


class StageBarriers(MbarrierArray):
    """The barriers of a pipeline that is there already: nothing is initialised."""

    def __init__(self, base: Any, stages: int, op_type: PipelineOp, tx_count: int = 0) -> None:
        self.mbarrier_base = base
        self.num_stages = stages
        self.op_type = op_type
        self.tx_count = tx_count


@takes_location
def agent_sync(group: Agent, is_relaxed: bool = False) -> None:
    """Wait until all threads of a block, or of a cluster, have come here.

    `group` is `Agent.ThreadBlock` or `Agent.ThreadBlockCluster`, else DSLTypeError. `is_relaxed`
    arrives at the cluster's barrier without ordering other memory.
    """
    if group is Agent.ThreadBlock:
        arch.sync_threads()
    elif group is Agent.ThreadBlockCluster:
        arch.cluster_arrive_relaxed() if is_relaxed else arch.cluster_arrive()
        arch.cluster_wait()
    else:
        raise DSLTypeError(f"agent_sync() takes a ThreadBlock or a ThreadBlockCluster, not {group}")
