"""Flash attention of sequences of their own lengths: grouped heads, causal or in a window, with the
logarithm of each row's sum. K and V in stages of cp.async; the softmax is an object with registers.
"""

import math
from dataclasses import dataclass
from typing import Optional

import numpy as np

import basedsl_cute as cute
import basedsl_cute as cutlass
from basedsl_cute import Float32, Int32
from basedsl_cute.nvgpu import cpasync, warp
from basedsl_cute.runtime import from_dlpack


@dataclass(frozen=True)
class Mask:
    causal: cutlass.Constexpr[bool] = True
    window: Optional[int] = None


@dataclass
class SeqlenInfo:
    offset_q: Int32
    offset_k: Int32
    seqlen_q: Int32
    seqlen_k: Int32

    @staticmethod
    def create(cu_q: cute.Tensor, cu_k: cute.Tensor, b: Int32):
        oq = cu_q[b]
        ok = cu_k[b]
        return SeqlenInfo(oq, ok, cu_q[b + 1] - oq, cu_k[b + 1] - ok)


class Softmax:
    def __init__(self, scale_log2, rows):
        self.scale_log2 = scale_log2
        self.row_max = cute.make_rmem_tensor(rows, Float32)
        self.row_sum = cute.make_rmem_tensor(rows, Float32)

    def reset(self):
        self.row_max.fill(-Float32.inf)
        self.row_sum.fill(0.0)

    @cute.jit
    def online(
        self, acc_S_mn: cute.Tensor, acc_O_mn: cute.Tensor, is_first: cutlass.Constexpr[bool]
    ):
        for r in cutlass.range_constexpr(cute.size(self.row_max)):
            s = acc_S_mn[r, None].load()
            m_prev = self.row_max[r]
            m = s.reduce(cute.ReductionOp.MAX, -Float32.inf if is_first else m_prev, 0)
            m = cute.arch.warp_reduction(m, cute.arch.fmax, threads_in_group=4)
            self.row_max[r] = m
            m_cur = 0.0 if m == -Float32.inf else m
            p = cute.math.exp2(s * self.scale_log2 - m_cur * self.scale_log2, fastmath=True)
            if cutlass.const_expr(is_first):
                self.row_sum[r] = p.reduce(cute.ReductionOp.ADD, Float32.zero, 0)
            else:
                f = cute.math.exp2((m_prev - m_cur) * self.scale_log2, fastmath=True)
                self.row_sum[r] = p.reduce(cute.ReductionOp.ADD, self.row_sum[r] * f, 0)
                acc_O_mn[r, None].store(acc_O_mn[r, None].load() * f)
            acc_S_mn[r, None].store(p)


def convert_layout_acc_mn(l: cute.Layout):
    return cute.make_layout(
        ((l.shape[0][1], l.shape[1]), (l.shape[0][0], *l.shape[2:])),
        stride=((l.stride[0][1], l.stride[1]), (l.stride[0][0], *l.stride[2:])),
    )


def convert_layout_acc_A(l: cute.Layout):
    d = cute.logical_divide(l, (None, None, 2))
    return cute.make_layout(
        ((d.shape[0], d.shape[2][0]), d.shape[1], d.shape[2][1]),
        stride=((d.stride[0], d.stride[2][0]), d.stride[1], d.stride[2][1]),
    )


