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

from typing import Any, NamedTuple

import basedsl_cute as cute
from basedsl_cute import arch, pipeline
from basedsl_cute.nvgpu import tma, warpgroup
from basedsl_cute.ops.distributed.product_parts import (
    MOVERS,
    ProductPlan,
    ShardScheduler,
    copy_part,
    end_launch,
    half_address,
    launch_number,
    matrices_at,
    mover_number,
    num_blocks,
)
from basedsl_cute.ops.hopper.collective import (
    LoadParams,
    allocate_staged,
    check_majors,
    cluster_position,
    issue_mma,
    make_load_pipeline,
    mma_fragments,
    mma_step,
    pingpong_order,
    shared_layouts,
    smem_store_atom,
    tile_schedule,
    tma_atoms,
    wait_for_predecessor,
    wgmma_over_warpgroups,
)
from basedsl_cute.ops.hopper.config import check_config
from basedsl_cute.ops.hopper.gemm import load_operand_pieces, piece_coordinate


class Stores(NamedTuple):
    """The TMA stores of C: to this rank's C, and to the memory of each peer, in steps from this
    rank on: parts of its sums and, for an all-reduce, sums. Each with its tensor of coordinates.
    """

    own: Any
    parts: Any
    sums: Any


@cute.jit
def _load_tiles(loads, scheduler, work, k_tiles, cfg: cute.Constexpr):
    """Load the tiles of A and B by one warp. Every other tile takes K backwards."""
    bm, bn, bk = cfg.tile
    cm, cn = cfg.cluster
    at_m, at_n, mask_a, mask_b = cluster_position(cfg)
    along_n, along_m = cute.make_layout(cn), cute.make_layout(cm)
    sa, sb = cute.group_modes(loads.sa, 0, 2), cute.group_modes(loads.sb, 0, 2)
    ga = cute.zipped_divide(loads.tma_a, (bm, bk))
    gb = cute.zipped_divide(loads.tma_b, (bn, bk))
    to_a, from_a = tma.tma_partition(loads.atom_a, at_n, along_n, sa, ga)
    to_b, from_b = tma.tma_partition(loads.atom_b, at_m, along_m, sb, gb)
    filled = pipeline.make_pipeline_state(pipeline.PipelineUserType.Producer, cfg.stages)
    step, forward = cute.Int32(0), cute.Int32(1)
    while work.is_valid_tile:
        m, n, shard = work.tile_idx
        for _ in cute.range(k_tiles, unroll=1):
            loads.pipeline.producer_acquire(filled)
            barrier = loads.pipeline.producer_get_barrier(filled)
            cute.copy(
                loads.atom_a,
                from_a[None, (m, step, shard)],
                to_a[None, filled.index],
                tma_bar_ptr=barrier,
                mcast_mask=mask_a,
            )
            cute.copy(
                loads.atom_b,
                from_b[None, (n, step)],
                to_b[None, filled.index],
                tma_bar_ptr=barrier,
                mcast_mask=mask_b,
            )
            filled.advance()
            step = step + forward
        step = step - forward
        forward = 0 - forward
        scheduler.advance_to_next_work()
        work = scheduler.get_current_work()
    loads.pipeline.producer_tail(filled)


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


