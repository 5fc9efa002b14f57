"""Warps with roles and no TMA: some load stages by cp.async, others add them up."""

import numpy as np

import basedsl_cute as cute
import basedsl_cute as cutlass
import basedsl_cute.pipeline as pipeline
from basedsl_cute.nvgpu import cpasync
from basedsl_cute.runtime import from_dlpack


class ColumnSums:
    """Sums over the rows of (rows, 128): `rows` in tiles of 8, one loading and one adding warp."""

    tile = (8, 128)

    def __init__(self, dtype, stages=3):
        self.dtype, self.stages = dtype, stages

    @cute.jit
    def __call__(self, x: cute.Tensor, out: cute.Tensor):
        assert x.shape[1] == self.tile[1]
        atom = cute.make_copy_atom(cpasync.CopyG2SOp(), self.dtype, num_bits_per_copy=128)
        width = 128 // self.dtype.width
        load = cute.make_tiled_copy_tv(
            atom, cute.make_layout((1, 32), stride=(32, 1)), cute.make_layout((1, width))
        )
        self.kernel(x, out, load).launch(grid=(1, 1, 1), block=(64, 1, 1))

    @cute.kernel
    def kernel(self, x: cute.Tensor, out: cute.Tensor, load: cute.TiledCopy):
        warp = cute.arch.make_warp_uniform(cute.arch.warp_idx())
        lane = cute.arch.lane_idx()

        staged = cute.make_ordered_layout((*self.tile, self.stages), order=(1, 0, 2))

        @cute.struct
        class Storage:
            barriers: cute.struct.MemRange[cutlass.Int64, 2 * self.stages]
            tiles: cute.struct.Align[cute.struct.MemRange[self.dtype, cute.cosize(staged)], 128]

        smem = cutlass.utils.SmemAllocator()
        storage = smem.allocate(Storage, byte_alignment=128)
        tiles = storage.tiles.get_tensor(staged)
        copies = pipeline.PipelineCpAsync.create(
            barrier_storage=storage.barriers.data_ptr(),
            num_stages=self.stages,
            producer_group=pipeline.CooperativeGroup(pipeline.Agent.Thread, 32),
            consumer_group=pipeline.CooperativeGroup(pipeline.Agent.Thread, 32),
        )
        source = cute.local_tile(x, self.tile, (None, 0))
        count = cute.size(source, mode=[2])

        if warp == 0:
            producer = pipeline.make_pipeline_state(pipeline.PipelineUserType.Producer, self.stages)
            thread = load.get_slice(lane)
            tXgX, tXsX = thread.partition_S(source), thread.partition_D(tiles)
            for i in cutlass.range(count, unroll=1):
                copies.producer_acquire(producer)
                cute.copy(load, tXgX[None, None, None, i], tXsX[None, None, None, producer.index])
                copies.producer_commit(producer)
                producer.advance()
            copies.producer_tail(producer)
        if warp == 1:
            consumer = pipeline.make_pipeline_state(pipeline.PipelineUserType.Consumer, self.stages)
            sums = cute.make_rmem_tensor((4,), cutlass.Float32)
            sums.fill(0.0)
            columns = cute.logical_divide(tiles, (None, cute.make_layout(32)))
            for _ in cutlass.range(count, unroll=1):
                copies.consumer_wait(consumer)
                for row in cutlass.range(self.tile[0], unroll_full=True):
                    for part in cutlass.range_constexpr(4):
                        sums[part] = sums[part] + columns[row, (lane, part), consumer.index]
                copies.consumer_release(consumer)
                consumer.advance()
            results = cute.logical_divide(out, cute.make_layout(32))
            for part in cutlass.range_constexpr(4):
                results[lane, part] = sums[part]


def run():
    x = np.random.default_rng(10).integers(-9, 10, (64, 128)).astype(np.float32)
    out = np.zeros(128, np.float32)
    views = [from_dlpack(t, assumed_align=16) for t in (x, out)]
    sums = ColumnSums(cutlass.Float32)
    cute.compile(sums, *views)(*views)
    np.testing.assert_array_equal(out, x.sum(axis=0))
