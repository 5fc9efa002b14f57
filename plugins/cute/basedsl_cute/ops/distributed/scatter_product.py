"""Matrix product with reduce-scatter or all-reduce, C = sum over ranks of A B^T, in one kernel on
Hopper.

Each rank has some columns of A and of B. It multiplies the tiles of the peers' shards of C first,
and stores each by TMA to its peer, with a flag; the tiles of its own shard come last, when the
peers' are there, and add these in the epilogue. For an all-reduce their sums are stored to all
peers too, where warps that a product leaves idle copy them to C as they arrive.

Sums of a tile are Float32; a peer's part of them is rounded to the elements' type, as it is in a
reduce-scatter of products. One rank adds each tile, so that all ranks have the same bits.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import basedsl_cute as cute
from basedsl_cute import arch, pipeline
from basedsl_cute.distributed.signals import now
from basedsl_cute.nvgpu import tma
from basedsl_cute.ops.distributed.product_parts import (
    MOVERS,
    ProductPlan,
    ShardScheduler,
    block_number,
    copy_part,
    count_launch,
    half_address,
    has_read,
    launch_number,
    matrices_at,
    mover_number,
    num_blocks,
    wait_until,
)
from basedsl_cute.ops.hopper.collective import (
    LoadParams,
    begin_block,
    check_majors,
    producer_warp,
    shared_layouts,
    tile_schedule,
    tma_atoms,
    wait_for_predecessor,
)
from basedsl_cute.ops.hopper.config import check_config
from basedsl_cute.ops.hopper.gemm import (
    Output,
    consumer_warpgroup,
    load_operand_pieces,
    piece_coordinate,
)


class Stores(NamedTuple):
    """The TMA stores of C: to this rank's C, and to the memory of each peer, in steps from this
    rank on: parts of its sums and, for an all-reduce, sums. Each with its tensor of coordinates.
    """

    own: Any
    parts: Any
    sums: Any


@cute.jit
def _copy_sums(y: Any, w: Any, turn: Any, shape: Any, half_bytes: Any, plan: cute.Constexpr):
    """Copy to C the tiles of sums that peers store here, as they arrive, by one of the movers."""
    rows, n = shape
    bm, bn, _ = plan.cfg.tile
    tiles_n = cute.ceil_div(n, bn)
    tiles = cute.ceil_div(rows, bm) * tiles_n
    shard_bytes, pitch = cute.Int64(rows) * n * 2, cute.Int64(n) * 2
    half = half_address(w, w.rank, turn, half_bytes)
    for step in cute.range_constexpr(1, w.num_ranks):
        source = (w.rank + step) % w.num_ranks
        there = half + (source + w.num_ranks).to(cute.Int64) * shard_bytes
        here = y.iterator.toint() + source.to(cute.Int64) * shard_bytes
        for tile in range(mover_number(), tiles, num_blocks() * MOVERS):
            # Of every warpgroup that shares the tile.
            sharing = plan.cfg.warpgroups_per_tile
            if arch.lane_idx() < sharing:
                flag = (tiles + tile) * sharing + arch.lane_idx()
                w.signals.wait(source, turn + 1, flag)
            arch.sync_warp()
            row, first = tile // tiles_n * bm, tile % tiles_n * bn
            for part in cute.range(bn // 64, unroll=1):
                column = first + part * 64
                begin = cute.Int64(row) * pitch + cute.Int64(column) * 2
                left = (rows - row, n - column)
                copy_part(there + begin, here + begin, left, pitch, plan.dtype, bm, 64)


@dataclass(frozen=True)
class Exchange:
    """The exchange of tiles with other ranks, for `ops.hopper.gemm.consumer_warpgroup`: tiles of
    peers are stored in their memory, and own ones with what peers have stored here.
    """

    stores: Stores
    w: Any
    rows: Any
    n: Any
    half_bytes: Any
    pace: Any  # nanoseconds from one stored piece to the next, of a tile that does not wait
    plan: ProductPlan
    everywhere: bool
    turn: Any = None  # the number of the launch, from `begun` on
    targets: Any = None  # the pieces of own, parts and sums, as the stores' destinations

    # A tile's stores cross the link while the next one is multiplied: about 10 us, of 0.3 a step.
    delay = 32

    __dsl_leaf__ = True

    def begun(self, slots: Any, piece: Any) -> Exchange:
        """Return the exchange of this launch, whose predecessor has ended."""

        def pieces_of(store: Any) -> Any:
            return tma.tma_partition(store[0], 0, None, slots, cute.zipped_divide(store[1], piece))

        own, parts, sums = self.stores
        targets = Stores(
            pieces_of(own)[1],
            [pieces_of(one)[1] for one in parts],
            [pieces_of(one)[1] for one in sums],
        )
        turn = launch_number(self.w)
        has_read(_readers(self.plan))
        return replace(self, turn=turn, targets=targets)

    @property
    def every(self) -> int:
        """The steps of K from the store of a piece to that of the next one."""
        return self.plan.every

    def phase(self, consumer: Any) -> Any:
        """The step, of `every`, in which this consumer stores: not all blocks do it in the same."""
        return (block_number() * self.plan.cfg.consumers + consumer) % self.every

    def clock(self) -> Any:
        """Return the time at which an epilogue begins."""
        return now()

    def pause(self, epi_store: Any, tile_idx: Any, begin: Any, i: int) -> None:
        """Wait until it is the turn of piece `i` of a peer's tile, of an epilogue since `begin`."""
        _pause(self, epi_store, tile_idx, begin, i)

    def receive(self, epi_store: Any, pieces: Any, tile_idx: Any) -> None:
        """Add to a tile's sums what peers have stored here."""
        _receive(self, epi_store, pieces, tile_idx)

    def store(self, epi_store: Any, source: Any, where: Any) -> None:
        """Start the store of a piece from its slot to where it belongs."""
        _store_piece(self, source, where)

    def announce(self, epi_store: Any, tile_idx: Any) -> None:
        """Wait until the pieces of a tile are where they belong, and notify the rank."""
        _announce(self, epi_store, tile_idx)

    def place(self, epi_store: Any, tile_idx: Any) -> tuple[Any, Any]:
        """Return if a tile exists, and the number of its flag: one for the rows of a warpgroup."""
        m, n, _ = tile_idx
        tiles_m, tiles_n = self.tiles
        flag = (m * tiles_n + n) * self.plan.cfg.warpgroups_per_tile + epi_store.row_block
        return cute.Boolean((m < tiles_m) & (n < tiles_n)), flag

    @property
    def tiles(self) -> tuple[Any, Any]:
        """The tiles of a shard along M and N."""
        bm, bn, _ = self.plan.cfg.tile
        return cute.ceil_div(self.rows, bm), cute.ceil_div(self.n, bn)


