"""C = A B^T with K split among blocks, whose sums meet in one of three ways: by atomics, in turns,
or in the last block to finish.
"""

from enum import Enum, auto
from typing import NamedTuple

import numpy as np

import basedsl_cute as cute
import basedsl_cute as cutlass
from basedsl_cute import Float16, Float32, Int32
from basedsl_cute.nvgpu import warp
from basedsl_cute.runtime import from_dlpack


class Mode(Enum):
    ATOMIC = auto()
    SERIAL = auto()
    LAST = auto()


class Args(NamedTuple):
    a: cute.Tensor
    b: cute.Tensor
    c: cute.Tensor
    ws: cute.Tensor
    sem: cute.Tensor


@cute.struct
class Shared:
    flag: Int32
    buf_a: cute.struct.Align[cute.struct.MemRange[Float16, 32 * 40], 128]
    buf_b: cute.struct.Align[cute.struct.MemRange[Float16, 32 * 40], 128]


class SplitK:
    def __init__(self, splits, mode, tile=(32, 32, 32)):
        self.splits, self.mode, self.tile = splits, mode, tile

    @cute.jit
    def __call__(self, args: Args):
        M, N, K = self.tile
        op = warp.MmaF16BF16Op(Float16, Float32, (16, 8, 16))
        mma = cute.make_tiled_mma(op, (2, 2, 1))
        kt = cute.ceil_div(args.a.shape[1], K)
        per = cute.ceil_div(kt, self.splits)
        self.kernel(args, per, mma).launch(
            grid=(
                cute.ceil_div(args.c.shape[0], M),
                cute.ceil_div(args.c.shape[1], N),
                self.splits,
            ),
            block=(128, 1, 1),
        )

    @cute.kernel
    def kernel(self, args: Args, per: Int32, mma: cute.TiledMma):
        a, b, c, ws, sem = args
        M, N, K = self.tile
        tid, _, _ = cute.arch.thread_idx()
        bx, by, bz = cute.arch.block_idx()
        gx, _, gz = cute.arch.grid_dim()
        st = cutlass.utils.SmemAllocator().allocate(Shared)
        pad = cute.make_layout((32, 32), stride=(40, 1))
        sA, sB = st.buf_a.get_tensor(pad), st.buf_b.get_tensor(pad)
        gA = cute.local_tile(a, (M, K), (bx, None))
        gB = cute.local_tile(b, (N, K), (by, None))
        total = cute.size(gA, mode=[2])
        k0 = bz * per
        k1 = cutlass.min(k0 + per, total)
        thr = mma.get_slice(tid)
        acc = mma.make_fragment_C(mma.partition_shape_C((M, N)))
        acc.fill(0.0)
        ld = cute.make_copy_atom(cute.nvgpu.warp.LdMatrix8x8x16bOp(False, 4), Float16)
        cpa, cpb = (
            cute.make_tiled_copy_A(ld, mma),
            cute.make_tiled_copy_B(
                cute.make_copy_atom(warp.LdMatrix8x8x16bOp(False, 2), Float16), mma
            ),
        )
        rA = mma.make_fragment_A(mma.partition_shape_A((M, K)))
        rB = mma.make_fragment_B(mma.partition_shape_B((N, K)))
        for kt in range(k0, k1):
            for g, s, lim, blk in [(gA, sA, a.shape[0], bx), (gB, sB, b.shape[0], by)]:
                lanes = cute.make_layout((4, 32), stride=(32, 1))
                part_g = cute.local_partition(g[None, None, kt], lanes, tid)
                part_s = cute.local_partition(s, lanes, tid)
                part_c = cute.local_partition(cute.make_identity_tensor((32, 32)), lanes, tid)
                for i in cutlass.range_constexpr(cute.size(part_s)):
                    r, k = part_c[i]
                    if blk * 32 + r < lim and kt * K + k < a.shape[1]:
                        part_s[i] = part_g[i]
                    else:
                        part_s[i] = Float16(0)
            cute.arch.barrier()
            cute.copy(cpa, cpa.get_slice(tid).partition_S(sA), cpa.retile(rA))
            cute.copy(cpb, cpb.get_slice(tid).partition_S(sB), cpb.retile(rB))
            cute.gemm(mma, acc, rA, rB, acc)
            cute.arch.barrier()
        gC = cute.local_tile(c, (M, N), (bx, by))
        tC = thr.partition_C(gC)
        cC = thr.partition_C(cute.make_identity_tensor((M, N)))
        lim = (c.shape[0] - bx * M, c.shape[1] - by * N)
        if cutlass.const_expr(self.mode is Mode.ATOMIC):
            for i in range(cute.size(acc)):
                if cute.elem_less(cC[i], lim):
                    off = cute.crd2idx(cC[i], gC.layout)
                    cute.arch.atomic_add(
                        ptr=(gC.iterator + off).llvm_ptr, val=acc[i], sem="relaxed", scope="gpu"
                    )
        elif cutlass.const_expr(self.mode is Mode.SERIAL):
            lock = sem.iterator + (bx + by * gx)
            if tid == 0:
                while cute.arch.load(lock, Int32, sem="acquire", scope="gpu") != bz:
                    cute.arch.nanosleep(sleep_time=100)
            cute.arch.sync_threads()
            for i in range(cute.size(acc)):
                if cute.elem_less(cC[i], lim):
                    tC[i] = acc[i] + (tC[i] if bz > 0 else 0.0)
            cute.arch.fence_acq_rel_gpu()
            cute.arch.sync_threads()
            if tid == 0:
                cute.arch.store(lock, (bz + 1) % self.splits, sem="release", scope="gpu")
        else:
            tW = thr.partition_C(cute.local_tile(ws, (M, N, 1), (bx, by, bz))[None, None, 0])
            cute.autovec_copy(acc, tW)
            cute.arch.fence_acq_rel_gpu()
            cute.arch.sync_threads()
            if tid == 0:
                st.flag = cute.arch.atomic_add(
                    sem.iterator + bx + by * gx, Int32(1), sem="acq_rel", scope="gpu"
                )
            cute.arch.sync_threads()
            if st.flag == gz - 1:
                cute.arch.fence_acq_rel_gpu()
                acc.fill(0.0)
                gW = cute.local_tile(ws, (M, N, 1), (bx, by, None))
                for z in range(gz):
                    acc.store(acc.load() + thr.partition_C(gW[None, None, 0, z]).load())
                for i in range(cute.size(acc)):
                    if cute.elem_less(cC[i], lim):
                        tC[i] = acc[i]
                if tid == 0:
                    sem[bx + by * gx] = 0


def run():
    check(40, 70, 200, 3)
    check(1, 1, 8, 3)
    check(33, 31, 31, 1)


def check(m, n, k, splits):
    rng = np.random.default_rng(3)
    a, b = (rng.integers(-3, 4, s).astype(np.float16) for s in ((m, k), (n, k)))
    for mode in Mode:
        c = (
            np.zeros((m, n), np.float32)
            if mode is Mode.ATOMIC
            else np.full((m, n), np.nan, np.float32)
        )
        ws = np.full((64, 96, splits), np.nan, np.float32)
        sem = np.zeros(64, np.int32)
        ts = [from_dlpack(x).mark_layout_dynamic(leading_dim=x.ndim - 1) for x in (a, b, c)]
        args = Args(*ts, from_dlpack(ws), from_dlpack(sem))
        SplitK(splits, mode)(args)
        np.testing.assert_allclose(c, a.astype(float) @ b.astype(float).T)
        assert not sem.any() or mode is Mode.ATOMIC
