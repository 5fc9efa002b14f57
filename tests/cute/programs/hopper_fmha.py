"""Attention on Hopper: one warp loads by TMA, warp groups multiply. The weights go from the
registers of the first product into the second as its operand A.
"""

import math

import numpy as np

import basedsl_cute as cutlass
import basedsl_cute.cute as cute
import basedsl_cute.pipeline as pipeline
import basedsl_cute.utils as utils
import basedsl_cute.utils.hopper_helpers as sm90_utils
from basedsl_cute.cute.nvgpu import OperandMajorMode, cpasync, warpgroup
from basedsl_cute.cute.runtime import from_dlpack
from basedsl_cute.cute.typing import Float32, Int32


def convert_layout_acc_mn(acc_layout: cute.Layout) -> cute.Layout:
    """((2, 2, N/8), MMA_M, MMA_N) -> ((2, MMA_M), (2, N/8, MMA_N))"""
    l = acc_layout
    shape = (
        (l.shape[0][1], l.shape[1]),
        (l.shape[0][0], *l.shape[0][2:], l.shape[2]),
        *l.shape[3:],
    )
    stride = (
        (l.stride[0][1], l.stride[1]),
        (l.stride[0][0], *l.stride[0][2:], l.stride[2]),
        *l.stride[3:],
    )
    return cute.make_layout(shape, stride=stride)


def convert_layout_acc_frgA(acc_layout: cute.Layout) -> cute.Layout:
    """((2, 2, N/8), M, N) -> ((2, 2, 2), M, (N/16, N))"""
    l = cute.logical_divide(acc_layout, ((None, None, 2), None, None))
    return cute.make_layout(
        (
            (l.shape[0][0], l.shape[0][1], l.shape[0][2][0]),
            l.shape[1],
            (l.shape[0][2][1], l.shape[2]),
        ),
        stride=(
            (l.stride[0][0], l.stride[0][1], l.stride[0][2][0]),
            l.stride[1],
            (l.stride[0][2][1], l.stride[2]),
        ),
    )


