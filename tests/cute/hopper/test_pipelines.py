"""Pipelines and their states, named barriers, clusters, the persistent schedule."""

import itertools

import numpy as np
import pytest

import basedsl_cute as cute
from basedsl.errors import DSLTypeError
from basedsl_cute import arch, pipeline
from basedsl_cute.sim import DeadlockError
from basedsl_cute.utils.tile_scheduler import (
    PersistentTileSchedulerParams,
    StaticPersistentTileScheduler,
)

PRODUCER, CONSUMER = pipeline.PipelineUserType.Producer, pipeline.PipelineUserType.Consumer


def test_states_in_plain_python():
    state = pipeline.make_pipeline_state(PRODUCER, 3)
    seen = []
    for _ in range(7):
        seen.append((state.index, state.phase, state.count))
        state.advance()
    assert seen == [(i % 3, 1 - i // 3 % 2, i) for i in range(7)]
    other = state.clone()
    other.advance()
    assert (state.count, other.count) == (7, 8)
    with pytest.raises(DSLTypeError, match="static number of stages"):
        pipeline.make_pipeline_state(CONSUMER, 0)


@cute.kernel
def relay(a: cute.Tensor, b: cute.Tensor, stages: cute.Constexpr, releases: cute.Constexpr):
    """Warp 0 hands tiles of 32 numbers to warp 1, which writes their doubles."""
    smem = cute.utils.SmemAllocator()
    barriers = smem.allocate_array(cute.Int64, 2 * stages)
    ring = smem.allocate_tensor(cute.Float32, (32, stages))
    group = pipeline.CooperativeGroup(pipeline.Agent.Thread, 32)
    pipe = pipeline.PipelineAsync.create(
        barrier_storage=barriers, num_stages=stages, producer_group=group, consumer_group=group
    )
    lane = arch.lane_idx()
    tiles = cute.size(a) // 32
    if arch.warp_idx() == 0:
        state = pipeline.make_pipeline_state(PRODUCER, stages)
        for i in range(tiles):
            pipe.producer_acquire(state)
            ring[lane, state.index] = a[i * 32 + lane]
            pipe.producer_commit(state)
            state.advance()
        if cute.const_expr(releases):
            pipe.producer_tail(state)
    else:
        state = pipeline.make_pipeline_state(CONSUMER, stages)
        for i in range(tiles):
            pipe.consumer_wait(state, pipe.consumer_try_wait(state))
            b[i * 32 + lane] = 2 * ring[lane, state.index]
            if cute.const_expr(releases):
                pipe.consumer_release(state)
            state.advance()


@cute.jit
def relay_host(a: cute.Tensor, b: cute.Tensor, stages: cute.Constexpr, releases: cute.Constexpr):
    relay(a, b, stages, releases).launch(grid=1, block=64)


@pytest.mark.parametrize("stages", [1, 2, 3])
def test_threads_pass_stages(hopper, stages):
    a = np.arange(32 * 7, dtype=np.float32)
    b = np.zeros_like(a)
    relay_host(a, b, stages, True)
    np.testing.assert_array_equal(b, 2 * a)


def test_a_consumer_that_does_not_release(sim):
    a = np.zeros(32 * 7, np.float32)
    with pytest.raises(DeadlockError, match="no thread of the block can go on"):
        relay_host(a, a.copy(), 2, False)


@cute.kernel
def take_turns(out: cute.Tensor):
    scratch = cute.utils.SmemAllocator().allocate_tensor(cute.Int32, 32)
    barrier = pipeline.NamedBarrier(2, 64)
    lane = arch.lane_idx()
    warp = arch.warp_idx()
    if warp == 0:
        scratch[lane] = lane * 3
        barrier.arrive()
    if warp == 1:
        barrier.arrive_and_wait()
        out[lane] = scratch[lane]


def test_named_barriers_of_some_warps(hopper):
    @cute.jit
    def host(out: cute.Tensor):
        take_turns(out).launch(grid=1, block=96)

    out = np.zeros(32, np.int32)
    host(out)
    np.testing.assert_array_equal(out, 3 * np.arange(32))


@cute.kernel
def where_am_i(out: cute.Tensor):
    x, y, _ = arch.block_idx()
    cx, cy, _ = arch.block_in_cluster_idx()
    barrier = cute.utils.SmemAllocator().allocate_array(cute.Int64, 1)
    if arch.thread_idx()[0] == 0:
        arch.mbarrier_init(barrier, arch.cluster_size())
    arch.mbarrier_init_fence()
    arch.cluster_arrive_relaxed()
    arch.cluster_wait()
    if arch.lane_idx() < arch.cluster_size():  # every block tells every block
        arch.mbarrier_arrive(barrier, arch.lane_idx())
    arch.mbarrier_wait(barrier, 0)
    if arch.thread_idx()[0] == 0:
        i = x + y * arch.grid_dim()[0]
        out[i, 0], out[i, 1] = arch.block_idx_in_cluster(), cx + 10 * cy
        out[i, 2] = arch.cluster_idx()[0] + 10 * arch.cluster_idx()[1]
        out[i, 3] = arch.cluster_dim()[0] + 10 * arch.cluster_dim()[1]
        out[i, 4] = arch.block_in_cluster_dim()[0] + 10 * arch.block_in_cluster_dim()[1]


def test_blocks_of_a_cluster_know_their_place_and_signal_each_other(hopper):
    @cute.jit
    def host(out: cute.Tensor):
        where_am_i(out).launch(grid=(4, 6, 1), block=32, cluster=(2, 3, 1))

    out = np.full((24, 5), -1, np.int32)
    host(out)
    for i, (y, x) in enumerate(itertools.product(range(6), range(4))):
        rank, place = x % 2 + 2 * (y % 3), x % 2 + 10 * (y % 3)
        assert out[i].tolist() == [rank, place, x // 2 + 10 * (y // 3), 22, 32]


@pytest.mark.parametrize("cluster", [(1, 1, 1), (2, 1, 1), (1, 2, 1)])
@pytest.mark.parametrize("swizzle", [1, 2, 4])
@pytest.mark.parametrize("along_m", [True, False])
def test_every_tile_comes_once(cluster, swizzle, along_m):
    tiles = (6, 10, 2)
    params = PersistentTileSchedulerParams(tiles, cluster, swizzle, along_m)
    seen = []
    for z, y, x in itertools.product(range(3), range(cluster[1]), range(cluster[0])):
        scheduler = StaticPersistentTileScheduler.create(params, (x, y, z), (*cluster[:2], 3))
        work = scheduler.initial_work_tile_info()
        while work.is_valid_tile:
            seen.append(tuple(map(int, work.tile_idx)))
            scheduler.advance_to_next_work()
            work = scheduler.get_current_work()
    assert sorted(seen) == sorted(itertools.product(*map(range, tiles)))


def test_bands_keep_tiles_close():
    """The first 8 tiles of bands of 4 are 2 x 4 tiles of C, not 8 x 1."""
    params = PersistentTileSchedulerParams((8, 8, 1), (1, 1, 1), 4, True)
    first = [params.locate(i) for i in range(8)]
    assert {int(m) for m, _, _ in first} == {0, 1}
    assert {int(n) for _, n, _ in first} == {0, 1, 2, 3}


def test_tiles_left_over_in_a_cluster_are_rounded_up():
    params = PersistentTileSchedulerParams((3, 5, 1), (2, 1, 1))
    assert int(params.num_clusters) == 10
    grid = StaticPersistentTileScheduler.get_grid_shape(params, 4)
    assert [int(n) for n in grid] == [2, 1, 4]
