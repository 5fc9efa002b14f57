"""Parts of GEMM kernels that load by TMA: shared memory, barriers, TMA atoms, the producer warp;
and of those that multiply by wgmma, one step of K.

The docstring of `ops.hopper.gemm` describes a block's work and introduces the names used here.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import basedsl_cute as cute
from basedsl import DSLTypeError, maximum
from basedsl_cute import arch, pipeline
from basedsl_cute.nvgpu import tma, warp, warpgroup
from basedsl_cute.ops.hopper.config import Config, HopperGemmKinds
from basedsl_cute.utils import hopper_helpers as sm90
from basedsl_cute.utils.tile_scheduler import (
    PersistentTileSchedulerParams,
    StaticPersistentTileScheduler,
)


class LoadParams(NamedTuple):
    """The parameters of a block's loads: their pipeline, and for A and B the TMA atom, the tensor
    of TMA coordinates and the stages in shared memory. If they are `in_parts`, A and B have one
    batch, and the matrices of C are products of successive steps of K.
    """

    pipeline: Any
    atom_a: Any
    tma_a: Any
    sa: Any
    atom_b: Any
    tma_b: Any
    sb: Any
    in_parts: bool = False


def as_tf32(x: Any) -> Any:
    """Reinterpret Float32 elements as TFloat32: the tensor core reads their upper 19 bits."""
    return cute.recast_tensor(x, cute.TFloat32) if x.element_type is cute.Float32 else x


def operand_kinds(a: Any, b: Any, c: Any) -> HopperGemmKinds:
    """Element types and contiguous modes of the operands A (M, K), B (N, K) and C (M, N).

    Raises DSLTypeError unless all three have two modes, or all have a third mode of batches.
    """
    ranks = {cute.rank(x.layout) for x in (a, b, c)}
    if len(ranks) != 1 or not ranks <= {2, 3}:
        raise DSLTypeError(
            f"gemm: A, B and C have {', '.join(str(cute.rank(x.layout)) for x in (a, b, c))} modes",
            notes=tuple((f"{name} is {x}", None) for name, x in (("A", a), ("B", b), ("C", c))),
            hint="A is (M, K), B (N, K), C (M, N), or all of them have a last mode of batches",
        )
    major_a, major_b, major_c = (sm90.LayoutEnum.from_tensor(x) for x in (a, b, c))
    types = (a.element_type, b.element_type, c.element_type)
    return HopperGemmKinds(*types, major_a, major_b, major_c, ranks == {3})


def check_majors(kinds: HopperGemmKinds) -> None:
    """Raise DSLTypeError for 8-bit and 32-bit operands whose K mode is not contiguous."""
    for name, dtype, major in (("A", kinds.a, kinds.major_a), ("B", kinds.b, kinds.major_b)):
        if dtype.width != 16 and major is not sm90.LayoutEnum.ROW_MAJOR:
            raise DSLTypeError(
                f"{name} of {dtype.__name__} must have K contiguous for wgmma",
                notes=(("wgmma transposes 16-bit elements only", None),),
                hint="pass a tensor whose K mode has stride 1, or convert to Float16 or BFloat16",
            )


def staged_layouts(kinds: HopperGemmKinds, cfg: Any) -> tuple[Any, Any]:
    """The shared-memory layouts of A (M, K, stages) and B (N, K, stages)."""
    return (
        sm90.make_smem_layout_a(kinds.major_a, cfg.tile, kinds.a, cfg.stages),
        sm90.make_smem_layout_b(kinds.major_b, cfg.tile, kinds.b, cfg.stages),
    )


def shared_layouts(kinds: HopperGemmKinds, cfg: Config) -> tuple[Any, Any, Any]:
    """The shared-memory layouts of A and B by stages, and of C by slots of each consumer."""
    return (
        *staged_layouts(kinds, cfg),
        sm90.make_smem_layout_epi(
            kinds.c, kinds.major_c, cfg.piece(kinds.c), cfg.slots * cfg.consumers
        ),
    )


def allocate_staged(smem: Any, dtype: Any, layout: Any) -> Any:
    """Allocate a shared-memory tensor of a swizzled, staged layout, aligned to 1024 bytes."""
    # A layout's swizzle counts elements; pointers swizzle addresses of bytes.
    swizzle = cute.recast_layout(8, dtype.width, layout.inner)
    return smem.allocate_tensor(dtype, layout.outer, 1024, swizzle)


class BlockMemory(NamedTuple):
    """The shared memory of a block, and this thread's warp: stages of A and B with the pipeline of
    their loads, slots of C, and the barrier of `pingpong` or None.
    """

    warp: Any
    pipeline: Any
    turn_order: Any
    sa: Any
    sb: Any
    sc: Any


def begin_block(kinds: HopperGemmKinds, cfg: Config) -> BlockMemory:
    """Allocate a block's shared memory and arrive at the barrier of its cluster, behind which all
    barriers are initialised: `pipeline.pipeline_init_wait` has to follow.
    """
    if cfg.overlap:
        # The next kernel may take over multiprocessors as they become free.
        arch.griddepcontrol_launch_dependents()
    layout_a, layout_b, layout_c = shared_layouts(kinds, cfg)
    smem = cute.utils.SmemAllocator()
    barriers = smem.allocate_array(cute.Int64, 2 * cfg.stages)
    sa = allocate_staged(smem, kinds.a, layout_a)
    sb = allocate_staged(smem, kinds.b, layout_b)
    sc = allocate_staged(smem, kinds.c, layout_c)
    warp = arch.make_warp_uniform(arch.warp_idx())
    turn_order = pingpong_order(smem, warp, cfg)
    loads = make_load_pipeline(barriers, kinds, cfg, defer_sync=True)
    pipeline.pipeline_init_arrive(cfg.cluster)
    return BlockMemory(warp, loads, turn_order, sa, sb, sc)


def tma_load_atoms(
    a: Any, b: Any, kinds: HopperGemmKinds, cfg: Any, l2_promotion: int = 256
) -> tuple[Any, Any]:
    """The TMA loads of A and B, each with its tensor of coordinates; multicast in a cluster."""
    (bm, bn, bk), (cm, cn) = cfg.tile, cfg.cluster
    more = {"l2_promotion": l2_promotion}
    in_a, in_b = (cute.slice_(x, (None, None, 0)) for x in staged_layouts(kinds, cfg))
    plain, multicast = tma.CopyBulkTensorTileG2SOp(), tma.CopyBulkTensorTileG2SMulticastOp()
    return (
        tma.make_tiled_tma_atom(multicast if cn > 1 else plain, a, in_a, (bm, bk), cn, **more),
        tma.make_tiled_tma_atom(multicast if cm > 1 else plain, b, in_b, (bn, bk), cm, **more),
    )


def tma_atoms(tensors: Any, kinds: HopperGemmKinds, cfg: Config) -> tuple[Any, Any, Any]:
    """The TMA loads of A and B and the TMA store of C, each with its tensor of coordinates."""
    a, b, c = tensors
    in_c = cute.slice_(shared_layouts(kinds, cfg)[2], (None, None, 0))
    store = tma.make_tiled_tma_atom(tma.CopyBulkTensorTileS2GOp(), c, in_c, cfg.piece(kinds.c))
    return (*tma_load_atoms(a, b, kinds, cfg, cfg.promotion), store)


def tile_schedule(shape: Any, blocks: Any, cfg: Any) -> tuple[Any, Any]:
    """The order of the tiles of C, whose shape is (M, N) or (M, N, L), and a persistent grid of at
    most `blocks` blocks.
    """
    (bm, bn, _), (cm, cn) = cfg.tile, cfg.cluster
    m, n, *batches = shape
    tiles = (cute.ceil_div(m, bm), cute.ceil_div(n, bn), *batches, 1)[:3]
    schedule = PersistentTileSchedulerParams(
        tiles, (cm, cn, 1), cfg.swizzle, cfg.along_m, apart=getattr(cfg, "apart", 1)
    )
    schedule = schedule.prepared()
    # The fewest clusters with the same number of rounds: idle multiprocessors leave power to them.
    rounds = cute.ceil_div(schedule.num_clusters, maximum(blocks // (cm * cn), 1))
    resident = cute.ceil_div(schedule.num_clusters, maximum(rounds, 1))
    return schedule, StaticPersistentTileScheduler.get_grid_shape(schedule, resident)


def pingpong_order(smem: Any, warp_idx: Any, cfg: Config) -> Any:
    """A barrier that has the consumers multiply in turn; None where they share each tile."""
    if not cfg.pingpong:
        return None
    return pipeline.PipelineOrder.create(
        barrier_storage=smem.allocate_array(cute.Int64, cfg.consumers),
        depth=1,
        length=cfg.consumers,
        group_id=warp_idx // 4 - 1,
        producer_group=pipeline.CooperativeGroup(pipeline.Agent.Thread, 128),
        defer_sync=True,
    )


def make_load_pipeline(
    barriers: Any, kinds: HopperGemmKinds, cfg: Any, defer_sync: bool = False
) -> Any:
    """The pipeline of TMA loads, from one producer warp to all consumers of its cluster."""
    (bm, bn, bk), (cm, cn) = cfg.tile, cfg.cluster
    return pipeline.PipelineTmaAsync.create(
        barrier_storage=barriers,
        num_stages=cfg.stages,
        producer_group=pipeline.CooperativeGroup(pipeline.Agent.Thread),
        consumer_group=pipeline.CooperativeGroup(
            pipeline.Agent.Thread, (cm + cn - 1) * cfg.warpgroups_per_tile * 4
        ),
        tx_count=(bm * kinds.a.width + bn * kinds.b.width) * bk // 8,
        cta_layout_vmnk=cute.make_layout((1, cm, cn, 1)),
        defer_sync=defer_sync,
    )


def cluster_position(cfg: Any) -> tuple[Any, Any, Any, Any]:
    """The block's position (M, N) in its cluster, and the multicast masks of its A and B."""
    cm, cn = cfg.cluster
    cta_layout = cute.make_layout((1, cm, cn, 1))
    rank = arch.make_warp_uniform(arch.block_idx_in_cluster())
    at_m, at_n = rank % cm, rank // cm
    mask_a = mask_b = None
    if cn > 1:
        mask_a = tma.create_tma_multicast_mask(cta_layout, (0, at_m, at_n, 0), 2)
    if cm > 1:
        mask_b = tma.create_tma_multicast_mask(cta_layout, (0, at_m, at_n, 0), 1)
    return at_m, at_n, mask_a, mask_b


