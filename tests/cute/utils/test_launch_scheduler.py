"""`utils.ClcDynamicPersistentTileScheduler` on the simulator: the tiles of a cluster's blocks."""

import numpy as np
import pytest

import basedsl_cute as cute
from basedsl_cute import arch, pipeline, utils
from basedsl_cute.runtime import from_dlpack


@cute.kernel
def count_tiles(params: utils.ClcDynamicPersistentTileSchedulerParams, visits: cute.Tensor):
    """Add 1 to visits[M, N, L] of each tile, by one lane of each block's only warp."""
    smem = utils.SmemAllocator()
    response = smem.allocate_array(cute.Int32, 4, byte_alignment=16)
    barriers = smem.allocate_array(cute.Int64, 2)
    m, n, depth = params.cluster_shape_mnl
    vmnk = cute.make_layout((1, m, n, depth))
    pipe = pipeline.PipelineClcFetchAsync.create(
        barrier_storage=barriers, num_stages=1,
        producer_group=pipeline.CooperativeGroup(pipeline.Agent.Thread),
        consumer_group=pipeline.CooperativeGroup(pipeline.Agent.Thread, 32 * m * n * depth),
        tx_count=16, cta_layout_vmnk=vmnk,
    )  # fmt: skip
    scheduler = utils.ClcDynamicPersistentTileScheduler.create(
        params, arch.block_idx(), arch.grid_dim(), response
    )
    producer = pipeline.make_pipeline_state(pipeline.PipelineUserType.ProducerConsumer, 1)
    state = pipeline.make_pipeline_state(pipeline.PipelineUserType.Consumer, 1)
    leads = arch.make_warp_uniform(arch.block_idx_in_cluster()) == 0
    work = scheduler.initial_work_tile_info()
    while work.is_valid_tile:
        with arch.elect_one():
            arch.atomic_add(visits.iterator + visits.layout(work.tile_idx), cute.Int32(1))
        if leads:
            pipe.producer_acquire(producer)
            scheduler.advance_to_next_work(pipe.producer_get_barrier(producer))
            producer.advance()
        pipe.consumer_wait(state)
        work = scheduler.get_current_work()
        pipe.consumer_release(state)
        state.advance()
    if leads:
        pipe.producer_tail(producer)


@pytest.mark.parametrize(
    ("tiles", "cluster", "order"),
    [
        ((2, 3, 2), (1, 1, 1), (1, True)),
        ((4, 2, 4), (2, 1, 2), (1, True)),  # blocks of a cluster along L
        ((2, 4, 6), (1, 2, 3), (2, False)),
    ],
)
def test_every_tile_comes_once(tiles, cluster, order):
    visits = np.zeros(tiles, np.int32)

    @cute.jit
    def host(visits: cute.Tensor):
        params = utils.ClcDynamicPersistentTileSchedulerParams(tiles, cluster, *order)
        grid = utils.ClcDynamicPersistentTileScheduler.get_grid_shape(params)
        count_tiles(params, visits).launch(grid=grid, block=(32, 1, 1), cluster=cluster)

    tensor = from_dlpack(visits)
    cute.compile(host, tensor, options="--arch sim")(tensor)
    np.testing.assert_array_equal(visits, 1)
