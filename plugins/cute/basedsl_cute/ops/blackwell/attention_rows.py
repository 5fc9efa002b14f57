"""The warpgroups of Blackwell's attention that make softmax and corrections, a thread for a row.

Factors of sums, and at the end a row's total and its largest score, go from one to the other
through shared memory.
"""

from __future__ import annotations

from typing import Any

import basedsl_cute as cute
from basedsl_cute import arch, pipeline
from basedsl_cute.hardware.tensor_memory import TMEM_LANE_STRIDE
from basedsl_cute.nvgpu import tcgen05
from basedsl_cute.ops.flash.softmax import LARGEST_BASE, factor_and_base
from basedsl_cute.ops.flash.variant import LN_2, LOG2_E

__all__ = ["correction_warps", "softmax_warps", "stage_of"]

TILE = 128
PART = 32  # columns of tensor memory that a thread moves at once
VECTOR = 8  # elements of 16 bits that one store writes
# Sums are scaled when the largest score of a row has grown so far, as an exponent of two: weights
# are at most two to the power of it, far below Float16's 65504.
GROWTH = 8.0
# 2^x for x from -1/2 to 1/2, with an error of 2.6e-6 (minimax, by Lawson's iteration).
_POWER = (0.99999926157, 0.69312182126, 0.24024745057, 0.05591780848, 0.00957006888)
_ROUND = 1.5 * 2**23  # a Float32 of at most 2^22 plus this is rounded to an integer, the low bits
_LEAST = -126.0  # the exponent of the smallest normal Float32


def stage_of(user: Any, index: Any) -> Any:
    """Return the state of a producer or consumer that keeps to one stage of a pipeline of two: each
    turn flips its phase.
    """
    state = pipeline.make_pipeline_state(user, 2)
    state.index = index
    return state


def powers(pair: Any) -> Any:
    """Return two to the powers of a pair of Float32, by multiplications and additions: the unit
    for exponentials is slower than tensor cores with heads of 64. Less than -126 is -126.
    """
    pair = tuple(cute.where(x < _LEAST, _LEAST, x) for x in pair)
    rounded = arch.add_packed_f32x2(pair, (_ROUND, _ROUND))
    near = arch.add_packed_f32x2(rounded, (-_ROUND, -_ROUND))
    rest = arch.sub_packed_f32x2(pair, near)
    result: Any = (_POWER[-1], _POWER[-1])
    for coefficient in _POWER[-2::-1]:
        result = arch.fma_packed_f32x2(result, rest, (coefficient, coefficient))
    exponents = cute.make_rmem_tensor((2,), cute.Float32)
    bits = cute.recast_tensor(exponents, cute.Int32)
    for i in range(2):
        exponents[i] = rounded[i]
        bits[i] = (bits[i] << 23) + (127 << 23)
    return arch.mul_packed_f32x2(result, (exponents[0], exponents[1]))


def columns_at(start: Any, columns: int) -> Any:
    """Return the tensor of 128 lanes and some columns of tensor memory."""
    return cute.make_tensor(start, cute.make_layout((TILE, columns), stride=(TMEM_LANE_STRIDE, 1)))


def tiled_copies(columns: int) -> tuple[Any, Any]:
    """Return the operations that load and store `columns` columns of a thread's lane."""
    of = tcgen05.Repetition(columns)
    load, store = tcgen05.Ld32x32bOp(of), tcgen05.St32x32bOp(of)
    return cute.make_copy_atom(load, cute.Float32), cute.make_copy_atom(store, cute.Float32)