def wait_for_predecessor(cfg: Any) -> None:
    """Wait until the preceding kernel has finished, before global memory is accessed."""
    if cfg.overlap:
        arch.griddepcontrol_wait()


class TileLoad(NamedTuple):
    """The TMA load of one operand's tiles: from where, by coordinates, and into which stages."""

    atom: Any
    tiles: Any
    stages: Any
    mask: Any  # of the blocks of the cluster that get the tile too

    def start(self, where: Any, stage: Any, barrier: Any) -> None:
        """Start to load the tile at `where` into a stage; `barrier` counts its bytes."""
        cute.copy(
            self.atom,
            self.tiles[None, where],
            self.stages[None, stage],
            tma_bar_ptr=barrier,
            mcast_mask=self.mask,
        )


def tile_loads(loads: LoadParams, cfg: Any) -> tuple[TileLoad, TileLoad]:
    """The loads of the tiles of A and of B by this block."""
    bm, bn, bk = cfg.tile
    cm, cn = cfg.cluster
    at_m, at_n, mask_a, mask_b = cluster_position(cfg)
    ga = cute.zipped_divide(loads.tma_a, (bm, bk))
    gb = cute.zipped_divide(loads.tma_b, (bn, bk))
    along_n, along_m = cute.make_layout(cn), cute.make_layout(cm)
    sa, sb = cute.group_modes(loads.sa, 0, 2), cute.group_modes(loads.sb, 0, 2)
    to_a, from_a = tma.tma_partition(loads.atom_a, at_n, along_n, sa, ga)
    to_b, from_b = tma.tma_partition(loads.atom_b, at_m, along_m, sb, gb)
    return (
        TileLoad(loads.atom_a, from_a, to_a, mask_a),
        TileLoad(loads.atom_b, from_b, to_b, mask_b),
    )


