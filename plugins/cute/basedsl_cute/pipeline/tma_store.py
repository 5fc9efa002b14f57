"""Buffers of shared memory that TMA stores read: guarded by this thread's bulk groups."""

from __future__ import annotations

from basedsl_cute import arch
from basedsl_cute.algebra.ignored_location import takes_location
from basedsl_cute.pipeline.groups import CooperativeGroup
from basedsl_cute.pipeline.state import check_stages


class PipelineTmaStore:
    """`num_stages` buffers; the warp that stores them commits, and acquires before reuse."""

    __dsl_leaf__ = True

    def __init__(self, num_stages: int) -> None:
        self.num_stages = num_stages

    @classmethod
    @takes_location
    def create(
        cls, *, num_stages: int, producer_group: CooperativeGroup | None = None
    ) -> PipelineTmaStore:
        """For the threads of one warp; nothing is initialised."""
        check_stages(num_stages)
        return cls(num_stages)

    @takes_location
    def producer_acquire(self) -> None:
        """Wait until the oldest buffer has been read."""
        arch.cp_async_bulk_wait_group(self.num_stages - 1, read=True)

    @takes_location
    def producer_commit(self) -> None:
        """The stores of one buffer have been issued."""
        arch.cp_async_bulk_commit_group()

    @takes_location
    def producer_tail(self) -> None:
        """Wait until all buffers have been read: before the block ends."""
        arch.cp_async_bulk_wait_group(0, read=True)
