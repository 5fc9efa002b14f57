"""The last tasks of attention on Hopper, shared by all blocks along the keys.

Tasks of equal length that do not fill a round of the blocks are laid one behind the other, and cut
into a piece for each block, as stream-K cuts products (Osama and others, arXiv 2301.03598). The
block that has the end of a task writes its results. It adds the parts that the blocks before it
left: the sums of values, the bases and the sums of weights of each thread, as that has them. Each
block leaves its part before it waits for those of others, and only blocks before it are waited for.
"""

from __future__ import annotations

from dataclasses import replace

import basedsl_cute as cute
from basedsl_cute import arch
from basedsl_cute.ops.hopper.attention_config import ROWS, Config, takes_shares
from basedsl_cute.ops.hopper.attention_walk import Walk

LEAST_PIECE = 4  # tiles of keys of a piece: less are not worth the sums that are written
# Tiles of keys of a block that sharing must save to pay, and what part of all: parts are written, and
# added by another kernel (bench/results/2026-11-23-attention-4.md).
LEAST_SAVED, LEAST_SAVED_PART = 6, 0.02
VECTOR = 4  # Float32, 16 bytes
AT_ONCE = 4  # vectors that a thread loads before it adds them
THREADS = 256  # that clear flags
NO_SLOT = -1  # of a block that writes the results of its task