@cute.jit
def producer_warp(loads, scheduler, work, k_tiles, cfg: cute.Constexpr):
    """Load the tiles of A and B in the order in which consumers read them, by one warp. Every other
    tile of C takes K backwards. A, or B, may have batches or not.
    """
    load_a, load_b = tile_loads(loads, cfg)
    batched_a, batched_b = (cute.rank(x) == 3 for x in (loads.tma_a, loads.tma_b))
    filled = pipeline.make_pipeline_state(pipeline.PipelineUserType.Producer, cfg.stages)
    k, forward = cute.Int32(0), cute.Int32(1)
    wait_for_predecessor(cfg)
    while work.is_valid_tile:
        m, n, batch = work.tile_idx
        for _ in cute.range(k_tiles, unroll=1):
            loads.pipeline.producer_acquire(filled)
            barrier = loads.pipeline.producer_get_barrier(filled)
            at, of = (batch * k_tiles + k, 0) if loads.in_parts else (k, batch)
            load_a.start((m, at, of) if batched_a else (m, at), filled.index, barrier)
            load_b.start((n, at, of) if batched_b else (n, at), filled.index, barrier)
            filled.advance()
            k = k + forward
        k = k - forward
        forward = 0 - forward
        scheduler.advance_to_next_work()
        work = scheduler.get_current_work()
    loads.pipeline.producer_tail(filled)


