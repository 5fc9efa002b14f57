"""C = A B^T on Hopper: persistent, warp-specialised, TMA and wgmma, with a user's epilogue fused.

A is (M, K), B is (N, K), C is (M, N); all may have a last mode L of batches. One producer warp
loads tiles of A and B by TMA into a ring of stages, multicast within a cluster. The consumer
warpgroups multiply them, each 64 or more rows of a tile, pass the accumulators through the epilogue
and write C by TMA through shared memory; TMA clips what lies beyond M and N. A static schedule
deals the tiles of C to the resident blocks.

Consumers share each tile (CUTLASS: cooperative). With `deferred`, the finished elements of C stay
in registers and are stored between the first steps of the next tile, so that tensor cores wait only
while accumulators are converted. With `pingpong`, each consumer has tiles of its own instead: one
multiplies while another is in its epilogue, at the price of more loads of A and B.

Every other tile of a block is multiplied from the end of K on: the operands loaded last for one
tile are still in the L2 cache when the next tile, in the same rows or columns, needs them. So equal
rows of A, in different tiles, may round differently.

A *piece* is the part of C that a warpgroup stores at once: 64 rows of up to 128 bytes (CUTLASS:
epilogue tile). Pieces are counted along M and N (`pieces_m`, `pieces_n`) within a tile; a *slot* is
the place of a piece in shared memory.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any, NamedTuple

import basedsl_cute as cute
from basedsl_cute import arch, pipeline
from basedsl_cute.nvgpu import tma
from basedsl_cute.ops.gemm.operands import check_extents, three_modes, transposed
from basedsl_cute.ops.hopper.collective import (
    LoadParams,
    as_tf32,
    begin_block,
    check_majors,
    end_mma_steps,
    first_mma_step,
    mma_fragments,
    mma_step,
    operand_kinds,
    producer_warp,
    smem_store_atom,
    tile_schedule,
    tma_atoms,
    wait_for_predecessor,
    wgmma_over_warpgroups,
)
from basedsl_cute.ops.hopper.config import (
    DEFAULT,
    SHARED_MEMORY,
    Config,
    HopperGemmKinds,
    check_config,
    choose_config,
)
from basedsl_cute.utils import epilogue
from basedsl_cute.utils import hopper_helpers as sm90
from basedsl_cute.utils.tile_scheduler import (
    PersistentTileSchedulerParams,
    StaticPersistentTileScheduler,
)

__all__ = [
    "DEFAULT",
    "SHARED_MEMORY",
    "Config",
    "HopperGemmKinds",
    "check_config",
    "choose_config",
    "gemm",
]


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
    c: tuple,
    kinds: cute.Constexpr,
    cfg: cute.Constexpr,
    epilogue_op: cute.Constexpr,
    parts: cute.Constexpr,
):
    block = begin_block(kinds, cfg)
    if block.warp == 0:
        tma.prefetch_descriptor(load_a)
        tma.prefetch_descriptor(load_b)
        tma.prefetch_descriptor(store_c)
    scheduler = StaticPersistentTileScheduler.create(schedule, arch.block_idx(), arch.grid_dim())
    work = scheduler.initial_work_tile_info()
    pipeline.pipeline_init_wait(cfg.cluster)
    if block.warp < 4:
        arch.setmaxregister_decrease(cfg.producer_registers)
        if block.warp == 0:
            sides = (load_a, tma_a, block.sa, load_b, tma_b, block.sb)
            loads = LoadParams(block.pipeline, *sides, parts > 1)
            producer_warp(loads, scheduler, work, k_tiles, cfg)
    else:
        arch.setmaxregister_increase(cfg.consumer_registers)
        output = Output(store_c, tma_c, extras, c=c)
        consumer_warpgroup(block, output, scheduler, work, k_tiles, kinds, cfg, epilogue_op)


class Output(NamedTuple):
    """The TMA store of C, its tensor of coordinates, and the epilogue's operands; or, in a kernel
    that shares tiles with other ranks, the `Exchange` that stores and announces them.
    """

    store_c: Any
    tma_c: Any
    extras: Any = ()  # (shape of C, operands), or ()
    exchange: Any = None  # see `ops.distributed.scatter_product`
    c: Any = ()  # C itself, where warps store it


class EpilogueStore(NamedTuple):
    """The store of a consumer's pieces of C: registers to a slot in shared memory, then by TMA."""

    mma: Any  # the tiled MMA of one piece
    piece: tuple[int, int]  # its extents
    to_smem: Any  # the copy of a thread's part of a piece to shared memory
    staged: Any  # the destinations of that copy, by slots
    atom: Any  # the TMA store
    slots: Any  # all slots, as the TMA store's source
    pieces: Any  # the pieces of C, as the TMA store's destination
    consumer: Any  # the number of this consumer
    row_block: Any  # the first of its blocks of 64 rows, every `warpgroups_per_tile`-th of a tile
    pieces_n: int  # pieces of a tile along N
    pipeline: Any  # of the TMA stores, which says when a slot is free
    exchange: Any  # of the output

    @property
    def is_storer(self) -> Any:
        """True in the warp that starts the TMA stores."""
        return arch.make_warp_uniform(arch.warp_idx()) % 4 == 0

    @property
    def everyone(self) -> Any:
        """The barrier of this consumer's threads."""
        return pipeline.NamedBarrier(1 + self.consumer, 128)

    @property
    def delay(self) -> int:
        """The steps of K from the store of a tile's last piece until the tile is announced."""
        return 0 if self.exchange is None else self.exchange.delay

    @property
    def every(self) -> int:
        """The steps of K from the store of a piece to that of the next one."""
        return 1 if self.exchange is None else self.exchange.every


