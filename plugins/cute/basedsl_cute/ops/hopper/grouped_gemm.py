"""C_g = A_g B_g^T for many groups at once on Hopper, with shapes and addresses in device memory.

A_g is (M, K), B_g is (N, K), C_g is (M, N), of any extents, which the host need not know. The
kernel is that of `ops.hopper.gemm`, except that blocks find their tiles from the table of shapes,
and make their tensor maps from the tables of addresses and strides: each block has its own in
global memory, updated by the producer warp for A and B, and by each consumer for C.

TMA writes whole 16 bytes of a row, even beyond its end (seen on an H200). A C whose rows do not
begin and end at multiples of 16 bytes is written by ordinary stores instead.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import basedsl_cute as cute
from basedsl_cute import arch, pipeline
from basedsl_cute.nvgpu import tma, warpgroup
from basedsl_cute.ops.gemm.groups import (
    WORDS,
    OwnMaps,
    Tables,
    can_tma_store,
    change_operands,
    contiguous_mode,
    patterns,
    tables,
)
from basedsl_cute.ops.hopper import config
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
    tma_atoms,
    wait_for_predecessor,
    wgmma_over_warpgroups,
)
from basedsl_cute.ops.hopper.config import HopperGemmKinds, check_config
from basedsl_cute.utils.group_scheduler import (
    StaticPersistentGroupTileScheduler,
    create_initial_search_state,
)
from basedsl_cute.utils.tensormap_manager import TensorMapUpdateMode
from basedsl_cute.utils.tile_scheduler import PersistentTileSchedulerParams

__all__ = ["Config", "HopperGemmKinds", "grouped_gemm", "maps_of", "tables"]


@dataclass(frozen=True)
class Config(config.Config):
    """The static configuration: that of `ops.hopper.config`, with more producer registers."""

    producer_registers: int = 40  # of each thread; the producer updates tensor maps, too


def maps_of(cfg: Config) -> int:
    """The number of tensor maps of a block: one of A, one of B, and one of C for each consumer."""
    return 2 + cfg.consumers


@cute.kernel
def grouped_kernel(
    load_a: tma.TmaAtom,
    load_b: tma.TmaAtom,
    store_c: tma.TmaAtom,
    tables: Tables,
    maps: cute.Tensor,
    schedule: PersistentTileSchedulerParams,
    kinds: cute.Constexpr,
    cfg: cute.Constexpr,
    update: cute.Constexpr,
):
    if cute.const_expr(cfg.overlap):
        arch.griddepcontrol_launch_dependents()
    layout_a, layout_b, layout_c = shared_layouts(kinds, cfg)
    smem = cute.utils.SmemAllocator()
    barriers = smem.allocate_array(cute.Int64, 2 * cfg.stages)
    scratch = smem.allocate_array(cute.Int64, WORDS * maps_of(cfg), byte_alignment=128)
    sa = allocate_staged(smem, kinds.a, layout_a)
    sb = allocate_staged(smem, kinds.b, layout_b)
    sc = allocate_staged(smem, kinds.c, layout_c)

    bm, bn, bk = cfg.tile
    cm, cn = cfg.cluster
    warp = arch.make_warp_uniform(arch.warp_idx())
    turn_order = pingpong_order(smem, warp, cfg)
    load_pipeline = make_load_pipeline(barriers, kinds, cfg)
    wait_for_predecessor(cfg)
    x, y, cluster = arch.block_idx()
    own = OwnMaps(maps, x + cm * (y + cn * cluster), scratch, update)
    scheduler = StaticPersistentGroupTileScheduler.create(
        schedule,
        arch.block_idx(),
        arch.grid_dim(),
        (bm * cm, bn * cn, bk),
        create_initial_search_state(),
        tables.sizes.shape[0],
        tables.sizes,
    )
    if warp < 4:
        arch.setmaxregister_decrease(cfg.producer_registers)
        if warp == 0:
            loads = LoadParams(load_pipeline, load_a, None, sa, load_b, None, sb)
            producer_warp(loads, scheduler, tables, own, kinds, cfg)
    else:
        arch.setmaxregister_increase(cfg.consumer_registers)
        tile = GroupTileParams(load_pipeline, turn_order, sa, sb, sc, store_c)
        consumer_warpgroup(tile, scheduler, tables, own, kinds, cfg)


class GroupTileParams(NamedTuple):
    """The parameters of the consumers: stages of A and B with their pipeline, slots of C with the
    TMA store, and the barrier of `pingpong` or None.
    """

    pipeline: Any
    turn_order: Any
    sa: Any
    sb: Any
    sc: Any
    store_c: Any


@cute.jit
def producer_warp(loads, scheduler, tables, own, kinds: cute.Constexpr, cfg: cute.Constexpr):
    """Load the tiles of A and B in the order in which consumers read them, by one warp, which
    updates their tensor maps where a new group begins.
    """
    load_a, load_b = loads.atom_a, loads.atom_b
    bm, bn, bk = cfg.tile
    cm, cn = cfg.cluster
    at_m, at_n, mask_a, mask_b = cluster_position(cfg)
    own.begin(load_a, 0, 0)
    own.begin(load_b, 1, 0)

    filled = pipeline.make_pipeline_state(pipeline.PipelineUserType.Producer, cfg.stages)
    current = cute.Int32(-1)
    work = scheduler.initial_work_tile_info()
    while work.is_valid_tile:
        m, n, g = work.tile_idx
        found = work.group_search_result
        rows, columns, depth = (
            found.problem_shape_m,
            found.problem_shape_n,
            found.problem_shape_k,
        )
        if g != current and depth > 0:
            extents = rows, columns, depth
            change_operands(own, (load_a, load_b), tables, g, extents, kinds, 0)
            current = g
        ga = cute.zipped_divide(cute.make_identity_tensor((rows, depth)), (bm, bk))
        gb = cute.zipped_divide(cute.make_identity_tensor((columns, depth)), (bn, bk))
        along_n, along_m = cute.make_layout(cn), cute.make_layout(cm)
        to_a, from_a = tma.tma_partition(
            load_a, at_n, along_n, cute.group_modes(loads.sa, 0, 2), ga
        )
        to_b, from_b = tma.tma_partition(
            load_b, at_m, along_m, cute.group_modes(loads.sb, 0, 2), gb
        )
        for k in cute.range(found.cta_tile_count_k, unroll=1):
            loads.pipeline.producer_acquire(filled)
            barrier = loads.pipeline.producer_get_barrier(filled)
            cute.copy(
                load_a,
                from_a[None, (m, k)],
                to_a[None, filled.index],
                tma_bar_ptr=barrier,
                mcast_mask=mask_a,
                tma_desc_ptr=own.place(0),
            )
            cute.copy(
                load_b,
                from_b[None, (n, k)],
                to_b[None, filled.index],
                tma_bar_ptr=barrier,
                mcast_mask=mask_b,
                tma_desc_ptr=own.place(1),
            )
            filled.advance()
        scheduler.advance_to_next_work()
        work = scheduler.get_current_work()
    loads.pipeline.producer_tail(filled)


@cute.jit
def consumer_warpgroup(tile, scheduler, tables, own, kinds: cute.Constexpr, cfg: cute.Constexpr):
    """Multiply one warpgroup's rows of each tile and store them, by TMA where C allows it."""
    loads, turn_order, sc, store_c = tile.pipeline, tile.turn_order, tile.sc, tile.store_c
    bm, bn, _ = cfg.tile
    warp = arch.make_warp_uniform(arch.warp_idx())
    consumer = warp // 4 - 1
    row_block = 0 if cfg.pingpong else consumer
    mma, acc, ra, rb = mma_fragments(tile.sa, tile.sb, row_block, kinds, cfg)

    # Each piece of C is the accumulator of a smaller instruction.
    piece = cfg.piece(kinds.c)
    columns = piece[1]
    pieces_m, pieces_n = bm // cfg.rows_per_mma, bn // columns
    pieces = cute.make_tensor(acc.iterator, cute.make_layout((columns // 2, pieces_m * pieces_n)))
    one_piece = wgmma_over_warpgroups(kinds, 1, piece)
    thread = arch.thread_idx()[0] % 128
    to_smem = cute.make_tiled_copy_C(smem_store_atom(kinds, columns), one_piece)
    staged = to_smem.get_slice(thread).partition_D(sc)
    shape = one_piece.partition_shape_C(piece)
    warpgroup_barrier = pipeline.NamedBarrier(1 + consumer, 128)
    stores = pipeline.PipelineTmaStore.create(num_stages=cfg.slots)
    storer = 4 * (consumer + 1)  # the warp that stores for this warpgroup
    slot = 0  # of the next tile's first piece
    own.begin(store_c, 2 + consumer, storer)

    read = pipeline.make_pipeline_state(pipeline.PipelineUserType.Consumer, cfg.stages)
    done = read.clone()
    turn = cute.Int32(0)  # the consumer whose tile this is
    current, by_tma = cute.Int32(-1), cute.Boolean(False)
    work = scheduler.initial_work_tile_info()
    while work.is_valid_tile:
        m, n, g = work.tile_idx
        found = work.group_search_result
        steps = found.cta_tile_count_k
        if turn == consumer if cute.const_expr(cfg.pingpong) else True:
            if cute.const_expr(turn_order is not None):
                turn_order.wait()
            if steps > 0:
                mma.set(warpgroup.Field.ACCUMULATE, False)  # replaces what is in acc
                loads.consumer_wait(read)
                issue_mma(mma, acc, ra, rb, read.index)
                mma.set(warpgroup.Field.ACCUMULATE, True)
                read.advance()
                for _ in cute.range(1, steps, unroll=1):
                    mma_step(loads, mma, acc, ra, rb, read, done)
                if cute.const_expr(turn_order is not None):
                    turn_order.arrive()
                warpgroup.wait_group(0)
                loads.consumer_release(done)
                done.advance()
            else:
                acc.fill(0)
                if cute.const_expr(turn_order is not None):
                    turn_order.arrive()

            c = tables.matrix(
                g, 2, (found.problem_shape_m, found.problem_shape_n), kinds, kinds.c.width // 8
            )
            if g != current:
                by_tma = can_tma_store(c, contiguous_mode(2, kinds))
                if by_tma and warp == storer:
                    arch.cp_async_bulk_wait_group(0, read=False)
                    own.change((store_c,), 2 + consumer, (c,), storer)
            current = g
            gc = cute.zipped_divide(cute.make_identity_tensor(c.shape), piece)
            from_s, to_g = tma.tma_partition(store_c, 0, None, cute.group_modes(sc, 0, 2), gc)
            for i in cute.range_constexpr(pieces_m * pieces_n):
                where = (
                    (m * pieces_m + i // pieces_n) * cfg.warpgroups_per_tile + row_block,
                    n * pieces_n + i % pieces_n,
                )
                place = consumer * cfg.slots + (slot + i) % cfg.slots
                if warp == storer:
                    stores.producer_acquire()
                warpgroup_barrier.arrive_and_wait()  # the slot is free
                fragment = cute.make_rmem_tensor(shape, kinds.c)
                fragment.store(pieces[None, i].load().to(kinds.c).reshape(shape))
                target = staged[None, None, None, place]
                cute.copy(to_smem, to_smem.retile(fragment), target)
                arch.fence_view_async_shared()
                warpgroup_barrier.arrive_and_wait()  # the piece is in shared memory
                if not by_tma:
                    store_inside(c, sc[None, None, place], where, piece, thread, kinds)
                if warp == storer:
                    if by_tma:
                        at = own.place(2 + consumer)
                        cute.copy(store_c, from_s[None, place], to_g[None, where], tma_desc_ptr=at)
                    stores.producer_commit()  # also an empty group: acquiring counts groups
            if cute.const_expr(pieces_m * pieces_n % cfg.slots != 0):
                slot = (slot + pieces_m * pieces_n) % cfg.slots
        else:
            read.advance(steps)
            done.advance(steps)
        if cute.const_expr(cfg.pingpong):
            turn = turn + 1
            turn = 0 if turn == cfg.consumers else turn
        scheduler.advance_to_next_work()
        work = scheduler.get_current_work()
    if warp == storer:
        stores.producer_tail()


@cute.jit
def store_inside(c, staged, where, piece, thread, kinds: cute.Constexpr):
    """Write the part of a piece in shared memory that lies inside C, by all 128 threads."""
    along = contiguous_mode(2, kinds)
    tile = cute.make_ordered_layout(piece, (1 - along, along))
    for i in cute.range(thread, cute.size(tile), 128, unroll=1):
        at = tile.get_hier_coord(i)
        row, column = where[0] * piece[0] + at[0], where[1] * piece[1] + at[1]
        if row < c.shape[0] and column < c.shape[1]:
            c[row, column] = staged[at]


@cute.jit
def grouped_gemm(
    sizes: cute.Tensor,
    strides: cute.Tensor,
    addresses: cute.Tensor,
    maps: cute.Tensor,
    kinds: cute.Constexpr,
    cfg: cute.Constexpr = Config(),
    update: cute.Constexpr = TensorMapUpdateMode.SMEM,
    stream: cute.Constexpr = None,
):
    """Compute C_g = A_g B_g^T for all groups g on Hopper, by tables in device memory.

    `sizes` is (groups, 4) of Int32: M, N, K, 1. `strides` is (groups, 3, 2) of Int32: those of A
    (M, K), B (N, K) and C (M, N) in elements; that of the contiguous mode is not read. `addresses`
    is (groups, 3) of Int64, in bytes. `tables` makes all three from arrays. `kinds` gives the
    element types, as for `ops.hopper.gemm.gemm`, and the contiguous modes, the same for all groups.

    Addresses and other strides of A and B must be multiples of 16 bytes, which is asserted (on the
    simulator, and on a GPU with assertions enabled). A C with such an address, strides and extent
    of its contiguous mode is written by TMA, another one by ordinary stores.

    `maps` is a workspace of (blocks, maps_of(cfg), 16) Int64 elements at a multiple of 128 bytes;
    its first extent is the number of resident blocks, rounded down to whole clusters. Of `cfg`, the
    raster (`swizzle`, `along_m`) and `deferred` make no difference. `update` says where tensor maps
    are changed: in shared memory or in `maps` itself.
    """
    a, b = (cute.TFloat32 if x is cute.Float32 else x for x in (kinds.a, kinds.b))
    kinds = replace(kinds, a=a, b=b)
    check_majors(kinds)
    check_config(kinds, cfg)
    cm, cn = cfg.cluster
    (load_a, _), (load_b, _), (store_c, _) = tma_atoms(patterns(maps, kinds), kinds, cfg)
    clusters = maps.shape[0] // (cm * cn)
    schedule = PersistentTileSchedulerParams((cm, cn, clusters), (cm, cn, 1))
    grouped_kernel(
        load_a,
        load_b,
        store_c,
        Tables(sizes, strides, addresses),
        maps,
        schedule,
        kinds,
        cfg,
        update,
    ).launch(
        grid=(cm, cn, clusters),
        block=(cfg.threads, 1, 1),
        cluster=(cm, cn, 1),
        stream=stream,
        min_blocks_per_mp=1,
        use_pdl=cfg.overlap,
    )
