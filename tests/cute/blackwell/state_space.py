"""A state-space scan by chunks with roles of warps (Mamba-2, arXiv 2405.21060, section 6).

y_l = C_l . h_l + skip x_l with states h_l = exp(delta_l a) h_(l-1) + delta_l B_l x_l^T. X and Y are
(S, 64, heads, batches), B and C (S, 128, groups, batches), contiguous along mode 1; S is a multiple
of the chunk's 128 rows. `delta` and `decay` (S, heads, batches) are the steps and their sums
delta_l a from the chunk's first row on, as a kernel before makes them.

A block walks the chunks of a head. Four products: Q = C B^T and, with the decays between rows,
W X inside the chunk; C P with the state P before it, and B'^T X, what the chunk adds to the state,
with rows of B scaled. Warps: 0 multiplies C P and B'^T X, 1 Q and W X, 2 loads B and C, 3 X and the
steps; 4 to 7 scale B and keep the state, 8 to 11 make W, 12 to 15 join Y and store it by TMA.
"""

import math

import basedsl_cute as cutlass
from basedsl_cute import cute, pipeline, utils
from basedsl_cute.cute.nvgpu import cpasync, tcgen05
from basedsl_cute.pipeline import PipelineOp
from basedsl_cute.utils import sm100

CHUNK, STATE, HEAD, STAGES = 128, 128, 64, 2
Q_AT, INTRA_AT, INTER_AT, ADDED_AT = 0, 128, 192, 256  # columns of tensor memory; W over Q
INTER, INTRA, LOAD_BC, LOAD_X, SCALE, WEIGHT, STORE = 0, 1, 2, 3, 4, 8, 12  # first warps of roles
LOG2_E = math.log2(math.e)
K, MN = tcgen05.OperandMajorMode.K, tcgen05.OperandMajorMode.MN
CONSUMER = pipeline.PipelineUserType.Consumer


