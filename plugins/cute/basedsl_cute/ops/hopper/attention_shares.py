"""The last tasks of attention on Hopper, shared by all blocks along the keys.

Tasks of equal length that do not fill a round of the blocks are laid one behind the other, and cut
into a piece for each block, as stream-K cuts products (Osama and others, arXiv 2301.03598). A task
that is cut leaves parts: the sums of values, the bases and the sums of weights of each thread, as it
has them. A second kernel adds the parts of a task, always in the order of the keys.
"""

from __future__ import annotations

from dataclasses import replace

import basedsl_cute as cute
from basedsl_cute import arch
from basedsl_cute.ops.ampere.attention import AttentionResult, finish_rows
from basedsl_cute.ops.flash.softmax import as_rows
from basedsl_cute.ops.flash.variant import LOG2_E, Sequence
from basedsl_cute.ops.hopper.attention_config import ROWS, Config, takes_shares
from basedsl_cute.ops.hopper.attention_softmax import positive, scale_of_head, softmax_of
from basedsl_cute.ops.hopper.attention_walk import Walk

LEAST_PIECE = 4  # tiles of keys of a piece: less are not worth the sums that are written
# Tiles of keys of a block that sharing must save to pay, and what part of all: parts are written, and
# added by another kernel (bench/results/2026-11-23-attention-4.md).
LEAST_SAVED, LEAST_SAVED_PART = 6, 0.02
WHOLE = -1  # the slot of a task that is not cut
VECTOR = 4  # Float32, 16 bytes


