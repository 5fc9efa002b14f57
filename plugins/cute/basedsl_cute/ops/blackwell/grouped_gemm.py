"""C_g = A_g B_g^T for many groups at once on data-center Blackwell, with shapes and addresses in
device memory.

A_g is (M, K), B_g is (N, K), C_g is (M, N), of any extents, which the host need not know. The
kernel is that of `ops.blackwell.gemm`, except that warps find their tiles from the table of shapes,
and blocks make their tensor maps from the tables of addresses and strides: each has its own in
global memory, of A and B updated by the warp that loads, of C by the first of those that store.

TMA writes whole 16 bytes of a row, even beyond its end. A C whose rows do not begin and end at
multiples of 16 bytes is written by ordinary stores instead.
"""

from __future__ import annotations

import basedsl_cute as cute
from basedsl import DSLTypeError
from basedsl_cute import arch, pipeline, utils
from basedsl_cute.nvgpu import tma
from basedsl_cute.ops.blackwell.config import BlackwellGemmKinds, Config
from basedsl_cute.ops.blackwell.gemm import columns, load_atoms
from basedsl_cute.ops.blackwell.roles import (
    EPILOGUE_BARRIER,
    EPILOGUE_WARPS,
    FREE_BARRIER,
    MMA_WARP,
    TMA_WARP,
    Schedule,
    mma_warp,
    next_work,
    pipelines,
    tensor_memory,
)
from basedsl_cute.ops.blackwell.shapes import shapes_of, tiled_mma
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
from basedsl_cute.utils.gemm.sm100 import (
    epilogue_smem_copy_and_partition,
    epilogue_tmem_copy_and_partition,
    transform_partitioned_tensor_layout,
)
from basedsl_cute.utils.group_scheduler import (
    StaticPersistentGroupTileScheduler,
    create_initial_search_state,
)
from basedsl_cute.utils.tensormap_manager import TensorMapUpdateMode
from basedsl_cute.utils.tile_scheduler import PersistentTileSchedulerParams

__all__ = ["DEFAULT", "MAPS", "BlackwellGemmKinds", "Config", "grouped_gemm", "tables"]

DEFAULT = Config(dynamic=False)
MAPS = 3  # tensor maps of a block: of A, of B, of C


