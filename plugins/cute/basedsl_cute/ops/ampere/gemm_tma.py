"""C = epilogue(A B^T) by mma.sync, fed by TMA (sm_90 and later): `ampere_gemm` without its copies.

Issuing a cp.async takes time from the tensor cores, whatever it moves
(`bench/gpu/mma_sync_bound.cu`). Here one warp loads tiles of A and B by TMA into a ring of swizzled
stages, as in `hopper_gemm`, and goes on to the next tile while the last one is in its epilogue. The
others have each a part of the tile in registers, read fragments by ldmatrix, one block of K ahead
of what they multiply, and write what the epilogue makes of it from registers.

A and B begin at multiples of 16 bytes, as do their rows (columns, if those are contiguous), and
batches; C has any extents.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import basedsl_cute as cute
from basedsl.errors import DSLTypeError
from basedsl_cute import arch, pipeline
from basedsl_cute.hardware.targets import MAX_REGISTERS_PER_THREAD, REGISTERS_PER_SM
from basedsl_cute.nvgpu import tma
from basedsl_cute.ops.ampere import gemm as ampere_gemm
from basedsl_cute.ops.ampere.mainloop import Epilogue, Fragments, check_tile, instruction, make_mma
from basedsl_cute.ops.gemm.operands import check_extents, matrix, three_modes, transposed
from basedsl_cute.ops.hopper.collective import (
    allocate,
    as_tf32,
    kinds_of,
    load_atoms,
    produce,
    ring_of_stages,
    schedule_of,
    staged_layouts,
    wait_for_predecessor,
)
from basedsl_cute.utils.tile_scheduler import (
    PersistentTileSchedulerParams,
    StaticPersistentTileScheduler,
)


@dataclass(frozen=True)
class Config(ampere_gemm.Config):
    """What is chosen at compile time: see `ampere_gemm.Config`. `warps` are those that multiply, a
    multiple of 4; four others are one that loads, and three that end at once. `is_full` promises
    what it says of M and N only.
    """

    cluster: tuple[int, int] = (1, 1)  # blocks along (M, N) that multicast B and A to each other
    overlap: bool = True  # programmatic dependent launch: begins while its predecessor ends
    producer_registers: int = 24

    @property
    def sharers(self) -> int:
        """How many warpgroups work on a tile."""
        return self.warps[0] * self.warps[1] // 4

    @property
    def threads(self) -> int:
        return 128 * (self.sharers + 1)

    @property
    def consumer_registers(self) -> int:
        """Registers of a thread that multiplies: its share of what the block was launched with, as
        in `hopper_config`.
        """
        launched = REGISTERS_PER_SM // (self.blocks_per_sm * self.threads)
        launched = min(MAX_REGISTERS_PER_THREAD, launched) // 8 * 8
        shared = launched * (self.sharers + 1) - self.producer_registers
        return min(240, shared // self.sharers // 8 * 8)

    def smem_bytes(self, width: int) -> int:
        """Shared memory of a block, for operands of `width` bits: 1024 bytes of it for barriers."""
        return 1024 + super().smem_bytes(width)


def choose(
    m: int,
    n: int,
    k: int,
    width: int,
    processors: int,
    smem: int,
    batches: int = 1,
    pairs: bool = True,
) -> Config:
    """As `ampere_gemm.choose`. `pairs` says that blocks can share loads: those of the largest tiles
    do, two along M, because tensor cores are as fast as the power that L2 leaves them.
    """
    found = ampere_gemm.choose(m, n, k, width, processors, smem, batches, Config)
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
    sa = allocate(smem, kinds.a, layout_a)
    sb = allocate(smem, kinds.b, layout_b)

    warp = arch.make_warp_uniform(arch.warp_idx())
    loads = ring_of_stages(barriers, kinds, cfg, defer_sync=True)
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
            produce(
                loads, scheduler, work, load_a, tma_a, sa, load_b, tma_b, sb, k_tiles, kinds, cfg
            )
    else:
        arch.setmaxregister_increase(cfg.consumer_registers)
        consume(loads, scheduler, sa, sb, c, operands, k_tiles, op, kinds, cfg, epilogue)


@cute.jit
def consume(
    loads, scheduler, sa, sb, c, operands, k_tiles,
    op: cute.Constexpr, kinds: cute.Constexpr, cfg: cute.Constexpr, epilogue: cute.Constexpr,
):  # fmt: skip
    """The warps that multiply: sums of their part of each tile, and what becomes of them."""
    bm, bn, bk = cfg.tile
    thread = arch.thread_idx()[0] - 128
    mma = make_mma(op, cfg)
    acc = mma.make_fragment_C(mma.partition_shape_C((bm, bn)))
    ra = mma.make_fragment_A(mma.partition_shape_A((bm, bk)))
    rb = mma.make_fragment_B(mma.partition_shape_B((bn, bk)))
    read_a = Fragments(cute.make_tiled_copy_A, kinds.major_a, mma, sa, ra, thread)
    read_b = Fragments(cute.make_tiled_copy_B, kinds.major_b, mma, sb, rb, thread)
    finish = Epilogue(c, operands, op, epilogue, cfg, thread)

    read = pipeline.make_pipeline_state(pipeline.PipelineUserType.Consumer, cfg.stages)
    wait_for_predecessor(cfg)
    more = scheduler.get_current_work().is_valid_tile
    while more:
        acc.fill(0)
        loads.consumer_wait(read)
        read_a.load(0, read.index)
        read_b.load(0, read.index)
        for _ in cute.range(1, k_tiles, unroll=1):
            step(loads, read, read_a, read_b, mma, acc, ra, rb, False)
        step(loads, read, read_a, read_b, mma, acc, ra, rb, True)
        finish.store(acc, scheduler.get_current_work().tile_idx)  # known no sooner: registers
        scheduler.advance_to_next_work()
        more = scheduler.get_current_work().is_valid_tile


@cute.jit
def step(loads, read, read_a, read_b, mma, acc, ra, rb, is_last: cute.Constexpr):
    """Multiply a stage, whose first fragments are there, and release it. Unless it is the last of
    its tile, the first fragments of the next are loaded.
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
            is_full = loads.consumer_try_wait(following)  # asked before there is need to know
        multiply(mma, acc, ra, rb, k)
    loads.consumer_release(read)
    read.advance()


