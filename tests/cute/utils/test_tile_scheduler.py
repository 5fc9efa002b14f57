"""The schedulers of `utils.tile_scheduler`: which tiles a cluster computes, and in which order."""

import itertools
import re

import numpy as np
import pytest

import basedsl_cute as cute
from basedsl.errors import DSLTypeError
from basedsl_cute.utils.tile_scheduler import (
    PersistentTileSchedulerParams,
    StaticPersistentRuntimeTileScheduler,
    StaticPersistentTileScheduler,
)


@pytest.mark.parametrize("cluster", [(1, 1, 1), (2, 1, 1), (1, 2, 1)])
@pytest.mark.parametrize("swizzle", [1, 2, 4])
@pytest.mark.parametrize("along_m", [True, False])
@pytest.mark.parametrize("is_prepared", [True, False])
@pytest.mark.parametrize("apart", [1, 8])
def test_every_tile_comes_once(cluster, swizzle, along_m, is_prepared, apart):
    tiles = (6, 10, 2)
    params = PersistentTileSchedulerParams(tiles, cluster, swizzle, along_m, apart)
    params = params.prepared() if is_prepared else params
    seen = []
    for z, y, x in itertools.product(range(3), range(cluster[1]), range(cluster[0])):
        scheduler = StaticPersistentTileScheduler.create(params, (x, y, z), (*cluster[:2], 3))
        work = scheduler.initial_work_tile_info()
        while work.is_valid_tile:
            seen.append(tuple(map(int, work.tile_idx)))
            scheduler.advance_to_next_work()
            work = scheduler.get_current_work()
    assert sorted(seen) == sorted(itertools.product(*map(range, tiles)))


@cute.kernel
def locate_all(params: PersistentTileSchedulerParams, where: cute.Tensor):
    for i in cute.range(where.shape[0]):
        where[i, 0], where[i, 1], where[i, 2] = params.locate(i)


@cute.jit
def located(
    where: cute.Tensor, m: cute.Int32, n: cute.Int32, batches: cute.Int32, swizzle: cute.Constexpr,
    along_m: cute.Constexpr, is_prepared: cute.Constexpr, apart: cute.Constexpr,
):  # fmt: skip
    params = PersistentTileSchedulerParams((m, n, batches), (2, 1, 1), swizzle, along_m, apart)
    if cute.const_expr(is_prepared):
        params = params.prepared()
    locate_all(params, where).launch(grid=1, block=1)


@pytest.mark.parametrize("swizzle", [1, 4])
@pytest.mark.parametrize("along_m", [True, False])
@pytest.mark.parametrize("tiles", [(6, 10, 1), (14, 3, 2), (3, 8, 3), (1, 1, 1)])
@pytest.mark.parametrize("apart", [1, 8])
def test_prepared_divisions_are_those_of_the_device(target, swizzle, along_m, tiles, apart):
    count = -(-tiles[0] // 2) * tiles[1] * tiles[2] + 5  # numbers behind the end too
    found = [np.full((count, 3), -1, np.int32) for _ in range(2)]
    for is_prepared, where in enumerate(found):
        located(where, *tiles, swizzle, along_m, bool(is_prepared), apart)
    cute.synchronize()
    inside = count - 5
    np.testing.assert_array_equal(found[0][:inside], found[1][:inside])
    assert len({tuple(row) for row in found[1][:inside].tolist()}) == inside


@pytest.mark.parametrize("inner", [0, 1])
def test_the_fast_direction_of_tiles_known_on_the_device(inner):
    params = PersistentTileSchedulerParams((3, 2, 1), (1, 1, 1))
    scheduler = StaticPersistentRuntimeTileScheduler.create(params, (0, 0, 0), (1, 1, 1), inner)
    seen = []
    while (work := scheduler.get_current_work()).is_valid_tile:
        seen.append(tuple(map(int, work.tile_idx[:2])))
        scheduler.advance_to_next_work()
    fast_n = list(itertools.product(range(3), range(2)))
    assert seen == (fast_n if inner == 1 else sorted(fast_n, key=lambda mn: mn[::-1]))
    assert scheduler.num_tiles_executed == 6


def test_bands_keep_tiles_close():
    """The first 8 tiles of bands of 4 are 2 x 4 tiles of C, not 8 x 1."""
    params = PersistentTileSchedulerParams((8, 8, 1), (1, 1, 1), 4, True)
    first = [params.locate(i) for i in range(8)]
    assert {int(m) for m, _, _ in first} == {0, 1}
    assert {int(n) for _, n, _ in first} == {0, 1, 2, 3}


def test_neighbours_of_a_raster_are_apart_in_the_grid():
    """Every 8th of 20 clusters has the next tile; the first four of these columns have one more."""
    plain = PersistentTileSchedulerParams((20, 1, 1))
    apart = PersistentTileSchedulerParams((20, 1, 1), apart=8)
    first = [int(apart.locate(i)[0]) for i in range(20)]
    starts = [0, 3, 6, 9, 12, 14, 16, 18]
    assert first == [starts[i % 8] + i // 8 for i in range(20)]
    assert plain.is_natural and not apart.is_natural
    with pytest.raises(DSLTypeError, match="apart is a static integer from 1, not 0"):
        PersistentTileSchedulerParams((20, 1, 1), apart=0)


def test_tiles_left_over_in_a_cluster_are_rounded_up():
    params = PersistentTileSchedulerParams((3, 5, 1), (2, 1, 1))
    assert int(params.num_clusters) == 10
    grid = StaticPersistentTileScheduler.get_grid_shape(params, 4)
    assert [int(n) for n in grid] == [2, 1, 4]


@pytest.mark.parametrize(
    ("text", "wrong"),
    [
        (
            "num_ctas_mnl is the tiles along M, N and L",
            lambda: PersistentTileSchedulerParams((2, 3)),
        ),
        ("shape from 1, not (0, 1, 1)", lambda: PersistentTileSchedulerParams((2, 3, 1), (0, 1))),
        (
            "a number from 1, not 0",
            lambda: StaticPersistentTileScheduler.get_grid_shape(
                PersistentTileSchedulerParams((2, 3, 1)), 0
            ),
        ),
        ("takes a tensor, not 3", lambda: cute.utils.LayoutEnum.from_tensor(3)),
    ],
)
def test_what_a_schedule_and_a_layout_refuse(text, wrong):
    with pytest.raises(DSLTypeError, match=re.escape(text)):
        wrong()
