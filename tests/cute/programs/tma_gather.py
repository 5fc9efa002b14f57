"""Rows of a table by their numbers: a TMA load for each row, a TMA store for a tile of them."""

import numpy as np

import basedsl_cute as cute
import basedsl_cute as cutlass
import basedsl_cute.pipeline as pipeline
import basedsl_cute.utils as utils
from basedsl_cute.nvgpu import cpasync
from basedsl_cute.runtime import from_dlpack


class Gather:
    rows, stages = 8, 2

    @cute.jit
    def __call__(self, table: cute.Tensor, index: cute.Tensor, out: cute.Tensor):
        self.dt = table.element_type
        self.d = 64
        row = cute.make_layout((1, self.d), stride=(self.d, 1))
        tile = cute.make_layout((self.rows, self.d), stride=(self.d, 1))
        load, mT = cpasync.make_tiled_tma_atom(
            cpasync.CopyBulkTensorTileG2SOp(), table, row, (1, self.d)
        )
        store, mO = cpasync.make_tiled_tma_atom(
            cpasync.CopyBulkTensorTileS2GOp(), out, tile, (self.rows, self.d)
        )
        self.kernel(load, mT, store, mO, index, tile).launch(grid=(3, 1, 1), block=(64, 1, 1))

    @cute.kernel
    def kernel(
        self,
        load: cute.CopyAtom,
        mT: cute.Tensor,
        store: cute.CopyAtom,
        mO: cute.Tensor,
        index: cute.Tensor,
        tile: cute.Layout,
    ):
        warp = cute.arch.make_warp_uniform(cute.arch.warp_idx())
        lane = cute.arch.lane_idx()
        bid, _, _ = cute.arch.block_idx()
        gdim, _, _ = cute.arch.grid_dim()

        @cute.struct
        class S:
            bars: cute.struct.MemRange[cutlass.Int64, 2 * self.stages]
            buf: cute.struct.Align[
                cute.struct.MemRange[self.dt, self.rows * self.d * self.stages], 128
            ]

        st = utils.SmemAllocator().allocate(S)
        s = st.buf.get_tensor(
            cute.append(tile, cute.make_layout(self.stages, stride=cute.cosize(tile)))
        )
        pipe = pipeline.PipelineTmaAsync.create(
            barrier_storage=st.bars.data_ptr(),
            num_stages=self.stages,
            producer_group=pipeline.CooperativeGroup(pipeline.Agent.Thread),
            consumer_group=pipeline.CooperativeGroup(pipeline.Agent.Thread, 1),
            tx_count=cute.size_in_bytes(self.dt, tile),
        )
        producer, consumer = pipe.make_participants()
        d_tiles = cute.ceil_div(mT.shape[1], self.d)
        n = index.shape[0]
        tiles = cute.ceil_div(n, self.rows)
        tOs, tOg = cpasync.tma_partition(
            store,
            0,
            cute.make_layout(1),
            cute.group_modes(s, 0, 2),
            cute.group_modes(cute.local_tile(mO, (self.rows, self.d), (None, None)), 0, 2),
        )
        if warp == 0:
            for t in range(bid, tiles, gdim):
                i = t * self.rows + lane % self.rows
                mine = index[i] if i < n else cutlass.Int32(-1)
                for d in range(d_tiles):
                    h = producer.acquire_and_advance()
                    for r in cutlass.range_constexpr(self.rows):
                        row = cute.arch.shuffle_sync(mine, r)
                        src = cute.local_tile(cute.domain_offset((row, 0), mT), (1, self.d), (0, d))
                        dst = cute.local_tile(s, (1, self.d), (r, 0, h.index))
                        a, b = cpasync.tma_partition(
                            load,
                            0,
                            cute.make_layout(1),
                            cute.group_modes(dst, 0, 2),
                            cute.group_modes(src, 0, 2),
                        )
                        cute.copy(load, b, a, tma_bar_ptr=h.barrier)
            producer.tail()
        else:
            for t in range(bid, tiles, gdim):
                for d in range(d_tiles):
                    h = consumer.wait_and_advance()
                    cute.copy(store, tOs[None, h.index], tOg[None, t, d])
                    cute.arch.cp_async_bulk_commit_group()
                    cute.arch.cp_async_bulk_wait_group(0, read=True)
                    h.release()


def run():
    rng = np.random.default_rng(0)
    for dtype, columns in ((np.float32, 96), (np.float16, 128)):
        table = rng.standard_normal((50, columns)).astype(dtype)
        index = rng.integers(0, 50, 29).astype(np.int32)
        out = np.full((29, columns), np.nan, dtype)
        rows = [from_dlpack(t, assumed_align=16).mark_layout_dynamic() for t in (table, out)]
        Gather()(rows[0], from_dlpack(index).mark_layout_dynamic(), rows[1])
        np.testing.assert_array_equal(out, table[index])