class SharedWalk(Walk):
    """The tasks of `blocks` blocks, those of the last round as pieces. A step of a task, a tile of
    keys, weighs one and as many as its tile of queries has warpgroups with queries.
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
        self.total = block + self.last_turn(block) * self.blocks + 1
        return self

    def last_turn(self, block):
        """The number of the last task of a block, of those that it has."""
        last = self.cut(block + 1)
        number = self.task_at(last - 1) - self.task_at(self.cut(block)) + 1
        has_piece = (block < self.pieces) & (self.shared > 0)
        return self.rounds + cute.where(has_piece, number, 0) - 1

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
        """The number of a task, its first step and the one behind its last, and as the block ends
        it: the slot in which it leaves a part, or NO_SLOT, and the first of the slots before its
        own whose parts it adds.
        """
        turn = work // self.blocks
        block = work - turn * self.blocks
        piece = cute.min(block, self.pieces - 1)
        own, following = self.cut(piece), self.cut(piece + 1)
        is_shared = turn >= self.rounds
        # The last task of a piece, whose end another block has, comes first.
        left = self.last_turn(block) - turn
        shared = self.task_at(own) + cute.where(is_shared, left, 0)
        begin, end, weight = self.reach(shared)
        first = (cute.max(own, begin) - begin) // weight
        last = (cute.min(following, end) - begin) // weight
        slot = cute.where(is_shared & (last < self.steps), block, NO_SLOT)
        adds = cute.where(is_shared & (first > 0), self.piece_at(begin), block)
        return (
            cute.where(is_shared, self.first_shared + shared, work),
            cute.where(is_shared, first, 0),
            cute.where(is_shared, last, self.steps),
            slot,
            adds,
        )

    def task(self, work):
        """The tile, head and batch of a task, and the tiles of keys that the block has of it."""
        index, first, last, *_ = self.part(work)
        return *self.place_of(index), self.steps - last, self.steps - 1 - first

    def ending(self, work):
        """How a block ends a task, see `part`."""
        return self.part(work)[3:]


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


def part_views(rows: int, head_v: int, blocks: int):
    """The extents and strides of parts with `rows` queries, results of `head_v` elements: of sums,
    (vector, threads, vectors, blocks), and of bases and sums of weights, (vector, threads, blocks
    and more), in which the flags lie behind those of the blocks.
    """
    threads, vectors = rows * 2, head_v // 2 // VECTOR
    step, more = VECTOR * threads, -(-blocks // (VECTOR * arch.WARP_SIZE))
    return (
        ((VECTOR, threads, vectors, blocks), (1, VECTOR, step, step * vectors)),
        ((VECTOR, threads, blocks + more), (1, VECTOR, step)),
    )


def flags_of(states, blocks, cfg):
    """The flags, one for each warp of each block: zero until it has left its part."""
    warps = 4 * cfg.groups
    start = states.iterator + blocks * (VECTOR * arch.WARP_SIZE * warps)
    flags = cute.recast_ptr(start, dtype=cute.Int32)
    return cute.make_tensor(flags, cute.make_layout((warps, blocks)))


@cute.jit
def vectors_of(shares, lane, slot, count: cute.Constexpr, cfg: cute.Constexpr):
    """The vectors of a thread in a slot: `count` sums, its bases and sums of weights."""
    parts, states = shares
    threads, vectors = 2 * cfg.tile[0], count // VECTOR
    first = (slot * vectors * threads + lane) * VECTOR
    starts = [parts.iterator + (first + i * threads * VECTOR) for i in range(vectors)]
    starts.append(states.iterator + (slot * threads + lane) * VECTOR)
    return [cute.make_tensor(x.align(16), cute.make_layout(VECTOR)) for x in starts]


@cute.jit
def leave_part(softmax, acc, shares, lane, slot, cfg: cute.Constexpr):
    """Leave a thread's sums, bases and sums of weights in a slot, and set the warp's flag."""
    *targets, last = vectors_of(shares, lane, slot, cute.size(acc), cfg)
    own = cute.make_tensor(acc.iterator, cute.make_layout((VECTOR, len(targets))))
    for i in cute.range_constexpr(len(targets)):
        cute.autovec_copy(own[None, i], targets[i])
    state = cute.make_rmem_tensor((VECTOR,), cute.Float32)
    for r in cute.range_constexpr(2):
        state[r], state[2 + r] = softmax.largest_so_far(r), softmax.total[r]
    cute.autovec_copy(state, last)
    arch.sync_warp()
    if arch.lane_idx() == 0:
        flags = flags_of(shares[1], arch.grid_dim()[0], cfg)
        at = flags.iterator + flags.layout((lane // arch.WARP_SIZE, slot))
        arch.store(at, cute.Int32(1), sem="release", scope="gpu")


@cute.jit
def add_parts(softmax, acc, shares, lane, first, end, cfg: cute.Constexpr):
    """Add the parts in slots from `first` to before `end`, in that order, when they are left."""
    flags = flags_of(shares[1], arch.grid_dim()[0], cfg)
    for slot in cute.range(first, end, unroll=1):
        at = flags.iterator + flags.layout((lane // arch.WARP_SIZE, slot))
        seen = arch.load(at, sem="acquire", scope="gpu")
        while seen == 0:
            seen = arch.load(at, sem="acquire", scope="gpu")
        *sources, state_at = vectors_of(shares, lane, slot, cute.size(acc), cfg)
        state = cute.make_rmem_tensor((VECTOR,), cute.Float32)
        cute.autovec_copy(state_at, state)
        scales = []
        for r in cute.range_constexpr(2):
            before = (softmax.largest_so_far(r), softmax.total[r])
            scales.append(softmax.join(r, [before, (state[r], state[2 + r])]))
        # A vector of an accumulator has two columns of two rows.
        own = cute.make_tensor(acc.iterator, cute.make_layout((2, 2, len(sources))))
        for i in cute.range_constexpr(0, len(sources), AT_ONCE):
            count = min(AT_ONCE, len(sources) - i)
            loaded = cute.make_rmem_tensor((2, 2, count), cute.Float32)
            for j in cute.range_constexpr(count):
                vector = cute.make_tensor(loaded.iterator + j * VECTOR, cute.make_layout(VECTOR))
                cute.autovec_copy(sources[i + j], vector)
            for j in cute.range_constexpr(count):
                for r in cute.range_constexpr(2):
                    of_own, of_part = scales[r]
                    for c in cute.range_constexpr(2):
                        own[c, r, i + j] = own[c, r, i + j] * of_own + loaded[c, r, j] * of_part


@cute.kernel
def clear_kernel(flags: cute.Tensor):
    arch.griddepcontrol_launch_dependents()
    for i in cute.range(arch.thread_idx()[0], cute.size(flags), THREADS):
        flags[i] = 0


@cute.jit
def clear_flags(states: cute.Tensor, blocks, cfg: cute.Constexpr, stream: cute.Constexpr = None):
    """Clear the flags, while the kernel that sets them may begin."""
    flags = flags_of(states, blocks, cfg)
    clear_kernel(cute.make_tensor(flags.iterator, cute.make_layout(cute.size(flags)))).launch(
        grid=(1, 1, 1), block=(THREADS, 1, 1), stream=stream
    )
