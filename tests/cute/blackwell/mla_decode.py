"""Multi-head latent attention, decoding: a query of 128 heads over a paged cache of latent vectors.

All heads share the keys, (latent 512, rope 64), of which the latent part is the values as well.
q_latent (128, 512, B), q_rope (128, 64, B); the cache has pages: latent (rows, 512, pages) and rope
(rows, 64, pages), finite throughout. `table` (pages of a sequence, B) names its pages, `lengths`
(B) says how many keys it has. A pair of blocks has 64 heads each and shares the keys of a split;
a second kernel joins the splits. Warps 0 to 3 make weights, 4 to 7 correct and write sums, one
multiplies, one loads: pieces of keys and of values, 8 KiB for each block, through one ring.
"""

import math

import basedsl_cute as cutlass
from basedsl_cute import cute, pipeline, utils
from basedsl_cute.cute.nvgpu import cpasync, tcgen05
from basedsl_cute.utils import sm100

HEADS, LATENT, ROPE, KEYS = 128, 512, 64, 128
PIECES, V_ROWS = (LATENT + ROPE) // 64, 32  # of a tile's keys: 64 columns; of its values: 32 rows
STAGES = 14
S_AT, O_AT = 0, 128  # columns of tensor memory: two tiles of scores, and 2 x 128 of sums
SOFTMAX, CORRECTION, MMA, LOAD = 0, 4, 8, 9  # the first warps of roles
LOG2_E, LN_2 = math.log2(math.e), math.log(2)
K, MN = tcgen05.OperandMajorMode.K, tcgen05.OperandMajorMode.MN


