"""C = A B^T on Hopper: persistent, warp-specialised, TMA and wgmma, with a user's epilogue fused.

A is (M, K), B is (N, K), C is (M, N); all may have a last mode L of batches. One warp loads tiles
of A and B by TMA into a ring of stages, multicast within a cluster; the other warpgroups, the
consumers, multiply them, each 64 or more rows of a tile, pass the sums through the epilogue and
write them through shared memory by TMA, which leaves out what lies beyond M and N. Tiles of C are
dealt to resident blocks in advance.

Consumers share each tile. What they have of it may stay in registers and leave between the first
steps of the next (`deferred`): tensor cores wait only while sums are converted. Or
consumers take turns, each with tiles of its own (`takes_turns`): then one multiplies while another
is in its epilogue, for more loads of A and B.

Every other tile of a block is multiplied from the end of K on: what was loaded last for one tile is
in the L2 cache still when the next, in the same rows or columns, needs it. So equal rows of A, in
different tiles, may round differently.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import basedsl_cute as cute
from basedsl_cute import arch, pipeline
from basedsl_cute.nvgpu import tma, warpgroup
from basedsl_cute.ops.gemm.operands import check_extents
from basedsl_cute.ops.hopper.collective import (
    allocate,
    as_tf32,
    check_majors,
    instruction,
    kinds_of,
    multiplication,
    multiply,
    order_of_turns,
    produce,
    ring_of_stages,
    schedule_of,
    shared_layouts,
    step,
    store_atom,
    tma_atoms,
    wait_for_predecessor,
)
from basedsl_cute.ops.hopper.config import DEFAULT, SHARED_MEMORY, Config, Kinds, check, choose
from basedsl_cute.utils import epilogue
from basedsl_cute.utils import hopper_helpers as sm90
from basedsl_cute.utils.tile_scheduler import (
    PersistentTileSchedulerParams,
    StaticPersistentTileScheduler,
)

__all__ = ["DEFAULT", "SHARED_MEMORY", "Config", "Kinds", "check", "choose", "gemm"]


@cute.kernel
def gemm_kernel(
    load_a: tma.TmaAtom,
    tma_a: cute.Tensor,
    load_b: tma.TmaAtom,
    tma_b: cute.Tensor,
    store_c: tma.TmaAtom,
    tma_c: cute.Tensor,
    schedule: PersistentTileSchedulerParams,
    k_tiles: cute.Int32,
    extras: tuple,
    kinds: cute.Constexpr,
    cfg: cute.Constexpr,
    epilogue_op: cute.Constexpr,
):
    if cute.const_expr(cfg.overlap):
        # The next kernel may take over multiprocessors as they become free.
        arch.griddepcontrol_launch_dependents()
    layout_a, layout_b, layout_c = shared_layouts(kinds, cfg)
    smem = cute.utils.SmemAllocator()
    barriers = smem.allocate_array(cute.Int64, 2 * cfg.stages)
    sa = allocate(smem, kinds.a, layout_a)
    sb = allocate(smem, kinds.b, layout_b)
    sc = allocate(smem, kinds.c, layout_c)

    warp_idx = arch.make_warp_uniform(arch.warp_idx())
    turns = order_of_turns(smem, warp_idx, cfg)
    loads = ring_of_stages(barriers, kinds, cfg, defer_sync=True)
    pipeline.pipeline_init_arrive(cfg.cluster)
    if warp_idx == 0:
        tma.prefetch_descriptor(load_a)
        tma.prefetch_descriptor(load_b)
        tma.prefetch_descriptor(store_c)
    scheduler = StaticPersistentTileScheduler.create(schedule, arch.block_idx(), arch.grid_dim())
    work = scheduler.initial_work_tile_info()
    pipeline.pipeline_init_wait(cfg.cluster)
    if warp_idx < 4:
        arch.setmaxregister_decrease(cfg.producer_registers)
        if warp_idx == 0:
            produce(
                loads, scheduler, work, load_a, tma_a, sa, load_b, tma_b, sb, k_tiles, kinds, cfg
            )
    else:
        arch.setmaxregister_increase(cfg.consumer_registers)
        consume(
            loads,
            turns,
            scheduler,
            work,
            sa,
            sb,
            sc,
            store_c,
            tma_c,
            k_tiles,
            extras,
            kinds,
            cfg,
            epilogue_op,
        )


class Way(NamedTuple):
    """How a consumer's pieces of C go to memory."""

    to_smem: Any  # the copy of a thread's part of one
    staged: Any  # where that goes, by slots
    store: Any  # the TMA atom
    slots: Any  # pieces in shared memory
    places: Any  # pieces of C
    consumer: Any  # this one's number
    stores: Any  # pipeline of the slots


