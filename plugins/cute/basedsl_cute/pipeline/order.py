"""Groups of threads that take turns in a fixed order, such as two warpgroups that ping-pong."""

from __future__ import annotations

from typing import Any

from basedsl.errors import DSLTypeError
from basedsl.numeric import Int32, is_dynamic, select
from basedsl_cute import arch
from basedsl_cute.algebra.ignored_location import takes_location
from basedsl_cute.pipeline.groups import CooperativeGroup
from basedsl_cute.pipeline.mbarrier_pipelines import StaticFacts, initialise
from basedsl_cute.pipeline.state import PipelineState


class PipelineOrder:
    """`length` groups go through `depth` steps one after another: at each step group 0 goes first.

    `wait()` blocks until it is this group's turn at its current step; `arrive()` passes the turn to
    the next group and goes on to the next step. Each group calls both once per step.
    """

    def __init__(self, barriers: Any, facts: StaticFacts, group: Any, state: Any) -> None:
        self.barriers = barriers
        self.group = group
        self.state = state
        self._facts = facts

    @classmethod
    @takes_location
    def create(
        cls,
        *,
        barrier_storage: Any,
        depth: int,
        length: int,
        group_id: Any,
        producer_group: CooperativeGroup,
        defer_sync: bool = False,
    ) -> PipelineOrder:
        """For group `group_id` (may be dynamic) of `length`, of `producer_group.size` threads or
        warps each.

        `barrier_storage` has depth * length words. Unless `defer_sync`, all threads of the block
        wait until the barriers are initialised.
        """
        for what, number in (("depth", depth), ("length", length)):
            if type(number) is not int or number < 1:
                raise DSLTypeError(f"{what} is a static integer from 1, not {number!r}")
        initialise([(barrier_storage + i, producer_group.size) for i in range(depth * length)])
        if not defer_sync:
            arch.mbarrier_init_fence()
            arch.sync_threads()
        # Nobody passes the turn to group 0 at first: it starts where fresh barriers do not block.
        first = group_id == 0
        phase = select(first, Int32(1), Int32(0)) if is_dynamic(first) else int(first)
        state = PipelineState(depth, 0, 0, phase)
        facts = StaticFacts(length=length, producer=producer_group)
        return cls(barrier_storage, facts, group_id, state)

    def _barrier(self, group: Any) -> Any:
        return self.barriers + (self.state.index * self._facts.length + group)

    @takes_location
    def wait(self) -> None:
        """Wait for this group's turn."""
        arch.mbarrier_wait(self._barrier(self.group), self.state.phase)

    @takes_location
    def arrive(self) -> None:
        """Pass the turn on: each thread of the group calls this."""
        with self._facts.producer.arriving():
            arch.mbarrier_arrive(self._barrier((self.group + 1) % self._facts.length))
        self.state.advance()
