"""The persistent GEMM of a tutorial: warps for loads, products, the epilogue and the schedule.

C = A B^T with batches: A (M, K, L), B (N, K, L), C (M, N, L). Tiles come from a static schedule or
from clusters that have not started; C goes through shared memory and TMA, or from registers.
"""

import basedsl_cute as cutlass
from basedsl_cute import cute, pipeline, utils
from basedsl_cute.cute.nvgpu import cpasync, tcgen05
from basedsl_cute.utils import sm100


class PersistentGemm:
    """The host's choices; calling it launches the kernel."""

    def __init__(
        self,
        tile=(128, 64),
        cluster=(1, 1),
        use_2cta=False,
        scheduler="static",
        tma_store=True,
        acc_dtype=cutlass.Float32,
        stages=(3, 2, 2),
        active_clusters=2,
        overlap=0,
    ):
        self.mma_tiler = (*tile, 1)
        self.cluster = cluster
        self.use_2cta_instrs = use_2cta
        self.is_dynamic = scheduler == "clc"
        self.tma_store = tma_store
        self.acc_dtype = acc_dtype
        self.num_ab_stage, self.num_acc_stage, self.num_c_stage = stages
        self.active_clusters = active_clusters
        # Columns that two stages of accumulators share, whose barrier has one stage then.
        self.overlap = overlap
        self.epilogue_warp_id = (0, 1, 2, 3)
        self.mma_warp, self.tma_warp, self.sched_warp = 4, 5, 6
        self.threads = 32 * (7 if self.is_dynamic else 6)
        self.epilog_sync_bar_id, self.tmem_bar_id = 1, 2

    @cute.jit
    def __call__(
        self,
        a: cute.Tensor,
        b: cute.Tensor,
        c: cute.Tensor,
        epilogue_op: cutlass.Constexpr = lambda x: x,
    ):
        self.c_dtype = c.element_type
        self.c_layout = utils.LayoutEnum.from_tensor(c)
        a_major = utils.LayoutEnum.from_tensor(a).mma_major_mode()
        b_major = utils.LayoutEnum.from_tensor(b).mma_major_mode()
        group = tcgen05.CtaGroup.TWO if self.use_2cta_instrs else tcgen05.CtaGroup.ONE
        mma = sm100.make_trivial_tiled_mma(
            a.element_type, a_major, b_major, self.acc_dtype, group, self.mma_tiler[:2]
        )
        k = cute.size(mma.shape_mnk, mode=[2]) * 4
        self.mma_tiler = (*self.mma_tiler[:2], k)
        v = cute.size(mma.thr_id.shape)
        self.cta_tile_shape_mnk = (self.mma_tiler[0] // v, *self.mma_tiler[1:])
        self.vmnk = cute.tiled_divide(cute.make_layout((*self.cluster, 1)), (mma.thr_id.shape,))
        self.a_layout = sm100.make_smem_layout_a(
            mma, self.mma_tiler, a.element_type, self.num_ab_stage
        )
        self.b_layout = sm100.make_smem_layout_b(
            mma, self.mma_tiler, b.element_type, self.num_ab_stage
        )
        self.epi_tile = sm100.compute_epilogue_tile_shape(
            self.cta_tile_shape_mnk, self.use_2cta_instrs, self.c_layout, self.c_dtype
        )
        self.c_smem = sm100.make_smem_layout_epi(
            self.c_dtype, self.c_layout, self.epi_tile, self.num_c_stage
        )
        a_one = cute.slice_(self.a_layout, (None, None, None, 0))
        b_one = cute.slice_(self.b_layout, (None, None, None, 0))
        a_atom, a_tma = cute.nvgpu.make_tiled_tma_atom_A(
            sm100.cluster_shape_to_tma_atom_A(self.cluster, mma.thr_id),
            a,
            a_one,
            self.mma_tiler,
            mma,
            self.vmnk.shape,
        )
        b_atom, b_tma = cute.nvgpu.make_tiled_tma_atom_B(
            sm100.cluster_shape_to_tma_atom_B(self.cluster, mma.thr_id),
            b,
            b_one,
            self.mma_tiler,
            mma,
            self.vmnk.shape,
        )
        self.tx = v * (
            cute.size_in_bytes(a.element_type, a_one) + cute.size_in_bytes(b.element_type, b_one)
        )
        c_atom, c_out = None, c
        if cutlass.const_expr(self.tma_store):
            c_one = cute.slice_(self.c_smem, (None, None, 0))
            c_atom, c_out = cpasync.make_tiled_tma_atom(
                cpasync.CopyBulkTensorTileS2GOp(), c, c_one, self.epi_tile
            )
        m, n, batches = c.shape
        tiles = (
            cute.ceil_div(m, self.cta_tile_shape_mnk[0]),
            cute.ceil_div(n, self.cta_tile_shape_mnk[1]),
            batches,
        )
        if cutlass.const_expr(self.is_dynamic):
            params = utils.ClcDynamicPersistentTileSchedulerParams(tiles, (*self.cluster, 1))
            grid = utils.ClcDynamicPersistentTileScheduler.get_grid_shape(params)
        else:
            params = utils.PersistentTileSchedulerParams(tiles, (*self.cluster, 1))
            grid = utils.StaticPersistentTileScheduler.get_grid_shape(params, self.active_clusters)

        @cute.struct
        class Storage:
            ab_barriers: cute.struct.MemRange[cutlass.Int64, self.num_ab_stage * 2]
            acc_barriers: cute.struct.MemRange[cutlass.Int64, self.num_acc_stage * 2]
            clc_barriers: cute.struct.MemRange[cutlass.Int64, 2]
            dealloc: cutlass.Int64
            holder: cutlass.Int32
            response: cute.struct.Align[cute.struct.MemRange[cutlass.Int32, 4], 16]

        self.storage = Storage
        self.kernel(mma, a_atom, a_tma, b_atom, b_tma, c_atom, c_out, params, epilogue_op).launch(
            grid=grid, block=(self.threads, 1, 1), cluster=(*self.cluster, 1)
        )

    @cute.kernel
    def kernel(
        self,
        mma: cute.TiledMma,
        a_atom: cute.CopyAtom,
        mA: cute.Tensor,
        b_atom: cute.CopyAtom,
        mB: cute.Tensor,
        c_atom,
        mC: cute.Tensor,
        params: utils.PersistentTileSchedulerParams,
        epilogue_op: cutlass.Constexpr,
    ):
        tidx, _, _ = cute.arch.thread_idx()
        warp = cute.arch.make_warp_uniform(cute.arch.warp_idx())
        bidx = cute.arch.block_idx()
        v = cute.size(mma.thr_id.shape)
        v_coord = bidx[0] % v
        is_leader = v_coord == 0
        rank = cute.arch.make_warp_uniform(cute.arch.block_idx_in_cluster())
        place = self.vmnk.get_flat_coord(rank)
        if warp == self.tma_warp:
            cpasync.prefetch_descriptor(a_atom)
            cpasync.prefetch_descriptor(b_atom)
            if cutlass.const_expr(self.tma_store):
                cpasync.prefetch_descriptor(c_atom)
        smem = utils.SmemAllocator()
        storage = smem.allocate(self.storage)
        a_dtype, b_dtype = mma.op.a_dtype, mma.op.b_dtype
        sA = smem.allocate_tensor(a_dtype, self.a_layout.outer, 1024, self.a_layout.inner)
        sB = smem.allocate_tensor(b_dtype, self.b_layout.outer, 1024, self.b_layout.inner)
        thread = pipeline.Agent.Thread
        one = pipeline.CooperativeGroup(thread)
        sharing = cute.size(self.vmnk, mode=[1]) + cute.size(self.vmnk, mode=[2]) - 1
        ab = pipeline.PipelineTmaUmma.create(
            barrier_storage=storage.ab_barriers.data_ptr(),
            num_stages=self.num_ab_stage,
            producer_group=one,
            consumer_group=pipeline.CooperativeGroup(thread, sharing),
            tx_count=self.tx,
            cta_layout_vmnk=self.vmnk,
            defer_sync=True,
        )
        ab_producer, ab_consumer = ab.make_participants()
        acc = pipeline.PipelineUmmaAsync.create(
            barrier_storage=storage.acc_barriers.data_ptr(),
            num_stages=1 if self.overlap else self.num_acc_stage,
            producer_group=one,
            consumer_group=pipeline.CooperativeGroup(thread, v * len(self.epilogue_warp_id)),
            cta_layout_vmnk=self.vmnk,
            defer_sync=True,
        )
        if cutlass.const_expr(self.is_dynamic):
            clusters = cute.size(self.cluster)
            clc = pipeline.PipelineClcFetchAsync.create(
                barrier_storage=storage.clc_barriers.data_ptr(),
                num_stages=1,
                producer_group=one,
                consumer_group=pipeline.CooperativeGroup(thread, 32 * (1 + clusters * 6)),
                tx_count=16,
                cta_layout_vmnk=self.vmnk,
                defer_sync=True,
            )
        tmem = utils.TmemAllocator(
            storage.holder,
            barrier_for_retrieve=pipeline.NamedBarrier(self.tmem_bar_id, 32 * 5),
            allocator_warp_id=self.epilogue_warp_id[0],
            is_two_cta=self.use_2cta_instrs,
            two_cta_tmem_dealloc_mbar_ptr=storage.dealloc,
        )
        pipeline.pipeline_init_arrive(cluster_shape_mn=self.vmnk, is_relaxed=True)

        a_mask = cpasync.create_tma_multicast_mask(self.vmnk, place, mcast_mode=2)
        b_mask = cpasync.create_tma_multicast_mask(self.vmnk, place, mcast_mode=1)
        gA = cute.local_tile(mA, cute.slice_(self.mma_tiler, (None, 0, None)), (None,) * 3)
        gB = cute.local_tile(mB, cute.slice_(self.mma_tiler, (0, None, None)), (None,) * 3)
        gC = cute.local_tile(mC, cute.slice_(self.mma_tiler, (None, None, 0)), (None,) * 3)
        part = mma.get_slice(v_coord)
        tCgA, tCgB, tCgC = part.partition_A(gA), part.partition_B(gB), part.partition_C(gC)
        tAsA, tAgA = cpasync.tma_partition(
            a_atom,
            place[2],
            cute.make_layout(cute.size(self.vmnk, mode=[2])),
            cute.group_modes(sA, 0, 3),
            cute.group_modes(tCgA, 0, 3),
        )
        tBsB, tBgB = cpasync.tma_partition(
            b_atom,
            place[1],
            cute.make_layout(cute.size(self.vmnk, mode=[1])),
            cute.group_modes(sB, 0, 3),
            cute.group_modes(tCgB, 0, 3),
        )
        tCrA, tCrB = mma.make_fragment_A(sA), mma.make_fragment_B(sB)
        shape = mma.partition_shape_C(self.mma_tiler[:2])
        fake = mma.make_fragment_C(cute.append(shape, self.num_acc_stage))
        columns = utils.get_num_tmem_alloc_cols(fake)
        sums_layout = fake.layout
        if cutlass.const_expr(self.overlap):
            step = self.mma_tiler[1] - self.overlap
            sums_layout = cute.make_layout(fake.shape, stride=(*fake.stride[:3], step))
        k_tiles = cute.size(gA, mode=[3])
        pipeline.pipeline_init_wait(cluster_shape_mn=self.vmnk)

        if cutlass.const_expr(self.is_dynamic):
            sched = utils.ClcDynamicPersistentTileScheduler.create(
                params, bidx, cute.arch.grid_dim(), storage.response.data_ptr()
            )
            clc_state = pipeline.make_pipeline_state(pipeline.PipelineUserType.Consumer, 1)
        else:
            sched = utils.StaticPersistentTileScheduler.create(params, bidx, cute.arch.grid_dim())
        work = sched.initial_work_tile_info()

        if warp == self.tma_warp:
            while work.is_valid_tile:
                m, n, batch = work.tile_idx
                from_a = tAgA[None, m // v, None, batch]
                from_b = tBgB[None, n, None, batch]
                for k in cutlass.range(k_tiles):
                    empty = ab_producer.acquire_and_advance()
                    cute.copy(
                        a_atom,
                        from_a[None, k],
                        tAsA[None, empty.index],
                        tma_bar_ptr=empty.barrier,
                        mcast_mask=a_mask,
                    )
                    cute.copy(
                        b_atom,
                        from_b[None, k],
                        tBsB[None, empty.index],
                        tma_bar_ptr=empty.barrier,
                        mcast_mask=b_mask,
                    )
                if cutlass.const_expr(self.is_dynamic):
                    clc.consumer_wait(clc_state)
                    work = sched.get_current_work()
                    clc.consumer_release(clc_state)
                    clc_state.advance()
                else:
                    sched.advance_to_next_work()
                    work = sched.get_current_work()
            ab_producer.tail()

        if cutlass.const_expr(self.is_dynamic):
            if warp == self.sched_warp and rank == 0:
                clc_producer = pipeline.make_pipeline_state(
                    pipeline.PipelineUserType.ProducerConsumer, 1
                )
                while work.is_valid_tile:
                    clc.producer_acquire(clc_producer)
                    sched.advance_to_next_work(clc.producer_get_barrier(clc_producer))
                    clc_producer.advance()
                    clc.consumer_wait(clc_state)
                    work = sched.get_current_work()
                    clc.consumer_release(clc_state)
                    clc_state.advance()
                clc.producer_tail(clc_producer)

        if warp == self.mma_warp:
            tmem.wait_for_alloc()
            start = tmem.retrieve_ptr(self.acc_dtype)
            sums = cute.make_tensor(start, sums_layout)
            acc_state = pipeline.make_pipeline_state(
                pipeline.PipelineUserType.Producer, 1 if self.overlap else self.num_acc_stage
            )
            while work.is_valid_tile:
                stage = acc_state.index
                if cutlass.const_expr(self.overlap):
                    stage = acc_state.phase ^ 1
                here = sums[None, None, None, stage]
                if is_leader:
                    acc.producer_acquire(acc_state)
                    mma.set(tcgen05.Field.ACCUMULATE, False)
                    for _ in cutlass.range(k_tiles):
                        full = ab_consumer.wait_and_advance()
                        for kb in cutlass.range_constexpr(cute.size(tCrA, mode=[2])):
                            at = (None, None, kb, full.index)
                            cute.gemm(mma, here, tCrA[at], tCrB[at], here)
                            mma.set(tcgen05.Field.ACCUMULATE, True)
                        full.release()
                    acc.producer_commit(acc_state)
                acc_state.advance()
                if cutlass.const_expr(self.is_dynamic):
                    clc.consumer_wait(clc_state)
                    work = sched.get_current_work()
                    clc.consumer_release(clc_state)
                    clc_state.advance()
                else:
                    sched.advance_to_next_work()
                    work = sched.get_current_work()
            acc.producer_tail(acc_state)

        sC = None
        if cutlass.const_expr(self.tma_store):
            sC = smem.allocate_tensor(self.c_dtype, self.c_smem.outer, 1024, self.c_smem.inner)
        if warp < self.mma_warp:
            tmem.allocate(columns)
            tmem.wait_for_alloc()
            start = tmem.retrieve_ptr(self.acc_dtype)
            sums = cute.make_tensor(start, sums_layout)
            acc_state = pipeline.make_pipeline_state(
                pipeline.PipelineUserType.Consumer, 1 if self.overlap else self.num_acc_stage
            )
            if cutlass.const_expr(self.tma_store):
                stores = pipeline.PipelineTmaStore.create(
                    num_stages=self.num_c_stage,
                    producer_group=pipeline.CooperativeGroup(thread, 128),
                )
            executed = cutlass.Int32(0)
            while work.is_valid_tile:
                m, n, batch = work.tile_idx
                tile = (m // v, n, batch)
                if cutlass.const_expr(self.tma_store):
                    acc_state = utils.gemm.sm100.epilogue_tma_store(
                        self,
                        tidx,
                        warp,
                        c_atom,
                        sums,
                        sC,
                        tCgC,
                        self.epi_tile,
                        executed,
                        epilogue_op,
                        tile,
                        acc_state,
                        acc,
                        stores,
                    )
                else:
                    acc_state = utils.gemm.sm100.epilogue(
                        self,
                        tidx,
                        sums,
                        tCgC,
                        self.epi_tile,
                        epilogue_op,
                        tile,
                        acc_state,
                        acc,
                        tCcC_base=part.partition_C(
                            cute.local_tile(
                                cute.make_identity_tensor(mC.shape),
                                cute.slice_(self.mma_tiler, (None, None, 0)),
                                (None,) * 3,
                            )
                        ),
                        mC_mnl=mC,
                        overlapping_accum=self.overlap > 0,
                    )
                executed += 1
                if cutlass.const_expr(self.is_dynamic):
                    clc.consumer_wait(clc_state)
                    work = sched.get_current_work()
                    clc.consumer_release(clc_state)
                    clc_state.advance()
                else:
                    sched.advance_to_next_work()
                    work = sched.get_current_work()
            if cutlass.const_expr(self.tma_store):
                stores.producer_tail()
            tmem.relinquish_alloc_permit()
            pipeline.NamedBarrier(3, 128).arrive_and_wait()
            tmem.free(start)
