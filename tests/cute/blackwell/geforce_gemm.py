"""A block-scaled GEMM for GeForce Blackwell GPUs: C = (A SFA) (B SFB)^T by mma.sync, fed by TMA.

A (M, K) and B (N, K) are K-major arrays of bytes, packed where elements have 4 bits; scale factors
bytes in the order of `tile_atom_to_shape_SF`. One warp loads. Eight warps share a tile, or two
groups of four take tiles in turns, one multiplying while the other stores (`ping_pong`).
"""

import basedsl_cute as cutlass
from basedsl_cute import cute, pipeline, utils
from basedsl_cute.cute.nvgpu import cpasync, warp
from basedsl_cute.utils import blockscaled_layout, hopper_helpers, sm100

EPILOGUE_BARRIER = 1


class GeforceGemm:
    """The host's choices; calling it launches the kernel."""

    def __init__(self, op, tile, ping_pong=False, blocks=2, stages=2):
        self.op, self.tile, self.ping_pong = op, tile, ping_pong
        self.blocks, self.stages = blocks, stages
        self.vector = op.sf_vec_size
        # Factors come in chunks of 128 rows, which two tiles of 64 columns share.
        self.sfb_rows = max(tile[1], 128)
        # 4-bit elements have a byte each beside others, and are unpacked by ldmatrix.
        self.bytes_each = op.shape_mnk[2] == 32
        self.groups = 2 if ping_pong else 1
        self.atoms = (2, 2, 1) if ping_pong else (4, 2, 1)
        self.mma_threads = 128 if ping_pong else 256
        self.load_warp = 8
        self.threads = 288

    def in_smem(self, dtype):
        return cutlass.Int8 if self.bytes_each and dtype.width < 8 else dtype

    @cute.jit
    def __call__(
        self, a: cute.Tensor, b: cute.Tensor, sfa: cute.Tensor, sfb: cute.Tensor, c: cute.Tensor
    ):
        op, (m, n, k) = self.op, self.tile
        a, b = cute.recast_tensor(a, op.a_dtype), cute.recast_tensor(b, op.b_dtype)
        full_m, full_n = c.shape
        full_k = a.shape[1]
        self.c_dtype = c.element_type
        sfa, sfb = (
            cute.make_tensor(
                cute.recast_ptr(x.iterator, dtype=op.sf_dtype),
                blockscaled_layout.tile_atom_to_shape_SF((rows, full_k, 1), self.vector),
            )
            for x, rows in ((sfa, full_m), (sfb, full_n))
        )
        mma = cute.make_tiled_mma(
            op, self.atoms, sm100.get_permutation_mnk(self.tile, self.vector, self.bytes_each)
        )
        row = utils.LayoutEnum.ROW_MAJOR
        self.a_smem, self.b_smem = (
            major(row, self.tile, self.in_smem(dtype), self.stages)
            for major, dtype in (
                (hopper_helpers.make_smem_layout_a, op.a_dtype),
                (hopper_helpers.make_smem_layout_b, op.b_dtype),
            )
        )
        self.sfa_smem, self.sfb_smem = (
            make(mma, self.tile, self.vector, self.stages)
            for make in (
                blockscaled_layout.sm120_make_smem_layout_sfa,
                blockscaled_layout.sm120_make_smem_layout_sfb,
            )
        )
        self.c_smem = sm100.make_smem_layout_epi(c.element_type, row, (m, n), 1)
        load = cpasync.CopyBulkTensorTileG2SOp()
        loads = []
        for x, layout, tile, internal in (
            (a, self.a_smem, (m, k), self.in_smem(op.a_dtype)),
            (b, self.b_smem, (n, k), self.in_smem(op.b_dtype)),
            (sfa, self.sfa_smem, (m, k), cutlass.Int16),
            (sfb, self.sfb_smem, (self.sfb_rows, k), cutlass.Int16),
        ):
            one = cute.slice_(layout, (None, None, 0))
            loads.append(
                tuple(cpasync.make_tiled_tma_atom(load, x, one, tile, internal_type=internal))
            )
        self.tx = sum(
            cute.size_in_bytes(dtype, cute.filter_zeros(cute.slice_(layout, (None, None, 0))))
            for dtype, layout in (
                (self.in_smem(op.a_dtype), self.a_smem),
                (self.in_smem(op.b_dtype), self.b_smem),
                (op.sf_dtype, self.sfa_smem),
                (op.sf_dtype, self.sfb_smem),
            )
        )
        c_atom, c_tma = cpasync.make_tiled_tma_atom(
            cpasync.CopyBulkTensorTileS2GOp(), c, cute.slice_(self.c_smem, (None, None, 0)), (m, n)
        )
        tiles = (cute.ceil_div(full_m, m), cute.ceil_div(full_n, n), 1)
        params = utils.PersistentTileSchedulerParams(tiles, (1, 1, 1))
        grid = utils.StaticPersistentTileScheduler.get_grid_shape(params, self.blocks)
        self.kernel(mma, *(x for pair in loads for x in pair), c_atom, c_tma, params).launch(
            grid=grid,
            block=(self.threads, 1, 1),
            max_number_threads=[self.threads, 1, 1],
            min_blocks_per_mp=1,
        )

    @cute.kernel
    def kernel(
        self,
        mma: cute.TiledMma,
        a_atom: cute.CopyAtom,
        mA: cute.Tensor,
        b_atom: cute.CopyAtom,
        mB: cute.Tensor,
        sfa_atom: cute.CopyAtom,
        mSFA: cute.Tensor,
        sfb_atom: cute.CopyAtom,
        mSFB: cute.Tensor,
        c_atom: cute.CopyAtom,
        mC: cute.Tensor,
        params: utils.PersistentTileSchedulerParams,
    ):
        op, (m, n, k) = self.op, self.tile
        thread, _, _ = cute.arch.thread_idx()
        warp_idx = cute.arch.make_warp_uniform(cute.arch.warp_idx())
        smem = utils.SmemAllocator()
        barriers = smem.allocate_array(cutlass.Int64, 2 * self.stages)
        turns = smem.allocate_array(cutlass.Int64, 4)
        sA = smem.allocate_tensor(
            self.in_smem(op.a_dtype), self.a_smem.outer, 1024, self.a_smem.inner
        )
        sB = smem.allocate_tensor(
            self.in_smem(op.b_dtype), self.b_smem.outer, 1024, self.b_smem.inner
        )
        sSFA = smem.allocate_tensor(op.sf_dtype, self.sfa_smem, 1024)
        sSFB = smem.allocate_tensor(op.sf_dtype, self.sfb_smem, 1024)
        sC = smem.allocate_tensor(self.c_dtype, self.c_smem.outer, 1024, self.c_smem.inner)
        agent = pipeline.Agent.Thread
        ab = pipeline.PipelineTmaAsync.create(
            barrier_storage=barriers,
            num_stages=self.stages,
            producer_group=pipeline.CooperativeGroup(agent),
            consumer_group=pipeline.CooperativeGroup(agent, self.mma_threads // 32),
            tx_count=self.tx,
        )
        group = warp_idx // 4 if cutlass.const_expr(self.ping_pong) else 0
        order = pipeline.PipelineOrder.create(
            barrier_storage=turns,
            depth=2,
            length=self.groups,
            group_id=group,
            producer_group=pipeline.CooperativeGroup(agent, self.mma_threads),
        )
        gA = cute.local_tile(mA, (m, k), (None, None))
        gB = cute.local_tile(mB, (n, k), (None, None))
        gSFA = cute.local_tile(mSFA, (m, k), (None, None, 0))
        gSFB = cute.local_tile(mSFB, (self.sfb_rows, k), (None, None, 0))
        gC = cute.local_tile(mC, (m, n), (None, None))
        k_tiles = cute.size(gA, mode=[3])
        sched = utils.StaticPersistentTileScheduler.create(
            params, cute.arch.block_idx(), cute.arch.grid_dim()
        )
        work = sched.initial_work_tile_info()

        # For sm_120 ptxas calls a function of the system for TMA, so it ignores setmaxnreg (C7506):
        # all of 288 threads have 168 registers, which is why tiles of groups have 64 columns.
        if warp_idx == self.load_warp:
            state = pipeline.make_pipeline_state(pipeline.PipelineUserType.Producer, self.stages)
            one = cute.make_layout(1)
            tAs, tAg = cpasync.tma_partition(
                a_atom, 0, one, cute.group_modes(sA, 0, 2), cute.group_modes(gA, 0, 2)
            )
            tBs, tBg = cpasync.tma_partition(
                b_atom, 0, one, cute.group_modes(sB, 0, 2), cute.group_modes(gB, 0, 2)
            )
            tSFAs, tSFAg = (
                cute.filter_zeros(x)
                for x in cpasync.tma_partition(
                    sfa_atom, 0, one, cute.group_modes(sSFA, 0, 2), cute.group_modes(gSFA, 0, 2)
                )
            )
            tSFBs, tSFBg = (
                cute.filter_zeros(x)
                for x in cpasync.tma_partition(
                    sfb_atom, 0, one, cute.group_modes(sSFB, 0, 2), cute.group_modes(gSFB, 0, 2)
                )
            )
            while work.is_valid_tile:
                tile_m, tile_n, _ = work.tile_idx
                for i in cutlass.range(k_tiles):
                    ab.producer_acquire(state)
                    bar = ab.producer_get_barrier(state)
                    at = state.index
                    cute.copy(a_atom, tAg[None, tile_m, i], tAs[None, at], tma_bar_ptr=bar)
                    cute.copy(b_atom, tBg[None, tile_n, i], tBs[None, at], tma_bar_ptr=bar)
                    cute.copy(sfa_atom, tSFAg[None, tile_m, i], tSFAs[None, at], tma_bar_ptr=bar)
                    chunk = tile_n * n // self.sfb_rows
                    cute.copy(sfb_atom, tSFBg[None, chunk, i], tSFBs[None, at], tma_bar_ptr=bar)
                    ab.producer_commit(state)
                    state.advance()
                sched.advance_to_next_work()
                work = sched.get_current_work()
            ab.producer_tail(state)

        if warp_idx < self.load_warp:
            tidx = thread % self.mma_threads
            state = pipeline.make_pipeline_state(pipeline.PipelineUserType.Consumer, self.stages)
            if cutlass.const_expr(self.ping_pong):
                if group == 1:
                    state.advance(k_tiles)
                    sched.advance_to_next_work()
                    work = sched.get_current_work()
            part = mma.get_slice(tidx)
            rA = mma.make_fragment_A(part.partition_A(sA[None, None, 0]))
            rB = mma.make_fragment_B(part.partition_B(sB[None, None, 0]))
            rSFA = sm100.partition_fragment_SFA(sSFA[None, None, 0], part, tidx)
            rSFB = sm100.partition_fragment_SFB(
                self.own_factors(sSFB, 0)[None, None, 0], part, tidx
            )
            acc = mma.make_fragment_C(mma.partition_shape_C((m, n)))
            copy_a, copy_b = (
                make(cute.make_copy_atom(self.matrix_load(dtype), self.in_smem(dtype)), mma)
                for make, dtype in (
                    (cute.make_tiled_copy_A, op.a_dtype),
                    (cute.make_tiled_copy_B, op.b_dtype),
                )
            )
            plain = cute.make_copy_atom(cute.nvgpu.CopyUniversalOp(), op.sf_dtype)
            sizes = [cute.size(x) for x in mma.permutation_mnk]
            copy_sfa = cute.make_tiled_copy(
                plain, sm100.get_layoutSFA_TV(mma), (sizes[0], sizes[2])
            )
            copy_sfb = cute.make_tiled_copy(
                plain, sm100.get_layoutSFB_TV(mma), (sizes[1], sizes[2])
            )
            from_a = copy_a.get_slice(tidx).partition_S(sA)
            from_b = copy_b.get_slice(tidx).partition_S(sB)
            to_a, to_b = copy_a.retile(rA), copy_b.retile(rB)
            from_sfa = copy_sfa.get_slice(tidx).partition_S(sSFA)
            to_sfa, to_sfb = copy_sfa.retile(rSFA), copy_sfb.retile(rSFB)
            store = sm100.sm120_get_smem_store_op(
                utils.LayoutEnum.ROW_MAJOR, self.c_dtype, cutlass.Float32
            )
            r2s = cute.make_tiled_copy_S(
                store,
                cute.make_tiled_copy_C_atom(
                    cute.make_copy_atom(warp.StMatrix8x8x16bOp(False, 2), self.c_dtype), mma
                ),
            )
            to_c = r2s.get_slice(tidx).partition_D(sC)
            sCs, gCs = cpasync.tma_partition(
                c_atom, 0, cute.make_layout(1),
                cute.group_modes(sC, 0, 2), cute.group_modes(gC, 0, 2),
            )  # fmt: skip
            while work.is_valid_tile:
                tile_m, tile_n, _ = work.tile_idx
                from_sfb = copy_sfb.get_slice(tidx).partition_S(self.own_factors(sSFB, tile_n))
                acc.fill(0)
                if cutlass.const_expr(self.ping_pong):
                    order.wait()
                for _ in cutlass.range(k_tiles):
                    ab.consumer_wait(state)
                    for i in cutlass.range_constexpr(cute.size(rA, mode=[2])):
                        at = (None, None, i, state.index)
                        cute.copy(copy_a, from_a[at], to_a[None, None, i])
                        cute.copy(copy_b, from_b[at], to_b[None, None, i])
                        for tiled, source, target in (
                            (copy_sfa, from_sfa, to_sfa), (copy_sfb, from_sfb, to_sfb),
                        ):  # fmt: skip
                            cute.copy(
                                tiled,
                                cute.filter_zeros(source[None, None, None, state.index])[
                                    None, None, i
                                ],
                                cute.filter_zeros(target)[None, None, i],
                            )
                        # 4-bit elements lie from bit 2 of their byte on.
                        for fragment, dtype in ((rA, op.a_dtype), (rB, op.b_dtype)):
                            if cutlass.const_expr(self.bytes_each and dtype.width == 4):
                                block = fragment[None, None, i]
                                block.store(block.load() << 2)
                        cute.gemm(
                            mma,
                            acc,
                            [rA[None, None, i], rSFA[None, None, i]],
                            [rB[None, None, i], rSFB[None, None, i]],
                            acc,
                        )
                    ab.consumer_release(state)
                    state.advance()
                if cutlass.const_expr(self.ping_pong):
                    state.advance(k_tiles)
                    order.arrive()
                    order.wait()
                out = cute.make_rmem_tensor_like(acc, self.c_dtype)
                out.store(acc.load().to(self.c_dtype))
                cute.copy(r2s, r2s.retile(out), to_c[None, None, None, 0])
                cute.arch.fence_proxy("async.shared", space="cta")
                barrier = EPILOGUE_BARRIER + group
                cute.arch.barrier(barrier_id=barrier, number_of_threads=self.mma_threads)
                if warp_idx % (self.mma_threads // 32) == 0:
                    cute.copy(c_atom, sCs[None, 0], gCs[None, tile_m, tile_n])
                    cute.arch.cp_async_bulk_commit_group()
                    cute.arch.cp_async_bulk_wait_group(0, read=True)
                cute.arch.barrier(barrier_id=barrier, number_of_threads=self.mma_threads)
                if cutlass.const_expr(self.ping_pong):
                    order.arrive()
                    sched.advance_to_next_work()
                sched.advance_to_next_work()
                work = sched.get_current_work()

    def own_factors(self, staged, tile_n):
        """The factors of tile number `tile_n` along N, of those that were loaded."""
        part = tile_n % (self.sfb_rows // self.tile[1])
        return cute.local_tile(staged, (self.tile[1], self.tile[2]), (part, 0, None))

    def matrix_load(self, dtype):
        if self.bytes_each:
            return warp.LdMatrix8x16x8bOp(
                num_matrices=4, unpack_bits=dtype.width if dtype.width < 8 else None
            )
        return warp.LdMatrix8x8x16bOp(num_matrices=4)