class StateSpaceScan:
    """Calling it launches the kernel."""

    @cute.jit
    def __call__(
        self,
        x: cute.Tensor,
        delta: cute.Tensor,
        decay: cute.Tensor,
        b: cute.Tensor,
        c: cute.Tensor,
        skip: cute.Tensor,  # (heads)
        y: cute.Tensor,
        state: cute.Tensor,  # (64, 128, heads, batches) of Float32, after the last row
    ):
        dtype, f32, one = x.element_type, cutlass.Float32, tcgen05.CtaGroup.ONE
        square, wide = (CHUNK, CHUNK), (CHUNK, HEAD)
        mma_q = sm100.make_trivial_tiled_mma(dtype, K, K, f32, one, square)
        mma_w = sm100.make_trivial_tiled_mma(
            dtype, K, MN, f32, one, wide, tcgen05.OperandSource.TMEM
        )
        mma_p = sm100.make_trivial_tiled_mma(dtype, K, MN, f32, one, wide)
        mma_t = sm100.make_trivial_tiled_mma(dtype, MN, MN, f32, one, wide)
        q_tile, x_tile = (CHUNK, CHUNK, STATE), (CHUNK, HEAD, CHUNK)
        self.c_smem = sm100.make_smem_layout_a(mma_q, q_tile, dtype, STAGES)
        self.b_smem = sm100.make_smem_layout_b(mma_q, q_tile, dtype, STAGES)
        self.x_smem = sm100.make_smem_layout_b(mma_w, x_tile, dtype, STAGES)
        self.p_smem = sm100.make_smem_layout_b(mma_p, x_tile, dtype, 1)
        self.scaled_smem = sm100.make_smem_layout_a(mma_t, x_tile, dtype, 1)
        self.w_layout = sm100.make_smem_layout_a(mma_w, x_tile, dtype, 1)
        # The same bytes by rows of a chunk, or of the state, for threads.
        self.b_rows = sm100.make_smem_layout(K, (CHUNK, STATE), dtype, STAGES)
        self.x_rows = sm100.make_smem_layout(MN, (HEAD, CHUNK), dtype, STAGES)
        self.p_rows = sm100.make_smem_layout(MN, (HEAD, STATE), dtype, 1)
        self.scaled_rows = sm100.make_smem_layout(MN, (STATE, CHUNK), dtype, 1)
        self.y_smem = sm100.make_smem_layout_epi(dtype, utils.LayoutEnum.ROW_MAJOR, wide, 1)
        load = cpasync.CopyBulkTensorTileG2SOp(one)
        c_one, b_one, x_one = (
            cute.slice_(x, (None, None, None, 0)) for x in (self.c_smem, self.b_smem, self.x_smem)
        )
        columns_of_x = cute.make_tensor(x.iterator, cute.select(x.layout, mode=[1, 0, 2, 3]))
        c_atom, mC = cute.nvgpu.make_tiled_tma_atom_A(load, c, c_one, q_tile, mma_q)
        b_atom, mB = cute.nvgpu.make_tiled_tma_atom_B(load, b, b_one, q_tile, mma_q)
        x_atom, mX = cute.nvgpu.make_tiled_tma_atom_B(load, columns_of_x, x_one, x_tile, mma_w)
        y_atom, mY = cpasync.make_tiled_tma_atom(
            cpasync.CopyBulkTensorTileS2GOp(), y, cute.slice_(self.y_smem, (None, None, 0)), wide
        )
        self.bytes = [cute.size_in_bytes(dtype, one) for one in (c_one, b_one, x_one)]
        stages = {"c": STAGES, "b": STAGES, "x": STAGES, "steps": STAGES}
        self.depths = {
            **stages, "q": 1, "w": 1, "scaled": 1, "p": 1, "added": 1, "intra": 1, "inter": 1
        }  # fmt: skip
        self.kernel(
            (mma_q, mma_w, mma_p, mma_t), (c_atom, b_atom, x_atom, y_atom), (mC, mB, mX, mY),
            delta, decay, skip, state,
        ).launch(grid=(x.shape[2], x.shape[3], 1), block=(512, 1, 1))  # fmt: skip

    @cute.kernel
    def kernel(
        self,
        mmas: tuple,
        atoms: tuple,
        tensors: tuple,
        delta: cute.Tensor,
        decay: cute.Tensor,
        skip: cute.Tensor,
        state: cute.Tensor,
    ):
        tidx, _, _ = cute.arch.thread_idx()
        head, batch, _ = cute.arch.block_idx()
        warp = cute.arch.make_warp_uniform(cute.arch.warp_idx())
        dtype, f32 = mmas[0].op.a_dtype, cutlass.Float32
        mC, mB, mX, mY = tensors
        smem = utils.SmemAllocator()
        bars = {
            name: smem.allocate_array(cutlass.Int64, 2 * depth)
            for name, depth in self.depths.items()
        }
        holder = smem.allocate_array(cutlass.Int32, 1)
        sC, sB, sX, sP, sScaled, sY = [
            smem.allocate_tensor(dtype, x.outer, 1024, x.inner)
            for x in (
                self.c_smem, self.b_smem, self.x_smem, self.p_smem, self.scaled_smem, self.y_smem
            )
        ]  # fmt: skip
        steps_at = smem.allocate_tensor(f32, cute.make_layout((CHUNK, 2, STAGES)), 16)
        agent = pipeline.Agent.Thread
        one, two, lanes, rows, all_rows = [
            pipeline.CooperativeGroup(agent, n) for n in (1, 2, 32, 128, 384)
        ]
        c = pipeline.PipelineTmaUmma.create(
            barrier_storage=bars["c"], num_stages=STAGES, producer_group=one, consumer_group=two,
            tx_count=self.bytes[0], defer_sync=True,
        )  # fmt: skip
        b, x = [
            pipeline.PipelineTmaMultiConsumersAsync.create(
                barrier_storage=bars[name], num_stages=STAGES, producer_group=one,
                consumer_group_umma=mma_warps, consumer_group_async=rows, tx_count=tx,
                defer_sync=True,
            )
            for name, mma_warps, tx in (("b", one, self.bytes[1]), ("x", two, self.bytes[2]))
        ]  # fmt: skip
        steps = pipeline.PipelineCpAsync.create(
            barrier_storage=bars["steps"], num_stages=STAGES, producer_group=lanes,
            consumer_group=all_rows, defer_sync=True,
        )  # fmt: skip
        q, added, intra, inter = [
            pipeline.PipelineUmmaAsync.create(
                barrier_storage=bars[name], num_stages=1, producer_group=one, consumer_group=rows,
                defer_sync=True,
            ).make_participants()
            for name in ("q", "added", "intra", "inter")
        ]  # fmt: skip
        w, scaled, p = [
            pipeline.PipelineAsyncUmma.create(
                barrier_storage=bars[name], num_stages=1, producer_group=rows, consumer_group=one,
                defer_sync=True,
            ).make_participants()
            for name in ("w", "scaled", "p")
        ]  # fmt: skip
        tmem = utils.TmemAllocator(
            holder, barrier_for_retrieve=pipeline.NamedBarrier(1, 32 * 14), allocator_warp_id=STORE
        )
        pipeline.pipeline_init_arrive(is_relaxed=True)
        count = mX.shape[1] // CHUNK
        group = head // (mX.shape[2] // mB.shape[2])
        everyone = pipeline.NamedBarrier(2, 384)
        pipeline.pipeline_init_wait()

        if warp == LOAD_BC:
            part = mmas[0].get_slice(0)
            load(
                ((atoms[0], sC, part.partition_A, mC), (atoms[1], sB, part.partition_B, mB)),
                (c.make_participants()[0], b.make_participants()[0]),
                (CHUNK, STATE), False, group, batch, count,
            )  # fmt: skip
        elif warp == LOAD_X:
            part = mmas[1].get_slice(0)
            numbers = (delta[None, head, batch], decay[None, head, batch])
            load(
                ((atoms[2], sX, part.partition_B, mX),), (x.make_participants()[0],),
                (HEAD, CHUNK), True, head, batch, count,
                (numbers, steps_at, steps.make_participants()[0], tidx % 32),
            )  # fmt: skip
        elif warp == INTER:
            tmem.wait_for_alloc()
            start = tmem.retrieve_ptr(f32)
            multiply_inter(
                mmas[2:], start, (sC, sP, sScaled, sX), (c, x, p[1], scaled[1], inter[0], added[0]),
                count,
            )  # fmt: skip
        elif warp == INTRA:
            tmem.wait_for_alloc()
            start = tmem.retrieve_ptr(f32)
            multiply_intra(
                mmas[:2], start, (sC, sB, sX), (c, b, x, w[1], q[0], intra[0]), self.w_layout, count
            )
        elif warp < WEIGHT:
            tmem.wait_for_alloc()
            start = tmem.retrieve_ptr(f32)
            keep_state(
                start + ADDED_AT, tidx % 128,
                (cute.make_tensor(sB.iterator, self.b_rows.outer),
                 cute.make_tensor(sScaled.iterator, self.scaled_rows.outer),
                 cute.make_tensor(sP.iterator, self.p_rows.outer)),
                steps_at, (b, steps.make_participants()[1], scaled[0], p[0], added[1]),
                state[None, None, head, batch], count,
            )  # fmt: skip
            everyone.arrive_and_wait()
        elif warp < STORE:
            tmem.wait_for_alloc()
            start = tmem.retrieve_ptr(f32)
            make_weights(
                start + Q_AT, tidx % 128, steps_at, (q[1], steps.make_participants()[1], w[0]),
                dtype, count,
            )  # fmt: skip
            everyone.arrive_and_wait()
        else:
            tmem.allocate(512)
            tmem.wait_for_alloc()
            start = tmem.retrieve_ptr(f32)
            store_results(
                start, tidx % 128, cute.make_tensor(sX.iterator, self.x_rows.outer), sY, steps_at,
                (x, steps.make_participants()[1], intra[1], inter[1]), atoms[3],
                mY[None, None, head, batch], skip[head].to(f32), count,
            )  # fmt: skip
            tmem.relinquish_alloc_permit()
            everyone.arrive_and_wait()
            tmem.free(start)


