"""C = A B^T on Hopper by split-K within a cluster, for products with few or small tiles.

A is (M, K), B is (N, K), C is (M, N), or with batches as a third mode. The blocks of a cluster
share one tile of C, each with a slice of K: a producer warp loads tiles of A and B by TMA, the
consumer warpgroups multiply them. Every block then writes its partial sums to shared memory, and
reduces a part of the tile over all blocks of the cluster through distributed shared memory, always
in the order of K. It passes the result through the epilogue and writes it in vectors, so that rows
of C may begin anywhere.

`swap` computes C^T = B A^T instead, for few rows: wgmma has 64 rows, but as few as 8 columns.

Instead of slices of K, the blocks of a cluster may have neighbouring tiles along M, each with all
of K (`sharing`). They take turns to load the tiles of B, for all of them: with few columns these
are small, and would be as many requests of each block as the tiles of A.
"""

from __future__ import annotations

import functools
import operator
from dataclasses import dataclass
from typing import Any

import basedsl_cute as cute
from basedsl import DSLTypeError
from basedsl_cute import arch
from basedsl_cute.hardware.targets import MAX_CLUSTER
from basedsl_cute.nvgpu import tma, warpgroup
from basedsl_cute.ops.gemm.operands import (
    OutputTile,
    check_extents,
    matrix,
    three_modes,
    transposed,
)
from basedsl_cute.ops.hopper.collective import (
    LoadParams,
    as_tf32,
    check_majors,
    issue_mma,
    make_load_pipeline,
    mma_fragments,
    mma_step,
    operand_kinds,
    staged_layouts,
    wait_for_predecessor,
)
from basedsl_cute.ops.hopper.config import SHARED_MEMORY, HopperGemmKinds
from basedsl_cute.pipeline import PipelineUserType, make_pipeline_state
from basedsl_cute.tensors.make_tensor import place_tensor
from basedsl_cute.utils import hopper_helpers as sm90
from basedsl_cute.utils.tile_scheduler import PersistentTileSchedulerParams

__all__ = ["Config", "check_config", "gemm"]

VECTOR = 8  # the most elements of C that `matmul` has a thread write at once
MOST_BLOCKS = MAX_CLUSTER
_ALIGN = 1024  # bytes: the period of the 128-byte swizzle


