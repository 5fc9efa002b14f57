"""Cross entropy and the likeliest class of h W^T, whose logits are never written: of each row a
running maximum, sum and index in registers, merged across lanes by shuffles and across warps in
shared memory.
"""

from typing import NamedTuple

import ml_dtypes
import numpy as np

import basedsl_cute as cute
import basedsl_cute as cutlass
from basedsl_cute import BFloat16, Float32, Int32, utils
from basedsl_cute.nvgpu import warp


class Stat(NamedTuple):
    m: Float32
    s: Float32
    arg: Int32


def merge(a: Stat, b: Stat) -> Stat:
    m = cutlass.max(a.m, b.m)
    s = a.s * cute.math.exp(a.m - m) + b.s * cute.math.exp(b.m - m)
    arg = a.arg
    if b.m > a.m or (b.m == a.m and b.arg < a.arg):
        arg = b.arg
    return Stat(m, s, arg)


merge = cute.jit(merge)


def quad(stat: Stat) -> Stat:
    for off in (1, 2):
        stat = merge(stat, Stat(*(cute.arch.shuffle_sync_bfly(v, offset=off) for v in stat)))
    return stat


class CrossEntropy:
    M, N, K = 32, 64, 32
    warps_m, warps_n = 1, 4

    @cute.jit
    def __call__(
        self, h: cute.Tensor, w: cute.Tensor, t: cute.Tensor, loss: cute.Tensor, arg: cute.Tensor
    ):
        mma = cute.make_tiled_mma(
            warp.MmaF16BF16Op(BFloat16, Float32, (16, 8, 16)), (self.warps_m, self.warps_n, 1)
        )
        self.kernel(h, w, t, loss, arg, mma).launch(
            grid=(cute.ceil_div(h.shape[0], self.M),), block=(mma.size,)
        )

    @cute.kernel
    def kernel(
        self,
        h: cute.Tensor,
        w: cute.Tensor,
        t: cute.Tensor,
        loss: cute.Tensor,
        arg: cute.Tensor,
        mma: cute.TiledMma,
    ):
        M, N, K = self.M, self.N, self.K
        tid, _, _ = cute.arch.thread_idx()
        b = cute.arch.block_idx()[0]
        thr = mma.get_slice(tid)
        sm = utils.SmemAllocator()
        sh = sm.allocate_tensor(BFloat16, cute.make_layout((M, K), stride=(K + 8, 1)), 16)
        sw = sm.allocate_tensor(BFloat16, cute.make_layout((N, K), stride=(K + 8, 1)), 16)
        sM = sm.allocate_tensor(Float32, cute.make_layout((M, self.warps_n)), 16)
        sS = sm.allocate_tensor(Float32, cute.make_layout((M, self.warps_n)), 16)
        sI = sm.allocate_tensor(Int32, cute.make_layout((M, self.warps_n)), 16)
        sT = sm.allocate_tensor(Float32, cute.make_layout((M,)), 16)
        cC = thr.partition_C(cute.make_identity_tensor((M, N)))
        acc = mma.make_fragment_C(mma.partition_shape_C((M, N)))
        rows = [(v, i) for i in range(acc.shape[1]) for v in range(2)]
        stats = [Stat(Float32(-1e30), Float32(0.0), Int32(0)) for _ in rows]
        for nt in cutlass.range(cute.ceil_div(w.shape[0], N)):
            acc.fill(0.0)
            for kt in cutlass.range(cute.ceil_div(h.shape[1], K)):
                for i in cutlass.range(tid, M * K, mma.size):
                    r, k = i // K, i % K
                    ok = b * M + r < h.shape[0] and kt * K + k < h.shape[1]
                    sh[r, k] = h[b * M + r, kt * K + k] if ok else BFloat16(0)
                for i in cutlass.range(tid, N * K, mma.size):
                    r, k = i // K, i % K
                    ok = nt * N + r < w.shape[0] and kt * K + k < h.shape[1]
                    sw[r, k] = w[nt * N + r, kt * K + k] if ok else BFloat16(0)
                cute.arch.sync_threads()
                rA, rB = (
                    mma.make_fragment_A(thr.partition_A(sh)),
                    mma.make_fragment_B(thr.partition_B(sw)),
                )
                cute.basic_copy(thr.partition_A(sh), rA)
                cute.basic_copy(thr.partition_B(sw), rB)
                cute.gemm(mma, acc, rA, rB, acc)
                cute.arch.sync_threads()
            for q, (v, i) in enumerate(rows):
                for j in cutlass.range_constexpr(acc.shape[2]):
                    for u in cutlass.range_constexpr(2):
                        x = acc[(u, v), i, j]
                        r, c = cC[(u, v), i, j]
                        col = nt * N + c
                        if col < w.shape[0]:
                            stats[q] = merge(stats[q], Stat(x, Float32(1.0), col))
                            row = b * M + r
                            if row < h.shape[0]:
                                if t[row] == col:
                                    sT[r] = x
        for q, (v, i) in enumerate(rows):
            st = quad(stats[q])
            r = cC[(0, v), i, 0][0]
            if tid % 4 == 0:
                wn = tid // 32 // self.warps_m
                sM[r, wn], sS[r, wn], sI[r, wn] = st
        cute.arch.sync_threads()
        if tid < M:
            st = Stat(sM[tid, 0], sS[tid, 0], sI[tid, 0])
            for u in cutlass.range(1, self.warps_n):
                st = merge(st, Stat(sM[tid, u], sS[tid, u], sI[tid, u]))
            if b * M + tid < h.shape[0]:
                loss[b * M + tid] = cute.math.log(st.s) + st.m - sT[tid]
                arg[b * M + tid] = st.arg


def run(m=45, v=150, k=40):
    rng = np.random.default_rng(0)
    h, w = (rng.standard_normal(s).astype(ml_dtypes.bfloat16) for s in ((m, k), (v, k)))
    t = rng.integers(0, v, m).astype(np.int32)
    loss, arg = np.full(m, np.nan, np.float32), np.full(m, -1, np.int32)
    CrossEntropy()(h, w, t, loss, arg)
    L = h.astype(float) @ w.astype(float).T
    mx = L.max(1)
    want = np.log(np.exp(L - mx[:, None]).sum(1)) + mx - L[np.arange(m), t]
    np.testing.assert_allclose(loss, want, atol=1e-4)
    np.testing.assert_array_equal(arg, L.argmax(1))
