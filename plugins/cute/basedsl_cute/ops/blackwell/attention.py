"""Attention forward on data-center Blackwell: by TMA and tcgen05, softmax beside the products.

A block computes two tiles of 128 queries of one head at a time. One warp loads the queries, and
tiles of 128 keys and values into two rings of stages; one multiplies. Scores S = Q K^T of the two
tiles and their sums O += P V lie in tensor memory. A warpgroup for each tile makes its scores into
weights P, one thread a row, and writes them over the scores, as operand A of the second product;
while one tile is in its warpgroup the tensor cores work on the other. A third warpgroup scales the
sums when a row's largest score has grown by more than `GROWTH`, and writes the results at the end.
Blocks may stay for many tasks. A row's thread also applies functions of scores, masks, slopes and
biases to its scores, and the third warpgroup counts sinks.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import basedsl_cute as cute
from basedsl import DSLTypeError
from basedsl_cute import arch, pipeline, utils
from basedsl_cute.nvgpu import OperandMajorMode, cpasync, tcgen05
from basedsl_cute.ops.blackwell.attention_rows import (
    correction_warps,
    softmax_warps,
    stage_of,
)
from basedsl_cute.ops.flash.variant import Sequence, Variant
from basedsl_cute.ops.hopper.attention import L2_BYTES
from basedsl_cute.ops.hopper.attention_walk import Walk
from basedsl_cute.utils import blackwell_helpers as sm100

__all__ = ["HEADS", "Config", "forward", "takes"]

TILE = 128  # queries of one of the two tiles, and keys
HEADS = (64, 128)
CORRECTION_WARP, MMA_WARP, LOAD_WARP = 8, 12, 13  # the first ones of roles; softmax has 0 to 7
THREADS = 512
SUMS_AT = 2 * TILE  # the first column of O in tensor memory; S and P are before
_PRODUCER, _CONSUMER = pipeline.PipelineUserType.Producer, pipeline.PipelineUserType.Consumer


@dataclass(frozen=True)
class Config:
    """The static configuration of the kernel.

    `stages` is the number of tiles of keys, and of values, in shared memory. A block that is
    `persistent` has many tasks. Results are written in vectors of 16 bytes if `is_wide`, to which
    their rows are aligned then. Of each eight weights, `computed` come from multiplications and
    additions instead of the unit for exponentials, which bounds heads of 64.
    """

    stages: int = 2
    persistent: bool = True
    is_wide: bool = True
    computed: int = 0

    tile = (2 * TILE, TILE)  # (queries, keys) of a task
    by_head = False
    from_end = False

    @property
    def registers(self) -> tuple[int, int, int]:
        """Registers of a thread of softmax, of correction and of the others: two warpgroups and one
        of each of these have 512 for four threads.
        """
        return (184, 96, 48) if self.computed else (176, 96, 64)


def takes(head: int, head_v: int) -> bool:
    """Tell whether the kernel computes heads of these extents, in any variant."""
    return head == head_v and head in HEADS


@cute.kernel
def forward_kernel(
    mma_s: cute.TiledMma,
    mma_o: cute.TiledMma,
    loads: tuple,
    out: cute.Tensor,
    lse,  # a tensor or None
    extras: tuple,
    scale: cute.Float32,
    swizzle: cute.Int32,
    dtype: cute.Constexpr,
    variant: cute.Constexpr,
    cfg: cute.Constexpr,
):
    (_, tma_q), (_, tma_k), _ = loads
    head = out.shape[1]
    warp = arch.make_warp_uniform(arch.warp_idx())
    smem = utils.SmemAllocator()
    depths = (2, cfg.stages, cfg.stages, 2, 2, 2)
    barriers = [smem.allocate_array(cute.Int64, 2 * stages) for stages in depths]
    holder = smem.allocate_array(cute.Int32, 1)
    numbers = smem.allocate_tensor(cute.Float32, cute.make_layout((TILE, 2, 2)), 16)
    layouts = smem_layouts(mma_s, mma_o, head, dtype, cfg)
    staged = [smem.allocate_tensor(dtype, x.outer, 1024, x.inner) for x in layouts]
    pipes = pipelines(barriers, layouts, depths, dtype)
    tmem = utils.TmemAllocator(
        holder,
        barrier_for_retrieve=pipeline.NamedBarrier(1, 32 * LOAD_WARP),
        allocator_warp_id=CORRECTION_WARP,
    )
    pipeline.pipeline_init_arrive()
    pipeline.pipeline_init_wait()

    # Each role computes its walk: values of all would lie in memory through setmaxnreg.
    slopes, sinks, *of_places = extras
    given = (tma_q, tma_k, (slopes, *of_places), swizzle, variant, cfg)
    if warp < CORRECTION_WARP:
        arch.setmaxregister_increase(cfg.registers[0])
        tmem.wait_for_alloc()
        start = tmem.retrieve_ptr(cute.Float32)
        softmax_warps(
            start, numbers, pipes[3], pipes[4], walk_of(*given), scale, dtype, cfg.computed
        )
    elif warp < MMA_WARP:
        arch.setmaxregister_decrease(cfg.registers[1])
        tmem.allocate(512)
        tmem.wait_for_alloc()
        start = tmem.retrieve_ptr(cute.Float32)
        walk = walk_of(*given)
        sums = start + SUMS_AT
        correction_warps(sums, numbers, pipes[4], pipes[5], walk, out, lse, sinks, cfg.is_wide)
        tmem.relinquish_alloc_permit()
        pipeline.NamedBarrier(2, TILE).arrive_and_wait()
        tmem.free(start)
    else:
        arch.setmaxregister_decrease(cfg.registers[2])
        if warp == MMA_WARP:
            tmem.wait_for_alloc()
            start = tmem.retrieve_ptr(cute.Float32)
            mma_warp(mma_s, mma_o, start, staged, pipes, walk_of(*given))
        if warp == LOAD_WARP:
            load_warp(mma_s, mma_o, loads, staged, pipes, walk_of(*given))


def walk_of(q: Any, k: Any, extras: Any, swizzle: Any, variant: Variant, cfg: Config) -> Walk:
    """Return the tasks of the blocks, given tensors of queries and keys, and what scores depend
    on.
    """
    sequence = Sequence(cute.Int32(q.shape[0]), cute.Int32(k.shape[0]))
    return Walk(variant, sequence, extras, q.shape, swizzle, cfg)


def pipelines(barriers: Any, layouts: Any, depths: Any, dtype: Any) -> tuple[Any, ...]:
    """Return the pipelines of queries, keys, values, scores, factors and sums. Those of two stages
    have one for each tile of queries.
    """
    thread = pipeline.Agent.Thread
    one, rows = pipeline.CooperativeGroup(thread), pipeline.CooperativeGroup(thread, TILE)
    made: list[Any] = [
        pipeline.PipelineTmaUmma.create(
            barrier_storage=storage, num_stages=stages, producer_group=one, consumer_group=one,
            tx_count=cute.size_in_bytes(dtype, cute.select(layout, [0, 1, 2])), defer_sync=True,
        )
        for storage, layout, stages in zip(barriers, layouts, depths, strict=False)
    ]  # fmt: skip
    # Scores are released when the weights are written over them: a stage that is empty is full of
    # the operand of the next product.
    for kind, storage, producer in (
        (pipeline.PipelineUmmaAsync, barriers[3], one),
        (pipeline.PipelineAsync, barriers[4], rows),
        (pipeline.PipelineUmmaAsync, barriers[5], one),
    ):
        made.append(
            kind.create(
                barrier_storage=storage, num_stages=2, producer_group=producer,
                consumer_group=rows, defer_sync=True,
            )
        )  # fmt: skip
    return tuple(made)


def smem_layouts(mma_s: Any, mma_o: Any, head: int, dtype: Any, cfg: Config) -> tuple[Any, ...]:
    """Return the staged layouts of queries, keys and values as the products' operands."""
    of_scores, of_values = (TILE, TILE, head), (TILE, head, TILE)
    return (
        sm100.make_smem_layout_a(mma_s, of_scores, dtype, 2),
        sm100.make_smem_layout_b(mma_s, of_scores, dtype, cfg.stages),
        sm100.make_smem_layout_b(mma_o, of_values, dtype, cfg.stages),
    )