@cute.jit
def leave(way, fragment, where, number, cfg: cute.Constexpr):
    """A warpgroup's piece of C goes to `where`; it takes slots by numbers in turn."""
    place = way.consumer * cfg.slots + number % cfg.slots
    everyone = pipeline.NamedBarrier(1 + way.consumer, 128)
    is_storer = arch.make_warp_uniform(arch.warp_idx()) % 4 == 0
    if is_storer:
        way.stores.producer_acquire()
    everyone.arrive_and_wait()  # the slot is free
    cute.copy(way.to_smem, way.to_smem.retile(fragment), way.staged[None, None, None, place])
    arch.fence_view_async_shared()
    everyone.arrive_and_wait()  # the piece is in shared memory
    if is_storer:
        cute.copy(way.store, way.slots[None, place], way.places[None, where])
        way.stores.producer_commit()


@cute.jit
def leave_next(way, held, waiting, before, mine, slot, across, kinds, cfg: cute.Constexpr):
    """The first of the `waiting` pieces of a tile leaves, and the others move up."""
    i = len(held) - waiting
    leave(way, held[0], piece_of(before, mine, i, across, kinds, cfg), slot + i, cfg)
    for j in cute.range_constexpr(len(held) - 1):
        held[j].store(held[j + 1].load())


