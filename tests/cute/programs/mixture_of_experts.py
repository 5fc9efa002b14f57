"""A layer of experts: blocks gather the tokens of their expert by cp.async, multiply with two
weights at once, and scatter silu(x w1) * (x w3), weighted, by atomics.
"""

import numpy as np

import basedsl_cute as cute
import basedsl_cute as cutlass
from basedsl_cute import Float16, Float32, Int32, utils
from basedsl_cute.nvgpu import cpasync, warp
from basedsl_cute.runtime import from_dlpack

BM, BN, BK = 32, 32, 32


@cute.kernel
def moe(
    x: cute.Tensor,
    w1: cute.Tensor,
    w3: cute.Tensor,
    tok: cute.Tensor,
    offs: cute.Tensor,
    gate: cute.Tensor,
    out: cute.Tensor,
    mma: cute.TiledMma,
):
    tid, _, _ = cute.arch.thread_idx()
    bm, bn, e = cute.arch.block_idx()
    first, last = offs[e], offs[e + 1]
    if first + bm * BM >= last:
        return
    sm = utils.SmemAllocator()
    lay = cute.make_layout((BM, BK, 2), stride=(BK + 8, 1, BM * (BK + 8)))
    sx, s1, s3 = (sm.allocate_tensor(Float16, lay, 128) for _ in "abc")
    atom = cute.make_copy_atom(cpasync.CopyG2SOp(zero_fill=True), Float16, num_bits_per_copy=128)
    r, v = tid // 4, tid % 4
    slot = first + bm * BM + r
    live = slot < last
    row = tok[slot] if live else 0
    K = x.shape[1]

    def load(kt, st):
        kk = kt * BK + v * 8
        cute.copy_atom_call(
            atom,
            cute.local_tile(x[row, None], (8,), (kk // 8,)),
            cute.local_tile(sx[r, None, st], (8,), (v,)),
            pred=live and kk < K,
        )
        for w, s in ((w1, s1), (w3, s3)):
            n = bn * BN + r
            cute.copy_atom_call(
                atom,
                cute.local_tile(w[e, n, None], (8,), (kk // 8,)),
                cute.local_tile(s[r, None, st], (8,), (v,)),
                pred=n < w.shape[1] and kk < K,
            )
        cute.arch.cp_async_commit_group()

    thr = mma.get_slice(tid)
    a1, a3 = (mma.make_fragment_C(mma.partition_shape_C((BM, BN))) for _ in range(2))
    a1.fill(0)
    a3.fill(0)
    ldA = cute.make_tiled_copy_A(
        cute.make_copy_atom(warp.LdMatrix8x8x16bOp(False, 4), Float16), mma
    )
    ldB = cute.make_tiled_copy_B(
        cute.make_copy_atom(warp.LdMatrix8x8x16bOp(False, 2), Float16), mma
    )
    fA = mma.make_fragment_A(mma.partition_shape_A((BM, BK)))
    f1, f3 = (mma.make_fragment_B(mma.partition_shape_B((BN, BK))) for _ in range(2))
    load(0, 0)
    kts = cute.ceil_div(K, BK)
    for kt in cutlass.range(kts):
        cute.arch.cp_async_wait_group(0)
        cute.arch.sync_threads()
        st = kt & 1
        if kt + 1 < kts:
            load(kt + 1, st ^ 1)
        cute.copy(ldA, ldA.get_slice(tid).partition_S(sx)[None, None, None, st], ldA.retile(fA))
        for f, s in ((f1, s1), (f3, s3)):
            cute.copy(ldB, ldB.get_slice(tid).partition_S(s)[None, None, None, st], ldB.retile(f))
        cute.gemm(mma, a1, fA, f1, a1)
        cute.gemm(mma, a3, fA, f3, a3)
    h = a1.load()
    h = h / (1.0 + cute.math.exp(-h)) * a3.load()
    a1.store(h)
    c = thr.partition_C(cute.make_identity_tensor((BM, BN)))
    for i in cutlass.range_constexpr(cute.size(a1)):
        rr, cc = c[i]
        s = first + bm * BM + rr
        if s < last and bn * BN + cc < out.shape[1]:
            t = tok[s]
            cute.arch.atomic_add(
                out.iterator + cute.crd2idx((t, bn * BN + cc), out.layout), a1[i] * gate[s]
            )


@cute.jit
def host(
    x: cute.Tensor,
    w1: cute.Tensor,
    w3: cute.Tensor,
    tok: cute.Tensor,
    offs: cute.Tensor,
    gate: cute.Tensor,
    out: cute.Tensor,
    most: Int32,
):
    mma = cute.make_tiled_mma(warp.MmaF16BF16Op(Float16, Float32, (16, 8, 16)), (2, 2, 1))
    moe(x, w1, w3, tok, offs, gate, out, mma).launch(
        grid=(cute.ceil_div(most, BM), cute.ceil_div(out.shape[1], BN), w1.shape[0]),
        block=(128, 1, 1),
    )


def run(T=50, K=72, H=44, E=5, top=2):
    rng = np.random.default_rng(0)
    x = rng.standard_normal((T, K)).astype(np.float16)
    w1, w3 = (rng.standard_normal((E, H, K)).astype(np.float16) * np.float16(0.2) for _ in range(2))
    choice = np.array([rng.permutation(E - 1)[:top] for _ in range(T)])  # the last expert gets none
    g = rng.random((T, top)).astype(np.float32)
    order = np.argsort(choice.ravel(), kind="stable")
    tok = (order // top).astype(np.int32)
    gate = g.ravel()[order]
    counts = np.bincount(choice.ravel(), minlength=E)
    offs = np.concatenate([[0], np.cumsum(counts)]).astype(np.int32)
    out = np.zeros((T, H), np.float32)

    def f(t):
        return from_dlpack(t, assumed_align=16).mark_compact_shape_dynamic(
            t.ndim - 1, tuple(range(t.ndim)), divisibility=8
        )

    host(f(x), f(w1), f(w3), tok, offs, gate, out, int(counts.max()))
    want = np.zeros((T, H))
    for t in range(T):
        for j in range(top):
            e = choice[t, j]
            a, b = (x[t].astype(float) @ w[e].astype(float).T for w in (w1, w3))
            want[t] += g[t, j] * a / (1 + np.exp(-a)) * b
    np.testing.assert_allclose(out, want, atol=1e-3, rtol=1e-3)
