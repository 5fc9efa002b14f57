"""A GEMM of narrow A and 16-bit B: C = (scale A) B^T, where a granule of elements of A shares a
factor.

Four warps convert tiles of A, scale them, and store them to where tcgen05.mma reads them, tensor
memory for a K-major A and shared memory for an M-major one; so two pipelines with different kinds
of producers meet at the MMA. The layouts, copies and conversions are `utils.mixed_input_helpers`.
"""

import basedsl_cute as cutlass
from basedsl_cute import cute, pipeline, utils
from basedsl_cute.cute.nvgpu import cpasync, tcgen05
from basedsl_cute.utils import mixed_input_helpers as mixed
from basedsl_cute.utils import sm100
from basedsl_cute.utils.mixed_input_helpers import TransformMode

EPILOGUE, MMA, LOAD, SCALE, TRANSFORM = (0, 1, 2, 3), 4, 5, 6, (8, 9, 10, 11)
THREADS = 384


class MixedInputGemm:
    """The host's choices; calling it launches the kernel. A (M, K), B (N, K), C (M, N); bytes of A
    hold `a_dtype`, if it is given.

    Without granularities (M, K) of factors A is only converted. `use_2cta` multiplies by pairs of
    blocks; A and its factors are multicast along N of a cluster, and B along M.
    """

    def __init__(
        self, granularity=None, use_2cta=False, a_dtype=None, cluster=None, tile_n=64, stages=3,
        transformed=2,
    ):  # fmt: skip
        self.blocks = 2 if use_2cta else 1
        self.cluster = cluster or (self.blocks, 1)
        self.tiler = (128 * self.blocks, tile_n, 64)
        self.stages, self.transformed = stages, transformed
        self.granularity, self.packed = granularity, a_dtype
        self.mode = TransformMode.ConvertOnly if granularity is None else TransformMode.ConvertScale

    @cute.jit
    def __call__(self, a: cute.Tensor, scale: cute.Tensor, b: cute.Tensor, c: cute.Tensor):
        two = self.blocks == 2
        group = tcgen05.CtaGroup.TWO if two else tcgen05.CtaGroup.ONE
        m, n, _ = self.tiler
        if cutlass.const_expr(self.packed is not None):
            a = cute.recast_tensor(a, self.packed)
        self.a_dtype, self.mma_dtype = a.element_type, b.element_type
        a_major = utils.LayoutEnum.from_tensor(a).mma_major_mode()
        b_major = utils.LayoutEnum.from_tensor(b).mma_major_mode()
        self.source = mixed.get_transform_a_source(a_major)
        mma = sm100.make_trivial_tiled_mma(
            self.mma_dtype, a_major, b_major, cutlass.Float32, group, (m, n), self.source
        )
        self.a_smem, self.a_next, self.b_smem = mixed.compute_smem_layout(
            mma, self.tiler, self.a_dtype, self.mma_dtype, self.stages, self.transformed
        )
        a_one, b_one = (cute.slice_(x, (None, None, None, 0)) for x in (self.a_smem, self.b_smem))
        cluster = (*self.cluster, 1)
        self.vmnk = cute.tiled_divide(cute.make_layout(cluster), (mma.thr_id.shape,))
        self.across, self.down = cluster[1], cluster[0] // self.blocks
        a_load = mixed.get_tma_atom_kind(self.across > 1, two, False)
        a_atom, mA = cute.nvgpu.make_tiled_tma_atom_A(
            a_load, a, a_one, self.tiler, mma, self.vmnk.shape
        )
        b_atom, mB = cute.nvgpu.make_tiled_tma_atom_B(
            mixed.get_tma_atom_kind(self.down > 1, two, True),
            b,
            b_one,
            self.tiler,
            mma,
            self.vmnk.shape,
        )
        self.a_bytes = cute.size_in_bytes(a.element_type, a_one)
        self.b_bytes = cute.size_in_bytes(self.mma_dtype, b_one) * self.blocks
        self.s_smem, s_atom, mS = None, None, None
        if cutlass.const_expr(self.mode is TransformMode.ConvertScale):
            down, across = self.granularity
            major = utils.LayoutEnum.from_tensor(scale).mma_major_mode()
            factors = cute.make_tensor(
                scale.iterator,
                mixed.get_gmem_layout_scale((*a.shape, 1), down, across, major),
            )
            self.s_dtype = scale.element_type
            self.s_smem = mixed.get_smem_layout_scale(
                self.tiler, two, down, across, major, self.s_dtype, self.stages
            )
            s_one = cute.slice_(self.s_smem, (None, None, 0))
            s_atom, mS = cpasync.make_tiled_tma_atom(
                a_load, factors, s_one, (m // self.blocks, self.tiler[2]), self.across
            )
            self.s_bytes = cute.size_in_bytes(self.s_dtype, cute.filter_zeros(s_one))

        @cute.struct
        class Storage:
            a: cute.struct.MemRange[cutlass.Int64, self.stages * 2]
            s: cute.struct.MemRange[cutlass.Int64, self.stages * 2]
            b: cute.struct.MemRange[cutlass.Int64, self.stages * 2]
            t: cute.struct.MemRange[cutlass.Int64, self.transformed * 2]
            acc: cute.struct.MemRange[cutlass.Int64, 2]
            dealloc: cutlass.Int64
            holder: cutlass.Int32

        self.storage = Storage
        tiles = cute.ceil_div(c.shape[0], m) * self.blocks, cute.ceil_div(c.shape[1], n), 1
        grid = cute.round_up(tiles, cluster)
        self.kernel(mma, a_atom, mA, s_atom, mS, b_atom, mB, c).launch(
            grid=grid, block=(THREADS, 1, 1), cluster=cluster, min_blocks_per_mp=1
        )

    @cute.kernel
    def kernel(
        self,
        mma: cute.TiledMma,
        a_atom: cute.CopyAtom,
        mA: cute.Tensor,
        s_atom: cute.CopyAtom | None,
        mS: cute.Tensor | None,
        b_atom: cute.CopyAtom,
        mB: cute.Tensor,
        mC: cute.Tensor,
    ):
        m, n, k = self.tiler
        scaled = self.mode is TransformMode.ConvertScale
        thread, _, _ = cute.arch.thread_idx()
        warp = cute.arch.make_warp_uniform(cute.arch.warp_idx())
        bx, by, _ = cute.arch.block_idx()
        v, bx = bx % self.blocks, bx // self.blocks
        leads = v == 0
        smem = utils.SmemAllocator()
        storage = smem.allocate(self.storage)
        sA = smem.allocate_tensor(self.a_dtype, self.a_smem.outer, 1024, self.a_smem.inner)
        sB = smem.allocate_tensor(self.mma_dtype, self.b_smem.outer, 1024, self.b_smem.inner)
        agent = pipeline.Agent.Thread
        one = pipeline.CooperativeGroup(agent)
        warps = pipeline.CooperativeGroup(agent, len(TRANSFORM) * self.across)
        pairs = pipeline.CooperativeGroup(agent, self.down)
        both = pipeline.CooperativeGroup(agent, 128 * self.blocks)
        common = {"cta_layout_vmnk": self.vmnk, "defer_sync": True}
        a_loads = pipeline.PipelineTmaAsync.create(
            barrier_storage=storage.a.data_ptr(), num_stages=self.stages, producer_group=one,
            consumer_group=warps, tx_count=self.a_bytes, tidx=thread % 128, mcast_mode_mn=(1, 0),
            **common,
        )  # fmt: skip
        b_loads = pipeline.PipelineTmaUmma.create(
            barrier_storage=storage.b.data_ptr(), num_stages=self.stages, producer_group=one,
            consumer_group=pairs, tx_count=self.b_bytes, mcast_mode_mn=(0, 1), **common,
        )  # fmt: skip
        converted = pipeline.PipelineAsyncUmma.create(
            barrier_storage=storage.t.data_ptr(), num_stages=self.transformed,
            producer_group=both, consumer_group=one, **common,
        )  # fmt: skip
        acc_producer, acc_consumer = pipeline.PipelineUmmaAsync.create(
            barrier_storage=storage.acc.data_ptr(), num_stages=1, producer_group=one,
            consumer_group=both, **common,
        ).make_participants()  # fmt: skip
        if cutlass.const_expr(scaled):
            sS = smem.allocate_tensor(self.s_dtype, self.s_smem, 128)
            s_loads = pipeline.PipelineTmaAsync.create(
                barrier_storage=storage.s.data_ptr(), num_stages=self.stages, producer_group=one,
                consumer_group=warps, tx_count=self.s_bytes, tidx=thread % 128,
                mcast_mode_mn=(1, 0), **common,
            )  # fmt: skip
        in_tmem = self.source is tcgen05.OperandSource.TMEM
        if cutlass.const_expr(not in_tmem):
            sT = smem.allocate_tensor(self.mma_dtype, self.a_next.outer, 1024, self.a_next.inner)
        tmem = utils.TmemAllocator(
            storage.holder, barrier_for_retrieve=pipeline.NamedBarrier(1, 32 * 9),
            is_two_cta=self.blocks == 2, two_cta_tmem_dealloc_mbar_ptr=storage.dealloc.ptr,
        )  # fmt: skip
        pipeline.pipeline_init_arrive(cluster_shape_mn=self.vmnk, is_relaxed=True)
        thr_mma = mma.get_slice(v)
        gA = cute.local_tile(mA, (m, k), (bx, None))
        gB = cute.local_tile(mB, (n, k), (by, None))
        gC = cute.local_tile(mC, (m, n), (bx, by))
        place = self.vmnk.get_flat_coord(
            cute.arch.make_warp_uniform(cute.arch.block_idx_in_cluster())
        )
        along_n = cute.make_layout(self.across)
        a_mask = b_mask = None
        if cutlass.const_expr(self.across > 1):
            a_mask = cpasync.create_tma_multicast_mask(self.vmnk, place, mcast_mode=2)
        if cutlass.const_expr(self.down > 1):
            b_mask = cpasync.create_tma_multicast_mask(self.vmnk, place, mcast_mode=1)
        tAs, tAg = cpasync.tma_partition(
            a_atom, place[2], along_n, cute.group_modes(sA, 0, 3),
            cute.group_modes(thr_mma.partition_A(gA), 0, 3),
        )  # fmt: skip
        tBs, tBg = cpasync.tma_partition(
            b_atom, place[1], cute.make_layout(self.down), cute.group_modes(sB, 0, 3),
            cute.group_modes(thr_mma.partition_B(gB), 0, 3),
        )  # fmt: skip
        fake = mma.make_fragment_C(mma.partition_shape_C((m, n)))
        columns = tcgen05.find_tmem_tensor_col_offset(fake)
        held = [fake]
        if cutlass.const_expr(in_tmem):
            fragment = mma.make_fragment_A(self.a_next.outer)
            held = [fake, fragment]
        count = cute.size(gA, mode=[2])
        pipeline.pipeline_init_wait(cluster_shape_mn=self.vmnk)

        if warp >= MMA and warp < TRANSFORM[0]:  # all four warps: it is of a warpgroup
            cute.arch.setmaxregister_decrease(96)
        if warp == LOAD:
            a_state, b_state = (
                pipeline.make_pipeline_state(pipeline.PipelineUserType.Producer, self.stages)
                for _ in range(2)
            )
            for i in cutlass.range(count):
                a_loads.producer_acquire(a_state)
                cute.copy(
                    a_atom, tAg[None, i], tAs[None, a_state.index],
                    tma_bar_ptr=a_loads.producer_get_barrier(a_state), mcast_mask=a_mask,
                )  # fmt: skip
                a_state.advance()
                b_loads.producer_acquire(b_state)
                cute.copy(
                    b_atom, tBg[None, i], tBs[None, b_state.index],
                    tma_bar_ptr=b_loads.producer_get_barrier(b_state), mcast_mask=b_mask,
                )  # fmt: skip
                b_state.advance()
            a_loads.producer_tail(a_state)
            b_loads.producer_tail(b_state)

        if cutlass.const_expr(scaled):
            if warp == SCALE:
                gS = cute.local_tile(mS[None, None, 0], (128, k), (bx * self.blocks + v, None))
                tSs, tSg = cpasync.tma_partition(
                    s_atom,
                    place[2],
                    along_n,
                    cute.group_modes(sS, 0, 2),
                    cute.group_modes(gS, 0, 2),
                )
                s_state = pipeline.make_pipeline_state(
                    pipeline.PipelineUserType.Producer, self.stages
                )
                for i in cutlass.range(count):
                    s_loads.producer_acquire(s_state)
                    cute.copy(
                        s_atom, tSg[None, i], tSs[None, s_state.index],
                        tma_bar_ptr=s_loads.producer_get_barrier(s_state), mcast_mask=a_mask,
                    )  # fmt: skip
                    s_state.advance()
                s_loads.producer_tail(s_state)

        if warp == MMA:
            tmem.wait_for_alloc()
            start = tmem.retrieve_ptr(cutlass.Float32)
            acc = cute.make_tensor(start, fake.layout)
            if cutlass.const_expr(in_tmem):
                tA = cute.make_tensor(
                    cute.recast_ptr(start + columns, dtype=self.mma_dtype), fragment.layout
                )
            else:
                tA = mma.make_fragment_A(sT)
            rB = mma.make_fragment_B(sB)
            b_state = pipeline.make_pipeline_state(pipeline.PipelineUserType.Consumer, self.stages)
            t_state = pipeline.make_pipeline_state(
                pipeline.PipelineUserType.Consumer, self.transformed
            )
            if leads:
                empty = acc_producer.acquire_and_advance()
                mma.set(tcgen05.Field.ACCUMULATE, False)
                for _ in cutlass.range(count):
                    b_loads.consumer_wait(b_state)
                    converted.consumer_wait(t_state)
                    for kb in cutlass.range_constexpr(cute.size(rB, mode=[2])):
                        cute.gemm(
                            mma, acc, tA[None, None, kb, t_state.index],
                            rB[None, None, kb, b_state.index], acc,
                        )  # fmt: skip
                        mma.set(tcgen05.Field.ACCUMULATE, True)
                    converted.consumer_release(t_state)
                    b_loads.consumer_release(b_state)
                    t_state.advance()
                    b_state.advance()
                empty.commit()
                acc_producer.tail()

        if warp >= TRANSFORM[0]:
            cute.arch.setmaxregister_increase(208)
            tmem.wait_for_alloc()
            local = thread % 128
            if cutlass.const_expr(in_tmem):
                start = tmem.retrieve_ptr(cutlass.Float32)
                target = cute.make_tensor(
                    cute.recast_ptr(start + columns, dtype=self.mma_dtype), fragment.layout
                )
            else:
                target = sT
            atom_in, atom_out = mixed.get_copy_atom_a_transform(
                self.mma_dtype, self.blocks == 2, self.source, sA.shape, self.a_dtype
            )
            get, put, mine, place = mixed.transform_partition(
                self.source, self.mode, atom_in, atom_out, sA, target, local
            )
            a_state, s_state = (
                pipeline.make_pipeline_state(pipeline.PipelineUserType.Consumer, self.stages)
                for _ in range(2)
            )
            t_state = pipeline.make_pipeline_state(
                pipeline.PipelineUserType.Producer, self.transformed
            )
            given = cute.make_rmem_tensor(mine[None, None, None, 0].shape, self.a_dtype)
            for _ in cutlass.range(count):
                a_loads.consumer_wait(a_state)
                cute.copy(get, mine[None, None, None, a_state.index], given)
                cute.arch.fence_view_async_shared()
                a_loads.consumer_release(a_state)
                a_state.advance()
                if cutlass.const_expr(scaled):
                    factors = get.get_slice(local).partition_S(sS)
                    s_loads.consumer_wait(s_state)
                    factor = factors[None, None, None, s_state.index].load().to(cutlass.Float32)
                    s_loads.consumer_release(s_state)
                    s_state.advance()
                    values = mixed.cvt_tensor_a(given, cutlass.Float32) * factor
                    values = values.to(self.mma_dtype)
                else:
                    values = mixed.cvt_tensor_a(given, self.mma_dtype, False)
                converted.producer_acquire(t_state)
                mixed.store_transformed_a(values, place[None, None, None, t_state.index], put)
                if cutlass.const_expr(in_tmem):
                    cute.arch.fence_view_async_tmem_store()
                else:
                    cute.arch.fence_view_async_shared()
                converted.producer_commit(t_state)
                t_state.advance()
            converted.producer_tail(t_state)

        if warp < MMA:
            cute.arch.setmaxregister_increase(192)
            tmem.allocate(utils.get_num_tmem_alloc_cols(held, True))
            tmem.wait_for_alloc()
            start = tmem.retrieve_ptr(cutlass.Float32)
            acc = cute.make_tensor(start, fake.layout)
            tmem.relinquish_alloc_permit()
            whole = acc[(None, None), 0, 0]
            load = tcgen05.make_tmem_copy(
                cute.make_copy_atom(tcgen05.Ld32x32bOp(tcgen05.Repetition(n)), cutlass.Float32),
                whole,
            )
            mine = load.get_slice(thread)
            target = mine.partition_D(thr_mma.partition_C(gC)[(None, None), 0, 0])
            places = mine.partition_D(
                thr_mma.partition_C(cute.make_identity_tensor((m, n)))[(None, None), 0, 0]
            )
            values = cute.make_rmem_tensor(target.shape, cutlass.Float32)
            full = acc_consumer.wait_and_advance()
            cute.copy(load, mine.partition_S(whole), values)
            cute.arch.fence_view_async_tmem_load()
            full.release()
            for e in cutlass.range_constexpr(cute.size(values)):
                r, column = places[e]
                if bx * m + r < mC.shape[0] and by * n + column < mC.shape[1]:
                    target[e] = values[e].to(mC.element_type)
            pipeline.NamedBarrier(2, 128).arrive_and_wait()
            tmem.free(start)