class MlaDecode:
    """The host's choices; calling it launches both kernels. `page` is a multiple of 64 rows."""

    def __init__(self, splits, page=64, scale=None):
        self.splits, self.page = splits, page
        self.scale = 1 / math.sqrt(LATENT + ROPE) if scale is None else scale

    @cute.jit
    def __call__(
        self,
        q_latent: cute.Tensor,
        q_rope: cute.Tensor,
        latent: cute.Tensor,
        rope: cute.Tensor,
        table: cute.Tensor,
        lengths: cute.Tensor,
        out: cute.Tensor,  # (128, 512, B)
        lse: cute.Tensor,  # (128, B)
        parts: cute.Tensor,  # workspace (128, 512, splits, B) of Float32
        logs: cute.Tensor,  # workspace (128, splits, B) of Float32
    ):
        dtype, f32, two = q_latent.element_type, cutlass.Float32, tcgen05.CtaGroup.TWO
        mma_s = sm100.make_trivial_tiled_mma(dtype, K, K, f32, two, (HEADS, KEYS))
        mma_o = sm100.make_trivial_tiled_mma(dtype, K, MN, f32, two, (HEADS, 256))
        s_tile, o_tile = (HEADS, KEYS, 64), (HEADS, 256, V_ROWS)
        self.q_smem = sm100.make_smem_layout_a(mma_s, s_tile, dtype, PIECES)
        self.p_smem = sm100.make_smem_layout(K, (HEADS // 2, KEYS), dtype, 1)
        self.p_layout = sm100.make_smem_layout_a(mma_o, (HEADS, 256, KEYS), dtype, 1)
        self.k_smem = sm100.make_smem_layout_b(mma_s, s_tile, dtype, STAGES)
        self.v_smem = sm100.make_smem_layout_b(mma_o, o_tile, dtype, STAGES)
        # The boxes of one block in the ring, as TMA writes them.
        self.k_box = sm100.make_smem_layout(K, (KEYS // 2, 64), dtype, STAGES)
        self.v_box = sm100.make_smem_layout(MN, (128, V_ROWS), dtype, STAGES)
        load = cpasync.CopyBulkTensorTileG2SOp(two)
        q_one = cute.slice_(self.q_smem, (None, None, None, 0))
        vmnk = cute.tiled_divide(cute.make_layout((2, 1, 1)), (mma_s.thr_id.shape,))
        atoms = []
        for x in (q_latent, q_rope):
            atoms.append(
                cute.nvgpu.make_tiled_tma_atom_A(load, x, q_one, s_tile, mma_s, vmnk.shape)
            )
        k_one, v_one = (cute.slice_(x, (None, None, 0)) for x in (self.k_box, self.v_box))
        for x in (latent, rope):
            atoms.append(cpasync.make_tiled_tma_atom(load, x, k_one, (KEYS // 2, 64)))
        values = cute.make_tensor(latent.iterator, cute.select(latent.layout, mode=[1, 0, 2]))
        atoms.append(cpasync.make_tiled_tma_atom(load, values, v_one, (128, V_ROWS)))
        self.stage_bytes = 2 * cute.size_in_bytes(dtype, k_one)  # of both blocks

        @cute.struct
        class Storage:
            q: cute.struct.MemRange[cutlass.Int64, 2]
            ring: cute.struct.MemRange[cutlass.Int64, 2 * STAGES]
            s: cute.struct.MemRange[cutlass.Int64, 4]
            p: cute.struct.MemRange[cutlass.Int64, 2]
            factors: cute.struct.MemRange[cutlass.Int64, 2]
            o: cute.struct.MemRange[cutlass.Int64, 2]
            dealloc: cutlass.Int64
            holder: cutlass.Int32

        self.storage = Storage
        batches = q_latent.shape[2]
        self.kernel(
            mma_s, mma_o, vmnk, tuple((x[0], x[1]) for x in atoms), table, lengths, parts, logs
        ).launch(grid=(2, self.splits, batches), block=(384, 1, 1), cluster=(2, 1, 1))
        self.combine(parts, logs, out, lse).launch(
            grid=(HEADS, batches, 1), block=(LATENT // 4, 1, 1)
        )

    @cute.kernel
    def kernel(
        self,
        mma_s: cute.TiledMma,
        mma_o: cute.TiledMma,
        vmnk: cutlass.Constexpr,
        atoms: tuple,
        table: cute.Tensor,
        lengths: cute.Tensor,
        parts: cute.Tensor,
        logs: cute.Tensor,
    ):
        tidx, _, _ = cute.arch.thread_idx()
        v, split, batch = cute.arch.block_idx()
        warp = cute.arch.make_warp_uniform(cute.arch.warp_idx())
        dtype, f32 = mma_s.op.a_dtype, cutlass.Float32
        smem = utils.SmemAllocator()
        storage = smem.allocate(self.storage)
        sQ, ring, sP = [
            smem.allocate_tensor(dtype, x.outer, 1024, x.inner)
            for x in (self.q_smem, self.k_smem, self.p_smem)
        ]
        tops = smem.allocate_tensor(f32, cute.make_layout((HEADS // 2, 2, 2)), 16)
        numbers = smem.allocate_tensor(f32, cute.make_layout((128, 2)), 16)
        agent = pipeline.Agent.Thread
        one, own = pipeline.CooperativeGroup(agent), pipeline.CooperativeGroup(agent, 128)
        both = pipeline.CooperativeGroup(agent, 256)
        q, pieces = [
            pipeline.PipelineTmaUmma.create(
                barrier_storage=bars.data_ptr(), num_stages=stages, producer_group=one,
                consumer_group=one, tx_count=tx, cta_layout_vmnk=vmnk, defer_sync=True,
            ).make_participants()
            for bars, stages, tx in (
                (storage.q, 1, PIECES * self.stage_bytes), (storage.ring, STAGES, self.stage_bytes),
            )
        ]  # fmt: skip
        s, o = [
            pipeline.PipelineUmmaAsync.create(
                barrier_storage=bars.data_ptr(), num_stages=stages, producer_group=one,
                consumer_group=both, cta_layout_vmnk=vmnk, defer_sync=True,
            ).make_participants()
            for bars, stages in ((storage.s, 2), (storage.o, 1))
        ]  # fmt: skip
        p = pipeline.PipelineAsyncUmma.create(
            barrier_storage=storage.p.data_ptr(), num_stages=1, producer_group=both,
            consumer_group=one, cta_layout_vmnk=vmnk, defer_sync=True,
        ).make_participants()  # fmt: skip
        factors = pipeline.PipelineAsync.create(
            barrier_storage=storage.factors.data_ptr(), num_stages=1, producer_group=own,
            consumer_group=own, defer_sync=True,
        ).make_participants()  # fmt: skip
        tmem = utils.TmemAllocator(
            storage.holder, barrier_for_retrieve=pipeline.NamedBarrier(1, 32 * LOAD),
            allocator_warp_id=MMA, is_two_cta=True,
            two_cta_tmem_dealloc_mbar_ptr=storage.dealloc.ptr,
        )  # fmt: skip
        pipeline.pipeline_init_arrive(cluster_shape_mn=vmnk, is_relaxed=True)
        length = lengths[batch]
        tiles = cute.ceil_div(length, KEYS)
        share = cute.ceil_div(tiles, self.splits)
        first = split * share
        count = cutlass.max(cutlass.min(tiles - first, share), 0)
        pipeline.pipeline_init_wait(cluster_shape_mn=vmnk)

        if warp == LOAD and count > 0:
            self.load(
                mma_s, atoms, (sQ, ring), (q[0], pieces[0]), table, v, batch, length, first, count
            )
        if warp == MMA:
            tmem.allocate(512)
            tmem.wait_for_alloc()
            start = tmem.retrieve_ptr(f32)
            if v == 0 and count > 0:
                self.multiply_all(
                    mma_s, mma_o, start, (sQ, ring, sP), (q[1], pieces[1], s[0], p[1], o[0]), count
                )
            tmem.relinquish_alloc_permit()
            pipeline.NamedBarrier(3, 32 * 5).arrive_and_wait()  # the sums have been read
            tmem.free(start)
        if warp < CORRECTION:
            tmem.wait_for_alloc()
            start = tmem.retrieve_ptr(f32)
            if count > 0:
                self.softmax(
                    start, tidx, (s[1], p[0], factors[0]), sP, tops, numbers, length, first, count
                )
        if warp >= CORRECTION and warp < MMA:
            tmem.wait_for_alloc()
            start = tmem.retrieve_ptr(f32)
            thread = tidx % 128
            head = v * (HEADS // 2) + thread % 64
            if count > 0:
                self.correct(
                    start + O_AT, thread, (factors[1], o[1]), numbers,
                    parts[head, None, split, batch], logs[head, None, batch], split, count,
                )  # fmt: skip
            elif thread < 64:
                logs[head, split, batch] = -f32.inf
            pipeline.NamedBarrier(3, 32 * 5).arrive_and_wait()

    @cute.jit
    def load(self, mma_s, atoms, staged, producers, table, v, batch, length, first, count):
        """Load the queries, then keys of a tile ahead of the values of the one before."""
        sQ, ring = staged
        q, pieces = producers
        (ql_atom, mQl), (qr_atom, mQr), (kl_atom, mKl), (kr_atom, mKr), (v_atom, mV) = atoms
        thr, layout = mma_s.get_slice(v), cute.make_layout(1)
        (tQs, tQl), (_, tQr) = [
            cpasync.tma_partition(
                atom, 0, layout, cute.group_modes(sQ, 0, 3),
                cute.group_modes(
                    thr.partition_A(cute.local_tile(x, (HEADS, 64), (None, None, None))), 0, 3
                ),
            )
            for atom, x in ((ql_atom, mQl), (qr_atom, mQr))
        ]  # fmt: skip
        sK = cute.make_tensor(ring.iterator, self.k_box.outer)
        sV = cute.make_tensor(ring.iterator, self.v_box.outer)
        (tKs, tKl), (_, tKr), (tVs, tVg) = [
            cpasync.tma_partition(
                atom, 0, layout, cute.group_modes(mine, 0, 2),
                cute.group_modes(cute.local_tile(x, box, (None, None, None)), 0, 2),
            )
            for atom, mine, x, box in (
                (kl_atom, sK, mKl, (KEYS // 2, 64)), (kr_atom, sK, mKr, (KEYS // 2, 64)),
                (v_atom, sV, mV, (128, V_ROWS)),
            )
        ]  # fmt: skip
        empty = q.acquire_and_advance()
        for i in cutlass.range_constexpr(PIECES - 1):
            cute.copy(ql_atom, tQl[None, 0, i, batch], tQs[None, i], tma_bar_ptr=empty.barrier)
        cute.copy(qr_atom, tQr[None, 0, 0, batch], tQs[None, PIECES - 1], tma_bar_ptr=empty.barrier)
        for i in cutlass.range(count + 1):
            if i < count:
                key = (first + i) * KEYS + v * (KEYS // 2)
                page = table[cutlass.min(key, length - 1) // self.page, batch]
                at = key % self.page // (KEYS // 2)
                for c in cutlass.range_constexpr(PIECES - 1):
                    empty = pieces.acquire_and_advance()
                    cute.copy(
                        kl_atom, tKl[None, at, c, page], tKs[None, empty.index],
                        tma_bar_ptr=empty.barrier,
                    )  # fmt: skip
                empty = pieces.acquire_and_advance()
                cute.copy(
                    kr_atom, tKr[None, at, 0, page], tKs[None, empty.index],
                    tma_bar_ptr=empty.barrier,
                )  # fmt: skip
            if i > 0:
                for r in cutlass.range_constexpr(KEYS // V_ROWS):
                    key = (first + i - 1) * KEYS + r * V_ROWS
                    page = table[cutlass.min(key, length - 1) // self.page, batch]
                    at = key % self.page // V_ROWS
                    for n in cutlass.range_constexpr(2):
                        empty = pieces.acquire_and_advance()
                        cute.copy(
                            v_atom, tVg[None, 2 * n + v, at, page], tVs[None, empty.index],
                            tma_bar_ptr=empty.barrier,
                        )  # fmt: skip
        q.tail()
        pieces.tail()

    @cute.jit
    def multiply_all(self, mma_s, mma_o, start, staged, pipes, count):
        """The leader's MMA warp: scores of a tile, then the values of the one before."""
        sQ, ring, sP = staged
        q, pieces, s, p, o = pipes
        rQ, rK = mma_s.make_fragment_A(sQ), mma_s.make_fragment_B(ring)
        rP = mma_o.make_fragment_A(cute.make_tensor(sP.iterator, self.p_layout.outer))
        rV = mma_o.make_fragment_B(cute.make_tensor(ring.iterator, self.v_smem.outer))
        of_s = mma_s.make_fragment_C(mma_s.partition_shape_C((HEADS, KEYS))).layout
        of_o = mma_o.make_fragment_C(mma_o.partition_shape_C((HEADS, 256))).layout
        q_full = q.wait_and_advance()
        adds = cutlass.Boolean(False)
        for i in cutlass.range(count + 1):
            if i < count:
                s_empty = s.acquire_and_advance()
                tS = cute.make_tensor(start + (S_AT + s_empty.index * (KEYS // 2)), of_s)
                for c in cutlass.range_constexpr(PIECES):
                    full = pieces.wait_and_advance()
                    at = (None, None, None, full.index)
                    multiply(mma_s, tS, rQ[None, None, None, c], rK[at], c > 0)
                    full.release()
                s_empty.commit()
            if i > 0:
                p_full = p.wait_and_advance()
                o_empty = o.acquire_and_advance()
                for r in cutlass.range_constexpr(KEYS // V_ROWS):
                    for n in cutlass.range_constexpr(2):
                        full = pieces.wait_and_advance()
                        tO = cute.make_tensor(start + (O_AT + n * 128), of_o)
                        values = rV[None, None, None, full.index]
                        for kb in cutlass.range_constexpr(V_ROWS // 16):
                            mma_o.set(
                                tcgen05.Field.ACCUMULATE,
                                adds if cutlass.const_expr(r + kb == 0) else True,
                            )
                            block = rP[None, None, r * (V_ROWS // 16) + kb, 0]
                            cute.gemm(mma_o, tO, block, values[None, None, kb], tO)
                        full.release()
                o_empty.commit()
                p_full.release()
                adds = cutlass.Boolean(True)
        q_full.release()
        s.tail()
        o.tail()

    @cute.jit
    def softmax(self, start, thread, pipes, sP, tops, numbers, length, first, count):
        """Make weights. Two threads share a head, each with half of a tile's keys."""
        s, p, factors = pipes
        f32, dtype = cutlass.Float32, sP.element_type
        row, half = thread % 64, thread // 64
        load = cute.make_copy_atom(tcgen05.Ld32x32bOp(tcgen05.Repetition.x64), f32)
        t2r = tcgen05.make_tmem_copy(load, columns(start, 64))
        scale = f32(self.scale * LOG2_E)
        highest, total = -f32.inf, f32(0.0)
        for i in cutlass.range(count):
            full = s.wait_and_advance()
            scores = read(t2r, columns(start + (S_AT + full.index * 64), 64), thread)
            cute.arch.fence_view_async_tmem_load()
            full.release()
            key = (first + i) * KEYS + half * 64
            if key + 64 > length:
                for e in cutlass.range_constexpr(64):
                    scores[e] = cutlass.where(key + e < length, scores[e], -f32.inf)
            tops[row, half, i % 2] = scores.load().reduce(cute.ReductionOp.MAX, highest, 0)
            pipeline.NamedBarrier(2, 128).arrive_and_wait()
            old = highest
            highest = cute.arch.fmax(tops[row, 0, i % 2], tops[row, 1, i % 2])
            factor = cute.math.exp2((old - highest) * scale, fastmath=True)
            empty = factors.acquire_and_advance()
            numbers[thread, 0] = factor
            empty.commit()
            scores.store(cute.math.exp2(scores.load() * scale - highest * scale, fastmath=True))
            total = total * factor + scores.load().reduce(cute.ReductionOp.ADD, f32(0.0), 0)
            empty = p.acquire_and_advance()
            line = sP[row, None, 0]
            for c in cutlass.range_constexpr(8):
                piece = cute.make_rmem_tensor((8,), dtype)
                piece.store(cute.local_tile(scores, (8,), (c,)).load().to(dtype))
                cute.autovec_copy(piece, cute.local_tile(line, (8,), (half * 8 + c,)))
            cute.arch.fence_view_async_shared()
            empty.commit()
        empty = factors.acquire_and_advance()
        numbers[thread, 0], numbers[thread, 1] = total, highest * scale
        empty.commit()
        factors.tail()
        p.tail()

    @cute.jit
    def correct(self, start, thread, pipes, numbers, part, log, split, count):
        """Scale the sums as the largest scores grow, and write them at the end."""
        factors, o = pipes
        f32 = cutlass.Float32
        load = cute.make_copy_atom(tcgen05.Ld32x32bOp(tcgen05.Repetition.x32), f32)
        store = cute.make_copy_atom(tcgen05.St32x32bOp(tcgen05.Repetition.x32), f32)
        t2r = tcgen05.make_tmem_copy(load, columns(start, 32))
        r2t = tcgen05.make_tmem_copy(store, columns(start, 32))
        full = factors.wait_and_advance()  # nothing is summed yet
        full.release()
        for _ in cutlass.range(count - 1):
            full = factors.wait_and_advance()
            factor = numbers[thread, 0]
            full.release()
            o_full = o.wait_and_advance()
            if cute.arch.vote_any_sync(factor != 1.0):
                for c in cutlass.range_constexpr(8):
                    piece = columns(start + c * 32, 32)
                    values = cute.make_rmem_tensor(
                        t2r.get_slice(thread).partition_D(piece).shape, f32
                    )
                    cute.copy(t2r, t2r.get_slice(thread).partition_S(piece), values)
                    values.store(values.load() * factor)
                    cute.copy(r2t, values, r2t.get_slice(thread).partition_D(piece))
                cute.arch.fence_view_async_tmem_store()
            o_full.release()
        full = factors.wait_and_advance()
        total = numbers[thread % 64, 0] + numbers[thread % 64 + 64, 0]
        highest = numbers[thread, 1]
        full.release()
        o_full = o.wait_and_advance()
        for c in cutlass.range_constexpr(8):
            values = read(t2r, columns(start + c * 32, 32), thread)
            # Columns 0 to 127 of tensor memory are of sums 0 to 255, half in each half of lanes.
            first = c // 4 * 256 + thread // 64 * 128 + c % 4 * 32
            values.store(values.load() * cute.arch.rcp_approx(total))
            for e in cutlass.range_constexpr(8):
                line = cute.make_tensor((part.iterator + (first + e * 4)).align(16), 4)
                cute.autovec_copy(cute.local_tile(values, (4,), (e,)), line)
        cute.arch.fence_view_async_tmem_load()
        o_full.release()
        if thread < 64:
            log[split] = (highest + cute.math.log2(total, fastmath=True)) * LN_2

    @cute.kernel
    def combine(self, parts: cute.Tensor, logs: cute.Tensor, out: cute.Tensor, lse: cute.Tensor):
        """Join the splits of a head; a thread has 4 columns, and splits without keys are -inf."""
        f32 = cutlass.Float32
        tidx, _, _ = cute.arch.thread_idx()
        head, batch, _ = cute.arch.block_idx()
        top = -f32.inf
        for i in cutlass.range_constexpr(self.splits):
            top = cute.arch.fmax(top, logs[head, i, batch])
        total = f32(0.0)
        for i in cutlass.range_constexpr(self.splits):
            total += cute.math.exp2((logs[head, i, batch] - top) * LOG2_E, fastmath=True)
        log = top + cute.math.log2(total, fastmath=True) * LN_2
        sums = cute.make_rmem_tensor((4,), f32)
        sums.fill(0.0)
        for i in cutlass.range_constexpr(self.splits):
            own = logs[head, i, batch]
            if own != -f32.inf:
                weight = cute.math.exp2((own - log) * LOG2_E, fastmath=True)
                for e in cutlass.range_constexpr(4):
                    sums[e] = sums[e] + parts[head, tidx * 4 + e, i, batch] * weight
        for e in cutlass.range_constexpr(4):
            out[head, tidx * 4 + e, batch] = sums[e].to(out.element_type)
        if tidx == 0:
            lse[head, batch] = log


@cute.jit
def multiply(mma, acc, a, b, adds):
    """Start acc = A B, or acc += A B."""
    mma.set(tcgen05.Field.ACCUMULATE, adds)
    for k in cutlass.range_constexpr(cute.size(a, mode=[2])):
        cute.gemm(mma, acc, a[None, None, k], b[None, None, k], acc)
        mma.set(tcgen05.Field.ACCUMULATE, True)


def columns(start, count):
    """The tensor of all lanes and some columns of tensor memory."""
    return cute.make_tensor(start, cute.make_layout((128, count), stride=(65536, 1)))


def read(t2r, source, thread):
    """The columns of a thread's lane, in registers."""
    own = t2r.get_slice(thread)
    values = cute.make_rmem_tensor(own.partition_D(source).shape, cutlass.Float32)
    cute.copy(t2r, own.partition_S(source), values)
    return cute.make_tensor(values.iterator, cute.make_layout(cute.size(values)))