@cute.jit
def load(
    sides,
    producers,
    box: cutlass.Constexpr,
    is_turned: cutlass.Constexpr,
    at,
    batch,
    count,
    steps=None,
):
    """Load the chunks of some tensors, and their steps; those turned have chunks along mode 1."""
    parts = []
    for atom, staged, partition, tensor in sides:
        tiles = partition(cute.local_tile(tensor[None, None, at, batch], box, (None, None)))
        parts.append(
            cpasync.tma_partition(
                atom, 0, cute.make_layout(1), cute.group_modes(staged, 0, 3),
                cute.group_modes(tiles, 0, 3),
            )
        )  # fmt: skip
    small = cute.make_copy_atom(cpasync.CopyG2SOp(), cutlass.Float32, num_bits_per_copy=128)
    for i in cutlass.range(count):
        if cutlass.const_expr(steps is not None):
            numbers, staged, ring, lane = steps
            empty = ring.acquire_and_advance()
            for which in cutlass.range_constexpr(2):
                line = numbers[which]  # of whole chunks
                source = cute.make_tensor(line.iterator.align(16), line.layout)
                cute.copy(
                    small, cute.local_tile(source, (4,), (i * 32 + lane,)),
                    cute.local_tile(staged[None, which, empty.index], (4,), (lane,)),
                )  # fmt: skip
            empty.commit()
        for n in cutlass.range_constexpr(len(sides)):
            to, tiles = parts[n]
            empty = producers[n].acquire_and_advance()
            source = tiles[None, 0, i] if cutlass.const_expr(is_turned) else tiles[None, i, 0]
            cute.copy(sides[n][0], source, to[None, empty.index], tma_bar_ptr=empty.barrier)
    for n in cutlass.range_constexpr(len(sides)):
        producers[n].tail()
    if cutlass.const_expr(steps is not None):
        steps[2].tail()