@cute.kernel
def grouped_kernel(
    mma: cute.TiledMma,
    load_a: tma.TmaAtom,
    load_b: tma.TmaAtom,
    store_c: tma.TmaAtom,
    tables: Tables,
    maps: cute.Tensor,
    params: PersistentTileSchedulerParams,
    kinds: cute.Constexpr,
    cfg: cute.Constexpr,
    update: cute.Constexpr,
):
    shapes = shapes_of(mma, kinds, cfg)
    warp = arch.make_warp_uniform(arch.warp_idx())
    x, y, cluster = arch.block_idx()
    v = x % cfg.blocks
    smem = utils.SmemAllocator()
    load_barriers = smem.allocate_array(cute.Int64, 2 * shapes.stages)
    acc_barriers = smem.allocate_array(cute.Int64, 2 * cfg.acc_stages)
    dealloc_barrier = smem.allocate_array(cute.Int64, 1)
    holder = smem.allocate_array(cute.Int32, 1)
    scratch = smem.allocate_array(cute.Int64, WORDS * MAPS, byte_alignment=128)
    sa = smem.allocate_tensor(kinds.a, shapes.a.outer, 1024, shapes.a.inner)
    sb = smem.allocate_tensor(kinds.b, shapes.b.outer, 1024, shapes.b.inner)
    sc = smem.allocate_tensor(kinds.c, shapes.c.outer, 1024, shapes.c.inner)
    loads, sums = pipelines(load_barriers, acc_barriers, shapes, kinds, cfg)
    tmem = tensor_memory(holder, dealloc_barrier, cfg)
    pipeline.pipeline_init_arrive(shapes.vmnk)
    fake = mma.make_fragment_C(cute.append(mma.partition_shape_C(cfg.tile), cfg.acc_stages))
    cm, cn = cfg.cluster
    own = OwnMaps(maps, x + cm * (y + cn * cluster), scratch, update)
    bm, bn = cfg.block_tile
    scheduler = StaticPersistentGroupTileScheduler.create(
        params,
        arch.block_idx(),
        arch.grid_dim(),
        (bm * cm, bn * cn, shapes.tiler[2]),
        create_initial_search_state(),
        tables.sizes.shape[0],
        tables.sizes,
    )
    schedule = Schedule(scheduler, None)
    state = pipeline.make_pipeline_state(pipeline.PipelineUserType.Consumer, 1)
    pipeline.pipeline_init_wait(shapes.vmnk)
    if warp == TMA_WARP:
        load_warp(mma, loads, load_a, load_b, sa, sb, schedule, state, tables, own, kinds, cfg)
    if warp == MMA_WARP:
        tmem.wait_for_alloc()
        acc = cute.make_tensor(tmem.retrieve_ptr(kinds.acc), fake.layout)
        work = scheduler.initial_work_tile_info()
        mma_warp(mma, loads, sums, acc, sa, sb, (), v == 0, schedule, state, work, None, cfg)
    if warp < MMA_WARP:
        tmem.allocate(columns(mma, shapes, fake))
        tmem.wait_for_alloc()
        start = tmem.retrieve_ptr(kinds.acc)
        acc = cute.make_tensor(start, fake.layout)
        epilogue_warps(mma, acc, sums, sc, store_c, schedule, state, tables, own, kinds, cfg)
        tmem.relinquish_alloc_permit()
        pipeline.NamedBarrier(FREE_BARRIER, 128).arrive_and_wait()
        tmem.free(start)