@cute.jit
def store_piece(epi_store, fragment, where, number, cfg: cute.Constexpr):
    """Store a warpgroup's piece of C at `where`, through the slot of the piece's running number."""
    place = epi_store.consumer * cfg.slots + number % cfg.slots
    everyone = epi_store.everyone
    is_storer = epi_store.is_storer
    if is_storer:
        epi_store.pipeline.producer_acquire()
    everyone.arrive_and_wait()  # the slot is free
    cute.copy(
        epi_store.to_smem,
        epi_store.to_smem.retile(fragment),
        epi_store.staged[None, None, None, place],
    )
    arch.fence_view_async_shared()
    everyone.arrive_and_wait()  # the piece is in shared memory
    if is_storer:
        source = epi_store.slots[None, place]
        if cute.const_expr(epi_store.exchange is not None):
            epi_store.exchange.store(epi_store, source, where)
        else:
            cute.copy(epi_store.atom, source, epi_store.pieces[None, where])
        epi_store.pipeline.producer_commit()


@cute.jit
def store_tile(epi_store, pending, tile, kinds, cfg: cute.Constexpr):
    """Store all of a warpgroup's pieces of a tile, each through a slot of its own."""
    first = epi_store.consumer * cfg.slots
    everyone = epi_store.everyone
    if epi_store.is_storer:
        epi_store.pipeline.producer_acquire()
    everyone.arrive_and_wait()  # the slots are free
    for i in cute.range_constexpr(len(pending)):
        cute.copy(
            epi_store.to_smem,
            epi_store.to_smem.retile(pending[i]),
            epi_store.staged[None, None, None, first + i],
        )
    arch.fence_view_async_shared()
    everyone.arrive_and_wait()  # the pieces are in shared memory
    if epi_store.is_storer:
        for i in cute.range_constexpr(len(pending)):
            where = piece_coordinate(tile, epi_store.row_block, i, epi_store.pieces_n, kinds, cfg)
            cute.copy(
                epi_store.atom, epi_store.slots[None, first + i], epi_store.pieces[None, where]
            )
        epi_store.pipeline.producer_commit()


