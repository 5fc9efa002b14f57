"""Buffers of shared memory that TMA stores read, guarded by the bulk groups of one thread."""

from __future__ import annotations

from basedsl_cute import arch
from basedsl_cute.algebra.ignored_location import takes_location, takes_location_untyped
from basedsl_cute.pipeline.groups import CooperativeGroup
from basedsl_cute.pipeline.state import check_stages


class PipelineTmaStore:
    """A ring of `num_stages` buffers that TMA stores read (sm_90), for the warp that issues the
    stores.

    It commits each buffer's stores, and acquires a buffer before it is written again. There are no
    barriers in memory: the bulk groups of the issuing thread count.
    """

    __dsl_leaf__ = True

    def __init__(self, num_stages: int) -> None:
        self.num_stages = num_stages

    @classmethod
    @takes_location_untyped
    def create(
        cls, *, num_stages: int, producer_group: CooperativeGroup | None = None
    ) -> PipelineTmaStore:
        """Make the ring for the threads of one warp; `num_stages` is a static number from 1.

        `producer_group` is accepted and not used. Raises DSLTypeError for another number of
        stages.
        """
        check_stages(num_stages)
        return cls(num_stages)

    @takes_location
    def producer_acquire(self) -> None:
        """Wait until the stores of the oldest buffer have read it."""
        arch.cp_async_bulk_wait_group(self.num_stages - 1, read=True)

    @takes_location
    def producer_commit(self) -> None:
        """Close the bulk group of the stores of one buffer."""
        arch.cp_async_bulk_commit_group()

    @takes_location
    def producer_tail(self) -> None:
        """Wait until all stores have read their buffers: the last call before the block ends."""
        arch.cp_async_bulk_wait_group(0, read=True)
