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

from typing import Any

import basedsl_cute as cute
from basedsl import DSLTypeError
from basedsl_cute import arch, pipeline, utils
from basedsl_cute.nvgpu import tcgen05, tma
from basedsl_cute.ops.blackwell.config import DEFAULT, BlackwellGemmKinds, Config, choose_config
from basedsl_cute.ops.blackwell.epilogue import epilogue_warps
from basedsl_cute.ops.blackwell.roles import (
    FREE_BARRIER,
    MMA_WARP,
    SCHEDULER_WARP,
    TMA_WARP,
    Loads,
    Schedule,
    divided,
    load_warp,
    mma_warp,
    pipelines,
    scale_copies,
    scheduler_warp,
    tensor_memory,
)
from basedsl_cute.ops.blackwell.shapes import scale_mma, shapes_of, tiled_mma
from basedsl_cute.ops.gemm.operands import check_extents
from basedsl_cute.utils import blackwell_helpers as sm100

__all__ = ["DEFAULT", "Config", "choose_config", "gemm", "launch_gemm", "operand_kinds"]

_THREAD = pipeline.Agent.Thread


@cute.kernel
def gemm_kernel(
    mma: cute.TiledMma,
    given: tuple,
    store_c: tma.TmaAtom,
    tma_c: cute.Tensor,
    params: Any,
    extras: tuple,
    factors_c: tuple,
    kinds: cute.Constexpr,
    cfg: cute.Constexpr,
    epilogue_op: cute.Constexpr,
):
    shapes = shapes_of(mma, kinds, cfg)
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
    in_a, in_b = kinds.stored
    sa = smem.allocate_tensor(in_a, shapes.a.outer, 1024, shapes.a.inner)
    sb = smem.allocate_tensor(in_b, shapes.b.outer, 1024, shapes.b.inner)
    sc = smem.allocate_tensor(kinds.c, shapes.c.outer, 1024, shapes.c.inner)
    staged_scales: Any = ()
    if cute.const_expr(shapes.scales is not None):
        staged_scales = tuple(
            smem.allocate_tensor(kinds.scale, x, 128) for x in (shapes.scales.a, shapes.scales.b)
        )
    if warp == TMA_WARP:
        for atom in (*(x[0] for x in given), store_c):
            tma.prefetch_descriptor(atom)
    loads, sums = pipelines(load_barriers, acc_barriers, shapes, kinds, cfg)
    requests = None
    if cute.const_expr(cfg.dynamic):
        readers = 32 * (1 + 6 * cute.size(vmnk))
        requests = pipeline.PipelineClcFetchAsync.create(
            barrier_storage=request_barriers,
            num_stages=1,
            producer_group=pipeline.CooperativeGroup(_THREAD),
            consumer_group=pipeline.CooperativeGroup(_THREAD, readers),
            cta_layout_vmnk=vmnk,
            defer_sync=True,
        )
    tmem = tensor_memory(holder, dealloc_barrier, cfg)
    pipeline.pipeline_init_arrive(vmnk)
    m, n, k = shapes.tiler
    part = mma.get_slice(v)
    (load_a, tma_a), (load_b, tma_b), *of_scales = given
    ga = part.partition_A(cute.local_tile(tma_a, (m, k), (None,) * 3))
    gb = part.partition_B(cute.local_tile(tma_b, (n, k), (None,) * 3))
    gc = part.partition_C(cute.local_tile(tma_c, (m, n), (None,) * 3))
    in_row = (place[2], cute.size(vmnk, mode=[2]))
    in_column = (place[1], cute.size(vmnk, mode=[1]))
    mask_a = tma.create_tma_multicast_mask(vmnk, place, 2)
    mask_b = tma.create_tma_multicast_mask(vmnk, place, 1)
    along_m = [divided(load_a, *in_row, sa, ga, mask_a)]
    along_n = [divided(load_b, *in_column, sb, gb, mask_b)]
    if cute.const_expr(shapes.scales is not None):
        (load_sa, tma_sa), (load_sb, tma_sb) = of_scales
        own = scale_mma(kinds, cfg).get_slice(0)
        rows = shapes.scales.rows_b
        gsa = part.partition_A(cute.local_tile(tma_sa, (m, k), (None,) * 3))
        gsb = own.partition_B(cute.local_tile(tma_sb, (rows, k), (None,) * 3))
        there = shapes.scales.vmnk.get_flat_coord(rank)
        in_scales = (there[1], cute.size(shapes.scales.vmnk, mode=[1]))
        mask = tma.create_tma_multicast_mask(shapes.scales.vmnk, there, 1)
        along_m.append(divided(load_sa, *in_row, staged_scales[0], gsa, mask_a))
        along_n.append(divided(load_sb, *in_scales, staged_scales[1], gsb, mask))
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
        load_warp(Loads(loads, along_m, along_n), schedule, state, work, k_tiles, cfg)
    if cute.const_expr(cfg.dynamic):
        if warp == SCHEDULER_WARP and rank == 0:
            scheduler_warp(schedule, state, work)
    if warp == MMA_WARP:
        tmem.wait_for_alloc()
        start = tmem.retrieve_ptr(kinds.acc)
        acc = cute.make_tensor(start, fake.layout)
        scales: Any = ()
        if cute.const_expr(shapes.scales is not None):
            scales = scales_in_tensor_memory(mma, shapes, start, fake, staged_scales, cfg)
        mma_warp(mma, loads, sums, acc, sa, sb, scales, v == 0, schedule, state, work, k_tiles, cfg)
    if warp < MMA_WARP:
        tmem.allocate(columns(mma, shapes, fake))
        tmem.wait_for_alloc()
        start = tmem.retrieve_ptr(kinds.acc)
        acc = cute.make_tensor(start, fake.layout)
        epilogue_warps(
            acc, sums, sc, gc, store_c, extras, factors_c, part, shapes, schedule, state, work, cfg,
            epilogue_op, kinds.form,
        )  # fmt: skip
        tmem.relinquish_alloc_permit()
        pipeline.NamedBarrier(FREE_BARRIER, 128).arrive_and_wait()
        tmem.free(start)


