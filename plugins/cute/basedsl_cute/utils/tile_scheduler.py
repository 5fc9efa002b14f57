"""Static persistent scheduling: the tiles of C that a resident cluster computes, one after
another.

Clusters of tiles are numbered in a raster; cluster c of P resident ones takes c, c + P, c + 2P,
... With a swizzle of s, the raster goes through bands of s clusters of the slow direction, so that
tiles computed at the same time share rows of A and columns of B in the L2 cache.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

from basedsl import DSLTypeError, maximum, minimum, select
from basedsl_cute import algebra
from basedsl_cute.algebra.ignored_location import takes_location, takes_location_untyped
from basedsl_cute.tensors.fast_divmod import FastDivmodDivisor


class WorkTileInfo(NamedTuple):
    """A tile's coordinates and whether it exists: `tile_idx` is (M, N, L) in units of block tiles,
    and `is_valid_tile` a Boolean.
    """

    tile_idx: tuple[Any, Any, Any]
    is_valid_tile: Any


@dataclass(frozen=True)
class _Static:
    """The static facts of a raster."""

    __dsl_leaf__ = True

    cluster: tuple[int, int, int]
    swizzle: int
    along_m: bool
    apart: int


class PersistentTileSchedulerParams:
    """The number of clusters of tiles and their order; made by the host.

    - `num_ctas_mnl`: the block tiles along M, N and L (batches); may be dynamic.
    - `cluster_shape_mnl`: the blocks of a cluster, static.
    - `swizzle_size`: the width of the raster's bands in clusters, static, from 1.
    - `raster_along_m`: the fast direction is M, else N; static.
    - `apart`: clusters that follow each other in the raster are so many apart in the grid, static,
      from 1. A GPU deals clusters to its GPCs in turn: with 8, those that follow each other lie in
      one GPC of a Hopper GPU, whose reads of the same lines at the same time become one.

    Raises DSLTypeError for other arguments.

    >>> params = cute.utils.PersistentTileSchedulerParams((3, 2, 1))
    >>> params.num_clusters, [params.locate(i)[:2] for i in range(4)]
    (6, [(0, 0), (1, 0), (2, 0), (0, 1)])
    """

    def __init__(
        self,
        num_ctas_mnl: tuple[Any, Any, Any],
        cluster_shape_mnl: tuple[int, int, int] = (1, 1, 1),
        swizzle_size: int = 1,
        raster_along_m: bool = True,
        apart: int = 1,
    ) -> None:
        if type(swizzle_size) is not int or swizzle_size < 1:
            raise DSLTypeError(f"swizzle_size is a static integer from 1, not {swizzle_size!r}")
        if type(apart) is not int or apart < 1:
            raise DSLTypeError(f"apart is a static integer from 1, not {apart!r}")
        cluster = (*cluster_shape_mnl, *(1,) * (len(cluster_shape_mnl) == 2))
        if len(cluster) != 3 or not all(type(x) is int and x > 0 for x in cluster):
            raise DSLTypeError(f"a cluster has a static shape from 1, not {cluster_shape_mnl}")
        if not isinstance(num_ctas_mnl, tuple | list) or len(num_ctas_mnl) != 3:
            raise DSLTypeError(
                f"num_ctas_mnl is the tiles along M, N and L (batches), not {num_ctas_mnl}",
                hint="(*cute.ceil_div((m, n), tile_mn), batches)",
            )
        m, n, batches = num_ctas_mnl
        self.clusters_m = algebra.ceil_div(m, cluster[0])
        self.clusters_n = algebra.ceil_div(n, cluster[1])
        self.batches = batches
        self._static = _Static(
            (cluster[0], cluster[1], cluster[2]), swizzle_size, bool(raster_along_m), apart
        )
        self._divisors: Any = None

    @takes_location
    def prepared(self) -> PersistentTileSchedulerParams:
        """Return the same parameters with the divisors of `locate` prepared on the host.

        A kernel's first copy waits for these divisions otherwise.
        """
        facts = self._static
        made = PersistentTileSchedulerParams(
            (1, 1, 1), facts.cluster, facts.swizzle, facts.along_m, facts.apart
        )
        made.clusters_m, made.clusters_n = self.clusters_m, self.clusters_n
        made.batches = self.batches
        fast, slow = self._extents()
        made._divisors = tuple(
            FastDivmodDivisor(maximum(x, 1))
            for x in (fast * slow, fast * facts.swizzle, slow % facts.swizzle)
        )
        return made

    def _extents(self) -> tuple[Any, Any]:
        """Return the clusters in the fast and in the slow direction."""
        both = self.clusters_m, self.clusters_n
        return both if self._static.along_m else both[::-1]

    @property
    def cluster_shape_mnl(self) -> tuple[int, int, int]:
        """The blocks of a cluster along M, N and L."""
        return self._static.cluster

    @takes_location
    def rastered(self, along_m: bool) -> PersistentTileSchedulerParams:
        """Return parameters of the same tiles with M (`along_m`) or N as the fast direction."""
        m, n, depth = self.cluster_shape_mnl
        tiles = (self.clusters_m * m, self.clusters_n * n, self.batches)
        facts = self._static
        return PersistentTileSchedulerParams(
            tiles, (m, n, depth), facts.swizzle, along_m, facts.apart
        )

    @property
    def is_natural(self) -> bool:
        """True if tiles are in the order of the grid's blocks: M is fast, without a swizzle."""
        facts = self._static
        return facts.along_m and facts.swizzle == 1 and facts.apart == 1

    @property
    def num_clusters(self) -> Any:
        """The number of clusters of tiles."""
        return self.clusters_m * self.clusters_n * self.batches

    @takes_location
    def locate(self, number: Any) -> tuple[Any, Any, Any]:
        """Return (M, N, L) of the cluster of tiles with this number, in units of clusters."""
        facts = self._static
        if facts.apart > 1:
            # Each of `apart` columns of the grid's clusters has the next part of the raster.
            row, column = divmod(number, facts.apart)
            rows, more = divmod(self.num_clusters, facts.apart)
            number = column * rows + minimum(column, more) + row
        fast, slow = self._extents()
        each, band_size, last = self._divisors or (fast * slow, fast * facts.swizzle, None)
        if type(self.batches) is int and self.batches == 1:  # a division less on everyone's way
            batch, rest = 0, number
        else:
            batch, rest = divmod(number, each)
        if facts.swizzle == 1:
            across, along = divmod(rest, band_size)
        else:
            size = facts.swizzle
            band, within = divmod(rest, band_size)
            if last is None:
                along, place = divmod(within, minimum(size, slow - band * size))
            else:
                is_whole = slow - band * size >= size
                along = select(is_whole, within // size, within // last)
                place = select(is_whole, within % size, within % last)
            across = band * size + place
        return (along, across, batch) if facts.along_m else (across, along, batch)


class StaticPersistentTileScheduler:
    """The sequence of tiles that one block computes: state that a loop carries.

    `create` makes it: `current` is the number of a cluster of tiles of `params`, `step` the number
    of clusters in the grid, and `place` the block's coordinates in its cluster.

    scheduler = StaticPersistentTileScheduler.create(params, block_idx(), grid_dim())
    work = scheduler.initial_work_tile_info()
    while work.is_valid_tile:
        ...                                                # compute tile work.tile_idx
        scheduler.advance_to_next_work()
        work = scheduler.get_current_work()
    """

    __dsl_counters__ = ("_current", "num_tiles_executed")

    def __init__(self, params: Any, current: Any, step: Any, place: tuple[Any, Any]) -> None:
        self.params = params
        self._current = current
        self._step = step
        self._place = place
        self.num_tiles_executed: Any = 0

    @classmethod
    @takes_location_untyped
    def create(
        cls, params: PersistentTileSchedulerParams, block_idx: Any, grid_dim: Any
    ) -> StaticPersistentTileScheduler:
        """Make the scheduler of a block for the tiles of `params`, in a grid of `get_grid_shape`.

        `block_idx` and `grid_dim` are those of `cute.arch`.
        """
        return cls(params, block_idx[2], grid_dim[2], (block_idx[0], block_idx[1]))

    @staticmethod
    @takes_location_untyped
    def get_grid_shape(
        params: PersistentTileSchedulerParams, max_active_clusters: Any
    ) -> tuple[Any, Any, Any]:
        """Return the grid (cluster M, cluster N, clusters) for the tiles of `params`, of at most
        `max_active_clusters` clusters.

        Raises DSLTypeError for a number below 1.
        """
        if type(max_active_clusters) is int and max_active_clusters < 1:
            raise DSLTypeError(f"max_active_clusters is a number from 1, not {max_active_clusters}")
        m, n, _ = params.cluster_shape_mnl
        return (m, n, minimum(params.num_clusters, max_active_clusters))

    @takes_location
    def get_current_work(self) -> WorkTileInfo:
        """Return the current tile, and whether it exists."""
        m, n, _ = self.params.cluster_shape_mnl
        at = self.params.locate(self._current)
        tile = (at[0] * m + self._place[0], at[1] * n + self._place[1], at[2])
        return WorkTileInfo(tile, self._current < self.params.num_clusters)

    initial_work_tile_info = get_current_work

    @takes_location
    def advance_to_next_work(self, *, advance_count: int = 1) -> None:
        """Advance to the next tile of this cluster, or by `advance_count` tiles."""
        self._current = self._current + self._step * advance_count
        self.num_tiles_executed = self.num_tiles_executed + 1


class StaticPersistentRuntimeTileScheduler(StaticPersistentTileScheduler):
    """The sequence of tiles of a block where the number of tiles is known on the device only.

    `create` takes `params` made there, and which of M (0) and N (1) is the fast direction.
    """

    @classmethod
    @takes_location_untyped
    def create(
        cls,
        params: PersistentTileSchedulerParams,
        block_idx: Any,
        grid_dim: Any,
        inner_mode: int = 1,
    ) -> StaticPersistentRuntimeTileScheduler:
        """Make the scheduler of a block for the tiles of `params`, in a grid of (cluster M,
        cluster N, any number of clusters).

        `block_idx` and `grid_dim` are those of `cute.arch`. `inner_mode` is 0 for M or 1 for N
        (DSLTypeError otherwise).
        """
        if inner_mode not in (0, 1):
            raise DSLTypeError(f"inner_mode is 0 for M or 1 for N, not {inner_mode!r}")
        place = (block_idx[0], block_idx[1])
        return cls(params.rastered(inner_mode == 0), block_idx[2], grid_dim[2], place)
