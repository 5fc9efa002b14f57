"""The position of a producer or consumer in a ring of stages, as an ordinary value."""

from __future__ import annotations

import enum
from typing import Any

from basedsl import DSLTypeError, Int32, Integer, is_dynamic, select
from basedsl_cute.algebra.ignored_location import takes_location


class PipelineUserType(enum.Enum):
    """The owner of a state: a producer or a consumer."""

    Producer = "producer"
    Consumer = "consumer"
    ProducerConsumer = "producer and consumer"


class PipelineState:
    """A position in a ring of `stages` stages, which loops carry as an ordinary value.

    `index` is the number of the current stage, `phase` the parity of its barriers' phase, and
    `count` the number of stages passed.
    """

    __dsl_counters__ = ("count", "index", "phase")

    def __init__(self, stages: int, count: Any, index: Any, phase: Any) -> None:
        self.stages = stages
        self.count = count
        self.index = index
        self.phase = phase

    # Pipeline states derived by programs use these names.
    _count = property(lambda self: self.count, lambda self, value: setattr(self, "count", value))
    _index = property(lambda self: self.index, lambda self, value: setattr(self, "index", value))
    _phase = property(lambda self: self.phase, lambda self, value: setattr(self, "phase", value))

    @takes_location
    def advance(self, steps: int | Integer = 1) -> None:
        """Advance by `steps` stages; `phase` flips each time the index wraps."""
        self.count = self.count + steps
        if type(steps) is not int or steps != 1:
            further = self.index + steps
            self.index = further % self.stages
            self.phase = (self.phase + further // self.stages) % 2
            return
        further = self.index + 1
        wraps = further == self.stages
        if is_dynamic(wraps):
            self.index = select(wraps, Int32(0), further)
            self.phase = self.phase ^ wraps.to(Int32)
        elif bool(wraps):
            self.index = 0
            self.phase = self.phase ^ 1
        else:
            self.index = further

    @takes_location
    def reset_count(self) -> None:
        """Set `count` to zero; the position stays."""
        self.count = 0

    @takes_location
    def clone(self) -> PipelineState:
        """Return another state at the same position."""
        return PipelineState(self.stages, self.count, self.index, self.phase)


def check_stages(stages: Any) -> None:
    """DSLTypeError unless `stages` is a static number from 1."""
    if type(stages) is not int or stages < 1:
        raise DSLTypeError(f"a pipeline has a static number of stages from 1, not {stages!r}")


@takes_location
def make_pipeline_state(user_type: PipelineUserType, stages: int) -> PipelineState:
    """Return the first state of a producer or a consumer in a ring of `stages` stages.

    `user_type` is `PipelineUserType.Producer` or `PipelineUserType.Consumer`. A producer
    begins in phase 1, so that fresh empty barriers do not block it. Raises DSLTypeError for another
    user type or number of stages.

    >>> state = cute.pipeline.make_pipeline_state(cute.pipeline.PipelineUserType.Producer, 2)
    >>> for _ in range(3):
    ...     print(state.index, state.phase)
    ...     state.advance()
    0 1
    1 1
    0 0
    """
    check_stages(stages)
    if user_type in (PipelineUserType.Producer, PipelineUserType.ProducerConsumer):
        return PipelineState(stages, 0, 0, 1)
    if user_type is PipelineUserType.Consumer:
        return PipelineState(stages, 0, 0, 0)
    raise DSLTypeError(
        f"a state is a producer's or a consumer's, not {user_type!r}",
        hint="cute.pipeline.PipelineUserType.Producer, or .Consumer",
    )