@dataclass(frozen=True)
class Config:
    """The static configuration of the kernel. It decides speed, and the order of additions only.

    Raises ValueError for a tile that the consumers' wgmma instructions do not divide.
    """

    tile: tuple[int, int, int] = (64, 64, 64)  # (M, N) of C (of C^T with `swap`), the step of K
    stages: int = 6  # tiles of A and B in shared memory
    consumers: int = 1  # warpgroups that multiply, each with its rows of the tile
    split: int = 1  # slices of K, each for one block of a cluster
    swap: bool = False  # C^T = B A^T
    swizzle: int = 8  # tiles in a band of the raster, see `utils.tile_scheduler`
    along_m: bool = True  # the direction of the raster within a band
    sharing: int = 1  # blocks of a cluster along M that load B for each other, without `split`
    blocks_per_sm: int = 1  # resident blocks of a multiprocessor, which share its registers
    overlap: bool = True  # programmatic dependent launch: starts while the preceding kernel ends
    promotion: int = 256  # bytes that a load brings into L2 at least, or 0

    def __post_init__(self) -> None:
        m, n, k = self.tile
        rows = 64 * self.consumers
        if m % rows or n % 8 or k % 8 or not (rows <= m <= 256 and 8 <= n <= 256 and 8 <= k):
            raise ValueError(
                f"no tile {self.tile}: M is a multiple of {rows}, N and K of 8, M and N at most 256"
            )
        if not 1 <= self.consumers <= 4 or self.stages < 2 or not 1 <= self.split <= MOST_BLOCKS:
            raise ValueError(
                f"{self}: 1 to 4 consumers, stages from 2, K in 1 to {MOST_BLOCKS} parts"
            )
        if not 1 <= self.sharing <= MOST_BLOCKS or (self.sharing > 1 and self.split > 1):
            raise ValueError(f"{self}: 1 to {MOST_BLOCKS} blocks share B, each with all of K")

    # What `ops.hopper.collective` asks for: all consumers share each tile.
    pingpong = False

    @property
    def cluster(self) -> tuple[int, int]:
        """The blocks along (M, N) that load for each other."""
        return self.sharing, 1

    @property
    def cluster_blocks(self) -> int:
        """The blocks of a cluster."""
        return self.split * self.sharing

    @property
    def warpgroups_per_tile(self) -> int:
        return self.consumers

    @property
    def threads(self) -> int:
        return 128 * self.consumers + arch.WARP_SIZE

    def pitch(self, is_column_major: bool) -> int:
        """Elements from one line of partial sums in shared memory to the next, padded so that
        threads that write together write to different banks.
        """
        m, n, _ = self.tile
        return m + 4 if is_column_major else n + (8 if n % 16 == 0 else 0)

    def sums_bytes(self, is_column_major: bool) -> int:
        """Shared memory of a block's partial sums, in bytes."""
        m, n, _ = self.tile
        return 4 * self.pitch(is_column_major) * (n if is_column_major else m)

    def ring_bytes(self, a: Any, b: Any) -> int:
        """Shared memory of the stages, in bytes, for A and B of these element types."""
        m, n, k = self.tile
        return int(self.stages * (m * a.width + n * b.width) * k // 8)


def check_config(kinds: HopperGemmKinds, cfg: Config) -> None:
    """Raise DSLTypeError for a configuration that exceeds a block's shared memory."""
    sums = cfg.sums_bytes(kinds.major_c is sm90.LayoutEnum.COL_MAJOR)
    wanted = max(cfg.ring_bytes(kinds.a, kinds.b), sums) + 16 * cfg.stages + _ALIGN
    if wanted > SHARED_MEMORY:
        raise DSLTypeError(
            f"{cfg} takes {wanted} bytes of shared memory; a block has {SHARED_MEMORY}",
            hint="fewer stages, or a smaller tile",
        )


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
    kinds: cute.Constexpr,
    cfg: cute.Constexpr,
    epilogue_op: cute.Constexpr,
    vector: cute.Constexpr,
    parts: cute.Constexpr,
):
    if cute.const_expr(cfg.overlap):
        # The next kernel may take over multiprocessors as they become free.
        arch.griddepcontrol_launch_dependents()
    smem = cute.utils.SmemAllocator()
    barriers = smem.allocate_array(cute.Int64, 2 * cfg.stages)
    sa, sb, sums = shared_tensors(smem, kinds, cfg)
    warp_idx = arch.make_warp_uniform(arch.warp_idx())
    thread = arch.thread_idx()[0]
    if warp_idx == 0:
        tma.prefetch_descriptor(load_a)
        tma.prefetch_descriptor(load_b)
    load_pipeline = make_load_pipeline(barriers, kinds, cfg)
    m, n, batch = schedule.locate(arch.block_idx()[0] // cfg.cluster_blocks)
    place = arch.make_warp_uniform(arch.block_idx_in_cluster())
    rank = place if cfg.split > 1 else cute.Int32(0)
    if cute.const_expr(cfg.sharing > 1):
        m = m * cfg.sharing + place
    slices = cfg.split * parts
    number = batch * cfg.split + rank if parts > 1 else rank
    first = number * k_tiles // slices
    count = (number + 1) * k_tiles // slices - first
    if warp_idx == 4 * cfg.consumers:
        loads = LoadParams(load_pipeline, load_a, tma_a, sa, load_b, tma_b, sb)
        producer_warp(loads, (m, n, 0 if parts > 1 else batch), place, first, count, cfg)
    else:
        wait_for_predecessor(cfg)
        mma, acc, ra, rb = mma_fragments(sa, sb, warp_idx // 4, kinds, cfg)
        acc.fill(0)
        accumulate(load_pipeline, mma, acc, ra, rb, count)
        arch.barrier(
            1, 128 * cfg.consumers
        )  # partial sums overwrite the stages, which all have read
        cute.autovec_copy(acc, mma.get_slice(thread).partition_C(sums))
    sums_sync(cfg)
    if warp_idx < 4 * cfg.consumers:
        if cute.const_expr(kinds.major_c is sm90.LayoutEnum.COL_MAJOR):
            reduce_partials(
                cute.make_tensor(sums.iterator, cute.select(sums.layout, [1, 0])),
                OutputTile(transposed(c), tuple(map(transposed, operands))),
                (n, m, batch), rank, thread, cfg, epilogue_op, vector,
            )  # fmt: skip
        else:
            results = OutputTile(c, operands)
            reduce_partials(sums, results, (m, n, batch), rank, thread, cfg, epilogue_op, vector)
    if cute.const_expr(cfg.cluster_blocks > 1):
        # No block ends while others read its partial sums, for which a relaxed arrival would not
        # order them, or arrive at its barriers.
        arch.cluster_arrive()
        arch.cluster_wait()


def sums_sync(cfg: Config) -> None:
    """Synchronise all threads that share a tile."""
    if cfg.split == 1:
        arch.sync_threads()
        return
    arch.cluster_arrive()
    arch.cluster_wait()


def shared_tensors(smem: Any, kinds: HopperGemmKinds, cfg: Config) -> tuple[Any, Any, Any]:
    """Allocate A and B by stages, and the tile of partial sums in the same place."""
    bm, bn, bk = cfg.tile
    is_column_major = kinds.major_c is sm90.LayoutEnum.COL_MAJOR
    pitch = cfg.pitch(is_column_major)
    size = max(cfg.ring_bytes(kinds.a, kinds.b), cfg.sums_bytes(is_column_major))
    ring = smem.allocate(size, _ALIGN)
    behind_a = ring + cfg.stages * bm * bk * kinds.a.width // 8
    stride = (1, pitch) if is_column_major else (pitch, 1)
    layout_a, layout_b = staged_layouts(kinds, cfg)
    return (
        place_tensor(ring, layout_a, None, kinds.a),
        place_tensor(behind_a, layout_b, None, kinds.b),
        place_tensor(ring, cute.make_layout((bm, bn), stride=stride), None, kinds.acc),
    )


@cute.jit
def producer_warp(loads, where, place, first, count, cfg: cute.Constexpr):
    """Load this block's `count` tiles of A and B, from tile `first` of K on, by one warp; blocks
    that share B load it in turns, each at its `place` in the cluster.
    """
    load_a, load_b = loads.atom_a, loads.atom_b
    bm, bn, bk = cfg.tile
    m, n, batch = where
    one = cute.make_layout(1)
    ga = cute.zipped_divide(loads.tma_a, (bm, bk))
    gb = cute.zipped_divide(loads.tma_b, (bn, bk))
    to_a, from_a = tma.tma_partition(load_a, 0, one, cute.group_modes(loads.sa, 0, 2), ga)
    to_b, from_b = tma.tma_partition(load_b, 0, one, cute.group_modes(loads.sb, 0, 2), gb)
    everyone = cute.Int16(2**cfg.sharing - 1 - (2**16 if cfg.sharing == 16 else 0))
    filled = make_pipeline_state(PipelineUserType.Producer, cfg.stages)
    wait_for_predecessor(cfg)
    for i in cute.range(count, unroll=1):
        loads.pipeline.producer_acquire(filled)
        barrier = loads.pipeline.producer_get_barrier(filled)
        k = first + i
        cute.copy(
            load_a, from_a[None, (m, k, batch)], to_a[None, filled.index], tma_bar_ptr=barrier
        )
        cute.copy(
            load_b,
            from_b[None, (n, k, batch)],
            to_b[None, filled.index],
            pred=k % cfg.sharing == place if cfg.sharing > 1 else None,
            tma_bar_ptr=barrier,
            mcast_mask=everyone,
        )
        filled.advance()


def load_atoms(a: Any, b: Any, kinds: HopperGemmKinds, cfg: Config) -> tuple[Any, Any]:
    """The TMA loads of A and B, each with its tensor of coordinates; of B for all that share it."""
    bm, bn, bk = cfg.tile
    in_a, in_b = (cute.slice_(x, (None, None, 0)) for x in staged_layouts(kinds, cfg))
    plain, multicast = tma.CopyBulkTensorTileG2SOp(), tma.CopyBulkTensorTileG2SMulticastOp()
    more = {"l2_promotion": cfg.promotion}
    return (
        tma.make_tiled_tma_atom(plain, a, in_a, (bm, bk), **more),
        tma.make_tiled_tma_atom(multicast if cfg.sharing > 1 else plain, b, in_b, (bn, bk), **more),
    )


@cute.jit
def accumulate(loads, mma, acc, ra, rb, count):
    """Add the products of `count` stages to a warpgroup's accumulator `acc`."""
    read = make_pipeline_state(PipelineUserType.Consumer, loads.num_stages)
    done = read.clone()
    mma.set(warpgroup.Field.ACCUMULATE, True)
    if count > 0:
        loads.consumer_wait(read)
        issue_mma(mma, acc, ra, rb, read.index)
        read.advance()
        for _ in cute.range(1, count, unroll=1):
            mma_step(loads, mma, acc, ra, rb, read, done)
        warpgroup.wait_group(0)


@cute.jit
def reduce_partials(
    sums, results, where, rank, thread,
    cfg: cute.Constexpr, epilogue_op: cute.Constexpr, vector: cute.Constexpr,
):  # fmt: skip
    """Reduce this block's part of the tile over the cluster, apply the epilogue and write it. Each
    thread has vectors of consecutive elements of C, neighbouring threads neighbouring vectors.
    """
    lines, width = sums.shape
    results = results.of_batch(where[2]).each(
        lambda x: cute.local_tile(x, (lines, width), (where[0], where[1]))
    )
    threads = 128 * cfg.consumers
    vectors = lines * width // vector
    of_a_line = width // vector
    parts = partial_sums(sums, cfg)
    for i in cute.range(-(-vectors // (threads * cfg.split)), unroll=4):
        number = (i * cfg.split + rank) * threads + thread
        if number < vectors:
            at = (number // of_a_line, number % of_a_line)
            total = cute.make_rmem_tensor((vector,), sums.element_type)
            total.store(
                functools.reduce(operator.add, [row_vector(x, at, vector).load() for x in parts])
            )
            results.each(lambda x, at=at: row_vector(x, at, vector)).put(total, epilogue_op)


def partial_sums(sums: Any, cfg: Config) -> list[Any]:
    """The partial sums of all blocks of the cluster, in the order of K."""
    if cfg.split == 1:
        return [sums]
    there = [arch.map_dsmem_ptr(sums.iterator, rank) for rank in range(cfg.split)]
    return [cute.make_tensor(pointer, sums.layout) for pointer in there]


def row_vector(x: Any, at: Any, vector: int) -> Any:
    """The vector at coordinate `at` of a matrix that is cut into (1, `vector`) tiles."""
    return cute.local_tile(x, (1, vector), at)[0, None]


@cute.jit
def gemm(
    a: cute.Tensor,
    b: cute.Tensor,
    c: cute.Tensor,
    cfg: cute.Constexpr = Config(),
    epilogue_op: cute.Constexpr = None,
    operands: tuple = (),
    vector: cute.Constexpr = 1,
    stream: cute.Constexpr = None,
    parts: cute.Constexpr = 1,
):
    """Compute C = A B^T, or with `epilogue_op` C = epilogue_op(A B^T, *operands), on Hopper.

    `a` is (M, K), `b` (N, K), `c` (M, N), or all have a third mode of batches. Elements are
    Float16, BFloat16, both 8-bit floats, Int8, Uint8 or Float32, which is rounded to TFloat32; of
    all but the first two, K is contiguous. C may have any type that the accumulators convert to.
    `epilogue_op` is a function of vectors, see `utils.epilogue`. One access writes `vector`
    elements of C: the caller promises that address and strides allow it, see
    `ops.gemm.operands.matrix`. `parts` is as for `ops.hopper.gemm.gemm`.

    Raises DSLTypeError for operands that wgmma does not take and for a `cfg` that exceeds shared
    memory; asserts at run time that the extents fit together.
    """
    a, b, c = as_tf32(matrix(a)), as_tf32(matrix(b)), matrix(c, vector)
    check_extents(a, b, c, parts)
    operands = tuple(map(three_modes, operands))
    if cute.const_expr(cfg.swap):
        a, b, c = b, a, transposed(c)
        operands = tuple(map(transposed, operands))
    kinds = operand_kinds(a, b, c)
    check_majors(kinds)
    check_config(kinds, cfg)
    bm, bn, bk = cfg.tile
    (load_a, tma_a), (load_b, tma_b) = load_atoms(a, b, kinds, cfg)
    m, n, batches = c.shape
    tiles = (cute.ceil_div(m, bm), cute.ceil_div(n, bn), batches)
    schedule = PersistentTileSchedulerParams(tiles, (*cfg.cluster, 1), cfg.swizzle, cfg.along_m)
    schedule = schedule.prepared()
    gemm_kernel(
        load_a,
        tma_a,
        load_b,
        tma_b,
        c,
        operands,
        schedule,
        cute.ceil_div(a.shape[1], bk),
        kinds,
        cfg,
        epilogue_op,
        vector,
        parts,
    ).launch(
        grid=(schedule.num_clusters * cfg.cluster_blocks, 1, 1),
        block=(cfg.threads, 1, 1),
        cluster=(cfg.cluster_blocks, 1, 1),
        stream=stream,
        min_blocks_per_mp=cfg.blocks_per_sm,
        use_pdl=cfg.overlap,
    )
