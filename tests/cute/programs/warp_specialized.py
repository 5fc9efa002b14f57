"""C = A B^T with roles for warps and nothing that sm_80 lacks: some copy by cp.async, the others
multiply by mma.sync, and mbarriers are between them.
"""

import numpy as np

import basedsl_cute as cute
import basedsl_cute as cutlass
import basedsl_cute.pipeline as pipeline
from basedsl_cute import Float32, Int64
from basedsl_cute.nvgpu import cpasync, warp
from basedsl_cute.runtime import from_dlpack


class WsGemm:
    def __init__(self, tile=(64, 64, 32), stages=3, producers=1, consumers=4):
        self.tile, self.stages, self.producers, self.consumers = tile, stages, producers, consumers

    @cute.jit
    def __call__(self, a: cute.Tensor, b: cute.Tensor, c: cute.Tensor):
        M, N, K = self.tile
        dt = a.element_type
        atom = cute.make_composed_layout(
            cute.make_swizzle(2, 3, 3), 0, cute.make_layout((8, 32), stride=(32, 1))
        )
        self.sa = cute.tile_to_shape(atom, (M, K, self.stages), (0, 1, 2))
        self.sb = cute.tile_to_shape(atom, (N, K, self.stages), (0, 1, 2))

        @cute.struct
        class Storage:
            bars: cute.struct.MemRange[Int64, 2 * self.stages]
            a: cute.struct.Align[cute.struct.MemRange[dt, cute.cosize(self.sa)], 128]
            b: cute.struct.Align[cute.struct.MemRange[dt, cute.cosize(self.sb)], 128]

        self.Storage = Storage
        mma = cute.make_tiled_mma(
            warp.MmaF16BF16Op(dt, Float32, (16, 8, 16)), (2, 2, 1), (32, 32, 16)
        )
        n = 32 * self.producers
        cp = cute.make_tiled_copy_tv(
            cute.make_copy_atom(
                cpasync.CopyG2SOp(cpasync.LoadCacheMode.GLOBAL, zero_fill=True),
                dt,
                num_bits_per_copy=128,
            ),
            cute.make_layout((n // 4, 4), stride=(4, 1)),
            cute.make_layout((1, 8)),
        )
        grid = cute.ceil_div(c.shape, (M, N))
        self.kernel(a, b, c, mma, cp).launch(
            grid=[grid[0], grid[1], 1], block=[32 * (self.producers + self.consumers), 1, 1]
        )

    @cute.kernel
    def kernel(
        self, a: cute.Tensor, b: cute.Tensor, c: cute.Tensor, mma: cute.TiledMma, cp: cute.TiledCopy
    ):
        M, N, K = self.tile
        tid, _, _ = cute.arch.thread_idx()
        bx, by, _ = cute.arch.block_idx()
        wid = cute.arch.make_warp_uniform(cute.arch.warp_idx())
        st = cutlass.utils.SmemAllocator().allocate(self.Storage)
        sA, sB = st.a.get_tensor(self.sa), st.b.get_tensor(self.sb)
        pipe = pipeline.PipelineCpAsync.create(
            barrier_storage=st.bars.data_ptr(),
            num_stages=self.stages,
            producer_group=pipeline.CooperativeGroup(pipeline.Agent.Thread, 32 * self.producers),
            consumer_group=pipeline.CooperativeGroup(pipeline.Agent.Thread, 32 * self.consumers),
        )
        gA = cute.local_tile(a, (M, K), (bx, None))
        gB = cute.local_tile(b, (N, K), (by, None))
        cA = cute.local_tile(cute.make_identity_tensor(a.shape), (M, K), (bx, None))
        cB = cute.local_tile(cute.make_identity_tensor(b.shape), (N, K), (by, None))
        kt = cute.size(gA, mode=[2])
        if wid >= self.consumers:
            t = tid - 32 * self.consumers
            thr = cp.get_slice(t)
            xs = [
                (thr.partition_S(g), thr.partition_D(s), thr.partition_S(cc), x.shape)
                for g, s, cc, x in ((gA, sA, cA, a), (gB, sB, cB, b))
            ]
            state = pipeline.make_pipeline_state(pipeline.PipelineUserType.Producer, self.stages)
            for k in cutlass.range(kt, unroll=1):
                pipe.producer_acquire(state)
                for g, s, cc, shape in xs:
                    pred = cute.make_rmem_tensor(
                        (1, cute.size(s, mode=[1]), cute.size(s, mode=[2])), cutlass.Boolean
                    )
                    for i in cutlass.range_constexpr(cute.size(s, mode=[1])):
                        for j in cutlass.range_constexpr(cute.size(s, mode=[2])):
                            pred[0, i, j] = cute.elem_less(cc[0, i, j, k], shape)
                    cute.copy(
                        cp, g[None, None, None, k], s[None, None, None, state.index], pred=pred
                    )
                pipe.producer_commit(state)
                state.advance()
            pipe.producer_tail(state)
        else:
            tm = mma.get_slice(tid)
            acc = mma.make_fragment_C(mma.partition_shape_C((M, N)))
            acc.fill(0.0)
            rA = mma.make_fragment_A(tm.partition_A(sA[None, None, 0]))
            rB = mma.make_fragment_B(tm.partition_B(sB[None, None, 0]))
            ld = cute.make_copy_atom(warp.LdMatrix8x8x16bOp(False, 4), a.element_type)
            la, lb = (
                cute.make_tiled_copy_A(ld, mma).get_slice(tid),
                cute.make_tiled_copy_B(ld, mma).get_slice(tid),
            )
            pa, pb = la.partition_S(sA), lb.partition_S(sB)
            va, vb = la.retile(rA), lb.retile(rB)
            state = pipeline.make_pipeline_state(pipeline.PipelineUserType.Consumer, self.stages)
            for k in cutlass.range(kt, unroll=1):
                tok = pipe.consumer_try_wait(state)
                pipe.consumer_wait(state, tok)
                for kk in cutlass.range_constexpr(cute.size(rA, mode=[2])):
                    cute.copy(la, pa[None, None, kk, state.index], va[None, None, kk])
                    cute.copy(lb, pb[None, None, kk, state.index], vb[None, None, kk])
                    cute.gemm(mma, acc, rA[None, None, kk], rB[None, None, kk], acc)
                pipe.consumer_release(state)
                state.advance()
            done = pipeline.NamedBarrier(barrier_id=1, num_threads=32 * self.consumers)
            done.arrive_and_wait()
            cC = tm.partition_C(cute.make_identity_tensor((M, N)))
            tC = tm.partition_C(cute.local_tile(c, (M, N), (bx, by)))
            for i in cutlass.range_constexpr(cute.size(acc)):
                if cute.elem_less((bx * M + cC[i][0], by * N + cC[i][1]), c.shape):
                    tC[i] = acc[i]


def run():
    check(75, 70, 168)
    check(40, 33, 72, producers=2, stages=2)
    check(1, 1, 8, stages=4)
    check(5, 6, 0)


def check(m, n, k, **kw):
    rng = np.random.default_rng(0)
    a, b = (rng.integers(-3, 4, s).astype(np.float16) for s in ((m, k), (n, k)))
    c = np.full((m, n), np.nan, np.float32)
    ts = [
        from_dlpack(x, assumed_align=16)
        .mark_compact_shape_dynamic(0, (0, 1))
        .mark_compact_shape_dynamic(1, (0, 1), divisibility=8)
        for x in (a, b)
    ]
    WsGemm(**kw)(*ts, from_dlpack(c).mark_layout_dynamic(1))
    np.testing.assert_array_equal(c, a.astype(float) @ b.T.astype(float))
