"""z = max(alpha x + y, 0): resident blocks of a warp that loads, one that stores, four others."""

import numpy as np

import basedsl_cute as cute
import basedsl_cute as cutlass
import basedsl_cute.pipeline as pipeline
import basedsl_cute.utils as utils
from basedsl_cute.nvgpu import cpasync
from basedsl_cute.runtime import from_dlpack


class Elementwise:
    tile, in_stages, out_stages, compute_warps = (32, 64), 3, 2, 4

    @cute.jit
    def __call__(
        self,
        x: cute.Tensor,
        y: cute.Tensor,
        z: cute.Tensor,
        alpha: cutlass.Float32,
        blocks: cutlass.Constexpr = 3,
    ):
        self.dt = x.element_type
        lay = cute.make_ordered_layout((*self.tile, 1), order=(1, 0, 2))
        lay = cute.slice_(lay, (None, None, 0))
        G2S, S2G = cpasync.CopyBulkTensorTileG2SOp(), cpasync.CopyBulkTensorTileS2GOp()
        tx, mX = cpasync.make_tiled_tma_atom(G2S, x, lay, self.tile)
        ty, mY = cpasync.make_tiled_tma_atom(G2S, y, lay, self.tile)
        tz, mZ = cpasync.make_tiled_tma_atom(S2G, z, lay, self.tile)
        vec = 128 // self.dt.width
        tiled = cute.make_tiled_copy_tv(
            cute.make_copy_atom(cute.nvgpu.CopyUniversalOp(), self.dt, num_bits_per_copy=128),
            cute.make_ordered_layout(
                (32 * self.compute_warps * vec // self.tile[1], self.tile[1] // vec), order=(1, 0)
            ),
            cute.make_layout((1, vec)),
        )
        self.kernel(tx, mX, ty, mY, tz, mZ, tiled, lay, alpha).launch(
            grid=[blocks, 1, 1], block=[32 * (self.compute_warps + 2), 1, 1]
        )

    @cute.kernel
    def kernel(
        self,
        tx: cute.CopyAtom,
        mX: cute.Tensor,
        ty: cute.CopyAtom,
        mY: cute.Tensor,
        tz: cute.CopyAtom,
        mZ: cute.Tensor,
        tiled: cute.TiledCopy,
        lay: cute.Layout,
        alpha: cutlass.Float32,
    ):
        warp = cute.arch.make_warp_uniform(cute.arch.warp_idx())
        tidx, _, _ = cute.arch.thread_idx()
        bid, _, _ = cute.arch.block_idx()
        grid, _, _ = cute.arch.grid_dim()

        @cute.struct
        class S:
            bars: cute.struct.MemRange[cutlass.Int64, 2 * self.in_stages]
            obars: cute.struct.MemRange[cutlass.Int64, 2 * self.out_stages]
            x: cute.struct.Align[
                cute.struct.MemRange[self.dt, cute.cosize(lay) * self.in_stages], 128
            ]
            y: cute.struct.Align[
                cute.struct.MemRange[self.dt, cute.cosize(lay) * self.in_stages], 128
            ]
            z: cute.struct.Align[
                cute.struct.MemRange[self.dt, cute.cosize(lay) * self.out_stages], 128
            ]

        st = utils.SmemAllocator().allocate(S)
        staged_in = cute.append(lay, cute.make_layout(self.in_stages, stride=cute.cosize(lay)))
        staged_out = cute.append(lay, cute.make_layout(self.out_stages, stride=cute.cosize(lay)))
        sX, sY, sZ = (
            st.x.get_tensor(staged_in),
            st.y.get_tensor(staged_in),
            st.z.get_tensor(staged_out),
        )
        T = pipeline.Agent.Thread
        inp, inc = pipeline.PipelineTmaAsync.create(
            barrier_storage=st.bars.data_ptr(),
            num_stages=self.in_stages,
            producer_group=pipeline.CooperativeGroup(T),
            consumer_group=pipeline.CooperativeGroup(T, self.compute_warps),
            tx_count=2 * cute.size_in_bytes(self.dt, lay),
            defer_sync=True,
        ).make_participants()
        outp, outc = pipeline.PipelineAsync.create(
            barrier_storage=st.obars.data_ptr(),
            num_stages=self.out_stages,
            producer_group=pipeline.CooperativeGroup(T, 32 * self.compute_warps),
            consumer_group=pipeline.CooperativeGroup(T, 32),
            defer_sync=True,
        ).make_participants()
        pipeline.pipeline_init_arrive()
        pipeline.pipeline_init_wait()

        def part(atom, s, m):
            g = cute.zipped_divide(m, self.tile)
            return cpasync.tma_partition(atom, 0, cute.make_layout(1), cute.group_modes(s, 0, 2), g)

        xs, xg = part(tx, sX, mX)
        ys, yg = part(ty, sY, mY)
        zs, zg = part(tz, sZ, mZ)
        tiles = cute.size(xg, mode=[1])
        if warp == self.compute_warps:
            for t in cutlass.range(bid, tiles, grid, unroll=1):
                h = inp.acquire_and_advance()
                cute.copy(tx, xg[None, t], xs[None, h.index], tma_bar_ptr=h.barrier)
                cute.copy(ty, yg[None, t], ys[None, h.index], tma_bar_ptr=h.barrier)
            inp.tail()
        elif warp == self.compute_warps + 1:
            store = pipeline.PipelineTmaStore.create(
                num_stages=self.out_stages, producer_group=pipeline.CooperativeGroup(T, 32)
            )
            pending = outc.clone()
            n = cutlass.Int32(0)
            for t in cutlass.range(bid, tiles, grid, unroll=1):
                h = outc.wait_and_advance()
                cute.copy(tz, zs[None, h.index], zg[None, t])
                store.producer_commit()
                store.producer_acquire()
                if n >= self.out_stages - 1:
                    pending.release()
                    pending.advance()
                n += 1
            store.producer_tail()
            while pending.state.count < n:
                pending.release()
                pending.advance()
        else:
            thr = tiled.get_slice(tidx)
            for t in cutlass.range(bid, tiles, grid, unroll=1):
                h = inc.wait_and_advance()
                fx = cute.make_fragment_like(thr.partition_S(sX[None, None, 0]))
                fy = cute.make_fragment_like(fx)
                cute.copy(tiled, thr.partition_S(sX)[None, None, None, h.index], fx)
                cute.copy(tiled, thr.partition_S(sY)[None, None, None, h.index], fy)
                h.release()
                v = fx.load().to(cutlass.Float32) * alpha + fy.load().to(cutlass.Float32)
                v = cute.where(v > 0.0, v, cute.full_like(v, 0.0))
                o = outp.acquire_and_advance()
                fx.store(v.to(self.dt))
                cute.copy(tiled, fx, thr.partition_D(sZ)[None, None, None, o.index])
                cute.arch.fence_view_async_shared()
                o.commit()
            outp.tail()


def check(m, n, dt):
    rng = np.random.default_rng(0)
    x, y = (rng.integers(-4, 5, (m, n)).astype(dt) for _ in range(2))
    z = np.full((m, n), np.nan, dt)
    ts = [from_dlpack(t, assumed_align=16).mark_layout_dynamic(leading_dim=1) for t in (x, y, z)]
    f = cute.compile(Elementwise(), *ts, 0.5)
    f(*ts, 0.5)
    np.testing.assert_array_equal(z, np.maximum(0.5 * x + y, 0).astype(dt))


def run():
    check(200, 200, np.float16)
    check(65, 132, np.float32)
