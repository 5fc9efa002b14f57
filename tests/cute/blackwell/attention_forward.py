"""Attention forward with the roles of warps that such kernels have on data-center Blackwell.

O = softmax(scale Q K^T) V for Q, K, V, O (S, D) per batch and head. Four warps compute the softmax,
four correct O, one multiplies, one loads. Scores, probabilities (operand A of the second product)
and O lie in tensor memory; a row's factors travel through two columns of it.
"""

import math

import basedsl_cute as cutlass
from basedsl_cute import cute, pipeline, utils
from basedsl_cute.cute.nvgpu import cpasync, tcgen05
from basedsl_cute.utils import sm100

TILE = 128
S_AT, P_AT, VEC_AT, O_AT = 0, 128, 192, 256  # columns of tensor memory
SOFTMAX, CORRECTION, MMA, LOAD = (0, 1, 2, 3), (4, 5, 6, 7), 8, 9
LOG2_E = math.log2(math.e)


class AttentionForward:
    """The host's choices; calling it launches the kernel. `scale` multiplies the scores."""

    def __init__(self, head_dim, causal=False, reduced=False, scale=None):
        self.d, self.causal, self.reduced = head_dim, causal, reduced
        self.scale = 1 / math.sqrt(head_dim) if scale is None else scale

    @cute.jit
    def __call__(self, q: cute.Tensor, k: cute.Tensor, v: cute.Tensor, o: cute.Tensor):
        """Arrays are (S, D, heads), D contiguous."""
        dtype = q.element_type
        v = cute.make_tensor(v.iterator, cute.select(v.layout, mode=[1, 0, 2]))
        k_major, mn_major = tcgen05.OperandMajorMode.K, tcgen05.OperandMajorMode.MN
        one = tcgen05.CtaGroup.ONE
        f32 = cutlass.Float32
        qk = sm100.make_trivial_tiled_mma(dtype, k_major, k_major, f32, one, (TILE, TILE))
        pv = sm100.make_trivial_tiled_mma(
            dtype, k_major, mn_major, f32, one, (TILE, self.d), tcgen05.OperandSource.TMEM
        )
        self.qk_tile, self.pv_tile = (TILE, TILE, self.d), (TILE, self.d, TILE)
        self.q_smem = sm100.make_smem_layout_a(qk, self.qk_tile, dtype, 1)
        self.k_smem = sm100.make_smem_layout_b(qk, self.qk_tile, dtype, 2)
        self.p_layout = sm100.make_smem_layout_a(pv, self.pv_tile, dtype, 1)
        self.v_smem = sm100.make_smem_layout_b(pv, self.pv_tile, dtype, 2)
        load = cpasync.CopyBulkTensorTileG2SOp(one)
        q_one, k_one, v_one = (
            cute.slice_(x, (None, None, None, 0)) for x in (self.q_smem, self.k_smem, self.v_smem)
        )
        q_atom, mQ = cute.nvgpu.make_tiled_tma_atom_A(load, q, q_one, self.qk_tile, qk)
        k_atom, mK = cute.nvgpu.make_tiled_tma_atom_B(load, k, k_one, self.qk_tile, qk)
        v_atom, mV = cute.nvgpu.make_tiled_tma_atom_B(load, v, v_one, self.pv_tile, pv)
        self.q_bytes, self.k_bytes, self.v_bytes = (
            cute.size_in_bytes(dtype, x) for x in (q_one, k_one, v_one)
        )

        @cute.struct
        class Storage:
            q: cute.struct.MemRange[cutlass.Int64, 2]
            k: cute.struct.MemRange[cutlass.Int64, 4]
            v: cute.struct.MemRange[cutlass.Int64, 4]
            s: cute.struct.MemRange[cutlass.Int64, 2]
            p: cute.struct.MemRange[cutlass.Int64, 2]
            vec: cute.struct.MemRange[cutlass.Int64, 2]
            o: cute.struct.MemRange[cutlass.Int64, 2]
            holder: cutlass.Int32

        self.storage = Storage
        self.kernel(qk, pv, q_atom, mQ, k_atom, mK, v_atom, mV, o).launch(
            grid=(cute.ceil_div(q.shape[0], TILE), q.shape[2], 1), block=(320, 1, 1)
        )

    @cute.kernel
    def kernel(
        self,
        qk: cute.TiledMma,
        pv: cute.TiledMma,
        q_atom: cute.CopyAtom,
        mQ: cute.Tensor,
        k_atom: cute.CopyAtom,
        mK: cute.Tensor,
        v_atom: cute.CopyAtom,
        mV: cute.Tensor,
        mO: cute.Tensor,
    ):
        tidx, _, _ = cute.arch.thread_idx()
        tile, head, _ = cute.arch.block_idx()
        warp = cute.arch.make_warp_uniform(cute.arch.warp_idx())
        dtype, f32 = qk.op.a_dtype, cutlass.Float32
        smem = utils.SmemAllocator()
        storage = smem.allocate(self.storage)
        sQ = smem.allocate_tensor(dtype, self.q_smem.outer, 1024, self.q_smem.inner)
        sK = smem.allocate_tensor(dtype, self.k_smem.outer, 1024, self.k_smem.inner)
        sV = smem.allocate_tensor(dtype, self.v_smem.outer, 1024, self.v_smem.inner)
        agent = pipeline.Agent.Thread
        one, many = pipeline.CooperativeGroup(agent), pipeline.CooperativeGroup(agent, 128)
        loads = [
            pipeline.PipelineTmaUmma.create(
                barrier_storage=bars.data_ptr(), num_stages=stages, producer_group=one,
                consumer_group=one, tx_count=tx, defer_sync=True,
            ).make_participants()
            for bars, stages, tx in (
                (storage.q, 1, self.q_bytes), (storage.k, 2, self.k_bytes),
                (storage.v, 2, self.v_bytes),
            )
        ]  # fmt: skip
        (q_producer, q_consumer), (k_producer, k_consumer), (v_producer, v_consumer) = loads
        s_producer, s_consumer = pipeline.PipelineUmmaAsync.create(
            barrier_storage=storage.s.data_ptr(), num_stages=1, producer_group=one,
            consumer_group=many, defer_sync=True,
        ).make_participants()  # fmt: skip
        p_producer, p_consumer = pipeline.PipelineAsyncUmma.create(
            barrier_storage=storage.p.data_ptr(), num_stages=1, producer_group=many,
            consumer_group=one, defer_sync=True,
        ).make_participants()  # fmt: skip
        vec_producer, vec_consumer = pipeline.PipelineAsync.create(
            barrier_storage=storage.vec.data_ptr(), num_stages=1, producer_group=many,
            consumer_group=many, defer_sync=True,
        ).make_participants()  # fmt: skip
        o_producer, o_consumer = pipeline.PipelineUmmaAsync.create(
            barrier_storage=storage.o.data_ptr(), num_stages=1, producer_group=one,
            consumer_group=many, defer_sync=True,
        ).make_participants()  # fmt: skip
        tmem = utils.TmemAllocator(
            storage.holder,
            barrier_for_retrieve=pipeline.NamedBarrier(1, 288),
            allocator_warp_id=CORRECTION[0],
        )
        pipeline.pipeline_init_arrive(is_relaxed=True)
        gQ = cute.local_tile(mQ, (TILE, self.d), (None, None, None))
        gK = cute.local_tile(mK, (TILE, self.d), (None, None, None))
        gV = cute.local_tile(mV, (self.d, TILE), (None, None, None))
        thr_qk, thr_pv = qk.get_slice(0), pv.get_slice(0)
        count = cute.size(gK, mode=[2])
        if cutlass.const_expr(self.causal):
            count = tile + 1
        tSfake = qk.make_fragment_C(qk.partition_shape_C((TILE, TILE)))
        tOfake = pv.make_fragment_C(pv.partition_shape_C((TILE, self.d)))
        tPfake = pv.make_fragment_A(self.p_layout.outer)
        pipeline.pipeline_init_wait()

        if warp == LOAD:
            layout = cute.make_layout(1)
            parts = [
                cpasync.tma_partition(
                    atom, 0, layout, cute.group_modes(s, 0, 3), cute.group_modes(g, 0, 3)
                )
                for atom, s, g in (
                    (q_atom, sQ, thr_qk.partition_A(gQ)),
                    (k_atom, sK, thr_qk.partition_B(gK)),
                    (v_atom, sV, thr_pv.partition_B(gV)),
                )
            ]
            (tQs, tQg), (tKs, tKg), (tVs, tVg) = parts
            empty = q_producer.acquire_and_advance()
            cute.copy(q_atom, tQg[None, tile, 0, head], tQs[None, 0], tma_bar_ptr=empty.barrier)
            for i in cutlass.range(count):
                empty = k_producer.acquire_and_advance()
                cute.copy(
                    k_atom, tKg[None, i, 0, head], tKs[None, empty.index],
                    tma_bar_ptr=empty.barrier,
                )  # fmt: skip
                empty = v_producer.acquire_and_advance()
                cute.copy(
                    v_atom, tVg[None, 0, i, head], tVs[None, empty.index],
                    tma_bar_ptr=empty.barrier,
                )  # fmt: skip
            q_producer.tail()
            k_producer.tail()
            v_producer.tail()

        if warp == MMA:
            tmem.wait_for_alloc()
            start = tmem.retrieve_ptr(f32)
            tS = cute.make_tensor(start + S_AT, tSfake.layout)
            tO = cute.make_tensor(start + O_AT, tOfake.layout)
            tP = cute.make_tensor(cute.recast_ptr(start + P_AT, dtype=dtype), tPfake.layout)
            rQ, rK, rV = qk.make_fragment_A(sQ), qk.make_fragment_B(sK), pv.make_fragment_B(sV)
            q_full = q_consumer.wait_and_advance()
            pv.set(tcgen05.Field.ACCUMULATE, False)
            for i in cutlass.range(count):
                k_full = k_consumer.wait_and_advance()
                s_empty = s_producer.acquire_and_advance()
                qk.set(tcgen05.Field.ACCUMULATE, False)
                for kb in cutlass.range_constexpr(cute.size(rQ, mode=[2])):
                    cute.gemm(qk, tS, rQ[None, None, kb, 0], rK[None, None, kb, k_full.index], tS)
                    qk.set(tcgen05.Field.ACCUMULATE, True)
                s_empty.commit()
                k_full.release()
                if i > 0:
                    v_full = v_consumer.wait_and_advance()
                    o_empty = o_producer.acquire_and_advance()
                    p_full = p_consumer.wait_and_advance()
                    for kb in cutlass.range_constexpr(cute.size(tP, mode=[2])):
                        cute.gemm(
                            pv, tO, tP[None, None, kb, 0], rV[None, None, kb, v_full.index], tO
                        )
                        pv.set(tcgen05.Field.ACCUMULATE, True)
                    o_empty.commit()
                    p_full.release()
                    v_full.release()
            q_full.release()
            v_full = v_consumer.wait_and_advance()
            o_empty = o_producer.acquire_and_advance()
            p_full = p_consumer.wait_and_advance()
            for kb in cutlass.range_constexpr(cute.size(tP, mode=[2])):
                cute.gemm(pv, tO, tP[None, None, kb, 0], rV[None, None, kb, v_full.index], tO)
                pv.set(tcgen05.Field.ACCUMULATE, True)
            o_empty.commit()
            p_full.release()
            v_full.release()
            s_producer.tail()
            o_producer.tail()

        if warp < CORRECTION[0]:
            tmem.wait_for_alloc()
            start = tmem.retrieve_ptr(f32)
            tS = cute.make_tensor(start + S_AT, tSfake.layout)
            scores = tS[(None, None), 0, 0]
            load = cute.make_copy_atom(
                tcgen05.LdRed32x32bOp(tcgen05.Repetition.x32, redOp=tcgen05.TmemLoadRedOp.MAX)
                if self.reduced else tcgen05.Ld32x32bOp(tcgen05.Repetition.x32), f32,
            )  # fmt: skip
            t2r = tcgen05.make_tmem_copy(load, scores)
            tTS = t2r.get_slice(tidx).partition_S(scores)
            cS = cute.make_identity_tensor((TILE, TILE))
            tTc = t2r.get_slice(tidx).partition_D(cS)
            words = cute.make_tensor(
                start + P_AT, cute.make_layout((TILE, TILE // 2), stride=(65536, 1))
            )
            r2t = tcgen05.make_tmem_copy(
                cute.make_copy_atom(tcgen05.St32x32bOp(tcgen05.Repetition.x32), f32), words
            )
            tTP = r2t.get_slice(tidx).partition_D(words)
            vec = cute.make_tensor(
                start + VEC_AT, cute.composition(scores.layout, cute.make_layout((TILE, 2)))
            )
            put = tcgen05.make_tmem_copy(
                cute.make_copy_atom(tcgen05.St32x32bOp(tcgen05.Repetition.x2), f32), vec
            )
            tTv = put.get_slice(tidx).partition_D(vec)
            highest, total = -f32.inf, f32(0.0)
            scale = self.scale * LOG2_E
            for i in cutlass.range(count):
                full = s_consumer.wait_and_advance()
                rS = cute.make_rmem_tensor(tTc.shape, f32)
                old = highest
                if cutlass.const_expr(self.reduced):
                    rM = cute.make_rmem_tensor((1, cute.size(tTS, mode=[2])), f32)
                    for part in cutlass.range_constexpr(cute.size(tTS, mode=[2])):
                        cute.copy_atom_call(
                            t2r, tTS[None, 0, part], (rS[None, 0, part], rM[None, part])
                        )
                    highest = rM.load().reduce(cute.ReductionOp.MAX, highest, 0)
                else:
                    cute.copy(t2r, tTS, rS)
                    if cutlass.const_expr(self.causal):
                        for e in cutlass.range_constexpr(cute.size(rS)):
                            row, column = tTc[e]
                            if tile * TILE + row < i * TILE + column:
                                rS[e] = -f32.inf
                    highest = rS.load().reduce(cute.ReductionOp.MAX, highest, 0)
                cute.arch.fence_view_async_tmem_load()
                full.release()
                factor = cute.math.exp2((old - highest) * scale, fastmath=True)
                rV = cute.make_rmem_tensor(put.get_slice(tidx).partition_S(vec).shape, f32)
                rV[0], rV[1] = factor, f32(0.0)
                empty = vec_producer.acquire_and_advance()
                cute.copy(put, rV, tTv)
                cute.arch.fence_view_async_tmem_store()
                empty.commit()
                minus = -highest * scale
                for e in cutlass.range_constexpr(0, cute.size(rS), 2):
                    rS[e], rS[e + 1] = cute.arch.fma_packed_f32x2(
                        (rS[e], rS[e + 1]), (scale, scale), (minus, minus)
                    )
                rS.store(cute.math.exp2(rS.load(), fastmath=True))
                total = total * factor + rS.load().reduce(cute.ReductionOp.ADD, f32(0.0), 0)
                rP = cute.make_rmem_tensor(r2t.get_slice(tidx).partition_S(words).shape, f32)
                narrow = cute.make_tensor(
                    cute.recast_ptr(rP.iterator, dtype=dtype), cute.make_layout(TILE)
                )
                narrow.store(cute.make_tensor(rS.iterator, TILE).load().to(dtype))
                empty = p_producer.acquire_and_advance()
                cute.copy(r2t, rP, tTP)
                cute.arch.fence_view_async_tmem_store()
                empty.commit()
            rV = cute.make_rmem_tensor(put.get_slice(tidx).partition_S(vec).shape, f32)
            rV[0], rV[1] = f32(1.0), total
            empty = vec_producer.acquire_and_advance()
            cute.copy(put, rV, tTv)
            cute.arch.fence_view_async_tmem_store()
            empty.commit()
            vec_producer.tail()
            p_producer.tail()

        if warp >= CORRECTION[0] and warp < MMA:
            tmem.allocate(512)
            tmem.wait_for_alloc()
            start = tmem.retrieve_ptr(f32)
            thread = tidx % TILE
            vec = cute.make_tensor(start + VEC_AT, cute.make_layout((TILE, 2), stride=(65536, 1)))
            get = tcgen05.make_tmem_copy(
                cute.make_copy_atom(tcgen05.Ld32x32bOp(tcgen05.Repetition.x2), f32), vec
            )
            tTv = get.get_slice(thread).partition_S(vec)
            tO = cute.make_tensor(start + O_AT, tOfake.layout)
            whole = tO[(None, None), 0, 0]
            chunks = cute.zipped_divide(whole, (TILE, 32))
            piece = chunks[None, 0]
            t2r = tcgen05.make_tmem_copy(
                cute.make_copy_atom(tcgen05.Ld32x32bOp(tcgen05.Repetition.x32), f32), piece
            )
            r2t = tcgen05.make_tmem_copy(
                cute.make_copy_atom(tcgen05.St32x32bOp(tcgen05.Repetition.x32), f32), piece
            )
            cO = cute.zipped_divide(cute.make_identity_tensor((TILE, self.d)), (TILE, 32))
            vec_full = vec_consumer.wait_and_advance()  # nothing to correct yet
            vec_full.release()
            for i in cutlass.range(1, count + 1):
                vec_full = vec_consumer.wait_and_advance()
                rV = cute.make_rmem_tensor(get.get_slice(thread).partition_D(vec).shape, f32)
                cute.copy(get, tTv, rV)
                cute.arch.fence_view_async_tmem_load()
                vec_full.release()
                o_full = o_consumer.wait_and_advance()
                factor = rV[0]
                if i == count:
                    factor = cute.arch.rcp_approx(rV[1])
                for c in cutlass.range_constexpr(cute.size(chunks, mode=[1])):
                    part = chunks[None, c]
                    coords = t2r.get_slice(thread).partition_D(cO[None, c])
                    rO = cute.make_rmem_tensor(coords.shape, f32)
                    cute.copy(t2r, t2r.get_slice(thread).partition_S(part), rO)
                    rO.store(rO.load() * factor)
                    if i < count:
                        cute.copy(r2t, rO, r2t.get_slice(thread).partition_D(part))
                    else:
                        for e in cutlass.range_constexpr(cute.size(rO)):
                            row, column = coords[e]
                            if tile * TILE + row < mO.shape[0]:
                                mO[tile * TILE + row, column, head] = rO[e].to(mO.element_type)
                cute.arch.fence_view_async_tmem_store()
                o_full.release()
            tmem.relinquish_alloc_permit()
            pipeline.NamedBarrier(2, 128).arrive_and_wait()
            tmem.free(start)