def columns(mma: Any, shapes: Any, accumulators: Any) -> int:
    """Return the columns of tensor memory that the accumulators and scale factors take."""
    used = int(tcgen05.find_tmem_tensor_col_offset(accumulators))
    if shapes.scales is not None:
        for layout in shapes.scales.in_tensor_memory(mma, shapes.tiler):
            pointer = cute.make_ptr(shapes.scales.dtype, 0, cute.AddressSpace.tmem)
            used += int(tcgen05.find_tmem_tensor_col_offset(cute.make_tensor(pointer, layout)))
    return max(32, 1 << (used - 1).bit_length())


def scales_in_tensor_memory(
    mma: Any, shapes: Any, start: Any, accumulators: Any, staged: Any, cfg: Config
) -> tuple[Any, Any, Any]:
    """Return the scale factors of A and B behind the accumulators, with the copies to there."""
    behind = start + tcgen05.find_tmem_tensor_col_offset(accumulators)
    placed = []
    for layout in shapes.scales.in_tensor_memory(mma, shapes.tiler):
        pointer = cute.recast_ptr(behind, dtype=shapes.scales.dtype)
        placed.append(cute.make_tensor(pointer, layout))
        behind = behind + tcgen05.find_tmem_tensor_col_offset(placed[-1])
    group = tcgen05.CtaGroup.TWO if cfg.pair else tcgen05.CtaGroup.ONE
    copies = scale_copies(group, shapes.scales.dtype, zip(staged, placed, strict=True))
    return placed[0], placed[1], copies


def operand_kinds(a: Any, b: Any, c: Any) -> BlackwellGemmKinds:
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
    return BlackwellGemmKinds(*types, major_a, major_b, major_c, acc)


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
    mma = tiled_mma(kinds, cfg)
    shapes = shapes_of(mma, kinds, cfg)
    given = load_atoms(a, b, mma, shapes, kinds, cfg)
    launch_gemm(mma, given, c, blocks, kinds, cfg, epilogue_op, operands, (), stream)


def load_atoms(
    a: Any, b: Any, mma: Any, shapes: Any, kinds: BlackwellGemmKinds, cfg: Config
) -> tuple[Any, ...]:
    """Return the TMA atoms of A and B with their tensors of coordinates."""
    made = []
    for x, layout, stored, atom_of, cluster_atom in (
        (a, shapes.a, kinds.stored[0], cute.nvgpu.make_tiled_tma_atom_A,
         sm100.cluster_shape_to_tma_atom_A),
        (b, shapes.b, kinds.stored[1], cute.nvgpu.make_tiled_tma_atom_B,
         sm100.cluster_shape_to_tma_atom_B),
    ):  # fmt: skip
        made.append(
            atom_of(
                cluster_atom(cfg.cluster, mma.thr_id),
                x,
                cute.slice_(layout, (None, None, None, 0)),
                shapes.tiler,
                mma,
                shapes.vmnk,
                internal_type=None if stored is x.element_type else stored,
            )
        )
    return tuple((x.atom, x.tma_tensor) for x in made)


@cute.jit
def launch_gemm(
    mma,
    given,
    c,
    blocks,
    kinds: cute.Constexpr,
    cfg: cute.Constexpr,
    epilogue_op: cute.Constexpr,
    operands,
    factors_c,
    stream: cute.Constexpr,
):
    """Launch the kernel on the loads `given`, one block or pair for each tile of C."""
    shapes = shapes_of(mma, kinds, cfg)
    along = 1 if kinds.major_c is utils.LayoutEnum.ROW_MAJOR else 0
    assert c.shape[along] * kinds.c.width % 128 == 0, "rows of C must be multiples of 16 bytes"
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
        mma, given, store_c, tma_c, params,
        (c.shape, operands) if (epilogue_op is not None and operands) or factors_c else (),
        factors_c, kinds, cfg, epilogue_op,
    ).launch(
        grid=grid,
        block=(32 * (7 if cfg.dynamic else 6), 1, 1),
        cluster=(*cfg.cluster, 1),
        stream=stream,
        min_blocks_per_mp=1,
    )  # fmt: skip
