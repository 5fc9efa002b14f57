"""Kernels of attention's gradients on Hopper share these parts: the configuration, the kernels
before and behind, the producer warp, and operands in shared memory.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import basedsl_cute as cute
from basedsl_cute import arch, pipeline
from basedsl_cute.dsl.machine import current_target
from basedsl_cute.nvgpu import OperandMajorMode, cpasync, warpgroup
from basedsl_cute.ops.ampere.attention_backward import store_rows
from basedsl_cute.ops.flash.softmax import as_rows
from basedsl_cute.ops.flash.variant import LOG2_E, Place, Sequence
from basedsl_cute.ops.hopper.attention import COLUMN, ROW
from basedsl_cute.ops.hopper.attention_config import ROWS
from basedsl_cute.ops.hopper.attention_rows import tma_tile
from basedsl_cute.utils import hopper_helpers as sm90

THREADS = 128  # of a warpgroup, and of the kernels before and behind
VECTOR = 4  # floats of a thread that lie together in the workspace
GROUPS = 2  # consumer warpgroups
FEW_KEYS = arch.WARP_SIZE // 2
PIECE = 8  # elements of a row that a thread loads at once
LOADED = 8  # columns of scores for which it loads what a mask needs


@dataclass(frozen=True)
class Config:
    """The static configuration of the kernel.

    `tile` is (queries, keys): each of two consumer warpgroups has 64 keys, or both have the same
    64, and half of the queries, and of the heads' elements in gradients. Of 128 queries, each
    warpgroup makes the weights in two parts. `stages` is the number of tiles of queries, and of
    gradients, in shared memory. Threads load the numbers of a tile's queries themselves: when they
    have read them each arrives if it is `by_threads`, else the producer warp waits at the barrier
    where all consumers wait in each step.
    """

    tile: tuple[int, int] = (64, 128)
    stages: int = 2
    by_threads: bool = False

    @property
    def is_shared(self) -> bool:
        """True if both warpgroups have the same keys."""
        return self.tile[1] == ROWS

    @property
    def parts(self) -> int:
        """The number of parts of a tile's queries, of 64 each, whose scores are made in turn."""
        return 1 if self.is_shared else self.tile[0] // ROWS

    @property
    def threads(self) -> int:
        return THREADS * (GROUPS + 1)

    def workspace(self, head: int) -> int:
        """The floats of a tile of dQ."""
        return self.tile[0] * head