def _readers(plan: ProductPlan) -> int:
    """The warps that read the number of the launch: consumers and movers."""
    return plan.cfg.consumers * 4 + MOVERS


@cute.jit
def _pause(exchange, epi_store, tile_idx, begin, i: cute.Constexpr):
    if exchange.pace > 0 and tile_idx[2] != exchange.w.rank and epi_store.is_storer:
        first = exchange.pace * block_number() // num_blocks()
        wait_until(begin + (first + i * exchange.pace).to(cute.Int64))


@cute.jit
def _receive(exchange, epi_store, pieces, tile_idx):
    w, plan, ranks = exchange.w, exchange.plan, exchange.w.num_ranks
    exists, flag = exchange.place(epi_store, tile_idx)
    if tile_idx[2] == w.rank and exists:
        thread = arch.thread_idx()[0] % 128
        if thread < ranks and thread != w.rank:
            w.signals.wait(thread, exchange.turn + 1, flag)
        epi_store.everyone.arrive_and_wait()
        shape = (exchange.rows, exchange.n)
        mine = half_address(w, w.rank, exchange.turn, exchange.half_bytes)
        # All loads before the first barrier of a piece: their latencies are one.
        for i in cute.range_constexpr(pieces.shape[1]):
            where = piece_coordinate(
                tile_idx, epi_store.row_block, i, epi_store.pieces_n, plan.kinds, plan.cfg
            )
            for step in cute.range_constexpr(1, ranks):
                source = (w.rank + step) % ranks
                there = mine + source.to(cute.Int64) * (cute.Int64(shape[0]) * shape[1] * 2)
                received = matrices_at(there, plan.dtype, shape)
                (part,) = load_operand_pieces(
                    (shape, (received,)), where[:2], epi_store.mma, thread, epi_store.piece
                )
                pieces[None, i].store(pieces[None, i].load() + part.to(cute.Float32))