@cute.jit
def softmax_warps(
    start, numbers, pipe_s, pipe_f, walk, scale, dtype: cute.Constexpr, computed: cute.Constexpr
):
    """Make the scores of one of the two tiles of queries into weights, which replace them. Of each
    eight weights, `computed` come from polynomials (`powers`).
    """
    variant = walk.variant
    warp = arch.make_warp_uniform(arch.warp_idx())
    group, row = warp // 4, arch.thread_idx()[0] % TILE
    scores_at = start + group * TILE
    load, _ = tiled_copies(PART)
    _, store = tiled_copies(PART // 2)
    t2r = tcgen05.make_tmem_copy(load, columns_at(scores_at, PART))
    r2t = tcgen05.make_tmem_copy(store, columns_at(scores_at, PART // 2))
    at_s = stage_of(pipeline.PipelineUserType.Consumer, group)
    at_f = stage_of(pipeline.PipelineUserType.Producer, group)
    # What changes scores one by one takes the scaled ones.
    factor = cute.Float32(LOG2_E) if variant.is_scored else scale * LOG2_E
    work = arch.block_idx()[0]
    while work < walk.total:
        tile, head, batch, low, number = walk.task(work)
        place = walk.place(batch)
        first = (2 * tile + group) * TILE
        query = first + row
        last = cute.min(first + TILE, walk.sequence.queries) - 1
        largest, total = -cute.Float32.inf, cute.Float32(0.0)
        while number >= low:
            pipe_s.consumer_wait(at_s)
            if cute.const_expr(variant.is_scored or variant.mask is not None):
                change_scores(scores_at, t2r, row, place, head, query, number * TILE, scale)
            scores = cute.make_rmem_tensor((TILE,), cute.Float32)
            for part in cute.range_constexpr(TILE // PART):
                source = columns_at(scores_at + part * PART, PART)
                piece = cute.local_tile(scores, (PART,), (part,))
                there = t2r.get_slice(row).partition_S(source)
                shape = t2r.get_slice(row).partition_D(source).shape
                cute.copy(t2r, there, cute.make_tensor(piece.iterator, cute.make_layout(shape)))
            arch.fence_view_async_tmem_load()
            if cute.const_expr(variant.mask is None):
                if not place.is_whole(first, last, number * TILE, TILE):
                    for e in cute.range_constexpr(TILE):
                        seen = place.sees(head, query, number * TILE + e)
                        scores[e] = cute.where(seen, scores[e], -cute.Float32.inf)
            top = scores.load().reduce(cute.ReductionOp.MAX, largest, 0)
            grown = cute.where((top - largest) * factor > GROWTH, top, largest)
            # A row that saw no key so far has exponents of -inf, not NaN.
            known = cute.where(grown == -cute.Float32.inf, 0.0, grown)
            own, base = factor_and_base(known, factor, LARGEST_BASE)
            shrink = cute.math.exp2((largest - known) * own, fastmath=True)
            shrink = cute.where(grown == largest, 1.0, shrink)
            pipe_f.producer_acquire(at_f)
            numbers[row, 0, group] = shrink
            pipe_f.producer_commit(at_f)
            at_f.phase = at_f.phase ^ 1
            sums = [(cute.Float32(0.0), cute.Float32(0.0)) for _ in range(2)]
            for part in cute.range_constexpr(TILE // PART):
                piece = cute.local_tile(scores, (PART,), (part,))
                for e in cute.range_constexpr(0, PART, 2):
                    pair = arch.fma_packed_f32x2(
                        (piece[e], piece[e + 1]), (own, own), (-base, -base)
                    )
                    if cute.const_expr(e // 2 * computed % 8 < computed):
                        pair = powers(pair)
                    else:
                        pair = tuple(cute.math.exp2(x, fastmath=True) for x in pair)
                    piece[e], piece[e + 1] = pair
                for e in cute.range_constexpr(0, PART, 2):
                    sums[e // 2 % 2] = arch.add_packed_f32x2(
                        sums[e // 2 % 2], (piece[e], piece[e + 1])
                    )
                target = columns_at(scores_at + part * (PART // 2), PART // 2)
                there = r2t.get_slice(row).partition_D(target)
                words = cute.make_rmem_tensor(
                    r2t.get_slice(row).partition_S(target).shape, cute.Float32
                )
                weights = cute.make_tensor(
                    cute.recast_ptr(words.iterator, dtype=dtype), cute.make_layout(PART)
                )
                weights.store(piece.load().to(dtype))
                cute.copy(r2t, words, there)
            arch.fence_view_async_tmem_store()
            pipe_s.consumer_release(at_s)
            at_s.phase = at_s.phase ^ 1
            both = arch.add_packed_f32x2(*sums)
            total = total * shrink + (both[0] + both[1])
            largest = grown
            number -= 1
        pipe_f.producer_acquire(at_f)
        numbers[row, 0, group], numbers[row, 1, group] = total, largest * factor
        pipe_f.producer_commit(at_f)
        at_f.phase = at_f.phase ^ 1
        work = walk.following(work)
    pipe_f.producer_acquire(at_f)


@cute.jit
def change_scores(scores_at, t2r, row, place, head, query, first_key, scale):
    """Make the scaled products of a row in tensor memory into scores, -inf where a mask hides a
    key. They go there again, a part at a time: with all in registers a thread would spill.
    """
    _, store = tiled_copies(PART)
    r2t = tcgen05.make_tmem_copy(store, columns_at(scores_at, PART))
    variant = place.variant
    for part in cute.range(TILE // PART, unroll=1):
        piece = columns_at(scores_at + part * PART, PART)
        values = load_part(t2r, piece, row)
        arch.fence_view_async_tmem_load()
        flat = cute.make_tensor(values.iterator, cute.make_layout(PART))
        for e in cute.range_constexpr(PART):
            key = first_key + part * PART + e
            if cute.const_expr(variant.is_scored):
                flat[e] = place.score(flat[e] * scale, head, query, key)
            if cute.const_expr(variant.mask is not None):
                flat[e] = cute.where(place.sees(head, query, key), flat[e], -cute.Float32.inf)
        cute.copy(r2t, values, r2t.get_slice(row).partition_D(piece))
    arch.fence_view_async_tmem_store()


@cute.jit
def correction_warps(
    start, numbers, pipe_f, pipe_o, walk, out, lse, sinks, is_wide: cute.Constexpr
):
    """Scale the sums of both tiles of queries as their largest scores grow, and write results.

    `sinks` has a score without a value for each head, or is None.
    """
    row = arch.thread_idx()[0] % TILE
    head_extent = out.shape[1]
    load, store = tiled_copies(PART)
    t2r = tcgen05.make_tmem_copy(load, columns_at(start, PART))
    r2t = tcgen05.make_tmem_copy(store, columns_at(start, PART))
    user = pipeline.PipelineUserType.Consumer
    at_f, at_o = ([stage_of(user, g) for g in range(2)] for _ in range(2))
    work = arch.block_idx()[0]
    while work < walk.total:
        tile, head, batch, low, number = walk.task(work)
        for g in cute.range_constexpr(2):  # nothing is summed yet
            pipe_f.consumer_wait(at_f[g])
            pipe_f.consumer_release(at_f[g])
            at_f[g].phase = at_f[g].phase ^ 1
        while number > low:
            for g in cute.range_constexpr(2):
                pipe_f.consumer_wait(at_f[g])
                shrink = numbers[row, 0, g]
                pipe_f.consumer_release(at_f[g])
                at_f[g].phase = at_f[g].phase ^ 1
                pipe_o.consumer_wait(at_o[g])
                if arch.vote_any_sync(shrink != 1.0):
                    for part in cute.range_constexpr(head_extent // PART):
                        piece = columns_at(start + g * head_extent + part * PART, PART)
                        values = load_part(t2r, piece, row)
                        values.store(values.load() * shrink)
                        cute.copy(r2t, values, r2t.get_slice(row).partition_D(piece))
                    arch.fence_view_async_tmem_store()
                pipe_o.consumer_release(at_o[g])
                at_o[g].phase = at_o[g].phase ^ 1
            number -= 1
        for g in cute.range_constexpr(2):
            pipe_f.consumer_wait(at_f[g])
            total, largest = numbers[row, 0, g], numbers[row, 1, g]
            pipe_f.consumer_release(at_f[g])
            at_f[g].phase = at_f[g].phase ^ 1
            # Polynomials make 2^-126 of -inf; a NaN is not less than 1.
            nothing = (largest == -cute.Float32.inf) & (total < 1.0)
            known = cute.where(nothing, 1.0, total)
            shrink = cute.Float32(1.0)
            if cute.const_expr(walk.variant.sinks):
                sink = cute.Float32(sinks[head]) * LOG2_E
                top = arch.fmax(largest, sink)
                base = cute.where(top == -cute.Float32.inf, 0.0, top)
                shrink = cute.where(nothing, 0.0, cute.math.exp2(largest - base, fastmath=True))
                total = cute.where(nothing, 0.0, total * shrink)
                total = total + cute.math.exp2(sink - base, fastmath=True)
                largest, nothing = top, total == 0.0
                known = cute.where(nothing, 1.0, total)
            inverse = cute.where(nothing, 0.0, shrink * arch.rcp_approx(known))
            query = (2 * tile + g) * TILE + row
            inside = query < walk.sequence.queries
            pipe_o.consumer_wait(at_o[g])
            for part in cute.range_constexpr(head_extent // PART):
                piece = columns_at(start + g * head_extent + part * PART, PART)
                values = load_part(t2r, piece, row)
                results = cute.make_rmem_tensor((PART,), out.element_type)
                scaled = (values.load() * inverse).to(out.element_type)
                results.store(scaled.reshape(results.shape))
                if inside:
                    write(results, out[query, None, head, batch], part, is_wide)
            arch.fence_view_async_tmem_load()
            pipe_o.consumer_release(at_o[g])
            at_o[g].phase = at_o[g].phase ^ 1
            if cute.const_expr(lse is not None):
                if inside:
                    log = (largest + cute.math.log2(known, fastmath=True)) * LN_2
                    lse[query, head, batch] = cute.where(nothing, -cute.Float32.inf, log)
        work = walk.following(work)


def load_part(t2r, piece, row):
    """Load a thread's columns of a piece of tensor memory."""
    own = t2r.get_slice(row)
    values = cute.make_rmem_tensor(own.partition_D(piece).shape, cute.Float32)
    cute.copy(t2r, own.partition_S(piece), values)
    return values


def write(results, target, part, is_wide):
    """Write part of a row, in vectors of 16 bytes or in pairs of elements."""
    step = VECTOR if is_wide else 2
    for i in range(PART // step):
        to = cute.make_tensor(
            (target.iterator + (part * PART + i * step)).align(2 * step), cute.make_layout(step)
        )
        cute.autovec_copy(cute.local_tile(results, (step,), (i,)), to)