@cute.kernel
def prepare_kernel(
    out: cute.Tensor,
    grad: cute.Tensor,
    lse: cute.Tensor,
    stats: cute.Tensor,
    sums: cute.Tensor,
    operands: tuple,
    captured: tuple,
    factor: cute.Float32,
    variant: cute.Constexpr,
    rows: cute.Constexpr,
):
    """Write `stats` (rows, 2, tiles, heads, batches) of each tile of queries: the logarithms of
    their sums for exponents of two, and delta; clear `sums` (floats, tiles, heads, batches). A row
    that sees nothing, or is none, has the logarithm infinity, which makes weights 0.

    `operands` are the queries, keys and values, and `factor` is that of scores for exponents of
    two: `delta_of_few` has them for rows of few keys.
    """
    thread = arch.thread_idx()[0]
    head, batch, tile = arch.block_idx()
    lane, warps = thread % arch.WARP_SIZE, THREADS // arch.WARP_SIZE
    zeros = cute.make_rmem_tensor((VECTOR,), cute.Float32)
    zeros.fill(0.0)
    place = Place(
        variant, Sequence(out.shape[0], operands[1].shape[0]), batch, None, None, captured
    )
    own = sums[None, tile, head, batch]
    for i in cute.range(thread, sums.shape[0] // VECTOR, THREADS, unroll=1):
        cute.autovec_copy(zeros, cute.local_tile(own, (VECTOR,), (i,)))
    for i in cute.range(thread // arch.WARP_SIZE, rows, warps, unroll=4):
        row = tile * rows + i
        inside = row < out.shape[0]
        at = cute.where(inside, row, 0)
        results, grads = out[at, None, head, batch], grad[at, None, head, batch]
        log = lse[at, head, batch]
        sees = inside and log != -cute.Float32.inf
        total = arch.warp_reduction_sum(
            inner_product(results, grads, lane, out.shape[1] // PIECE, arch.WARP_SIZE)
        )
        if lane == 0:
            stats[i, 0, tile, head, batch] = cute.where(sees, log * LOG2_E, cute.Float32.inf)
            stats[i, 1, tile, head, batch] = cute.where(sees, total, 0.0)
    if cute.const_expr(variant.left is not None or variant.right is not None):
        # Windows show the fewest keys to the first row or to the last one of a tile.
        ends = tile * rows, cute.min(tile * rows + rows, out.shape[0]) - 1
        counts = [end - begin for begin, end in [place.keys_of(x, x) for x in ends]]
        if cute.min(*counts) <= FEW_KEYS:
            for i in cute.range(thread // arch.WARP_SIZE, rows, warps, unroll=1):
                row = tile * rows + i
                begin, end = place.keys_of(row, row)
                if row < out.shape[0] and begin < end and end - begin <= FEW_KEYS:
                    where = (row, head, batch)
                    total = delta_of_few(place, operands, grad, where, lse[where], factor, lane)
                    if lane == 0:
                        stats[i, 1, tile, head, batch] = total


def delta_of_few(place, operands, grad, row, log, factor, lane):
    """Delta of a row (query, head, batch) that sees at most `FEW_KEYS` keys, as the sum of its
    weights times products of values and gradients.

    The sum of dO O has the error of O, which is rounded to its type; where weights are large, that
    is most of the gradients' error. Each half of a key's elements is another lane's.
    """
    q, k, v = operands
    query, head, batch = row
    begin, end = place.keys_of(query, query)
    key, half = begin + lane % FEW_KEYS, lane // FEW_KEYS
    at = cute.min(key, k.shape[0] - 1)
    key_head = head // (q.shape[2] // k.shape[2])
    sums: list = []
    for x, y in (
        (q[query, None, head, batch], k[at, None, key_head, batch]),
        (grad[query, None, head, batch], v[at, None, key_head, batch]),
    ):
        pieces = y.shape[0] // (2 * PIECE)
        own = inner_product(x, y, half * pieces, (half + 1) * pieces, 1)
        sums.append(own + arch.shuffle_sync_bfly(own, FEW_KEYS))
    weight = cute.math.exp2(sums[0] * factor - log * LOG2_E)
    seen = (key < end) & (log != -cute.Float32.inf) & place.sees(head, query, key)
    return arch.warp_reduction_sum(cute.where(seen, weight * sums[1], 0.0), FEW_KEYS)


@cute.jit
def inner_product(x, y, begin, end, step: cute.Constexpr):
    """The sum of the products of two vectors in global memory, of each `step`-th piece."""
    total = cute.Float32(0.0)
    for i in cute.range(begin, end, step, unroll=2):
        loaded: list = []
        for vector in (x, y):
            own = cute.make_rmem_tensor((PIECE,), vector.element_type)
            cute.autovec_copy(cute.local_tile(vector, (PIECE,), (i,)), own)
            loaded.append(own.load().to(cute.Float32))
        total = total + (loaded[0] * loaded[1]).reduce(cute.ReductionOp.ADD, cute.Float32(0.0), 0)
    return total


def opaque_zero():
    """Zero, by a move that compilers do not look into."""
    return arch.inline_ptx("mov.b32 $0, $1;", [cute.Int32(0)], cute.Int32)


class Tasks:
    """The tasks of blocks: a tile of `swizzle` heads in a row, of which the queries are in the L2
    cache together, and then the next tile. With a causal mask the first have most queries.
    """

    def __init__(self, variant, shape_q, shape_k, captured, swizzle, cfg):
        self.variant, self.shape_q, self.shape_k = variant, shape_q, shape_k
        self.captured, self.swizzle, self.cfg = captured, swizzle, cfg

    def own(self, number):
        """The tile of keys, head and batch of a block, its place, and the tiles of queries.

        The producer finds them for itself, from a number that compilers do not know: what it
        shared with consumers would not fit into its registers.
        """
        (m, n), (rows, _, heads, batches) = self.cfg.tile, self.shape_k
        tiles = cute.ceil_div(cute.Int32(rows), n)
        section = number // (self.swizzle * tiles)
        at = number - section * (self.swizzle * tiles)
        width = cute.min(self.swizzle, heads * batches - section * self.swizzle)
        head = section * self.swizzle + at % width
        tile, head, batch = at // width, head % heads, head // heads
        sequence = Sequence(cute.Int32(self.shape_q[0]), cute.Int32(rows))
        place = Place(self.variant, sequence, batch, None, None, self.captured)
        key0 = tile * n
        begin, end = place.queries_of(key0, cute.min(key0 + n, sequence.keys) - 1)
        group = self.shape_q[2] // heads
        keys, span = (key0, key0 + n - 1), (begin // m, cute.ceil_div(end, m))
        return tile, head, batch, place, QueryTiles(place, keys, *span, head * group, group, m)


class QueryTiles:
    """The tiles of queries `low` to `high` of each of `group` heads from `first` on."""

    def __init__(self, place, keys, low, high, first, group, rows):
        self.place, self.keys, self.rows = place, keys, rows
        self.low, self.high = low, high
        self.first, self.end = first, cute.where(low < high, first + group, first)

    def begin(self):
        """The first head and tile of which a query sees a key."""
        return self.shown(cute.Int32(self.first), cute.Int32(self.low))

    def following(self, head, tile):
        """The next head and tile of which a query sees a key; head `end` if there is none."""
        return self.shown(*self.step(head, tile))

    def step(self, head, tile):
        """The next head and tile."""
        wraps = tile + 1 >= self.high
        return cute.where(wraps, head + 1, head), cute.where(wraps, self.low, tile + 1)

    @cute.jit
    def shown(self, head, tile):
        """The head and tile, or the next ones of which a query sees a key."""
        if cute.const_expr(self.place.user_mask is not None):
            lane, seen = arch.lane_idx(), cute.Int32(0)
            while head < self.end and seen == 0:
                own = tile + lane  # each lane looks at a tile
                shown = self.shows(head, cute.min(own, self.high - 1))
                seen = arch.vote_ballot_sync((own < self.high) & shown)
                tile += arch.popc(~seen & (seen - 1)) if seen != 0 else 32
                if tile >= self.high:
                    head, tile = head + 1, self.low
            tile = arch.make_warp_uniform(tile)
        return head, tile

    def shows(self, head, tile):
        """True if some query of the tile sees some key."""
        first = tile * self.rows
        queries = (first, first + self.rows - 1)
        return self.place.truth((head, head), queries, self.keys).true


@cute.jit
def producer(pipes, atoms, fixed, sides, stats, tiles, batch, cfg: cute.Constexpr):
    """Load the keys and values, and the queries and gradients of each tile that sees them."""
    (all_stats, sstats), m = stats, tiles.rows
    at_k, at_v, at_q, at_g = [pipe.make_participants()[0] for pipe in pipes]
    for at, atom, (to, source) in zip((at_k, at_v), atoms, fixed, strict=True):
        stage = at.acquire_and_advance()
        cute.copy(atom, source, to[None, stage.index], tma_bar_ptr=stage.barrier)
    bulk = cute.make_copy_atom(cpasync.CopyBulkG2SOp(), cute.Float32)
    head, tile = tiles.begin()
    while head < tiles.end:
        if at_q.state.count >= cfg.stages:
            join_consumers(cfg)
        for at, (atom, x, staged) in zip((at_q, at_g), sides, strict=True):
            shape = (m, cute.size(x, mode=[1]))
            to, source = tma_tile(atom, x, staged, shape, (tile, 0), head, batch)
            stage = at.acquire_and_advance()
            cute.copy(atom, source, to[None, stage.index], tma_bar_ptr=stage.barrier)
            if cute.const_expr(at is at_q):
                with arch.elect_one():
                    cute.copy(
                        bulk,
                        contiguous(all_stats[None, None, tile, head, batch]),
                        contiguous(sstats[None, None, stage.index]),
                        mbar_ptr=stage.barrier,
                    )
        head, tile = tiles.following(head, tile)
    for _ in cute.range(cute.min(at_q.state.count, cfg.stages)):
        join_consumers(cfg)
    at_q.tail()
    at_g.tail()


def consumers_barrier(cfg):
    """The barrier of consumers in each step, behind which all have read the numbers of queries. The
    producer joins them, as many steps behind as there are stages, unless each thread arrives.
    """
    return pipeline.NamedBarrier(1, THREADS * GROUPS + (0 if cfg.by_threads else arch.WARP_SIZE))


@cute.jit
def join_consumers(cfg: cute.Constexpr):
    """Wait in the producer until consumers have read the numbers of one more tile of queries."""
    if cute.const_expr(not cfg.by_threads):
        consumers_barrier(cfg).arrive_and_wait()


def contiguous(x):
    """The tensor as a vector, aligned to 16 bytes."""
    return cute.make_tensor(x.iterator.align(16), cute.make_layout(cute.size(x)))


@cute.jit
def multiply(mma, acc, a, b, stage_a, stage_b, more: cute.Constexpr, number: cute.Constexpr = 0):
    """Start acc = A B^T of stages, or acc += A B^T with `more`. A without a stage is in registers,
    of which part `number` of what is summed may be there; operands may have no modes M and N.
    """
    mma.set(warpgroup.Field.ACCUMULATE, more)
    warpgroup.fence()
    modes = (None,) * max(cute.rank(acc) - 1, 1)
    steps = cute.size(a, mode=[len(modes)])
    for k in cute.range_constexpr(steps):
        part = a[(*modes, k)] if stage_a is None else a[(*modes, k, stage_a)]
        cute.gemm(mma, acc, part, b[(*modes, number * steps + k, stage_b)], acc)
        mma.set(warpgroup.Field.ACCUMULATE, True)
    warpgroup.commit_group()


def stats_of(stats, coords):
    """The numbers of a thread's columns, which are pairs of queries."""
    count = cute.size(coords, mode=[1])
    found = cute.make_rmem_tensor((count,), cute.Float32)
    for c in range(count // 2):
        pair = cute.local_tile(stats, (2,), (coords[0, 2 * c][1] // 2,))
        cute.autovec_copy(pair, cute.local_tile(found, (2,), (c,)))
    return found


@cute.jit
def hide(scores, coords, place, head, queries, key0, keys: cute.Constexpr):
    """Make scores -inf where a query of the tile does not see a key."""
    whole = place.is_whole(*queries, key0, keys)
    if cute.const_expr(place.variant.mask is not None):
        area = ((head, head), queries, (key0, key0 + keys - 1))
        whole = whole and not place.truth(*area).false
    if not whole:
        rows, columns = (range(cute.size(scores, mode=[i])) for i in (0, 1))
        places = [(r, c) for r in rows for c in columns]
        if cute.const_expr(place.variant.mask is not None):
            # What it makes of a query is needed for few scores only.
            places = [(r, c) for c in columns for r in rows]
        for r, c in places:
            if cute.const_expr(place.arrays and r == 0 and c and c % LOADED == 0):
                arch.sync_warp()  # ptxas moves no loads of the mask's across
            key, query = coords[r, c]
            seen = place.sees(head, queries[0] + query, key0 + key)
            scores[r, c] = cute.where(seen, scores[r, c], -cute.Float32.inf)


def pieces_of(x, thread):
    """The floats (4, pieces) of a thread, in a part of a tile of dQ: of each four, threads have one
    after the other."""
    pieces = cute.size(x) // (VECTOR * THREADS)
    layout = cute.make_layout((VECTOR, pieces), stride=(1, VECTOR * THREADS))
    return cute.make_tensor(x.iterator.align(16) + thread * VECTOR, layout)


def add_sums(acc, sums, thread):
    """Add an accumulator to global memory as it lies in registers."""
    target = pieces_of(sums, thread)
    source = cute.make_tensor(acc.iterator, cute.make_layout(target.layout.shape))
    for i in range(cute.size(target, mode=[1])):
        values = [source[j, i] for j in range(VECTOR)]
        if current_target().is_gpu:
            address = target[None, i].iterator
            arch.inline_ptx("red.global.add.v4.f32 [$0], {$1, $2, $3, $4};", [address, *values])
        else:
            for j, value in enumerate(values):
                arch.atomic_add(target[None, i].iterator + j, value)


@cute.kernel
def convert_kernel(
    sums: cute.Tensor,
    grad_q: cute.Tensor,
    scale: cute.Float32,
    mma_q: cute.Constexpr,
    cfg: cute.Constexpr,
):
    """Write a tile of dQ from the workspace (floats, tiles, heads, batches)."""
    thread = arch.thread_idx()[0]
    tile, head, batch = arch.block_idx()
    (m, _), width, dtype = cfg.tile, grad_q.shape[1], grad_q.element_type
    acc = cute.make_rmem_tensor(mma_q.partition_shape_C((m, width)), cute.Float32)
    own = contiguous(sums[None, tile, head, batch])
    each = cfg.workspace(width) // GROUPS
    part = cute.make_tensor(own.iterator + thread // THREADS * each, cute.make_layout(each))
    source = pieces_of(part, thread % THREADS)
    target = cute.make_tensor(acc.iterator, cute.make_layout(source.layout.shape))
    for i in cute.range_constexpr(cute.size(source, mode=[1])):
        cute.autovec_copy(source[None, i], target[None, i])
    acc.store(acc.load() * scale)
    coords = mma_q.get_slice(thread).partition_C(cute.make_identity_tensor((m, width)))
    store_rows(
        acc,
        as_rows(coords),
        lambda row: grad_q[tile * m + row, None, head, batch],
        lambda row: tile * m + row < grad_q.shape[0],
        dtype,
    )


def smem_layouts(dtype, head_k, head_v, cfg):
    """The staged layouts of the keys, values, queries and gradients, each (rows, head), of dS as
    (queries, keys) with queries contiguous, whose two stages alternate, and of P in the same way.
    """
    m, n = cfg.tile
    change = sm90.make_smem_layout_a(COLUMN, (m, m, n), dtype, 2)
    return (
        sm90.make_smem_layout_a(ROW, (n, m, head_k), dtype, 1),
        sm90.make_smem_layout_a(ROW, (n, m, head_v), dtype, 1),
        sm90.make_smem_layout_b(ROW, (n, m, head_k), dtype, cfg.stages),
        sm90.make_smem_layout_b(ROW, (n, m, head_v), dtype, cfg.stages),
        change,
        *([change] if cfg.is_shared else []),
    )


def tiled_mmas(dtype, head_k, head_v, cfg):
    """The products: of scores, of dK, of dV, and of dQ, of which each warpgroup has columns."""
    k, mn, types = OperandMajorMode.K, OperandMajorMode.MN, (dtype, dtype)
    rows, columns, f32 = (GROUPS, 1, 1), (1, GROUPS, 1), cute.Float32
    kinds: list[tuple[Any, ...]]
    if cfg.is_shared:
        kinds = [(k, k, f32, columns, (ROWS, cfg.tile[0] // GROUPS))]
        kinds += [(k, mn, f32, columns, (ROWS, head // GROUPS)) for head in (head_k, head_v)]
    else:
        kinds = [(k, k, f32, rows, (ROWS, cfg.tile[0] // cfg.parts))]
        registers = warpgroup.OperandSource.RMEM
        kinds += [(k, mn, f32, rows, (ROWS, head), registers) for head in (head_k, head_v)]
    kinds.append((mn, mn, f32, columns, (ROWS, head_k // GROUPS)))
    return [sm90.make_trivial_tiled_mma(*types, *kind) for kind in kinds]
