"""Attention of few queries by mma.sync: the warps of a block share the keys of a tile of queries.

Each warp has every so many tiles of keys, a ring of stages for them in shared memory, and copies,
waits and multiplies by itself: no barrier of the block is between. At the end the warps join their
largest scores, sums and results in shared memory, so that a block writes one result, and where
blocks without splits fill the GPU no other kernel follows.
"""

from __future__ import annotations

from dataclasses import replace

import basedsl_cute as cute
from basedsl import DSLTypeError
from basedsl_cute import arch
from basedsl_cute.nvgpu import warp
from basedsl_cute.ops.ampere.attention import (
    AttentionResult,
    Config,
    adjust,
    check_config,
    finish_rows,
    sequence_of,
    tiles_of_keys,
)
from basedsl_cute.ops.ampere.attention_operands import AttentionOperands
from basedsl_cute.ops.ampere.attention_rows import COLUMN, ROW, KeyRows, QueryRows, RowCopier
from basedsl_cute.ops.flash.softmax import OnlineSoftmax, as_operand, as_rows, scale_rows
from basedsl_cute.ops.flash.variant import LOG2_E, Place
from basedsl_cute.utils import hopper_helpers as sm90


@cute.kernel
def decoding_kernel(
    q: cute.Tensor,
    k: cute.Tensor,
    v: cute.Tensor,
    out: cute.Tensor,
    lse,  # a tensor or None
    lengths: tuple,
    extras: tuple,
    scale: cute.Float32,
    variant: cute.Constexpr,
    cfg: cute.Constexpr,
):
    if cute.const_expr(cfg.overlap):
        arch.griddepcontrol_launch_dependents()
    if cute.const_expr(cfg.early):
        arch.griddepcontrol_wait()
    (m, n), head_k, head_v = cfg.tile, q.shape[1], v.shape[1]
    dtype, together = q.element_type, cfg.key_warps
    thread = arch.thread_idx()[0]
    own_warp, lane = arch.make_warp_uniform(arch.warp_idx()), thread % arch.WARP_SIZE
    tile, key_head, z = arch.block_idx()
    batch, split = z // cfg.splits, z % cfg.splits
    slopes, sinks, bias, captured = extras
    sequence, own, own_keys, table = sequence_of(q, k, lengths, batch)
    place = Place(variant, sequence, batch, slopes, bias, captured)
    head, key_head = key_head * cfg.packed, key_head * cfg.packed // (q.shape[2] // k.shape[2])
    if tile * m < sequence.queries * cfg.packed:
        layout_q = sm90.make_smem_layout_a(ROW, (m, n, head_k), dtype, 1)
        layout_k = sm90.make_smem_layout_b(ROW, (m, n, head_k), dtype, together * cfg.stages)
        layout_v = sm90.make_smem_layout_b(COLUMN, (m, head_v, n), dtype, together * cfg.stages)
        smem = cute.utils.SmemAllocator()
        sq = smem.allocate_tensor(dtype, layout_q, 1024)
        # One piece of memory, which has the rings, and in the end what warps join.
        rings = smem.allocate_array(dtype, cfg.ring_elements(head_k, head_v), 1024)
        sk = place_operand(rings, layout_k)
        sv = place_operand(rings + cute.cosize(layout_k), layout_v)
        alone = replace(cfg, key_warps=1)
        mma = cute.make_tiled_mma(
            warp.MmaF16BF16Op(dtype, cute.Float32, (16, 8, 16)), permutation_mnk=(16, 16, 16)
        )
        operands = AttentionOperands(mma, cfg.tile, (head_k, head_v), (sq, sk, sv), lane)
        (rq, rk, rv), (read_q, read_k, read_v) = operands.fragments, operands.readers
        copy_k = RowCopier(sk, alone, lane)
        copy_v = RowCopier(sv, alone, lane, by_column=True)
        rows_k = KeyRows(k, key_head, own_keys, sequence, table)
        rows_v = KeyRows(v, key_head, own_keys, sequence, table)

        acc = mma.make_fragment_C(mma.partition_shape_C((m, head_v)))
        acc.fill(0.0)
        sums = as_rows(acc)
        coords = mma.get_slice(lane).partition_C(cute.make_identity_tensor((m, n)))
        factor = cute.Float32(LOG2_E) if variant.is_scored else scale * LOG2_E
        softmax = OnlineSoftmax(cute.size(sums, mode=[0]), factor)

        low, high, queries = tiles_of_keys(place, tile, split, cfg)
        area = ((head, head + cfg.packed - 1), queries)
        if own_warp == 0:
            rows_q = QueryRows(q, tile * m, head, cfg.packed, sequence, own)
            RowCopier(sq, alone, lane).copy(rows_q)
        arch.cp_async_commit_group()
        number = place.tile_before(high - 1 - own_warp, low, *area, n, together)
        ahead = number
        ring = own_warp * cfg.stages
        for stage in cute.range_constexpr(cfg.stages - 1):
            if ahead >= low:
                copy_k.copy(lambda row, at=ahead: rows_k(at * n + row), ring + stage)
                copy_v.copy(lambda row, at=ahead: rows_v(at * n + row), ring + stage)
                ahead = place.tile_before(ahead - together, low, *area, n, together)
            arch.cp_async_commit_group()
        arch.cp_async_wait_group(cfg.stages - 1)
        arch.sync_threads()
        read, write = cute.Int32(0), cute.Int32(cfg.stages - 1)
        while number >= low:
            arch.cp_async_wait_group(cfg.stages - 2)
            # The tile is there for all lanes, and none reads the stage before any more.
            arch.sync_warp()
            if ahead >= low:
                copy_k.copy(lambda row, at=ahead: rows_k(at * n + row), ring + write)
                copy_v.copy(lambda row, at=ahead: rows_v(at * n + row), ring + write)
                ahead = place.tile_before(ahead - together, low, *area, n, together)
            arch.cp_async_commit_group()
            scores = mma.make_fragment_C(mma.partition_shape_C((m, n)))
            scores.fill(0.0)
            for b in cute.range_constexpr(cute.size(rq, mode=[2])):
                read_q.load(b, 0)
                read_k.load(b, ring + read)
                cute.gemm(mma, scores, rq[None, None, b], rk[None, None, b], scores)
            by_row = as_rows(scores)
            where = tile * m, number * n
            adjust(by_row, as_rows(coords), place, scale, *where, area, n, cfg.packed)
            scale_rows(sums, softmax.update(by_row))
            weights = cute.make_rmem_tensor(scores.layout, dtype)
            weights.store(scores.load().to(dtype))
            operand = as_operand(weights)
            for b in cute.range_constexpr(cute.size(rv, mode=[2])):
                read_v.load(b, ring + read)
                cute.gemm(mma, acc, operand[None, None, b], rv[None, None, b], acc)
            number = place.tile_before(number - together, low, *area, n, together)
            write = read
            read = cute.where(read + 1 == cfg.stages, 0, read + 1)
        arch.cp_async_wait_group(0)

        stats = smem.allocate_tensor(
            cute.Float32, cute.make_layout((2, arch.WARP_SIZE, m // 8, together))
        )
        arch.sync_threads()  # no warp reads keys or values any more
        joining = joining_warps(together, head_v)
        parts = parts_of(rings, acc, together)
        leave(softmax, acc, stats, parts, lane, own_warp)
        arch.sync_threads()
        if own_warp < joining:
            columns = head_v // joining
            shape = (m, columns)
            joined = mma.make_fragment_C(mma.partition_shape_C(shape))
            join(softmax, joined, stats, parts, lane, own_warp)
            own_columns = cute.local_tile(
                cute.make_identity_tensor((m, head_v)), shape, (0, own_warp)
            )
            result = as_rows(mma.get_slice(lane).partition_C(own_columns))
            slot = own + split * q.shape[3]
            target = AttentionResult(out, lse, sinks, variant, sequence, own, slot, split == 0)
            finish_rows(softmax, as_rows(joined), result, target, tile * m, head, cfg.packed)


def place_operand(pointer, layout):
    """A tensor of a swizzled layout at `pointer`."""
    swizzled = cute.recast_ptr(pointer, layout.inner, pointer.dtype)
    return cute.make_tensor(swizzled, layout.outer)


def joining_warps(warps, head_v):
    """The most of the warps that can join results so that each has as many whole 16 columns."""
    blocks = head_v // 16
    return next(count for count in range(warps, 0, -1) if blocks % count == 0)


def parts_of(pointer, acc, warps):
    """The results of `warps` warps at `pointer`, (elements of a block of eight columns, lanes,
    blocks of rows, of columns, warps): neighbouring lanes have neighbouring vectors.
    """
    (_, m, blocks), width = acc.layout.shape, 4
    lanes = arch.WARP_SIZE
    layout = cute.make_layout((width, lanes, m, blocks, warps))
    return cute.make_tensor(cute.recast_ptr(pointer, dtype=cute.Float32), layout)


def leave(softmax, acc, stats, parts, lane, own_warp):
    """Leave a warp's largest scores, its sums of weights, and its results for all to join."""
    for r in range(cute.size(softmax.total)):
        stats[0, lane, r, own_warp] = softmax.largest[r]
        stats[1, lane, r, own_warp] = softmax.total[r]
    _, m, blocks = acc.layout.shape
    for i in range(m):
        for block in range(blocks):
            cute.autovec_copy(acc[None, i, block], parts[None, lane, i, block, own_warp])


def join(softmax, joined, stats, parts, lane, own_warp):
    """Join the results of all warps, of the columns of one, into `joined`, and their softmax."""
    warps = parts.shape[4]
    scales = []
    for r in range(cute.size(softmax.total)):
        others = [(stats[0, lane, r, w], stats[1, lane, r, w]) for w in range(warps)]
        scales.append(softmax.join(r, others))
    joined.fill(0.0)
    by_row = as_rows(joined)
    _, m, blocks = joined.layout.shape
    for w in range(warps):
        held = cute.make_rmem_tensor(joined.layout, cute.Float32)
        for i in range(m):
            for block in range(blocks):
                source = parts[None, lane, i, own_warp * blocks + block, w]
                cute.autovec_copy(source, held[None, i, block])
        rows = as_rows(held)
        for r in range(len(scales)):
            by_row[r, None].store(by_row[r, None].load() + rows[r, None].load() * scales[r][w])


def check(cfg: Config, head: int, head_v: int) -> None:
    """Raise DSLTypeError for a configuration that this kernel does not take."""
    check_config(cfg, head, head_v)
    if cfg.warps != 1 or cfg.stages < 2 or cfg.slack or cfg.heads_first:
        raise DSLTypeError(
            f"{cfg.key_warps} warps cannot share keys in {cfg}",
            hint="take one warp along queries, two stages or more, no slack, and no heads_first",
        )
    if cfg.key_warps * cfg.tile[0] * head_v * 2 > cfg.ring_elements(head, head_v):
        raise DSLTypeError(
            f"results of tiles {cfg.tile} do not fit into {cfg.stages} stages of keys and values",
            hint="take more stages, or more keys, or fewer queries",
        )


@cute.jit
def forward(
    q: cute.Tensor,
    k: cute.Tensor,
    v: cute.Tensor,
    out: cute.Tensor,
    lse: cute.Tensor | None,
    lengths: tuple,
    extras: tuple,
    scale: cute.Float32,
    batches: cute.Int32,
    longest: cute.Int32,
    variant: cute.Constexpr,
    cfg: cute.Constexpr,
    stream: cute.Constexpr = None,
):
    """Compute attention as `ops.ampere.attention.forward`, whose parameters these are, with
    `cfg.key_warps` warps along keys.
    """
    check(cfg, q.shape[1], v.shape[1])
    tiles = cute.ceil_div(longest * cfg.packed, cfg.tile[0])
    decoding_kernel(q, k, v, out, lse, lengths, extras, scale, variant, cfg).launch(
        grid=(tiles, q.shape[2] // cfg.packed, batches * cfg.splits),
        block=(cfg.threads, 1, 1),
        stream=stream,
        use_pdl=cfg.early,
        min_blocks_per_mp=1,
    )
