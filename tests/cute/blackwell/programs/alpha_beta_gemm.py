"""D = alpha A B^T + beta C with the greatest |D|: C comes by TMA through a warp of its own."""

import enum
from typing import Optional, Union

import cuda.bindings.driver as cuda
import cutlass
import cutlass.cute as cute
import cutlass.pipeline as pipeline
import cutlass.utils as utils
import cutlass.utils.blackwell_helpers as sm100_utils
import numpy as np
from blackwell_operands import NUMPY, matrix, tensor_like
from cutlass import Boolean, Float32, const_expr
from cutlass.cute.nvgpu import cpasync, tcgen05
from cutlass.cute.nvgpu.tcgen05 import CtaGroup, OperandSource
from cutlass.cute.runtime import from_dlpack
from cutlass.utils.gemm.sm100 import transform_partitioned_tensor_layout


class SharedBars(enum.IntEnum):
    EPI = 1
    TMEM = 2


class AlphaBetaGemm:
    def __init__(self, mma_tiler_mn, cluster_shape_mn, use_2cta, amax):
        self.mma_tiler_mn, self.cluster_shape_mn = mma_tiler_mn, cluster_shape_mn
        self.use_2cta, self.amax = use_2cta, amax
        self.epilog_warp_id = (0, 1, 2, 3)
        self.mma_warp_id, self.tma_warp_id, self.epi_load_warp_id = 4, 5, 6
        self.threads_per_cta = 32 * len(
            (self.mma_warp_id, self.tma_warp_id, self.epi_load_warp_id, *self.epilog_warp_id)
        )
        self.num_c_stage, self.num_d_stage, self.num_ab_stage = 2, 2, 3

    @cute.jit
    def __call__(
        self,
        a: cute.Tensor,
        b: cute.Tensor,
        c: cute.Tensor,
        d: cute.Tensor,
        alpha: Float32,
        beta: Float32,
        amax_tensor: Optional[cute.Tensor],
        stream: cuda.CUstream,
    ):
        self.a_dtype, self.b_dtype, self.c_dtype, self.d_dtype = (
            t.element_type for t in (a, b, c, d)
        )
        a_major = utils.LayoutEnum.from_tensor(a).mma_major_mode()
        b_major = utils.LayoutEnum.from_tensor(b).mma_major_mode()
        self.c_layout = utils.LayoutEnum.from_tensor(c)
        self.d_layout = utils.LayoutEnum.from_tensor(d)
        group = CtaGroup.TWO if self.use_2cta else CtaGroup.ONE
        tiled_mma = sm100_utils.make_trivial_tiled_mma(
            self.a_dtype,
            self.b_dtype,
            a_major,
            b_major,
            Float32,
            group,
            self.mma_tiler_mn,
            OperandSource.SMEM,
        )
        k = cute.size(tiled_mma.shape_mnk, mode=[2])
        self.mma_tiler = (*self.mma_tiler_mn, k * 4)
        v = cute.size(tiled_mma.thr_id.shape)
        self.cta_tile_shape_mnk = (self.mma_tiler[0] // v, *self.mma_tiler[1:])
        self.vmnk = cute.tiled_divide(
            cute.make_layout((*self.cluster_shape_mn, 1)), (tiled_mma.thr_id.shape,)
        )
        self.epi_tile = sm100_utils.compute_epilogue_tile_shape(
            self.cta_tile_shape_mnk,
            self.use_2cta,
            self.d_layout,
            self.d_dtype,
            layout_c=self.c_layout,
            elem_ty_c=self.c_dtype,
        )
        self.a_smem = sm100_utils.make_smem_layout_a(
            tiled_mma, self.mma_tiler, self.a_dtype, self.num_ab_stage
        )
        self.b_smem = sm100_utils.make_smem_layout_b(
            tiled_mma, self.mma_tiler, self.b_dtype, self.num_ab_stage
        )
        self.c_smem = sm100_utils.make_smem_layout_epi(
            self.c_dtype, self.c_layout, self.epi_tile, self.num_c_stage
        )
        self.d_smem = sm100_utils.make_smem_layout_epi(
            self.d_dtype, self.d_layout, self.epi_tile, self.num_d_stage
        )
        a_one, b_one = (cute.slice_(x, (None, None, None, 0)) for x in (self.a_smem, self.b_smem))
        c_one, d_one = (cute.slice_(x, (None, None, 0)) for x in (self.c_smem, self.d_smem))
        a_op = sm100_utils.cluster_shape_to_tma_atom_A(self.cluster_shape_mn, tiled_mma.thr_id)
        b_op = sm100_utils.cluster_shape_to_tma_atom_B(self.cluster_shape_mn, tiled_mma.thr_id)
        tma_a, mA = cute.nvgpu.make_tiled_tma_atom_A(
            a_op, a, a_one, self.mma_tiler, tiled_mma, self.vmnk.shape
        )
        tma_b, mB = cute.nvgpu.make_tiled_tma_atom_B(
            b_op, b, b_one, self.mma_tiler, tiled_mma, self.vmnk.shape
        )
        tma_c, mC = cpasync.make_tiled_tma_atom(
            cpasync.CopyBulkTensorTileG2SOp(), c, c_one, self.epi_tile
        )
        tma_d, mD = cpasync.make_tiled_tma_atom(
            cpasync.CopyBulkTensorTileS2GOp(), d, d_one, self.epi_tile
        )
        self.ab_bytes = (
            cute.size_in_bytes(self.a_dtype, a_one) + cute.size_in_bytes(self.b_dtype, b_one)
        ) * v
        self.c_bytes = cute.size_in_bytes(self.c_dtype, c_one)
        grid = cute.ceil_div(d.shape, (*self.cta_tile_shape_mnk[:2], 1))
        grid = cute.round_up(grid, (*self.cluster_shape_mn, 1))

        @cute.struct
        class Storage:
            ab: cute.struct.MemRange[cutlass.Int64, 2 * self.num_ab_stage]
            acc: cute.struct.MemRange[cutlass.Int64, 2]
            c: cute.struct.MemRange[cutlass.Int64, 2 * self.num_c_stage]
            dealloc: cutlass.Int64
            holding: cutlass.Int32
            warp_max: cute.struct.MemRange[Float32, 4]

        self.Storage = Storage
        self.kernel(
            tiled_mma,
            tma_a,
            mA,
            tma_b,
            mB,
            tma_c,
            mC,
            tma_d,
            mD,
            self.vmnk,
            self.a_smem,
            self.b_smem,
            self.c_smem,
            self.d_smem,
            self.epi_tile,
            alpha,
            beta,
            amax_tensor,
        ).launch(
            grid=grid,
            block=[self.threads_per_cta, 1, 1],
            cluster=[*self.cluster_shape_mn, 1],
            stream=stream,
        )

    @cute.kernel()
    def kernel(
        self,
        tiled_mma: cute.TiledMma,
        tma_a: cute.CopyAtom,
        mA: cute.Tensor,
        tma_b: cute.CopyAtom,
        mB: cute.Tensor,
        tma_c: cute.CopyAtom,
        mC: cute.Tensor,
        tma_d: cute.CopyAtom,
        mD: cute.Tensor,
        vmnk: cute.Layout,
        a_smem: cute.ComposedLayout,
        b_smem: cute.ComposedLayout,
        c_smem: Union[cute.Layout, cute.ComposedLayout],
        d_smem: Union[cute.Layout, cute.ComposedLayout],
        epi_tile: cute.Tile,
        alpha: Float32,
        beta: Float32,
        amax_tensor: Optional[cute.Tensor],
    ):
        warp_idx = cute.arch.make_warp_uniform(cute.arch.warp_idx())
        tidx, _, _ = cute.arch.thread_idx()
        bidx, bidy, bidz = cute.arch.block_idx()
        v = cute.size(tiled_mma.thr_id.shape)
        mma_v = bidx % v
        is_leader = mma_v == 0
        rank = cute.arch.make_warp_uniform(cute.arch.block_idx_in_cluster())
        coord = vmnk.get_flat_coord(rank)
        smem = utils.SmemAllocator()
        st = smem.allocate(self.Storage)
        sA = smem.allocate_tensor(element_type=self.a_dtype, layout=a_smem, byte_alignment=128)
        sB = smem.allocate_tensor(element_type=self.b_dtype, layout=b_smem, byte_alignment=128)
        sC = smem.allocate_tensor(element_type=self.c_dtype, layout=c_smem, byte_alignment=128)
        sD = smem.allocate_tensor(element_type=self.d_dtype, layout=d_smem, byte_alignment=128)
        Group, Thread = pipeline.CooperativeGroup, pipeline.Agent.Thread
        n_mcast = cute.size(vmnk, mode=[1]) + cute.size(vmnk, mode=[2]) - 1
        ab = pipeline.PipelineTmaUmma.create(
            barrier_storage=st.ab.data_ptr(),
            num_stages=self.num_ab_stage,
            producer_group=Group(Thread, 1),
            consumer_group=Group(Thread, n_mcast),
            tx_count=self.ab_bytes,
            cta_layout_vmnk=vmnk,
            defer_sync=True,
        )
        acc = pipeline.PipelineUmmaAsync.create(
            barrier_storage=st.acc.data_ptr(),
            num_stages=1,
            producer_group=Group(Thread, 1),
            consumer_group=Group(Thread, 128 * v),
            cta_layout_vmnk=vmnk,
            defer_sync=True,
        )
        c_pipe = pipeline.PipelineTmaAsync.create(
            barrier_storage=st.c.data_ptr(),
            num_stages=self.num_c_stage,
            producer_group=Group(Thread),
            consumer_group=Group(Thread, len(self.epilog_warp_id)),
            tx_count=self.c_bytes,
            defer_sync=True,
        )
        tmem = utils.TmemAllocator(
            st.holding,
            barrier_for_retrieve=pipeline.NamedBarrier(
                barrier_id=int(SharedBars.TMEM), num_threads=32 * 5
            ),
            allocator_warp_id=self.mma_warp_id,
            is_two_cta=self.use_2cta,
            two_cta_tmem_dealloc_mbar_ptr=st.dealloc,
        )
        pipeline.pipeline_init_arrive(vmnk)
        gA = cute.local_tile(mA, cute.slice_(self.mma_tiler, (None, 0, None)), (None, None, None))
        gB = cute.local_tile(mB, cute.slice_(self.mma_tiler, (0, None, None)), (None, None, None))
        gC = cute.local_tile(mC, cute.slice_(self.mma_tiler, (None, None, 0)), (None, None, None))
        gD = cute.local_tile(mD, cute.slice_(self.mma_tiler, (None, None, 0)), (None, None, None))
        thr = tiled_mma.get_slice(mma_v)
        tCgA, tCgB = thr.partition_A(gA), thr.partition_B(gB)
        tCgC, tCgD = thr.partition_C(gC), thr.partition_C(gD)
        tAsA, tAgA = cpasync.tma_partition(
            tma_a,
            coord[2],
            cute.make_layout(cute.slice_(vmnk, (0, 0, None, 0)).shape),
            cute.group_modes(sA, 0, 3),
            cute.group_modes(tCgA, 0, 3),
        )
        tBsB, tBgB = cpasync.tma_partition(
            tma_b,
            coord[1],
            cute.make_layout(cute.slice_(vmnk, (0, None, 0, 0)).shape),
            cute.group_modes(sB, 0, 3),
            cute.group_modes(tCgB, 0, 3),
        )
        tCrA, tCrB = tiled_mma.make_fragment_A(sA), tiled_mma.make_fragment_B(sB)
        fake = tiled_mma.make_fragment_C(tiled_mma.partition_shape_C(self.mma_tiler[:2]))
        a_mask = b_mask = None
        if const_expr(cute.size(vmnk) > 1):
            a_mask = cpasync.create_tma_multicast_mask(vmnk, coord, mcast_mode=2)
            b_mask = cpasync.create_tma_multicast_mask(vmnk, coord, mcast_mode=1)
        pipeline.pipeline_init_wait(vmnk)
        mma_coord = (bidx // v, bidy, bidz)
        tAgA = tAgA[(None, mma_coord[0], None, mma_coord[2])]
        tBgB = tBgB[(None, mma_coord[1], None, mma_coord[2])]
        k_tiles = cute.size(tAgA, mode=[1])
        gC_epi = cute.flat_divide(tCgC[((None, None), 0, 0, *mma_coord)], epi_tile)
        gD_epi = cute.flat_divide(tCgD[((None, None), 0, 0, *mma_coord)], epi_tile)
        bGS_sC, bGS_gC = cpasync.tma_partition(
            tma_c,
            0,
            cute.make_layout(1),
            cute.group_modes(sC, 0, 2),
            cute.group_modes(gC_epi, 0, 2),
        )
        bSG_sD, bSG_gD = cpasync.tma_partition(
            tma_d,
            0,
            cute.make_layout(1),
            cute.group_modes(sD, 0, 2),
            cute.group_modes(gD_epi, 0, 2),
        )
        bGS_gC = cute.group_modes(bGS_gC, 1, cute.rank(bGS_gC))
        bSG_gD = cute.group_modes(bSG_gD, 1, cute.rank(bSG_gD))
        subtiles = cute.size(bSG_gD, mode=[1])

        if warp_idx == self.tma_warp_id:
            state = pipeline.make_pipeline_state(
                pipeline.PipelineUserType.Producer, self.num_ab_stage
            )
            # The first tiles fill the ring.
            prologue = cutlass.min(k_tiles, self.num_ab_stage)
            for i in cutlass.range(prologue, unroll=1):
                ab.producer_acquire(state)
                cute.copy(
                    tma_a,
                    tAgA[(None, i)],
                    tAsA[(None, state.index)],
                    tma_bar_ptr=ab.producer_get_barrier(state),
                    mcast_mask=a_mask,
                )
                cute.copy(
                    tma_b,
                    tBgB[(None, i)],
                    tBsB[(None, state.index)],
                    tma_bar_ptr=ab.producer_get_barrier(state),
                    mcast_mask=b_mask,
                )
                ab.producer_commit(state)
                state.advance()
            for i in cutlass.range(prologue, k_tiles, 1, unroll=1):
                ab.producer_acquire(state)
                cute.copy(
                    tma_a,
                    tAgA[(None, i)],
                    tAsA[(None, state.index)],
                    tma_bar_ptr=ab.producer_get_barrier(state),
                    mcast_mask=a_mask,
                )
                cute.copy(
                    tma_b,
                    tBgB[(None, i)],
                    tBsB[(None, state.index)],
                    tma_bar_ptr=ab.producer_get_barrier(state),
                    mcast_mask=b_mask,
                )
                ab.producer_commit(state)
                state.advance()
            ab.producer_tail(state)
        if warp_idx == self.epi_load_warp_id:
            c_state = pipeline.make_pipeline_state(
                pipeline.PipelineUserType.Producer, self.num_c_stage
            )
            for i in cutlass.range(subtiles):
                c_pipe.producer_acquire(c_state)
                cute.copy(
                    tma_c,
                    bGS_gC[(None, i)],
                    bGS_sC[(None, c_state.index)],
                    tma_bar_ptr=c_pipe.producer_get_barrier(c_state),
                )
                c_pipe.producer_commit(c_state)
                c_state.advance()
            c_pipe.producer_tail(c_state)
        if warp_idx == self.mma_warp_id:
            tmem.allocate(utils.get_num_tmem_alloc_cols([fake]))
            tmem.wait_for_alloc()
            ptr = tmem.retrieve_ptr(Float32)
            tCtAcc = cute.make_tensor(ptr, fake.layout)
            state = pipeline.make_pipeline_state(
                pipeline.PipelineUserType.Consumer, self.num_ab_stage
            )
            acc_state = pipeline.make_pipeline_state(pipeline.PipelineUserType.Producer, 1)
            if is_leader:
                acc.producer_acquire(acc_state)
                for k in cutlass.range(k_tiles):
                    ab.consumer_wait(state)
                    for kb in cutlass.range(cute.size(tCrA, mode=[2]), unroll_full=True):
                        tiled_mma.set(tcgen05.Field.ACCUMULATE, Boolean(k > 0 or kb > 0))
                        cute.gemm(
                            tiled_mma,
                            tCtAcc,
                            tCrA[(None, None, kb, state.index)],
                            tCrB[(None, None, kb, state.index)],
                            tCtAcc,
                        )
                    ab.consumer_release(state)
                    state.advance()
                acc.producer_commit(acc_state)
            tmem.relinquish_alloc_permit()
            acc_state.advance()
            acc.producer_tail(acc_state)
            tmem.free(ptr)
        if warp_idx < self.mma_warp_id:
            tmem.wait_for_alloc()
            ptr = tmem.retrieve_ptr(Float32)
            tCtAcc = transform_partitioned_tensor_layout(cute.make_tensor(ptr, fake.layout))
            atom = sm100_utils.get_tmem_load_op(
                self.cta_tile_shape_mnk,
                self.d_layout,
                self.d_dtype,
                Float32,
                epi_tile,
                self.use_2cta,
            )
            tAcc = cute.flat_divide(tCtAcc, epi_tile)
            t2r = tcgen05.make_tmem_copy(atom, tAcc[(None, None, 0, 0)])
            thr_t2r = t2r.get_slice(tidx)
            tTR_tAcc = thr_t2r.partition_S(tAcc)
            tTR_tAcc = cute.group_modes(tTR_tAcc, 3, cute.rank(tTR_tAcc))
            tTR_rAcc = cute.make_rmem_tensor(
                thr_t2r.partition_D(gD_epi)[(None, None, None, 0, 0)].shape, Float32
            )
            r2s = cute.make_tiled_copy_D(
                sm100_utils.get_smem_store_op(self.d_layout, self.d_dtype, Float32, t2r), t2r
            )
            s2r = cute.make_tiled_copy_D(
                cute.make_copy_atom(cute.nvgpu.CopyUniversalOp(), self.c_dtype), t2r
            )
            tSR_sC = s2r.get_slice(tidx).partition_S(sC)
            tTR_rC = cute.make_rmem_tensor(tTR_rAcc.shape, self.c_dtype)
            tSR_rC = s2r.retile(tTR_rC)
            tTR_rD = cute.make_rmem_tensor(tTR_rAcc.shape, self.d_dtype)
            tRS_rD, tRS_sD = r2s.retile(tTR_rD), r2s.get_slice(tidx).partition_D(sD)
            epi_bar = pipeline.NamedBarrier(barrier_id=int(SharedBars.EPI), num_threads=128)
            d_pipe = pipeline.PipelineTmaStore.create(
                num_stages=self.num_d_stage, producer_group=Group(Thread, 128)
            )
            c_state = pipeline.make_pipeline_state(
                pipeline.PipelineUserType.Consumer, self.num_c_stage
            )
            acc_state = pipeline.make_pipeline_state(pipeline.PipelineUserType.Consumer, 1)
            acc.consumer_wait(acc_state)
            thread_max = Float32(0.0)
            for i in cutlass.range(subtiles):
                cute.copy(t2r, tTR_tAcc[(None, None, None, i)], tTR_rAcc)
                c_pipe.consumer_wait(c_state)
                cute.copy(s2r, tSR_sC[(None, None, None, c_state.index)], tSR_rC)
                cute.arch.fence_proxy("async.shared", space="cta")
                c_pipe.consumer_release(c_state)
                c_state.advance()
                acc_vec = tTR_rAcc.load()
                d_vec = alpha * acc_vec + beta * tTR_rC.load().to(Float32)
                if const_expr(self.amax):
                    tmp = cute.make_rmem_tensor(tTR_rAcc.shape, Float32)
                    tmp.store(cute.where(d_vec < 0, -d_vec, d_vec))
                    thread_max = cute.arch.fmax(
                        thread_max, tmp.load().reduce(cute.ReductionOp.MAX, Float32(0.0), 0)
                    )
                tTR_rD.store(d_vec.to(self.d_dtype))
                buf = i % self.num_d_stage
                cute.copy(r2s, tRS_rD, tRS_sD[(None, None, None, buf)])
                cute.arch.fence_proxy("async.shared", space="cta")
                epi_bar.arrive_and_wait()
                if warp_idx == self.epilog_warp_id[0]:
                    cute.copy(tma_d, bSG_sD[(None, buf)], bSG_gD[(None, i)])
                    d_pipe.producer_commit()
                    d_pipe.producer_acquire()
                epi_bar.arrive_and_wait()
            acc.consumer_release(acc_state)
            if const_expr(self.amax):
                warp_max = cute.arch.warp_redux_sync(
                    value=thread_max, kind="fmax", mask_and_clamp=0xFFFFFFFF, nan=True
                )
                if cute.arch.lane_idx() == 0:
                    st.warp_max[warp_idx] = warp_max
                epi_bar.arrive_and_wait()
                if warp_idx == 0:
                    block_max = Float32(0.0)
                    for w in cutlass.range_constexpr(4):
                        block_max = cute.arch.fmax(block_max, st.warp_max[w])
                    with cute.arch.elect_one():
                        cute.arch.atomic_fmax(amax_tensor.iterator, block_max, sign_bit=False)
            d_pipe.producer_tail()


def run(mnkl, ab_dtype, c_dtype, d_dtype, majors, mma_tiler_mn, cluster_shape_mn, use_2cta, amax):
    m, n, k, l = mnkl
    m_majors = (majors[0] == "m", majors[1] == "n", majors[2] == "m", majors[2] == "m")
    shapes = ((m, k), (n, k), (m, n), (m, n))
    rng = np.random.default_rng(0)
    a, b, c, d = (matrix(rng, l, *shape, x) for shape, x in zip(shapes, m_majors))
    (a_tensor, _), (b_tensor, _), (c_tensor, _), (d_tensor, got) = (
        tensor_like(x, dtype, is_major)
        for x, dtype, is_major in zip(
            (a, b, c, d), (ab_dtype, ab_dtype, c_dtype, d_dtype), m_majors
        )
    )
    greatest = np.zeros(1, np.float32)
    amax_tensor = from_dlpack(greatest) if amax else None
    stream = cuda.CUstream(cuda.CUstream_flags.CU_STREAM_DEFAULT)
    gemm = AlphaBetaGemm(mma_tiler_mn, cluster_shape_mn, use_2cta, amax)
    tensors = (a_tensor, b_tensor, c_tensor, d_tensor)
    compiled = cute.compile(gemm, *tensors, 1.0, 1.0, amax_tensor, stream)
    compiled(*tensors, 0.5, -2.0, amax_tensor, stream)
    wanted = 0.5 * np.einsum("mkl,nkl->mnl", a, b) - 2.0 * c
    np.testing.assert_array_equal(got, wanted.astype(NUMPY[d_dtype]))
    if amax:
        assert greatest[0] == np.abs(wanted).max()


if __name__ == "__main__":
    f16, bf16, f32 = cutlass.Float16, cutlass.BFloat16, cutlass.Float32
    run((128, 128, 256, 2), f16, f16, f16, "kkn", (128, 128), (1, 1), False, True)
    run((256, 128, 128, 1), bf16, f32, bf16, "mnm", (256, 64), (2, 1), True, True)
    run((128, 256, 512, 1), f16, bf16, f32, "mkn", (128, 64), (1, 2), False, False)
    run((100, 72, 72, 1), f16, f16, f32, "kkn", (64, 64), (1, 1), False, False)
    print("PASS")
