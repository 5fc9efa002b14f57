"""The warps of the Blackwell GEMM that load, schedule and multiply."""

from __future__ import annotations

from typing import Any, NamedTuple

import basedsl_cute as cute
from basedsl_cute import pipeline, utils
from basedsl_cute.nvgpu import tcgen05, tma
from basedsl_cute.nvgpu.tcgen05 import Field
from basedsl_cute.ops.blackwell.shapes import load_bytes

__all__ = [
    "EPILOGUE_WARPS",
    "FREE_BARRIER",
    "MMA_WARP",
    "SCHEDULER_WARP",
    "TMA_WARP",
    "Loads",
    "OperandLoads",
    "Schedule",
    "divided",
    "load_warp",
    "mma_warp",
    "next_work",
    "pipelines",
    "scale_copies",
    "scheduler_warp",
    "tensor_memory",
]

EPILOGUE_WARPS = (0, 1, 2, 3)
MMA_WARP, TMA_WARP, SCHEDULER_WARP = 4, 5, 6
EPILOGUE_BARRIER, _TMEM_BARRIER, FREE_BARRIER = 1, 2, 3
_THREAD = pipeline.Agent.Thread


class OperandLoads(NamedTuple):
    """The loads of one operand: TMA atom, this block's tiles (box, tiles along M or N, along K,
    batches), their stages and the blocks that get them.
    """

    atom: Any
    tiles: Any
    stages: Any
    mask: Any


class Loads(NamedTuple):
    """The loads of a block: their pipeline, and the operands with tiles along M and along N."""

    pipeline: Any
    along_m: list[OperandLoads]
    along_n: list[OperandLoads]


class Schedule(NamedTuple):
    """The tiles of a block: their scheduler, and the pipeline of requests, or None."""

    scheduler: Any
    requests: Any


def pipelines(
    load_barriers: Any, acc_barriers: Any, shapes: Any, kinds: Any, cfg: Any
) -> tuple[Any, Any]:
    """Return the pipelines of the stages of operands and of the accumulators."""
    vmnk = shapes.vmnk
    one = pipeline.CooperativeGroup(_THREAD)
    sharing = cute.size(vmnk, mode=[1]) + cute.size(vmnk, mode=[2]) - 1
    loads = pipeline.PipelineTmaUmma.create(
        barrier_storage=load_barriers,
        num_stages=shapes.stages,
        producer_group=one,
        consumer_group=pipeline.CooperativeGroup(_THREAD, sharing),
        tx_count=load_bytes(shapes, kinds, cfg),
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
    return loads, sums


def tensor_memory(holder: Any, dealloc_barrier: Any, cfg: Any) -> Any:
    """Return the allocator of tensor memory, which the epilogue's and the MMA's warps use."""
    return utils.TmemAllocator(
        holder,
        barrier_for_retrieve=pipeline.NamedBarrier(_TMEM_BARRIER, 32 * 5),
        is_two_cta=cfg.pair,
        two_cta_tmem_dealloc_mbar_ptr=dealloc_barrier,
    )


def steps_of(work: Any, k_tiles: Any) -> Any:
    """Return the steps along K of a tile: `k_tiles`, or where that is None the group's."""
    return work.group_search_result.cta_tile_count_k if k_tiles is None else k_tiles


def divided(atom: Any, at: Any, blocks: Any, stages: Any, tiles: Any, mask: Any) -> OperandLoads:
    """Return the loads of an operand, given its stages (MMA, MMA_M, MMA_K, stage), its tiles as the
    MMA partitions them, and this block's place among the `blocks` that share them.
    """
    stages, tiles = tma.tma_partition(
        atom, at, cute.make_layout(blocks), cute.group_modes(stages, 0, 3),
        cute.group_modes(tiles, 0, 3),
    )  # fmt: skip
    return OperandLoads(atom, cute.filter_zeros(tiles), cute.filter_zeros(stages), mask)


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


@cute.jit
def load_warp(given, schedule, state, work, k_tiles, cfg: cute.Constexpr):
    """Load the tiles of the operands of each tile of C."""
    loads = given.pipeline
    write = pipeline.make_pipeline_state(pipeline.PipelineUserType.Producer, loads.num_stages)
    while work.is_valid_tile:
        m, n, batch = work.tile_idx
        sources = [(x, x.tiles[None, m // cfg.blocks, None, batch]) for x in given.along_m]
        sources += [(x, x.tiles[None, n, None, batch]) for x in given.along_n]
        for k in cute.range(k_tiles, unroll=1):
            loads.producer_acquire(write)
            barrier = loads.producer_get_barrier(write)
            for x, tiles in sources:
                cute.copy(
                    x.atom, tiles[None, k], x.stages[None, write.index],
                    tma_bar_ptr=barrier, mcast_mask=x.mask,
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


def scale_copies(group: Any, dtype: Any, pairs: Any) -> list[Any]:
    """Return for each pair of scale factors in shared and in tensor memory the tiled copy, its
    source (by descriptors, the last mode of stages) and its destination.
    """
    made = []
    for staged, target in pairs:
        compact = cute.filter_zeros(target)
        copy = tcgen05.make_s2t_copy(
            cute.make_copy_atom(tcgen05.Cp4x32x128bOp(group), dtype), compact
        )
        mine = copy.get_slice(0)
        source = mine.partition_S(cute.filter_zeros(staged))
        made.append(
            (copy, tcgen05.get_s2t_smem_desc_tensor(copy, source), mine.partition_D(compact))
        )
    return made


@cute.jit
def mma_warp(
    mma, loads, sums, acc, sa, sb, scales, is_leader, schedule, state, work, k_tiles,
    cfg: cute.Constexpr,
):  # fmt: skip
    """Multiply the tiles, each into the next stage of accumulators; of a pair, the leader does.

    `k_tiles` are the steps along K, None where each group has its own. `scales` is () or the scale
    factors of A and B in tensor memory with the copies that fill them.
    """
    ra, rb = mma.make_fragment_A(sa), mma.make_fragment_B(sb)
    read = pipeline.make_pipeline_state(pipeline.PipelineUserType.Consumer, loads.num_stages)
    write = pipeline.make_pipeline_state(pipeline.PipelineUserType.Producer, cfg.acc_stages)
    while work.is_valid_tile:
        if is_leader:
            here = acc[None, None, None, write.index]
            sums.producer_acquire(write)
            mma.set(Field.ACCUMULATE, False)
            for _ in cute.range(steps_of(work, k_tiles), unroll=1):
                loads.consumer_wait(read)
                stage = (None, None, None, read.index)
                if cute.const_expr(scales):
                    factors_a, factors_b, copies = scales
                    for copy, source, target in copies:
                        cute.copy(copy, source[None, *stage], target)
                    cute.gemm(mma, here, [ra[stage], factors_a], [rb[stage], factors_b], here)
                else:
                    cute.gemm(mma, here, ra[stage], rb[stage], here)
                mma.set(Field.ACCUMULATE, True)
                loads.consumer_release(read)
                read.advance()
            sums.producer_commit(write)
            write.advance()
        work = next_work(schedule, state)
    if is_leader:
        sums.producer_tail(write)