class HopperFmha:
    def __init__(self, head_dim, m_block=64, n_block=64, causal=False, wgs=1):
        self.d, self.bm, self.bn, self.causal, self.wgs = (
            head_dim,
            m_block * wgs,
            n_block,
            causal,
            wgs,
        )
        self.kv_stages = 2
        self.threads = 128 * (wgs + 1)

    @cute.jit
    def __call__(
        self,
        mQ: cute.Tensor,
        mK: cute.Tensor,
        mV: cute.Tensor,
        mO: cute.Tensor,
        mLSE: cute.Tensor | None,
        softmax_scale: Float32,
        stream,
    ):
        # (B, S, H, D) -> (S, D, H, B)
        mQ, mK, mV, mO = (
            cute.make_tensor(t.iterator, cute.select(t.layout, mode=[1, 3, 2, 0]))
            for t in (mQ, mK, mV, mO)
        )
        self.dtype = mQ.element_type
        tQK = sm90_utils.make_trivial_tiled_mma(
            self.dtype,
            self.dtype,
            OperandMajorMode.K,
            OperandMajorMode.K,
            Float32,
            (self.wgs, 1, 1),
            tiler_mn=(64, self.bn),
        )
        tPV = sm90_utils.make_trivial_tiled_mma(
            self.dtype,
            self.dtype,
            OperandMajorMode.K,
            OperandMajorMode.MN,
            Float32,
            (self.wgs, 1, 1),
            tiler_mn=(64, self.d),
            a_source=warpgroup.OperandSource.RMEM,
        )
        RM = utils.LayoutEnum.ROW_MAJOR
        sQ_layout = sm90_utils.make_smem_layout_a(RM, (self.bm, self.bn, self.d), self.dtype, 1)
        sK_layout = sm90_utils.make_smem_layout_b(
            RM, (self.bm, self.bn, self.d), self.dtype, self.kv_stages
        )
        # V tile is (d, bn) seen as B operand; stored (bn, d) row-major
        sV_layout = sm90_utils.make_smem_layout_b(
            utils.LayoutEnum.COL_MAJOR, (self.bm, self.d, self.bn), self.dtype, self.kv_stages
        )
        mVt = cute.make_tensor(mV.iterator, cute.select(mV.layout, mode=[1, 0, 2, 3]))
        G2S = cpasync.CopyBulkTensorTileG2SOp()
        tma_q, tQ = cpasync.make_tiled_tma_atom(
            G2S, mQ, cute.select(sQ_layout, mode=[0, 1]), (self.bm, self.d)
        )
        tma_k, tK = cpasync.make_tiled_tma_atom(
            G2S, mK, cute.select(sK_layout, mode=[0, 1]), (self.bn, self.d)
        )
        tma_v, tV = cpasync.make_tiled_tma_atom(
            G2S, mVt, cute.select(sV_layout, mode=[0, 1]), (self.d, self.bn)
        )

        @cute.struct
        class SharedStorage:
            q_bar: cute.struct.MemRange[cutlass.Int64, 2]
            k_bar: cute.struct.MemRange[cutlass.Int64, self.kv_stages * 2]
            v_bar: cute.struct.MemRange[cutlass.Int64, self.kv_stages * 2]
            sQ: cute.struct.Align[cute.struct.MemRange[self.dtype, cute.cosize(sQ_layout)], 1024]
            sK: cute.struct.Align[cute.struct.MemRange[self.dtype, cute.cosize(sK_layout)], 1024]
            sV: cute.struct.Align[cute.struct.MemRange[self.dtype, cute.cosize(sV_layout)], 1024]

        self.shared_storage = SharedStorage
        LOG2_E = math.log2(math.e)
        group = mQ.shape[2] // mK.shape[2]
        grid = (cute.ceil_div(mQ.shape[0], self.bm), mQ.shape[2], mQ.shape[3])
        self.kernel(
            tma_q,
            tQ,
            tma_k,
            tK,
            tma_v,
            tV,
            mO,
            mLSE,
            tQK,
            tPV,
            sQ_layout,
            sK_layout,
            sV_layout,
            softmax_scale * LOG2_E,
            group,
            mK.shape[0],
        ).launch(
            grid=grid,
            block=[self.threads, 1, 1],
            smem=SharedStorage.size_in_bytes(),
            stream=stream,
            min_blocks_per_mp=1,
        )

    @cute.kernel
    def kernel(
        self,
        tma_q: cute.CopyAtom,
        mQ: cute.Tensor,
        tma_k: cute.CopyAtom,
        mK: cute.Tensor,
        tma_v: cute.CopyAtom,
        mVt: cute.Tensor,
        mO: cute.Tensor,
        mLSE: cute.Tensor | None,
        tQK: cute.TiledMma,
        tPV: cute.TiledMma,
        sQ_layout: cute.ComposedLayout,
        sK_layout: cute.ComposedLayout,
        sV_layout: cute.ComposedLayout,
        scale_log2: Float32,
        group: Int32,
        seqlen_k: Int32,
    ):
        tidx, _, _ = cute.arch.thread_idx()
        m_block, head, batch = cute.arch.block_idx()
        warp_idx = cute.arch.make_warp_uniform(cute.arch.warp_idx())
        storage = utils.SmemAllocator().allocate(self.shared_storage)
        sQ = storage.sQ.get_tensor(sQ_layout.outer, swizzle=sQ_layout.inner)
        sK = storage.sK.get_tensor(sK_layout.outer, swizzle=sK_layout.inner)
        sV = storage.sV.get_tensor(sV_layout.outer, swizzle=sV_layout.inner)
        CG, T = pipeline.CooperativeGroup, pipeline.Agent.Thread

        def mk(bar, stages, layout):
            return pipeline.PipelineTmaAsync.create(
                barrier_storage=bar.data_ptr(),
                num_stages=stages,
                producer_group=CG(T),
                consumer_group=CG(T, 4 * self.wgs),
                tx_count=cute.size_in_bytes(self.dtype, cute.select(layout, mode=[0, 1])),
                defer_sync=True,
            )

        q_prod, q_cons = mk(storage.q_bar, 1, sQ_layout).make_participants()
        k_prod, k_cons = mk(storage.k_bar, self.kv_stages, sK_layout).make_participants()
        v_prod, v_cons = mk(storage.v_bar, self.kv_stages, sV_layout).make_participants()
        pipeline.pipeline_init_arrive()
        pipeline.pipeline_init_wait()

        kv_head = head // group
        gQ = cute.local_tile(mQ[None, None, head, batch], (self.bm, self.d), (m_block, 0))
        gK = cute.local_tile(mK[None, None, kv_head, batch], (self.bn, self.d), (None, 0))
        gV = cute.local_tile(mVt[None, None, kv_head, batch], (self.d, self.bn), (0, None))
        one = cute.make_layout(1)
        tQsQ, tQgQ = cpasync.tma_partition(
            tma_q, 0, one, cute.group_modes(sQ, 0, 2), cute.group_modes(gQ, 0, 2)
        )
        tKsK, tKgK = cpasync.tma_partition(
            tma_k, 0, one, cute.group_modes(sK, 0, 2), cute.group_modes(gK, 0, 2)
        )
        tVsV, tVgV = cpasync.tma_partition(
            tma_v, 0, one, cute.group_modes(sV, 0, 2), cute.group_modes(gV, 0, 2)
        )
        n_blocks = cute.ceil_div(seqlen_k, self.bn)
        if cutlass.const_expr(self.causal):
            n_blocks = cutlass.min(n_blocks, cute.ceil_div((m_block + 1) * self.bm, self.bn))

        if warp_idx < 4:
            cute.arch.warpgroup_reg_dealloc(24)
            if warp_idx == 0:
                h = q_prod.acquire_and_advance()
                cute.copy(tma_q, tQgQ, tQsQ[None, h.index], tma_bar_ptr=h.barrier)
                for i in cutlass.range(n_blocks, unroll=1):
                    n = n_blocks - 1 - i
                    hk = k_prod.acquire_and_advance()
                    cute.copy(tma_k, tKgK[None, n], tKsK[None, hk.index], tma_bar_ptr=hk.barrier)
                    hv = v_prod.acquire_and_advance()
                    cute.copy(tma_v, tVgV[None, n], tVsV[None, hv.index], tma_bar_ptr=hv.barrier)
                k_prod.tail()
                v_prod.tail()
        else:
            cute.arch.warpgroup_reg_alloc(240)
            tidx = tidx - 128
            thrQK = tQK.get_slice(tidx)
            thrPV = tPV.get_slice(tidx)
            tSrQ = tQK.make_fragment_A(thrQK.partition_A(sQ))
            tSrK = tQK.make_fragment_B(thrQK.partition_B(sK))
            tOrV = tPV.make_fragment_B(thrPV.partition_B(sV))
            acc_O = cute.make_rmem_tensor(tPV.partition_shape_C((self.bm, self.d)), Float32)
            acc_O.fill(0.0)
            acc_S = cute.make_rmem_tensor(tQK.partition_shape_C((self.bm, self.bn)), Float32)
            tPV.set(warpgroup.Field.ACCUMULATE, True)
            mn = convert_layout_acc_mn(acc_S.layout)
            rows = cute.size(mn, mode=[0])
            row_max = cute.make_rmem_tensor(rows, Float32)
            row_sum = cute.make_rmem_tensor(rows, Float32)
            row_max.fill(-Float32.inf)
            row_sum.fill(0.0)
            cS = thrQK.partition_C(cute.make_identity_tensor((self.bm, self.bn)))
            tScS_mn = cute.make_tensor(cS.iterator, convert_layout_acc_mn(cS.layout))
            acc_O_mn = cute.make_tensor(acc_O.iterator, convert_layout_acc_mn(acc_O.layout))
            acc_S_mn = cute.make_tensor(acc_S.iterator, mn)
            hq = q_cons.wait_and_advance()
            for i in cutlass.range(n_blocks, unroll=1):
                n = n_blocks - 1 - i
                hk = k_cons.wait_and_advance()
                tQK.set(warpgroup.Field.ACCUMULATE, False)
                warpgroup.fence()
                for kb in cutlass.range_constexpr(cute.size(tSrQ, mode=[2])):
                    cute.gemm(
                        tQK, acc_S, tSrQ[None, None, kb, 0], tSrK[None, None, kb, hk.index], acc_S
                    )
                    tQK.set(warpgroup.Field.ACCUMULATE, True)
                warpgroup.commit_group()
                warpgroup.wait_group(0)
                hk.release()
                # mask
                need_mask = (
                    n == n_blocks - 1
                    if cutlass.const_expr(not self.causal)
                    else (n + 1) * self.bn > m_block * self.bm
                )
                if need_mask:
                    for r in cutlass.range(rows, unroll_full=True):
                        q_pos = m_block * self.bm + tScS_mn[r, 0][0]
                        limit = seqlen_k - n * self.bn
                        if cutlass.const_expr(self.causal):
                            limit = cutlass.min(limit, q_pos + 1 - n * self.bn)
                        for c in cutlass.range(cute.size(acc_S_mn, mode=[1]), unroll_full=True):
                            acc_S_mn[r, c] = (
                                -Float32.inf if tScS_mn[0, c][1] >= limit else acc_S_mn[r, c]
                            )
                for r in cutlass.range(rows, unroll_full=True):
                    s = acc_S_mn[r, None].load()
                    m_prev = row_max[r]
                    m_cur = cute.arch.warp_reduction_max(
                        s.reduce(cute.ReductionOp.MAX, m_prev, 0), threads_in_group=4
                    )
                    m_safe = 0.0 if m_cur == -Float32.inf else m_cur
                    p = cute.math.exp2(s * scale_log2 - m_safe * scale_log2, fastmath=True)
                    corr = cute.math.exp2((m_prev - m_safe) * scale_log2, fastmath=True)
                    row_sum[r] = p.reduce(cute.ReductionOp.ADD, row_sum[r] * corr, 0)
                    row_max[r] = m_cur
                    acc_S_mn[r, None].store(p)
                    acc_O_mn[r, None].store(acc_O_mn[r, None].load() * corr)
                rP = cute.make_rmem_tensor_like(acc_S, self.dtype)
                rP.store(acc_S.load().to(self.dtype))
                tOrP = cute.make_tensor(rP.iterator, convert_layout_acc_frgA(rP.layout))
                hv = v_cons.wait_and_advance()
                warpgroup.fence()
                for kb in cutlass.range_constexpr(cute.size(tOrP, mode=[2])):
                    cute.gemm(
                        tPV, acc_O, tOrP[None, None, kb], tOrV[None, None, kb, hv.index], acc_O
                    )
                warpgroup.commit_group()
                warpgroup.wait_group(0)
                hv.release()
            hq.release()
            gO = cute.local_tile(mO[None, None, head, batch], (self.bm, self.d), (m_block, 0))
            tOgO = thrPV.partition_C(gO)
            cO = thrPV.partition_C(cute.make_identity_tensor((self.bm, self.d)))
            cO_mn = cute.make_tensor(cO.iterator, convert_layout_acc_mn(cO.layout))
            for r in cutlass.range_constexpr(rows):
                row_sum[r] = cute.arch.warp_reduction_sum(row_sum[r], threads_in_group=4)
                bad = row_sum[r] == 0.0 or row_sum[r] != row_sum[r]
                inv = cute.arch.rcp_approx(row_sum[r] if not bad else 1.0)
                acc_O_mn[r, None].store(acc_O_mn[r, None].load() * inv)
                if cutlass.const_expr(mLSE is not None):
                    row = m_block * self.bm + cO_mn[r, 0][0]
                    if row < mO.shape[0] and cO_mn[r, 0][1] == 0:
                        mLSE[batch, head, row] = row_max[r] * scale_log2 * math.log(
                            2.0
                        ) + cute.math.log(row_sum[r])
            rO = cute.make_fragment_like(acc_O, self.dtype)
            rO.store(acc_O.load().to(self.dtype))
            left = mO.shape[0] - m_block * self.bm
            for j in cutlass.range(cute.size(rO), unroll_full=True):
                if cO[j][0] < left:
                    tOgO[j] = rO[j]