class FlashFwd:
    def __init__(
        self,
        dtype,
        head_dim,
        head_dim_v=None,
        qhead_per_kvhead=1,
        tile_m=64,
        tile_n=32,
        threads=128,
        stages=2,
        mask=Mask(),
    ):
        self.dtype = dtype
        self.hdim = head_dim
        self.hdimv = head_dim_v or head_dim
        self.g = qhead_per_kvhead
        self.m, self.n = tile_m, tile_n
        self.threads = threads
        self.stages = stages
        self.mask = mask

    @staticmethod
    def smem_atom(dtype, k):
        per_row = k * dtype.width // 8
        if per_row % 128 == 0:
            kk, b = 128 * 8 // dtype.width, 3
        elif per_row % 64 == 0:
            kk, b = 64 * 8 // dtype.width, 2
        else:
            kk, b = 32 * 8 // dtype.width, 1
        return cute.make_composed_layout(
            cute.make_swizzle(b, 3, 3), 0, cute.make_ordered_layout((8, kk), order=(1, 0))
        )

    @cute.jit
    def __call__(
        self,
        mQ: cute.Tensor,
        mK: cute.Tensor,
        mV: cute.Tensor,
        mO: cute.Tensor,
        mLSE: Optional[cute.Tensor],
        cu_q: cute.Tensor,
        cu_k: cute.Tensor,
        scale: Float32,
        max_seqlen_q: Int32,
    ):
        self.sQ_layout = cute.tile_to_shape(
            self.smem_atom(self.dtype, self.hdim), (self.m, self.hdim), (0, 1)
        )
        self.sK_layout = cute.tile_to_shape(
            self.smem_atom(self.dtype, self.hdim), (self.n, self.hdim, self.stages), (0, 1, 2)
        )
        self.sV_layout = cute.tile_to_shape(
            self.smem_atom(self.dtype, self.hdimv), (self.n, self.hdimv, self.stages), (0, 1, 2)
        )
        self.sO_layout = cute.tile_to_shape(
            self.smem_atom(self.dtype, self.hdimv), (self.m, self.hdimv), (0, 1)
        )

        @cute.struct
        class SharedStorage:
            sV: cute.struct.Align[
                cute.struct.MemRange[self.dtype, cute.cosize(self.sV_layout)], 1024
            ]
            sQ: cute.struct.Align[
                cute.struct.MemRange[
                    self.dtype, max(cute.cosize(self.sQ_layout), cute.cosize(self.sO_layout))
                ],
                1024,
            ]
            sK: cute.struct.Align[
                cute.struct.MemRange[self.dtype, cute.cosize(self.sK_layout)], 1024
            ]

        self.SharedStorage = SharedStorage
        nw = self.threads // 32
        mma_qk = cute.make_tiled_mma(
            warp.MmaF16BF16Op(self.dtype, Float32, (16, 8, 16)),
            (nw, 1, 1),
            permutation_mnk=(nw * 16, 16, 16),
        )
        mma_pv = cute.make_tiled_mma(
            warp.MmaF16BF16Op(self.dtype, Float32, (16, 8, 16)),
            (nw, 1, 1),
            permutation_mnk=(nw * 16, 16, 16),
        )
        LOG2_E = math.log2(math.e)
        batch = cute.size(cu_q) - 1
        self.kernel(mQ, mK, mV, mO, mLSE, cu_q, cu_k, scale * LOG2_E, scale, mma_qk, mma_pv).launch(
            grid=[cute.ceil_div(max_seqlen_q, self.m), cute.size(mQ.shape[1]), batch],
            block=[self.threads, 1, 1],
            smem=SharedStorage.size_in_bytes(),
        )

    @cute.kernel
    def kernel(
        self,
        mQ: cute.Tensor,
        mK: cute.Tensor,
        mV: cute.Tensor,
        mO: cute.Tensor,
        mLSE: Optional[cute.Tensor],
        cu_q: cute.Tensor,
        cu_k: cute.Tensor,
        scale_log2: Float32,
        scale: Float32,
        mma_qk: cute.TiledMma,
        mma_pv: cute.TiledMma,
    ):
        tidx, _, _ = cute.arch.thread_idx()
        m_block, head, b = cute.arch.block_idx()
        seq = SeqlenInfo.create(cu_q, cu_k, b)
        if m_block * self.m < seq.seqlen_q:
            self.one_tile(
                mQ, mK, mV, mO, mLSE, seq, scale_log2, scale, mma_qk, mma_pv, tidx, m_block, head
            )

    @cute.jit
    def load_tile(self, tiled, g, s, c, rows, width: Int32, tidx):
        thr = tiled.get_slice(tidx)
        tg, ts, tc = thr.partition_S(g), thr.partition_D(s), thr.partition_S(c)
        pred = cute.make_rmem_tensor(
            cute.make_layout(
                (ts.shape[0][1], cute.size(ts, mode=[1]), cute.size(ts, mode=[2])),
                stride=(cute.size(ts, mode=[2]), 0, 1),
            ),
            cutlass.Boolean,
        )
        for v in cutlass.range_constexpr(pred.shape[0]):
            for k in cutlass.range_constexpr(pred.shape[2]):
                pred[v, 0, k] = cute.elem_less(tc[(0, v), 0, k][1], width)
        for m in cutlass.range_constexpr(cute.size(ts.shape[1])):
            if cute.elem_less(tc[0, m, 0][0], rows):
                cute.copy(tiled, tg[None, m, None], ts[None, m, None], pred=pred[None, m, None])
            else:
                ts[None, m, None].fill(0)

    @cute.jit
    def one_tile(
        self,
        mQ,
        mK,
        mV,
        mO,
        mLSE,
        seq: SeqlenInfo,
        scale_log2,
        scale,
        mma_qk,
        mma_pv,
        tidx,
        m_block,
        head,
    ):
        kvh = head // self.g
        mQ_cur = cute.domain_offset((seq.offset_q, 0), mQ[None, head, None])
        mO_cur = cute.domain_offset((seq.offset_q, 0), mO[None, head, None])
        mK_cur = cute.domain_offset((seq.offset_k, 0), mK[None, kvh, None])
        mV_cur = cute.domain_offset((seq.offset_k, 0), mV[None, kvh, None])
        gQ = cute.local_tile(mQ_cur, (self.m, self.hdim), (m_block, 0))
        gO = cute.local_tile(mO_cur, (self.m, self.hdimv), (m_block, 0))
        gK = cute.local_tile(mK_cur, (self.n, self.hdim), (None, 0))
        gV = cute.local_tile(mV_cur, (self.n, self.hdimv), (None, 0))

        n_max = cute.ceil_div(seq.seqlen_k, self.n)
        n_min = Int32(0)
        if cutlass.const_expr(self.mask.causal):
            last = (m_block + 1) * self.m + seq.seqlen_k - seq.seqlen_q
            n_max = min(n_max, cute.ceil_div(last, self.n))
        if cutlass.const_expr(self.mask.window is not None):
            n_min = max(
                n_min, (m_block * self.m + seq.seqlen_k - seq.seqlen_q - self.mask.window) // self.n
            )

        smem = cutlass.utils.SmemAllocator()
        st = smem.allocate(self.SharedStorage)
        sQ = st.sQ.get_tensor(self.sQ_layout)
        sK = st.sK.get_tensor(self.sK_layout)
        sV = st.sV.get_tensor(self.sV_layout)
        sO = st.sQ.get_tensor(self.sO_layout)
        sVt = cute.composition(
            sV, cute.make_ordered_layout((self.hdimv, self.n, self.stages), order=(1, 0, 2))
        )

        universal = cute.make_copy_atom(
            cpasync.CopyG2SOp(cache_mode=cpasync.LoadCacheMode.GLOBAL),
            self.dtype,
            num_bits_per_copy=128,
        )

        def tiled_for(width):
            tpr = math.gcd(width, 64) // 8
            return cute.make_tiled_copy_tv(
                universal,
                cute.make_ordered_layout((self.threads // tpr, tpr), order=(1, 0)),
                cute.make_layout((1, 8)),
            )

        cp_k, cp_v = tiled_for(self.hdim), tiled_for(self.hdimv)
        cQ = cute.make_identity_tensor((self.m, self.hdim))
        cK = cute.make_identity_tensor((self.n, self.hdim))
        cV = cute.make_identity_tensor((self.n, self.hdimv))

        self.load_tile(cp_k, gQ, sQ, cQ, seq.seqlen_q - m_block * self.m, mQ.shape[2], tidx)
        cute.arch.cp_async_commit_group()
        n_block = n_max - 1
        if n_block >= n_min:
            self.load_tile(
                cp_k,
                gK[None, None, n_block],
                sK[None, None, 0],
                cK,
                seq.seqlen_k - n_block * self.n,
                mK.shape[2],
                tidx,
            )
        cute.arch.cp_async_commit_group()

        tq, tp = mma_qk.get_slice(tidx), mma_pv.get_slice(tidx)
        tSrQ = mma_qk.make_fragment_A(tq.partition_A(sQ))
        tSrK = mma_qk.make_fragment_B(tq.partition_B(sK[None, None, 0]))
        tOrV = mma_pv.make_fragment_B(tp.partition_B(sVt[None, None, 0]))
        acc_O = cute.make_fragment(tp.partition_shape_C((self.m, self.hdimv)), Float32)
        acc_O.fill(0.0)

        ld = cute.make_copy_atom(
            warp.LdMatrix8x8x16bOp(transpose=False, num_matrices=4), self.dtype
        )
        ldt = cute.make_copy_atom(
            warp.LdMatrix8x8x16bOp(transpose=True, num_matrices=4), self.dtype
        )
        c_q = cute.make_tiled_copy_A(ld, mma_qk).get_slice(tidx)
        c_k = cute.make_tiled_copy_B(ld, mma_qk).get_slice(tidx)
        c_v = cute.make_tiled_copy_B(ldt, mma_pv).get_slice(tidx)
        tSsQ, tSsK, tOsVt = c_q.partition_S(sQ), c_k.partition_S(sK), c_v.partition_S(sVt)
        tSrQ_v, tSrK_v, tOrV_v = c_q.retile(tSrQ), c_k.retile(tSrK), c_v.retile(tOrV)

        soft = Softmax(scale_log2, acc_O.shape[0][1] * acc_O.shape[1])
        soft.reset()
        acc_O_mn = cute.make_tensor(acc_O.iterator, convert_layout_acc_mn(acc_O.layout))

        cS = cute.make_identity_tensor((self.m, self.n))
        tScS = tq.partition_C(cS)
        tScS_mn = cute.make_tensor(tScS.iterator, convert_layout_acc_mn(tScS.layout))

        cute.arch.cp_async_wait_group(1)
        cute.arch.sync_threads()
        cute.copy(c_q, tSsQ, tSrQ_v)
        stage = Int32(0)
        while n_block >= n_min:
            # V of this block
            self.load_tile(
                cp_v,
                gV[None, None, n_block],
                sV[None, None, stage],
                cV,
                seq.seqlen_k - n_block * self.n,
                mV.shape[2],
                tidx,
            )
            cute.arch.cp_async_commit_group()
            cute.arch.cp_async_wait_group(1)
            cute.arch.sync_threads()
            acc_S = cute.make_fragment(tq.partition_shape_C((self.m, self.n)), Float32)
            acc_S.fill(0.0)
            cute.copy(c_k, tSsK[None, None, 0, stage], tSrK_v[None, None, 0])
            for k in cutlass.range_constexpr(cute.size(tSrQ.shape[2])):
                if k + 1 < cute.size(tSrQ.shape[2]):
                    cute.copy(c_k, tSsK[None, None, k + 1, stage], tSrK_v[None, None, k + 1])
                cute.gemm(mma_qk, acc_S, tSrQ[None, None, k], tSrK[None, None, k], acc_S)
            nxt = (stage + 1) % self.stages
            if n_block - 1 >= n_min:
                self.load_tile(
                    cp_k,
                    gK[None, None, n_block - 1],
                    sK[None, None, nxt],
                    cK,
                    seq.seqlen_k - (n_block - 1) * self.n,
                    mK.shape[2],
                    tidx,
                )
            cute.arch.cp_async_commit_group()
            # mask
            acc_S_mn = cute.make_tensor(acc_S.iterator, convert_layout_acc_mn(acc_S.layout))
            for r in cutlass.range_constexpr(cute.size(acc_S_mn, mode=[0])):
                row = m_block * self.m + tScS_mn[r, 0][0]
                limit = seq.seqlen_k - n_block * self.n
                lo = Int32(0)
                if cutlass.const_expr(self.mask.causal):
                    limit = min(limit, row + 1 + seq.seqlen_k - seq.seqlen_q - n_block * self.n)
                if cutlass.const_expr(self.mask.window is not None):
                    lo = row + seq.seqlen_k - seq.seqlen_q - self.mask.window - n_block * self.n
                for c in cutlass.range_constexpr(cute.size(acc_S_mn, mode=[1])):
                    col = tScS_mn[0, c][1]
                    acc_S_mn[r, c] = -Float32.inf if col >= limit or col < lo else acc_S_mn[r, c]
            soft.online(acc_S_mn, acc_O_mn, is_first=False)
            rP = cute.make_fragment_like(acc_S, self.dtype)
            rP.store(acc_S.load().to(self.dtype))
            tOrP = cute.make_tensor(rP.iterator, convert_layout_acc_A(rP.layout))
            cute.arch.cp_async_wait_group(1)
            cute.arch.sync_threads()
            cute.copy(c_v, tOsVt[None, None, None, stage], tOrV_v)
            for k in cutlass.range_constexpr(cute.size(tOrP.shape[2])):
                cute.gemm(mma_pv, acc_O, tOrP[None, None, k], tOrV[None, None, k], acc_O)
            stage = nxt
            n_block -= 1
        # epilogue
        tScO = tp.partition_C(cute.make_identity_tensor((self.m, self.hdimv)))
        tScO_mn = cute.make_tensor(tScO.iterator, convert_layout_acc_mn(tScO.layout))
        for r in cutlass.range_constexpr(cute.size(soft.row_sum)):
            total = cute.arch.warp_reduction_sum(soft.row_sum[r], threads_in_group=4)
            bad = total == 0.0 or total != total
            inv = cute.arch.rcp_approx(total if not bad else 1.0)
            if cutlass.const_expr(mLSE is not None):
                row = tScO_mn[r, 0][0]
                if tScO_mn[r, 0][1] == 0 and m_block * self.m + row < seq.seqlen_q:
                    mLSE[head, seq.offset_q + m_block * self.m + row] = (
                        soft.row_max[r] * scale + cute.math.log(total) if not bad else -Float32.inf
                    )
            acc_O_mn[r, None].store(acc_O_mn[r, None].load() * inv)
        rO = cute.make_fragment_like(acc_O, self.dtype)
        rO.store(acc_O.load().to(self.dtype))
        cute.arch.cp_async_wait_group(0)
        cute.arch.sync_threads()
        r2s = cute.make_tiled_copy_C(
            cute.make_copy_atom(cute.nvgpu.CopyUniversalOp(), self.dtype), mma_pv
        ).get_slice(tidx)
        cute.copy(r2s, r2s.retile(rO), r2s.partition_D(sO))
        cute.arch.sync_threads()
        st_atom = cute.make_copy_atom(
            cute.nvgpu.CopyUniversalOp(), self.dtype, num_bits_per_copy=128
        )
        tpr = math.gcd(self.hdimv, 64) // 8
        cp_o = cute.make_tiled_copy_tv(
            st_atom,
            cute.make_ordered_layout((self.threads // tpr, tpr), order=(1, 0)),
            cute.make_layout((1, 8)),
        )
        thr_o = cp_o.get_slice(tidx)
        tOsO, tOgO = thr_o.partition_S(sO), thr_o.partition_D(gO)
        tOcO = thr_o.partition_S(cute.make_identity_tensor((self.m, self.hdimv)))
        regs = cute.make_fragment_like(tOsO)
        cute.autovec_copy(tOsO, regs)
        for m in cutlass.range_constexpr(cute.size(regs.shape[1])):
            if tOcO[0, m, 0][0] < seq.seqlen_q - m_block * self.m:
                cute.copy(cp_o, regs[None, m, None], tOgO[None, m, None])


def run():
    check()
    check(causal=False, window=16, d=64, dv=32, lse=False)


def wrapped(x):
    view = from_dlpack(x, assumed_align=16).mark_layout_dynamic(leading_dim=x.ndim - 1)
    if x.ndim == 2:
        return view
    return view.mark_compact_shape_dynamic(mode=2, stride_order=(0, 1, 2), divisibility=8)


def check(d=32, dv=32, causal=True, window=None, lse=True):
    lengths = [(5, 9), (40, 40), (0, 7), (70, 33)]  # of queries and keys
    heads, of_a_key = 4, 2
    rng = np.random.default_rng(1)
    starts = [np.cumsum([0, *x]).astype(np.int32) for x in zip(*lengths, strict=True)]
    q = rng.standard_normal((starts[0][-1], heads, d)).astype(np.float16)
    k = rng.standard_normal((starts[1][-1], heads // of_a_key, d)).astype(np.float16)
    v = rng.standard_normal((starts[1][-1], heads // of_a_key, dv)).astype(np.float16)
    o = np.full((len(q), heads, dv), np.nan, np.float16)
    logs = np.full((heads, len(q)), np.nan, np.float32)
    attention = FlashFwd(
        cutlass.Float16, d, dv, of_a_key, 32, 32, threads=64, mask=Mask(causal, window)
    )
    scale = 1 / math.sqrt(d)
    args = (*map(wrapped, (q, k, v, o)), wrapped(logs) if lse else None)
    args += (*map(from_dlpack, starts), scale, max(n for n, _ in lengths))
    cute.compile(attention, *args)(*args)
    for i, sizes in enumerate(lengths):
        queries, keys = (slice(s[i], s[i + 1]) for s in starts)
        for h in range(heads):
            wide = (q[queries, h], k[keys, h // of_a_key], v[keys, h // of_a_key])
            wanted, sums = attended(*(x.astype(float) for x in wide), scale, sizes, causal, window)
            np.testing.assert_allclose(o[queries, h].astype(float), wanted, atol=4e-3)
            if lse:
                np.testing.assert_allclose(logs[h, queries], sums, atol=1e-3)


def attended(q, k, v, scale, sizes, causal, window):
    """The result and the logarithms of the sums; rows that see no key are 0 and -inf."""
    rows, columns = np.arange(sizes[0])[:, None], np.arange(sizes[1])
    last = rows + sizes[1] - sizes[0]
    seen = np.ones((sizes[0], sizes[1]), bool)
    if causal:
        seen &= columns <= last
    if window is not None:
        seen &= columns >= last - window
    weights = np.where(seen, np.exp(q @ k.T * scale), 0)
    sums = weights.sum(1)
    with np.errstate(divide="ignore"):
        return weights @ v / np.where(sums == 0, 1, sums)[:, None], np.log(sums)