@cute.jit
def _multiply_tiles(
    loads, smem, turn_order, stores, scheduler, work, k_tiles, w, shape, half_bytes,
    plan: cute.Constexpr, everywhere: cute.Constexpr,
):  # fmt: skip
    """Multiply one warpgroup's tiles and store them: peers' to them, and its own with the sums."""
    kinds, cfg = plan.kinds, plan.cfg
    rows, n = shape
    bm, bn, _ = cfg.tile
    ranks = w.num_ranks
    sa, sb, sc = smem
    consumer = arch.make_warp_uniform(arch.warp_idx()) // 4 - 1
    row_block = 0 if cfg.pingpong else consumer
    mma, acc, ra, rb = mma_fragments(sa, sb, row_block, kinds, cfg)
    piece = cfg.piece(kinds.c)
    columns = piece[1]
    pieces_n = bn // columns
    count = bm // cfg.rows_per_mma * pieces_n
    pieces = cute.make_tensor(acc.iterator, cute.make_layout((columns // 2, count)))
    one_piece = wgmma_over_warpgroups(kinds, 1, piece)
    thread = arch.thread_idx()[0] % 128
    to_smem = cute.make_tiled_copy_C(smem_store_atom(kinds, columns), one_piece)
    fragment_shape = one_piece.partition_shape_C(piece)
    staged = to_smem.get_slice(thread).partition_D(sc)
    grouped = cute.group_modes(sc, 0, 2)

    def targets(store):
        return tma.tma_partition(store[0], 0, None, grouped, cute.zipped_divide(store[1], piece))

    slots, to_own = targets(stores.own)
    to_parts = [targets(one)[1] for one in stores.parts]
    to_sums = [targets(one)[1] for one in stores.sums]
    bulk = pipeline.PipelineTmaStore.create(num_stages=cfg.slots)
    everyone = pipeline.NamedBarrier(1 + consumer, 128)
    is_storer = arch.make_warp_uniform(arch.warp_idx()) % 4 == 0
    tiles_m, tiles_n = cute.ceil_div(rows, bm), cute.ceil_div(n, bn)
    flags = tiles_m * tiles_n * cfg.warpgroups_per_tile  # of a shard

    wait_for_predecessor(cfg)
    turn = launch_number(w)
    half = (turn & 1).to(cute.Int32)
    shard_bytes = cute.Int64(rows) * n * 2
    mine = half_address(w, w.rank, turn, half_bytes)
    read = pipeline.make_pipeline_state(pipeline.PipelineUserType.Consumer, cfg.stages)
    if cute.const_expr(cfg.pingpong):
        scheduler.advance_to_next_work(advance_count=consumer)
        work = scheduler.get_current_work()
        read.advance(consumer * k_tiles)
    done = read.clone()
    slot = 0
    while work.is_valid_tile:
        if cute.const_expr(turn_order is not None):
            turn_order.wait()
        mma.set(warpgroup.Field.ACCUMULATE, False)
        loads.consumer_wait(read)
        issue_mma(mma, acc, ra, rb, read.index)
        mma.set(warpgroup.Field.ACCUMULATE, True)
        read.advance()
        for _ in cute.range(1, k_tiles, unroll=1):
            mma_step(loads, mma, acc, ra, rb, read, done)
        if cute.const_expr(turn_order is not None):
            turn_order.arrive()
        warpgroup.wait_group(0)
        loads.consumer_release(done)
        done.advance()

        m, tile_n, shard = work.tile_idx
        is_own = shard == w.rank
        exists = cute.Boolean(m < tiles_m and tile_n < tiles_n)
        # A flag is for the rows of one warpgroup.
        tile = (m * tiles_n + tile_n) * cfg.warpgroups_per_tile + row_block
        if is_own and exists:
            if thread < ranks and thread != w.rank:
                w.signals.wait(thread, turn + 1, tile)
            everyone.arrive_and_wait()
            # All loads before the first barrier of a piece: their latencies are one.
            for i in cute.range_constexpr(count):
                where = piece_coordinate(work.tile_idx, row_block, i, pieces_n, kinds, cfg)
                for step in cute.range_constexpr(1, ranks):
                    source = (w.rank + step) % ranks
                    there = mine + source.to(cute.Int64) * shard_bytes
                    received = matrices_at(there, plan.dtype, (rows, n))
                    (part,) = load_operand_pieces(
                        ((rows, n), (received,)), where[:2], one_piece, thread, piece
                    )
                    total = pieces[None, i].load() + part.to(cute.Float32)
                    pieces[None, i].store(total)
        for i in cute.range_constexpr(count):
            where = piece_coordinate(work.tile_idx, row_block, i, pieces_n, kinds, cfg)
            row, column, _ = where
            rounded = cute.make_rmem_tensor(fragment_shape, kinds.c)
            rounded.store(pieces[None, i].load().reshape(fragment_shape).to(kinds.c))
            place = consumer * cfg.slots + (slot + i) % cfg.slots
            if is_storer:
                bulk.producer_acquire()
            everyone.arrive_and_wait()  # the slot is free
            cute.copy(to_smem, to_smem.retile(rounded), staged[None, None, None, place])
            arch.fence_view_async_shared()
            everyone.arrive_and_wait()  # the piece is in shared memory
            if is_storer:
                if is_own:
                    where = (row, column, shard) if everywhere else (row, column)
                    cute.copy(stores.own[0], slots[None, place], to_own[None, where])
                    if cute.const_expr(everywhere):
                        for step in cute.range_constexpr(ranks - 1):
                            where = (row, column, w.rank, half)
                            atom = stores.sums[step][0]
                            cute.copy(atom, slots[None, place], to_sums[step][None, where])
                else:
                    for step in cute.range_constexpr(ranks - 1):
                        if shard == (w.rank + step + 1) % ranks:
                            where = (row, column, w.rank, half)
                            atom = stores.parts[step][0]
                            cute.copy(atom, slots[None, place], to_parts[step][None, where])
                bulk.producer_commit()
        if cute.const_expr(count % cfg.slots != 0):
            slot = (slot + count) % cfg.slots
        if is_storer and exists:
            if cute.const_expr(everywhere):
                arch.cp_async_bulk_wait_group(0)
            elif not is_own:
                arch.cp_async_bulk_wait_group(0)
            arch.sync_warp()
            if thread == 0:
                if not is_own:
                    w.signals.notify(shard, turn + 1, tile)
                elif cute.const_expr(everywhere):
                    for step in cute.range_constexpr(1, ranks):
                        peer = (w.rank + step) % ranks
                        w.signals.notify(peer, turn + 1, flags + tile)
        scheduler.advance_to_next_work(advance_count=cfg.consumers // cfg.warpgroups_per_tile)
        work = scheduler.get_current_work()
        if cute.const_expr(cfg.pingpong):
            read.advance((cfg.consumers - 1) * k_tiles)
            done.advance((cfg.consumers - 1) * k_tiles)
    if is_storer:
        bulk.producer_tail()


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
    plan: cute.Constexpr,
    everywhere: cute.Constexpr,
):
    """The sum of all ranks' products: this rank's shard of it, or all of it `everywhere`."""
    kinds, cfg = plan.kinds, plan.cfg
    if cute.const_expr(cfg.overlap):
        arch.griddepcontrol_launch_dependents()
    layout_a, layout_b, layout_c = shared_layouts(kinds, cfg)
    smem = cute.utils.SmemAllocator()
    barriers = smem.allocate_array(cute.Int64, 2 * cfg.stages)
    sa = allocate_staged(smem, kinds.a, layout_a)
    sb = allocate_staged(smem, kinds.b, layout_b)
    sc = allocate_staged(smem, kinds.c, layout_c)
    warp_idx = arch.make_warp_uniform(arch.warp_idx())
    turn_order = pingpong_order(smem, warp_idx, cfg)
    load_pipeline = make_load_pipeline(barriers, kinds, cfg, defer_sync=True)
    pipeline.pipeline_init_arrive(cfg.cluster)
    # This rank's shard is the last one.
    first = (w.rank + 1) % w.num_ranks
    scheduler = ShardScheduler.beginning(schedule, first, cute.Int32(w.num_ranks))
    work = scheduler.get_current_work()
    pipeline.pipeline_init_wait(cfg.cluster)
    if warp_idx < 4:
        arch.setmaxregister_decrease(cfg.producer_registers)
        wait_for_predecessor(cfg)
        if warp_idx == 0:
            loads = LoadParams(load_pipeline, load_a, tma_a, sa, load_b, tma_b, sb)
            _load_tiles(loads, scheduler, work, k_tiles, cfg)
        elif cute.const_expr(everywhere):
            _copy_sums(y, w, launch_number(w), (rows, n), half_bytes, plan)
    else:
        arch.setmaxregister_increase(cfg.consumer_registers)
        _multiply_tiles(
            load_pipeline, (sa, sb, sc), turn_order, stores, scheduler, work, k_tiles, w,
            (rows, n), half_bytes, plan, everywhere,
        )  # fmt: skip
    end_launch(w)


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
    blocks: cute.Int32,
    stream: cute.Int64,
    everywhere: cute.Constexpr,
    plan: cute.Constexpr,
):
    """Launch `scatter_product_kernel` on flat tensors: `x` (all rows, k), `b` (n, k), and `y` of n
    columns: the `rows` of this rank's shard, or all rows `everywhere`. `half_bytes` are those of
    half of the memory `w`.
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
        cute.ceil_div(k, cfg.tile[2]), rows, n, half_bytes, plan, everywhere,
    ).launch(
        grid=grid,
        block=(cfg.threads, 1, 1),
        cluster=(*cfg.cluster, 1),
        stream=cute.Stream(stream.ir_value()),
        min_blocks_per_mp=1,
        use_pdl=cfg.overlap,
    )  # fmt: skip