def wgmma_over_warpgroups(kinds: HopperGemmKinds, warpgroups: int, shape: Any) -> Any:
    """A tiled MMA of `warpgroups` warpgroups along M, each with a wgmma of `shape` (M, N)."""
    majors = kinds.major_a.sm90_mma_major_mode(), kinds.major_b.sm90_mma_major_mode()
    return sm90.make_trivial_tiled_mma(
        kinds.a, kinds.b, *majors, kinds.acc, (warpgroups, 1, 1), shape
    )


def mma_fragments(
    sa: Any, sb: Any, row_block: Any, kinds: HopperGemmKinds, cfg: Config
) -> tuple[Any, ...]:
    """The tiled MMA of a tile, and the accumulator and fragments of A and B of one warpgroup:
    number `row_block` along M.
    """
    bm, bn, _ = cfg.tile
    mma = wgmma_over_warpgroups(kinds, cfg.warpgroups_per_tile, (64, bn))
    slice_ = mma.get_slice(row_block * 128)
    ra = mma.make_fragment_A(slice_.partition_A(sa))
    rb = mma.make_fragment_B(slice_.partition_B(sb))
    return mma, mma.make_fragment_C(mma.partition_shape_C((bm, bn))), ra, rb


def issue_mma(mma: Any, acc: Any, ra: Any, rb: Any, stage: Any) -> None:
    """Issue the wgmma instructions of one stage, which is one step of K, as one group."""
    warpgroup.fence()
    at = (None, None, None, stage)
    mma.gemm(acc, ra[at], rb[at], acc)
    warpgroup.commit_group()


def smem_store_atom(kinds: HopperGemmKinds, columns: int) -> Any:
    """The copy of a thread's accumulator elements to shared memory: stmatrix for 16-bit C."""
    if kinds.c.width != 16:
        return cute.make_copy_atom(cute.nvgpu.CopyUniversalOp(), kinds.c)
    is_column_major = kinds.major_c is sm90.LayoutEnum.COL_MAJOR
    return cute.make_copy_atom(
        warp.StMatrix8x8x16bOp(is_column_major, 4 if columns % 16 == 0 else 2), kinds.c
    )


@cute.jit
def first_mma_step(loads, mma, acc, ra, rb, read):
    """Multiply the first stage of a tile, which replaces what is in the accumulator."""
    mma.set(warpgroup.Field.ACCUMULATE, False)
    loads.consumer_wait(read)
    issue_mma(mma, acc, ra, rb, read.index)
    mma.set(warpgroup.Field.ACCUMULATE, True)
    read.advance()


@cute.jit
def end_mma_steps(loads, done):
    """Wait for a tile's last stage, and release it to the producer."""
    warpgroup.wait_group(0)
    loads.consumer_release(done)
    done.advance()


@cute.jit
def mma_step(loads, mma, acc, ra, rb, read, done):
    """Multiply one stage, and release the stage before it to the producer."""
    loads.consumer_wait(read)
    issue_mma(mma, acc, ra, rb, read.index)
    read.advance()
    warpgroup.wait_group(1)  # the step before this one is complete
    loads.consumer_release(done)
    done.advance()
