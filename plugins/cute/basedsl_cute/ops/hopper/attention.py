"""Attention on Hopper: warp-specialised, by TMA and wgmma, softmax under the products.

A block computes tiles of queries, each of one head. A producer warp loads the queries, and tiles of
keys and values into two rings of stages. A consumer warpgroup has 64 rows. It starts S = Q K^T of
the next tile of keys and O += P V of this one together, and makes the scores of the next into
weights while the tensor cores go on with the values (FlashAttention-3, Shah and others, arXiv
2407.08608, section 3.2). Weights stay in registers, as operand A of the second product. Blocks may
stay for many tiles: those of the next one are loaded while this one is written.
"""

from __future__ import annotations

from typing import Any

import basedsl_cute as cute
from basedsl_cute import arch, pipeline
from basedsl_cute.nvgpu import OperandMajorMode, cpasync, tma, warpgroup
from basedsl_cute.ops.ampere.attention import adjust
from basedsl_cute.ops.flash.softmax import (
    as_rows,
    as_wgmma_operand,
    narrow_weights,
    scale_rows,
)
from basedsl_cute.ops.flash.variant import LOG2_E, Sequence
from basedsl_cute.ops.hopper.attention_config import ROWS, check_config
from basedsl_cute.ops.hopper.attention_config import Config as Config
from basedsl_cute.ops.hopper.attention_producer import producer
from basedsl_cute.ops.hopper.attention_results import write_results
from basedsl_cute.ops.hopper.attention_rows import PackedWalk, Packing, box_width, boxes_of
from basedsl_cute.ops.hopper.attention_shares import (
    ADDS,
    FINISHES,
    LEAVES,
    SharedWalk,
    add_parts,
    clear_flags,
    leave_part,
)
from basedsl_cute.ops.hopper.attention_softmax import positive, scale_of_head, softmax_of
from basedsl_cute.ops.hopper.attention_sums import TileSums, allocate_ones, write_ones
from basedsl_cute.ops.hopper.attention_walk import NOTES, Steps, Walk, read_note
from basedsl_cute.ops.hopper.attention_weights import parts_of, store_weights
from basedsl_cute.ops.hopper.gemm import pin_in_registers
from basedsl_cute.utils import hopper_helpers as sm90

ROW, COLUMN = sm90.LayoutEnum.ROW_MAJOR, sm90.LayoutEnum.COL_MAJOR
# Of keys and values that blocks share at a time: less than the 50 MB of an H100's or H200's L2
# cache ("NVIDIA H100 Tensor Core GPU Architecture", table 4).
L2_BYTES = 32 << 20
# Sections of heads, of which blocks that stay get equal work.
MOST_SECTIONS = 6