@cute.jit
def consume(loads, turns, scheduler, work, sa, sb, sc, store_c, tma_c, k_tiles, extras,
    kinds: cute.Constexpr, cfg: cute.Constexpr, epilogue_op: cute.Constexpr,
):  # fmt: skip
    """A warpgroup: sums of its rows of a tile, the epilogue, and the tile's way to memory."""
    bm, bn, _ = cfg.tile
    consumer = arch.make_warp_uniform(arch.warp_idx()) // 4 - 1
    mine = 0 if cfg.takes_turns else consumer  # which rows of a tile
    mma, acc, ra, rb = multiplication(sa, sb, mine, kinds, cfg)

    # C leaves in pieces of 64 rows, each an accumulator of a smaller instruction.
    piece = cfg.piece(kinds.c)
    columns = piece[1]
    across = bn // columns
    count = bm // cfg.rows_of_a_step * across
    pieces = cute.make_tensor(acc.iterator, cute.make_layout((columns // 2, count)))
    one_piece = instruction(kinds, 1, piece)
    thread = arch.thread_idx()[0] % 128
    to_smem = cute.make_tiled_copy_C(store_atom(kinds, columns), one_piece)
    shape = one_piece.partition_shape_C(piece)
    gc = cute.zipped_divide(tma_c, piece)
    from_s, to_g = tma.tma_partition(store_c, 0, None, cute.group_modes(sc, 0, 2), gc)
    stores = pipeline.PipelineTmaStore.create(num_stages=cfg.slots)
    way = Way(
        to_smem, to_smem.get_slice(thread).partition_D(sc), store_c, from_s, to_g, consumer, stores
    )
    held = [cute.make_rmem_tensor(shape, kinds.c) for _ in range(count)]
    defers = cfg.defers(kinds.c.width)
    waiting = cute.Int32(0)  # pieces of the tile before, which are still held
    before = (cute.Int32(0), cute.Int32(0), cute.Int32(0))  # that tile
    slot = 0  # of the next tile's first piece

    read = pipeline.make_pipeline_state(pipeline.PipelineUserType.Consumer, cfg.stages)
    if cute.const_expr(cfg.takes_turns):
        scheduler.advance_to_next_work(advance_count=consumer)
        work = scheduler.get_current_work()
        read.advance(consumer * k_tiles)
    done = read.clone()
    wait_for_predecessor(cfg)
    while work.is_valid_tile:
        if cute.const_expr(turns is not None):
            turns.wait()  # a barrier's parity tells one round of the ring from the next, not more
        mma.set(warpgroup.Field.ACCUMULATE, False)  # the first step replaces what is in acc
        loads.consumer_wait(read)
        multiply(mma, acc, ra, rb, read.index)
        mma.set(warpgroup.Field.ACCUMULATE, True)
        read.advance()
        scheduler.advance_to_next_work(advance_count=cfg.consumers // cfg.sharers)
        following = scheduler.get_current_work()
        for _ in cute.range(1, k_tiles, unroll=1):
            step(loads, mma, acc, ra, rb, read, done)
            if cute.const_expr(defers):
                # One piece after each step: all at once, they hold stages too long.
                if waiting > 0:
                    leave_next(way, held, waiting, before, mine, slot, across, kinds, cfg)
                    waiting -= 1
        if cute.const_expr(defers):
            while waiting > 0:
                leave_next(way, held, waiting, before, mine, slot, across, kinds, cfg)
                waiting -= 1
        if cute.const_expr(turns is not None):
            turns.arrive()
        warpgroup.wait_group(0)
        loads.consumer_release(done)
        done.advance()

        for i in cute.range_constexpr(count):
            where = piece_of(work.tile_idx, mine, i, across, kinds, cfg)
            values = epilogue.apply_epilogue(
                epilogue_op,
                pieces[None, i].load(),
                operand_pieces(extras, where, one_piece, thread, piece),
                kinds.c,
            )
            held[i].store(values.reshape(shape))
            if cute.const_expr(defers and bool(extras)):
                settle(held[i])
            if cute.const_expr(not defers):
                leave(way, held[i], where, slot + i, cfg)
        if cute.const_expr(count % cfg.slots != 0):
            slot = (slot + count) % cfg.slots
        before = work.tile_idx
        waiting += count
        if cute.const_expr(cfg.takes_turns):
            read.advance((cfg.consumers - 1) * k_tiles)
            done.advance((cfg.consumers - 1) * k_tiles)
        work = following
    if cute.const_expr(defers):
        while waiting > 0:
            leave_next(way, held, waiting, before, mine, slot, across, kinds, cfg)
            waiting -= 1
    if arch.make_warp_uniform(arch.warp_idx()) % 4 == 0:
        stores.producer_tail()


def settle(fragment: Any) -> None:
    """Have the elements computed here. LLVM moves that to the end else, behind the loads of all
    pieces' operands, for which there are not registers enough.
    """
    words = cute.recast_tensor(fragment, cute.Int32)
    for i in range(cute.size(words)):
        words[i] = arch.inline_ptx("mov.b32 $0, $1;", [words[i]], cute.Int32)


def piece_of(tile: Any, mine: Any, i: Any, across: int, kinds: Kinds, cfg: Config) -> Any:
    """Where a consumer's piece `i` of a tile is: its (M, N, L) in pieces."""
    m, n, batch = tile
    down = cfg.tile[0] // cfg.rows_of_a_step
    row = (m * down + i // across) * cfg.sharers + mine
    return (row, n * across + i % across, *((batch,) if kinds.is_batched else ()))


def operand_pieces(extras: Any, where: Any, mma: Any, thread: Any, piece: Any) -> list[Any]:
    """A thread's part of each epilogue operand, at the piece of C `where`."""
    if not extras:
        return []
    shape, operands = extras
    last = tuple(i * n + n - 1 for i, n in zip(where, piece, strict=False))
    inside = cute.elem_less(last, shape[:2])
    part = mma.get_slice(thread).partition_C
    coords = part(cute.local_tile(cute.make_identity_tensor(shape), piece, where))
    loaded = []
    for x in operands:
        if isinstance(x, cute.Tensor):
            is_safe = True if epilogue.is_one_number(x) else inside
            values = epilogue.load_operand(
                part(cute.local_tile(x, piece, where)), coords, shape, is_safe
            )
            x = values.reshape((cute.size(values.shape),))
        loaded.append(x)
    return loaded


@cute.jit
def gemm(
    a: cute.Tensor,
    b: cute.Tensor,
    c: cute.Tensor,
    blocks: cute.Int32,
    cfg: cute.Constexpr = DEFAULT,
    epilogue_op: cute.Constexpr = None,
    operands: tuple = (),
    stream: cute.Constexpr = None,
    pads: cute.Constexpr = False,
):
    """C = A B^T on at most `blocks` resident blocks (a GPU's number of multiprocessors).

    With `epilogue_op`, C = epilogue_op(A B^T, *operands), see `utils.epilogue`. Elements are
    Float16, BFloat16, both 8-bit floats, Int8, Uint8 or Float32, which is rounded to TFloat32; of
    all but the first two, K is contiguous. C may have any type that the sums convert to; the extent
    of its contiguous mode is a multiple of 16 bytes, since TMA writes whole 16 bytes of a row, even
    beyond its end (seen on an H200). With `pads`, C may have more columns than B has rows: those of
    a product with zeros.
    """
    a, b = as_tf32(a), as_tf32(b)
    kinds = kinds_of(a, b, c)
    check_extents(a, b, c, pads)
    check_majors(kinds)
    check(kinds, cfg)
    along = 1 if kinds.major_c is sm90.LayoutEnum.ROW_MAJOR else 0
    assert c.shape[along] * kinds.c.width % 128 == 0, "rows of C must be multiples of 16 bytes"
    (load_a, tma_a), (load_b, tma_b), (store_c, tma_c) = tma_atoms((a, b, c), kinds, cfg)
    schedule, grid = schedule_of(c.shape, blocks, cfg)
    gemm_kernel(
        load_a,
        tma_a,
        load_b,
        tma_b,
        store_c,
        tma_c,
        schedule,
        cute.ceil_div(a.shape[1], cfg.tile[2]),
        (c.shape, operands) if epilogue_op is not None and operands else (),
        kinds,
        cfg,
        epilogue_op,
    ).launch(
        grid=grid,
        block=(cfg.threads, 1, 1),
        cluster=(*cfg.cluster, 1),
        stream=stream,
        min_blocks_per_mp=1,
        use_pdl=cfg.overlap,
    )