@cute.jit
def load_warp(mma_s, mma_o, loads, staged, pipes, walk):
    """Load the queries of each task, and keys and values from its last tile to its first."""
    (load_q, tma_q), (load_k, tma_k), (load_v, tma_v) = loads
    head_extent = cute.size(tma_q, mode=[1])
    group = tma_q.shape[2] // tma_k.shape[2]
    of_s, of_o = mma_s.get_slice(0), mma_o.get_slice(0)
    everything = (None, None, None, None)
    gq = of_s.partition_A(cute.local_tile(tma_q, (TILE, head_extent), everything))
    gk = of_s.partition_B(cute.local_tile(tma_k, (TILE, head_extent), everything))
    gv = of_o.partition_B(cute.local_tile(tma_v, (head_extent, TILE), everything))
    (to_q, from_q), (to_k, from_k), (to_v, from_v) = [
        cpasync.tma_partition(
            atom, 0, cute.make_layout(1), cute.group_modes(s, 0, 3), cute.group_modes(g, 0, 3)
        )
        for atom, s, g in zip((load_q, load_k, load_v), staged, (gq, gk, gv), strict=True)
    ]
    at_q, at_k, at_v = [pipe.make_participants()[0] for pipe in pipes[:3]]
    work = arch.block_idx()[0]
    while work < walk.total:
        tile, head, batch, low, number = walk.task(work)
        key_head = head // group
        stage = at_q.acquire_and_advance()
        cute.copy(
            load_q, from_q[None, 2 * tile, 0, head, batch], to_q[None, stage.index],
            tma_bar_ptr=stage.barrier,
        )  # fmt: skip
        stage = at_k.acquire_and_advance()
        cute.copy(
            load_k, from_k[None, number, 0, key_head, batch], to_k[None, stage.index],
            tma_bar_ptr=stage.barrier,
        )  # fmt: skip
        stage = at_q.acquire_and_advance()
        cute.copy(
            load_q, from_q[None, 2 * tile + 1, 0, head, batch], to_q[None, stage.index],
            tma_bar_ptr=stage.barrier,
        )  # fmt: skip
        while number >= low:
            stage = at_v.acquire_and_advance()
            cute.copy(
                load_v, from_v[None, 0, number, key_head, batch], to_v[None, stage.index],
                tma_bar_ptr=stage.barrier,
            )  # fmt: skip
            number -= 1
            if number >= low:
                stage = at_k.acquire_and_advance()
                cute.copy(
                    load_k, from_k[None, number, 0, key_head, batch], to_k[None, stage.index],
                    tma_bar_ptr=stage.barrier,
                )  # fmt: skip
        work = walk.following(work)
    for at in (at_q, at_k, at_v):
        at.tail()


