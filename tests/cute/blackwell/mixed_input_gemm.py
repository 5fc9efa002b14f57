"""A GEMM of Int8 A and 16-bit B: C = (scale A) B^T, with a factor for 128 elements of a row of A.

Four warps convert tiles of A, scale them, and store them to tensor memory, from where tcgen05.mma
reads them; so two pipelines with different kinds of producers meet at the MMA.
"""

import basedsl_cute as cutlass
from basedsl_cute import cute, pipeline, utils
from basedsl_cute.cute.nvgpu import cpasync, tcgen05
from basedsl_cute.utils import sm100

EPILOGUE, MMA, LOAD, TRANSFORM = (0, 1, 2, 3), 4, 5, (8, 9, 10, 11)
THREADS = 384
GRANULARITY = 128  # elements along K that share a factor


class MixedInputGemm:
    """The host's choices; calling it launches the kernel. A (M, K), B (N, K), C (M, N)."""

    def __init__(self, tile_n=64, stages=3, transformed=2):
        self.tiler = (128, tile_n, 64)
        self.stages, self.transformed = stages, transformed

    @cute.jit
    def __call__(self, a: cute.Tensor, scale: cute.Tensor, b: cute.Tensor, c: cute.Tensor):
        one, k_major = tcgen05.CtaGroup.ONE, tcgen05.OperandMajorMode.K
        m, n, _ = self.tiler
        self.a_dtype, self.mma_dtype = a.element_type, b.element_type
        mma = sm100.make_trivial_tiled_mma(
            self.mma_dtype, k_major, k_major, cutlass.Float32, one, (m, n),
            tcgen05.OperandSource.TMEM,
        )  # fmt: skip
        self.a_smem = sm100.make_smem_layout_a(mma, self.tiler, a.element_type, self.stages)
        self.a_tmem = sm100.make_smem_layout_a(mma, self.tiler, self.mma_dtype, self.transformed)
        self.b_smem = sm100.make_smem_layout_b(mma, self.tiler, self.mma_dtype, self.stages)
        a_one, b_one = (cute.slice_(x, (None, None, None, 0)) for x in (self.a_smem, self.b_smem))
        load = cpasync.CopyBulkTensorTileG2SOp(one)
        a_atom, mA = cute.nvgpu.make_tiled_tma_atom_A(load, a, a_one, self.tiler, mma)
        b_atom, mB = cute.nvgpu.make_tiled_tma_atom_B(load, b, b_one, self.tiler, mma)
        self.a_bytes = cute.size_in_bytes(a.element_type, a_one)
        self.b_bytes = cute.size_in_bytes(self.mma_dtype, b_one)

        @cute.struct
        class Storage:
            a: cute.struct.MemRange[cutlass.Int64, self.stages * 2]
            b: cute.struct.MemRange[cutlass.Int64, self.stages * 2]
            t: cute.struct.MemRange[cutlass.Int64, self.transformed * 2]
            acc: cute.struct.MemRange[cutlass.Int64, 2]
            holder: cutlass.Int32

        self.storage = Storage
        grid = (cute.ceil_div(c.shape[0], m), cute.ceil_div(c.shape[1], n), 1)
        self.kernel(mma, a_atom, mA, scale, b_atom, mB, c).launch(
            grid=grid, block=(THREADS, 1, 1), min_blocks_per_mp=1
        )

    @cute.kernel
    def kernel(
        self,
        mma: cute.TiledMma,
        a_atom: cute.CopyAtom,
        mA: cute.Tensor,
        scale: cute.Tensor,
        b_atom: cute.CopyAtom,
        mB: cute.Tensor,
        mC: cute.Tensor,
    ):
        m, n, k = self.tiler
        thread, _, _ = cute.arch.thread_idx()
        warp = cute.arch.make_warp_uniform(cute.arch.warp_idx())
        bx, by, _ = cute.arch.block_idx()
        smem = utils.SmemAllocator()
        storage = smem.allocate(self.storage)
        sA = smem.allocate_tensor(self.a_dtype, self.a_smem.outer, 1024, self.a_smem.inner)
        sB = smem.allocate_tensor(self.mma_dtype, self.b_smem.outer, 1024, self.b_smem.inner)
        agent = pipeline.Agent.Thread
        one, many = pipeline.CooperativeGroup(agent), pipeline.CooperativeGroup(agent, 128)
        a_loads = pipeline.PipelineTmaAsync.create(
            barrier_storage=storage.a.data_ptr(), num_stages=self.stages, producer_group=one,
            consumer_group=pipeline.CooperativeGroup(agent, len(TRANSFORM)), tx_count=self.a_bytes,
            tidx=thread % 128, mcast_mode_mn=(1, 0), defer_sync=True,
        )  # fmt: skip
        b_loads = pipeline.PipelineTmaUmma.create(
            barrier_storage=storage.b.data_ptr(), num_stages=self.stages, producer_group=one,
            consumer_group=one, tx_count=self.b_bytes, mcast_mode_mn=(0, 1), defer_sync=True,
        )  # fmt: skip
        converted = pipeline.PipelineAsyncUmma.create(
            barrier_storage=storage.t.data_ptr(), num_stages=self.transformed,
            producer_group=many, consumer_group=one, defer_sync=True,
        )  # fmt: skip
        acc_producer, acc_consumer = pipeline.PipelineUmmaAsync.create(
            barrier_storage=storage.acc.data_ptr(), num_stages=1, producer_group=one,
            consumer_group=many, defer_sync=True,
        ).make_participants()  # fmt: skip
        tmem = utils.TmemAllocator(
            storage.holder, barrier_for_retrieve=pipeline.NamedBarrier(1, 32 * 9)
        )
        pipeline.pipeline_init_arrive(is_relaxed=True)
        thr_mma = mma.get_slice(0)
        gA = cute.local_tile(mA, (m, k), (bx, None))
        gB = cute.local_tile(mB, (n, k), (by, None))
        gC = cute.local_tile(mC, (m, n), (bx, by))
        layout = cute.make_layout(1)
        tAs, tAg = cpasync.tma_partition(
            a_atom, 0, layout, cute.group_modes(sA, 0, 3),
            cute.group_modes(thr_mma.partition_A(gA), 0, 3),
        )  # fmt: skip
        tBs, tBg = cpasync.tma_partition(
            b_atom, 0, layout, cute.group_modes(sB, 0, 3),
            cute.group_modes(thr_mma.partition_B(gB), 0, 3),
        )  # fmt: skip
        fake = mma.make_fragment_C(mma.partition_shape_C((m, n)))
        columns = tcgen05.find_tmem_tensor_col_offset(fake)
        count = cute.size(gA, mode=[2])
        pipeline.pipeline_init_wait()

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
                    tma_bar_ptr=a_loads.producer_get_barrier(a_state),
                )  # fmt: skip
                a_state.advance()
                b_loads.producer_acquire(b_state)
                cute.copy(
                    b_atom, tBg[None, i], tBs[None, b_state.index],
                    tma_bar_ptr=b_loads.producer_get_barrier(b_state),
                )  # fmt: skip
                b_state.advance()
            a_loads.producer_tail(a_state)
            b_loads.producer_tail(b_state)

        if warp == MMA:
            tmem.wait_for_alloc()
            start = tmem.retrieve_ptr(cutlass.Float32)
            acc = cute.make_tensor(start, fake.layout)
            rA = mma.make_fragment_A(self.a_tmem.outer)
            tA = cute.make_tensor(cute.recast_ptr(start + columns, dtype=self.mma_dtype), rA.layout)
            rB = mma.make_fragment_B(sB)
            b_state = pipeline.make_pipeline_state(pipeline.PipelineUserType.Consumer, self.stages)
            t_state = pipeline.make_pipeline_state(
                pipeline.PipelineUserType.Consumer, self.transformed
            )
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
            start = tmem.retrieve_ptr(cutlass.Float32)
            row = thread % 128
            words = cute.make_tensor(
                start + columns, cute.make_layout((m, k // 2, self.transformed),
                                                  stride=(65536, 1, k // 2)),
            )  # fmt: skip
            put = tcgen05.make_tmem_copy(
                cute.make_copy_atom(tcgen05.St32x32bOp(tcgen05.Repetition(k // 2)),
                                    cutlass.Float32), words[None, None, 0],
            )  # fmt: skip
            target = put.get_slice(row).partition_D(words)
            a_state = pipeline.make_pipeline_state(pipeline.PipelineUserType.Consumer, self.stages)
            t_state = pipeline.make_pipeline_state(
                pipeline.PipelineUserType.Producer, self.transformed
            )
            for i in cutlass.range(count):
                a_loads.consumer_wait(a_state)
                given = cute.make_rmem_tensor((16, k // 16), self.a_dtype)
                mine = sA[(row, None), 0, None, a_state.index]
                cute.autovec_copy(cute.group_modes(mine, 0, 2), cute.group_modes(given, 0, 2))
                cute.arch.fence_view_async_shared()
                a_loads.consumer_release(a_state)
                a_state.advance()
                factor = cutlass.Float32(0.0)
                if bx * m + row < scale.shape[0]:
                    factor = scale[bx * m + row, i * k // GRANULARITY]
                out = cute.make_rmem_tensor(
                    put.get_slice(row).partition_S(words[None, None, 0]).shape, cutlass.Float32
                )
                narrow = cute.make_tensor(
                    cute.recast_ptr(out.iterator, dtype=self.mma_dtype), cute.make_layout(k)
                )
                values = cute.make_tensor(given.iterator, k).load()
                narrow.store((values.to(cutlass.Float32) * factor).to(self.mma_dtype))
                converted.producer_acquire(t_state)
                cute.copy(put, out, target[None, None, None, t_state.index])
                cute.arch.fence_view_async_tmem_store()
                converted.producer_commit(t_state)
                t_state.advance()
            converted.producer_tail(t_state)

        if warp < MMA:
            cute.arch.setmaxregister_increase(192)
            tmem.allocate(
                utils.get_num_tmem_alloc_cols([fake, mma.make_fragment_A(self.a_tmem.outer)], True)
            )
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
            places = mine.partition_D(cute.make_identity_tensor((m, n)))
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
