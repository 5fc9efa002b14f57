"""An epilogue through shared memory that the main loop is done with (a union): pieces of the tile
in two buffers by stmatrix, transposed where the result is; bias and activation of one's choice.
"""

import enum
from typing import NamedTuple

import numpy as np

import basedsl_cute as cute
import basedsl_cute as cutlass
from basedsl_cute import Float16, Float32, utils
from basedsl_cute.nvgpu import warp
from basedsl_cute.runtime import from_dlpack


class Act(enum.Enum):
    NONE = 0
    RELU = 1
    GELU = 2
    SILU = 3


class Bias(NamedTuple):
    vec: cute.Tensor
    scale: Float32


class EpiGemm:
    M, N, K = 64, 64, 32
    epi = (64, 32)

    def __init__(self, act: Act, transpose_out: bool, with_bias: bool):
        self.act, self.t, self.with_bias = act, transpose_out, with_bias

    @cute.jit
    def activation(self, x: cute.TensorSSA):
        if cutlass.const_expr(self.act is Act.RELU):
            return cute.where(x > 0, x, cute.zeros_like(x))
        elif self.act is Act.GELU:
            return 0.5 * x * (1.0 + cute.math.tanh(0.7978845608 * (x + 0.044715 * x * x * x)))
        elif self.act is Act.SILU:
            return x * cute.math.rcp(1.0 + cute.math.exp(-x, fastmath=True), approx=True)
        return x

    @cute.jit
    def __call__(self, a: cute.Tensor, b: cute.Tensor, c: cute.Tensor, bias, stream=None):
        mma = cute.make_tiled_mma(
            warp.MmaF16BF16Op(Float16, Float32, (16, 8, 16)),
            (2, 2, 1),
            permutation_mnk=(32, 32, 16),
        )
        c_layout = utils.LayoutEnum.from_tensor(c)
        atomA = cute.make_composed_layout(
            cute.make_swizzle(2, 3, 3), 0, cute.make_layout((8, 32), stride=(32, 1))
        )
        lA, lB = (
            cute.tile_to_shape(atomA, (self.M, self.K), (0, 1)),
            cute.tile_to_shape(atomA, (self.N, self.K), (0, 1)),
        )
        lC = (
            cute.make_layout((*self.epi, 2), stride=(40, 1, 64 * 40))
            if not self.t
            else cute.make_layout((*self.epi, 2), stride=(1, 72, 72 * 32))
        )
        self.c_n_major = c_layout.is_n_major_c()

        @cute.struct
        class Mainloop:
            a: cute.struct.Align[cute.struct.MemRange[Float16, cute.cosize(lA)], 128]
            b: cute.struct.Align[cute.struct.MemRange[Float16, cute.cosize(lB)], 128]

        @cute.struct
        class Epilogue:
            c: cute.struct.Align[cute.struct.MemRange[Float16, cute.cosize(lC)], 128]

        @cute.union
        class Storage:
            main: Mainloop
            epi: Epilogue

        self.Storage = Storage
        self.kernel(a, b, c, bias, lA, lB, lC, mma).launch(
            grid=(*cute.ceil_div(c.shape, (self.M, self.N)), 1),
            block=(128, 1, 1),
            smem=Storage.size_in_bytes(),
            stream=stream,
        )

    @cute.kernel
    def kernel(
        self,
        a: cute.Tensor,
        b: cute.Tensor,
        c: cute.Tensor,
        bias,
        lA: cute.ComposedLayout,
        lB: cute.ComposedLayout,
        lC: cute.Layout,
        mma: cute.TiledMma,
    ):
        tid, _, _ = cute.arch.thread_idx()
        bx, by, _ = cute.arch.block_idx()
        st = utils.SmemAllocator().allocate(self.Storage, byte_alignment=128)
        sA, sB, sC = st.main.a.get_tensor(lA), st.main.b.get_tensor(lB), st.epi.c.get_tensor(lC)
        thr = mma.get_slice(tid)
        acc = thr.make_fragment_C(thr.partition_shape_C((self.M, self.N)))
        acc.fill(0.0)
        rA, rB = thr.make_fragment_A(thr.partition_A(sA)), thr.make_fragment_B(thr.partition_B(sB))
        ld = cute.make_copy_atom(warp.LdMatrix8x8x16bOp(num_matrices=4), Float16)
        cA, cB = cute.make_tiled_copy_A(ld, mma), cute.make_tiled_copy_B(ld, mma)
        for k in range(cute.ceil_div(a.shape[1], self.K)):
            for s, g, rows, blk in ((sA, a, self.M, bx), (sB, b, self.N, by)):
                for i in range(tid, rows * self.K, 128):
                    r, kk = blk * rows + i // self.K, k * self.K + i % self.K
                    s[i // self.K, i % self.K] = (
                        g[r, kk] if cute.elem_less((r, kk), g.shape) else Float16(0)
                    )
            cute.arch.sync_threads()
            cute.copy(cA, cA.get_slice(tid).partition_S(sA), cA.retile(rA))
            cute.copy(cB, cB.get_slice(tid).partition_S(sB), cB.retile(rB))
            cute.gemm(mma, acc, rA, rB, acc)
            cute.arch.sync_threads()
        # epilogue: by sub-tiles of 32 columns
        st_atom = cute.make_copy_atom(warp.StMatrix8x8x16bOp(self.t, 4), Float16)
        c_atom = cute.make_tiled_copy_C_atom(st_atom, mma)
        r2s = cute.make_tiled_copy_S(st_atom, c_atom)
        thr_r2s = r2s.get_slice(tid)
        tRS_sC = thr_r2s.partition_D(sC)
        tRS_rAcc = r2s.retile(acc)
        gC = cute.local_tile(c, (self.M, self.N), (bx, by))
        idC = cute.local_tile(cute.make_identity_tensor(c.shape), (self.M, self.N), (bx, by))
        tCid = thr.partition_C(idC)
        if cutlass.const_expr(self.with_bias):
            for i in cutlass.range_constexpr(cute.size(acc)):
                n = tCid[i][1]
                if n < c.shape[1]:
                    acc[i] = acc[i] + bias.vec[n].to(Float32) * bias.scale
        n_sub = self.N // self.epi[1]
        rD_shape = cute.shape(thr_r2s.partition_S(sC))
        for sub in cutlass.range_constexpr(n_sub):
            buf = sub % 2
            rD = cute.make_rmem_tensor(rD_shape[:3], Float32)
            size = cute.size(rD)
            for i in cutlass.range_constexpr(size):
                rD[i] = tRS_rAcc[sub * size + i]
            out = cute.make_rmem_tensor_like(rD, Float16)
            out.store(self.activation(rD.load()).to(Float16))
            cute.copy(r2s, out, tRS_sC[None, None, None, buf])
            cute.arch.sync_threads()
            gSub = cute.local_tile(gC, self.epi, (0, sub))
            iSub = cute.local_tile(idC, self.epi, (0, sub))
            for i in cutlass.range(tid, cute.size(self.epi), 128):
                at = (i // 32, i % 32) if self.c_n_major else (i % 64, i // 64)
                if cute.elem_less(iSub[at], c.shape):
                    gSub[at] = sC[(*at, buf)]
            cute.arch.sync_threads()


def d(x, leading):
    return from_dlpack(x).mark_layout_dynamic(leading_dim=leading)


def run(m=70, n=90, k=40):
    rng = np.random.default_rng(0)
    a, b = (rng.standard_normal(s).astype(np.float16) for s in ((m, k), (n, k)))
    v = rng.standard_normal(n).astype(np.float16)
    ref = a.astype(float) @ b.astype(float).T
    f = {
        Act.NONE: lambda x: x,
        Act.RELU: lambda x: np.maximum(x, 0),
        Act.GELU: lambda x: 0.5 * x * (1 + np.tanh(0.7978845608 * (x + 0.044715 * x**3))),
        Act.SILU: lambda x: x / (1 + np.exp(-x)),
    }
    for act in Act:
        t = act in (Act.RELU, Act.SILU)
        wb = act in (Act.GELU, Act.RELU)
        base = np.full((n, m) if t else (m, n), np.nan, np.float16)
        c = base.T if t else base
        EpiGemm(act, t, wb)(
            d(a, 1), d(b, 1), d(c, 0 if t else 1), Bias(d(v, 0), 0.5) if wb else None
        )
        want = f[act](ref + (0.5 * v.astype(float) if wb else 0))
        np.testing.assert_allclose(c.astype(float), want, atol=2e-2, rtol=2e-3)