@cute.jit
def multiply_intra(mmas, start, staged, pipes, w_layout: cutlass.Constexpr, count):
    """Q = C B^T, then W X, of each chunk."""
    mma_q, mma_w = mmas
    sC, sB, sX = staged
    c, b, x, w, q, intra = pipes
    rC, rB, rX = mma_q.make_fragment_A(sC), mma_q.make_fragment_B(sB), mma_w.make_fragment_B(sX)
    tQ = cute.make_tensor(start + Q_AT, accumulator(mma_q, (CHUNK, CHUNK)))
    tY = cute.make_tensor(start + INTRA_AT, accumulator(mma_w, (CHUNK, HEAD)))
    tW = cute.make_tensor(
        cute.recast_ptr(start + Q_AT, dtype=mma_w.op.a_dtype),
        mma_w.make_fragment_A(w_layout.outer).layout,
    )
    at_c, at_b, at_x = (pipeline.make_pipeline_state(CONSUMER, STAGES) for _ in range(3))
    for _ in cutlass.range(count):
        c.consumer_wait(at_c)
        b.consumer_wait(at_b)
        empty = q.acquire_and_advance()
        multiply(mma_q, tQ, rC[None, None, None, at_c.index], rB[None, None, None, at_b.index])
        empty.commit()
        c.consumer_release(at_c)
        b.consumer_release(at_b, PipelineOp.TCGen05Mma)
        x.consumer_wait(at_x)
        w_full = w.wait_and_advance()
        empty = intra.acquire_and_advance()
        multiply(mma_w, tY, tW[None, None, None, 0], rX[None, None, None, at_x.index])
        empty.commit()
        w_full.release()
        x.consumer_release(at_x, PipelineOp.TCGen05Mma)
        at_c.advance()
        at_b.advance()
        at_x.advance()
    q.tail()
    intra.tail()


@cute.jit
def multiply_inter(mmas, start, staged, pipes, count):
    """C P with the state before a chunk, then B'^T X, what the chunk adds to it."""
    mma_p, mma_t = mmas
    sC, sP, sScaled, sX = staged
    c, x, p, scaled, inter, added = pipes
    rC, rP = mma_p.make_fragment_A(sC), mma_p.make_fragment_B(sP)
    rScaled, rX = mma_t.make_fragment_A(sScaled), mma_t.make_fragment_B(sX)
    tY = cute.make_tensor(start + INTER_AT, accumulator(mma_p, (CHUNK, HEAD)))
    tT = cute.make_tensor(start + ADDED_AT, accumulator(mma_t, (STATE, HEAD)))
    at_c, at_x = (pipeline.make_pipeline_state(CONSUMER, STAGES) for _ in range(2))
    for _ in cutlass.range(count):
        c.consumer_wait(at_c)
        p_full = p.wait_and_advance()
        empty = inter.acquire_and_advance()
        multiply(mma_p, tY, rC[None, None, None, at_c.index], rP[None, None, None, 0])
        empty.commit()
        p_full.release()
        c.consumer_release(at_c)
        x.consumer_wait(at_x)
        scaled_full = scaled.wait_and_advance()
        empty = added.acquire_and_advance()
        multiply(mma_t, tT, rScaled[None, None, None, 0], rX[None, None, None, at_x.index])
        empty.commit()
        scaled_full.release()
        x.consumer_release(at_x, PipelineOp.TCGen05Mma)
        at_c.advance()
        at_x.advance()
    inter.tail()
    added.tail()


