"""Causal attention on Hopper. Heads share keys in groups, nested modes of what TMA copies: heads
of a group are rows of one tile, or blocks of their own.
"""

import math

import numpy as np

import basedsl_cute as cute
import basedsl_cute as cutlass
import basedsl_cute.pipeline as pipeline
import basedsl_cute.utils as utils
import basedsl_cute.utils.hopper_helpers as sm90_utils
from basedsl_cute.nvgpu import OperandMajorMode, cpasync, warpgroup
from basedsl_cute.runtime import from_dlpack

Float32, Int32 = cutlass.Float32, cutlass.Int32


def acc_mn(l):
    # ((2,2,N/8), M, N) -> ((2,M),((2,N/8),N))
    return cute.make_layout(
        ((l.shape[0][1], l.shape[1]), ((l.shape[0][0], l.shape[0][2]), l.shape[2])),
        stride=((l.stride[0][1], l.stride[1]), ((l.stride[0][0], l.stride[0][2]), l.stride[2])),
    )


def acc_as_a(l):
    d = cute.logical_divide(l, ((None, None, 2), None, None))
    return cute.make_layout(
        (
            (d.shape[0][0], d.shape[0][1], d.shape[0][2][0]),
            d.shape[1],
            (d.shape[0][2][1], d.shape[2]),
        ),
        stride=(
            (d.stride[0][0], d.stride[0][1], d.stride[0][2][0]),
            d.stride[1],
            (d.stride[0][2][1], d.stride[2]),
        ),
    )


def one(l):
    return cute.slice_(l, (None, None, 0))


def gm(t):
    return cute.group_modes(t, 0, 2)