@cute.jit
def store_by_warp(epi_store, c, smem, pending, tile, kinds, cfg: cute.Constexpr):
    """Store a warp's 16 rows of all pieces of a tile, through its part of the slots: where pieces
    are narrow and have a slot each, 4 vectors of 8 rows at once, in different banks.
    """
    vector = 128 // kinds.c.width
    of_a_row = epi_store.piece[1] // vector
    c = c[None, None, tile[2]] if cute.const_expr(kinds.is_batched) else c
    if cute.const_expr(of_a_row < 8 and len(pending) <= cfg.slots):
        for i in cute.range_constexpr(len(pending)):
            cute.copy(
                epi_store.to_smem,
                epi_store.to_smem.retile(pending[i]),
                epi_store.staged[None, None, None, epi_store.consumer * cfg.slots + i],
            )
        arch.sync_warp()
        store_rows(epi_store, c, smem, len(pending), tile, kinds, cfg)
        return
    rows = min(16, arch.WARP_SIZE // of_a_row)  # that the warp stores at once
    lane = arch.thread_idx()[0] % arch.WARP_SIZE
    row = arch.make_warp_uniform(arch.warp_idx()) % 4 * 16 + lane // of_a_row
    column = lane % of_a_row
    for i in cute.range_constexpr(len(pending)):
        slot = epi_store.consumer * cfg.slots + i % cfg.slots
        if cute.const_expr(i >= cfg.slots):
            arch.sync_warp()  # all have read the slot
        cute.copy(
            epi_store.to_smem,
            epi_store.to_smem.retile(pending[i]),
            epi_store.staged[None, None, None, slot],
        )
        arch.sync_warp()
        where = piece_coordinate(tile, epi_store.row_block, i, epi_store.pieces_n, kinds, cfg)
        there = cute.local_tile(c, epi_store.piece, (where[0], where[1]))
        begin_m, begin_n = (x * n for x, n in zip(where, epi_store.piece, strict=False))
        for j in cute.range_constexpr(16 // rows):
            at = (row + j * rows, column)
            inside = begin_m + at[0] < c.shape[0] and begin_n + column * vector < c.shape[1]
            if cute.const_expr(rows * of_a_row < arch.WARP_SIZE):
                inside = inside and lane < rows * of_a_row
            if inside:
                source = cute.local_tile(smem[None, None, slot], (1, vector), at)[0, None]
                cute.autovec_copy(source, cute.local_tile(there, (1, vector), at)[0, None])


@cute.jit
def store_rows(epi_store, c, smem, count, tile, kinds, cfg: cute.Constexpr):
    """Store a warp's 16 rows of the `count` pieces of a tile, each in its slot."""
    vector = 128 // kinds.c.width
    of_a_piece = epi_store.piece[1] // vector
    of_a_row = of_a_piece * epi_store.pieces_n
    lane = arch.thread_idx()[0] % arch.WARP_SIZE
    first_row = arch.make_warp_uniform(arch.warp_idx()) % 4 * 16 + lane % 8
    for i in cute.range_constexpr(0, count, epi_store.pieces_n):
        where = piece_coordinate(tile, epi_store.row_block, i, epi_store.pieces_n, kinds, cfg)
        there = cute.local_tile(c, (epi_store.piece[0], cfg.tile[1]), (where[0], tile[1]))
        begin_m, begin_n = where[0] * epi_store.piece[0], tile[1] * cfg.tile[1]
        for j in cute.range_constexpr(2 * -(-of_a_row // 4)):
            row, column = first_row + j % 2 * 8, lane // 8 + j // 2 * 4
            inside = begin_m + row < c.shape[0] and begin_n + column * vector < c.shape[1]
            if cute.const_expr((j // 2 + 1) * 4 > of_a_row):
                inside = inside and column < of_a_row
            if inside:
                slot = epi_store.consumer * cfg.slots + i + column // of_a_piece
                at = (row, column % of_a_piece)
                source = cute.local_tile(smem[None, None, slot], (1, vector), at)[0, None]
                cute.autovec_copy(
                    source, cute.local_tile(there, (1, vector), (row, column))[0, None]
                )


@cute.jit
def store_next_piece(epi_store, pending, unstored, before, slot, kinds, cfg: cute.Constexpr):
    """Store the first of the last tile's `unstored` pieces, and move the others up by one; after
    those, and the steps of `delay`, the tile is announced.
    """
    left = unstored - epi_store.delay  # steps until all are stored
    is_next = left > 0 if cute.const_expr(epi_store.delay > 0) else True
    if cute.const_expr(epi_store.every > 1):
        phase = epi_store.exchange.phase(epi_store.consumer)
        is_next = cute.Boolean(left > 0 and (left - 1) % epi_store.every == phase)
        left = (left - 1) // epi_store.every + 1
    if is_next:
        i = len(pending) - left
        where = piece_coordinate(before, epi_store.row_block, i, epi_store.pieces_n, kinds, cfg)
        store_piece(epi_store, pending[0], where, slot + i, cfg)
        for j in cute.range_constexpr(len(pending) - 1):
            pending[j].store(pending[j + 1].load())
    if cute.const_expr(epi_store.delay > 0):
        if unstored == 1:
            epi_store.exchange.announce(epi_store, before)


@cute.jit
def consumer_warpgroup(
    block, output, scheduler, work, k_tiles,
    kinds: cute.Constexpr, cfg: cute.Constexpr, epilogue_op: cute.Constexpr,
):  # fmt: skip
    """Multiply one warpgroup's rows of each tile, apply the epilogue and store the result."""
    loads, turn_order, extras = block.pipeline, block.turn_order, output.extras
    bn = cfg.tile[1]
    consumer = arch.make_warp_uniform(arch.warp_idx()) // 4 - 1
    row_block = 0 if cfg.pingpong else consumer
    mma, acc, ra, rb = mma_fragments(block.sa, block.sb, row_block, kinds, cfg)

    # Each piece of C is the accumulator of a smaller instruction.
    piece = cfg.piece(kinds.c)
    columns = piece[1]
    pieces_n = bn // columns
    count = cfg.pieces(kinds.c)
    pieces = cute.make_tensor(acc.iterator, cute.make_layout((columns // 2, count)))
    one_piece = wgmma_over_warpgroups(kinds, 1, piece)
    thread = arch.thread_idx()[0] % 128
    to_smem = cute.make_tiled_copy_C(smem_store_atom(kinds, columns), one_piece)
    shape = one_piece.partition_shape_C(piece)
    gc = cute.zipped_divide(output.tma_c, piece)
    sc = cute.group_modes(block.sc, 0, 2)
    from_s, to_g = tma.tma_partition(output.store_c, 0, None, sc, gc)
    stores = pipeline.PipelineTmaStore.create(num_stages=1 if cfg.whole else cfg.slots)
    pending = [cute.make_rmem_tensor(shape, kinds.c) for _ in range(count)]
    defers = cfg.defers(kinds.c.width)
    unstored = cute.Int32(0)  # pieces of the previous tile that are not stored yet
    before = (cute.Int32(0), cute.Int32(0), cute.Int32(0))  # the previous tile
    slot = 0  # of the next tile's first piece

    read = pipeline.make_pipeline_state(pipeline.PipelineUserType.Consumer, cfg.stages)
    if cute.const_expr(cfg.pingpong):
        scheduler.advance_to_next_work(advance_count=consumer)
        work = scheduler.get_current_work()
        read.advance(consumer * k_tiles)
    done = read.clone()
    wait_for_predecessor(cfg)
    exchange: Any = None
    if cute.const_expr(output.exchange is not None):
        exchange = output.exchange.begun(sc, piece)
    epi_store = EpilogueStore(
        one_piece, piece, to_smem, to_smem.get_slice(thread).partition_D(block.sc),
        output.store_c, from_s, to_g, consumer, row_block, pieces_n, stores, exchange,
    )  # fmt: skip
    while work.is_valid_tile:
        if cute.const_expr(turn_order is not None):
            # Parity tells only neighbouring rounds of the ring apart: consumers go in step.
            turn_order.wait()
        first_mma_step(loads, mma, acc, ra, rb, read)
        scheduler.advance_to_next_work(advance_count=cfg.consumers // cfg.warpgroups_per_tile)
        following = scheduler.get_current_work()
        for _ in cute.range(1, k_tiles, unroll=1):
            mma_step(loads, mma, acc, ra, rb, read, done)
            if cute.const_expr(defers):
                # One piece after each step: storing all at once would hold a stage too long.
                if unstored > 0:
                    store_next_piece(epi_store, pending, unstored, before, slot, kinds, cfg)
                    unstored -= 1
        if cute.const_expr(defers):
            while unstored > 0:
                store_next_piece(epi_store, pending, unstored, before, slot, kinds, cfg)
                unstored -= 1
        if cute.const_expr(turn_order is not None):
            turn_order.arrive()
        end_mma_steps(loads, done)

        if cute.const_expr(exchange is not None):
            exchange.receive(epi_store, pieces, work.tile_idx)
            begin = exchange.clock()
        for i in cute.range_constexpr(count):
            where = piece_coordinate(work.tile_idx, row_block, i, pieces_n, kinds, cfg)
            values = epilogue.apply_epilogue(
                epilogue_op,
                pieces[None, i].load(),
                load_operand_pieces(extras, where, one_piece, thread, piece),
                kinds.c,
            )
            pending[i].store(values.reshape(shape))
            if cute.const_expr(defers and bool(extras)):
                pin_in_registers(pending[i])
            if cute.const_expr(not defers and not cfg.whole and not output.c):
                if cute.const_expr(exchange is not None):
                    exchange.pause(epi_store, work.tile_idx, begin, i)
                store_piece(epi_store, pending[i], where, slot + i, cfg)
        if cute.const_expr(bool(output.c)):
            store_by_warp(epi_store, output.c[0], block.sc, pending, work.tile_idx, kinds, cfg)
        elif cute.const_expr(cfg.whole):
            store_tile(epi_store, pending, work.tile_idx, kinds, cfg)
        if cute.const_expr(exchange is not None and not defers):
            exchange.announce(epi_store, work.tile_idx)
        if cute.const_expr(count % cfg.slots != 0):
            slot = (slot + count) % cfg.slots
        before = work.tile_idx
        unstored += count * epi_store.every + epi_store.delay
        if cute.const_expr(cfg.pingpong):
            read.advance((cfg.consumers - 1) * k_tiles)
            done.advance((cfg.consumers - 1) * k_tiles)
        work = following
    if cute.const_expr(defers):
        while unstored > 0:
            store_next_piece(epi_store, pending, unstored, before, slot, kinds, cfg)
            unstored -= 1
    if cute.const_expr(not output.c):
        if epi_store.is_storer:
            stores.producer_tail()


def pin_in_registers(fragment: Any) -> None:
    """Keep LLVM from moving the computation of `fragment` past this point, by opaque moves.

    LLVM would sink it behind the loads of all pieces' operands, which do not fit in registers.
    """
    words = cute.recast_tensor(fragment, cute.Int32)
    for i in range(cute.size(words)):
        words[i] = arch.inline_ptx("mov.b32 $0, $1;", [words[i]], cute.Int32)


def piece_coordinate(
    tile: Any, row_block: Any, i: Any, pieces_n: int, kinds: HopperGemmKinds, cfg: Config
) -> Any:
    """The coordinate (M, N, L), in pieces of C, of a consumer's piece `i` of a tile."""
    m, n, batch = tile
    pieces_m = cfg.tile[0] // cfg.rows_per_mma
    row = (m * pieces_m + i // pieces_n) * cfg.warpgroups_per_tile + row_block
    return (row, n * pieces_n + i % pieces_n, *((batch,) if kinds.is_batched else ()))


def load_operand_pieces(extras: Any, where: Any, mma: Any, thread: Any, piece: Any) -> list[Any]:
    """Load a thread's part of each epilogue operand, for the piece of C at `where`."""
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
    parts: cute.Constexpr = 1,
):
    """Compute C = A B^T, or with `epilogue_op` C = epilogue_op(A B^T, *operands), on Hopper.

    `a` (M, K), `b` (N, K) and `c` (M, N) may all have a last mode of batches. Elements are Float16,
    BFloat16, both 8-bit floats, Int8, Uint8 or Float32, which is rounded to TFloat32; of all but
    the first two, K is contiguous. Addresses and strides are multiples of 16 bytes. C may have any
    type that the accumulators (Float32, or Int32 of integers) convert to; the extent of its
    contiguous mode is a multiple of 16 bytes, since TMA writes whole 16 bytes of a row, even beyond
    its end (seen on an H200).

    `blocks` is the most resident blocks, usually the number of multiprocessors; `cfg` the static
    configuration; `epilogue_op` a function of vectors, see `utils.epilogue`, and `operands` its
    further arguments; `stream` a CUDA stream. With `parts` above 1, A and B have one batch, and C
    has so many matrices, each the product of the next steps of K, of as many but in the last ones.
    They may have more columns than B has rows: those of a product with zeros.

    Raises DSLTypeError for operands that wgmma does not take and for a `cfg` that exceeds shared
    memory; asserts at run time that the extents fit together.
    """
    a, b = as_tf32(a), as_tf32(b)
    check_extents(a, b, c, parts)
    if cute.const_expr(cfg.swap):
        cfg = replace(cfg, swap=False)
        a, b, c = three_modes(b), three_modes(a), transposed(three_modes(c))
        operands = tuple(transposed(three_modes(x)) for x in operands)
    kinds = operand_kinds(a, b, c)
    check_majors(kinds)
    check_config(kinds, cfg)
    along = 1 if kinds.major_c is sm90.LayoutEnum.ROW_MAJOR else 0
    assert c.shape[along] * kinds.c.width % 128 == 0, "rows of C must be multiples of 16 bytes"
    (load_a, tma_a), (load_b, tma_b), (store_c, tma_c) = tma_atoms((a, b, c), kinds, cfg)
    schedule, grid = tile_schedule(c.shape, blocks, cfg)
    gemm_kernel(
        load_a,
        tma_a,
        load_b,
        tma_b,
        store_c,
        tma_c,
        schedule,
        cute.ceil_div(cute.ceil_div(a.shape[1], cfg.tile[2]), parts),
        (c.shape, operands) if epilogue_op is not None and operands else (),
        (c,) if cfg.by_warps and kinds.major_c is sm90.LayoutEnum.ROW_MAJOR else (),
        kinds,
        cfg,
        epilogue_op,
        parts,
    ).launch(
        grid=grid,
        block=(cfg.threads, 1, 1),
        cluster=(*cfg.cluster, 1),
        stream=stream,
        min_blocks_per_mp=1,
        use_pdl=cfg.overlap,
    )
