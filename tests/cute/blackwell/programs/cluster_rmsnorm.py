"""RMSNorm over a cluster: the blocks of a row exchange their sums of squares by inline PTX."""

import math
import operator
from typing import Callable

import cuda.bindings.driver as cuda
import cutlass
import cutlass.cute as cute
import cutlass.utils as utils
import numpy as np
from cutlass import Boolean, Float32, Int32, Int64
from cutlass._mlir.dialects import llvm
from cutlass.cute.nvgpu import cpasync
from cutlass.cute.runtime import from_dlpack
from cutlass.cutlass_dsl import T, dsl_user_op


@dsl_user_op
def set_block_rank(smem_ptr: cute.Pointer, peer: Int32, *, loc=None, ip=None) -> Int32:
    smem_ptr_i32 = smem_ptr.toint(loc=loc, ip=ip).ir_value()
    return Int32(
        llvm.inline_asm(
            T.i32(),
            [smem_ptr_i32, peer.ir_value(loc=loc, ip=ip)],
            "mapa.shared::cluster.u32 $0, $1, $2;",
            "=r,r,r",
            has_side_effects=False,
            is_align_stack=False,
            asm_dialect=llvm.AsmDialect.AD_ATT,
        )
    )


@dsl_user_op
def store_shared_remote(
    val: Float32, smem_ptr: cute.Pointer, mbar_ptr: cute.Pointer, peer: Int32, *, loc=None, ip=None
) -> None:
    remote = set_block_rank(smem_ptr, peer, loc=loc, ip=ip).ir_value()
    remote_bar = set_block_rank(mbar_ptr, peer, loc=loc, ip=ip).ir_value()
    llvm.inline_asm(
        None,
        [remote, val.ir_value(loc=loc, ip=ip), remote_bar],
        "st.async.shared::cluster.mbarrier::complete_tx::bytes.f32 [$0], $1, [$2];",
        "r,f,r",
        has_side_effects=True,
        is_align_stack=False,
        asm_dialect=llvm.AsmDialect.AD_ATT,
    )


@cute.jit
def warp_reduce(val: Float32, op: Callable, width: cutlass.Constexpr[int] = 32):
    for i in cutlass.range_constexpr(int(math.log2(width))):
        val = op(val, cute.arch.shuffle_sync_bfly(val, offset=1 << i))
    return val


