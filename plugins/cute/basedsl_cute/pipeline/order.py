"""Groups of threads that take turns in a fixed order, such as two warpgroups that ping-pong."""

from __future__ import annotations

from typing import Any

from basedsl import DSLTypeError, Int32, is_dynamic, select
from basedsl_cute import arch
from basedsl_cute.algebra.ignored_location import takes_location, takes_location_untyped
from basedsl_cute.pipeline.groups import CooperativeGroup
from basedsl_cute.pipeline.mbarrier_pipelines import StaticFacts, initialise_barriers
from basedsl_cute.pipeline.state import PipelineState


class PipelineOrder:
    """An order in which `length` groups of threads execute each of `depth` steps, group 0 first.

    `create` makes it: `barriers` points to the mbarriers in shared memory, `facts` are its static
    facts, `group` is the number of this thread's group, and `state` its position in the steps.

    `wait()` blocks until it is this group's turn at its current step; `arrive()` passes the turn
    to the next group and advances to the next step. Each group calls both once per step.
    """

    def __init__(self, barriers: Any, facts: StaticFacts, group: Any, state: Any) -> None:
        self.barriers = barriers
        self.group = group
        self.state = state
        self._facts = facts

    @classmethod
    @takes_location_untyped
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
        """Make the order for group `group_id` of `length`, and initialise its barriers.

        - `barrier_storage`: a pointer to depth * length words of 8 bytes of shared memory.
        - `depth`, `length`: static numbers of steps and of groups, from 1 (DSLTypeError
          otherwise).
        - `group_id`: the number of this thread's group; may be dynamic.
        - `producer_group`: the threads or warps of one group.
        - `defer_sync`: leave the barrier of the block behind it to `pipeline_init_arrive` and
          `pipeline_init_wait`.
        """
        for what, number in (("depth", depth), ("length", length)):
            if type(number) is not int or number < 1:
                raise DSLTypeError(f"{what} is a static integer from 1, not {number!r}")
        initialise_barriers(
            [(barrier_storage + i, producer_group.size) for i in range(depth * length)]
        )
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
        """Wait for this group's turn at its current step."""
        arch.mbarrier_wait(self._barrier(self.group), self.state.phase)

    @takes_location
    def arrive(self) -> None:
        """Pass the turn to the next group and advance to the next step; each thread of the group
        calls it.
        """
        with self._facts.producer.arriving():
            arch.mbarrier_arrive(self._barrier((self.group + 1) % self._facts.length))
        self.state.advance()