@cute.jit
def mma_warp(mma_s, mma_o, start, staged, pipes, walk):
    """Multiply the tiles of each task: scores of the next keys behind the values of these."""
    pipe_q, pipe_k, pipe_v, pipe_s, _, pipe_o = pipes
    rq, rk = mma_s.make_fragment_A(staged[0]), mma_s.make_fragment_B(staged[1])
    rv = mma_o.make_fragment_B(staged[2])
    head = mma_o.shape_mnk[1]
    fake_s = mma_s.make_fragment_C(mma_s.partition_shape_C((TILE, TILE)))
    fake_o = mma_o.make_fragment_C(mma_o.partition_shape_C((TILE, head)))
    layout_p = sm100.make_smem_layout_a(mma_o, (TILE, head, TILE), mma_o.op.a_dtype, 1)
    fake_p = mma_o.make_fragment_A(layout_p.outer)
    scores, weights, sums = [], [], []
    for g in cute.range_constexpr(2):
        at = start + g * TILE
        scores.append(cute.make_tensor(at, fake_s.layout))
        weights.append(cute.make_tensor(cute.recast_ptr(at, dtype=mma_o.op.a_dtype), fake_p.layout))
        sums.append(cute.make_tensor(start + SUMS_AT + g * head, fake_o.layout))
    at_k, at_v = pipe_k.make_participants()[1], pipe_v.make_participants()[1]
    at_q = [stage_of(_CONSUMER, g) for g in range(2)]
    at_s = [stage_of(_PRODUCER, g) for g in range(2)]
    at_o = [stage_of(_PRODUCER, g) for g in range(2)]
    work = arch.block_idx()[0]
    while work < walk.total:
        *_, low, number = walk.task(work)
        stage = at_k.wait_and_advance()
        for g in cute.range_constexpr(2):
            pipe_q.consumer_wait(at_q[g])
            pipe_s.producer_acquire(at_s[g])
            multiply(mma_s, scores[g], rq[None, None, None, g], rk[None, None, None, stage.index])
            pipe_s.producer_commit(at_s[g])
            at_s[g].phase = at_s[g].phase ^ 1
        stage.release()
        adds = cute.Boolean(False)
        while number > low:
            stage = at_k.wait_and_advance()
            held = at_v.wait_and_advance()
            for g in cute.range_constexpr(2):
                pipe_s.producer_acquire(at_s[g])
                pipe_o.producer_acquire(at_o[g])
                values = rv[None, None, None, held.index]
                multiply(mma_o, sums[g], weights[g][None, None, None, 0], values, adds)
                pipe_o.producer_commit(at_o[g])
                at_o[g].phase = at_o[g].phase ^ 1
                keys = rk[None, None, None, stage.index]
                multiply(mma_s, scores[g], rq[None, None, None, g], keys)
                pipe_s.producer_commit(at_s[g])
                at_s[g].phase = at_s[g].phase ^ 1
            held.release()
            stage.release()
            adds = cute.Boolean(True)
            number -= 1
        for g in cute.range_constexpr(2):
            pipe_q.consumer_release(at_q[g])
            at_q[g].phase = at_q[g].phase ^ 1
        held = at_v.wait_and_advance()
        for g in cute.range_constexpr(2):
            pipe_s.producer_acquire(at_s[g])
            pipe_o.producer_acquire(at_o[g])
            values = rv[None, None, None, held.index]
            multiply(mma_o, sums[g], weights[g][None, None, None, 0], values, adds)
            pipe_o.producer_commit(at_o[g])
            at_o[g].phase = at_o[g].phase ^ 1
        held.release()
        work = walk.following(work)
    for g in cute.range_constexpr(2):
        pipe_o.producer_acquire(at_o[g])


