"""C = A B^T on data-center Blackwell: persistent, warp-specialised, with a user's epilogue fused.

A is (M, K, L), B (N, K, L), C (M, N, L). One warp loads tiles of A and B by TMA into a ring of
stages, multicast within a cluster; one multiplies them by tcgen05.mma into tensor memory, for a
block or for a pair; four pass the accumulators through the epilogue and write C by TMA through
shared memory, while the next tile is multiplied into the other half of tensor memory. With cluster
launch control one warp of a cluster requests the next tile, so that clusters that are faster do
more; else a static schedule deals the tiles.

TMA clips what lies beyond M, N and K.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import basedsl_cute as cute
from basedsl import DSLTypeError
from basedsl_cute import arch, pipeline, utils
from basedsl_cute.nvgpu import tma
from basedsl_cute.nvgpu.tcgen05 import CtaGroup, Field
from basedsl_cute.ops.blackwell.config import (
    DEFAULT,
    Config,
    Kinds,
    check_config,
    choose_config,
)
from basedsl_cute.ops.gemm.operands import check_extents
from basedsl_cute.utils import blackwell_helpers as sm100
from basedsl_cute.utils import epilogue
from basedsl_cute.utils.gemm.sm100 import (
    epilogue_smem_copy_and_partition,
    epilogue_tmem_copy_and_partition,
    transform_partitioned_tensor_layout,
)

__all__ = ["DEFAULT", "Config", "choose_config", "gemm"]

EPILOGUE_WARPS = (0, 1, 2, 3)
MMA_WARP, TMA_WARP, SCHEDULER_WARP = 4, 5, 6
_EPILOGUE_BARRIER, _TMEM_BARRIER, _FREE_BARRIER = 1, 2, 3
_THREAD = pipeline.Agent.Thread


class Shapes(NamedTuple):
    """The static layouts of the kernel, and what `utils.gemm.sm100` asks of it."""

    cta_tile_shape_mnk: Any
    c_layout: Any
    c_dtype: Any
    acc_dtype: Any
    use_2cta_instrs: bool
    tiler: tuple[int, int, int]
    vmnk: Any
    a: Any  # shared memory by stages
    b: Any
    c: Any
    epi_tile: Any
    stages: int


def _tiled_mma(kinds: Kinds, cfg: Config) -> Any:
    group = CtaGroup.TWO if cfg.pair else CtaGroup.ONE
    majors = (kinds.major_a.mma_major_mode(), kinds.major_b.mma_major_mode())
    return sm100.make_trivial_tiled_mma(kinds.a, kinds.b, *majors, kinds.acc, group, cfg.tile)


def _shapes(mma: Any, kinds: Kinds, cfg: Config) -> Shapes:
    k = 4 * mma.shape_mnk[2]
    tiler = (*cfg.tile, k)
    own = (*cfg.block_tile, k)
    epi_tile = sm100.compute_epilogue_tile_shape(own, cfg.pair, kinds.major_c, kinds.c)
    c = sm100.make_smem_layout_epi(kinds.c, kinds.major_c, epi_tile, cfg.c_stages)
    c_bytes = int(cute.size(c)) * kinds.c.width // 8
    check_config(cfg, c_bytes, kinds.a.width)
    stages = cfg.ab_stages(kinds.a.width, c_bytes)
    return Shapes(
        own, kinds.major_c, kinds.c, kinds.acc, cfg.pair, tiler,
        cute.tiled_divide(cute.make_layout((*cfg.cluster, 1)), (mma.thr_id.shape,)),
        sm100.make_smem_layout_a(mma, tiler, kinds.a, stages),
        sm100.make_smem_layout_b(mma, tiler, kinds.b, stages),
        c, epi_tile, stages,
    )  # fmt: skip


def _load_bytes(shapes: Shapes, kinds: Kinds, cfg: Config) -> int:
    """The bytes of a stage of A and B, of both blocks of a pair."""
    whole = cute.size(shapes.a) * kinds.a.width + cute.size(shapes.b) * kinds.b.width
    return int(whole) // 8 // shapes.stages * cfg.blocks


class Loads(NamedTuple):
    """The parameters of a block's loads: the pipeline, and for A and B the TMA atom, this block's
    tiles (box, tiles along M or N, along K, batches), stages and the blocks that get them.
    """

    pipeline: Any
    atom_a: Any
    from_a: Any
    to_a: Any
    mask_a: Any
    atom_b: Any
    from_b: Any
    to_b: Any
    mask_b: Any


class Schedule(NamedTuple):
    """The tiles of a block: their scheduler, and the pipeline of requests, or None."""

    scheduler: Any
    requests: Any


@cute.jit
def next_work(schedule, state):
    """The next tile, the same in all warps of a cluster."""
    if cute.const_expr(schedule.requests is None):
        schedule.scheduler.advance_to_next_work()
        work = schedule.scheduler.get_current_work()
    else:
        schedule.requests.consumer_wait(state)
        work = schedule.scheduler.get_current_work()
        schedule.requests.consumer_release(state)
        state.advance()
    return work


@cute.kernel
def gemm_kernel(
    mma: cute.TiledMma,
    load_a: tma.TmaAtom,
    tma_a: cute.Tensor,
    load_b: tma.TmaAtom,
    tma_b: cute.Tensor,
    store_c: tma.TmaAtom,
    tma_c: cute.Tensor,
    params: Any,
    extras: tuple,
    kinds: cute.Constexpr,
    cfg: cute.Constexpr,
    epilogue_op: cute.Constexpr,
):
    shapes = _shapes(mma, kinds, cfg)
    warp = arch.make_warp_uniform(arch.warp_idx())
    block = arch.block_idx()
    v = block[0] % cfg.blocks
    vmnk = shapes.vmnk
    rank = arch.make_warp_uniform(arch.block_idx_in_cluster())
    place = vmnk.get_flat_coord(rank)
    smem = utils.SmemAllocator()
    load_barriers = smem.allocate_array(cute.Int64, 2 * shapes.stages)
    acc_barriers = smem.allocate_array(cute.Int64, 2 * cfg.acc_stages)
    request_barriers = smem.allocate_array(cute.Int64, 2)
    dealloc_barrier = smem.allocate_array(cute.Int64, 1)
    holder = smem.allocate_array(cute.Int32, 1)
    response = smem.allocate_array(cute.Int32, 4, byte_alignment=16)
    sa = smem.allocate_tensor(kinds.a, shapes.a.outer, 1024, shapes.a.inner)
    sb = smem.allocate_tensor(kinds.b, shapes.b.outer, 1024, shapes.b.inner)
    sc = smem.allocate_tensor(kinds.c, shapes.c.outer, 1024, shapes.c.inner)
    if warp == TMA_WARP:
        for atom in (load_a, load_b, store_c):
            tma.prefetch_descriptor(atom)
    one = pipeline.CooperativeGroup(_THREAD)
    sharing = cute.size(vmnk, mode=[1]) + cute.size(vmnk, mode=[2]) - 1
    loads = pipeline.PipelineTmaUmma.create(
        barrier_storage=load_barriers,
        num_stages=shapes.stages,
        producer_group=one,
        consumer_group=pipeline.CooperativeGroup(_THREAD, sharing),
        tx_count=_load_bytes(shapes, kinds, cfg),
        cta_layout_vmnk=vmnk,
        defer_sync=True,
    )
    sums = pipeline.PipelineUmmaAsync.create(
        barrier_storage=acc_barriers,
        num_stages=cfg.acc_stages,
        producer_group=one,
        consumer_group=pipeline.CooperativeGroup(_THREAD, cfg.blocks * len(EPILOGUE_WARPS)),
        cta_layout_vmnk=vmnk,
        defer_sync=True,
    )
    requests = None
    if cute.const_expr(cfg.dynamic):
        readers = 32 * (1 + 6 * cute.size(vmnk))
        requests = pipeline.PipelineClcFetchAsync.create(
            barrier_storage=request_barriers,
            num_stages=1,
            producer_group=one,
            consumer_group=pipeline.CooperativeGroup(_THREAD, readers),
            cta_layout_vmnk=vmnk,
            defer_sync=True,
        )
    tmem = utils.TmemAllocator(
        holder,
        barrier_for_retrieve=pipeline.NamedBarrier(_TMEM_BARRIER, 32 * 5),
        is_two_cta=cfg.pair,
        two_cta_tmem_dealloc_mbar_ptr=dealloc_barrier,
    )
    pipeline.pipeline_init_arrive(vmnk)
    m, n, k = shapes.tiler
    part = mma.get_slice(v)
    ga = part.partition_A(cute.local_tile(tma_a, (m, k), (None,) * 3))
    gb = part.partition_B(cute.local_tile(tma_b, (n, k), (None,) * 3))
    gc = part.partition_C(cute.local_tile(tma_c, (m, n), (None,) * 3))
    to_a, from_a = _divided(load_a, place[2], cute.size(vmnk, mode=[2]), sa, ga)
    to_b, from_b = _divided(load_b, place[1], cute.size(vmnk, mode=[1]), sb, gb)
    mask_a = tma.create_tma_multicast_mask(vmnk, place, 2)
    mask_b = tma.create_tma_multicast_mask(vmnk, place, 1)
    fake = mma.make_fragment_C(cute.append(mma.partition_shape_C(cfg.tile), cfg.acc_stages))
    k_tiles = cute.size(ga, mode=[4])
    if cute.const_expr(cfg.dynamic):
        scheduler = utils.ClcDynamicPersistentTileScheduler.create(
            params, block, arch.grid_dim(), response
        )
    else:
        scheduler = utils.StaticPersistentTileScheduler.create(params, block, arch.grid_dim())
    schedule = Schedule(scheduler, requests)
    state = pipeline.make_pipeline_state(pipeline.PipelineUserType.Consumer, 1)
    work = scheduler.initial_work_tile_info()
    pipeline.pipeline_init_wait(vmnk)
    if warp == TMA_WARP:
        given = Loads(loads, load_a, from_a, to_a, mask_a, load_b, from_b, to_b, mask_b)
        load_warp(given, schedule, state, work, k_tiles, cfg)
    if cute.const_expr(cfg.dynamic):
        if warp == SCHEDULER_WARP and rank == 0:
            scheduler_warp(schedule, state, work)
    if warp == MMA_WARP:
        tmem.wait_for_alloc()
        acc = cute.make_tensor(tmem.retrieve_ptr(kinds.acc), fake.layout)
        mma_warp(mma, loads, sums, acc, sa, sb, v == 0, schedule, state, work, k_tiles, cfg)
    if warp < MMA_WARP:
        tmem.allocate(utils.get_num_tmem_alloc_cols(fake))
        tmem.wait_for_alloc()
        start = tmem.retrieve_ptr(kinds.acc)
        acc = cute.make_tensor(start, fake.layout)
        epilogue_warps(
            acc, sums, sc, gc, store_c, extras, part, shapes, schedule, state, work, cfg,
            epilogue_op,
        )  # fmt: skip
        tmem.relinquish_alloc_permit()
        pipeline.NamedBarrier(_FREE_BARRIER, 128).arrive_and_wait()
        tmem.free(start)


def _divided(atom: Any, at: Any, blocks: Any, smem_tensor: Any, tiles: Any) -> Any:
    """The stages and the tiles of an operand as TMA copies them."""
    return tma.tma_partition(
        atom, at, cute.make_layout(blocks), cute.group_modes(smem_tensor, 0, 3),
        cute.group_modes(tiles, 0, 3),
    )  # fmt: skip


@cute.jit
def load_warp(given, schedule, state, work, k_tiles, cfg: cute.Constexpr):
    """Load the tiles of A and B of each tile of C."""
    loads = given.pipeline
    write = pipeline.make_pipeline_state(pipeline.PipelineUserType.Producer, loads.num_stages)
    while work.is_valid_tile:
        m, n, batch = work.tile_idx
        from_a = given.from_a[None, m // cfg.blocks, None, batch]
        from_b = given.from_b[None, n, None, batch]
        for k in cute.range(k_tiles, unroll=1):
            loads.producer_acquire(write)
            barrier = loads.producer_get_barrier(write)
            cute.copy(
                given.atom_a, from_a[None, k], given.to_a[None, write.index],
                tma_bar_ptr=barrier, mcast_mask=given.mask_a,
            )  # fmt: skip
            cute.copy(
                given.atom_b, from_b[None, k], given.to_b[None, write.index],
                tma_bar_ptr=barrier, mcast_mask=given.mask_b,
            )  # fmt: skip
            write.advance()
        work = next_work(schedule, state)
    loads.producer_tail(write)


@cute.jit
def scheduler_warp(schedule, state, work):
    """Request tiles for the cluster until there are none."""
    requests = schedule.requests
    write = pipeline.make_pipeline_state(pipeline.PipelineUserType.ProducerConsumer, 1)
    while work.is_valid_tile:
        requests.producer_acquire(write)
        schedule.scheduler.advance_to_next_work(requests.producer_get_barrier(write))
        write.advance()
        work = next_work(schedule, state)
    requests.producer_tail(write)


@cute.jit
def mma_warp(
    mma, loads, sums, acc, sa, sb, is_leader, schedule, state, work, k_tiles,
    cfg: cute.Constexpr,
):  # fmt: skip
    """Multiply the tiles, each into the next stage of accumulators; of a pair, the leader does."""
    ra, rb = mma.make_fragment_A(sa), mma.make_fragment_B(sb)
    read = pipeline.make_pipeline_state(pipeline.PipelineUserType.Consumer, loads.num_stages)
    write = pipeline.make_pipeline_state(pipeline.PipelineUserType.Producer, cfg.acc_stages)
    while work.is_valid_tile:
        if is_leader:
            here = acc[None, None, None, write.index]
            sums.producer_acquire(write)
            mma.set(Field.ACCUMULATE, False)
            for _ in cute.range(k_tiles, unroll=1):
                loads.consumer_wait(read)
                stage = (None, None, None, read.index)
                cute.gemm(mma, here, ra[stage], rb[stage], here)
                mma.set(Field.ACCUMULATE, True)
                loads.consumer_release(read)
                read.advance()
            sums.producer_commit(write)
            write.advance()
        work = next_work(schedule, state)
    if is_leader:
        sums.producer_tail(write)


@cute.jit
def epilogue_warps(
    acc, sums, sc, gc, store_c, extras, part, shapes: cute.Constexpr, schedule, state, work,
    cfg: cute.Constexpr, epilogue_op: cute.Constexpr,
):  # fmt: skip
    """Store each tile: tensor memory to registers, the epilogue, shared memory, TMA."""
    thread = arch.thread_idx()[0]
    warp = arch.make_warp_uniform(arch.warp_idx())
    everyone = pipeline.NamedBarrier(_EPILOGUE_BARRIER, 32 * len(EPILOGUE_WARPS))
    whole_acc = transform_partitioned_tensor_layout(acc)
    whole_c = transform_partitioned_tensor_layout(gc)
    t2r, mine, values = epilogue_tmem_copy_and_partition(
        shapes, thread, whole_acc, whole_c, shapes.epi_tile, cfg.pair
    )
    out = cute.make_rmem_tensor(values.shape, shapes.c_dtype)
    r2s, registers, to_smem = epilogue_smem_copy_and_partition(shapes, t2r, out, thread, sc)
    of_c = cute.flat_divide(whole_c, shapes.epi_tile)
    staged, in_c = tma.tma_partition(
        store_c, 0, cute.make_layout(1), cute.group_modes(sc, 0, 2), cute.group_modes(of_c, 0, 2)
    )
    operands = divided_operands(extras, part, t2r, thread, shapes)
    stores = pipeline.PipelineTmaStore.create(num_stages=cfg.c_stages)
    read = pipeline.make_pipeline_state(pipeline.PipelineUserType.Consumer, cfg.acc_stages)
    number = cute.Int32(0)  # of the piece, over all tiles
    while work.is_valid_tile:
        m, n, batch = work.tile_idx
        tile = (m // cfg.blocks, n, batch)
        pieces = cute.group_modes(mine[None, None, None, None, None, read.index], 3, 5)
        targets = cute.group_modes(in_c[None, None, None, *tile], 1, 3)
        given = [cute.group_modes(x[None, None, None, None, None, *tile], 3, 5)
                 if isinstance(x, cute.Tensor) else x for x in operands]  # fmt: skip
        sums.consumer_wait(read)
        for i in cute.range(cute.size(pieces, mode=[3]), unroll=1):
            cute.copy(t2r, pieces[None, None, None, i], values)
            more = load_pieces(extras, given, i)
            out.store(
                epilogue.apply_epilogue(epilogue_op, values.load(), more, shapes.c_dtype).reshape(
                    out.shape
                )
            )
            slot = number % cfg.c_stages
            if warp == EPILOGUE_WARPS[0]:
                stores.producer_acquire()
            everyone.arrive_and_wait()  # the slot is free
            cute.copy(r2s, registers, to_smem[None, None, None, slot])
            arch.fence_view_async_shared()
            everyone.arrive_and_wait()  # the piece is in shared memory
            if warp == EPILOGUE_WARPS[0]:
                cute.copy(store_c, staged[None, slot], targets[None, i])
                stores.producer_commit()
            number += 1
        with arch.elect_one():
            sums.consumer_release(read)
        read.advance()
        work = next_work(schedule, state)
    if warp == EPILOGUE_WARPS[0]:
        stores.producer_tail()


def divided_operands(extras: Any, part: Any, t2r: Any, thread: Any, shapes: Shapes) -> list[Any]:
    """This thread's part of the coordinates of C and of each epilogue operand, by pieces; numbers
    stay.
    """
    if not extras:
        return []
    shape, operands = extras
    mine = t2r.get_slice(thread)

    def cut(x: Any) -> Any:
        tiles = part.partition_C(cute.local_tile(x, shapes.tiler[:2], (None,) * 3))
        whole = transform_partitioned_tensor_layout(tiles)
        return mine.partition_D(cute.flat_divide(whole, shapes.epi_tile))

    found = [cut(cute.make_identity_tensor(shape))]
    return found + [cut(x) if isinstance(x, cute.Tensor) else x for x in operands]


def load_pieces(extras: Any, given: Any, i: Any) -> list[Any]:
    """Load a thread's part of each epilogue operand for the piece `i`, zero outside of C."""
    if not extras:
        return []
    shape, operands = extras
    coords, *parts = given
    here = coords[None, None, None, i]
    loaded: list[Any] = []
    for x, whole in zip(parts, operands, strict=True):
        if isinstance(x, cute.Tensor):
            is_safe = True if epilogue.is_one_number(whole) else None
            values = epilogue.load_operand(x[None, None, None, i], here, shape, is_safe)
            x = values
        loaded.append(x)
    return loaded