@cute.jit
def _store_piece(exchange, source, where):
    w, stores, targets = exchange.w, exchange.stores, exchange.targets
    row, column, shard = where
    here = (row, column, w.rank, (exchange.turn & 1).to(cute.Int32))
    if shard == w.rank:
        if cute.const_expr(exchange.everywhere):
            cute.copy(stores.own[0], source, targets.own[None, where])
            for step in cute.range_constexpr(w.num_ranks - 1):
                cute.copy(stores.sums[step][0], source, targets.sums[step][None, here])
        else:
            cute.copy(stores.own[0], source, targets.own[None, (row, column)])
    else:
        for step in cute.range_constexpr(w.num_ranks - 1):
            if shard == (w.rank + step + 1) % w.num_ranks:
                cute.copy(stores.parts[step][0], source, targets.parts[step][None, here])


@cute.jit
def _announce(exchange, epi_store, tile_idx):
    w, ranks = exchange.w, exchange.w.num_ranks
    shard = tile_idx[2]
    is_own = shard == w.rank
    exists, flag = exchange.place(epi_store, tile_idx)
    if epi_store.is_storer and exists:
        if cute.const_expr(exchange.everywhere):
            arch.cp_async_bulk_wait_group(0)
        elif not is_own:
            arch.cp_async_bulk_wait_group(0)
        arch.sync_warp()
        if arch.lane_idx() == 0:
            if not is_own:
                w.signals.notify(shard, exchange.turn + 1, flag)
            elif cute.const_expr(exchange.everywhere):
                tiles_m, tiles_n = exchange.tiles
                sums = tiles_m * tiles_n * exchange.plan.cfg.warpgroups_per_tile
                for step in cute.range_constexpr(1, ranks):
                    w.signals.notify((w.rank + step) % ranks, exchange.turn + 1, sums + flag)


