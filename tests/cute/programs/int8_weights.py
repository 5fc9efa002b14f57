"""C = A B^T on Hopper, A of Int8 with a scale for each 64 of a row: it becomes Float16 in
registers, from which wgmma takes it.
"""

import numpy as np

import basedsl_cute as cute
import basedsl_cute as cutlass
import basedsl_cute.pipeline as pipeline
import basedsl_cute.utils as utils
import basedsl_cute.utils.hopper_helpers as sm90_utils
from basedsl_cute.nvgpu import cpasync, warpgroup
from basedsl_cute.runtime import from_dlpack


class Mixed:
    tile, stages = (128, 64, 64), 2

    @cute.jit
    def __call__(self, a: cute.Tensor, scale: cute.Tensor, b: cute.Tensor, c: cute.Tensor):
        M, N, K = self.tile
        self.adt, self.bdt = a.element_type, b.element_type
        mma = sm90_utils.make_trivial_tiled_mma(
            self.bdt,
            self.bdt,
            warpgroup.OperandMajorMode.K,
            utils.LayoutEnum.from_tensor(b).sm90_mma_major_mode(),
            cutlass.Float32,
            (2, 1, 1),
            (64, N),
            a_source=warpgroup.OperandSource.RMEM,
        )
        row = utils.LayoutEnum.ROW_MAJOR
        sa = sm90_utils.make_smem_layout_a(row, self.tile, self.adt, self.stages)
        sb = sm90_utils.make_smem_layout_b(
            utils.LayoutEnum.from_tensor(b), self.tile, self.bdt, self.stages
        )
        op = cpasync.CopyBulkTensorTileG2SOp()
        ta, mA = cpasync.make_tiled_tma_atom(op, a, cute.slice_(sa, (None, None, 0)), (M, K))
        tb, mB = cpasync.make_tiled_tma_atom(op, b, cute.slice_(sb, (None, None, 0)), (N, K))
        self.kernel(ta, mA, tb, mB, scale, c, mma, sa, sb).launch(
            grid=(*cute.ceil_div(c.shape, (M, N)), 1), block=(288, 1, 1)
        )

    @cute.kernel
    def kernel(
        self,
        ta: cute.CopyAtom,
        mA: cute.Tensor,
        tb: cute.CopyAtom,
        mB: cute.Tensor,
        scale: cute.Tensor,
        c: cute.Tensor,
        mma: cute.TiledMma,
        sa: cute.ComposedLayout,
        sb: cute.ComposedLayout,
    ):
        M, N, K = self.tile
        tidx, _, _ = cute.arch.thread_idx()
        warp = cute.arch.make_warp_uniform(cute.arch.warp_idx())
        bm, bn, _ = cute.arch.block_idx()
        smem = utils.SmemAllocator()
        bars = smem.allocate_array(cutlass.Int64, 2 * self.stages)
        sA = smem.allocate_tensor(self.adt, sa.outer, 1024, sa.inner)
        sB = smem.allocate_tensor(self.bdt, sb.outer, 1024, sb.inner)
        pipe = pipeline.PipelineTmaAsync.create(
            barrier_storage=bars,
            num_stages=self.stages,
            producer_group=pipeline.CooperativeGroup(pipeline.Agent.Thread),
            consumer_group=pipeline.CooperativeGroup(pipeline.Agent.Thread, 8),
            tx_count=cute.size_in_bytes(self.adt, cute.select(sa, mode=[0, 1]))
            + cute.size_in_bytes(self.bdt, cute.select(sb, mode=[0, 1])),
        )
        gA = cute.local_tile(mA, (M, K), (bm, None))
        gB = cute.local_tile(mB, (N, K), (bn, None))
        tAs, tAg = cpasync.tma_partition(
            ta, 0, cute.make_layout(1), cute.group_modes(sA, 0, 2), cute.group_modes(gA, 0, 2)
        )
        tBs, tBg = cpasync.tma_partition(
            tb, 0, cute.make_layout(1), cute.group_modes(sB, 0, 2), cute.group_modes(gB, 0, 2)
        )
        k_tiles = cute.size(gA, mode=[2])
        if warp == 8:
            state = pipeline.make_pipeline_state(pipeline.PipelineUserType.Producer, self.stages)
            for k in range(k_tiles):
                pipe.producer_acquire(state)
                cute.copy(
                    ta,
                    tAg[None, k],
                    tAs[None, state.index],
                    tma_bar_ptr=pipe.producer_get_barrier(state),
                )
                cute.copy(
                    tb,
                    tBg[None, k],
                    tBs[None, state.index],
                    tma_bar_ptr=pipe.producer_get_barrier(state),
                )
                state.advance()
            pipe.producer_tail(state)
        else:
            thr = mma.get_slice(tidx)
            rB = mma.make_fragment_B(thr.partition_B(sB))
            tCsA = thr.partition_A(sA)
            r8 = cute.make_fragment_like(tCsA[None, None, None, 0], self.adt)
            rA = mma.make_fragment_A(mma.partition_shape_A((M, K)))
            acc = mma.make_fragment_C(mma.partition_shape_C((M, N)))
            acc.fill(0.0)
            mma.set(warpgroup.Field.ACCUMULATE, True)
            crdA = thr.partition_A(cute.make_identity_tensor((M, K)))
            state = pipeline.make_pipeline_state(pipeline.PipelineUserType.Consumer, self.stages)
            for k in range(k_tiles):
                pipe.consumer_wait(state)
                cute.autovec_copy(tCsA[None, None, None, state.index], r8)
                v = r8.load().to(cutlass.Float16)
                rA.store(v)
                for i in cutlass.range(cute.size(rA), unroll_full=True):
                    m = bm * M + crdA[i][0]
                    if m < scale.shape[0]:
                        rA[i] = rA[i] * scale[m, k]
                warpgroup.fence()
                for kb in cutlass.range_constexpr(cute.size(rA, mode=[2])):
                    cute.gemm(mma, acc, rA[None, None, kb], rB[None, None, kb, state.index], acc)
                warpgroup.commit_group()
                warpgroup.wait_group(0)
                pipe.consumer_release(state)
                state.advance()
            gC = cute.local_tile(c, (M, N), (bm, bn))
            tC = thr.partition_C(gC)
            crd = thr.partition_C(
                cute.local_tile(cute.make_identity_tensor(c.shape), (M, N), (bm, bn))
            )
            pred = cute.make_rmem_tensor(tC.shape, cutlass.Boolean)
            for i in cutlass.range_constexpr(cute.size(pred)):
                pred[i] = cute.elem_less(crd[i], c.shape)
            out = cute.make_fragment_like(acc, c.element_type)
            out.store(acc.load().to(c.element_type))
            cute.basic_copy_if(pred, out, tC)


def check(m, n, k, trans_b=False):
    rng = np.random.default_rng(0)
    kp = -(-k // 16) * 16
    a = rng.integers(-8, 8, (m, kp)).astype(np.int8)[:, :k]
    b = rng.integers(-2, 3, (n, k)).astype(np.float16)
    if trans_b:
        b = np.ascontiguousarray(b.T).T
    s = rng.integers(1, 3, (m, -(-k // 64))).astype(np.float16)
    c = np.full((m, n), np.nan, np.float32)
    want = (a.astype(np.float64) * np.repeat(s, 64, 1)[:, :k].astype(np.float64)) @ b.T.astype(
        np.float64
    )
    ts = [
        from_dlpack(t, assumed_align=16).mark_layout_dynamic(leading_dim=l)
        for t, l in ((a, 1), (b, 0 if trans_b else 1), (c, 1))
    ]
    ts.insert(1, from_dlpack(s).mark_layout_dynamic(leading_dim=1))
    Mixed()(*ts)
    np.testing.assert_array_equal(c, want)


def run():
    check(140, 72, 200)
    check(128, 64, 64, True)
