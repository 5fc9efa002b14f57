"""Causal linear attention in chunks: o = tril(q k^T) v + q S, then S += k^T v. The state S stays in
registers, scores go from an accumulator into an operand, and ldmatrix transposes k, v and S.
"""

import ml_dtypes
import numpy as np

import basedsl_cute as cute
import basedsl_cute as cutlass
from basedsl_cute import Float32, utils
from basedsl_cute.nvgpu import warp
from basedsl_cute.runtime import from_dlpack

C, D = 64, 32  # chunk, head dim


@cute.kernel
def linattn(q: cute.Tensor, k: cute.Tensor, v: cute.Tensor, o: cute.Tensor):
    tid = cute.arch.thread_idx()[0]
    h = cute.arch.block_idx()[0]
    L = q.shape[1]
    dt = q.element_type
    row = cute.make_layout((C, D), stride=(D + 8, 1))
    sm = utils.SmemAllocator()
    sQ, sK, sV = (sm.allocate_tensor(dt, row, 16) for _ in range(3))
    sS = sm.allocate_tensor(dt, cute.make_layout((D, D), stride=(D + 8, 1)), 16)

    def transposed(s):
        return cute.make_tensor(s.iterator, cute.select(s.layout, mode=[1, 0]))

    op = warp.MmaF16BF16Op(dt, Float32, (16, 8, 16))
    mma = cute.make_tiled_mma(op, (4, 1, 1), (64, 16, 16))  # rows of the chunk over warps
    mmaS = cute.make_tiled_mma(op, (2, 2, 1), (32, 32, 16))
    ld = cute.make_copy_atom(warp.LdMatrix8x8x16bOp(False, 4), dt)
    ldt = cute.make_copy_atom(warp.LdMatrix8x8x16bOp(True, 4), dt)

    def fragA(m, s, atom):
        f = m.make_fragment_A(m.get_slice(tid).partition_A(s))
        c = cute.make_tiled_copy_A(atom, m)
        cute.copy(c, c.get_slice(tid).partition_S(s), c.retile(f))
        return f

    def fragB(m, s, atom):
        f = m.make_fragment_B(m.get_slice(tid).partition_B(s))
        c = cute.make_tiled_copy_B(atom, m)
        cute.copy(c, c.get_slice(tid).partition_S(s), c.retile(f))
        return f

    S = mmaS.make_fragment_C(mmaS.partition_shape_C((D, D)))
    S.fill(0.0)
    cS = mma.get_slice(tid).partition_C(cute.make_identity_tensor((C, C)))
    for chunk in cutlass.range(cute.ceil_div(L, C)):
        cute.arch.sync_threads()
        for src, dst in ((q, sQ), (k, sK), (v, sV)):
            for i in cutlass.range(tid, C * D, 128):
                r, c = i // D, i % D
                dst[r, c] = src[h, chunk * C + r, c] if chunk * C + r < L else dt(0)
        half = cute.make_fragment_like(S, dt)
        half.store(S.load().to(dt))
        cute.autovec_copy(half, mmaS.get_slice(tid).partition_C(sS))
        cute.arch.sync_threads()
        rQ = fragA(mma, sQ, ld)
        P = mma.make_fragment_C(mma.partition_shape_C((C, C)))
        P.fill(0.0)
        cute.gemm(mma, P, rQ, fragB(mma, sK, ld), P)
        for i in cutlass.range_constexpr(cute.size(P)):
            P[i] = P[i] if cS[i][0] >= cS[i][1] else 0.0
        rP = cute.make_fragment_like(P, dt)
        rP.store(P.load().to(dt))
        # ((2,2),M,N) -> ((2,2,2),M,N/2)
        l = cute.logical_divide(rP.layout, (None, None, 2))
        rPA = cute.make_tensor(
            rP.iterator,
            cute.make_layout(
                ((*l.shape[0], l.shape[2][0]), l.shape[1], l.shape[2][1]),
                stride=((*l.stride[0], l.stride[2][0]), l.stride[1], l.stride[2][1]),
            ),
        )
        O = mma.make_fragment_C(mma.partition_shape_C((C, D)))
        O.fill(0.0)
        cute.gemm(mma, O, rPA, fragB(mma, transposed(sV), ldt), O)
        cute.gemm(
            mma, O, rQ, fragB(mma, transposed(sS), ldt), O
        )  # q (C,D) @ S (D,D): B is (N=D, K=D) = S^T
        gO = cute.local_tile(o[h, None, None], (C, D), (chunk, 0))
        tO, cO = (
            mma.get_slice(tid).partition_C(gO),
            mma.get_slice(tid).partition_C(cute.make_identity_tensor((C, D))),
        )
        for i in cutlass.range_constexpr(cute.size(O)):
            if chunk * C + cO[i][0] < L:
                tO[i] = O[i].to(o.element_type)
        # S += k^T v
        cute.gemm(mmaS, S, fragA(mmaS, transposed(sK), ldt), fragB(mmaS, transposed(sV), ldt), S)


@cute.jit
def run_linattn(q: cute.Tensor, k: cute.Tensor, v: cute.Tensor, o: cute.Tensor):
    linattn(q, k, v, o).launch(grid=(q.shape[0], 1, 1), block=(128, 1, 1))


def run(H=2, L=150):
    rng = np.random.default_rng(0)
    q, k, v = (rng.integers(-1, 2, (H, L, D)).astype(ml_dtypes.bfloat16) for _ in range(3))
    o = np.full((H, L, D), np.nan, np.float32)
    run_linattn(q, k, v, from_dlpack(o).mark_layout_dynamic())
    Q, K, V = (t.astype(float) for t in (q, k, v))
    A = np.tril(np.einsum("hld,hmd->hlm", Q, K))
    want = A @ V
    np.testing.assert_allclose(o, want, atol=1.5)
