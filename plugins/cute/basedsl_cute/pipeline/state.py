"""Where a producer or consumer is in a circular buffer of stages: an ordinary value."""

from __future__ import annotations

import enum
from typing import Any

from basedsl.errors import DSLTypeError
from basedsl.numeric import Int32, is_dynamic, select
from basedsl_cute.algebra.ignored_location import takes_location


class PipelineUserType(enum.Enum):
    """Who a state belongs to."""

    Producer = "producer"
    Consumer = "consumer"
    ProducerConsumer = "producer and consumer"


class PipelineState:
    """`index` of the stage, parity `phase` of its barriers, and `count` of stages passed."""

    def __init__(self, stages: int, count: Any, index: Any, phase: Any) -> None:
        self.stages = stages
        self.count = count
        self.index = index
        self.phase = phase

    @takes_location
    def advance(self, steps: Any = 1) -> None:
        """Go on by so many stages; the phase flips where the buffer wraps."""
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
        """Count from zero again."""
        self.count = 0

    @takes_location
    def clone(self) -> PipelineState:
        """A state of its own that stands at the same place."""
        return PipelineState(self.stages, self.count, self.index, self.phase)


def check_stages(stages: Any) -> None:
    """DSLTypeError unless a pipeline can have so many stages."""
    if type(stages) is not int or stages < 1:
        raise DSLTypeError(f"a pipeline has a static number of stages from 1, not {stages!r}")


@takes_location
def make_pipeline_state(user_type: PipelineUserType, stages: int) -> PipelineState:
    """The first state. A producer begins in phase 1: fresh "empty" barriers do not block it."""
    check_stages(stages)
    if user_type is PipelineUserType.Producer:
        return PipelineState(stages, 0, 0, 1)
    if user_type is PipelineUserType.Consumer:
        return PipelineState(stages, 0, 0, 0)
    raise DSLTypeError(f"a state is a producer's or a consumer's, not {user_type!r}")
