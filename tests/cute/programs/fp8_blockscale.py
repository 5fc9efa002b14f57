"""C = A B^T of 8-bit floats with a scale for each 1 x 128 of A and 128 x 128 of B: by wgmma, and by
the mma of one warp.
"""

import ml_dtypes
import numpy as np

import basedsl_cute as cutlass
import basedsl_cute.cute as cute
import basedsl_cute.pipeline as pipeline
import basedsl_cute.utils as utils
import basedsl_cute.utils.hopper_helpers as sm90_utils
from basedsl_cute.cute.nvgpu import cpasync, warp, warpgroup
from basedsl_cute.cute.runtime import from_dlpack

F8 = ml_dtypes.float8_e4m3fn


def fp8_tensor(x, lead=1):
    t = from_dlpack(x.view(np.uint8), assumed_align=16)
    t.element_type = cutlass.Float8E4M3FN
    return t.mark_layout_dynamic(leading_dim=lead)


class WgmmaFp8:
    def __init__(self, tile=(64, 128, 128), stages=2):
        self.tile, self.stages = tile, stages

    @cute.jit
    def __call__(
        self, a: cute.Tensor, b: cute.Tensor, sfa: cute.Tensor, sfb: cute.Tensor, c: cute.Tensor
    ):
        M, N, K = self.tile
        rm = utils.LayoutEnum.ROW_MAJOR
        dt = a.element_type
        mma = sm90_utils.make_trivial_tiled_mma(
            dt,
            b.element_type,
            rm.sm90_mma_major_mode(),
            warpgroup.OperandMajorMode.K,
            cutlass.Float32,
            (1, 1, 1),
            tiler_mn=(64, N),
        )
        la = sm90_utils.make_smem_layout_a(rm, self.tile, dt, self.stages)
        lb = sm90_utils.make_smem_layout_b(rm, self.tile, dt, self.stages)
        ta, A = cpasync.make_tiled_tma_atom(
            cpasync.CopyBulkTensorTileG2SOp(), a, cute.slice_(la, (None, None, 0)), (M, K)
        )
        tb, B = cpasync.make_tiled_tma_atom(
            cpasync.CopyBulkTensorTileG2SOp(), b, cute.slice_(lb, (None, None, 0)), (N, K)
        )
        # scales: broadcast layouts over the tile, (row, (128, k/128)) with stride 0
        sfa_v = cute.make_tensor(
            sfa.iterator,
            cute.make_layout(
                (sfa.shape[0], (128, sfa.shape[1])), stride=(sfa.stride[0], (0, sfa.stride[1]))
            ),
        )
        sfb_v = cute.make_tensor(
            sfb.iterator,
            cute.make_layout(
                ((128, sfb.shape[0]), (128, sfb.shape[1])),
                stride=((0, sfb.stride[0]), (0, sfb.stride[1])),
            ),
        )

        @cute.struct
        class S:
            bars: cute.struct.MemRange[cutlass.Int64, 2 * self.stages]
            a: cute.struct.Align[cute.struct.MemRange[dt, cute.cosize(la)], 1024]
            b: cute.struct.Align[cute.struct.MemRange[dt, cute.cosize(lb)], 1024]

        self.S = S
        self.kernel(ta, A, tb, B, sfa_v, sfb_v, c, mma, la, lb).launch(
            grid=(*cute.ceil_div(c.shape, (M, N)), 1), block=(128, 1, 1)
        )

    @cute.kernel
    def kernel(
        self,
        ta: cute.CopyAtom,
        A: cute.Tensor,
        tb: cute.CopyAtom,
        B: cute.Tensor,
        sfa: cute.Tensor,
        sfb: cute.Tensor,
        c: cute.Tensor,
        mma: cute.TiledMma,
        la: cute.ComposedLayout,
        lb: cute.ComposedLayout,
    ):
        t, _, _ = cute.arch.thread_idx()
        bx, by, _ = cute.arch.block_idx()
        M, N, K = self.tile
        w = cute.arch.make_warp_uniform(cute.arch.warp_idx())
        s = utils.SmemAllocator().allocate(self.S)
        sA = s.a.get_tensor(la.outer, swizzle=la.inner)
        sB = s.b.get_tensor(lb.outer, swizzle=lb.inner)
        pipe = pipeline.PipelineTmaAsync.create(
            barrier_storage=s.bars.data_ptr(),
            num_stages=self.stages,
            producer_group=pipeline.CooperativeGroup(pipeline.Agent.Thread),
            consumer_group=pipeline.CooperativeGroup(pipeline.Agent.Thread, 4),
            tx_count=cute.size_in_bytes(sA.element_type, cute.slice_(la, (None, None, 0)))
            + cute.size_in_bytes(sB.element_type, cute.slice_(lb, (None, None, 0))),
        )
        gA, gB = cute.local_tile(A, (M, K), (bx, None)), cute.local_tile(B, (N, K), (by, None))
        asA, agA = cpasync.tma_partition(
            ta, 0, cute.make_layout(1), cute.group_modes(sA, 0, 2), cute.group_modes(gA, 0, 2)
        )
        bsB, bgB = cpasync.tma_partition(
            tb, 0, cute.make_layout(1), cute.group_modes(sB, 0, 2), cute.group_modes(gB, 0, 2)
        )
        thr = mma.get_slice(t)
        rA, rB = mma.make_fragment_A(thr.partition_A(sA)), mma.make_fragment_B(thr.partition_B(sB))
        part = cute.make_rmem_tensor(mma.partition_shape_C((M, N)), cutlass.Float32)
        total = cute.make_rmem_tensor_like(part)
        total.fill(0.0)
        kt = cute.size(gA, mode=[2])
        prod = pipeline.make_pipeline_state(pipeline.PipelineUserType.Producer, self.stages)
        cons = pipeline.make_pipeline_state(pipeline.PipelineUserType.Consumer, self.stages)
        cC = thr.partition_C(cute.make_identity_tensor((M, N)))
        if w == 0:
            for _ in range(cutlass.min(kt, self.stages)):
                pipe.producer_acquire(prod)
                cute.copy(
                    ta,
                    agA[None, prod.count],
                    asA[None, prod.index],
                    tma_bar_ptr=pipe.producer_get_barrier(prod),
                )
                cute.copy(
                    tb,
                    bgB[None, prod.count],
                    bsB[None, prod.index],
                    tma_bar_ptr=pipe.producer_get_barrier(prod),
                )
                pipe.producer_commit(prod)
                prod.advance()
        for k in cutlass.range(kt, unroll=1):
            pipe.consumer_wait(cons)
            mma.set(warpgroup.Field.ACCUMULATE, False)
            warpgroup.fence()
            for kb in cutlass.range_constexpr(cute.size(rA, mode=[2])):
                cute.gemm(
                    mma, part, rA[None, None, kb, cons.index], rB[None, None, kb, cons.index], part
                )
                mma.set(warpgroup.Field.ACCUMULATE, True)
            warpgroup.commit_group()
            warpgroup.wait_group(0)
            pipe.consumer_release(cons)
            cons.advance()
            sb = sfb[by * N, k * K]
            for i in cutlass.range(cute.size(part), unroll_full=True):
                row = cutlass.min(bx * M + cC[i][0], c.shape[0] - 1)
                total[i] = total[i] + part[i] * (sfa[row, k * K] * sb)
            if w == 0:
                if prod.count < kt:
                    pipe.producer_acquire(prod)
                    cute.copy(
                        ta,
                        agA[None, prod.count],
                        asA[None, prod.index],
                        tma_bar_ptr=pipe.producer_get_barrier(prod),
                    )
                    cute.copy(
                        tb,
                        bgB[None, prod.count],
                        bsB[None, prod.index],
                        tma_bar_ptr=pipe.producer_get_barrier(prod),
                    )
                    pipe.producer_commit(prod)
                    prod.advance()
        tC = thr.partition_C(cute.local_tile(c, (M, N), (bx, by)))
        for i in cutlass.range(cute.size(total), unroll_full=True):
            if cute.elem_less((bx * M + cC[i][0], by * N + cC[i][1]), c.shape):
                tC[i] = total[i].to(c.element_type)