class SharedWalk(Walk):
    """The tasks of `blocks` blocks, those of the last round as pieces. A step of a task, a tile of
    keys, weighs one and as many as its tile of queries has warpgroups with queries. A block has two
    slots for parts: of a task that it has the end of, and of one that it has the beginning of.
    """

    def __init__(self, variant, sequence, extras, shape, blocks, cfg):
        super().__init__(variant, sequence, extras, shape, cute.Int32(1), cfg)
        self.blocks = blocks
        # Tiles of less rows, at the beginning of each head, come last.
        self.short_tiles = cute.where(self.lead > 0, 1, 0) if cfg.from_end else 0
        self.long_tiles = cute.max(self.tiles - self.short_tiles, 1)
        self.long_weight = self.short_weight = cute.Int32(cfg.groups + 1)
        if cfg.by_groups:
            self.short_weight = cute.ceil_div(self.rows - self.lead, ROWS) + 1
        self.steps = cute.max(cute.ceil_div(cute.Int32(sequence.keys), self.keys), 1)
        all_heads = self.heads * self.batches
        self.longs = (self.tiles - self.short_tiles) * all_heads
        self.rounds = self.longs // blocks
        self.first_shared = self.rounds * blocks
        self.left = self.longs - self.first_shared
        self.shared = self.left + self.short_tiles * all_heads
        self.long, self.short = self.steps * self.long_weight, self.steps * self.short_weight
        self.all_long = self.left * self.long
        self.weight = self.all_long + self.short_tiles * all_heads * self.short
        least = LEAST_PIECE * self.long_weight
        self.pieces = cute.min(cute.max(self.weight // least, 1), blocks)
        self.each, self.more = self.weight // self.pieces, self.weight % self.pieces

    def of_block(self, block):
        """This walk, whose `total` is behind the last task of the block with that number."""
        last = self.cut(block + 1)
        number = self.task_at(last - 1) - self.task_at(self.cut(block)) + 1
        has_piece = (block < self.pieces) & (self.shared > 0)
        rounds = self.rounds + cute.where(has_piece, number, 0)
        self.total = block + (rounds - 1) * self.blocks + 1
        return self

    def following(self, work):
        return work + self.blocks

    def cut(self, piece):
        """Where a piece begins, a whole step of a task."""
        at = piece * self.each + cute.min(piece, self.more)
        of_short = at - self.all_long
        return at - cute.where(
            of_short < 0, at % self.long_weight, cute.max(of_short, 0) % self.short_weight
        )

    def piece_at(self, at):
        """The piece that has what lies at a place of the row of shared tasks."""
        more = self.more * (self.each + 1)
        piece = cute.where(
            at < more, at // (self.each + 1), self.more + (at - more) // cute.max(self.each, 1)
        )
        return piece + cute.where(self.cut(piece + 1) <= at, 1, 0)

    def task_at(self, at):
        """The shared task that lies at a place."""
        of_short = at - self.all_long
        return cute.where(of_short < 0, at // self.long, self.left + of_short // self.short)

    def reach(self, shared):
        """Where a shared task begins and ends, and the weight of its steps."""
        of_short = shared - self.left
        is_long = of_short < 0
        begin = cute.where(is_long, shared * self.long, self.all_long + of_short * self.short)
        end = begin + cute.where(is_long, self.long, self.short)
        return begin, end, cute.where(is_long, self.long_weight, self.short_weight)

    def place_of(self, index):
        """The tile, head and batch of a task by its number, with those of less rows last."""
        of_short = index - self.longs
        number, tile = index // self.long_tiles, index % self.long_tiles + self.short_tiles
        number = cute.where(of_short < 0, number, of_short)
        tile = cute.where(of_short < 0, tile, 0)
        return tile, number % self.heads, number // self.heads

    def part(self, work):
        """The number of a task, its first step and the one behind its last, and the slot."""
        turn = work // self.blocks
        block = work - turn * self.blocks
        piece = cute.min(block, self.pieces - 1)
        own, following = self.cut(piece), self.cut(piece + 1)
        behind = turn - self.rounds
        shared = self.task_at(own) + cute.max(behind, 0)
        begin, end, weight = self.reach(shared)
        first = (cute.max(own, begin) - begin) // weight
        last = (cute.min(following, end) - begin) // weight
        slot = 2 * block + cute.where(behind > 0, 1, 0)
        slot = cute.where((first == 0) & (last == self.steps), WHOLE, slot)
        is_shared = behind >= 0
        return (
            cute.where(is_shared, self.first_shared + shared, work),
            cute.where(is_shared, first, 0),
            cute.where(is_shared, last, self.steps),
            cute.where(is_shared, slot, WHOLE),
        )

    def task(self, work):
        """The tile, head and batch of a task, and the tiles of keys that the block has of it."""
        index, first, last, _ = self.part(work)
        return *self.place_of(index), self.steps - last, self.steps - 1 - first

    def slot(self, work):
        """The slot for what a task leaves, or WHOLE."""
        return self.part(work)[3]


def with_shares(config, variant, queries, keys, heads, processors):
    """A chosen configuration, which `shares_last` if that pays: for so many queries and keys of
    each of the `heads` of all batches.
    """
    if not isinstance(config, Config) or not takes_shares(config, variant):
        return config
    rows, steps = config.tile[0], -(-keys // config.tile[1])
    whole = -(-(-(-queries // rows) * heads) // processors) * steps
    even = queries // rows * heads * steps / processors
    if queries % rows:
        own = -(-(queries % rows) // ROWS) if config.by_groups else config.groups
        even += (own + 1) / (config.groups + 1) * heads * steps / processors
    return replace(config, shares_last=whole - even > max(LEAST_SAVED, whole * LEAST_SAVED_PART))


def part_views(rows: int, head_v: int, slots: int):
    """The extents and strides of parts with `rows` queries, results of `head_v` elements: of sums,
    (vector, threads, vectors, slots), and of bases and sums of weights, (vector, threads, slots).
    """
    threads, vectors = rows * 2, head_v // 2 // VECTOR
    step = VECTOR * threads
    return (
        ((VECTOR, threads, vectors, slots), (1, VECTOR, step, step * vectors)),
        ((VECTOR, threads, slots), (1, VECTOR, step)),
    )


def vectors_of(parts, states, lane, slot, count, cfg):
    """The vectors of a thread in a slot: `count` sums, its bases and sums of weights."""
    threads, vectors = 2 * cfg.tile[0], count // VECTOR
    first = (slot * vectors * threads + lane) * VECTOR
    starts = [parts.iterator + (first + i * threads * VECTOR) for i in range(vectors)]
    starts.append(states.iterator + (slot * threads + lane) * VECTOR)
    return [cute.make_tensor(x.align(16), cute.make_layout(VECTOR)) for x in starts]


@cute.jit
def leave_part(softmax, acc, parts, states, lane, slot, cfg: cute.Constexpr):
    """Write a thread's sums, bases and sums of weights into a slot."""
    *targets, last = vectors_of(parts, states, lane, slot, cute.size(acc), cfg)
    own = cute.make_tensor(acc.iterator, cute.make_layout((VECTOR, len(targets))))
    for i in cute.range_constexpr(len(targets)):
        cute.autovec_copy(own[None, i], targets[i])
    state = cute.make_rmem_tensor((VECTOR,), cute.Float32)
    for r in cute.range_constexpr(2):
        state[r], state[2 + r] = softmax.largest_so_far(r), softmax.total[r]
    cute.autovec_copy(state, last)


@cute.kernel
def join_kernel(
    out: cute.Tensor,
    lse,  # a tensor or None
    parts: cute.Tensor,
    states: cute.Tensor,
    sinks,  # a tensor or None
    operand_scales: tuple,
    shape: tuple,
    scale: cute.Float32,
    value_scale: cute.Float32,
    blocks: cute.Int32,
    mma_o: cute.Constexpr,
    dtype: cute.Constexpr,
    variant: cute.Constexpr,
    cfg: cute.Constexpr,
):
    """Each block adds the parts of 64 queries of a task, with the threads that had them."""
    queries, keys, heads, key_heads, batches = shape
    sequence = Sequence(queries, keys)
    extents = (queries, None, heads, batches)
    walk = SharedWalk(variant, sequence, (None, None, ()), extents, blocks, cfg)
    shared, group = arch.block_idx()[0], arch.block_idx()[1]
    thread = arch.thread_idx()[0]
    begin, end, _ = walk.reach(shared)
    first, last = walk.piece_at(begin), walk.piece_at(end - 1)
    # In every block: what follows this kernel does not wait for the one before it.
    arch.griddepcontrol_wait()
    if shared < walk.shared and first < last:
        tile, head, batch = walk.place_of(walk.first_shared + shared)
        key_head = head // (heads // key_heads)
        head_v, lane = cute.size(out, mode=[1]), group * 128 + thread
        shape_o = mma_o.partition_shape_C((cfg.tile[0], head_v))
        acc, one = (cute.make_rmem_tensor(shape_o, cute.Float32) for _ in range(2))
        sums, own_sums = as_rows(acc), as_rows(one)
        factor = scale * LOG2_E
        if cute.const_expr(any(x is not None for x in operand_scales[:2])):
            own_scale = scale_of_head(scale, operand_scales, head, key_head, batch)
            factor = positive(own_scale) * LOG2_E
        softmax = softmax_of(2, factor, dtype, cfg)
        acc.fill(0.0)
        for piece in cute.range(first, last + 1, unroll=1):
            slot = 2 * piece + cute.where(walk.cut(piece) < begin, 1, 0)
            *sources, state_at = vectors_of(parts, states, lane, slot, cute.size(one), cfg)
            loaded = cute.make_tensor(one.iterator, cute.make_layout((VECTOR, len(sources))))
            for i in cute.range_constexpr(len(sources)):
                cute.autovec_copy(sources[i], loaded[None, i])
            state = cute.make_rmem_tensor((VECTOR,), cute.Float32)
            cute.autovec_copy(state_at, state)
            for r in cute.range_constexpr(2):
                before = (softmax.largest_so_far(r), softmax.total[r])
                scales = softmax.join(r, [before, (state[r], state[2 + r])])
                joined = sums[r, None].load() * scales[0] + own_sums[r, None].load() * scales[1]
                sums[r, None].store(joined)
        result_scale = None
        if cute.const_expr(dtype.width == 8):
            result_scale = value_scale
        if cute.const_expr(operand_scales[2] is not None):
            result_scale = value_scale * operand_scales[2][key_head, batch]
        places = (sequence, batch, batch, cute.Boolean(True))
        target = AttentionResult(out, lse, sinks, variant, *places, result_scale)
        coords = mma_o.get_slice(lane).partition_C(cute.make_identity_tensor((cfg.tile[0], head_v)))
        row = walk.row_of(tile)
        finish_rows(softmax, sums, as_rows(coords), target, row, head, 1, cfg.is_wide)


@cute.jit
def join(
    q: cute.Tensor,
    k: cute.Tensor,
    out: cute.Tensor,
    lse: cute.Tensor | None,
    parts: cute.Tensor,
    states: cute.Tensor,
    sinks,
    operand_scales: tuple,
    scale: cute.Float32,
    value_scale: cute.Float32,
    blocks: cute.Int32,
    mma_o: cute.Constexpr,
    variant: cute.Constexpr,
    cfg: cute.Constexpr,
    stream: cute.Constexpr = None,
):
    """Add the parts that the blocks of attention left, and write the results of their tasks; the
    arguments are those of `ops.hopper.attention.forward`.
    """
    shape = tuple(cute.Int32(x) for x in (q.shape[0], k.shape[0], q.shape[2], k.shape[2], q.shape[3]))
    sequence = Sequence(shape[0], shape[1])
    extents = (shape[0], None, shape[2], shape[4])
    walk = SharedWalk(variant, sequence, (None, None, ()), extents, blocks, cfg)
    scalars = (scale, value_scale, blocks)
    static = (mma_o, q.element_type, variant, cfg)
    join_kernel(out, lse, parts, states, sinks, operand_scales, shape, *scalars, *static).launch(
        grid=(cute.max(walk.shared, 1), cfg.groups, 1),
        block=(128, 1, 1),
        stream=stream,
        use_pdl=True,
    )