def operand_kinds(a: Any, b: Any, c: Any) -> Kinds:
    """Element types, contiguous modes and accumulators; DSLTypeError unless all have three
    modes.
    """
    ranks = [cute.rank(x.layout) for x in (a, b, c)]
    if ranks != [3, 3, 3]:
        raise DSLTypeError(
            f"gemm: A, B and C have {', '.join(map(str, ranks))} modes",
            hint="A is (M, K, L), B (N, K, L) and C (M, N, L), with L batches",
        )
    major_a, major_b, major_c = (utils.LayoutEnum.from_tensor(x) for x in (a, b, c))
    acc = cute.Int32 if a.element_type.is_integer else cute.Float32
    types = (a.element_type, b.element_type, c.element_type)
    return Kinds(*types, major_a, major_b, major_c, acc)


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
):
    """Compute C = A B^T, or with `epilogue_op` C = epilogue_op(A B^T, *operands), on data-center
    Blackwell.

    `a` (M, K, L), `b` (N, K, L) and `c` (M, N, L) have L batches. Elements are Float16, BFloat16,
    8-bit floats, Int8, Uint8 (sm_100a) or Float32, which is read as TFloat32; any mode of the first
    two may be contiguous. Addresses and strides are multiples of 16 bytes. C may have any type that
    the accumulators (Float32, or Int32 of integers) convert to; the extent of its contiguous mode
    is a multiple of 16 bytes.

    `blocks` is the most resident blocks of a static schedule, usually the number of
    multiprocessors; the other parameters are those of `ops.hopper.gemm.gemm`. Raises DSLTypeError
    for operands that tcgen05.mma does not take and for a `cfg` that exceeds shared memory; asserts
    at run time that the extents fit together.
    """
    a, b = (
        cute.recast_tensor(x, cute.TFloat32) if x.element_type is cute.Float32 else x
        for x in (a, b)
    )
    kinds = operand_kinds(a, b, c)
    check_extents(a, b, c)
    along = 1 if kinds.major_c is utils.LayoutEnum.ROW_MAJOR else 0
    assert c.shape[along] * kinds.c.width % 128 == 0, "rows of C must be multiples of 16 bytes"
    mma = _tiled_mma(kinds, cfg)
    shapes = _shapes(mma, kinds, cfg)
    one_a, one_b = (cute.slice_(x, (None, None, None, 0)) for x in (shapes.a, shapes.b))
    load_a, tma_a = cute.nvgpu.make_tiled_tma_atom_A(
        sm100.cluster_shape_to_tma_atom_A(cfg.cluster, mma.thr_id), a, one_a, shapes.tiler, mma,
        shapes.vmnk,
    )  # fmt: skip
    load_b, tma_b = cute.nvgpu.make_tiled_tma_atom_B(
        sm100.cluster_shape_to_tma_atom_B(cfg.cluster, mma.thr_id), b, one_b, shapes.tiler, mma,
        shapes.vmnk,
    )  # fmt: skip
    store_c, tma_c = tma.make_tiled_tma_atom(
        tma.CopyBulkTensorTileS2GOp(), c, cute.slice_(shapes.c, (None, None, 0)), shapes.epi_tile
    )
    own = cfg.block_tile
    m, n, batches = c.shape
    tiles = (cute.ceil_div(m, own[0]), cute.ceil_div(n, own[1]), batches)
    if cute.const_expr(cfg.dynamic):
        params = utils.ClcDynamicPersistentTileSchedulerParams(
            tiles, (*cfg.cluster, 1), cfg.swizzle
        )
        grid = utils.ClcDynamicPersistentTileScheduler.get_grid_shape(params)
    else:
        params = utils.PersistentTileSchedulerParams(tiles, (*cfg.cluster, 1), cfg.swizzle)
        resident = cute.max(blocks // (cfg.cluster[0] * cfg.cluster[1]), 1)
        grid = utils.StaticPersistentTileScheduler.get_grid_shape(params, resident)
    gemm_kernel(
        mma, load_a, tma_a, load_b, tma_b, store_c, tma_c, params,
        (c.shape, operands) if epilogue_op is not None and operands else (),
        kinds, cfg, epilogue_op,
    ).launch(
        grid=grid,
        block=(32 * (7 if cfg.dynamic else 6), 1, 1),
        cluster=(*cfg.cluster, 1),
        stream=stream,
        min_blocks_per_mp=1,
    )  # fmt: skip