class WarpFp8:
    @cute.jit
    def __call__(
        self, a: cute.Tensor, b: cute.Tensor, sfa: cute.Tensor, sfb: cute.Tensor, c: cute.Tensor
    ):
        mma = cute.make_tiled_mma(
            warp.MmaFP8Op(a.element_type, cutlass.Float32, (16, 8, 32)), (2, 2, 1)
        )
        self.k(a, b, sfa, sfb, c, mma).launch(
            grid=(*cute.ceil_div(c.shape, (32, 16)), 1), block=(128, 1, 1)
        )

    @cute.kernel
    def k(
        self,
        a: cute.Tensor,
        b: cute.Tensor,
        sfa: cute.Tensor,
        sfb: cute.Tensor,
        c: cute.Tensor,
        mma: cute.TiledMma,
    ):
        t = cute.arch.thread_idx()[0]
        bx, by, _ = cute.arch.block_idx()
        thr = mma.get_slice(t)
        M, N, K = 32, 16, 32
        gA, gB, gC = (
            cute.local_tile(a, (M, K), (bx, None)),
            cute.local_tile(b, (N, K), (by, None)),
            cute.local_tile(c, (M, N), (bx, by)),
        )
        tA, tB, tC = thr.partition_A(gA), thr.partition_B(gB), thr.partition_C(gC)
        acc = mma.make_fragment_C(tC)
        acc.fill(0.0)
        cC = thr.partition_C(cute.make_identity_tensor((M, N)))
        for k128 in range(cute.size(gA, mode=[2]) // 4):
            part = mma.make_fragment_C(tC)
            part.fill(0.0)
            for j in cutlass.range_constexpr(4):
                rA = mma.make_fragment_A(tA[None, None, None, k128 * 4 + j])
                rB = mma.make_fragment_B(tB[None, None, None, k128 * 4 + j])
                cute.autovec_copy(tA[None, None, None, k128 * 4 + j], rA)
                cute.autovec_copy(tB[None, None, None, k128 * 4 + j], rB)
                cute.gemm(mma, part, rA, rB, part)
            for i in cutlass.range_constexpr(cute.size(part)):
                acc[i] += (
                    part[i] * sfa[bx * M + cC[i][0], k128] * sfb[(by * N + cC[i][1]) // 128, k128]
                )
        out = cute.make_fragment_like(acc, c.element_type)
        out.store(acc.load().to(c.element_type))
        cute.autovec_copy(out, tC)


def check(kind, m=70, n=128, k=256):
    rng = np.random.default_rng(0)
    a = rng.integers(-4, 5, (m, k)).astype(np.float32).astype(F8)
    b = rng.integers(-4, 5, (n, k)).astype(np.float32).astype(F8)
    sa = (2.0 ** rng.integers(-2, 3, (m, k // 128))).astype(np.float32)
    sb = (2.0 ** rng.integers(-2, 3, (-(-n // 128), k // 128))).astype(np.float32)
    c = np.zeros((m, n), ml_dtypes.bfloat16)
    args = [
        fp8_tensor(a),
        fp8_tensor(b),
        from_dlpack(sa).mark_layout_dynamic(1),
        from_dlpack(sb),
        from_dlpack(c, assumed_align=16).mark_layout_dynamic(1),
    ]
    f = cute.compile(kind(), *args)
    f(*args)
    A = a.astype(np.float32) * np.repeat(sa, 128, 1)
    B = b.astype(np.float32) * np.repeat(np.repeat(sb, 128, 1), 128, 0)[:n]
    np.testing.assert_allclose(
        c.astype(np.float32), (A @ B.T).astype(ml_dtypes.bfloat16).astype(np.float32), rtol=1e-2
    )


def run():
    check(WgmmaFp8)
    check(WarpFp8, m=64)
