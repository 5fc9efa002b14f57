"""Tile schedulers of grouped matrix products, whose shapes lie in device memory.

The clusters of tiles of all groups are numbered one after another. A warp finds the group of a
number by itself: each lane counts the clusters of one group, and a scan over the warp gives where
each group begins. Groups without rows or columns have none.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from basedsl import Boolean, DSLTypeError, Int32, maximum
from basedsl_cute import algebra, arch
from basedsl_cute.algebra.ignored_location import takes_location, takes_location_untyped
from basedsl_cute.dsl.cute import CUTE
from basedsl_cute.utils.tile_scheduler import (
    PersistentTileSchedulerParams,
    StaticPersistentTileScheduler,
)


class GroupSearchState(NamedTuple):
    """The point from which a search of a larger cluster number starts: a group, and the clusters
    before.
    """

    start: Any
    before: Any


def create_initial_search_state() -> GroupSearchState:
    """Return the state for the first search: at the first cluster of the first group."""
    return GroupSearchState(0, 0)


class GroupSearchResult(NamedTuple):
    """A block's tile: its group, its coordinates there in units of tiles, and that group's (M, N,
    K).
    """

    group_idx: Any
    cta_tile_idx_m: Any
    cta_tile_idx_n: Any
    problem_shape_m: Any
    problem_shape_n: Any
    problem_shape_k: Any
    cta_tile_count_k: Any


class GroupedWorkTileInfo(NamedTuple):
    """A tile of one of the groups, and whether there is one."""

    group_search_result: GroupSearchResult
    is_valid_tile: Any

    @property
    def tile_idx(self) -> tuple[Any, Any, Any]:
        """The tile's (M, N, group)."""
        found = self.group_search_result
        return found.cta_tile_idx_m, found.cta_tile_idx_n, found.group_idx


@CUTE.jit
def _find(
    number: Any, start: Any, before: Any, sizes: Any, count: Any, tile: Any
) -> tuple[Any, ...]:
    """Find cluster `number`: its group, its number there, that group's M, N, K, the group and the
    clusters before it for the next search, and whether it exists.

    Called by whole warps, with the same arguments in all lanes.
    """
    lane = arch.lane_idx()
    start, before = Int32(start), Int32(before)
    group, within, found = Int32(0), Int32(0), Boolean(False)
    m, n, k = Int32(0), Int32(0), Int32(0)
    while start < count and not found:
        mine = start + lane
        clusters = Int32(0)
        if mine < count:
            rows, columns = sizes[mine, 0], sizes[mine, 1]
            clusters = algebra.ceil_div(rows, tile[0]) * algebra.ceil_div(columns, tile[1])
        upto = clusters
        for i in range(5):
            below = arch.shuffle_sync_up(upto, offset=1 << i, mask_and_clamp=0)
            if lane >= 1 << i:
                upto = upto + below
        total = arch.shuffle_sync(upto, arch.WARP_SIZE - 1)
        if number < before + total:
            bits = arch.vote_ballot_sync(number < before + upto)
            first = arch.popc((bits & -bits) - 1)
            group = start + first
            within = number - before - arch.shuffle_sync(upto - clusters, first)
            m, n, k = sizes[group, 0], sizes[group, 1], sizes[group, 2]
            found = Boolean(True)
        else:
            before = before + total
            start = start + arch.WARP_SIZE
    return group, within, m, n, k, start, before, found