def check(b=1, sq=100, sk=140, h=2, hk=1, d=64, causal=False, wgs=1, lse=True):
    rng = np.random.default_rng(0)
    q = rng.standard_normal((b, sq, h, d)).astype(np.float16)
    k, v = (rng.standard_normal((b, sk, hk, d)).astype(np.float16) for _ in range(2))
    o = np.zeros_like(q)
    L = np.zeros((b, h, sq), np.float32) if lse else None
    ts = [from_dlpack(t, assumed_align=16).mark_layout_dynamic(leading_dim=3) for t in (q, k, v, o)]
    tl = from_dlpack(L).mark_layout_dynamic(leading_dim=2) if lse else None
    sc = 1 / math.sqrt(d)
    st = cutlass.cuda.default_stream()
    f = cute.compile(HopperFmha(d, causal=causal, wgs=wgs), *ts, tl, sc, st)
    f(*ts, tl, sc, st)
    Q, K, V = (t.astype(np.float64).transpose(0, 2, 1, 3) for t in (q, k, v))
    K, V = np.repeat(K, h // hk, 1), np.repeat(V, h // hk, 1)
    S = Q @ K.transpose(0, 1, 3, 2) * sc
    if causal:
        S[..., np.arange(sq)[:, None] < np.arange(sk)] = -np.inf
    m = S.max(-1, keepdims=True)
    P = np.exp(S - m)
    l = P.sum(-1, keepdims=True)
    np.testing.assert_allclose(o, (P / l @ V).transpose(0, 2, 1, 3), atol=3e-3)
    if lse:
        np.testing.assert_allclose(L, (m + np.log(l))[..., 0], atol=2e-3)


def run():
    check()
    check(b=2, hk=2, sk=100, causal=True, lse=False)