@cute.jit
def keep_state(start, row, staged, steps_at, pipes, state, count):
    """Scale a chunk's rows of B, a thread each; keep the state, a thread a row of 64 numbers."""
    sB, sScaled, sP = staged
    b, steps, scaled, p, added = pipes
    f32, dtype = cutlass.Float32, sP.element_type
    t2r = tiled_load(start)
    at_b = pipeline.make_pipeline_state(CONSUMER, STAGES)
    held = cute.make_rmem_tensor((HEAD,), f32)
    held.fill(0.0)
    write_row(held, sP[None, row, 0], p, dtype)
    for i in cutlass.range(count):
        full = steps.wait_and_advance()
        last = steps_at[CHUNK - 1, 1, full.index]
        weight = power(last - steps_at[row, 1, full.index]) * steps_at[row, 0, full.index]
        full.release()
        b.consumer_wait(at_b)
        empty = scaled.acquire_and_advance()
        source, target = sB[row, None, at_b.index], sScaled[None, row, 0]
        for part in cutlass.range_constexpr(STATE // 8):
            piece = cute.make_rmem_tensor((8,), dtype)
            cute.autovec_copy(cute.local_tile(source, (8,), (part,)), piece)
            piece.store((piece.load().to(f32) * weight).to(dtype))
            cute.autovec_copy(piece, cute.local_tile(target, (8,), (part,)))
        cute.arch.fence_view_async_shared()
        empty.commit()
        b.consumer_release(at_b, PipelineOp.AsyncThread)
        at_b.advance()
        added_full = added.wait_and_advance()
        shrink = power(last)
        for part in cutlass.range_constexpr(HEAD // 32):
            values = read(t2r, columns(start + part * 32, 32), row)
            cute.arch.fence_view_async_tmem_load()
            own = cute.local_tile(held, (32,), (part,))
            own.store(own.load() * shrink + values.load())
        added_full.release()
        if i + 1 < count:
            write_row(held, sP[None, row, 0], p, dtype)
    for e in cutlass.range_constexpr(HEAD):
        state[e, row] = held[e]
    scaled.tail()
    p.tail()


@cute.jit
def write_row(held, line, producer, dtype: cutlass.Constexpr):
    """Write a row of the state to shared memory, for the next chunk."""
    empty = producer.acquire_and_advance()
    for part in cutlass.range_constexpr(HEAD // 8):
        piece = cute.make_rmem_tensor((8,), dtype)
        piece.store(cute.local_tile(held, (8,), (part,)).load().to(dtype))
        cute.autovec_copy(piece, cute.local_tile(line, (8,), (part,)))
    cute.arch.fence_view_async_shared()
    empty.commit()


@cute.jit
def make_weights(start, row, steps_at, pipes, dtype: cutlass.Constexpr, count):
    """W_ls = Q_ls exp(decay_l - decay_s) delta_s for s <= l, over Q in tensor memory."""
    q, steps, w = pipes
    f32 = cutlass.Float32
    store = cute.make_copy_atom(tcgen05.St32x32bOp(tcgen05.Repetition.x16), f32)
    t2r, r2t = tiled_load(start), tcgen05.make_tmem_copy(store, columns(start, 16))
    for _ in cutlass.range(count):
        steps_full = steps.wait_and_advance()
        here = steps_at[row, 1, steps_full.index]
        q_full = q.wait_and_advance()
        empty = w.acquire_and_advance()
        for part in cutlass.range_constexpr(CHUNK // 32):
            values = read(t2r, columns(start + part * 32, 32), row)
            cute.arch.fence_view_async_tmem_load()
            sizes, sums = (
                cute.local_tile(steps_at[None, which, steps_full.index], (32,), (part,))
                for which in range(2)
            )
            for e in cutlass.range_constexpr(32):
                weight = values[e] * power(here - sums[e]) * sizes[e]
                values[e] = cutlass.where(part * 32 + e <= row, weight, f32(0.0))
            # W of these columns takes half of them, of which Q has been read.
            target = columns(start + part * 16, 16)
            own = r2t.get_slice(row)
            words = cute.make_rmem_tensor(own.partition_S(target).shape, f32)
            narrow = cute.make_tensor(
                cute.recast_ptr(words.iterator, dtype=dtype), cute.make_layout(32)
            )
            narrow.store(values.load().to(dtype))
            cute.copy(r2t, words, own.partition_D(target))
        cute.arch.fence_view_async_tmem_store()
        empty.commit()
        q_full.release()
        steps_full.release()
    w.tail()


@cute.jit
def store_results(start, row, sX, sY, steps_at, pipes, atom, mY, skip, count):
    """Y = W X + exp(decay) C P + skip X, rows of threads, through shared memory by TMA."""
    x, steps, intra, inter = pipes
    f32, dtype = cutlass.Float32, sY.element_type
    warp = cute.arch.make_warp_uniform(cute.arch.warp_idx())
    t2r = tiled_load(start)
    staged, to = cpasync.tma_partition(
        atom, 0, cute.make_layout(1), cute.group_modes(sY, 0, 2),
        cute.group_modes(cute.local_tile(mY, (CHUNK, HEAD), (None, None)), 0, 2),
    )  # fmt: skip
    stores = pipeline.PipelineTmaStore.create(num_stages=1)
    mine = pipeline.NamedBarrier(3, 128)
    at_x = pipeline.make_pipeline_state(CONSUMER, STAGES)
    for i in cutlass.range(count):
        full = steps.wait_and_advance()
        factor = power(steps_at[row, 1, full.index])
        full.release()
        x.consumer_wait(at_x)
        intra_full, inter_full = intra.wait_and_advance(), inter.wait_and_advance()
        if warp == STORE:
            stores.producer_acquire()
        mine.arrive_and_wait()  # the stage is free
        source, line = sX[None, row, at_x.index], sY[row, None, 0]
        for part in cutlass.range_constexpr(HEAD // 32):
            values = read(t2r, columns(start + (INTRA_AT + part * 32), 32), row)
            before = read(t2r, columns(start + (INTER_AT + part * 32), 32), row)
            cute.arch.fence_view_async_tmem_load()
            for c in cutlass.range_constexpr(4):
                piece = cute.make_rmem_tensor((8,), dtype)
                cute.autovec_copy(cute.local_tile(source, (8,), (part * 4 + c,)), piece)
                for e in cutlass.range_constexpr(8):
                    at = c * 8 + e
                    total = values[at] + before[at] * factor + piece[e].to(f32) * skip
                    piece[e] = total.to(dtype)
                cute.autovec_copy(piece, cute.local_tile(line, (8,), (part * 4 + c,)))
        intra_full.release()
        inter_full.release()
        x.consumer_release(at_x, PipelineOp.AsyncThread)
        at_x.advance()
        cute.arch.fence_view_async_shared()
        mine.arrive_and_wait()
        if warp == STORE:
            cute.copy(atom, staged[None, 0], to[None, i, 0])
            stores.producer_commit()
    if warp == STORE:
        stores.producer_tail()


@cute.jit
def multiply(mma, acc, a, b):
    """Start acc = A B."""
    mma.set(tcgen05.Field.ACCUMULATE, False)
    for k in cutlass.range_constexpr(cute.size(a, mode=[2])):
        cute.gemm(mma, acc, a[None, None, k], b[None, None, k], acc)
        mma.set(tcgen05.Field.ACCUMULATE, True)


def accumulator(mma, tile):
    """The layout of an accumulator in tensor memory."""
    return mma.make_fragment_C(mma.partition_shape_C(tile)).layout


def power(x):
    """exp(x)."""
    return cute.math.exp2(x * LOG2_E, fastmath=True)


def columns(start, count):
    """The tensor of all lanes and some columns of tensor memory."""
    return cute.make_tensor(start, cute.make_layout((CHUNK, count), stride=(65536, 1)))


def tiled_load(start):
    """The copy of 32 columns of a thread's lane to registers."""
    load = cute.make_copy_atom(tcgen05.Ld32x32bOp(tcgen05.Repetition.x32), cutlass.Float32)
    return tcgen05.make_tmem_copy(load, columns(start, 32))


def read(t2r, source, row):
    """The columns of a thread's lane, in registers."""
    own = t2r.get_slice(row)
    values = cute.make_rmem_tensor(own.partition_D(source).shape, cutlass.Float32)
    cute.copy(t2r, own.partition_S(source), values)
    return cute.make_tensor(values.iterator, cute.make_layout(cute.size(values)))