def multiply(mma, acc, ra, rb, k):
    """Add a block of K, every other row of instructions backwards: each shares an operand with the
    one before it, in the same registers, which takes less power.
    """
    columns = cute.size(acc, mode=[2])
    for i in range(cute.size(acc, mode=[1])):
        for j in range(columns):
            j = columns - 1 - j if (i + k) % 2 else j
            sums = acc[None, i, j]
            cute.gemm(mma, sums, ra[None, i, k], rb[None, j, k], sums)


def check(cfg, op):
    """DSLTypeError for a tile that warps do not divide, and for warps that are no warpgroups."""
    check_tile(cfg, op)
    if cfg.warps[0] * cfg.warps[1] % 4:
        raise DSLTypeError(f"{cfg.warps} warps multiply: they must be a multiple of 4, warpgroups")


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
    """C = A B^T on at most `blocks` resident blocks: as `ampere_gemm.gemm`, but that A and B are
    read by TMA. `vector` is the elements of C that one access writes.
    """
    c = matrix(c, vector)
    a, b = as_tf32(three_modes(a)), as_tf32(three_modes(b))
    check_extents(a, b, c)
    operands = tuple(map(three_modes, operands))
    if cute.const_expr(c.leading_dim == 0):  # C^T = B A^T has contiguous rows
        a, b, c = b, a, transposed(c)
        operands = tuple(map(transposed, operands))
    kinds = kinds_of(a, b, c)
    op = instruction(a.element_type, acc_dtype)
    check(cfg, op)
    (load_a, tma_a), (load_b, tma_b) = load_atoms(a, b, kinds, cfg)
    schedule, grid = schedule_of(c.shape, blocks, cfg)
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
