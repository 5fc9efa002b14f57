"""The blocks that multiplied parts of K of a product add them up, in the same kernel.

The blocks that have the parts of one tile of C leave their sums in memory. Each then adds up a
share of the tile, its vectors from a number on, always in the order of K. Whoever has left its sums
tells so to each of the others by a flag of its own: a number that no memory holds by chance, which
the only one who waits for it clears again. So the memory needs no preparation.

Blocks that are waited for may not run yet, if other kernels have their places. Whoever has waited
for too long hands its share on to a block that has not arrived: by a flag in the place of the one
that this will set. The last one to arrive misses nobody, so that none waits for ever.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import basedsl_cute as cute
from basedsl_cute import arch, pipeline
from basedsl_cute.ops.gemm.operands import OutputTile
from basedsl_cute.utils.tile_scheduler import StaticPersistentTileScheduler

__all__ = ["MOST_PARTS", "Adding", "add_parts", "flags_of", "rows_of_flags"]

MOST_PARTS = 32  # each lane of a warp waits for one
# Values of flags.
_PRESENT, _HANDED_ON, _NONE = 0x5EA4C1B29D3E7F68, 0x3B97E1C64A5D20F3, 0
_AT_ONCE = 16  # vectors that a thread loads before it adds them


class Adding(NamedTuple):
    """The tensors that blocks need to add up parts: the sums (M, N, parts), the flags, C and the
    operands of its epilogue.
    """

    sums: Any
    flags: Any
    c: Any
    operands: Any


def rows_of_flags(m: int, n: int, columns: int, parts: int, cfg: Any) -> int:
    """The rows of `columns` 32-bit elements that the flags take behind the sums of each part."""
    along, across = (n, m) if cfg.swap else (m, n)
    (bm, bn, _), (cm, cn) = cfg.tile, cfg.cluster
    tiles = -(-along // (bm * cm)) * cm * -(-across // (bn * cn)) * cn
    return -(-2 * parts * tiles // columns)


def flags_of(workspace: Any, rows: Any, parts: int) -> Any:
    """The flags (share, part, tile) behind so many rows of each part of the workspace (rows,
    columns, parts).
    """
    start = workspace.iterator + rows * workspace.stride[0]
    flags = cute.recast_ptr(start, dtype=cute.Int64)
    return cute.make_tensor(
        flags.align(8),
        cute.make_layout((parts, parts, 1), stride=(1, workspace.stride[2] // 2, parts)),
    )


@cute.jit
def add_parts(adding, schedule, cfg: cute.Constexpr, parts: cute.Constexpr, plan: cute.Constexpr):
    """Announce the block's part of its tile, by all consumers, and add up its share of it, and of
    those who handed theirs on to it.
    """
    thread = arch.thread_idx()[0] - 128
    warp = arch.make_warp_uniform(arch.warp_idx())
    lane = arch.thread_idx()[0] % arch.WARP_SIZE
    everyone = pipeline.NamedBarrier(1 + cfg.consumers, 128 * cfg.consumers)
    board = cute.make_tensor(arch.alloc_smem(cute.Int32, 2), cute.make_layout(2))
    scheduler = StaticPersistentTileScheduler.create(schedule, arch.block_idx(), arch.grid_dim())
    m, n, part = scheduler.initial_work_tile_info().tile_idx
    tile = m + schedule.clusters_m * cfg.cluster[0] * n
    where = (n, m) if plan.swap else (m, n)
    if warp % 4 == 0:
        arch.cp_async_bulk_wait_group(0)
    everyone.arrive_and_wait()  # the sums of all consumers are in memory
    todo = cute.Int32(1) << part
    if warp == 4:
        before = cute.Int64(_NONE)
        if lane < parts:
            place = adding.flags.iterator + adding.flags.layout((lane, part, tile))
            before = arch.atomic_exch(place, cute.Int64(_PRESENT), sem="acq_rel")
        todo = todo | arch.vote_ballot_sync(before == _HANDED_ON)
    share = part
    is_more = cute.Boolean(True)
    while is_more:
        if warp == 4:
            is_there = wait_for_parts(adding.flags, tile, share, lane, parts, plan.patience)
            todo = todo & ~(cute.Int32(1) << share)
            board[0] = cute.where(is_there, share, -1)
            board[1] = todo
        everyone.arrive_and_wait()
        found, todo = board[0], board[1]
        everyone.arrive_and_wait()  # all have read it
        if found >= 0:
            add_share(adding, where, found, thread, cfg, parts, plan)
        is_more = todo != 0
        share = arch.popc((todo & -todo) - 1)


@cute.jit
def wait_for_parts(flags, tile, share, lane, parts: cute.Constexpr, patience: cute.Constexpr):
    """Wait until all parts of a tile are there, by a warp, and clear the flags that say so to this
    share; or hand it on, after so many looks. True if they are there.
    """
    place = flags.iterator + flags.layout((share, cute.min(lane, parts - 1), tile))
    seen = cute.Boolean(lane >= parts)
    value = cute.Int64(_NONE)
    looks = cute.Int32(0)
    waits = cute.Boolean(True)
    is_there = cute.Boolean(True)
    while waits:
        if not seen:
            value = arch.load(place, sem="acquire", scope="gpu")
            seen = value == _PRESENT
        missing = arch.vote_ballot_sync(not seen)
        waits = missing != 0
        looks += 1
        if waits and looks >= patience:
            is_handed_on = cute.Boolean(False)
            if missing & -missing == cute.Int32(1) << lane:
                before = arch.atomic_cas(place, value, cute.Int64(_HANDED_ON), sem="acquire")
                seen = before == _PRESENT
                is_handed_on = not seen
            if arch.vote_any_sync(is_handed_on):
                waits = cute.Boolean(False)
                is_there = cute.Boolean(False)
    if is_there and lane < parts:
        arch.store(place, cute.Int64(_NONE), sem="relaxed", scope="gpu")
    return is_there


@cute.jit
def add_share(
    adding, where, share, thread,
    cfg: cute.Constexpr, parts: cute.Constexpr, plan: cute.Constexpr,
):  # fmt: skip
    """Add up the vectors of a share of the tile, apply the epilogue and write them to C."""
    vector, threads = plan.vector, 128 * cfg.consumers
    lines, width = (cfg.tile[1], cfg.tile[0]) if plan.swap else cfg.tile[:2]
    of_a_line = width // vector
    vectors = lines * of_a_line
    first, last = vectors * share // parts, vectors * (share + 1) // parts
    results = OutputTile(adding.c, adding.operands).of_batch(0)
    count = max(1, _AT_ONCE // parts)
    last_line, last_column = adding.c.shape[0] - 1, (adding.c.shape[1] - 1) // vector
    if where[0] * lines > last_line or where[1] * of_a_line > last_column:
        last = first  # the tile lies beyond C
    for begin in cute.range(first + thread, last, threads * count, unroll=1):
        places, sums = [], []
        for j in cute.range_constexpr(count):
            # Loads that are needed by no one are made all the same, where others of the tile are.
            number = cute.min(begin + j * threads, last - 1)
            line = where[0] * lines + number // of_a_line
            column = where[1] * of_a_line + number % of_a_line
            inside = (begin + j * threads < last) & (line <= last_line) & (column <= last_column)
            at = (cute.min(line, last_line), cute.min(column, last_column))
            places.append((inside, at))
            of_all = cute.local_tile(adding.sums, (1, vector, parts), (*at, 0))
            loaded = cute.make_rmem_tensor((vector, parts), adding.sums.element_type)
            for i in cute.range_constexpr(parts):
                loaded[None, i].store(of_all[0, None, i].load())
            sums.append(loaded)
        for j in cute.range_constexpr(count):
            inside, at = places[j]
            total = cute.make_rmem_tensor((vector,), adding.sums.element_type)
            total.store(sums[j][None, 0].load())
            for i in cute.range_constexpr(1, parts):
                total.store(total.load() + sums[j][None, i].load())
            if inside:
                own = results.each(lambda x, at=at: cute.local_tile(x, (1, vector), at)[0, None])
                own.put(total, plan.epilogue_op)