@cute.kernel
def forward_kernel(
    load_q: tma.TmaAtom,
    tma_q: cute.Tensor,
    load_k: tma.TmaAtom,
    tma_k: cute.Tensor,
    load_v: tma.TmaAtom,
    tma_v: cute.Tensor,
    out: cute.Tensor,
    lse,  # a tensor or None
    extras: tuple,
    operand_scales: tuple,
    packing,  # a `Packing` or None
    shares,  # tensors for parts of tasks, or None
    scale: cute.Float32,
    value_scale: cute.Float32,
    swizzle: cute.Int32,
    mma_s: cute.Constexpr,
    mma_o: cute.Constexpr,
    dtype: cute.Constexpr,
    variant: cute.Constexpr,
    cfg: cute.Constexpr,
):
    (m, n), head_v = cfg.tile, out.shape[1]
    head_k = cute.size(tma_q, mode=[1])
    thread = arch.thread_idx()[0]
    slopes, sinks, bias, captured = extras
    of_scores = (slopes, bias, captured)
    smem = cute.utils.SmemAllocator()
    if cute.const_expr(packing is None):
        sequence = Sequence(cute.Int32(tma_q.shape[0]), cute.Int32(tma_k.shape[0]))
        if cute.const_expr(cfg.shares_last):
            blocks = arch.grid_dim()[0]
            walk = SharedWalk(variant, sequence, of_scores, tma_q.shape, blocks, cfg)
            walk.begin(arch.block_idx()[0], smem)
        else:
            walk = Walk(variant, sequence, of_scores, tma_q.shape, swizzle, cfg)
    else:
        packing = Packing(*packing)
        walk = PackedWalk(variant, packing, of_scores, tma_q.shape[2], swizzle, cfg)
    depths = (cfg.query_stages, cfg.stages, cfg.stages)
    barriers = [smem.allocate_array(cute.Int64, 2 * stages) for stages in depths]
    layouts = smem_layouts(dtype, head_k, head_v, cfg)
    sq, sk, sv = (smem.allocate_tensor(dtype, layout, 1024) for layout in layouts)
    notes = smem.allocate_tensor(cute.Int32, cute.make_layout((8, NOTES)), 16)
    steps: Any = None
    if cute.const_expr(variant.mask is not None):
        steps = Steps(smem, cfg.stages)
    ones: Any = None
    if cute.const_expr(cfg.by_products):
        ones = allocate_ones(smem, dtype, cfg)
        write_ones(ones, thread)

    # Weights of 8 bits, whose tiles are larger, leave none to give away.
    registers = cfg.registers(steps is not None)
    warp = arch.make_warp_uniform(arch.warp_idx())
    agents = pipeline.Agent.Thread
    pipes = [
        pipeline.PipelineTmaAsync.create(
            barrier_storage=storage,
            num_stages=stages,
            producer_group=pipeline.CooperativeGroup(agents),
            consumer_group=pipeline.CooperativeGroup(agents, 4 * cfg.groups),
            tx_count=cute.size_in_bytes(dtype, cute.select(layout, [0, 1])),
            defer_sync=True,
        )
        for storage, stages, layout in zip(barriers, depths, layouts, strict=True)
    ]
    pipeline.pipeline_init_arrive()
    pipeline.pipeline_init_wait()

    work = walk.first(arch.block_idx()[0])
    key_group = tma_q.shape[2] // tma_k.shape[2]
    if warp < 4:
        arch.setmaxregister_decrease(registers[0])
        if warp == 0:
            sides = ((load_q, tma_q, sq), (load_k, tma_k, sk), (load_v, tma_v, sv))
            left = (notes, steps)
            producer(pipes, sides, walk, work, key_group, packing, left, (head_k, head_v), cfg)
    else:
        arch.setmaxregister_increase(registers[1])
        lane = thread - 128
        own_s = mma_s.get_slice(lane)
        all_s, all_o = (x.get_slice((warp // 4 - 1) * 128) for x in (mma_s, mma_o))
        rq = mma_s.make_fragment_A(all_s.partition_A(sq))
        rk = mma_s.make_fragment_B(all_s.partition_B(sk))
        rv = mma_o.make_fragment_B(all_o.partition_B(sv))
        acc = cute.make_rmem_tensor(mma_o.partition_shape_C((m, head_v)), cute.Float32)
        scores = cute.make_rmem_tensor(mma_s.partition_shape_C((m, n)), cute.Float32)
        if cute.const_expr(dtype.width == 8):
            ordered, weights, operand = narrow_weights(scores, dtype)
        else:
            ordered, weights = scores, cute.make_rmem_tensor(scores.layout, dtype)
            operand = as_wgmma_operand(weights)
        coords = as_rows(own_s.partition_C(cute.make_identity_tensor((m, n))))
        sums, by_row = as_rows(acc), as_rows(scores)
        parts = parts_of(scores, cfg)
        tile_sums: Any = None
        if cute.const_expr(cfg.by_products):
            tile_sums = TileSums(ones, (warp // 4 - 1) * 128, cfg)
        scales = cute.make_rmem_tensor((cute.size(sums, mode=[0]),), cute.Float32)
        factor = cute.Float32(LOG2_E) if variant.is_scored else scale * LOG2_E
        softmax = softmax_of(cute.size(sums, mode=[0]), factor, dtype, cfg)
        at_q, at_k, at_v = [pipe.make_participants()[1] for pipe in pipes]
        of_results = ((out, lse, sinks, operand_scales[2]), walk, packing, key_group, value_scale)
        of_results = (*of_results, mma_o, dtype, variant)
        group = warp // 4
        # Beside their scores, warpgroups have registers for few loaded numbers.
        at_once = 8 if cfg.groups == 3 else 16
        if group == cfg.groups:
            give_turn(group, walk.has(work), cfg)
        if cute.const_expr(cfg.overlaps):
            if walk.has(work):
                if cute.const_expr(cfg.by_groups):
                    at_q.wait()
                    pass_hidden(at_k, at_v, walk, read_note(notes, at_q.state.count % NOTES), group)
                start_scores(at_q, at_k, cute.Boolean(True), mma_s, scores, rq, rk)
                warpgroup.wait_group(0)
        while walk.has(work):
            if cute.const_expr(cfg.query_stages == 1):
                # ptxas takes this loop for divergent, and computes descriptors in each thread, if
                # the barrier that it arrives at below is the same one in each task.
                at_q.state.index = work >> 31
            query_stage = at_q.wait()
            note = at_q.state.count % NOTES
            advance(at_q)
            row, head, batch, low, number = read_note(notes, note)
            whole: Any = None
            if cute.const_expr(steps is not None):
                whole = read_note(notes, note, 6)[5] != 0
            own_scale = scale_of_head(scale, operand_scales, head, head // key_group, batch)
            is_scaled = any(x is not None for x in operand_scales[:2])
            if cute.const_expr(is_scaled and not variant.is_scored):
                softmax.factor = positive(own_scale) * LOG2_E
            if cute.const_expr(cfg.by_groups):
                task = (row, head, batch, low, number)
                if cute.const_expr(not cfg.overlaps):
                    pass_hidden(at_k, at_v, walk, task, group)
                number = walk.last_of_group(task, group)
            stage, word = wait_for_keys(at_k, steps)
            if cute.const_expr(not cfg.overlaps):
                take_turn(group, cfg)
                multiply_scores(mma_s, scores, rq, query_stage.index, rk, stage.index)
            place = walk.place(batch)
            of_tile = (by_row, coords, place)
            area = walk.area(row, head, place.sequence)
            if cute.const_expr(cfg.by_groups):
                area = (area[0], walk.rows_of_group(row, group))
            own = number * n
            if cute.const_expr(steps is None):
                number = number - 1
            give_turn_again(group, number >= low, word, walk, work, cfg)
            acc.fill(0.0)
            scales.fill(1.0)
            softmax.begin()
            if cute.const_expr(cfg.shares_last and len(cfg.slack) > 1):
                # What other blocks have seen counts.
                softmax.tile = cute.ceil_div(walk.sequence.keys, n) - 2 - number
            warpgroup.wait_group(0)
            release_keys(stage, steps)
            adjust(*of_tile, own_scale, row, own, area, n, 1, whole=whole, at_once=at_once)
            softmax.update(by_row, tile_sums is None)
            if cute.const_expr(steps is not None):
                number, whole = next_tile(word, low)
            weights.store(ordered.load().to(dtype).reshape(weights.shape))
            if cute.const_expr(cfg.ahead):
                if number >= low:
                    at_k.wait()
            if cute.const_expr(cfg.by_groups):
                number = pass_all(at_k, at_v, number, low, walk.is_outside(area[1]))
            while number >= low:
                stage, word = wait_for_keys(at_k, steps, True if cfg.ahead else None)
                if cute.const_expr(cfg.ahead):
                    at_v.wait()
                take_turn(group, cfg)
                multiply_scores(mma_s, scores, rq, query_stage.index, rk, stage.index)
                held = at_v.wait_and_advance(True if cfg.ahead else None)
                if cute.const_expr(cfg.between):
                    rescale(sums, scales)
                multiply_values(mma_o, acc, operand, rv, held.index, tile_sums)
                own = number * n
                if cute.const_expr(steps is None):
                    number = number - 1
                give_turn_again(group, number >= low, word, walk, work, cfg)
                warpgroup.wait_group(1)
                release_keys(stage, steps)
                adjust(*of_tile, own_scale, row, own, area, n, 1, whole=whole, at_once=at_once)
                factors, exponents = softmax.rise(by_row)
                if cute.const_expr(steps is not None):
                    number, whole = next_tile(word, low)
                for r, factor in enumerate(factors):
                    scales[r] = factor
                for part, kind in parts[0]:
                    softmax.weigh(part, exponents, kind, tile_sums is None)
                if cute.const_expr(cfg.pinned):
                    # LLVM would sink the sums behind the wait below.
                    pin_in_registers(softmax.total)
                # ptxas moves a wait for wgmma up to the beginning of its basic block; this one is
                # behind the exponentials only if a branch is between.
                if number >= low:
                    at_k.wait()
                warpgroup.wait_group(0)
                held.release()
                if cute.const_expr(cfg.by_products):
                    tile_sums.add(softmax.total, scales)
                if cute.const_expr(cfg.slack):
                    rescale_where_risen(softmax, sums, scales)
                elif cute.const_expr(not cfg.between):
                    rescale(sums, scales)
                for part, kind in parts[1]:
                    softmax.weigh(part, exponents, kind, tile_sums is None)
                store_weights(weights, ordered, cfg)
            arch.sync_warp()  # before one lane tells that all have read the note of the task before
            query_stage.release()
            held = at_v.wait_and_advance()
            if cute.const_expr(cfg.between):
                rescale(sums, scales)
            multiply_values(mma_o, acc, operand, rv, held.index, tile_sums)
            if cute.const_expr(cfg.overlaps):
                more = walk.has(walk.following(work))
                if cute.const_expr(cfg.by_groups):
                    if more:
                        at_q.wait()
                        task = read_note(notes, at_q.state.count % NOTES)
                        pass_hidden(at_k, at_v, walk, task, group)
                start_scores(at_q, at_k, more, mma_s, scores, rq, rk)
            # Found again, since registers are few in the loop above.
            own_row, own_head, own_batch, _, _ = read_note(notes, note)
            warpgroup.wait_group(1 if cfg.overlaps else 0)
            held.release()
            if cute.const_expr(cfg.by_products):
                scales.fill(1.0)
                tile_sums.add(softmax.total, scales)
            place_of_task = (own_row, own_head, own_batch)
            if cute.const_expr(cfg.shares_last):
                ending = read_note(notes, note, 6)[5]
                if ending == LEAVES:
                    leave_part(softmax, acc, shares, lane, cfg)
                if ending == FINISHES:
                    write_results(softmax, sums, place_of_task, *of_results, lane, cfg)
            else:
                write_results(softmax, sums, place_of_task, *of_results, lane, cfg)
            work = walk.following(work)
            if cute.const_expr(cfg.overlaps):
                warpgroup.wait_group(0)
        if cute.const_expr(cfg.shares_last):
            # Behind the loop, which ptxas would take for divergent with a wait for memory in it.
            if at_q.state.count > 0:
                note = (at_q.state.count - 1) % NOTES
                *place_of_task, _, _, ending, first = read_note(notes, note, 7)
                if ending == ADDS:
                    add_parts(softmax, acc, shares, lane, first, cfg)
                    write_results(softmax, sums, place_of_task, *of_results, lane, cfg)


def wait_for_keys(at_k, steps, is_full=None):
    """Wait for the next tile of keys; its stage, and the word that is left with it, if any."""
    at_k.wait(is_full)
    word = None if steps is None else steps.load(at_k.state)
    return at_k.wait_and_advance(True), word


def release_keys(stage, steps):
    """Let the producer fill a stage of keys again, and write its word."""
    if steps is not None:
        arch.sync_warp()  # all lanes have read the word, for which one of them arrives
    stage.release()


def next_tile(word, low):
    """The number of the tile that a word of `Steps` is about, below `low` if there is none, and if
    queries see it whole. Used as late as can be: the word takes its time.
    """
    word = arch.make_warp_uniform(word)
    return cute.where(word & 1 != 0, word >> 2, low - 1), word & 2 != 0


def rescale(sums, scales):
    """Multiply each of a thread's rows by its number, behind the products that have been started:
    LLVM would do it ahead of them.
    """
    pin_in_registers(scales)
    scale_rows(sums, [scales[r] for r in range(cute.size(scales))])


@cute.jit
def rescale_where_risen(softmax, sums, scales):
    """Multiply a thread's rows by their numbers, if a base of the warp has risen."""
    if softmax.has_risen:
        rescale(sums, scales)


def advance(at):
    """Advance to the next stage; that of a ring of one stays."""
    if at.pipeline.num_stages == 1:
        at.state.count = at.state.count + 1
        at.state.phase = at.state.phase ^ 1
    else:
        at.advance()


@cute.jit
def take_turn(group, cfg: cute.Constexpr):
    """Wait until warpgroup `group`, counted from 1, may multiply."""
    if cute.const_expr(cfg.turns and cfg.groups > 1):
        arch.barrier(barrier_id=group, number_of_threads=256)


@cute.jit
def give_turn(group, more, cfg: cute.Constexpr):
    """Let the next warpgroup multiply; that after the last is the first, if there is `more`."""
    if cute.const_expr(cfg.turns and cfg.groups > 1):
        if group < cfg.groups:
            arch.barrier_arrive(group + 1, 256)
        elif more:
            arch.barrier_arrive(1, 256)


@cute.jit
def give_turn_again(group, more, word, walk, work, cfg: cute.Constexpr):
    """Let the next warpgroup multiply, if this one has `more` to do in its task, which a `word` may
    tell, or another one.
    """
    if cute.const_expr(cfg.turns and cfg.groups > 1 and word is None):
        give_turn(group, more or walk.has(walk.following(work)), cfg)
    elif cute.const_expr(cfg.turns and cfg.groups > 1):
        # The word is waited for in the last task only.
        if group < cfg.groups or walk.has(walk.following(work)):
            give_turn(group, True, cfg)
        else:
            give_turn(group, word & 1 != 0, cfg)


@cute.jit
def multiply_scores(mma, scores, rq, query_stage, rk, stage):
    """Start S = Q K^T with stages of queries and of keys."""
    mma.set(warpgroup.Field.ACCUMULATE, False)
    warpgroup.fence()
    cute.gemm(mma, scores, rq[None, None, None, query_stage], rk[None, None, None, stage], scores)
    mma.set(warpgroup.Field.ACCUMULATE, True)
    warpgroup.commit_group()


@cute.jit
def start_scores(at_q, at_k, more, mma, scores, rq, rk):
    """Start the scores of the next task's first tile of keys; if there are no `more`, those of the
    last one again: ptxas would serialise products that are started in a branch.
    """
    if more:
        at_q.wait()
        at_k.wait()
    stages = [
        cute.where(more, at.state.index, (at.state.index + last) % (last + 1))
        for at, last in ((at, at.pipeline.num_stages - 1) for at in (at_q, at_k))
    ]
    multiply_scores(mma, scores, rq, stages[0], rk, stages[1])


@cute.jit
def pass_hidden(at_k, at_v, walk, task, group):
    """Pass by the last tiles of keys and values of a task, those that no query of the warpgroup
    sees. It may hold one stage of values meanwhile.
    """
    number, last = task[4], walk.last_of_group(task, group)
    while number > last:
        at_k.wait_and_advance().release()
        at_v.wait_and_advance().release()
        number = number - 1


@cute.jit
def pass_all(at_k, at_v, number, low, is_outside):
    """Pass by the tiles of keys from `number` down to `low`, and as many of values, if the
    warpgroup has no queries; return the number of the next tile.
    """
    while is_outside and number >= low:
        at_k.wait_and_advance().release()
        at_v.wait_and_advance().release()
        number = number - 1
    return number


@cute.jit
def multiply_values(mma, acc, weights, rv, stage, sums: cute.Constexpr = None):
    """Start O += P V with a stage of values, and the `sums` of the weights, if any."""
    mma.set(warpgroup.Field.ACCUMULATE, True)
    warpgroup.fence()
    cute.gemm(mma, acc, weights, rv[None, None, None, stage], acc)
    if cute.const_expr(sums is not None):
        sums.multiply(weights)
    warpgroup.commit_group()


def smem_layouts(dtype, head_k, head_v, cfg):
    """The staged layouts of the queries, the keys, and the values as (head, keys)."""
    m, n = cfg.tile
    major = ROW if dtype.width == 8 else COLUMN
    return (
        sm90.make_smem_layout_a(ROW, (m, n, head_k), dtype, cfg.query_stages),
        sm90.make_smem_layout_b(ROW, (m, n, head_k), dtype, cfg.stages),
        sm90.make_smem_layout_b(major, (m, head_v, n), dtype, cfg.stages),
    )


@cute.jit
def forward(
    q: cute.Tensor,
    k: cute.Tensor,
    v: cute.Tensor,
    out: cute.Tensor,
    lse: cute.Tensor | None,
    extras: tuple,
    scales: tuple,
    scale: cute.Float32,
    value_scale: cute.Float32,
    blocks: cute.Int32,
    variant: cute.Constexpr,
    cfg: cute.Constexpr,
    stream: cute.Constexpr = None,
    packing: Any = None,
    shares: Any = None,
):
    """Compute attention of `q` (queries, head, heads, batches) over `k` and `v` (keys, head, key
    heads, batches) into `out`, and the logarithms of the rows' sums into `lse` (queries, heads,
    batches) if given. Of elements of 8 bits, `v` is (head, keys, key heads, batches), as
    `ops.flash.turn` makes it, and `scales` are those of `q` (heads, batches), `k` and `v` (key
    heads, batches), each a tensor or None, and results are multiplied by `value_scale`.

    `shares` are two tensors for parts of tasks, as `attention_shares.part_views` describes them,
    where `cfg.shares_last`; of elements of 8 bits, `ops.flash.turn` has cleared their flags.

    `packing` is for packed or paged sequences: (lengths, sequences, most queries of one), with
    `q`, `k`, `v`, `out` and `lse` as `ops.ampere.attention.forward` has them.

    `extras` are (slopes, sinks, bias (queries, keys, heads, batches), captured tensors), `blocks`
    is the most resident blocks, usually the number of multiprocessors. Raises
    DSLTypeError for a tile that does not fit the instruction or shared memory.
    """
    (m, n), head_k, head_v, dtype = cfg.tile, q.shape[1], out.shape[1], q.element_type
    check_config(cfg, dtype, variant, packing is not None)
    layouts = smem_layouts(dtype, head_k, head_v, cfg)
    mma_s = sm90.make_trivial_tiled_mma(
        dtype,
        dtype,
        OperandMajorMode.K,
        OperandMajorMode.K,
        cute.Float32,
        (cfg.groups, 1, 1),
        tiler_mn=(ROWS, n),
    )
    mma_o = sm90.make_trivial_tiled_mma(
        dtype,
        dtype,
        OperandMajorMode.K,
        OperandMajorMode.K if dtype.width == 8 else OperandMajorMode.MN,
        cute.Float32,
        (cfg.groups, 1, 1),
        tiler_mn=(ROWS, head_v),
        a_source=warpgroup.OperandSource.RMEM,
    )
    tensors = (q, k, v if dtype.width == 8 else cute.select(v, [1, 0, 2, 3]))
    keys, queries, heads = n, q.shape[0], q.shape[2] * q.shape[3]
    if cute.const_expr(packing is not None):
        _, batches, queries = packing
        packing = (*packing, cute.Int32(q.shape[0]), cute.Int32(k.shape[0]))
        keys, heads = cfg.box, q.shape[2] * batches
        tensors = (
            boxes_of(q, m),
            boxes_of(k, keys),
            cute.select(boxes_of(v, keys), [1, 0, 2, 3, 4]),
        )
    widths = head_k, head_v
    if cute.const_expr(packing is not None):
        widths = box_width(cfg, head_k), box_width(cfg, head_v)
    tiles = ((m, head_k), (keys, widths[0]), (widths[1], keys))
    loads: list = []
    op = cpasync.CopyBulkTensorTileG2SOp()
    for x, layout, tile in zip(tensors, layouts, tiles, strict=True):
        if cute.const_expr(cfg.in_blocks and len(loads) == 4):
            loads += [loads[2], v]  # values that are copied without TMA
        else:
            one = cute.composition(cute.select(layout, [0, 1]), tile)
            loads += cpasync.make_tiled_tma_atom(op, x, one, tile)
    swizzle = cute.Int32(1)
    is_even = cute.Boolean(True)
    if cute.const_expr((variant.right is not None or variant.mask is not None) and not cfg.by_head):
        held = cute.Int64(k.shape[0]) * (dtype.width // 8 * (head_k + head_v))
        group = q.shape[2] // k.shape[2]
        fitting = cute.Int32(cute.max(cute.Int64(L2_BYTES) // cute.max(held, 1), 1))
        if cute.const_expr(packing is not None):
            fitting = 1
        swizzle = cute.min(group * fitting, heads)
        sections = cute.ceil_div(heads, swizzle)
        is_even = sections == 1 or (sections % 2 == 0 and sections <= MOST_SECTIONS)
    grid = cute.Int32(cute.ceil_div(queries, m) * heads)
    if cute.const_expr(cfg.persistent):
        # Else the order in which multiprocessors become free is a better share of the work.
        grid = cute.where(is_even, cute.min(grid, blocks), grid)
    if cute.const_expr(cfg.shares_last):
        grid = blocks
        if cute.const_expr(dtype.width == 16):
            clear_flags(shares[1], blocks, cfg, stream)
    scalars = (packing, shares, scale, value_scale, swizzle)
    static = (mma_s, mma_o, dtype, variant, cfg)
    forward_kernel(*loads, out, lse, extras, scales, *scalars, *static).launch(
        grid=(grid, 1, 1),
        block=(cfg.threads, 1, 1),
        stream=stream,
        use_pdl=cfg.early or (cfg.shares_last and dtype.width == 16),
        min_blocks_per_mp=1,
    )
