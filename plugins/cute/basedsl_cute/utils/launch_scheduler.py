"""Dynamic persistent scheduling: a grid of all tiles, whose running clusters take over those of
clusters that have not started (cluster launch control, sm_100).
"""

from __future__ import annotations

from typing import Any

from basedsl import Boolean
from basedsl_cute import algebra, arch
from basedsl_cute.algebra.ignored_location import takes_location, takes_location_untyped
from basedsl_cute.tensors.pointer import Pointer
from basedsl_cute.utils.tile_scheduler import PersistentTileSchedulerParams, WorkTileInfo


class ClcDynamicPersistentTileSchedulerParams(PersistentTileSchedulerParams):
    """The number of clusters of tiles and their order; made by the host.

    Arguments are those of `PersistentTileSchedulerParams`. A cluster may have several blocks along
    L, as where they share K: L of `num_ctas_mnl` counts them all.
    """


class ClcDynamicPersistentTileScheduler:
    """The sequence of tiles that one block computes: its own, then those of cancelled launches.

    One warp of the cluster's first block requests; all that need the tile read the response behind
    the barrier of a `PipelineClcFetchAsync`.

        scheduler = ClcDynamicPersistentTileScheduler.create(
            params, block_idx(), grid_dim(), response_ptr)
        work = scheduler.initial_work_tile_info()
        while work.is_valid_tile:
            ...                                              # compute tile work.tile_idx
            if is_scheduler_warp:
                pipe.producer_acquire(producer_state)
                scheduler.advance_to_next_work(pipe.producer_get_barrier(producer_state))
                producer_state.advance()
            pipe.consumer_wait(state)
            work = scheduler.get_current_work()
            pipe.consumer_release(state)
            state.advance()

    `place` is the block's index in the grid, and `response` points to the response in shared
    memory.
    """

    def __init__(self, params: Any, place: Any, response: Any) -> None:
        self.params = params
        self._place = place
        self._response = response
        self.num_tiles_executed: Any = 0

    @classmethod
    @takes_location_untyped
    def create(
        cls,
        params: ClcDynamicPersistentTileSchedulerParams,
        block_idx: Any,
        grid_dim: Any,
        clc_response_ptr: Pointer,
    ) -> ClcDynamicPersistentTileScheduler:
        """Make the scheduler of a block for the tiles of `params`, in a grid of `get_grid_shape`.

        `block_idx` and `grid_dim` are those of `cute.arch`; `clc_response_ptr` points to 16 bytes
        of shared memory, aligned to 16.
        """
        return cls(params, tuple(block_idx), clc_response_ptr)

    @staticmethod
    @takes_location_untyped
    def get_grid_shape(params: PersistentTileSchedulerParams) -> tuple[Any, Any, Any]:
        """Return the grid: a block for each tile of `params`, in whole clusters."""
        m, n, depth = params.cluster_shape_mnl
        deep = algebra.ceil_div(params.batches, depth) * depth
        return (params.clusters_m * m, params.clusters_n * n, deep)

    def _tile(self, first: Any) -> tuple[Any, Any, Any]:
        """Return the tile of this block where the first block of its cluster has the index
        `first`.
        """
        m, n, depth = self.params.cluster_shape_mnl
        x, y, z = self._place
        at = first[0] // m, first[1] // n, first[2] // depth
        if not self.params.is_natural:
            each = self.params.clusters_m * self.params.clusters_n
            at = self.params.locate(at[0] + self.params.clusters_m * at[1] + each * at[2])
        return at[0] * m + x % m, at[1] * n + y % n, at[2] * depth + z % depth

    @takes_location
    def initial_work_tile_info(self) -> WorkTileInfo:
        """Return the tile that this block was launched for, which there always is."""
        return WorkTileInfo(self._tile(self._place), Boolean(True))

    @takes_location
    def advance_to_next_work(self, mbarrier_addr: Pointer) -> None:
        """Request the next tile for all blocks of the cluster, by one lane of the warp that calls;
        the response counts at `mbarrier_addr` of each.
        """
        m, n, depth = self.params.cluster_shape_mnl
        with arch.elect_one():
            arch.clusterlaunchcontrol_try_cancel(
                self._response, mbarrier_addr, multicast=m * n * depth > 1
            )
        self.num_tiles_executed = self.num_tiles_executed + 1

    @takes_location
    def get_current_work(self) -> WorkTileInfo:
        """Return the tile of the response, and whether it exists; behind its barrier."""
        there, first = arch.clusterlaunchcontrol_query_cancel(self._response)
        arch.fence_view_async_shared()  # the next response may overwrite this one
        return WorkTileInfo(self._tile(first), there)