@cute.jit
def load_warp(
    mma, loads, load_a, load_b, sa, sb, schedule, state, tables, own, kinds: cute.Constexpr,
    cfg: cute.Constexpr,
):  # fmt: skip
    """Load the tiles of A and B by one warp, which updates their tensor maps for a new group."""
    shapes = shapes_of(mma, kinds, cfg)
    vmnk = shapes.vmnk
    place = vmnk.get_flat_coord(arch.make_warp_uniform(arch.block_idx_in_cluster()))
    mask_a = tma.create_tma_multicast_mask(vmnk, place, 2)
    mask_b = tma.create_tma_multicast_mask(vmnk, place, 1)
    m, n, k = shapes.tiler
    part = mma.get_slice(place[0])
    own.begin(load_a, 0, TMA_WARP)
    own.begin(load_b, 1, TMA_WARP)
    write = pipeline.make_pipeline_state(pipeline.PipelineUserType.Producer, loads.num_stages)
    current = cute.Int32(-1)
    work = schedule.scheduler.initial_work_tile_info()
    while work.is_valid_tile:
        at_m, at_n, g = work.tile_idx
        found = work.group_search_result
        rows, cols, depth = found.problem_shape_m, found.problem_shape_n, found.problem_shape_k
        if g != current and depth > 0:
            extents = rows, cols, depth
            change_operands(own, (load_a, load_b), tables, g, extents, kinds, TMA_WARP)
            current = g
        ga = cute.local_tile(cute.make_identity_tensor((rows, depth)), (m, k), (None, None))
        gb = cute.local_tile(cute.make_identity_tensor((cols, depth)), (n, k), (None, None))
        to_a, from_a = tma.tma_partition(
            load_a, place[2], cute.make_layout(cute.size(vmnk, mode=[2])),
            cute.group_modes(sa, 0, 3), cute.group_modes(part.partition_A(ga), 0, 3),
        )  # fmt: skip
        to_b, from_b = tma.tma_partition(
            load_b, place[1], cute.make_layout(cute.size(vmnk, mode=[1])),
            cute.group_modes(sb, 0, 3), cute.group_modes(part.partition_B(gb), 0, 3),
        )  # fmt: skip
        for i in cute.range(found.cta_tile_count_k, unroll=1):
            loads.producer_acquire(write)
            barrier = loads.producer_get_barrier(write)
            cute.copy(
                load_a, from_a[None, at_m // cfg.blocks, i], to_a[None, write.index],
                tma_bar_ptr=barrier, mcast_mask=mask_a, tma_desc_ptr=own.place(0),
            )  # fmt: skip
            cute.copy(
                load_b, from_b[None, at_n, i], to_b[None, write.index],
                tma_bar_ptr=barrier, mcast_mask=mask_b, tma_desc_ptr=own.place(1),
            )  # fmt: skip
            write.advance()
        work = next_work(schedule, state)
    loads.producer_tail(write)


@cute.jit
def epilogue_warps(
    mma, acc, sums, sc, store_c, schedule, state, tables, own, kinds: cute.Constexpr,
    cfg: cute.Constexpr,
):  # fmt: skip
    """Store each tile, by TMA where C allows it."""
    shapes = shapes_of(mma, kinds, cfg)
    thread = arch.thread_idx()[0]
    warp = arch.make_warp_uniform(arch.warp_idx())
    storer = EPILOGUE_WARPS[0]
    everyone = pipeline.NamedBarrier(EPILOGUE_BARRIER, 32 * len(EPILOGUE_WARPS))
    part = mma.get_slice(arch.block_idx()[0] % cfg.blocks)
    whole_acc = transform_partitioned_tensor_layout(acc)
    one_tile = part.partition_C(
        cute.local_tile(cute.make_identity_tensor(cfg.tile), cfg.tile, (None, None))
    )
    t2r, mine, values = epilogue_tmem_copy_and_partition(
        shapes, thread, whole_acc, transform_partitioned_tensor_layout(one_tile), shapes.epi_tile,
        cfg.pair,
    )  # fmt: skip
    out = cute.make_rmem_tensor(values.shape, shapes.c_dtype)
    r2s, registers, to_smem = epilogue_smem_copy_and_partition(shapes, t2r, out, thread, sc)
    stores = pipeline.PipelineTmaStore.create(num_stages=cfg.c_stages)
    own.begin(store_c, 2, storer)
    read = pipeline.make_pipeline_state(pipeline.PipelineUserType.Consumer, cfg.acc_stages)
    number = cute.Int32(0)  # of the piece, over all tiles
    current, by_tma = cute.Int32(-1), cute.Boolean(False)
    work = schedule.scheduler.initial_work_tile_info()
    while work.is_valid_tile:
        m, n, g = work.tile_idx
        found = work.group_search_result
        c = tables.matrix(
            g, 2, (found.problem_shape_m, found.problem_shape_n), kinds, kinds.c.width // 8
        )
        if g != current:
            by_tma = can_tma_store(c, contiguous_mode(2, kinds))
            if by_tma and warp == storer:
                arch.cp_async_bulk_wait_group(0, read=False)
                own.change((store_c,), 2, (c,), storer)
        current = g
        gc = cute.local_tile(cute.make_identity_tensor(c.shape), cfg.tile, (None, None))
        whole_c = transform_partitioned_tensor_layout(part.partition_C(gc))
        of_c = cute.flat_divide(whole_c[None, None, m // cfg.blocks, n], shapes.epi_tile)
        staged, in_c = tma.tma_partition(
            store_c, 0, cute.make_layout(1), cute.group_modes(sc, 0, 2),
            cute.group_modes(of_c, 0, 2),
        )  # fmt: skip
        targets = cute.group_modes(in_c, 1, 3)
        places = cute.group_modes(t2r.get_slice(thread).partition_D(of_c), 3, 5)
        pieces = cute.group_modes(mine[None, None, None, None, None, read.index], 3, 5)
        sums.consumer_wait(read)
        for i in cute.range(cute.size(pieces, mode=[3]), unroll=1):
            if found.cta_tile_count_k > 0:
                cute.copy(t2r, pieces[None, None, None, i], values)
            else:
                values.fill(0)  # nothing was multiplied
            out.store(values.load().to(shapes.c_dtype))
            if by_tma:
                slot = number % cfg.c_stages
                if warp == storer:
                    stores.producer_acquire()
                everyone.arrive_and_wait()  # the slot is free
                cute.copy(r2s, registers, to_smem[None, None, None, slot])
                arch.fence_view_async_shared()
                everyone.arrive_and_wait()  # the piece is in shared memory
                if warp == storer:
                    at = own.place(2)
                    cute.copy(store_c, staged[None, slot], targets[None, i], tma_desc_ptr=at)
                    stores.producer_commit()
                number += 1
            else:
                at = places[None, None, None, i]
                for j in cute.range_constexpr(cute.size(out)):
                    if cute.elem_less(at[j], c.shape):
                        c[at[j]] = out[j]
        with arch.elect_one():
            sums.consumer_release(read)
        read.advance()
        work = next_work(schedule, state)
    if warp == storer:
        stores.producer_tail()


@cute.jit
def grouped_gemm(
    sizes: cute.Tensor,
    strides: cute.Tensor,
    addresses: cute.Tensor,
    maps: cute.Tensor,
    kinds: cute.Constexpr,
    cfg: cute.Constexpr = DEFAULT,
    update: cute.Constexpr = TensorMapUpdateMode.SMEM,
    stream: cute.Constexpr = None,
):
    """Compute C_g = A_g B_g^T for all groups g on data-center Blackwell, by tables in device
    memory.

    `sizes` is (groups, 4) of Int32: M, N, K, 1. `strides` is (groups, 3, 2) of Int32: those of A
    (M, K), B (N, K) and C (M, N) in elements; that of the contiguous mode is not read. `addresses`
    is (groups, 3) of Int64, in bytes. `tables` makes all three from arrays. `kinds` gives the
    element types (of `ops.blackwell.gemm`), the contiguous modes, the same for all groups, and
    the accumulators' type.

    Addresses and other strides of A and B must be multiples of 16 bytes, which is asserted (on the
    simulator, and on a GPU with assertions enabled). A C with such an address, strides and extent
    of its contiguous mode is written by TMA, another one by ordinary stores.

    `maps` is a workspace of (blocks, MAPS, 16) Int64 elements at a multiple of 128 bytes; its first
    extent is the number of resident blocks, rounded down to whole clusters. `cfg` has a static
    schedule, whose `swizzle` makes no difference. `update` says where tensor maps are changed: in
    shared memory or in `maps` itself. Raises DSLTypeError for a dynamic schedule.
    """
    if cfg.dynamic:
        raise DSLTypeError("groups are dealt by a static schedule", hint="Config(dynamic=False)")
    a, b = (cute.TFloat32 if x is cute.Float32 else x for x in (kinds.a, kinds.b))
    kinds = kinds._replace(a=a, b=b)
    mma = tiled_mma(kinds, cfg)
    shapes = shapes_of(mma, kinds, cfg)
    like_a, like_b, like_c = patterns(maps, kinds)
    (load_a, _), (load_b, _) = load_atoms(like_a, like_b, mma, shapes, kinds, cfg)
    store_c, _ = tma.make_tiled_tma_atom(
        tma.CopyBulkTensorTileS2GOp(), like_c, cute.slice_(shapes.c, (None, None, 0)),
        shapes.epi_tile,
    )  # fmt: skip
    cm, cn = cfg.cluster
    clusters = maps.shape[0] // (cm * cn)
    params = PersistentTileSchedulerParams((cm, cn, clusters), (cm, cn, 1))
    grouped_kernel(
        mma, load_a, load_b, store_c, Tables(sizes, strides, addresses), maps, params, kinds, cfg,
        update,
    ).launch(
        grid=(cm, cn, clusters),
        block=(32 * 6, 1, 1),
        cluster=(cm, cn, 1),
        stream=stream,
        min_blocks_per_mp=1,
    )  # fmt: skip
