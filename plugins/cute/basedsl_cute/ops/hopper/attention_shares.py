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
# Tiles of keys of a block that sharing must save to pay, and what part of all: parts are written
# and added, and where power is at its limit, blocks without a task leave theirs to the others
# (bench/results/2026-11-23-attention-4.md).
LEAST_SAVED, LEAST_SAVED_PART = 10, 0.025
VECTOR = 4  # Float32, 16 bytes
AT_ONCE = 8  # vectors that a thread loads before it adds them
THREADS = 256  # that clear flags
# How a block ends a task: all by itself, by leaving a part, or by adding those that others left.
FINISHES, LEAVES, ADDS = 0, 1, 2


class Shares:
    """The cuts of tasks: `heads` of all batches, each with the tiles of a sequence, for `blocks`. A
    step of a task, a tile of keys, weighs one and as many as its tile of queries has warpgroups
    with queries. A shared task is known by its number among them, a place in the row of all of
    them by the weight before it.
    """

    def __init__(self, sequence, heads, blocks, cfg, rounds=None):
        rows, keys = cfg.tile
        tiles = cute.ceil_div(sequence.queries, rows)
        self.blocks = blocks
        # Tiles of less rows, at the beginning of each head, come last.
        lead = tiles * rows - sequence.queries if cfg.from_end else cute.Int32(0)
        self.short_tiles = cute.where(lead > 0, 1, 0)
        self.long_tiles = cute.max(tiles - self.short_tiles, 1)
        self.long_weight = self.short_weight = cute.Int32(cfg.groups + 1)
        if cfg.by_groups:
            self.short_weight = cute.ceil_div(rows - lead, ROWS) + 1
        self.steps = cute.max(cute.ceil_div(sequence.keys, keys), 1)
        self.longs = (tiles - self.short_tiles) * heads
        self.rounds = self.longs // blocks if rounds is None else rounds
        self.first_shared = self.rounds * blocks
        self.left = self.longs - self.first_shared
        self.shared = self.left + self.short_tiles * heads
        self.long, self.short = self.steps * self.long_weight, self.steps * self.short_weight
        self.all_long = self.left * self.long
        self.weight = self.all_long + self.short_tiles * heads * self.short
        least = LEAST_PIECE * self.long_weight
        self.pieces = cute.min(cute.max(self.weight // least, 1), blocks)
        self.each, self.more = self.weight // self.pieces, self.weight % self.pieces

    def of_block(self, block):
        """The numbers that `part` takes: how many whole rounds there are, where the piece of a
        block begins and ends, the number of its last task, of those that it has, its first shared
        task, and the first block that has some of that.
        """
        piece = cute.min(block, self.pieces - 1)
        own, following = self.cut(piece), self.cut(piece + 1)
        task = self.task_at(own)
        has_piece = (block < self.pieces) & (self.shared > 0)
        number = cute.where(has_piece, self.task_at(following - 1) - task + 1, 0)
        adds = self.piece_at(self.reach(task)[0])
        return self.rounds, own, following, self.rounds + number - 1, task, adds

    def cut(self, piece):
        """The place where a piece begins, a whole step of a task."""
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
        """The places where a shared task begins and ends, and the weight of its steps."""
        of_short = shared - self.left
        is_long = of_short < 0
        begin = cute.where(is_long, shared * self.long, self.all_long + of_short * self.short)
        end = begin + cute.where(is_long, self.long, self.short)
        return begin, end, cute.where(is_long, self.long_weight, self.short_weight)

    def tile_of(self, index):
        """The tile of a task by its number, and its head, counted through all batches."""
        of_short = index - self.longs
        tile = index % self.long_tiles + self.short_tiles
        head = cute.where(of_short < 0, index // self.long_tiles, of_short)
        return cute.where(of_short < 0, tile, 0), head

    def part(self, work, own, following, last_turn, task, adds):
        """The part of a task that a block has: the number of the task, the first step and the one
        behind the last, how the block ends it, and the first of the blocks whose parts it adds.
        """
        turn = work // self.blocks
        is_shared = turn >= self.rounds
        # The last task of a piece, whose end another block has, comes first.
        shared = task + cute.where(is_shared, last_turn - turn, 0)
        begin, end, weight = self.reach(shared)
        first = (cute.max(own, begin) - begin) // weight
        last = (cute.min(following, end) - begin) // weight
        ending = cute.where(first > 0, ADDS, FINISHES)
        ending = cute.where(last < self.steps, LEAVES, ending)
        return (
            cute.where(is_shared, self.first_shared + shared, work),
            cute.where(is_shared, first, 0),
            cute.where(is_shared, last, self.steps),
            cute.where(is_shared, ending, FINISHES),
            adds,
        )


class SharedWalk(Walk):
    """The tasks of `blocks` blocks, those of the last round as pieces."""

    def __init__(self, variant, sequence, extras, shape, blocks, cfg):
        super().__init__(variant, sequence, extras, shape, cute.Int32(1), cfg)
        self.blocks, self.cfg = blocks, cfg

    @cute.jit
    def begin(self, block, smem):
        """Find what the block has: a barrier of all threads must follow. It lies in shared memory,
        since registers are few.
        """
        self.kept = smem.allocate_tensor(cute.Int32, cute.make_layout(8), 16)
        if arch.thread_idx()[0] == 0:
            shares = Shares(self.sequence, self.heads * self.batches, self.blocks, self.cfg)
            found = shares.of_block(block)
            self.kept[7] = block + found[3] * self.blocks
            for i in cute.range_constexpr(len(found)):
                self.kept[i] = found[i]

    def has(self, work):
        return work <= arch.make_warp_uniform(self.kept[7])

    def following(self, work):
        return work + self.blocks

    def task(self, work):
        """The tile, head and batch of a task, the tiles of keys that the block has of it, and how
        it ends it and the first block whose parts it adds, see `Shares.part`.
        """
        rounds, *found = (arch.make_warp_uniform(self.kept[i]) for i in range(6))
        heads = self.heads * self.batches
        shares = Shares(self.sequence, heads, self.blocks, self.cfg, rounds)
        index, first, last, ending, adds = shares.part(work, *found)
        tile, head = shares.tile_of(index)
        tiles = (shares.steps - last, shares.steps - 1 - first)
        return tile, head % self.heads, head // self.heads, *tiles, ending, adds


def with_shares(config, variant, queries, keys, heads, processors):
    """A chosen configuration, which `shares_last` if that pays: for so many queries and keys of
    each of the `heads` of all batches.
    """
    if not isinstance(config, Config) or not takes_shares(config, variant):
        return config
    if config.turns:  # 8 bits with heads of 256 are 0.68 times as fast so, others not measured
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
def leave_part(softmax, acc, shares, lane, cfg: cute.Constexpr):
    """Leave a thread's sums, bases and sums of weights, and set the warp's flag."""
    slot = arch.block_idx()[0]
    arch.griddepcontrol_wait()  # for cleared flags
    *targets, last = vectors_of(shares, lane, slot, cute.size(acc), cfg)
    own = cute.make_tensor(acc.iterator, cute.make_layout((VECTOR, len(targets))))
    for i in cute.range_constexpr(len(targets)):
        cute.autovec_copy(own[None, i], targets[i])
    state = cute.make_rmem_tensor((VECTOR,), cute.Float32)
    for r in cute.range_constexpr(2):
        state[r], state[2 + r] = softmax.largest_so_far(r), softmax.total[r]
    cute.autovec_copy(state, last)
    flags = flags_of(shares[1], arch.grid_dim()[0], cfg)
    at = flags.iterator + flags.layout((lane // arch.WARP_SIZE, slot))
    arch.sync_warp()
    # By each thread, which is no branch, and after what all of them have written.
    arch.store(at, cute.Int32(1), sem="release", scope="gpu")


@cute.jit
def add_parts(softmax, acc, shares, lane, first, cfg: cute.Constexpr):
    """Add the parts of the blocks from `first` to the one before this, in that order, when they are
    left.
    """
    flags = flags_of(shares[1], arch.grid_dim()[0], cfg)
    arch.griddepcontrol_wait()  # for cleared flags
    for slot in cute.range(first, arch.block_idx()[0], unroll=1):
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
