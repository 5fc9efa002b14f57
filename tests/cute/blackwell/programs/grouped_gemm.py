"""A grouped GEMM: problems in a table on the device, tensor maps that are changed for each."""

from typing import Union

import cuda.bindings.driver as cuda
import cutlass
import cutlass.cute as cute
import cutlass.pipeline as pipeline
import cutlass.utils as utils
import cutlass.utils.blackwell_helpers as sm100_utils
import numpy as np
from blackwell_operands import matrix, tensor_like
from cutlass.cute.nvgpu import cpasync, tcgen05
from cutlass.cute.runtime import from_dlpack


class GroupedGemmKernel:
    bytes_per_tensormap = 128
    num_tensormaps = 3

    def __init__(
        self,
        acc_dtype,
        use_2cta_instrs,
        mma_tiler_mn,
        cluster_shape_mn,
        tensormap_update_mode=utils.TensorMapUpdateMode.SMEM,
    ):
        self.acc_dtype = acc_dtype
        self.use_2cta_instrs = use_2cta_instrs
        self.cluster_shape_mn = cluster_shape_mn
        self.mma_tiler = (*mma_tiler_mn, 1)
        self.cta_group = tcgen05.CtaGroup.TWO if use_2cta_instrs else tcgen05.CtaGroup.ONE
        self.tensormap_update_mode = tensormap_update_mode
        self.delegate_tensormap_ab_init = tensormap_update_mode == utils.TensorMapUpdateMode.SMEM
        self.epilog_warp_id = (0, 1, 2, 3)
        self.epilogue_warp_id = self.epilog_warp_id
        self.mma_warp_id, self.tma_warp_id = 4, 5
        self.threads_per_cta = 192
        self.epilog_sync_bar_id, self.tmem_ptr_sync_bar_id, self.tensormap_ab_init_bar_id = 1, 2, 4
        self.num_ab_stage, self.num_acc_stage, self.num_c_stage = 3, 2, 2

    @cute.jit
    def __call__(
        self,
        initial_a: cute.Tensor,
        initial_b: cute.Tensor,
        initial_c: cute.Tensor,
        group_count: cutlass.Constexpr[int],
        problem_shape_mnkl: cute.Tensor,
        strides_abc: cute.Tensor,
        tensor_address_abc: cute.Tensor,
        total_num_clusters: cutlass.Constexpr[int],
        tensormap_cute_tensor: cute.Tensor,
        max_active_clusters: cutlass.Constexpr[int],
        stream: cuda.CUstream,
    ):
        self.a_dtype, self.b_dtype, self.c_dtype = (
            initial_a.element_type,
            initial_b.element_type,
            initial_c.element_type,
        )
        self.a_major_mode = utils.LayoutEnum.from_tensor(initial_a).mma_major_mode()
        self.b_major_mode = utils.LayoutEnum.from_tensor(initial_b).mma_major_mode()
        self.c_layout = utils.LayoutEnum.from_tensor(initial_c)
        tiled_mma = sm100_utils.make_trivial_tiled_mma(
            self.a_dtype,
            self.a_major_mode,
            self.b_major_mode,
            self.acc_dtype,
            self.cta_group,
            self.mma_tiler[:2],
        )
        self.mma_tiler = (*self.mma_tiler[:2], 4 * cute.size(tiled_mma.shape_mnk, mode=[2]))
        v = cute.size(tiled_mma.thr_id.shape)
        self.cta_tile_shape_mnk = (self.mma_tiler[0] // v, self.mma_tiler[1], self.mma_tiler[2])
        self.cluster_tile_shape_mnk = tuple(
            x * y for x, y in zip(self.cta_tile_shape_mnk, (*self.cluster_shape_mn, 1))
        )
        self.vmnk = cute.tiled_divide(
            cute.make_layout((*self.cluster_shape_mn, 1)), (tiled_mma.thr_id.shape,)
        )
        self.num_mcast_ctas_a, self.num_mcast_ctas_b = (
            cute.size(self.vmnk.shape[i]) for i in (2, 1)
        )
        self.epi_tile = utils.compute_epilogue_tile_shape(
            self.cta_tile_shape_mnk, self.use_2cta_instrs, self.c_layout, self.c_dtype
        )
        self.a_l = sm100_utils.make_smem_layout_a(
            tiled_mma, self.mma_tiler, self.a_dtype, self.num_ab_stage
        )
        self.b_l = sm100_utils.make_smem_layout_b(
            tiled_mma, self.mma_tiler, self.b_dtype, self.num_ab_stage
        )
        self.c_l = sm100_utils.make_smem_layout_epi(
            self.c_dtype, self.c_layout, self.epi_tile, self.num_c_stage
        )
        a1, b1 = (cute.slice_(x, (None, None, None, 0)) for x in (self.a_l, self.b_l))
        a_op = sm100_utils.cluster_shape_to_tma_atom_A(self.cluster_shape_mn, tiled_mma.thr_id)
        b_op = sm100_utils.cluster_shape_to_tma_atom_B(self.cluster_shape_mn, tiled_mma.thr_id)
        ta, mA = cute.nvgpu.make_tiled_tma_atom_A(
            a_op, initial_a, a1, self.mma_tiler, tiled_mma, self.vmnk.shape
        )
        tb, mB = cute.nvgpu.make_tiled_tma_atom_B(
            b_op, initial_b, b1, self.mma_tiler, tiled_mma, self.vmnk.shape
        )
        tc, mC = cpasync.make_tiled_tma_atom(
            cpasync.CopyBulkTensorTileS2GOp(),
            initial_c,
            cute.slice_(self.c_l, (None, None, 0)),
            self.epi_tile,
        )
        self.num_tma_load_bytes = v * (
            cute.size_in_bytes(self.a_dtype, a1) + cute.size_in_bytes(self.b_dtype, b1)
        )
        problem_shape_ntile_mnl = (
            self.cluster_shape_mn[0],
            self.cluster_shape_mn[1],
            cutlass.Int32(total_num_clusters),
        )
        params = utils.PersistentTileSchedulerParams(
            problem_shape_ntile_mnl, (*self.cluster_shape_mn, 1)
        )
        grid = utils.StaticPersistentTileScheduler.get_grid_shape(params, max_active_clusters)
        in_gmem = self.tensormap_update_mode == utils.TensorMapUpdateMode.GMEM
        size_tensormap_in_i64 = (
            0 if in_gmem else self.num_tensormaps * self.bytes_per_tensormap // 8
        )

        @cute.struct
        class SharedStorage:
            tensormap_buffer: cute.struct.MemRange[cutlass.Int64, size_tensormap_in_i64]
            ab_full_mbar_ptr: cute.struct.MemRange[cutlass.Int64, 2 * self.num_ab_stage]
            acc_full_mbar_ptr: cute.struct.MemRange[cutlass.Int64, 2 * self.num_acc_stage]
            tmem_dealloc_mbar_ptr: cutlass.Int64
            tmem_holding_buf: cutlass.Int32
            sC: cute.struct.Align[
                cute.struct.MemRange[self.c_dtype, cute.cosize(self.c_l.outer)], 1024
            ]
            sA: cute.struct.Align[
                cute.struct.MemRange[self.a_dtype, cute.cosize(self.a_l.outer)], 1024
            ]
            sB: cute.struct.Align[
                cute.struct.MemRange[self.b_dtype, cute.cosize(self.b_l.outer)], 1024
            ]

        self.shared_storage = SharedStorage
        self.kernel(
            tiled_mma,
            ta,
            mA,
            tb,
            mB,
            tc,
            mC,
            self.vmnk,
            self.a_l,
            self.b_l,
            self.c_l,
            self.epi_tile,
            params,
            group_count,
            problem_shape_mnkl,
            strides_abc,
            tensor_address_abc,
            tensormap_cute_tensor,
        ).launch(
            grid=grid,
            block=[self.threads_per_cta, 1, 1],
            cluster=(*self.cluster_shape_mn, 1),
            smem=SharedStorage.size_in_bytes(),
            stream=stream,
            min_blocks_per_mp=1,
        )

    @cute.kernel
    def kernel(
        self,
        tiled_mma: cute.TiledMma,
        ta: cute.CopyAtom,
        mA: cute.Tensor,
        tb: cute.CopyAtom,
        mB: cute.Tensor,
        tc: cute.CopyAtom,
        mC: cute.Tensor,
        vmnk: cute.Layout,
        a_l: cute.ComposedLayout,
        b_l: cute.ComposedLayout,
        c_l: Union[cute.Layout, cute.ComposedLayout],
        epi_tile: cute.Tile,
        params: utils.PersistentTileSchedulerParams,
        group_count: cutlass.Constexpr,
        problem_sizes_mnkl: cute.Tensor,
        strides_abc: cute.Tensor,
        ptrs_abc: cute.Tensor,
        tensormaps: cute.Tensor,
    ):
        warp_idx = cute.arch.make_warp_uniform(cute.arch.warp_idx())
        if warp_idx == self.tma_warp_id:
            for atom in (ta, tb, tc):
                cpasync.prefetch_descriptor(atom)
        v = cute.size(tiled_mma.thr_id.shape)
        bid = cute.arch.block_idx()
        mma_v = bid[0] % v
        is_leader_cta = mma_v == 0
        coord = vmnk.get_flat_coord(cute.arch.make_warp_uniform(cute.arch.block_idx_in_cluster()))
        tidx, _, _ = cute.arch.thread_idx()
        smem = utils.SmemAllocator()
        storage = smem.allocate(self.shared_storage)
        tensormap_a_smem_ptr = tensormap_b_smem_ptr = tensormap_c_smem_ptr = None
        if cutlass.const_expr(self.tensormap_update_mode == utils.TensorMapUpdateMode.SMEM):
            tensormap_a_smem_ptr = storage.tensormap_buffer.data_ptr()
            tensormap_b_smem_ptr = tensormap_a_smem_ptr + self.bytes_per_tensormap // 8
            tensormap_c_smem_ptr = tensormap_b_smem_ptr + self.bytes_per_tensormap // 8
        ab_pipeline = pipeline.PipelineTmaUmma.create(
            barrier_storage=storage.ab_full_mbar_ptr.data_ptr(),
            num_stages=self.num_ab_stage,
            producer_group=pipeline.CooperativeGroup(pipeline.Agent.Thread),
            consumer_group=pipeline.CooperativeGroup(
                pipeline.Agent.Thread, self.num_mcast_ctas_a + self.num_mcast_ctas_b - 1
            ),
            tx_count=self.num_tma_load_bytes,
            cta_layout_vmnk=vmnk,
            defer_sync=True,
        )
        acc_pipeline = pipeline.PipelineUmmaAsync.create(
            barrier_storage=storage.acc_full_mbar_ptr.data_ptr(),
            num_stages=self.num_acc_stage,
            producer_group=pipeline.CooperativeGroup(pipeline.Agent.Thread),
            consumer_group=pipeline.CooperativeGroup(pipeline.Agent.Thread, 4 * v),
            cta_layout_vmnk=vmnk,
            defer_sync=True,
        )
        tmem = utils.TmemAllocator(
            storage.tmem_holding_buf,
            barrier_for_retrieve=pipeline.NamedBarrier(
                barrier_id=self.tmem_ptr_sync_bar_id, num_threads=160
            ),
            allocator_warp_id=self.epilog_warp_id[0],
            is_two_cta=v == 2,
            two_cta_tmem_dealloc_mbar_ptr=storage.tmem_dealloc_mbar_ptr,
        )
        pipeline.pipeline_init_arrive(cluster_shape_mn=vmnk, is_relaxed=True)
        sC = storage.sC.get_tensor(c_l.outer, swizzle=c_l.inner)
        sA = storage.sA.get_tensor(a_l.outer, swizzle=a_l.inner)
        sB = storage.sB.get_tensor(b_l.outer, swizzle=b_l.inner)
        a_mask = b_mask = None
        if cutlass.const_expr(self.num_mcast_ctas_a > 1 or self.num_mcast_ctas_b > 1 or v == 2):
            a_mask = cpasync.create_tma_multicast_mask(vmnk, coord, mcast_mode=2)
            b_mask = cpasync.create_tma_multicast_mask(vmnk, coord, mcast_mode=1)
        gA = cute.local_tile(mA, cute.slice_(self.mma_tiler, (None, 0, None)), (None, None, None))
        gB = cute.local_tile(mB, cute.slice_(self.mma_tiler, (0, None, None)), (None, None, None))
        gC = cute.local_tile(mC, cute.slice_(self.mma_tiler, (None, None, 0)), (None, None, None))
        thr = tiled_mma.get_slice(mma_v)
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
        tCrA, tCrB = tiled_mma.make_fragment_A(sA), tiled_mma.make_fragment_B(sB)
        fake = tiled_mma.make_fragment_C(
            cute.append(tiled_mma.partition_shape_C(self.mma_tiler[:2]), self.num_acc_stage)
        )
        pipeline.pipeline_init_wait(cluster_shape_mn=vmnk)

        grid_dim = cute.arch.grid_dim()
        tensormap_workspace_idx = bid[2] * grid_dim[1] * grid_dim[0] + bid[1] * grid_dim[0] + bid[0]
        tensormap_manager = utils.TensorMapManager(
            self.tensormap_update_mode, GroupedGemmKernel.bytes_per_tensormap
        )
        tensormap_a_ptr, tensormap_b_ptr, tensormap_c_ptr = [
            tensormap_manager.get_tensormap_ptr(
                tensormaps[(tensormap_workspace_idx, which, None)].iterator
            )
            for which in range(3)
        ]
        if cutlass.const_expr(self.tensormap_update_mode == utils.TensorMapUpdateMode.SMEM):
            init_a, init_b, init_c = (
                tensormap_a_smem_ptr,
                tensormap_b_smem_ptr,
                tensormap_c_smem_ptr,
            )
        else:
            init_a, init_b, init_c = tensormap_a_ptr, tensormap_b_ptr, tensormap_c_ptr

        if warp_idx == self.tma_warp_id:
            if cutlass.const_expr(not self.delegate_tensormap_ab_init):
                tensormap_manager.init_tensormap_from_atom(ta, init_a, self.tma_warp_id)
                tensormap_manager.init_tensormap_from_atom(tb, init_b, self.tma_warp_id)
                tensormap_manager.fence_tensormap_initialization()
            else:
                cute.arch.barrier(barrier_id=self.tensormap_ab_init_bar_id, number_of_threads=64)
            tile_sched = utils.StaticPersistentTileScheduler.create(params, bid, grid_dim)
            ts = utils.GroupedGemmTileSchedulerHelper(
                group_count,
                params,
                self.cluster_tile_shape_mnk,
                utils.create_initial_search_state(),
            )
            last_group_idx = cutlass.Int32(-1)
            work_tile = tile_sched.initial_work_tile_info()
            ab_state = pipeline.make_pipeline_state(
                pipeline.PipelineUserType.Producer, self.num_ab_stage
            )
            while work_tile.is_valid_tile:
                cur = work_tile.tile_idx
                gs = ts.delinearize_z(cur, problem_sizes_mnkl)
                cur_k_tile_cnt = gs.cta_tile_count_k
                cur_group_idx = gs.group_idx
                is_group_changed = cur_group_idx != last_group_idx
                if is_group_changed:
                    real_a = self.make_tensor_for_tensormap_update(
                        cur_group_idx,
                        self.a_dtype,
                        (gs.problem_shape_m, gs.problem_shape_n, gs.problem_shape_k),
                        strides_abc,
                        ptrs_abc,
                        0,
                    )
                    real_b = self.make_tensor_for_tensormap_update(
                        cur_group_idx,
                        self.b_dtype,
                        (gs.problem_shape_m, gs.problem_shape_n, gs.problem_shape_k),
                        strides_abc,
                        ptrs_abc,
                        1,
                    )
                    tensormap_manager.update_tensormap(
                        (real_a, real_b),
                        (ta, tb),
                        (tensormap_a_ptr, tensormap_b_ptr),
                        self.tma_warp_id,
                        (tensormap_a_smem_ptr, tensormap_b_smem_ptr),
                    )
                mma_coord = (
                    gs.cta_tile_idx_m // v,
                    gs.cta_tile_idx_n,
                    0,
                )
                tAgA_ = tAgA[(None, mma_coord[0], None, mma_coord[2])]
                tBgB_ = tBgB[(None, mma_coord[1], None, mma_coord[2])]
                ab_state.reset_count()
                if is_group_changed:
                    tensormap_manager.fence_tensormap_update(tensormap_a_ptr)
                    tensormap_manager.fence_tensormap_update(tensormap_b_ptr)
                for k in cutlass.range(0, cur_k_tile_cnt, 1, unroll=1):
                    ab_pipeline.producer_acquire(ab_state)
                    cute.copy(
                        ta,
                        tAgA_[(None, ab_state.count)],
                        tAsA[(None, ab_state.index)],
                        tma_bar_ptr=ab_pipeline.producer_get_barrier(ab_state),
                        mcast_mask=a_mask,
                        tma_desc_ptr=tensormap_manager.get_tensormap_ptr(
                            tensormap_a_ptr, cute.AddressSpace.generic
                        ),
                    )
                    cute.copy(
                        tb,
                        tBgB_[(None, ab_state.count)],
                        tBsB[(None, ab_state.index)],
                        tma_bar_ptr=ab_pipeline.producer_get_barrier(ab_state),
                        mcast_mask=b_mask,
                        tma_desc_ptr=tensormap_manager.get_tensormap_ptr(
                            tensormap_b_ptr, cute.AddressSpace.generic
                        ),
                    )
                    ab_state.advance()
                tile_sched.advance_to_next_work()
                work_tile = tile_sched.get_current_work()
                last_group_idx = cur_group_idx
            ab_pipeline.producer_tail(ab_state)

        if warp_idx == self.mma_warp_id:
            if cutlass.const_expr(self.delegate_tensormap_ab_init):
                tensormap_manager.init_tensormap_from_atom(ta, init_a, self.mma_warp_id)
                tensormap_manager.init_tensormap_from_atom(tb, init_b, self.mma_warp_id)
                tensormap_manager.fence_tensormap_initialization()
                cute.arch.barrier(barrier_id=self.tensormap_ab_init_bar_id, number_of_threads=64)
            tmem.wait_for_alloc()
            base = cute.make_tensor(tmem.retrieve_ptr(self.acc_dtype), fake.layout)
            tile_sched = utils.StaticPersistentTileScheduler.create(params, bid, grid_dim)
            ts = utils.GroupedGemmTileSchedulerHelper(
                group_count,
                params,
                self.cluster_tile_shape_mnk,
                utils.create_initial_search_state(),
            )
            work_tile = tile_sched.initial_work_tile_info()
            ab_state = pipeline.make_pipeline_state(
                pipeline.PipelineUserType.Consumer, self.num_ab_stage
            )
            acc_state = pipeline.make_pipeline_state(
                pipeline.PipelineUserType.Producer, self.num_acc_stage
            )
            while work_tile.is_valid_tile:
                cur_k_tile_cnt, cur_group_idx = self.k_tiles_of(
                    ts, work_tile.tile_idx, problem_sizes_mnkl
                )
                tCtAcc = base[(None, None, None, acc_state.index)]
                ab_state.reset_count()
                if is_leader_cta:
                    acc_pipeline.producer_acquire(acc_state)
                tiled_mma.set(tcgen05.Field.ACCUMULATE, False)
                for k in range(cur_k_tile_cnt):
                    if is_leader_cta:
                        ab_pipeline.consumer_wait(ab_state)
                        for kb in cutlass.range(cute.size(tCrA, mode=[2]), unroll_full=True):
                            c4 = (None, None, kb, ab_state.index)
                            cute.gemm(tiled_mma, tCtAcc, tCrA[c4], tCrB[c4], tCtAcc)
                            tiled_mma.set(tcgen05.Field.ACCUMULATE, True)
                        ab_pipeline.consumer_release(ab_state)
                    ab_state.advance()
                if is_leader_cta:
                    acc_pipeline.producer_commit(acc_state)
                acc_state.advance()
                tile_sched.advance_to_next_work()
                work_tile = tile_sched.get_current_work()
            acc_pipeline.producer_tail(acc_state)

        if warp_idx < self.mma_warp_id:
            tensormap_manager.init_tensormap_from_atom(tc, init_c, self.epilog_warp_id[0])
            tensormap_manager.fence_tensormap_initialization()
            tmem.allocate(utils.get_num_tmem_alloc_cols(fake))
            tmem.wait_for_alloc()
            ptr = tmem.retrieve_ptr(self.acc_dtype)
            base = cute.make_tensor(ptr, fake.layout)
            tc_acc = utils.gemm.sm100.transform_partitioned_tensor_layout(base)
            tc_c = utils.gemm.sm100.transform_partitioned_tensor_layout(tCgC)
            t2r, tTR_tAcc_base, tTR_rAcc = utils.gemm.sm100.epilogue_tmem_copy_and_partition(
                self, tidx, tc_acc, tc_c, epi_tile, self.use_2cta_instrs
            )
            tTR_rC = cute.make_rmem_tensor(tTR_rAcc.shape, self.c_dtype)
            r2s, tRS_rC, tRS_sC = utils.gemm.sm100.epilogue_smem_copy_and_partition(
                self, t2r, tTR_rC, tidx, sC
            )
            gC_epi = cute.flat_divide(tc_c, epi_tile)
            bSG_sC, bSG_gC_p = cpasync.tma_partition(
                tc,
                0,
                cute.make_layout(1),
                cute.group_modes(sC, 0, 2),
                cute.group_modes(gC_epi, 0, 2),
            )
            tile_sched = utils.StaticPersistentTileScheduler.create(params, bid, grid_dim)
            ts = utils.GroupedGemmTileSchedulerHelper(
                group_count,
                params,
                self.cluster_tile_shape_mnk,
                utils.create_initial_search_state(),
            )
            work_tile = tile_sched.initial_work_tile_info()
            acc_state = pipeline.make_pipeline_state(
                pipeline.PipelineUserType.Consumer, self.num_acc_stage
            )
            c_pipeline = pipeline.PipelineTmaStore.create(
                num_stages=self.num_c_stage,
                producer_group=pipeline.CooperativeGroup(pipeline.Agent.Thread, 128),
            )
            last_group_idx = cutlass.Int32(-1)
            while work_tile.is_valid_tile:
                gs = ts.delinearize_z(work_tile.tile_idx, problem_sizes_mnkl)
                cur_group_idx = gs.group_idx
                is_group_changed = cur_group_idx != last_group_idx
                if is_group_changed:
                    real_c = self.make_tensor_for_tensormap_update(
                        cur_group_idx,
                        self.c_dtype,
                        (gs.problem_shape_m, gs.problem_shape_n, gs.problem_shape_k),
                        strides_abc,
                        ptrs_abc,
                        2,
                    )
                    tensormap_manager.update_tensormap(
                        (real_c,),
                        (tc,),
                        (tensormap_c_ptr,),
                        self.epilog_warp_id[0],
                        (tensormap_c_smem_ptr,),
                    )
                mma_coord = (
                    gs.cta_tile_idx_m // v,
                    gs.cta_tile_idx_n,
                    0,
                )
                bSG_gC = bSG_gC_p[(None, None, None, *mma_coord)]
                tTR_tAcc = tTR_tAcc_base[(None, None, None, None, None, acc_state.index)]
                acc_pipeline.consumer_wait(acc_state)
                tTR_tAcc = cute.group_modes(tTR_tAcc, 3, cute.rank(tTR_tAcc))
                bSG_gC = cute.group_modes(bSG_gC, 1, cute.rank(bSG_gC))
                if is_group_changed:
                    if warp_idx == self.epilog_warp_id[0]:
                        tensormap_manager.fence_tensormap_update(tensormap_c_ptr)
                subtile_cnt = cute.size(tTR_tAcc.shape, mode=[3])
                num_prev_subtiles = tile_sched.num_tiles_executed * subtile_cnt
                for i in range(subtile_cnt):
                    cute.copy(t2r, tTR_tAcc[(None, None, None, i)], tTR_rAcc)
                    acc_vec = r2s.retile(tTR_rAcc).load()
                    tRS_rC.store(acc_vec.to(self.c_dtype))
                    buf = (num_prev_subtiles + i) % self.num_c_stage
                    cute.copy(r2s, tRS_rC, tRS_sC[(None, None, None, buf)])
                    cute.arch.fence_proxy("async.shared", space="cta")
                    cute.arch.barrier(barrier_id=self.epilog_sync_bar_id, number_of_threads=128)
                    if warp_idx == self.epilog_warp_id[0]:
                        cute.copy(
                            tc,
                            bSG_sC[(None, buf)],
                            bSG_gC[(None, i)],
                            tma_desc_ptr=tensormap_manager.get_tensormap_ptr(
                                tensormap_c_ptr, cute.AddressSpace.generic
                            ),
                        )
                        c_pipeline.producer_commit()
                        c_pipeline.producer_acquire()
                    cute.arch.barrier(barrier_id=self.epilog_sync_bar_id, number_of_threads=128)
                with cute.arch.elect_one():
                    acc_pipeline.consumer_release(acc_state)
                acc_state.advance()
                tile_sched.advance_to_next_work()
                work_tile = tile_sched.get_current_work()
                last_group_idx = cur_group_idx
            tmem.relinquish_alloc_permit()
            cute.arch.barrier(barrier_id=self.epilog_sync_bar_id, number_of_threads=128)
            tmem.free(ptr)
            c_pipeline.producer_tail()

    @cute.jit
    def k_tiles_of(
        self, ts: utils.GroupedGemmTileSchedulerHelper, coord: tuple, sizes: cute.Tensor
    ):
        gs = ts.delinearize_z(coord, sizes)
        return gs.cta_tile_count_k, gs.group_idx

    @cute.jit
    def make_tensor_for_tensormap_update(
        self,
        group_idx: cutlass.Int32,
        dtype,
        problem_shape_mnk: tuple[cutlass.Int32, cutlass.Int32, cutlass.Int32],
        strides_abc: cute.Tensor,
        ptrs: cute.Tensor,
        tensor_index: int,
    ):
        ptr_i64 = ptrs[(group_idx, tensor_index)]
        tensor_gmem_ptr = cute.make_ptr(dtype, ptr_i64, cute.AddressSpace.gmem, assumed_align=16)
        stride_mn, stride_k = (strides_abc[(group_idx, tensor_index, i)] for i in range(2))
        m, n, k = problem_shape_mnk
        rows = n if cutlass.const_expr(tensor_index == 1) else m
        columns = n if cutlass.const_expr(tensor_index == 2) else k
        layout = cute.make_layout(
            (rows, columns, cutlass.Int32(1)), stride=(stride_mn, stride_k, cutlass.Int32(0))
        )
        return cute.make_tensor(tensor_gmem_ptr, layout)


def run(problems, c_dtype, majors, tiler, cluster, use_2cta_instrs, mode):
    rng = np.random.default_rng(1)
    rows_majors = [one == rows for one, rows in zip(majors, "mnm")]
    dtypes = (cutlass.Float16, cutlass.Float16, c_dtype)
    groups, strides, addresses = [], [], []
    for m, n, k, _ in problems:
        operands = []
        for shape, is_major, dtype in zip(((m, k), (n, k), (m, n)), rows_majors, dtypes):
            values = matrix(rng, 1, *shape, is_major)
            operands.append((values, *tensor_like(values, dtype, is_major)))
        groups.append(operands)
        strides.append([[d // x.itemsize for d in x.strides[:2]] for _, _, x in operands])
        addresses.append([x.ctypes.data for _, _, x in operands])
    initial = [tensor for _, tensor, _ in groups[0]]
    block_m, block_n = tiler[0] // (2 if use_2cta_instrs else 1) * cluster[0], tiler[1] * cluster[1]
    clusters = sum(-(-m // block_m) * -(-n // block_n) for m, n, _, _ in problems)
    tables = ((problems, np.int32), (strides, np.int32), (addresses, np.int64))
    tables = [from_dlpack(np.array(x, t), assumed_align=16) for x, t in tables]
    room = np.zeros((4 * cluster[0] * cluster[1] + 1, 3, 16), np.int64)
    room = room.reshape(-1)[-(room.ctypes.data % 128) // 8 % 16 :][: room.size - 48]
    maps = from_dlpack(room.reshape(-1, 3, 16), assumed_align=128)
    kernel = GroupedGemmKernel(cutlass.Float32, use_2cta_instrs, tiler, cluster, mode)
    stream = cuda.CUstream(cuda.CUstream_flags.CU_STREAM_DEFAULT)
    compiled = cute.compile(kernel, *initial, len(problems), *tables, clusters, maps, 1, stream)
    compiled(*initial, *tables, maps, stream)
    for (a, _, _), (b, _, _), (_, _, c) in groups:
        np.testing.assert_array_equal(c, np.einsum("mkl,nkl->mnl", a, b).astype(c.dtype))


if __name__ == "__main__":
    modes = utils.TensorMapUpdateMode
    problems = [(128, 64, 64, 1), (256, 128, 192, 1), (64, 200, 128, 1), (8, 8, 8, 1)]
    run(problems, cutlass.Float16, "kkn", (128, 64), (1, 1), False, modes.SMEM)
    run(problems, cutlass.Float32, "mnm", (256, 64), (2, 2), True, modes.GMEM)
    print("PASS")