def _stores_to_peers(
    w: Any, first: Any, rows: Any, n: Any, half_bytes: Any, plan: ProductPlan
) -> tuple[Any, ...]:
    """Return the TMA stores of C to the matrices (rows, n, source, half) that are `first` bytes
    from the beginning of each peer's memory, in steps from this rank on.
    """
    kinds, cfg, ranks = plan.kinds, plan.cfg, w.num_ranks
    in_c = cute.slice_(shared_layouts(kinds, cfg)[2], (None, None, 0))
    made = []
    for step in range(1, ranks):
        address = w.peer((w.rank + step) % ranks).iterator.toint() + first
        there = matrices_at(address, plan.dtype, (rows, n, ranks, 2), half_bytes // 2)
        store = tma.CopyBulkTensorTileS2GOp()
        made.append(tma.make_tiled_tma_atom(store, there, in_c, cfg.piece(kinds.c)))
    return tuple(made)


@cute.kernel
def scatter_product_kernel(
    y: cute.Tensor,
    load_a: tma.TmaAtom,
    tma_a: cute.Tensor,
    load_b: tma.TmaAtom,
    tma_b: cute.Tensor,
    stores: Stores,
    w: Any,
    schedule: Any,
    k_tiles: cute.Int32,
    rows: cute.Int32,
    n: cute.Int32,
    half_bytes: cute.Int64,
    pace: cute.Int32,
    plan: cute.Constexpr,
    everywhere: cute.Constexpr,
):
    """The sum of all ranks' products: this rank's shard of it, or all of it `everywhere`."""
    kinds, cfg = plan.kinds, plan.cfg
    block = begin_block(kinds, cfg)
    if block.warp == 0:
        for atom in (load_a, load_b, stores.own[0], *(one[0] for one in stores.parts)):
            tma.prefetch_descriptor(atom)
    # This rank's shard is the last one.
    first = (w.rank + 1) % w.num_ranks
    scheduler = ShardScheduler.beginning(schedule, first, cute.Int32(w.num_ranks))
    work = scheduler.get_current_work()
    pipeline.pipeline_init_wait(cfg.cluster)
    if block.warp < 4:
        arch.setmaxregister_decrease(cfg.producer_registers)
        if block.warp == 0:
            loads = LoadParams(block.pipeline, load_a, tma_a, block.sa, load_b, tma_b, block.sb)
            producer_warp(loads, scheduler, work, k_tiles, cfg)
        else:
            wait_for_predecessor(cfg)
            turn = launch_number(w)
            if block.warp == 1:
                count_launch(w, turn, _readers(plan))
            else:
                has_read(_readers(plan))
            if cute.const_expr(everywhere):
                _copy_sums(y, w, turn, (rows, n), half_bytes, plan)
    else:
        arch.setmaxregister_increase(cfg.consumer_registers)
        exchange = Exchange(stores, w, rows, n, half_bytes, pace, plan, everywhere)
        output = Output(stores.own[0], stores.own[1], (), exchange)
        consumer_warpgroup(block, output, scheduler, work, k_tiles, kinds, cfg, None)


@cute.jit
def scatter_product(
    x: cute.Tensor,
    b: cute.Tensor,
    y: cute.Tensor,
    w: Any,
    rows: cute.Int32,
    n: cute.Int32,
    k: cute.Int32,
    half_bytes: cute.Int64,
    pace: cute.Int32,
    blocks: cute.Int32,
    stream: cute.Int64,
    everywhere: cute.Constexpr,
    plan: cute.Constexpr,
):
    """Launch `scatter_product_kernel` on flat tensors: `x` (all rows, k), `b` (n, k), and `y` of n
    columns: the `rows` of this rank's shard, or all rows `everywhere`. `half_bytes` are those of
    half of the memory `w`; `pace` see `Exchange`.
    """
    kinds, cfg = plan.kinds, plan.cfg
    check_majors(kinds)
    check_config(kinds, cfg)
    ranks = w.num_ranks
    a = matrices_at(x.iterator.toint(), plan.dtype, (rows, k, ranks))
    weight = matrices_at(b.iterator.toint(), plan.dtype, (n, k))
    shape = (rows, n, ranks) if everywhere else (rows, n)
    c = matrices_at(y.iterator.toint(), plan.dtype, shape)
    (load_a, tma_a), (load_b, tma_b), own = tma_atoms((a, weight, c), kinds, cfg)
    parts = _stores_to_peers(w, cute.Int64(0), rows, n, half_bytes, plan)
    sums = ()
    if cute.const_expr(everywhere):
        behind = cute.Int64(rows) * n * 2 * ranks
        sums = _stores_to_peers(w, behind, rows, n, half_bytes, plan)
    schedule, grid = tile_schedule((rows, n, ranks), blocks, cfg)
    scatter_product_kernel(
        y, load_a, tma_a, load_b, tma_b, Stores(own, parts, sums), w, schedule,
        cute.ceil_div(k, cfg.tile[2]), rows, n, half_bytes, pace, plan, everywhere,
    ).launch(
        grid=grid,
        block=(cfg.threads, 1, 1),
        cluster=(*cfg.cluster, 1),
        stream=cute.Stream(stream.ir_value()),
        min_blocks_per_mp=1,
        use_pdl=cfg.overlap,
    )  # fmt: skip
