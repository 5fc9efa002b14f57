"""Attention backward with the roles of warps that such kernels have on data-center Blackwell.

Q, K, V, O and their gradients are (S, D, heads), D contiguous, S a multiple of 128. A block has 128
keys of a head, and visits the tiles of queries. Five products: S = K Q^T, dP = V dO^T, dV += P dO
(P in tensor memory, over S), dK += dS Q and dQ = dS^T K (dS in shared memory, in both majors).
Warps 0 to 3 add dQ to Float32 sums by TMA, 4 to 7 compute P and dS, a thread for each key, one
multiplies, one loads. A kernel before makes each query's sum of O dO, one behind converts dQ.
"""

import math

import basedsl_cute as cutlass
from basedsl_cute import cute, pipeline, utils
from basedsl_cute.cute.nvgpu import cpasync, tcgen05
from basedsl_cute.utils import sm100

TILE, PART = 128, 32
S_AT, DP_AT, DV_AT, DK_AT = 0, 128, 256, 384  # columns of tensor memory; P over S, dQ over dP
REDUCE, COMPUTE, MMA, LOAD = 0, 4, 8, 9  # the first warps of roles
LOG2_E = math.log2(math.e)
K, MN = tcgen05.OperandMajorMode.K, tcgen05.OperandMajorMode.MN


