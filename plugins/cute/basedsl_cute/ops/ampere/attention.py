"""Attention by mma.sync (sm_80 and later): one block a tile of queries, keys from last to first.

A block holds its queries in shared memory. For each tile of keys it multiplies S = Q K^T while the
values arrive, makes the scores into weights in registers, and multiplies O += P V while the next
keys arrive. Queries of the heads that share keys can be rows of one tile (`Config.packed`), and the
keys of a sequence can be split over blocks, whose results `ops.flash.combine` joins.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import basedsl_cute as cute
from basedsl import DSLTypeError
from basedsl_cute import arch
from basedsl_cute.dsl.machine import current_target
from basedsl_cute.nvgpu import warp
from basedsl_cute.ops.ampere.attention_key_walk import KeyWalk
from basedsl_cute.ops.ampere.attention_operands import AttentionOperands
from basedsl_cute.ops.ampere.attention_ring_walk import RingWalk, make_barriers
from basedsl_cute.ops.ampere.attention_rows import (
    COLUMN,
    ROW,
    VECTOR,
    KeyRows,
    QueryRows,
    RowCopier,
    check_copies,
)
from basedsl_cute.ops.flash.softmax import (
    LazySoftmax,
    OnlineSoftmax,
    as_rows,
    gather_columns,
)
from basedsl_cute.ops.flash.variant import LOG2_E, Place, Sequence
from basedsl_cute.utils import hopper_helpers as sm90


@dataclass(frozen=True)
class Config:
    """The static configuration of the kernel.

    `tile` is (queries, keys), `warps` the number of warps along queries, `packed` the number of
    heads whose queries alternate as the rows of a tile, `splits` the number of blocks that share
    the keys of a tile of queries. With `overlap` the kernel that joins their results starts while
    this one ends (programmatic dependent launch, from sm_90 on). With `slack` the base of a
    row's exponents follows its largest score only where that is so much above, as an exponent of
    two, so that sums are seldom scaled; weights are at most two to the power of it, made beside the
    products of the 16 keys before, and summed by products with ones. With `heads_first` the tiles
    of queries that see most keys begin first, of all heads of a batch. `stages` is the number of
    tiles of keys and values in shared memory, and with more than one of them warps wait for each
    other by mbarriers (`ops.ampere.attention_ring_walk`).

    With more than one of `key_warps`, `ops.ampere.decoding` has the kernel: so many warps share the
    keys of a tile of queries, each with `stages` tiles of its own in shared memory. `early`
    launches it while the kernel before it ends (from sm_90 on), whose results it waits for.

    Raises ValueError for numbers that are no integers from 1, or from 0 (`slack`).
    """

    tile: tuple[int, int] = (64, 64)
    warps: int = 4
    packed: int = 1
    splits: int = 1
    overlap: bool = False
    slack: int = 0
    heads_first: bool = False
    key_warps: int = 1
    stages: int = 1
    early: bool = False

    def __post_init__(self) -> None:
        counts = (*self.tile, self.warps, self.packed, self.splits, self.key_warps, self.stages)
        if len(self.tile) != 2 or not all(type(x) is int and x > 0 for x in counts):
            raise ValueError(f"{self}: a tile of two extents, and counts, are integers from 1")
        if type(self.slack) is not int or self.slack < 0:
            raise ValueError(f"{self}: slack is an integer from 0")

    @property
    def threads(self) -> int:
        return arch.WARP_SIZE * self.warps * self.key_warps

    def ring_elements(self, head: int, head_v: int) -> int:
        """The elements of all stages of all warps along keys, for heads of these extents."""
        return self.key_warps * self.stages * self.tile[1] * (head + head_v)

    def smem_bytes(self, head: int, head_v: int) -> int:
        """Shared memory of a block in bytes, for heads of these extents."""
        joined = 8 * self.tile[0] * 4 * self.key_warps if self.key_warps > 1 else 0
        return 2 * (self.tile[0] * head + self.ring_elements(head, head_v)) + joined


def smem_layouts(cfg, dtype, head, head_v):
    """The layouts of tiles of queries (queries, head), keys (keys, head), and values (head, keys),
    each with stages.
    """
    (m, n), stages = cfg.tile, cfg.stages
    return (
        sm90.make_smem_layout_a(ROW, (m, n, head), dtype, 1),
        sm90.make_smem_layout_b(ROW, (m, n, head), dtype, stages),
        sm90.make_smem_layout_b(COLUMN, (m, head_v, n), dtype, stages),
    )


def rows_of_warps(cfg):
    """The order in which warps share a tile's rows: with a ring of stages each has consecutive
    ones, and passes by the tiles of keys that none of them sees.
    """
    if cfg.stages == 1:
        return 16 * cfg.warps
    blocks = cfg.tile[0] // (16 * cfg.warps)
    return cute.make_layout((16, cfg.warps, blocks), stride=(1, 16 * blocks, 16))


@cute.kernel
def forward_kernel(
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
        # Not waited for by itself: a grid that takes places beside its predecessor lies unevenly.
        arch.griddepcontrol_launch_dependents()
    (m, n), head_k, head_v = cfg.tile, q.shape[1], v.shape[1]
    dtype = q.element_type
    thread = arch.thread_idx()[0]
    tile, key_head, z = arch.block_idx()
    if cute.const_expr(cfg.heads_first):
        heads = q.shape[2] // cfg.packed
        tile, key_head = tile // heads, tile % heads
        tile = arch.grid_dim()[0] // heads - 1 - tile
    elif cute.const_expr(variant.right is not None):
        # The longest tiles begin first, so that none of them is left alone at the end.
        tile = arch.grid_dim()[0] - 1 - tile
    batch, split = z // cfg.splits, z % cfg.splits
    slopes, sinks, bias, captured = extras
    sequence, own, own_keys, table = sequence_of(q, k, lengths, batch)
    place = Place(variant, sequence, batch, slopes, bias, captured)
    group = q.shape[2] // k.shape[2]
    if cute.const_expr(cfg.packed > 1):
        head = key_head * cfg.packed
        key_head = head // group
    else:
        head, key_head = key_head, key_head // group
    if tile * m < sequence.queries * cfg.packed:
        smem = cute.utils.SmemAllocator()
        layouts = smem_layouts(cfg, dtype, head_k, head_v)
        sq, sk, sv = (smem.allocate_tensor(dtype, layout, 1024) for layout in layouts)
        mma = cute.make_tiled_mma(
            warp.MmaF16BF16Op(dtype, cute.Float32, (16, 8, 16)),
            (cfg.warps, 1, 1),
            permutation_mnk=(rows_of_warps(cfg), 16, 16),
        )
        operands = AttentionOperands(mma, cfg.tile, (head_k, head_v), (sq, sk, sv), thread)
        rows_k = KeyRows(k, key_head, own_keys, sequence, table)
        rows_v = KeyRows(v, key_head, own_keys, sequence, table)

        acc = mma.make_fragment_C(mma.partition_shape_C((m, head_v)))
        acc.fill(0.0)
        sums = as_rows(acc)
        coords = mma.get_slice(thread).partition_C(cute.make_identity_tensor((m, n)))
        factor = cute.Float32(LOG2_E) if variant.is_scored else scale * LOG2_E
        count = cute.size(sums, mode=[0])
        totals: Any = None
        if cute.const_expr(cfg.slack > 0):
            # Rounded weights sum to what results are divided by best. Those of BFloat16 are too
            # coarse for the logarithm of the sum.
            if cute.const_expr(dtype is cute.Float16 or lse is None):
                totals = Totals(mma, cfg, dtype)
            summed = [sums] if totals is None else [sums, totals.by_row]
            softmax = LazySoftmax(count, factor, cfg.slack, summed)
        else:
            softmax = OnlineSoftmax(count, factor)

        low, high, queries = tiles_of_keys(place, tile, split, cfg)
        area = ((head, head + cfg.packed - 1), queries)
        number = place.tile_before(high - 1, low, *area, n)
        RowCopier(sq, cfg, thread).copy(QueryRows(q, tile * m, head, cfg.packed, sequence, own))

        def copy_by(thread):
            """Functions that copy a tile of keys, and of values, into a stage."""
            own_k = RowCopier(sk, cfg, thread)
            own_v = RowCopier(sv, cfg, thread, by_column=True)
            return (
                lambda number, stage: own_k.copy(lambda row: rows_k(number * n + row), stage),
                lambda number, stage: own_v.copy(lambda row: rows_v(number * n + row), stage),
            )

        def score(products, number, changed):
            by_row, own = as_rows(products), as_rows(coords)
            adjust(by_row, own, place, scale, tile * m, number * n, area, n, cfg.packed, changed)

        kind, ring = KeyWalk, {}
        if cute.const_expr(cfg.stages > 1):
            kind = RingWalk
            own_rows = m // cfg.warps
            end = (arch.make_warp_uniform(arch.warp_idx()) + 1) * own_rows
            end = place.keys_of(0, (tile * m + end - 1) // cfg.packed)[1]
            ring = {
                "stages": cfg.stages,
                "barriers": make_barriers(smem, cfg.stages, cfg.threads),
                "is_seen": None if variant.right is None else lambda number: number * n < end,
            }
        walk = kind(
            mma,
            cfg.tile,
            dtype,
            readers=operands.readers,
            fragments=operands.fragments,
            copies=copy_by(thread),
            before=lambda number, low: place.tile_before(number, low, *area, n),
            score=score,
            softmax=softmax,
            sums=acc,
            totals=totals,
            **ring,
        )
        # Another thread number, as far as compilers see: addresses of the first copies would be
        # kept for those in the loop, each in a register.
        same = arch.inline_ptx("mov.b32 $0, $1;", [thread], cute.Int32)
        walk.run(number, low, copy_by(same))
        if cute.const_expr(totals is not None):
            totals.share(softmax)

        own_thread = mma.get_slice(thread)
        result = as_rows(own_thread.partition_C(cute.make_identity_tensor((m, head_v))))
        target = AttentionResult(
            out, lse, sinks, variant, sequence, own, own + split * q.shape[3], split == 0
        )
        finish_rows(softmax, sums, result, target, tile * m, head, cfg.packed)


class Totals:
    """Sums of weights as their products with ones, of which each thread has those of its rows."""

    def __init__(self, mma, cfg, dtype):
        self.mma = cute.make_tiled_mma(
            mma.op, (cfg.warps, 1, 1), permutation_mnk=(rows_of_warps(cfg), 8, 16)
        )
        self.ones = self.mma.make_fragment_B(self.mma.partition_shape_B((8, 16)))
        self.ones.fill(1.0)
        shape = self.mma.partition_shape_C((cfg.tile[0], 8))
        self.sums = cute.make_rmem_tensor(shape, cute.Float32)
        self.sums.fill(0.0)
        self.by_row = as_rows(self.sums)

    def add(self, weights):
        """Add the weights of 16 keys, an operand A."""
        cute.gemm(self.mma, self.sums, weights, self.ones[None, None, 0], self.sums)

    def share(self, softmax):
        """Give each of the four threads of a row, whose totals `finish` adds, a quarter."""
        for r in range(cute.size(self.by_row, mode=[0])):
            softmax.total[r] = self.by_row[r, 0] * 0.25


@dataclass
class AttentionResult:
    """The result of a kernel: the tensors that it writes, the sequence, and its batch in them.
    `is_first` is True for the one of several splits that counts the sinks. Results are multiplied
    by `scale`, if any.
    """

    out: Any
    lse: Any
    sinks: Any
    variant: Any
    sequence: Any
    batch: Any
    slot: Any
    is_first: Any
    scale: Any = None


@cute.jit
def finish_rows(
    softmax,
    sums,
    coords,
    result,
    row0,
    head,
    packed: cute.Constexpr,
    is_wide: cute.Constexpr = False,
):
    """Write the rows of a tile that lie in the sequence. Four neighbouring threads share a row, of
    which each has pairs of consecutive columns; with `is_wide`, they exchange them for vectors of
    16 bytes, of rows that are aligned so.
    """
    out, sequence, variant = result.out, result.sequence, result.variant
    for r in cute.range_constexpr(cute.size(sums, mode=[0])):
        row, column = coords[r, 0]
        at = row0 + row
        # Rows before the first query are beyond the last as unsigned numbers.
        inside = cute.Uint32(at) < cute.Uint32(sequence.queries * packed)
        query = cute.where(inside, at // packed, 0) + sequence.first_query
        own_head = cute.where(inside, head + at % packed, 0)
        sink = None
        if cute.const_expr(variant.sinks):
            sink = cute.Float32(result.sinks[own_head]) * LOG2_E
            sink = cute.where(result.is_first, sink, -cute.Float32.inf)
        inverse, log = softmax.finish(r, sink)
        if cute.const_expr(result.scale is not None):
            inverse = inverse * result.scale
        values = cute.make_rmem_tensor((cute.size(sums, mode=[1]),), out.element_type)
        row_sums = (sums[r, None].load() * inverse).to(out.element_type)
        values.store(row_sums.reshape(values.shape))
        if cute.const_expr(is_wide):
            gather_columns(values, column // 2)
        if inside:
            target = out[query, None, own_head, result.slot]
            if cute.const_expr(is_wide):
                for c in cute.range_constexpr(cute.size(values) // VECTOR):
                    first = VECTOR * (4 * c + column // 2)
                    vector = cute.make_tensor(
                        (target.iterator + first).align(16), cute.make_layout(VECTOR)
                    )
                    cute.autovec_copy(cute.local_tile(values, (VECTOR,), (c,)), vector)
            else:
                for c in cute.range_constexpr(cute.size(values) // 2):
                    pair = cute.local_tile(target, (2,), (coords[r, 2 * c][1] // 2,))
                    cute.autovec_copy(cute.local_tile(values, (2,), (c,)), pair)
            if cute.const_expr(result.lse is not None):
                if column == 0:
                    result.lse[query, own_head, result.slot] = log


def sequence_of(q, k, lengths, batch):
    """The sequence number `batch`, and where its queries and keys are found: the batch of `q`, that
    of `k`, and the table of pages if there is one.
    """
    starts_q, starts_k, used, table = lengths
    queries, keys = cute.Int32(q.shape[0]), cute.Int32(k.shape[0])
    first_query, first_key, own, own_keys = cute.Int32(0), cute.Int32(0), batch, batch
    if starts_q is not None:
        first_query, own = cute.Int32(starts_q[batch]), 0
        queries = cute.Int32(starts_q[batch + 1]) - first_query
    if starts_k is not None:
        first_key, own_keys = cute.Int32(starts_k[batch]), 0
        keys = cute.Int32(starts_k[batch + 1]) - first_key
    if used is not None:
        keys = cute.Int32(used[batch])
    return Sequence(queries, keys, first_query, first_key), own, own_keys, table


@cute.jit
def tiles_of_keys(place, tile, split, cfg: cute.Constexpr):
    """The tiles of keys [low, high) of a block: those that the queries of `tile` may see by the
    windows, and of several splits its share of them; and these queries, (first, last).
    """
    m, keys = cfg.tile
    first = tile * m // cfg.packed
    last = min((tile * m + m - 1) // cfg.packed, place.sequence.queries - 1)
    begin, end = place.keys_of(first, last)
    low, high = begin // keys, cute.ceil_div(end, keys)
    if cute.const_expr(cfg.splits > 1):
        each = cute.ceil_div(high - low, cfg.splits)
        low = low + split * each
        high = min(high, low + each)
    return low, high, (first, last)


@cute.jit
def adjust(
    scores,
    coords,
    place,
    scale,
    row0,
    key0,
    area,
    keys,
    packed: cute.Constexpr,
    changed: cute.Constexpr = lambda: None,
    whole=None,
    at_once: cute.Constexpr = None,
):
    """Change the products of a tile into scores, and hide those that queries do not see. `area` are
    its heads and its queries, each (first, last). `changed` is called where any is changed. If the
    queries see the `whole` tile is found here unless it is given. What a mask loads is loaded for
    `at_once` columns at a time, or for all, as compilers like.
    """
    variant, head = place.variant, area[0][0]
    of_row = [row0 + coords[r, 0][0] for r in range(cute.size(scores, mode=[0]))]
    rows = [(head + row % packed, row // packed) for row in of_row]
    if cute.const_expr(variant.mask is not None or variant.score is not None):
        place.look(*rows[0], key0)
    # Column by column: what functions make of a key is needed for its few scores only.
    if cute.const_expr(variant.is_scored):
        steps = cute.make_tensor((0, 0), coords.layout)
        nearest = of_row[0] - key0 - coords[0, 0][1]
        for c in cute.range_constexpr(cute.size(scores, mode=[1])):
            key = key0 + coords[0, c][1]
            for r in cute.range_constexpr(len(rows)):
                own, query = rows[r]
                apart = None
                if cute.const_expr(place.is_relative and packed == 1):
                    apart = nearest + (steps[r, 0][0] - steps[0, c][1])
                scores[r, c] = place.score(scores[r, c] * scale, own, query, key, apart)
    if cute.const_expr(whole is None):
        whole = place.shows_whole(area, key0, keys)
    if not whole:
        first = key0 + coords[0, 0][1]
        spans = place.spans(rows, first)
        if cute.const_expr(spans is not None):
            hide_columns(scores, coords, spans, first)
        else:
            if not place.is_whole(*area[1], key0, keys):
                hide_columns(scores, coords, place.spans_of_windows(rows), first)
            loads = at_once if place.arrays else None
            for c in cute.range_constexpr(cute.size(scores, mode=[1])):
                if cute.const_expr(loads and c and c % loads == 0):
                    # ptxas moves no loads across.
                    arch.sync_warp()
                key = key0 + coords[0, c][1]
                for r in cute.range_constexpr(len(rows)):
                    own, query = rows[r]
                    scores[r, c] = shown(place.shows(own, query, key), scores[r, c])
        if cute.const_expr(not variant.is_scored):
            changed()
    if cute.const_expr(variant.is_scored):
        changed()


def shown(seen, score):
    """A score that is seen, else -inf.

    LLVM makes a choice by several conditions into a choice for each; predicates that are joined
    cost nothing in comparisons.
    """
    if isinstance(seen, bool) or not current_target().is_gpu:
        return cute.where(seen, score, -cute.Float32.inf)
    text = "selp.f32 $0, $1, 0fFF800000, $2;"
    return arch.inline_ptx(text, [score, seen], cute.Float32, has_side_effects=False)


def hide_columns(scores, coords, spans, first):
    """Hide the scores of keys outside of the span of their row. A score costs a comparison of its
    column, a constant, with each end; `first` is the key of the thread's first column.
    """
    columns = cute.make_tensor((0, 0), coords.layout)
    spans = [(None if begin is None else begin - first, end - first) for begin, end in spans]
    for c in range(cute.size(scores, mode=[1])):
        column = columns[0, c][1]
        for r, (begin, end) in enumerate(spans):
            if begin is None:
                scores[r, c] = cute.where(column < end, scores[r, c], -cute.Float32.inf)
            else:
                scores[r, c] = shown((column < end) & (column >= begin), scores[r, c])


def check_config(cfg: Config, head: int, head_v: int) -> None:
    """Raise DSLTypeError for a tile that the warps or their copies do not divide, and for heads
    without a layout.
    """
    m, n = cfg.tile
    if m % (16 * cfg.warps) or n % 16:
        raise DSLTypeError(
            f"{cfg.warps} warps cannot share a tile {cfg.tile}",
            hint=f"queries must be a multiple of {16 * cfg.warps}, keys of 16",
        )
    check_copies(arch.WARP_SIZE * cfg.warps, ((m, head), (n, head), (n, head_v)))


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
    cfg: cute.Constexpr = Config(),
    stream: cute.Constexpr = None,
):
    """Compute attention of `q` (queries, head, heads, batches) over `k` and `v` (keys, head, key
    heads, batches) into `out`, and the logarithms of the rows' sums into `lse` (queries, heads,
    batches) if given.

    `lengths` are (first queries, first keys, used keys, table of pages), each a tensor or None;
    with pages, `k` and `v` are (rows of a page, head, heads, pages). `extras` are (slopes, sinks,
    bias (queries, keys, heads, batches), captured tensors). `batches` counts sequences, `longest`
    the most queries of one. With `cfg.splits`, `out` and `lse` have as many times more batches,
    and `out` is Float32.
    """
    check_config(cfg, q.shape[1], v.shape[1])
    heads = q.shape[2] // cfg.packed
    tiles = cute.ceil_div(longest * cfg.packed, cfg.tile[0])
    grid = (tiles * heads, 1) if cfg.heads_first else (tiles, heads)
    forward_kernel(q, k, v, out, lse, lengths, extras, scale, variant, cfg).launch(
        grid=(*grid, batches * cfg.splits),
        block=(cfg.threads, 1, 1),
        stream=stream,
        min_blocks_per_mp=1,
    )