@cute.jit
def multiply(mma, acc, a, b, adds=False):
    """Start acc = A B, or acc += A B."""
    mma.set(tcgen05.Field.ACCUMULATE, adds)
    for k in cute.range_constexpr(cute.size(a, mode=[2])):
        cute.gemm(mma, acc, a[None, None, k], b[None, None, k], acc)
        mma.set(tcgen05.Field.ACCUMULATE, True)


@cute.jit
def forward(
    q: cute.Tensor,
    k: cute.Tensor,
    v: cute.Tensor,
    out: cute.Tensor,
    lse: cute.Tensor | None,
    extras: tuple,
    scale: cute.Float32,
    blocks: cute.Int32,
    variant: cute.Constexpr,
    cfg: cute.Constexpr,
    stream: cute.Constexpr = None,
):
    """Compute attention of `q` (queries, head, heads, batches) over `k` and `v` (keys, head, key
    heads, batches) into `out`, and the logarithms of the rows' sums into `lse` (queries, heads,
    batches) if given.

    `extras` are (slopes, sinks, bias (queries, keys, heads, batches), captured tensors), `blocks`
    the most resident blocks, usually the number of multiprocessors. Raises DSLTypeError for heads
    of other extents than `HEADS`.
    """
    dtype, head = q.element_type, q.shape[1]
    if cute.const_expr(not takes(head, out.shape[1])):
        raise DSLTypeError(
            f"attention on Blackwell has no kernel for heads of {head} and {out.shape[1]} elements",
            hint=f"heads of {' or '.join(map(str, HEADS))} elements",
        )
    major, inner = OperandMajorMode.K, OperandMajorMode.MN
    one = tcgen05.CtaGroup.ONE
    mma_s = sm100.make_trivial_tiled_mma(dtype, major, major, cute.Float32, one, (TILE, TILE))
    mma_o = sm100.make_trivial_tiled_mma(
        dtype, major, inner, cute.Float32, one, (TILE, head), tcgen05.OperandSource.TMEM
    )
    load = cpasync.CopyBulkTensorTileG2SOp(one)
    layouts = smem_layouts(mma_s, mma_o, head, dtype, cfg)
    layout_q, layout_k, layout_v = (cute.slice_(x, (None, None, None, 0)) for x in layouts)
    of_scores, of_values = (TILE, TILE, head), (TILE, head, TILE)
    turned = cute.select(v, [1, 0, 2, 3])
    loads = tuple(
        (made.atom, made.tma_tensor)
        for made in (
            cute.nvgpu.make_tiled_tma_atom_A(load, q, layout_q, of_scores, mma_s),
            cute.nvgpu.make_tiled_tma_atom_B(load, k, layout_k, of_scores, mma_s),
            cute.nvgpu.make_tiled_tma_atom_B(load, turned, layout_v, of_values, mma_o),
        )
    )
    heads = q.shape[2] * q.shape[3]
    swizzle = cute.Int32(1)
    if cute.const_expr(variant.right is not None):
        # Heads whose keys and values the L2 cache holds together, those of a group too.
        held = cute.Int64(k.shape[0]) * (4 * head)
        fitting = cute.Int32(cute.max(cute.Int64(L2_BYTES) // cute.max(held, 1), 1))
        swizzle = cute.min(q.shape[2] // k.shape[2] * fitting, heads)
    grid = cute.Int32(cute.ceil_div(q.shape[0], cfg.tile[0]) * heads)
    if cute.const_expr(cfg.persistent):
        grid = cute.min(grid, blocks)
    forward_kernel(
        mma_s, mma_o, loads, out, lse, extras, scale, swizzle, dtype, variant, cfg
    ).launch(
        grid=(grid, 1, 1),
        block=(THREADS, 1, 1),
        stream=stream,
        min_blocks_per_mp=1,
    )
