"""Attention forward: S = Q K^T and P in tensor memory, O += P V, a tile scheduler of its own."""

import enum
import math
from functools import partial
from typing import Optional, Tuple

import cuda.bindings.driver as cuda
import cutlass
import cutlass.cute as cute
import cutlass.pipeline as pipeline
import cutlass.utils as utils
import cutlass.utils.blackwell_helpers as sm100_utils
import numpy as np
from attention_scheduler import FmhaStaticTileScheduler, FmhaStaticTileSchedulerParams
from cutlass.cute.nvgpu import cpasync, tcgen05
from cutlass.cute.runtime import from_dlpack, make_ptr
from cutlass.cute.typing import Float32, Int32, Int64


class MaskType(enum.Enum):
    NO_MASK = enum.auto()
    CAUSAL = enum.auto()
    RESIDUAL = enum.auto()


class Fmha:
    def __init__(self, d, is_persistent, mask_type, kv_tile=128):
        self.d, self.is_persistent, self.mask_type = d, is_persistent, mask_type
        self.qk_mma_tiler = (128, kv_tile, d)
        self.pv_mma_tiler = (128, d, kv_tile)
        self.acc_dtype = Float32
        self.softmax_warp_ids, self.mma_warp_id, self.load_warp_id = (0, 1, 2, 3), 4, 5
        self.threads = 192
        self.kv_stage, self.q_stage = 3, 1
        self.tmem_s_offset, self.tmem_p_offset, self.tmem_o_offset = 0, 128, 256
        self.num_regs_other, self.num_regs_softmax = 112, 240

    @cute.jit
    def __call__(
        self,
        q_iter: cute.Pointer,
        k_iter: cute.Pointer,
        v_iter: cute.Pointer,
        o_iter: cute.Pointer,
        problem_size: Tuple[Int32, Int32, Int32, Int32, Int32, Int32],
        lse: Optional[cute.Tensor],
        scale_softmax_log2: Float32,
        scale_output: Float32,
        stream: cuda.CUstream,
    ):
        b, s_q, s_k, h_q, h_k, d = problem_size
        h_r = h_q // h_k
        self.q_dtype, self.k_dtype, self.v_dtype, self.o_dtype = (
            x.value_type for x in (q_iter, k_iter, v_iter, o_iter)
        )
        d = self.d
        q = cute.make_tensor(
            q_iter,
            cute.make_layout(
                (s_q, d, ((h_r, h_k), b)),
                stride=(d * h_r * h_k, 1, ((d, d * h_r), s_q * d * h_r * h_k)),
            ),
        )
        k = cute.make_tensor(
            k_iter,
            cute.make_layout(
                (s_k, d, ((h_r, h_k), b)), stride=(d * h_k, 1, ((0, d), s_k * d * h_k))
            ),
        )
        v = cute.make_tensor(
            v_iter,
            cute.make_layout(
                (d, s_k, ((h_r, h_k), b)), stride=(1, d * h_k, ((0, d), s_k * d * h_k))
            ),
        )
        o = cute.make_tensor(
            o_iter,
            cute.make_layout(
                (s_q, d, ((h_r, h_k), b)),
                stride=(d * h_r * h_k, 1, ((d, d * h_r), s_q * d * h_r * h_k)),
            ),
        )
        self.q_major_mode = utils.LayoutEnum.from_tensor(q).mma_major_mode()
        self.k_major_mode = utils.LayoutEnum.from_tensor(k).mma_major_mode()
        self.v_major_mode = utils.LayoutEnum.from_tensor(v).mma_major_mode()
        if cutlass.const_expr(self.q_major_mode != tcgen05.OperandMajorMode.K):
            raise RuntimeError("The layout of q is not supported")
        if cutlass.const_expr(self.v_major_mode != tcgen05.OperandMajorMode.MN):
            raise RuntimeError("The layout of v is not supported")
        qk_tiled_mma = sm100_utils.make_trivial_tiled_mma(
            self.q_dtype,
            self.q_major_mode,
            self.k_major_mode,
            self.acc_dtype,
            tcgen05.CtaGroup.ONE,
            self.qk_mma_tiler[:2],
        )
        p_source, p_major_mode = tcgen05.OperandSource.TMEM, tcgen05.OperandMajorMode.K
        pv_tiled_mma = sm100_utils.make_trivial_tiled_mma(
            self.v_dtype,
            p_major_mode,
            self.v_major_mode,
            self.acc_dtype,
            tcgen05.CtaGroup.ONE,
            self.pv_mma_tiler[:2],
            p_source,
        )
        q_l = sm100_utils.make_smem_layout_a(
            qk_tiled_mma, self.qk_mma_tiler, self.q_dtype, self.q_stage
        )
        k_l = sm100_utils.make_smem_layout_b(
            qk_tiled_mma, self.qk_mma_tiler, self.k_dtype, self.kv_stage
        )
        p_l = sm100_utils.make_smem_layout_a(pv_tiled_mma, self.pv_mma_tiler, self.q_dtype, 1)
        v_l = sm100_utils.make_smem_layout_b(
            pv_tiled_mma, self.pv_mma_tiler, self.v_dtype, self.kv_stage
        )
        load_op = cpasync.CopyBulkTensorTileG2SOp(tcgen05.CtaGroup.ONE)
        tma_q, mQ = cute.nvgpu.make_tiled_tma_atom_A(
            load_op, q, cute.select(q_l, mode=[0, 1, 2]), self.qk_mma_tiler, qk_tiled_mma
        )
        tma_k, mK = cute.nvgpu.make_tiled_tma_atom_B(
            load_op, k, cute.select(k_l, mode=[0, 1, 2]), self.qk_mma_tiler, qk_tiled_mma
        )
        tma_v, mV = cute.nvgpu.make_tiled_tma_atom_B(
            load_op, v, cute.select(v_l, mode=[0, 1, 2]), self.pv_mma_tiler, pv_tiled_mma
        )
        self.q_bytes = cute.size_in_bytes(self.q_dtype, cute.select(q_l, mode=[0, 1, 2]))
        self.kv_bytes = cute.size_in_bytes(self.k_dtype, cute.select(k_l, mode=[0, 1, 2]))
        params = FmhaStaticTileSchedulerParams(
            self.is_persistent,
            (
                cute.ceil_div(cute.size(o.shape[0]), 128),
                cute.size(o.shape[2][0]),
                cute.size(o.shape[2][1]),
            ),
        )
        grid = FmhaStaticTileScheduler.get_grid_shape(params, 2)

        @cute.struct
        class SharedStorage:
            load_q: cute.struct.MemRange[Int64, self.q_stage * 2]
            load_kv: cute.struct.MemRange[Int64, self.kv_stage * 2]
            s: cute.struct.MemRange[Int64, 2]
            p: cute.struct.MemRange[Int64, 2]
            o: cute.struct.MemRange[Int64, 2]
            tmem_holding_buf: Int32
            sQ: cute.struct.Align[cute.struct.MemRange[self.q_dtype, cute.cosize(q_l)], 1024]
            sK: cute.struct.Align[cute.struct.MemRange[self.k_dtype, cute.cosize(k_l)], 1024]

        self.shared_storage = SharedStorage
        self.kernel(
            qk_tiled_mma,
            pv_tiled_mma,
            tma_q,
            mQ,
            tma_k,
            mK,
            tma_v,
            mV,
            o,
            lse,
            s_q,
            s_k,
            scale_softmax_log2,
            scale_output,
            q_l,
            k_l,
            p_l,
            v_l,
            params,
        ).launch(
            grid=grid,
            block=[self.threads, 1, 1],
            cluster=[1, 1, 1],
            smem=self.shared_storage.size_in_bytes(),
            stream=stream,
            min_blocks_per_mp=1,
        )

    @cute.kernel
    def kernel(
        self,
        qk_tiled_mma: cute.TiledMma,
        pv_tiled_mma: cute.TiledMma,
        tma_q: cute.CopyAtom,
        mQ: cute.Tensor,
        tma_k: cute.CopyAtom,
        mK: cute.Tensor,
        tma_v: cute.CopyAtom,
        mV: cute.Tensor,
        mO: cute.Tensor,
        mLSE: Optional[cute.Tensor],
        s_q: Int32,
        s_k: Int32,
        scale_log2: Float32,
        scale_output: Float32,
        q_l: cute.ComposedLayout,
        k_l: cute.ComposedLayout,
        p_l: cute.ComposedLayout,
        v_l: cute.ComposedLayout,
        params: FmhaStaticTileSchedulerParams,
    ):
        warp_idx = cute.arch.make_warp_uniform(cute.arch.warp_idx())
        tidx, _, _ = cute.arch.thread_idx()
        if warp_idx == self.load_warp_id:
            cpasync.prefetch_descriptor(tma_q)
            cpasync.prefetch_descriptor(tma_k)
            cpasync.prefetch_descriptor(tma_v)
        smem = utils.SmemAllocator()
        storage = smem.allocate(self.shared_storage)
        make_thread_cooperative_group = partial(pipeline.CooperativeGroup, pipeline.Agent.Thread)
        load_q_producer, load_q_consumer = pipeline.PipelineTmaUmma.create(
            barrier_storage=storage.load_q.data_ptr(),
            num_stages=self.q_stage,
            producer_group=make_thread_cooperative_group(1),
            consumer_group=make_thread_cooperative_group(1),
            tx_count=self.q_bytes,
        ).make_participants()
        load_kv_producer, load_kv_consumer = pipeline.PipelineTmaUmma.create(
            barrier_storage=storage.load_kv.data_ptr(),
            num_stages=self.kv_stage,
            producer_group=make_thread_cooperative_group(1),
            consumer_group=make_thread_cooperative_group(1),
            tx_count=self.kv_bytes,
        ).make_participants()
        mma_s_producer, mma_s_consumer = pipeline.PipelineUmmaAsync.create(
            barrier_storage=storage.s.data_ptr(),
            num_stages=1,
            producer_group=make_thread_cooperative_group(1),
            consumer_group=make_thread_cooperative_group(128),
        ).make_participants()
        p_mma_producer, p_mma_consumer = pipeline.PipelineAsyncUmma.create(
            barrier_storage=storage.p.data_ptr(),
            num_stages=1,
            producer_group=make_thread_cooperative_group(128),
            consumer_group=make_thread_cooperative_group(1),
        ).make_participants()
        mma_o_producer, mma_o_consumer = pipeline.PipelineUmmaAsync.create(
            barrier_storage=storage.o.data_ptr(),
            num_stages=1,
            producer_group=make_thread_cooperative_group(1),
            consumer_group=make_thread_cooperative_group(128),
        ).make_participants()
        if warp_idx == self.mma_warp_id:
            cute.arch.alloc_tmem(512, storage.tmem_holding_buf.ptr)
            cute.arch.relinquish_tmem_alloc_permit()
        cute.arch.sync_threads()
        tmem_ptr = cute.arch.retrieve_tmem_ptr(Float32, 16, storage.tmem_holding_buf.ptr)
        sQ = storage.sQ.get_tensor(q_l.outer, swizzle=q_l.inner)
        sK = storage.sK.get_tensor(k_l.outer, swizzle=k_l.inner)
        sV_ptr = cute.recast_ptr(sK.iterator, v_l.inner)
        sV = cute.make_tensor(sV_ptr, v_l.outer)
        qk_thr_mma, pv_thr_mma = qk_tiled_mma.get_slice(0), pv_tiled_mma.get_slice(0)
        tSrQ, tSrK = qk_thr_mma.make_fragment_A(sQ), qk_thr_mma.make_fragment_B(sK)
        tOrV = pv_thr_mma.make_fragment_B(sV)
        tStS = qk_thr_mma.make_fragment_C(
            qk_thr_mma.partition_shape_C((self.qk_mma_tiler[0], self.qk_mma_tiler[1]))
        )
        tOtO = pv_thr_mma.make_fragment_C(
            pv_thr_mma.partition_shape_C((self.pv_mma_tiler[0], self.pv_mma_tiler[1]))
        )
        tStS = cute.make_tensor(tmem_ptr + self.tmem_s_offset, tStS.layout)
        tOtO = cute.make_tensor(tmem_ptr + self.tmem_o_offset, tOtO.layout)
        tP = cute.make_tensor(tStS.iterator, p_l.outer)
        tOrP = pv_thr_mma.make_fragment_A(tP)[None, None, None, 0]
        tOrP = cute.make_tensor(
            cute.recast_ptr(tmem_ptr + self.tmem_p_offset, dtype=self.q_dtype), tOrP.layout
        )
        k_tiles = cute.ceil_div(s_k, self.qk_mma_tiler[1])
        sched = FmhaStaticTileScheduler.create(params, cute.arch.block_idx(), cute.arch.grid_dim())
        work = sched.initial_work_tile_info()

        if warp_idx == self.load_warp_id:
            cute.arch.setmaxregister_decrease(self.num_regs_other)
            while work.is_valid_tile:
                curr = work.tile_idx
                gQ = cute.local_tile(
                    mQ, cute.select(self.qk_mma_tiler, mode=[0, 2]), (None, None, curr[2])
                )
                gK = cute.local_tile(
                    mK, cute.select(self.qk_mma_tiler, mode=[1, 2]), (None, None, curr[2])
                )
                gV = cute.local_tile(
                    mV, cute.select(self.pv_mma_tiler, mode=[1, 2]), (None, None, curr[2])
                )
                tQsQ, tQgQ = cpasync.tma_partition(
                    tma_q,
                    0,
                    cute.make_layout(1),
                    cute.group_modes(sQ, 0, 3),
                    cute.group_modes(qk_thr_mma.partition_A(gQ), 0, 3),
                )
                tKsK, tKgK = cpasync.tma_partition(
                    tma_k,
                    0,
                    cute.make_layout(1),
                    cute.group_modes(sK, 0, 3),
                    cute.group_modes(qk_thr_mma.partition_B(gK), 0, 3),
                )
                tVsV, tVgV = cpasync.tma_partition(
                    tma_v,
                    0,
                    cute.make_layout(1),
                    cute.group_modes(sV, 0, 3),
                    cute.group_modes(pv_thr_mma.partition_B(gV), 0, 3),
                )
                qh = load_q_producer.acquire_and_advance()
                cute.copy(
                    tma_q, tQgQ[None, curr[0], 0], tQsQ[None, qh.index], tma_bar_ptr=qh.barrier
                )
                for i in cutlass.range(k_tiles, unroll=1):
                    kh = load_kv_producer.acquire_and_advance()
                    cute.copy(tma_k, tKgK[None, i, 0], tKsK[None, kh.index], tma_bar_ptr=kh.barrier)
                    vh = load_kv_producer.acquire_and_advance()
                    cute.copy(tma_v, tVgV[None, 0, i], tVsV[None, vh.index], tma_bar_ptr=vh.barrier)
                sched.advance_to_next_work()
                work = sched.get_current_work()
            load_q_producer.tail()
            load_kv_producer.tail()

        if warp_idx == self.mma_warp_id:
            cute.arch.setmaxregister_decrease(self.num_regs_other)
            while work.is_valid_tile:
                qh = load_q_consumer.wait_and_advance()
                oh = mma_o_producer.acquire_and_advance()
                pv_whether_acc = False
                for i in cutlass.range(k_tiles, unroll=1):
                    kh = load_kv_consumer.wait_and_advance()
                    sh = mma_s_producer.acquire_and_advance()
                    for kb in cutlass.range_constexpr(cute.size(tSrQ, mode=[2])):
                        qk_tiled_mma.set(tcgen05.Field.ACCUMULATE, kb != 0)
                        cute.gemm(
                            qk_tiled_mma,
                            tStS,
                            tSrQ[None, None, kb, qh.index],
                            tSrK[None, None, kb, kh.index],
                            tStS,
                        )
                    sh.commit()
                    kh.release()
                    vh = load_kv_consumer.wait_and_advance()
                    ph = p_mma_consumer.wait_and_advance()
                    for kb in cutlass.range_constexpr(cute.size(tOrP, mode=[2])):
                        pv_tiled_mma.set(tcgen05.Field.ACCUMULATE, pv_whether_acc)
                        cute.gemm(
                            pv_tiled_mma,
                            tOtO,
                            tOrP[None, None, kb],
                            tOrV[None, None, kb, vh.index],
                            tOtO,
                        )
                        pv_whether_acc = True
                    ph.release()
                    vh.release()
                qh.release()
                oh.commit()
                sched.advance_to_next_work()
                work = sched.get_current_work()
            mma_s_producer.tail()
            mma_o_producer.tail()

        if warp_idx < self.mma_warp_id:
            cute.arch.setmaxregister_increase(self.num_regs_softmax)
            fused_mask = partial(self.apply_mask, s_q=s_q, s_k=s_k)
            tmem_load_atom = cute.make_copy_atom(
                tcgen05.copy.Ld32x32bOp(tcgen05.copy.Repetition(32)), self.acc_dtype
            )
            tmem_store_atom = cute.make_copy_atom(
                tcgen05.copy.St32x32bOp(tcgen05.copy.Repetition(32)), Float32
            )
            tS = tStS[((None, None), 0, 0)]
            tiled_load = tcgen05.make_tmem_copy(tmem_load_atom, tS)
            thr_load = tiled_load.get_slice(tidx)
            tLtS = thr_load.partition_S(tS)
            cS_base = cute.make_identity_tensor((self.qk_mma_tiler[0], self.qk_mma_tiler[1]))
            tScS = qk_thr_mma.partition_C(cS_base)
            p_cols_f32 = self.qk_mma_tiler[1] // 32 * self.q_dtype.width
            tP_layout = cute.composition(tStS.layout, cute.make_layout((128, p_cols_f32)))
            tStP = cute.make_tensor(tmem_ptr + self.tmem_p_offset, tP_layout)
            tiled_store = tcgen05.make_tmem_copy(tmem_store_atom, tStP)
            thr_store = tiled_store.get_slice(tidx)
            tStP_part = thr_store.partition_D(tStP)
            tScP = cute.make_tensor(
                tScS.iterator, cute.composition(tScS.layout, cute.make_layout((128, p_cols_f32)))
            )
            tO = tOtO[((None, None), 0, 0)]
            corr_tile = 32
            o_atom = cute.make_copy_atom(
                tcgen05.copy.Ld32x32bOp(tcgen05.copy.Repetition(corr_tile)), self.acc_dtype
            )
            os_atom = cute.make_copy_atom(
                tcgen05.copy.St32x32bOp(tcgen05.copy.Repetition(corr_tile)), self.acc_dtype
            )
            tO_i = cute.make_tensor(
                tO.iterator, cute.composition(tO.layout, cute.make_layout((128, corr_tile)))
            )
            o_load, o_store = (
                tcgen05.make_tmem_copy(o_atom, tO_i),
                tcgen05.make_tmem_copy(os_atom, tO_i),
            )
            thr_o_load, thr_o_store = o_load.get_slice(tidx), o_store.get_slice(tidx)
            o_src, o_dst = thr_o_load.partition_S(tO_i), thr_o_store.partition_D(tO_i)
            while work.is_valid_tile:
                curr = work.tile_idx
                row_max, row_sum, row_max_safe = -Float32.inf, Float32(0.0), Float32(0.0)
                m_offset = curr[0] * self.qk_mma_tiler[0]
                for i in cutlass.range(k_tiles, unroll=1):
                    cS = cute.domain_offset((m_offset, i * self.qk_mma_tiler[1]), cS_base)
                    tLcS = thr_load.partition_D(qk_thr_mma.partition_C(cS)[((None, None), 0, 0)])
                    rS = cute.make_rmem_tensor(tLcS.shape, self.acc_dtype)
                    sh = mma_s_consumer.wait_and_advance()
                    cute.copy(tiled_load, tLtS, rS)
                    cute.arch.fence_view_async_tmem_load()
                    sh.release()
                    fused_mask(rS, tLcS)
                    old_max = row_max
                    row_max = rS.load().reduce(cute.ReductionOp.MAX, row_max, 0)
                    row_max_safe = row_max
                    if row_max == -cutlass.Float32.inf:
                        row_max_safe = 0.0
                    minus = (0.0 - row_max_safe) * scale_log2
                    rP32 = cute.make_rmem_tensor(thr_store.partition_S(tScP).shape, Float32)
                    rP = cute.make_tensor(
                        cute.recast_ptr(rP32.iterator, dtype=self.q_dtype), rS.layout
                    )
                    for j in cutlass.range(0, cute.size(rS), 2, unroll_full=True):
                        rS[j], rS[j + 1] = cute.arch.fma_packed_f32x2(
                            (rS[j], rS[j + 1]), (scale_log2, scale_log2), (minus, minus)
                        )
                        rS[j] = cute.math.exp2(rS[j], fastmath=True)
                        rS[j + 1] = cute.math.exp2(rS[j + 1], fastmath=True)
                    rP.store(rS.load().to(self.q_dtype))
                    acc_scale = cute.math.exp2(scale_log2 * (old_max - row_max_safe), fastmath=True)
                    row_sum = rS.load().reduce(cute.ReductionOp.ADD, row_sum * acc_scale, 0)
                    ph = p_mma_producer.acquire_and_advance()
                    if i > 0:
                        if cute.arch.vote_any_sync(acc_scale < 1.0):
                            for c in cutlass.range(0, self.d // corr_tile, 1, unroll_full=True):
                                rO = cute.make_rmem_tensor(
                                    thr_o_load.partition_D(tO_i).shape, Float32
                                )
                                src = cute.make_tensor(o_src.iterator + c * corr_tile, o_src.layout)
                                dst = cute.make_tensor(o_dst.iterator + c * corr_tile, o_dst.layout)
                                cute.copy(o_load, src, rO)
                                for j in cutlass.range(0, cute.size(rO), 2, unroll_full=True):
                                    rO[j], rO[j + 1] = cute.arch.mul_packed_f32x2(
                                        (rO[j], rO[j + 1]), (acc_scale, acc_scale)
                                    )
                                cute.copy(o_store, rO, dst)
                    cute.copy(tiled_store, rP32, tStP_part)
                    cute.arch.fence_view_async_tmem_store()
                    ph.commit()
                oh = mma_o_consumer.wait_and_advance()
                scale = scale_output / row_sum
                if row_sum == 0.0 or row_sum != row_sum:
                    scale = Float32(0.0)
                gO = cute.local_tile(
                    mO, cute.select(self.pv_mma_tiler, mode=[0, 1]), (curr[0], 0, curr[2])
                )
                for c in cutlass.range_constexpr(self.d // corr_tile):
                    rO = cute.make_rmem_tensor(thr_o_load.partition_D(tO_i).shape, Float32)
                    cute.copy(
                        o_load, cute.make_tensor(o_src.iterator + c * corr_tile, o_src.layout), rO
                    )
                    out = cute.make_rmem_tensor(rO.shape, self.o_dtype)
                    out.store((rO.load() * scale).to(self.o_dtype))
                    if cute.elem_less(m_offset + tidx, s_q):
                        row = cute.local_tile(gO[tidx, None], (corr_tile,), (c,))
                        cute.autovec_copy(
                            cute.make_tensor(out.iterator, cute.make_layout(corr_tile)), row
                        )
                oh.release()
                if cutlass.const_expr(mLSE is not None):
                    if m_offset + tidx < s_q:
                        mLSE[m_offset + tidx, curr[2]] = (
                            cute.math.log(row_sum, fastmath=True)
                            + scale_log2 * row_max_safe * 0.6931471805599453
                        )
                sched.advance_to_next_work()
                work = sched.get_current_work()
            p_mma_producer.tail()
        cute.arch.sync_threads()
        if warp_idx == self.mma_warp_id:
            cute.arch.dealloc_tmem(tmem_ptr, 512)

    @cute.jit
    def apply_mask(self, acc: cute.Tensor, index: cute.Tensor, s_q: Int32, s_k: Int32):
        if cutlass.const_expr(self.mask_type is not MaskType.NO_MASK):
            offset = s_k - s_q
            for j in cutlass.range_constexpr(cute.size(acc)):
                if cutlass.const_expr(self.mask_type is MaskType.CAUSAL):
                    if index[j][0] + offset < index[j][1] or index[j][1] >= s_k:
                        acc[j] = -Float32.inf
                elif cutlass.const_expr(self.mask_type == MaskType.RESIDUAL):
                    if index[j][1] >= s_k:
                        acc[j] = -Float32.inf


def run(b, s_q, s_k, h_q, h_k, d, is_persistent, is_causal):
    rng = np.random.default_rng(0)
    q, k, v, lse = (
        rng.standard_normal(shape).astype(dtype)
        for shape, dtype in (
            ((b, s_q, h_q, d), np.float16),
            ((b, s_k, h_k, d), np.float16),
            ((b, s_k, h_k, d), np.float16),
            ((b, h_q, s_q), np.float32),
        )
    )
    o = np.full_like(q, np.nan)
    arrays = (q, k, v, o)
    pointers = [
        make_ptr(cutlass.Float16, x.ctypes.data, cute.AddressSpace.gmem, assumed_align=16)
        for x in arrays
    ]
    mask_type = MaskType.CAUSAL if is_causal else MaskType.RESIDUAL
    fmha = Fmha(d, is_persistent, mask_type)

    @cute.jit
    def attention(
        q: cute.Pointer,
        k: cute.Pointer,
        v: cute.Pointer,
        o: cute.Pointer,
        problem_size: Tuple[Int32, Int32, Int32, Int32, Int32, Int32],
        lse: cute.Tensor,
        scale: Float32,
        stream: cuda.CUstream,
    ):
        b, s_q, _, h_q, h_k, _ = problem_size
        h_r = h_q // h_k
        layout = cute.make_layout((s_q, ((h_r, h_k), b)), stride=(1, ((s_q, s_q * h_r), s_q * h_q)))
        lse = cute.make_tensor(lse.iterator, layout)
        fmha(q, k, v, o, problem_size, lse, scale, 1.0, stream)

    stream = cuda.CUstream(cuda.CUstream_flags.CU_STREAM_DEFAULT)
    args = (
        *pointers,
        (b, s_q, s_k, h_q, h_k, d),
        from_dlpack(lse),
        math.log2(math.e) / math.sqrt(d),
    )
    cute.compile(attention, *args, stream)(*args, stream)
    qs, ks, vs = (x.astype(np.float64).transpose(0, 2, 1, 3) for x in (q, k, v))
    ks, vs = (np.repeat(x, h_q // h_k, axis=1) for x in (ks, vs))
    s = qs @ ks.transpose(0, 1, 3, 2) / math.sqrt(d)
    if is_causal:
        s[..., np.arange(s_q)[:, None] + s_k - s_q < np.arange(s_k)] = -np.inf
    largest = s.max(-1, keepdims=True)
    p = np.exp(s - largest)
    total = p.sum(-1, keepdims=True)
    np.testing.assert_allclose(o.transpose(0, 2, 1, 3), p / total @ vs, atol=5e-3)
    np.testing.assert_allclose(lse, (largest + np.log(total))[..., 0], atol=2e-3)


if __name__ == "__main__":
    run(2, 200, 328, 2, 1, 128, is_persistent=True, is_causal=True)
    run(1, 130, 200, 4, 2, 64, is_persistent=False, is_causal=False)
    print("PASS")