class AttentionBackward:
    """The host's choices; calling it launches the three kernels."""

    def __init__(self, head_dim, causal=False, scale=None):
        self.d, self.causal = head_dim, causal
        self.scale = 1 / math.sqrt(head_dim) if scale is None else scale
        self.do_stages = 2 if head_dim == 64 else 1

    @cute.jit
    def __call__(
        self,
        q: cute.Tensor,
        k: cute.Tensor,
        v: cute.Tensor,
        o: cute.Tensor,
        do: cute.Tensor,
        lse: cute.Tensor,  # (S, heads), natural logarithms
        dq: cute.Tensor,
        dk: cute.Tensor,
        dv: cute.Tensor,
        sums: cute.Tensor,  # workspace (S, heads) of Float32
        dq_sums: cute.Tensor,  # workspace (S, D, heads) of Float32
    ):
        dtype, f32, one = q.element_type, cutlass.Float32, tcgen05.CtaGroup.ONE
        rows, _, heads = q.shape
        self.sum_kernel(o, do, sums, dq_sums).launch(grid=(rows // 4, heads, 1), block=(TILE, 1, 1))
        whole, wide = (TILE, TILE), (TILE, self.d)
        mma_s = sm100.make_trivial_tiled_mma(dtype, K, K, f32, one, whole)
        mma_dv = sm100.make_trivial_tiled_mma(
            dtype, K, MN, f32, one, wide, tcgen05.OperandSource.TMEM
        )
        mma_dk = sm100.make_trivial_tiled_mma(dtype, K, MN, f32, one, wide)
        mma_dq = sm100.make_trivial_tiled_mma(dtype, MN, MN, f32, one, wide)
        s_tile, d_tile = (TILE, TILE, self.d), (TILE, self.d, TILE)
        self.k_smem = sm100.make_smem_layout_a(mma_s, s_tile, dtype, 1)
        self.q_smem = sm100.make_smem_layout_b(mma_s, s_tile, dtype, 2)
        self.do_smem = sm100.make_smem_layout_b(mma_s, s_tile, dtype, self.do_stages)
        # The same bytes as operands of other products, whose contiguous mode is not the summed one.
        self.q_turned = sm100.make_smem_layout_b(mma_dk, d_tile, dtype, 2)
        self.do_turned = sm100.make_smem_layout_b(mma_dv, d_tile, dtype, self.do_stages)
        self.k_turned = sm100.make_smem_layout_b(mma_dq, d_tile, dtype, 1)
        self.ds_smem = sm100.make_smem_layout(K, whole, dtype, 1)
        self.ds_layout = sm100.make_smem_layout_a(mma_dk, d_tile, dtype, 1)
        self.ds_turned = sm100.make_smem_layout_a(mma_dq, d_tile, dtype, 1)
        self.p_layout = sm100.make_smem_layout_a(mma_dv, d_tile, dtype, 1)
        self.dq_smem = sm100.make_smem_layout_epi(f32, utils.LayoutEnum.ROW_MAJOR, (TILE, PART), 2)
        load = cpasync.CopyBulkTensorTileG2SOp(one)
        k_one = cute.slice_(self.k_smem, (None, None, None, 0))
        q_one = cute.slice_(self.q_smem, (None, None, None, 0))
        k_atom, mK = cute.nvgpu.make_tiled_tma_atom_A(load, k, k_one, s_tile, mma_s)
        v_atom, mV = cute.nvgpu.make_tiled_tma_atom_A(load, v, k_one, s_tile, mma_s)
        q_atom, mQ = cute.nvgpu.make_tiled_tma_atom_B(load, q, q_one, s_tile, mma_s)
        do_atom, mDO = cute.nvgpu.make_tiled_tma_atom_B(load, do, q_one, s_tile, mma_s)
        dq_atom, mDQ = cpasync.make_tiled_tma_atom(
            cpasync.CopyReduceBulkTensorTileS2GOp(cute.ReductionOp.ADD),
            dq_sums, cute.slice_(self.dq_smem, (None, None, 0)), (TILE, PART),
        )  # fmt: skip
        self.bytes = cute.size_in_bytes(dtype, q_one)

        @cute.struct
        class Storage:
            kv: cute.struct.MemRange[cutlass.Int64, 2]
            q: cute.struct.MemRange[cutlass.Int64, 4]
            do: cute.struct.MemRange[cutlass.Int64, 4]
            rows: cute.struct.MemRange[cutlass.Int64, 4]
            s: cute.struct.MemRange[cutlass.Int64, 2]
            dp: cute.struct.MemRange[cutlass.Int64, 2]
            p: cute.struct.MemRange[cutlass.Int64, 2]
            ds: cute.struct.MemRange[cutlass.Int64, 2]
            dq: cute.struct.MemRange[cutlass.Int64, 2]
            done: cute.struct.MemRange[cutlass.Int64, 2]
            holder: cutlass.Int32

        self.storage = Storage
        self.kernel(
            mma_s, mma_dv, mma_dk, mma_dq, (k_atom, v_atom, q_atom, do_atom, dq_atom),
            (mK, mV, mQ, mDO, mDQ), lse, sums, dk, dv,
        ).launch(grid=(rows // TILE, heads, 1), block=(384, 1, 1))  # fmt: skip
        self.convert_kernel(dq_sums, dq).launch(grid=(rows // 4, heads, 1), block=(TILE, 1, 1))

    @cute.kernel
    def sum_kernel(self, o: cute.Tensor, do: cute.Tensor, sums: cute.Tensor, dq_sums: cute.Tensor):
        """A warp has a query: the sum of its O dO; zeros for the sums of its dQ."""
        tidx, _, _ = cute.arch.thread_idx()
        block, head, _ = cute.arch.block_idx()
        row, lane = block * 4 + tidx // 32, tidx % 32
        total = cutlass.Float32(0.0)
        for i in cutlass.range_constexpr(self.d // 32):
            at = i * 32 + lane
            total += o[row, at, head].to(cutlass.Float32) * do[row, at, head].to(cutlass.Float32)
            dq_sums[row, at, head] = cutlass.Float32(0.0)
        total = cute.arch.warp_reduction_sum(total)
        if lane == 0:
            sums[row, head] = total

    @cute.kernel
    def convert_kernel(self, dq_sums: cute.Tensor, dq: cute.Tensor):
        tidx, _, _ = cute.arch.thread_idx()
        block, head, _ = cute.arch.block_idx()
        row, lane = block * 4 + tidx // 32, tidx % 32
        for i in cutlass.range_constexpr(self.d // 32):
            at = i * 32 + lane
            dq[row, at, head] = (dq_sums[row, at, head] * self.scale).to(dq.element_type)

    @cute.kernel
    def kernel(
        self,
        mma_s: cute.TiledMma,
        mma_dv: cute.TiledMma,
        mma_dk: cute.TiledMma,
        mma_dq: cute.TiledMma,
        atoms: tuple,
        tensors: tuple,
        lse: cute.Tensor,
        sums: cute.Tensor,
        dk: cute.Tensor,
        dv: cute.Tensor,
    ):
        tidx, _, _ = cute.arch.thread_idx()
        tile, head, _ = cute.arch.block_idx()
        warp = cute.arch.make_warp_uniform(cute.arch.warp_idx())
        dtype, f32 = mma_s.op.a_dtype, cutlass.Float32
        mQ, mDQ = tensors[2], tensors[4]
        smem = utils.SmemAllocator()
        storage = smem.allocate(self.storage)
        sK, sV, sQ, sDO, sDS = [
            smem.allocate_tensor(dtype, x.outer, 1024, x.inner)
            for x in (self.k_smem, self.k_smem, self.q_smem, self.do_smem, self.ds_smem)
        ]
        sDQ = smem.allocate_tensor(f32, self.dq_smem.outer, 1024, self.dq_smem.inner)
        sRows = smem.allocate_tensor(f32, cute.make_layout((TILE, 2, 2)), 16)  # lse, sums; stages
        agent = pipeline.Agent.Thread
        one, many = pipeline.CooperativeGroup(agent), pipeline.CooperativeGroup(agent, 128)
        lanes = pipeline.CooperativeGroup(agent, 32)
        loads = [
            pipeline.PipelineTmaUmma.create(
                barrier_storage=bars.data_ptr(), num_stages=stages, producer_group=one,
                consumer_group=one, tx_count=tx, defer_sync=True,
            )
            for bars, stages, tx in (
                (storage.kv, 1, 2 * self.bytes), (storage.q, 2, self.bytes),
                (storage.do, self.do_stages, self.bytes),
            )
        ]  # fmt: skip
        kv_pipe, q_pipe, do_pipe = loads
        do_consumer = do_pipe.make_participants()[1]
        rows_producer, rows_consumer = pipeline.PipelineCpAsync.create(
            barrier_storage=storage.rows.data_ptr(), num_stages=2, producer_group=lanes,
            consumer_group=many, defer_sync=True,
        ).make_participants()  # fmt: skip
        s, dp, dq, done = [
            pipeline.PipelineUmmaAsync.create(
                barrier_storage=bars.data_ptr(), num_stages=1, producer_group=one,
                consumer_group=many, defer_sync=True,
            ).make_participants()
            for bars in (storage.s, storage.dp, storage.dq, storage.done)
        ]  # fmt: skip
        p, ds = [
            pipeline.PipelineAsyncUmma.create(
                barrier_storage=bars.data_ptr(), num_stages=1, producer_group=many,
                consumer_group=one, defer_sync=True,
            ).make_participants()
            for bars in (storage.p, storage.ds)
        ]  # fmt: skip
        tmem = utils.TmemAllocator(
            storage.holder, barrier_for_retrieve=pipeline.NamedBarrier(1, 32 * LOAD),
            allocator_warp_id=COMPUTE,
        )  # fmt: skip
        pipeline.pipeline_init_arrive(is_relaxed=True)
        count = cute.size(cute.local_tile(mQ, (TILE, self.d), (None, None, None)), mode=[2])
        first = cutlass.Int32(0)
        if cutlass.const_expr(self.causal):
            first = tile
        pipeline.pipeline_init_wait()

        if warp >= MMA:
            cute.arch.setmaxregister_decrease(96)
            if warp == LOAD:
                self.load(
                    mma_s, atoms, tensors, (sK, sV, sQ, sDO, sDS), (kv_pipe, q_pipe, do_pipe),
                    rows_producer, lse, sums, sRows, tidx % 32, tile, head, first, count,
                )  # fmt: skip
            if warp == MMA:
                tmem.wait_for_alloc()
                start = tmem.retrieve_ptr(f32)
                self.multiply_all(
                    (mma_s, mma_dv, mma_dk, mma_dq), start, (sK, sV, sQ, sDO, sDS),
                    (kv_pipe, q_pipe, do_consumer, s[0], dp[0], dq[0], done[0], p[1], ds[1]),
                    first, count,
                )  # fmt: skip
        elif warp >= COMPUTE:
            cute.arch.setmaxregister_increase(240)
            tmem.allocate(512)
            tmem.wait_for_alloc()
            start = tmem.retrieve_ptr(f32)
            row = tidx % TILE
            self.compute(
                start, row, tile, sDS, sRows, (s[1], dp[1], p[0], ds[0], rows_consumer), first,
                count,
            )  # fmt: skip
            done[1].wait_and_advance()
            self.write(start + DV_AT, row, tile * TILE + row, head, dv, 1.0)
            self.write(start + DK_AT, row, tile * TILE + row, head, dk, self.scale)
            tmem.relinquish_alloc_permit()
            # dQ's last tile has left tensor memory.
            pipeline.NamedBarrier(2, 256).arrive_and_wait()
            tmem.free(start)
        else:
            cute.arch.setmaxregister_decrease(120)
            tmem.wait_for_alloc()
            start = tmem.retrieve_ptr(f32)
            self.reduce(start + DP_AT, tidx, head, dq[1], sDQ, atoms[4], mDQ, first, count)
            pipeline.NamedBarrier(2, 256).arrive_and_wait()

    @cute.jit
    def load(
        self,
        mma_s,
        atoms,
        tensors,
        staged,
        pipes,
        rows,
        lse,
        sums,
        sRows,
        lane,
        tile,
        head,
        first,
        count,
    ):
        """Load the block's keys and values, and tiles of queries with their numbers."""
        mK, mV, mQ, mDO, _ = tensors
        sK, sV, sQ, sDO, _ = staged
        thr, layout = mma_s.get_slice(0), cute.make_layout(1)
        parts = []
        for atom, mine, x, partition in (
            (atoms[0], sK, mK, thr.partition_A), (atoms[1], sV, mV, thr.partition_A),
            (atoms[2], sQ, mQ, thr.partition_B), (atoms[3], sDO, mDO, thr.partition_B),
        ):  # fmt: skip
            tiles = partition(cute.local_tile(x, (TILE, self.d), (None, None, None)))
            parts.append(
                cpasync.tma_partition(
                    atom, 0, layout, cute.group_modes(mine, 0, 3),
                    cute.group_modes(tiles, 0, 3),
                )
            )  # fmt: skip
        (tKs, tKg), (tVs, tVg), (tQs, tQg), (tDs, tDg) = parts
        kv_producer, q_producer, do_producer = (x.make_participants()[0] for x in pipes)
        small = cute.make_copy_atom(cpasync.CopyG2SOp(), cutlass.Float32, num_bits_per_copy=128)
        empty = kv_producer.acquire_and_advance()
        bar = empty.barrier
        cute.copy(atoms[0], tKg[None, tile, 0, head], tKs[None, 0], tma_bar_ptr=bar)
        cute.copy(atoms[1], tVg[None, tile, 0, head], tVs[None, 0], tma_bar_ptr=bar)
        for i in cutlass.range(first, count):
            empty = q_producer.acquire_and_advance()
            cute.copy(
                atoms[2], tQg[None, i, 0, head], tQs[None, empty.index],
                tma_bar_ptr=empty.barrier,
            )  # fmt: skip
            empty = rows.acquire_and_advance()
            for which in cutlass.range_constexpr(2):
                line = (lse, sums)[which][None, head]  # of whole tiles
                source = cute.make_tensor(line.iterator.align(16), line.layout)
                cute.copy(
                    small, cute.local_tile(source, (4,), (i * 32 + lane,)),
                    cute.local_tile(sRows[None, which, empty.index], (4,), (lane,)),
                )  # fmt: skip
            empty.commit()
            empty = do_producer.acquire_and_advance()
            cute.copy(
                atoms[3], tDg[None, i, 0, head], tDs[None, empty.index],
                tma_bar_ptr=empty.barrier,
            )  # fmt: skip
        kv_producer.tail()
        q_producer.tail()
        do_producer.tail()
        rows.tail()

    @cute.jit
    def multiply_all(self, mmas, start, operands, pipes, first, count):
        """Multiply: scores of the next tile of queries start before dS of this one is there."""
        mma_s, mma_dv, mma_dk, mma_dq = mmas
        sK, sV, sQ, sDO, sDS = operands
        kv_pipe, q_pipe, do, s, dp, dq, done, p, ds = pipes
        dtype = mma_s.op.a_dtype
        whole, wide = (TILE, TILE), (TILE, self.d)
        tS = cute.make_tensor(
            start + S_AT, mma_s.make_fragment_C(mma_s.partition_shape_C(whole)).layout
        )
        tDP = cute.make_tensor(start + DP_AT, tS.layout)
        tDV = cute.make_tensor(
            start + DV_AT, mma_dv.make_fragment_C(mma_dv.partition_shape_C(wide)).layout
        )
        tDK, tDQ = (cute.make_tensor(start + at, tDV.layout) for at in (DK_AT, DP_AT))
        tP = cute.make_tensor(
            cute.recast_ptr(start + S_AT, dtype=dtype),
            mma_dv.make_fragment_A(self.p_layout.outer).layout,
        )
        rK, rV = mma_s.make_fragment_A(sK), mma_s.make_fragment_A(sV)
        rQ, rDO = mma_s.make_fragment_B(sQ), mma_s.make_fragment_B(sDO)
        turned = [
            cute.make_tensor(x.iterator, layout.outer)
            for x, layout in (
                (sQ, self.q_turned), (sDO, self.do_turned), (sK, self.k_turned),
                (sDS, self.ds_layout), (sDS, self.ds_turned),
            )
        ]  # fmt: skip
        rQt, rDOt, rKt = (
            mma.make_fragment_B(x)
            for mma, x in zip((mma_dk, mma_dv, mma_dq), turned[:3], strict=True)
        )
        rDS, rDSt = mma_dk.make_fragment_A(turned[3]), mma_dq.make_fragment_A(turned[4])
        consumer = pipeline.PipelineUserType.Consumer
        kv_state = pipeline.make_pipeline_state(consumer, 1)
        q_read = pipeline.make_pipeline_state(consumer, 2)
        q_held = pipeline.make_pipeline_state(consumer, 2)
        kv_pipe.consumer_wait(kv_state)
        q_pipe.consumer_wait(q_read)
        empty = s.acquire_and_advance()
        multiply(mma_s, tS, rK[None, None, None, 0], rQ[None, None, None, q_read.index], False)
        empty.commit()
        q_read.advance()
        adds = cutlass.Boolean(False)
        for i in cutlass.range(first, count):
            do_full = do.wait_and_advance()
            dq_empty = dq.acquire_and_advance()  # dQ of the last tile has left dP's columns
            empty = dp.acquire_and_advance()
            at_do = (None, None, None, do_full.index)
            multiply(mma_s, tDP, rV[None, None, None, 0], rDO[at_do], False)
            empty.commit()
            p_full = p.wait_and_advance()
            multiply(mma_dv, tDV, tP[None, None, None, 0], rDOt[at_do], adds)
            p_full.release()
            do_full.release()
            if i + 1 < count:
                q_pipe.consumer_wait(q_read)
                empty = s.acquire_and_advance()
                at_q = (None, None, None, q_read.index)
                multiply(mma_s, tS, rK[None, None, None, 0], rQ[at_q], False)
                empty.commit()
                q_read.advance()
            ds_full = ds.wait_and_advance()
            at_q = (None, None, None, q_held.index)
            multiply(mma_dk, tDK, rDS[None, None, None, 0], rQt[at_q], adds)
            q_pipe.consumer_release(q_held)
            q_held.advance()
            multiply(mma_dq, tDQ, rDSt[None, None, None, 0], rKt[None, None, None, 0], False)
            dq_empty.commit()
            ds_full.release()
            adds = cutlass.Boolean(True)
        kv_pipe.consumer_release(kv_state)
        empty = done.acquire_and_advance()
        empty.commit()
        s.tail()
        dp.tail()
        dq.tail()

    @cute.jit
    def compute(self, start, row, tile, sDS, sRows, pipes, first, count):
        """Make P = exp(S - lse) and dS = P (dP - sum of O dO) of each tile of queries."""
        s, dp, p, ds, rows = pipes
        f32, dtype = cutlass.Float32, sDS.element_type
        load = cute.make_copy_atom(tcgen05.Ld32x32bOp(tcgen05.Repetition.x32), f32)
        store = cute.make_copy_atom(tcgen05.St32x32bOp(tcgen05.Repetition.x16), f32)
        t2r = tcgen05.make_tmem_copy(load, columns(start, PART))
        r2t = tcgen05.make_tmem_copy(store, columns(start, PART // 2))
        to_log2 = self.scale * LOG2_E
        for i in cutlass.range(first, count):
            row_full = rows.wait_and_advance()
            weights = cute.make_rmem_tensor((TILE,), f32)
            s_full = s.wait_and_advance()
            p_empty = p.acquire_and_advance()
            for part in cutlass.range_constexpr(TILE // PART):
                values = read(t2r, columns(start + S_AT + part * PART, PART), row)
                cute.arch.fence_view_async_tmem_load()
                logs = cute.local_tile(sRows[None, 0, row_full.index], (PART,), (part,))
                for e in cutlass.range_constexpr(PART):
                    weight = cute.math.exp2(values[e] * to_log2 - logs[e] * LOG2_E, fastmath=True)
                    if cutlass.const_expr(self.causal):
                        query = i * TILE + part * PART + e
                        weight = cutlass.where(query >= tile * TILE + row, weight, f32(0.0))
                    weights[part * PART + e] = weight
                # P of these columns takes half of them, of which the scores have been read.
                target = columns(start + S_AT + part * (PART // 2), PART // 2)
                own = r2t.get_slice(row)
                words = cute.make_rmem_tensor(own.partition_S(target).shape, f32)
                narrow = cute.make_tensor(
                    cute.recast_ptr(words.iterator, dtype=dtype), cute.make_layout(PART)
                )
                narrow.store(cute.local_tile(weights, (PART,), (part,)).load().to(dtype))
                cute.copy(r2t, words, own.partition_D(target))
            cute.arch.fence_view_async_tmem_store()
            p_empty.commit()
            s_full.release()
            dp_full = dp.wait_and_advance()
            ds_empty = ds.acquire_and_advance()
            for part in cutlass.range_constexpr(TILE // PART):
                values = read(t2r, columns(start + DP_AT + part * PART, PART), row)
                cute.arch.fence_view_async_tmem_load()
                totals = cute.local_tile(sRows[None, 1, row_full.index], (PART,), (part,))
                for c in cutlass.range_constexpr(PART // 8):
                    piece = cute.make_rmem_tensor((8,), dtype)
                    for e in cutlass.range_constexpr(8):
                        at = c * 8 + e
                        grad = weights[part * PART + at] * (values[at] - totals[at])
                        piece[e] = grad.to(dtype)
                    line = sDS[row, None, 0]
                    cute.autovec_copy(piece, cute.local_tile(line, (8,), (part * (PART // 8) + c,)))
            dp_full.release()
            row_full.release()
            cute.arch.fence_view_async_shared()
            ds_empty.commit()

    @cute.jit
    def reduce(self, start, row, head, dq, sDQ, atom, mDQ, first, count):
        """Add each tile's dQ to the sums in global memory, 32 columns at a time, by TMA."""
        f32 = cutlass.Float32
        warp = cute.arch.make_warp_uniform(cute.arch.warp_idx())
        load = cute.make_copy_atom(tcgen05.Ld32x32bOp(tcgen05.Repetition.x32), f32)
        t2r = tcgen05.make_tmem_copy(load, columns(start, PART))
        tiles = cute.local_tile(mDQ, (TILE, PART), (None, None, None))
        staged, to = cpasync.tma_partition(
            atom, 0, cute.make_layout(1), cute.group_modes(sDQ, 0, 2), cute.group_modes(tiles, 0, 2)
        )
        stores = pipeline.PipelineTmaStore.create(num_stages=2)
        everyone = pipeline.NamedBarrier(3, 128)
        for i in cutlass.range(first, count):
            full = dq.wait_and_advance()
            for part in cutlass.range_constexpr(self.d // PART):
                values = read(t2r, columns(start + part * PART, PART), row)
                cute.arch.fence_view_async_tmem_load()
                if cutlass.const_expr(part == self.d // PART - 1):
                    full.release()
                if warp == REDUCE:
                    stores.producer_acquire()
                everyone.arrive_and_wait()  # the stage is free
                line = sDQ[row, None, part % 2]
                for c in cutlass.range_constexpr(PART // 4):
                    cute.autovec_copy(
                        cute.local_tile(values, (4,), (c,)), cute.local_tile(line, (4,), (c,))
                    )
                cute.arch.fence_view_async_shared()
                everyone.arrive_and_wait()
                if warp == REDUCE:
                    cute.copy(atom, staged[None, part % 2], to[None, i, part, head])
                    stores.producer_commit()
        if warp == REDUCE:
            stores.producer_tail()

    @cute.jit
    def write(self, start, row, key, head, out, scale):
        """Write a thread's row of dK or dV."""
        f32 = cutlass.Float32
        load = cute.make_copy_atom(tcgen05.Ld32x32bOp(tcgen05.Repetition.x32), f32)
        t2r = tcgen05.make_tmem_copy(load, columns(start, PART))
        for part in cutlass.range_constexpr(self.d // PART):
            values = read(t2r, columns(start + part * PART, PART), row)
            for e in cutlass.range_constexpr(PART):
                out[key, part * PART + e, head] = (values[e] * scale).to(out.element_type)


@cute.jit
def multiply(mma, acc, a, b, adds):
    """Start acc = A B, or acc += A B."""
    mma.set(tcgen05.Field.ACCUMULATE, adds)
    for k in cutlass.range_constexpr(cute.size(a, mode=[2])):
        cute.gemm(mma, acc, a[None, None, k], b[None, None, k], acc)
        mma.set(tcgen05.Field.ACCUMULATE, True)


def columns(start, count):
    """The tensor of all lanes and some columns of tensor memory."""
    return cute.make_tensor(start, cute.make_layout((TILE, count), stride=(65536, 1)))


def read(t2r, source, row):
    """The columns of a thread's lane, in registers."""
    own = t2r.get_slice(row)
    values = cute.make_rmem_tensor(own.partition_D(source).shape, cutlass.Float32)
    cute.copy(t2r, own.partition_S(source), values)
    return cute.make_tensor(values.iterator, cute.make_layout(cute.size(values)))