class Fmha:
    bm, bn, stages = 64, 64, 2

    def __init__(self, d, group, pack):
        self.d, self.group, self.pack = d, group, pack

    @cute.jit
    def __call__(
        self, q: cute.Tensor, k: cute.Tensor, v: cute.Tensor, o: cute.Tensor, scale: Float32
    ):
        # q, o: (b, s, h, d); k, v: (b, s, hk, d)
        self.dt = q.element_type
        g = self.group
        b, s, h, d = q.shape

        def packed(t):
            if cutlass.const_expr(self.pack):
                # rows ((g, s)), d, (hk, b)
                return cute.make_tensor(
                    t.iterator,
                    cute.make_layout(
                        ((g, s), d, (h // g, b)),
                        stride=(
                            (t.stride[2], t.stride[1]),
                            t.stride[3],
                            (t.stride[2] * g, t.stride[0]),
                        ),
                    ),
                )
            return cute.make_tensor(
                t.iterator,
                cute.make_layout(
                    (s, d, ((g, h // g), b)),
                    stride=(
                        t.stride[1],
                        t.stride[3],
                        ((t.stride[2], t.stride[2] * g), t.stride[0]),
                    ),
                ),
            )

        mQ, mO = packed(q), packed(o)
        sk, hk = k.shape[1], k.shape[2]
        mK = cute.make_tensor(
            k.iterator,
            cute.make_layout(
                (sk, d, (hk, b)), stride=(k.stride[1], k.stride[3], (k.stride[2], k.stride[0]))
            ),
        )
        mV = cute.make_tensor(
            v.iterator,
            cute.make_layout(
                (d, sk, (hk, b)), stride=(v.stride[3], v.stride[1], (v.stride[2], v.stride[0]))
            ),
        )
        qk = sm90_utils.make_trivial_tiled_mma(
            self.dt,
            self.dt,
            OperandMajorMode.K,
            OperandMajorMode.K,
            Float32,
            (1, 1, 1),
            (64, self.bn),
        )
        pv = sm90_utils.make_trivial_tiled_mma(
            self.dt,
            self.dt,
            OperandMajorMode.K,
            OperandMajorMode.MN,
            Float32,
            (1, 1, 1),
            (64, self.d),
            warpgroup.OperandSource.RMEM,
        )
        RM, CM = utils.LayoutEnum.ROW_MAJOR, utils.LayoutEnum.COL_MAJOR
        lQ = sm90_utils.make_smem_layout_a(RM, (self.bm, self.bn, self.d), self.dt, 1)
        lK = sm90_utils.make_smem_layout_b(RM, (self.bm, self.bn, self.d), self.dt, self.stages)
        lV = sm90_utils.make_smem_layout_b(CM, (self.bm, self.d, self.bn), self.dt, self.stages)
        G2S = cpasync.CopyBulkTensorTileG2SOp()
        tq, tQ = cpasync.make_tiled_tma_atom(G2S, mQ, one(lQ), (self.bm, self.d))
        tk, tK = cpasync.make_tiled_tma_atom(G2S, mK, one(lK), (self.bn, self.d))
        tv, tV = cpasync.make_tiled_tma_atom(G2S, mV, one(lV), (self.d, self.bn))
        to, tO = cpasync.make_tiled_tma_atom(
            cpasync.CopyBulkTensorTileS2GOp(), mO, one(lQ), (self.bm, self.d)
        )

        @cute.struct
        class S:
            q: cute.struct.MemRange[cutlass.Int64, 2]
            k: cute.struct.MemRange[cutlass.Int64, 2 * self.stages]
            v: cute.struct.MemRange[cutlass.Int64, 2 * self.stages]
            sQ: cute.struct.Align[cute.struct.MemRange[self.dt, cute.cosize(lQ)], 1024]
            sK: cute.struct.Align[cute.struct.MemRange[self.dt, cute.cosize(lK)], 1024]
            sV: cute.struct.Align[cute.struct.MemRange[self.dt, cute.cosize(lV)], 1024]

        self.S = S
        grid = (cute.ceil_div(cute.size(mQ.shape[0]), self.bm), cute.size(mQ.shape[2]), 1)
        self.kernel(
            tq, tQ, tk, tK, tv, tV, to, tO, qk, pv, lQ, lK, lV, scale * math.log2(math.e), s, sk
        ).launch(grid=grid, block=(160, 1, 1))

    @cute.kernel
    def kernel(
        self,
        tq: cute.CopyAtom,
        mQ: cute.Tensor,
        tk: cute.CopyAtom,
        mK: cute.Tensor,
        tv: cute.CopyAtom,
        mV: cute.Tensor,
        to: cute.CopyAtom,
        mO: cute.Tensor,
        qk: cute.TiledMma,
        pv: cute.TiledMma,
        lQ: cute.ComposedLayout,
        lK: cute.ComposedLayout,
        lV: cute.ComposedLayout,
        scale: Float32,
        sq: Int32,
        sk: Int32,
    ):
        tidx, _, _ = cute.arch.thread_idx()
        bm, hb, _ = cute.arch.block_idx()
        warp = cute.arch.make_warp_uniform(cute.arch.warp_idx())
        st = utils.SmemAllocator().allocate(self.S)
        sQ = st.sQ.get_tensor(lQ.outer, swizzle=lQ.inner)
        sK = st.sK.get_tensor(lK.outer, swizzle=lK.inner)
        sV = st.sV.get_tensor(lV.outer, swizzle=lV.inner)
        CG, T = pipeline.CooperativeGroup, pipeline.Agent.Thread

        def make(bar, n, l):
            return pipeline.PipelineTmaAsync.create(
                barrier_storage=bar.data_ptr(),
                num_stages=n,
                producer_group=CG(T),
                consumer_group=CG(T, 4),
                tx_count=cute.size_in_bytes(self.dt, one(l)),
                defer_sync=True,
            ).make_participants()

        qp, qc = make(st.q, 1, lQ)
        kp, kc = make(st.k, self.stages, lK)
        vp, vc = make(st.v, self.stages, lV)
        pipeline.pipeline_init_arrive()
        pipeline.pipeline_init_wait()
        hcoord = cute.idx2crd(hb, mQ.shape[2])
        if cutlass.const_expr(self.pack):
            kvcoord = hcoord
        else:
            kvcoord = (hcoord[0][1], hcoord[1])
        gQ = cute.local_tile(mQ[None, None, hcoord], (self.bm, self.d), (bm, 0))
        gO = cute.local_tile(mO[None, None, hcoord], (self.bm, self.d), (bm, 0))
        gK = cute.local_tile(mK[None, None, kvcoord], (self.bn, self.d), (None, 0))
        gV = cute.local_tile(mV[None, None, kvcoord], (self.d, self.bn), (0, None))
        qs, qg = cpasync.tma_partition(tq, 0, cute.make_layout(1), gm(sQ), gm(gQ))
        ks, kg = cpasync.tma_partition(tk, 0, cute.make_layout(1), gm(sK), gm(gK))
        vs, vg = cpasync.tma_partition(tv, 0, cute.make_layout(1), gm(sV), gm(gV))
        os, og = cpasync.tma_partition(to, 0, cute.make_layout(1), gm(sQ), gm(gO))
        n_blocks = cute.ceil_div(sk, self.bn)
        if warp == 4:
            h = qp.acquire_and_advance()
            cute.copy(tq, qg, qs[None, h.index], tma_bar_ptr=h.barrier)
            for n in cutlass.range(n_blocks - 1, -1, -1):
                hk = kp.acquire_and_advance()
                cute.copy(tk, kg[None, n], ks[None, hk.index], tma_bar_ptr=hk.barrier)
                hv = vp.acquire_and_advance()
                cute.copy(tv, vg[None, n], vs[None, hv.index], tma_bar_ptr=hv.barrier)
            kp.tail()
            vp.tail()
        else:
            t_qk, t_pv = qk.get_slice(tidx), pv.get_slice(tidx)
            rQ = qk.make_fragment_A(t_qk.partition_A(sQ))
            rK = qk.make_fragment_B(t_qk.partition_B(sK))
            rV = pv.make_fragment_B(t_pv.partition_B(sV))
            accO = cute.make_rmem_tensor(pv.partition_shape_C((self.bm, self.d)), Float32)
            accS = cute.make_rmem_tensor(qk.partition_shape_C((self.bm, self.bn)), Float32)
            accO.fill(0.0)
            pv.set(warpgroup.Field.ACCUMULATE, True)
            S_mn = cute.make_tensor(accS.iterator, acc_mn(accS.layout))
            O_mn = cute.make_tensor(accO.iterator, acc_mn(accO.layout))
            cS = t_qk.partition_C(cute.make_identity_tensor((self.bm, self.bn)))
            cS_mn = cute.make_tensor(cS.iterator, acc_mn(cS.layout))
            rows = cute.size(S_mn, mode=[0])
            mx = cute.make_rmem_tensor((rows,), Float32)
            sm = cute.make_rmem_tensor((rows,), Float32)
            mx.fill(-Float32.inf)
            sm.fill(0.0)
            qc.wait_and_advance()
            for n in cutlass.range(n_blocks - 1, -1, -1):
                hk = kc.wait_and_advance()
                warpgroup.fence()
                qk.set(warpgroup.Field.ACCUMULATE, False)
                for kb in cutlass.range_constexpr(cute.size(rQ, mode=[2])):
                    cute.gemm(qk, accS, rQ[None, None, kb, 0], rK[None, None, kb, hk.index], accS)
                    qk.set(warpgroup.Field.ACCUMULATE, True)
                warpgroup.commit_group()
                warpgroup.wait_group(0)
                hk.release()
                for r in cutlass.range_constexpr(rows):
                    row = bm * self.bm + cS_mn[r, 0][0]
                    pos = row // self.group if cutlass.const_expr(self.pack) else row
                    lim = cutlass.min(sk, pos + 1 + sk - sq) - n * self.bn
                    for c in cutlass.range_constexpr(cute.size(S_mn, mode=[1])):
                        if cS_mn[0, c][1] >= lim:
                            S_mn[r, c] = -Float32.inf
                    x = S_mn[r, None].load()
                    new = cute.arch.warp_reduction_max(
                        x.reduce(cute.ReductionOp.MAX, mx[r], 0), threads_in_group=4
                    )
                    safe = 0.0 if new == -Float32.inf else new
                    p = cute.math.exp2(x * scale - safe * scale)
                    corr = cute.math.exp2((mx[r] - safe) * scale)
                    sm[r] = sm[r] * corr + p.reduce(cute.ReductionOp.ADD, Float32(0.0), 0)
                    mx[r] = new
                    S_mn[r, None] = p
                    O_mn[r, None] = O_mn[r, None].load() * corr
                P = cute.make_fragment_like(accS, self.dt)
                P.store(accS.load().to(self.dt))
                rP = cute.make_tensor(P.iterator, acc_as_a(P.layout))
                hv = vc.wait_and_advance()
                warpgroup.fence()
                cute.gemm(pv, accO, rP, rV[None, None, None, hv.index], accO)
                warpgroup.commit_group()
                warpgroup.wait_group(0)
                hv.release()
            for r in cutlass.range_constexpr(rows):
                tot = cute.arch.warp_reduction_sum(sm[r], threads_in_group=4)
                inv = 1.0 / tot if tot > 0.0 else Float32(0.0)
                O_mn[r, None] = O_mn[r, None].load() * inv
            out = cute.make_fragment_like(accO, self.dt)
            out.store(accO.load().to(self.dt))
            r2s = cute.make_tiled_copy_C(
                cute.make_copy_atom(cute.nvgpu.warp.StMatrix8x8x16bOp(False, 4), self.dt), pv
            )
            thr = r2s.get_slice(tidx)
            pipeline.arrive_and_wait(barrier_id=1, num_threads=128)
            cute.copy(r2s, thr.retile(out), thr.partition_D(sQ[None, None, 0]))
            cute.arch.fence_proxy("async.shared", space="cta")
            pipeline.arrive_and_wait(barrier_id=1, num_threads=128)
            if warp == 0:
                cute.copy(to, os[None, 0], og)
                cute.arch.cp_async_bulk_commit_group()
                cute.arch.cp_async_bulk_wait_group(0, read=True)


def check(b, sq, sk, hk, g, d, pack):
    rng = np.random.default_rng(0)
    q = rng.standard_normal((b, sq, hk * g, d)).astype(np.float16)
    k, v = (rng.standard_normal((b, sk, hk, d)).astype(np.float16) for _ in range(2))
    o = np.full_like(q, np.nan)
    ts = [from_dlpack(t, assumed_align=16).mark_layout_dynamic(leading_dim=3) for t in (q, k, v, o)]
    if not pack:
        ts = [from_dlpack(t, assumed_align=16) for t in (q, k, v, o)]
    Fmha(d, g, pack)(*ts, 1 / math.sqrt(d))
    Q, K, V = (t.astype(np.float64).transpose(0, 2, 1, 3) for t in (q, k, v))
    K, V = np.repeat(K, g, 1), np.repeat(V, g, 1)
    s = Q @ K.transpose(0, 1, 3, 2) / math.sqrt(d)
    s = np.where(np.arange(sk)[None, :] > np.arange(sq)[:, None] + sk - sq, -np.inf, s)
    p = np.exp(s - s.max(-1, keepdims=True))
    want = (p / p.sum(-1, keepdims=True) @ V).transpose(0, 2, 1, 3)
    np.testing.assert_allclose(o, want, atol=4e-3, rtol=4e-3)


def run():
    check(2, 40, 100, 2, 3, 64, False)
    check(2, 20, 100, 1, 4, 64, True)
