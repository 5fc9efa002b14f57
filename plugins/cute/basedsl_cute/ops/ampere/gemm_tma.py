"""C = epilogue(A B^T) by mma.sync with TMA loads (sm_90 and later).

Issuing a cp.async takes time from the tensor cores, whatever it moves
(`bench/gpu/mma_sync_bound.cu`), so this kernel replaces the copies of `ops.ampere.gemm` by TMA: one
producer warp loads tiles of A and B into a ring of swizzled stages, as in `ops.hopper.gemm`, and
goes on to the next tile while the last one is in its epilogue. Each consumer warp has a part of the
tile in registers, reads fragments by ldmatrix one block of K ahead of the multiplication, and
writes the epilogue's result from registers.

Addresses, rows (columns, if those are contiguous) and batches of A and B begin at multiples of
16 bytes; C has any extents.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import basedsl_cute as cute
from basedsl import DSLTypeError
from basedsl_cute import arch, pipeline
from basedsl_cute.hardware.targets import MAX_REGISTERS_PER_THREAD, REGISTERS_PER_SM
from basedsl_cute.nvgpu import tma
from basedsl_cute.ops.ampere import gemm as ampere_gemm
from basedsl_cute.ops.ampere.mainloop import (
    FragmentLoader,
    WarpEpilogue,
    check_tile,
    instruction,
    make_mma,
)
from basedsl_cute.ops.gemm.operands import check_extents, matrix, three_modes, transposed
from basedsl_cute.ops.hopper.collective import (
    LoadParams,
    allocate_staged,
    as_tf32,
    make_load_pipeline,
    operand_kinds,
    producer_warp,
    staged_layouts,
    tile_schedule,
    tma_load_atoms,
    wait_for_predecessor,
)
from basedsl_cute.utils.tile_scheduler import (
    PersistentTileSchedulerParams,
    StaticPersistentTileScheduler,
)


@dataclass(frozen=True)
class Config(ampere_gemm.Config):
    """The static configuration: that of `ops.ampere.gemm`, and three more fields.

    `warps` counts the consumer warps, a multiple of 4. Four more form the producer's warpgroup: one
    issues TMA loads, three exit at once. `is_full` promises multiples of the tile for M and N only.
    """

    cluster: tuple[int, int] = (1, 1)  # blocks along (M, N) that multicast B and A to each other
    overlap: bool = True  # programmatic dependent launch: begins while its predecessor ends
    producer_registers: int = 24

    @property
    def warpgroups_per_tile(self) -> int:
        """The number of warpgroups that work on a tile."""
        return self.warps[0] * self.warps[1] // 4

    @property
    def threads(self) -> int:
        return 128 * (self.warpgroups_per_tile + 1)

    @property
    def consumer_registers(self) -> int:
        """Registers of a consumer's thread, given up by the producer's: see the property of
        `ops.hopper.config.Config`.
        """
        launched = REGISTERS_PER_SM // (self.blocks_per_sm * self.threads)
        launched = min(MAX_REGISTERS_PER_THREAD, launched) // 8 * 8
        shared = launched * (self.warpgroups_per_tile + 1) - self.producer_registers
        return min(240, shared // self.warpgroups_per_tile // 8 * 8)

    def smem_bytes(self, width: int) -> int:
        """Shared memory of a block in bytes, with 1024 for barriers; operands have `width` bits."""
        return 1024 + super().smem_bytes(width)


def choose_config(
    m: int,
    n: int,
    k: int,
    width: int,
    processors: int,
    smem: int,
    batches: int = 1,
    pairs: bool = True,
) -> Config:
    """A configuration by the model of `ops.ampere.gemm.choose_config`.

    With `pairs`, two blocks along M of the largest tiles share the loads of B in a cluster: tensor
    cores are as fast as the power that L2 leaves them.
    """
    found = ampere_gemm.choose_config(m, n, k, width, processors, smem, batches, Config)
    assert isinstance(found, Config)
    if pairs and found.blocks_per_sm == 1 and -(-m // found.tile[0]) % 2 == 0:
        return replace(found, cluster=(2, 1))
    return found


@cute.kernel
def gemm_kernel(
    load_a: tma.TmaAtom,
    tma_a: cute.Tensor,
    load_b: tma.TmaAtom,
    tma_b: cute.Tensor,
    c: cute.Tensor,
    operands: tuple,
    schedule: PersistentTileSchedulerParams,
    k_tiles: cute.Int32,
    op: cute.Constexpr,
    kinds: cute.Constexpr,
    cfg: cute.Constexpr,
    epilogue: cute.Constexpr,
):
    if cute.const_expr(cfg.overlap):
        arch.griddepcontrol_launch_dependents()
    layout_a, layout_b = staged_layouts(kinds, cfg)
    smem = cute.utils.SmemAllocator()
    barriers = smem.allocate_array(cute.Int64, 2 * cfg.stages)
    sa = allocate_staged(smem, kinds.a, layout_a)
    sb = allocate_staged(smem, kinds.b, layout_b)

    warp = arch.make_warp_uniform(arch.warp_idx())
    load_pipeline = make_load_pipeline(barriers, kinds, cfg, defer_sync=True)
    pipeline.pipeline_init_arrive(cfg.cluster)
    if warp == 0:
        tma.prefetch_descriptor(load_a)
        tma.prefetch_descriptor(load_b)
    scheduler = StaticPersistentTileScheduler.create(schedule, arch.block_idx(), arch.grid_dim())
    pipeline.pipeline_init_wait(cfg.cluster)
    if warp < 4:
        arch.setmaxregister_decrease(cfg.producer_registers)
        if warp == 0:
            work = scheduler.initial_work_tile_info()
            loads = LoadParams(load_pipeline, load_a, tma_a, sa, load_b, tma_b, sb)
            producer_warp(loads, scheduler, work, k_tiles, cfg)
    else:
        arch.setmaxregister_increase(cfg.consumer_registers)
        stages = (load_pipeline, sa, sb)
        consumer_warps(stages, scheduler, (c, operands), k_tiles, op, kinds, cfg, epilogue)


@cute.jit
def consumer_warps(
    stages, scheduler, output, k_tiles,
    op: cute.Constexpr, kinds: cute.Constexpr, cfg: cute.Constexpr, epilogue: cute.Constexpr,
):  # fmt: skip
    """Multiply one warp's part of each tile and store what the epilogue makes of it.

    `stages` is the load pipeline with the stages of A and B, `output` C with the epilogue's
    operands.
    """
    (loads, sa, sb), (c, operands) = stages, output
    bm, bn, bk = cfg.tile
    thread = arch.thread_idx()[0] - 128
    mma = make_mma(op, cfg)
    acc = mma.make_fragment_C(mma.partition_shape_C((bm, bn)))
    ra = mma.make_fragment_A(mma.partition_shape_A((bm, bk)))
    rb = mma.make_fragment_B(mma.partition_shape_B((bn, bk)))
    read_a = FragmentLoader(cute.make_tiled_copy_A, kinds.major_a, mma, sa, ra, thread)
    read_b = FragmentLoader(cute.make_tiled_copy_B, kinds.major_b, mma, sb, rb, thread)
    warp_epilogue = WarpEpilogue(c, operands, op, epilogue, cfg, thread)

    read = pipeline.make_pipeline_state(pipeline.PipelineUserType.Consumer, cfg.stages)
    wait_for_predecessor(cfg)
    more = scheduler.get_current_work().is_valid_tile
    while more:
        acc.fill(0)
        loads.consumer_wait(read)
        read_a.load(0, read.index)
        read_b.load(0, read.index)
        for _ in cute.range(1, k_tiles, unroll=1):
            mma_step(loads, read, read_a, read_b, mma, acc, ra, rb, False)
        mma_step(loads, read, read_a, read_b, mma, acc, ra, rb, True)
        warp_epilogue.store(
            acc, scheduler.get_current_work().tile_idx
        )  # asked late: saves registers
        scheduler.advance_to_next_work()
        more = scheduler.get_current_work().is_valid_tile


@cute.jit
def mma_step(loads, read, read_a, read_b, mma, acc, ra, rb, is_last: cute.Constexpr):
    """Multiply one stage, whose first fragments are loaded already, and release it. Unless it is
    the last of its tile, load the first fragments of the next stage.
    """
    blocks = cute.size(ra, mode=[2])
    following = read.clone()
    following.advance()
    is_full = None
    for k in cute.range_constexpr(blocks):
        if cute.const_expr(k + 1 < blocks):
            read_a.load(k + 1, read.index)
            read_b.load(k + 1, read.index)
        elif cute.const_expr(not is_last):
            loads.consumer_wait(following, is_full)
            read_a.load(0, following.index)
            read_b.load(0, following.index)
        if cute.const_expr(k + 2 == blocks and not is_last):
            is_full = loads.consumer_try_wait(following)  # asked early, to hide its latency
        issue_mma(mma, acc, ra, rb, k)
    loads.consumer_release(read)
    read.advance()


def issue_mma(mma, acc, ra, rb, k):
    """Multiply block `k` of K. Every other row of instructions goes backwards, so that each shares
    an operand's registers with the one before it, which takes less power.
    """
    columns = cute.size(acc, mode=[2])
    for i in range(cute.size(acc, mode=[1])):
        for j in range(columns):
            j = columns - 1 - j if (i + k) % 2 else j
            sums = acc[None, i, j]
            cute.gemm(mma, sums, ra[None, i, k], rb[None, j, k], sums)


def check_config(cfg, op):
    """Raise DSLTypeError for a tile that the warps do not divide and for warps that do not form
    whole warpgroups.
    """
    check_tile(cfg, op)
    if cfg.warps[0] * cfg.warps[1] % 4:
        raise DSLTypeError(
            f"{cfg.warps[0]} x {cfg.warps[1]} warps do not form whole warpgroups",
            hint="take a multiple of 4",
        )


@cute.jit
def gemm(
    a: cute.Tensor,
    b: cute.Tensor,
    c: cute.Tensor,
    blocks: cute.Int32,
    cfg: cute.Constexpr = Config((128, 128, 64), (2, 2)),
    epilogue_op: cute.Constexpr = None,
    operands: tuple = (),
    vector: cute.Constexpr = 1,
    acc_dtype: cute.Constexpr = None,
    stream: cute.Constexpr = None,
):
    """Compute C = A B^T, or with `epilogue_op` C = epilogue_op(A B^T, *operands), by mma.sync with
    TMA loads.

    The parameters are those of `ops.ampere.gemm.gemm`, except that addresses and strides of A and B
    must be multiples of 16 bytes, and `vector` is the number of elements of C that one access
    writes: the caller promises that address and strides allow it.
    """
    c = matrix(c, vector)
    a, b = as_tf32(three_modes(a)), as_tf32(three_modes(b))
    check_extents(a, b, c)
    operands = tuple(map(three_modes, operands))
    if cute.const_expr(c.leading_dim == 0):  # C^T = B A^T has contiguous rows
        a, b, c = b, a, transposed(c)
        operands = tuple(map(transposed, operands))
    kinds = operand_kinds(a, b, c)
    op = instruction(a.element_type, acc_dtype)
    check_config(cfg, op)
    (load_a, tma_a), (load_b, tma_b) = tma_load_atoms(a, b, kinds, cfg)
    schedule, grid = tile_schedule(c.shape, blocks, cfg)
    gemm_kernel(
        load_a,
        tma_a,
        load_b,
        tma_b,
        c,
        operands,
        schedule,
        cute.ceil_div(a.shape[1], cfg.tile[2]),
        op,
        kinds,
        cfg,
        epilogue_op,
    ).launch(
        grid=grid,
        block=(cfg.threads, 1, 1),
        cluster=(*cfg.cluster, 1),
        stream=stream,
        min_blocks_per_mp=cfg.blocks_per_sm,
        use_pdl=cfg.overlap,
    )