class RmsNorm:
    def __init__(self, dtype, N):
        self.N, self.cluster_n, self.threads = N, 2, 128
        self.vec = 128 // dtype.width

    @cute.jit
    def __call__(
        self, mX: cute.Tensor, mW: cute.Tensor, mO: cute.Tensor, eps: Float32, stream: cuda.CUstream
    ):
        tpr = 32
        thr_layout = cute.make_ordered_layout((self.threads // tpr, tpr), order=(1, 0))
        val_layout = cute.make_ordered_layout((1, self.vec), order=(1, 0))
        tiler_mn, tv_layout = cute.make_layout_tv(thr_layout, val_layout)
        blocks_n = self.N // self.cluster_n // (tpr * self.vec)
        tiler_mn = (tiler_mn[0], tiler_mn[1] * blocks_n)
        tv_layout = cute.make_layout(
            ((tpr, self.threads // tpr), (self.vec, blocks_n)),
            stride=((self.vec * tiler_mn[0], 1), (tiler_mn[0], tiler_mn[0] * self.vec * tpr)),
        )
        rows = cute.make_layout((tiler_mn[0],), stride=(0,))
        mW = cute.make_tensor(mW.iterator, cute.prepend(mW.layout, rows))
        self.kernel(mX, mW, mO, eps, tv_layout, tiler_mn).launch(
            grid=[cute.ceil_div(mX.shape[0], tiler_mn[0]), self.cluster_n, 1],
            block=[self.threads, 1, 1],
            cluster=[1, self.cluster_n, 1],
            stream=stream,
        )

    @cute.kernel
    def kernel(
        self,
        mX: cute.Tensor,
        mW: cute.Tensor,
        mO: cute.Tensor,
        eps: Float32,
        tv_layout: cute.Layout,
        tiler_mn: cute.Shape,
    ):
        tidx, _, _ = cute.arch.thread_idx()
        bidx, cluster_y, _ = cute.arch.block_idx()
        warp_idx, lane = cute.arch.warp_idx(), cute.arch.lane_idx()
        smem = utils.SmemAllocator()
        sX = smem.allocate_tensor(
            mX.element_type, cute.make_ordered_layout(tiler_mn, order=(1, 0)), byte_alignment=16
        )
        buf = smem.allocate_tensor(
            Float32, cute.make_layout((tiler_mn[0], self.cluster_n)), byte_alignment=8
        )
        mbar = smem.allocate_array(Int64, num_elems=1)
        if tidx == 0:
            cute.arch.mbarrier_init(mbar, 1)
        cute.arch.mbarrier_init_fence()
        cute.arch.cluster_arrive_relaxed()
        shape = mX.shape
        idX = cute.make_identity_tensor(shape)
        gX, gO, cX = (cute.local_tile(t, tiler_mn, (bidx, cluster_y)) for t in (mX, mO, idX))
        gW = cute.local_tile(mW, tiler_mn, (0, cluster_y))
        copy_atom_load = cute.make_copy_atom(
            cpasync.CopyG2SOp(), mX.element_type, num_bits_per_copy=128
        )
        copy_W = cute.make_copy_atom(
            cute.nvgpu.CopyUniversalOp(), mW.element_type, num_bits_per_copy=128
        )
        copy_O = cute.make_copy_atom(
            cute.nvgpu.CopyUniversalOp(), mO.element_type, num_bits_per_copy=128
        )
        thr = cute.make_tiled_copy(copy_atom_load, tv_layout, tiler_mn).get_slice(tidx)
        thr_W = cute.make_tiled_copy(copy_W, tv_layout, tiler_mn).get_slice(tidx)
        thr_O = cute.make_tiled_copy(copy_O, tv_layout, tiler_mn).get_slice(tidx)
        tWgW, tXgX, tXsX = thr_W.partition_S(gW), thr.partition_S(gX), thr.partition_D(sX)
        tXgO, tXcX = thr_O.partition_D(gO), thr.partition_S(cX)[(0, None), None, None]
        tWrW = cute.make_fragment_like(tWgW)
        tXrX, tXrO = [cute.make_fragment_like(t) for t in (tXgX, tXgO)]
        is_row = tXcX[0][0] < shape[0]
        tXpX = cute.make_rmem_tensor(
            cute.make_layout(
                (
                    cute.size(tXgX, mode=[0, 1]),
                    cute.size(tXgX, mode=[1]),
                    cute.size(tXgX, mode=[2]),
                ),
                stride=(cute.size(tXgX, mode=[2]), 0, 1),
            ),
            Boolean,
        )
        for rest_v in cutlass.range_constexpr(tXpX.shape[0]):
            for rest_k in cutlass.range_constexpr(tXpX.shape[2]):
                tXpX[rest_v, 0, rest_k] = cute.elem_less(tXcX[rest_v, 0, rest_k][1], shape[1])
        if is_row:
            cute.copy(copy_atom_load, tXgX, tXsX, pred=tXpX)
        cute.arch.cp_async_commit_group()
        cute.copy(copy_W, tWgW, tWrW)
        cute.arch.cp_async_wait_group(0)
        if not is_row:
            tXsX.fill(0)
        cute.autovec_copy(tXsX, tXrX)
        x = tXrX.load().to(Float32)
        local = (x * x).reduce(cute.ReductionOp.ADD, init_val=0.0, reduction_profile=0)
        local = warp_reduce(local, operator.add)
        cute.arch.cluster_wait()
        if warp_idx == 0:
            with cute.arch.elect_one():
                cute.arch.mbarrier_arrive_and_expect_tx(mbar, tiler_mn[0] * self.cluster_n * 4)
        if lane < self.cluster_n:
            store_shared_remote(
                local,
                buf.iterator + cute.crd2idx((warp_idx, cluster_y), buf.layout),
                mbar,
                peer=Int32(lane),
            )
        cute.arch.mbarrier_wait(mbar, 0)
        total = Float32(0.0)
        for i in cutlass.range_constexpr(self.cluster_n):
            total += buf[warp_idx, i]
        rstd = cute.math.rsqrt(total / shape[1] + eps, fastmath=True)
        y = x * rstd * tWrW.load().to(Float32)
        tXrO.store(y.to(tXrO.element_type))
        if is_row:
            cute.copy(copy_O, tXrO, tXgO)
        cute.arch.cluster_arrive()
        cute.arch.cluster_wait()


def run(rows, columns):
    rng = np.random.default_rng(0)
    x, w = (rng.standard_normal(shape).astype(np.float16) for shape in ((rows, columns), columns))
    o = np.full_like(x, np.nan)
    tensors = [from_dlpack(t, assumed_align=16) for t in (x, w, o)]
    for t in (tensors[0], tensors[2]):
        t.mark_compact_shape_dynamic(mode=0, stride_order=(0, 1))
    stream = cuda.CUstream(cuda.CUstream_flags.CU_STREAM_DEFAULT)
    cute.compile(RmsNorm(cutlass.Float16, columns), *tensors, 1e-6, stream)(*tensors, 1e-6, stream)
    x = x.astype(np.float32)
    wanted = x / np.sqrt((x * x).mean(axis=-1, keepdims=True) + 1e-6) * w
    np.testing.assert_allclose(o.astype(np.float32), wanted, atol=1e-6, rtol=1e-3)


if __name__ == "__main__":
    run(37, 1024)
    print("PASS")
