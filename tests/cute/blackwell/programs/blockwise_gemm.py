"""A GEMM of Float8E4M3FN with scales of 1 x 128 and 128 x 128: warps scale and add the products."""

from typing import Union

import cuda.bindings.driver as cuda
import cutlass
import cutlass.cute as cute
import cutlass.pipeline as pipeline
import cutlass.utils as utils
import cutlass.utils.blackwell_helpers as sm100_utils
import numpy as np
from cutlass.cute.nvgpu import cpasync, tcgen05
from cutlass.cute.runtime import from_dlpack


class BlockwiseGemmKernel:
    def __init__(self, mma_tiler_mn, cluster_shape_mn, use_2cta_instrs=False):
        self.acc_dtype = cutlass.Float32
        self.use_2cta_instrs = use_2cta_instrs
        self.cluster_shape_mn = cluster_shape_mn
        self.mma_tiler = (*mma_tiler_mn, 1)
        self.cta_group = tcgen05.CtaGroup.TWO if use_2cta_instrs else tcgen05.CtaGroup.ONE
        self.acc_update_warp_id = (0, 1, 2, 3)
        self.epilog_warp_id = (4, 5, 6, 7)
        self.mma_warp_id, self.tma_warp_id, self.scale_warp_id, self.sched_warp_id = 8, 9, 10, 11
        self.threads_per_warp = 32
        self.threads_per_cta = 32 * 12
        (
            self.num_ab_stage,
            self.num_scale_stage,
            self.num_acc_stage,
            self.num_epi_stage,
            self.num_tile_stage,
        ) = 2, 4, 3, 1, 2
        self.epilog_sync_barrier = pipeline.NamedBarrier(barrier_id=1, num_threads=128)
        self.tmem_alloc_barrier = pipeline.NamedBarrier(barrier_id=2, num_threads=32 * 9)
        self.sched_sync_barrier = pipeline.NamedBarrier(barrier_id=3, num_threads=32)

    @cute.jit
    def __call__(
        self,
        a: cute.Tensor,
        b: cute.Tensor,
        c: cute.Tensor,
        sfa: cute.Tensor,
        sfb: cute.Tensor,
        max_active_clusters: cutlass.Constexpr,
        stream: cuda.CUstream,
        epilogue_op: cutlass.Constexpr = lambda x: x,
    ):
        self.a_dtype, self.b_dtype, self.c_dtype = a.element_type, b.element_type, c.element_type
        self.a_major_mode = utils.LayoutEnum.from_tensor(a).mma_major_mode()
        self.b_major_mode = utils.LayoutEnum.from_tensor(b).mma_major_mode()
        self.c_layout = utils.LayoutEnum.from_tensor(c)
        mma = sm100_utils.make_trivial_tiled_mma(
            self.a_dtype,
            self.a_major_mode,
            self.b_major_mode,
            self.acc_dtype,
            self.cta_group,
            self.mma_tiler[:2],
        )
        self.mma_tiler = (*self.mma_tiler[:2], cute.size(mma.shape_mnk, mode=[2]) * 4)
        v = cute.size(mma.thr_id.shape)
        self.cta_tile_shape_mnk = (self.mma_tiler[0] // v, *self.mma_tiler[1:])
        self.vmnk = cute.tiled_divide(
            cute.make_layout((*self.cluster_shape_mn, 1)), (mma.thr_id.shape,)
        )
        self.epi_tile = sm100_utils.compute_epilogue_tile_shape(
            self.cta_tile_shape_mnk, self.use_2cta_instrs, self.c_layout, self.c_dtype
        )
        self.a_l = sm100_utils.make_smem_layout_a(
            mma, self.mma_tiler, self.a_dtype, self.num_ab_stage
        )
        self.b_l = sm100_utils.make_smem_layout_b(
            mma, self.mma_tiler, self.b_dtype, self.num_ab_stage
        )
        self.c_l = sm100_utils.make_smem_layout_epi(self.c_dtype, self.c_layout, self.epi_tile, 2)
        self.num_c_stage = 2
        sfa_shape = ((1, a.shape[0]), (128, cute.ceil_div(a.shape[1], 128)), a.shape[2])
        sfa = cute.make_tensor(
            sfa.iterator,
            cute.make_layout(
                sfa_shape,
                stride=((0, sfa.layout.stride[0]), (0, sfa.layout.stride[1]), sfa.layout.stride[2]),
            ),
        )
        sfb_shape = (
            (128, cute.ceil_div(b.shape[0], 128)),
            (128, cute.ceil_div(b.shape[1], 128)),
            b.shape[2],
        )
        sfb = cute.make_tensor(
            sfb.iterator,
            cute.make_layout(
                sfb_shape,
                stride=((0, sfb.layout.stride[0]), (0, sfb.layout.stride[1]), sfb.layout.stride[2]),
            ),
        )
        a1, b1 = (cute.slice_(x, (None, None, None, 0)) for x in (self.a_l, self.b_l))
        ta, mA = cute.nvgpu.make_tiled_tma_atom_A(
            sm100_utils.cluster_shape_to_tma_atom_A(self.cluster_shape_mn, mma.thr_id),
            a,
            a1,
            self.mma_tiler,
            mma,
            self.vmnk.shape,
        )
        tb, mB = cute.nvgpu.make_tiled_tma_atom_B(
            sm100_utils.cluster_shape_to_tma_atom_B(self.cluster_shape_mn, mma.thr_id),
            b,
            b1,
            self.mma_tiler,
            mma,
            self.vmnk.shape,
        )
        tc, mC = cpasync.make_tiled_tma_atom(
            cpasync.CopyBulkTensorTileS2GOp(), c, cute.select(self.c_l, mode=[0, 1]), self.epi_tile
        )
        self.ab_bytes = v * (
            cute.size_in_bytes(self.a_dtype, a1) + cute.size_in_bytes(self.b_dtype, b1)
        )
        self.sfa_l = cute.make_layout((self.cta_tile_shape_mnk[0], self.num_scale_stage))
        gc = cute.zipped_divide(c, tiler=cute.slice_(self.cta_tile_shape_mnk, (None, None, 0)))
        params = utils.PersistentTileSchedulerParams(
            gc[(0, (None, None, None))].shape, (*self.cluster_shape_mn, 1)
        )
        grid = utils.StaticPersistentTileScheduler.get_grid_shape(params, max_active_clusters)

        @cute.struct
        class SharedStorage:
            ab: cute.struct.MemRange[cutlass.Int64, self.num_ab_stage * 2]
            scale: cute.struct.MemRange[cutlass.Int64, self.num_scale_stage * 2]
            acc: cute.struct.MemRange[cutlass.Int64, self.num_acc_stage * 2]
            epi: cute.struct.MemRange[cutlass.Int64, self.num_epi_stage * 2]
            tile_info: cute.struct.MemRange[cutlass.Int64, self.num_tile_stage * 2]
            dealloc: cutlass.Int64
            holding: cutlass.Int32
            sInfo: cute.struct.Align[
                cute.struct.MemRange[cutlass.Int32, 4 * self.num_tile_stage], 16
            ]
            sSFA: cute.struct.Align[
                cute.struct.MemRange[cutlass.Float32, cute.cosize(self.sfa_l)], 16
            ]
            sSFB: cute.struct.Align[cute.struct.MemRange[cutlass.Float32, self.num_scale_stage], 16]

        self.shared_storage = SharedStorage
        self.kernel(
            mma,
            ta,
            mA,
            tb,
            mB,
            tc,
            mC,
            sfa,
            sfb,
            self.vmnk,
            self.a_l,
            self.b_l,
            self.c_l,
            self.sfa_l,
            self.epi_tile,
            params,
            epilogue_op,
        ).launch(
            grid=grid,
            block=[self.threads_per_cta, 1, 1],
            cluster=(*self.cluster_shape_mn, 1),
            stream=stream,
        )

    @cute.kernel
    def kernel(
        self,
        mma: cute.TiledMma,
        ta: cute.CopyAtom,
        mA: cute.Tensor,
        tb: cute.CopyAtom,
        mB: cute.Tensor,
        tc: cute.CopyAtom,
        mC: cute.Tensor,
        mSFA: cute.Tensor,
        mSFB: cute.Tensor,
        vmnk: cute.Layout,
        a_l: cute.ComposedLayout,
        b_l: cute.ComposedLayout,
        c_l: Union[cute.Layout, cute.ComposedLayout],
        sfa_l: cute.Layout,
        epi_tile: cute.Tile,
        params: utils.PersistentTileSchedulerParams,
        epilogue_op: cutlass.Constexpr,
    ):
        warp_idx = cute.arch.make_warp_uniform(cute.arch.warp_idx())
        bidx, _, _ = cute.arch.block_idx()
        v = cute.size(mma.thr_id.shape)
        mma_v = bidx % v
        is_leader_cta = mma_v == 0
        coord = vmnk.get_flat_coord(cute.arch.make_warp_uniform(cute.arch.block_idx_in_cluster()))
        tidx, _, _ = cute.arch.thread_idx()
        smem = utils.SmemAllocator()
        storage = smem.allocate(self.shared_storage)
        G, Th = pipeline.CooperativeGroup, pipeline.Agent.Thread
        ab_pipeline = pipeline.PipelineTmaUmma.create(
            barrier_storage=storage.ab.data_ptr(),
            num_stages=self.num_ab_stage,
            producer_group=G(Th),
            consumer_group=G(Th, cute.size(vmnk, mode=[1]) + cute.size(vmnk, mode=[2]) - 1),
            tx_count=self.ab_bytes,
            cta_layout_vmnk=vmnk,
            defer_sync=True,
        )
        scale_pipeline = pipeline.PipelineCpAsync.create(
            barrier_storage=storage.scale.data_ptr(),
            num_stages=self.num_scale_stage,
            producer_group=G(Th, 32),
            consumer_group=G(Th, 128),
            defer_sync=True,
        )
        acc_pipeline = pipeline.PipelineUmmaAsync.create(
            barrier_storage=storage.acc.data_ptr(),
            num_stages=self.num_acc_stage,
            producer_group=G(Th),
            consumer_group=G(Th, 128 * v),
            cta_layout_vmnk=vmnk,
            defer_sync=True,
        )
        epi_pipeline = pipeline.PipelineAsync.create(
            barrier_storage=storage.epi.data_ptr(),
            num_stages=self.num_epi_stage,
            producer_group=G(Th, 128),
            consumer_group=G(Th, 128),
            defer_sync=True,
        )
        tile_info_pipeline = pipeline.PipelineAsync.create(
            barrier_storage=storage.tile_info.data_ptr(),
            num_stages=self.num_tile_stage,
            producer_group=G(Th, 32),
            consumer_group=G(Th, 32 * 11),
            defer_sync=True,
        )
        tmem = utils.TmemAllocator(
            storage.holding,
            barrier_for_retrieve=self.tmem_alloc_barrier,
            allocator_warp_id=self.epilog_warp_id[0],
            is_two_cta=v == 2,
            two_cta_tmem_dealloc_mbar_ptr=storage.dealloc,
        )
        pipeline.pipeline_init_arrive(cluster_shape_mn=vmnk, is_relaxed=True)
        sC = smem.allocate_tensor(self.c_dtype, c_l.outer, 128, swizzle=c_l.inner)
        sA = smem.allocate_tensor(self.a_dtype, a_l.outer, 128, swizzle=a_l.inner)
        sB = smem.allocate_tensor(self.b_dtype, b_l.outer, 128, swizzle=b_l.inner)
        sSFA = storage.sSFA.get_tensor(sfa_l)
        sSFB = storage.sSFB.get_tensor(cute.make_layout(self.num_scale_stage))
        sInfo = storage.sInfo.get_tensor(cute.make_layout((4, self.num_tile_stage)))
        a_mask = b_mask = None
        if cutlass.const_expr(cute.size(vmnk) > 1):
            a_mask = cpasync.create_tma_multicast_mask(vmnk, coord, mcast_mode=2)
            b_mask = cpasync.create_tma_multicast_mask(vmnk, coord, mcast_mode=1)
        gA = cute.local_tile(mA, cute.slice_(self.mma_tiler, (None, 0, None)), (None, None, None))
        gB = cute.local_tile(mB, cute.slice_(self.mma_tiler, (0, None, None)), (None, None, None))
        gC = cute.local_tile(mC, cute.slice_(self.mma_tiler, (None, None, 0)), (None, None, None))
        gSFA = cute.local_tile(
            mSFA, (self.cta_tile_shape_mnk[0], self.mma_tiler[2]), (None, None, None)
        )
        gSFB = cute.local_tile(mSFB, (self.mma_tiler[1], self.mma_tiler[2]), (None, None, None))
        thr = mma.get_slice(mma_v)
        tCgA, tCgB, tCgC = thr.partition_A(gA), thr.partition_B(gB), thr.partition_C(gC)
        tAsA, tAgA = cpasync.tma_partition(
            ta,
            coord[2],
            cute.make_layout(cute.slice_(vmnk, (0, 0, None, 0)).shape),
            cute.group_modes(sA, 0, 3),
            cute.group_modes(tCgA, 0, 3),
        )
        tBsB, tBgB = cpasync.tma_partition(
            tb,
            coord[1],
            cute.make_layout(cute.slice_(vmnk, (0, None, 0, 0)).shape),
            cute.group_modes(sB, 0, 3),
            cute.group_modes(tCgB, 0, 3),
        )
        tCrA, tCrB = mma.make_fragment_A(sA), mma.make_fragment_B(sB)
        acc_shape = mma.partition_shape_C(self.mma_tiler[:2])
        fake = mma.make_fragment_C(cute.append(acc_shape, self.num_acc_stage))
        final_fake = mma.make_fragment_C(cute.append(acc_shape, 1))
        k_tiles = cute.size(gA, mode=[3])
        pipeline.pipeline_init_wait(cluster_shape_mn=vmnk)

        if warp_idx == self.sched_warp_id:
            cute.arch.setmaxregister_decrease(120)
            sched = utils.StaticPersistentTileScheduler.create(
                params, cute.arch.block_idx(), cute.arch.grid_dim()
            )
            work_tile = sched.initial_work_tile_info()
            state = pipeline.make_pipeline_state(
                pipeline.PipelineUserType.Producer, self.num_tile_stage
            )
            while work_tile.is_valid_tile:
                tile_info_pipeline.producer_acquire(state)
                cur = work_tile.tile_idx
                with cute.arch.elect_one():
                    sInfo[(0, state.index)] = cur[0]
                    sInfo[(1, state.index)] = cur[1]
                    sInfo[(2, state.index)] = cur[2]
                    sInfo[(3, state.index)] = cutlass.Int32(1)
                cute.arch.fence_proxy("async.shared", space="cta")
                self.sched_sync_barrier.arrive_and_wait()
                tile_info_pipeline.producer_commit(state)
                state.advance()
                sched.advance_to_next_work()
                work_tile = sched.get_current_work()
            tile_info_pipeline.producer_acquire(state)
            with cute.arch.elect_one():
                sInfo[(3, state.index)] = cutlass.Int32(0)
            cute.arch.fence_proxy("async.shared", space="cta")
            self.sched_sync_barrier.arrive_and_wait()
            tile_info_pipeline.producer_commit(state)
            state.advance()
            tile_info_pipeline.producer_tail(state)

        info_state = pipeline.make_pipeline_state(
            pipeline.PipelineUserType.Consumer, self.num_tile_stage
        )
        tile_info = cute.make_rmem_tensor((4,), cutlass.Int32)
        is_valid_tile = cutlass.Boolean(True)
        if warp_idx != self.sched_warp_id:
            is_valid_tile = self.next_tile(tile_info_pipeline, info_state, sInfo, tile_info)

        if warp_idx == self.tma_warp_id:
            cute.arch.setmaxregister_decrease(120)
            ab_state = pipeline.make_pipeline_state(
                pipeline.PipelineUserType.Producer, self.num_ab_stage
            )
            while is_valid_tile:
                mn = (tile_info[0] // v, tile_info[1], tile_info[2])
                ab_state.reset_count()
                for k in cutlass.range(0, k_tiles, 1, unroll=1):
                    ab_pipeline.producer_acquire(ab_state)
                    cute.copy(
                        ta,
                        tAgA[(None, mn[0], ab_state.count, mn[2])],
                        tAsA[(None, ab_state.index)],
                        tma_bar_ptr=ab_pipeline.producer_get_barrier(ab_state),
                        mcast_mask=a_mask,
                    )
                    cute.copy(
                        tb,
                        tBgB[(None, mn[1], ab_state.count, mn[2])],
                        tBsB[(None, ab_state.index)],
                        tma_bar_ptr=ab_pipeline.producer_get_barrier(ab_state),
                        mcast_mask=b_mask,
                    )
                    ab_state.advance()
                is_valid_tile = self.next_tile(tile_info_pipeline, info_state, sInfo, tile_info)
            ab_pipeline.producer_tail(ab_state)

        if warp_idx == self.scale_warp_id:
            cute.arch.setmaxregister_decrease(120)
            lane = cute.arch.lane_idx()
            s_state = pipeline.make_pipeline_state(
                pipeline.PipelineUserType.Producer, self.num_scale_stage
            )
            atom = cute.make_copy_atom(cpasync.CopyG2SOp(), cutlass.Float32, num_bits_per_copy=32)
            rows = self.cta_tile_shape_mnk[0]
            tiled = cute.make_tiled_copy_tv(atom, cute.make_layout((32,)), cute.make_layout((1,)))
            thr_s = tiled.get_slice(lane)
            while is_valid_tile:
                for k in cutlass.range(k_tiles, unroll=1):
                    scale_pipeline.producer_acquire(s_state)
                    gs = cute.filter_zeros(gSFA[(None, None, tile_info[0], k, tile_info[2])])
                    src = thr_s.partition_S(
                        cute.make_tensor(
                            gs.iterator, cute.make_layout(rows, stride=mSFA.stride[0][1])
                        )
                    )
                    dst = thr_s.partition_D(sSFA[(None, s_state.index)])
                    cols = cute.make_rmem_tensor(
                        cute.make_layout((1, cute.size(src, mode=[1])), stride=(0, 1)),
                        cutlass.Boolean,
                    )
                    for i in cutlass.range_constexpr(cute.size(src, mode=[1])):
                        cols[0, i] = tile_info[0] * rows + lane + 32 * i < cute.size(mSFA.shape[0])
                    cute.copy(tiled, src, dst, pred=cols)
                    if lane == 0:
                        cute.copy(
                            atom,
                            cute.make_tensor(
                                gSFB[(None, None, tile_info[1], k, tile_info[2])].iterator,
                                cute.make_layout(1),
                            ),
                            cute.make_tensor(sSFB.iterator + s_state.index, cute.make_layout(1)),
                        )
                    scale_pipeline.producer_commit(s_state)
                    s_state.advance()
                is_valid_tile = self.next_tile(tile_info_pipeline, info_state, sInfo, tile_info)
            scale_pipeline.producer_tail(s_state)

        if warp_idx == self.mma_warp_id:
            cute.arch.setmaxregister_decrease(120)
            tmem.wait_for_alloc()
            base = cute.make_tensor(tmem.retrieve_ptr(self.acc_dtype), fake.layout)
            ab_state = pipeline.make_pipeline_state(
                pipeline.PipelineUserType.Consumer, self.num_ab_stage
            )
            acc_state = pipeline.make_pipeline_state(
                pipeline.PipelineUserType.Producer, self.num_acc_stage
            )
            while is_valid_tile:
                ab_state.reset_count()
                for k in cutlass.range(0, k_tiles, 1, unroll=1):
                    if is_leader_cta:
                        acc_pipeline.producer_acquire(acc_state)
                        ab_pipeline.consumer_wait(ab_state)
                        tCtAcc = base[(None, None, None, acc_state.index)]
                        mma.set(tcgen05.Field.ACCUMULATE, False)
                        for kb in cutlass.range(cute.size(tCrA, mode=[2]), unroll_full=True):
                            cute.gemm(
                                mma,
                                tCtAcc,
                                tCrA[(None, None, kb, ab_state.index)],
                                tCrB[(None, None, kb, ab_state.index)],
                                tCtAcc,
                            )
                            mma.set(tcgen05.Field.ACCUMULATE, True)
                        ab_pipeline.consumer_release(ab_state)
                        acc_pipeline.producer_commit(acc_state)
                    ab_state.advance()
                    acc_state.advance()
                is_valid_tile = self.next_tile(tile_info_pipeline, info_state, sInfo, tile_info)
            acc_pipeline.producer_tail(acc_state)

        if warp_idx <= self.acc_update_warp_id[-1]:
            cute.arch.setmaxregister_increase(232)
            tmem.wait_for_alloc()
            ptr = tmem.retrieve_ptr(self.acc_dtype)
            base = cute.make_tensor(ptr, fake.layout)
            final = cute.make_tensor(
                base.iterator + tcgen05.find_tmem_tensor_col_offset(base), final_fake.layout
            )
            t2r, r2t, tAcc, tFinal, rAcc, rFinal, tRows = self.acc_update_copies(tidx, base, final)
            acc_state = pipeline.make_pipeline_state(
                pipeline.PipelineUserType.Consumer, self.num_acc_stage
            )
            s_state = pipeline.make_pipeline_state(
                pipeline.PipelineUserType.Consumer, self.num_scale_stage
            )
            epi_state = pipeline.make_pipeline_state(
                pipeline.PipelineUserType.Producer, self.num_epi_stage
            )
            while is_valid_tile:
                rFinal.fill(0.0)
                for k in cutlass.range(k_tiles, unroll=1):
                    scale_pipeline.consumer_wait(s_state)
                    acc_pipeline.consumer_wait(acc_state)
                    sb = sSFB[s_state.index]
                    for j in cutlass.range_constexpr(cute.size(tRows, mode=[2])):
                        part = (None, None, j)
                        cute.copy(t2r, tAcc[(*part, acc_state.index)], rAcc)
                        rPart, rows = rFinal[part], tRows[part]
                        for i in cutlass.range(cute.size(rAcc), unroll_full=True):
                            scale = sSFA[(rows[i][0], s_state.index)] * sb
                            rPart[i] = rPart[i] + rAcc[i] * scale
                    cute.arch.fence_view_async_tmem_load()
                    acc_pipeline.consumer_release(acc_state)
                    acc_state.advance()
                    scale_pipeline.consumer_release(s_state)
                    s_state.advance()
                epi_pipeline.producer_acquire(epi_state)
                cute.copy(r2t, rFinal, tFinal)
                cute.arch.fence_view_async_tmem_store()
                epi_pipeline.producer_commit(epi_state)
                epi_state.advance()
                is_valid_tile = self.next_tile(tile_info_pipeline, info_state, sInfo, tile_info)
            epi_pipeline.producer_tail(epi_state)

        if warp_idx <= self.epilog_warp_id[-1] and warp_idx >= self.epilog_warp_id[0]:
            cute.arch.setmaxregister_decrease(120)
            tmem.allocate(512)
            tmem.wait_for_alloc()
            ptr = tmem.retrieve_ptr(self.acc_dtype)
            base = cute.make_tensor(ptr, fake.layout)
            final = cute.make_tensor(
                base.iterator + tcgen05.find_tmem_tensor_col_offset(base), final_fake.layout
            )
            epi_tidx = tidx % 128
            f2 = utils.gemm.sm100.transform_partitioned_tensor_layout(final)
            c2 = utils.gemm.sm100.transform_partitioned_tensor_layout(tCgC)
            t2r, tTR_t, tTR_r = utils.gemm.sm100.epilogue_tmem_copy_and_partition(
                self, epi_tidx, f2, c2, epi_tile, self.use_2cta_instrs
            )
            tTR_rC = cute.make_rmem_tensor(tTR_r.shape, self.c_dtype)
            r2s, tRS_rC, tRS_sC = utils.gemm.sm100.epilogue_smem_copy_and_partition(
                self, t2r, tTR_rC, epi_tidx, sC
            )
            bSG_sC, bSG_gC_p = cpasync.tma_partition(
                tc,
                0,
                cute.make_layout(1),
                cute.group_modes(sC, 0, 2),
                cute.group_modes(cute.flat_divide(c2, epi_tile), 0, 2),
            )
            tTR_t = cute.group_modes(tTR_t[(None, None, None, None, None, 0)], 3, 5)
            epi_state = pipeline.make_pipeline_state(
                pipeline.PipelineUserType.Consumer, self.num_epi_stage
            )
            c_pipeline = pipeline.PipelineTmaStore.create(
                num_stages=self.num_c_stage, producer_group=G(Th, 128)
            )
            while is_valid_tile:
                bSG_gC = bSG_gC_p[(None, None, None, tile_info[0] // v, tile_info[1], tile_info[2])]
                bSG_gC = cute.group_modes(bSG_gC, 1, cute.rank(bSG_gC))
                epi_pipeline.consumer_wait(epi_state)
                for i in cutlass.range(cute.size(tTR_t, mode=[3])):
                    cute.copy(t2r, tTR_t[(None, None, None, i)], tTR_r)
                    tRS_rC.store(epilogue_op(r2s.retile(tTR_r).load().to(self.c_dtype)))
                    buf = i % self.num_c_stage
                    cute.copy(r2s, tRS_rC, tRS_sC[(None, None, None, buf)])
                    cute.arch.fence_proxy("async.shared", space="cta")
                    self.epilog_sync_barrier.arrive_and_wait()
                    if warp_idx == self.epilog_warp_id[0]:
                        cute.copy(tc, bSG_sC[(None, buf)], bSG_gC[(None, i)])
                        c_pipeline.producer_commit()
                        c_pipeline.producer_acquire()
                    self.epilog_sync_barrier.arrive_and_wait()
                cute.arch.fence_view_async_tmem_load()
                epi_pipeline.consumer_release(epi_state)
                epi_state.advance()
                is_valid_tile = self.next_tile(tile_info_pipeline, info_state, sInfo, tile_info)
            tmem.relinquish_alloc_permit()
            self.epilog_sync_barrier.arrive_and_wait()
            tmem.free(ptr)
            c_pipeline.producer_tail()

    @cute.jit
    def next_tile(self, tile_info_pipeline, state, sInfo: cute.Tensor, tile_info: cute.Tensor):
        tile_info_pipeline.consumer_wait(state)
        for i in cutlass.range(4, unroll_full=True):
            tile_info[i] = sInfo[(i, state.index)]
        cute.arch.fence_proxy("async.shared", space="cta")
        tile_info_pipeline.consumer_release(state)
        state.advance()
        return tile_info[3] == 1

    def acc_update_copies(self, tidx, base, final):
        x4, dtype = tcgen05.Repetition.x4, self.acc_dtype
        load = cute.make_copy_atom(tcgen05.Ld16x256bOp(x4, tcgen05.Pack.NONE), dtype)
        store = cute.make_copy_atom(tcgen05.St16x256bOp(x4, tcgen05.Unpack.NONE), dtype)
        t = base[((None, None), 0, 0, None)]
        f = final[((None, None), 0, 0, 0)]
        t2r = tcgen05.make_tmem_copy(load, t[(None, None, 0)])
        r2t = tcgen05.make_tmem_copy(store, f)
        tl, ts = t2r.get_slice(tidx), r2t.get_slice(tidx)
        ident = cute.make_identity_tensor(self.cta_tile_shape_mnk[:2])
        rows = tl.partition_D(ident)
        r = cute.make_rmem_tensor(rows[(None, None, 0)].shape, self.acc_dtype)
        rf = cute.make_rmem_tensor(rows.shape, self.acc_dtype)
        return t2r, r2t, tl.partition_S(t), ts.partition_D(f), r, rf, rows


CODES = np.array([0xC0, 0xB8, 0x00, 0x38, 0x40], np.uint8)  # -2 to 2 as Float8E4M3FN


def run(m, n, k, batches, tiler, cluster, use_2cta_instrs):
    rng = np.random.default_rng(0)
    a, b = (rng.integers(-2, 3, (batches, rows, k)) for rows in (m, n))
    a_tensor, b_tensor = (
        from_dlpack(CODES[x + 2].transpose(1, 2, 0), assumed_align=16) for x in (a, b)
    )
    for x in (a_tensor, b_tensor):
        x.element_type = cutlass.Float8E4M3FN
        x.mark_layout_dynamic(leading_dim=1)
    sfa = rng.integers(1, 4, (batches, k // 128, m)).astype(np.float32)
    sfb = rng.integers(1, 4, (batches, n // 128, k // 128)).astype(np.float32)
    c = np.full((batches, m, n), np.nan, np.float32)
    others = [
        from_dlpack(x, assumed_align=16).mark_layout_dynamic(leading_dim=lead)
        for x, lead in (
            (c.transpose(1, 2, 0), 1),
            (sfa.transpose(2, 1, 0), 0),
            (sfb.transpose(1, 2, 0), 1),
        )
    ]
    stream = cuda.CUstream(cuda.CUstream_flags.CU_STREAM_DEFAULT)
    gemm = BlockwiseGemmKernel(tiler, cluster, use_2cta_instrs)
    compiled = cute.compile(gemm, a_tensor, b_tensor, *others, 1, stream)
    compiled(a_tensor, b_tensor, *others, stream)
    a = a * np.repeat(sfa, 128, axis=1).transpose(0, 2, 1)
    b = b * np.repeat(np.repeat(sfb, 128, axis=1), 128, axis=2)
    np.testing.assert_array_equal(c, a @ b.transpose(0, 2, 1))


if __name__ == "__main__":
    run(256, 256, 384, 1, (128, 128), (1, 1), use_2cta_instrs=False)
    run(512, 128, 256, 2, (256, 128), (2, 1), use_2cta_instrs=True)
    print("PASS")