class GroupedGemmTileSchedulerHelper:
    """A search for the groups of cluster numbers that only grow, among `group_count` groups.

    - `group_count`: the number of groups; may be dynamic.
    - `tile_sched_params`: the order of tiles and the shape of the cluster.
    - `cluster_tile_shape_mnk`: the elements (M, N, K) that one cluster computes, static
      (DSLTypeError otherwise).
    - `search_state`: of `create_initial_search_state()`; the helper carries where its last search
      ended.
    """

    def __init__(
        self,
        group_count: Any,
        tile_sched_params: PersistentTileSchedulerParams,
        cluster_tile_shape_mnk: tuple[int, int, int],
        search_state: GroupSearchState,
    ) -> None:
        if any(type(n) is not int for n in cluster_tile_shape_mnk):
            raise DSLTypeError(f"a cluster's tile is static, not {cluster_tile_shape_mnk}")
        self.group_count = group_count
        self._params = tile_sched_params
        self._tile = tuple(cluster_tile_shape_mnk)
        self._state = search_state

    @takes_location
    def search(self, number: Any, problem_shape_mnkl: Any, place: tuple[Any, Any]) -> Any:
        """Return the tile of the block at `place` (m, n) of cluster `number`, a
        GroupedWorkTileInfo.

        `problem_shape_mnkl` is a tensor (groups, 4) of Int32: M, N, K of each group, and 1. Called
        by whole warps.
        """
        sizes, tile = problem_shape_mnkl, self._tile
        group, within, m, n, k, start, before, found = _find(
            number, self._state.start, self._state.before, sizes, self.group_count, tile
        )
        self._state = GroupSearchState(start, before)
        down = maximum(algebra.ceil_div(m, tile[0]), 1)  # 0 where there is no tile
        across_m, across_n, _ = self._params.cluster_shape_mnl
        result = GroupSearchResult(
            group,
            within % down * across_m + place[0],
            within // down * across_n + place[1],
            m,
            n,
            k,
            algebra.ceil_div(k, tile[2]),
        )
        return GroupedWorkTileInfo(result, found)

    @takes_location
    def delinearize_z(self, cta_tile_coord: Any, problem_shape_mnkl: Any) -> GroupSearchResult:
        """Return the tile of a block at (m, n) of cluster number `cta_tile_coord[2]`, which must
        exist. `problem_shape_mnkl` is that of `search`. Called by whole warps.
        """
        m, n, number = cta_tile_coord
        across_m, across_n, _ = self._params.cluster_shape_mnl
        place = (m % across_m, n % across_n)
        result: GroupSearchResult = self.search(
            number, problem_shape_mnkl, place
        ).group_search_result
        return result


class StaticPersistentGroupTileScheduler(StaticPersistentTileScheduler):
    """The sequence of tiles that one block computes of several matrix products: state that a loop
    carries.

    The grid is that of `StaticPersistentTileScheduler.get_grid_shape`. The number of tiles comes
    from the shapes in device memory, not from `params`. `create` makes it: `helper` finds the group
    of a cluster's number in `sizes`, the tensor `problem_shape_mnkl`.
    """

    def __init__(
        self, params: Any, current: Any, step: Any, place: Any, helper: Any, sizes: Any
    ) -> None:
        super().__init__(params, current, step, place)
        self._helper = helper
        self._sizes = sizes

    @classmethod
    @takes_location_untyped
    def create(  # type: ignore[override]
        cls,
        params: PersistentTileSchedulerParams,
        block_idx: Any,
        grid_dim: Any,
        cluster_tile_shape_mnk: tuple[int, int, int],
        initial_search_state: GroupSearchState,
        group_count: Any,
        problem_shape_mnkl: Any,
    ) -> StaticPersistentGroupTileScheduler:
        """Make the scheduler of a block.

        - `params`: the order of tiles and the shape of the cluster.
        - `block_idx`, `grid_dim`: those of `cute.arch`.
        - `cluster_tile_shape_mnk`: the elements (M, N, K) that one cluster computes, static.
        - `initial_search_state`: of `create_initial_search_state()`.
        - `group_count`: the number of groups; may be dynamic.
        - `problem_shape_mnkl`: a tensor (groups, 4) of Int32: M, N, K of each group, and 1.
        """
        helper = GroupedGemmTileSchedulerHelper(
            group_count, params, cluster_tile_shape_mnk, initial_search_state
        )
        place = (block_idx[0], block_idx[1])
        return cls(params, block_idx[2], grid_dim[2], place, helper, problem_shape_mnkl)

    @takes_location
    def get_current_work(self) -> GroupedWorkTileInfo:  # type: ignore[override]
        """Return the current tile, and whether it exists; called by whole warps."""
        work: GroupedWorkTileInfo = self._helper.search(self._current, self._sizes, self._place)
        return work

    initial_work_tile_info = get_current_work  # type: ignore[assignment]
