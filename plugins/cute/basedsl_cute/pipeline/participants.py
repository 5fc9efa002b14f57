"""Producers and consumers of a pipeline as objects that own their state.

    producer, consumer = pipe.make_participants()
    handle = producer.acquire_and_advance()
    cute.copy(atom, src, dst[None, handle.index], tma_bar_ptr=handle.barrier)
    handle.commit()

    handle = consumer.wait_and_advance()
    ...                                      # read stage handle.index
    handle.release()

A handle is an immutable value: it names one stage and may be kept until that stage is passed on.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from basedsl import Boolean
from basedsl_cute.algebra.ignored_location import takes_location
from basedsl_cute.pipeline.state import (
    PipelineState,
    PipelineUserType,
    make_pipeline_state,
)


class ProducerHandle(NamedTuple):
    """A stage of `pipeline` that a producer has acquired: its `index`, parity `phase`, and `count`
    of stages before it.
    """

    pipeline: Any
    index: Any
    phase: Any
    count: Any

    @property
    def barrier(self) -> Any:
        """The full barrier of the stage, at which TMA copies complete (`tma_bar_ptr=`)."""
        return self.pipeline.producer_get_barrier(self)

    @takes_location
    def commit(self) -> None:
        """Arrive at the full barrier: this producer has written its part of the stage."""
        self.pipeline.producer_commit(self)


class ConsumerHandle(NamedTuple):
    """A stage of `pipeline` that a consumer has waited for: its `index`, parity `phase`, and
    `count` of stages before.
    """

    pipeline: Any
    index: Any
    phase: Any
    count: Any

    @takes_location
    def release(self) -> None:
        """Arrive at the empty barrier: this consumer has read its part of the stage."""
        self.pipeline.consumer_release(self)


class _Participant:
    """A pipeline and a `PipelineState`: the position of one participant in the ring of stages."""

    user_type: PipelineUserType

    def __init__(self, pipeline: Any, state: PipelineState | None = None) -> None:
        self.pipeline = pipeline
        self.state = state or make_pipeline_state(self.user_type, pipeline.num_stages)

    @takes_location
    def advance(self) -> None:
        """Advance to the next stage."""
        self.state.advance()

    @takes_location
    def reset(self) -> None:
        """Set the count of stages passed to zero, as at the start of a tile; the position in the
        ring stays.
        """
        self.state.reset_count()

    @takes_location
    def clone(self) -> Any:
        """Return a participant of the same pipeline with a state of its own at the same
        position.
        """
        return type(self)(self.pipeline, self.state.clone())


class PipelineProducer(_Participant):
    """The participant that fills stages; `pipeline.make_participants()` makes it. `state` is the
    stage that it fills next.
    """

    user_type = PipelineUserType.Producer
    ImmutableResourceHandle = ProducerHandle

    def _handle(self) -> ProducerHandle:
        state = self.state
        return ProducerHandle(self.pipeline, state.index, state.phase, state.count)

    @takes_location
    def try_acquire(self) -> Any:
        """Return True if the current stage is empty by now: a token for `acquire`."""
        return self.pipeline.producer_try_acquire(self.state)

    @takes_location
    def acquire(self, try_acquire_token: bool | Boolean | None = None) -> ProducerHandle:
        """Wait until the current stage is empty, and return its handle.

        `try_acquire_token`, the result of `try_acquire`, spares the wait where it is True.
        """
        self.pipeline.producer_acquire(self.state, try_acquire_token)
        return self._handle()

    @takes_location
    def acquire_and_advance(
        self, try_acquire_token: bool | Boolean | None = None
    ) -> ProducerHandle:
        """Wait until the current stage is empty, return its handle, and advance to the next stage.

        `try_acquire_token`, from `try_acquire`, spares the wait where it is True.
        """
        handle = self.acquire(try_acquire_token)
        self.advance()
        return handle

    @takes_location
    def commit(self, handle: ProducerHandle | None = None) -> None:
        """Arrive at the full barrier of the stage of `handle`, by default the current one."""
        self.pipeline.producer_commit(self.state if handle is None else handle)

    @takes_location
    def tail(self) -> None:
        """Wait until the consumers have released every stage: the last call of a producer."""
        self.pipeline.producer_tail(self.state)


class PipelineConsumer(_Participant):
    """The participant that reads stages; `pipeline.make_participants()` makes it. `state` is the
    stage that it reads next.
    """

    user_type = PipelineUserType.Consumer
    ImmutableResourceHandle = ConsumerHandle

    def _handle(self) -> ConsumerHandle:
        state = self.state
        return ConsumerHandle(self.pipeline, state.index, state.phase, state.count)

    @takes_location
    def try_wait(self) -> Any:
        """Return True if the current stage is full by now: a token for `wait`."""
        return self.pipeline.consumer_try_wait(self.state)

    @takes_location
    def wait(self, try_wait_token: bool | Boolean | None = None) -> ConsumerHandle:
        """Wait until the current stage is full, and return its handle.

        `try_wait_token`, the result of `try_wait`, spares the wait where it is True.
        """
        self.pipeline.consumer_wait(self.state, try_wait_token)
        return self._handle()

    @takes_location
    def wait_and_advance(self, try_wait_token: bool | Boolean | None = None) -> ConsumerHandle:
        """Wait until the current stage is full, return its handle, and advance to the next stage.

        `try_wait_token`, from `try_wait`, spares the wait where it is True.
        """
        handle = self.wait(try_wait_token)
        self.advance()
        return handle

    @takes_location
    def release(self, handle: ConsumerHandle | None = None) -> None:
        """Arrive at the empty barrier of the stage of `handle`, by default the current one."""
        self.pipeline.consumer_release(self.state if handle is None else handle)
