"""All-gather with matrix product, C = gather(X) B^T, in one kernel on Hopper.

Each rank has a shard of X and all of its own B. While tensor cores multiply this rank's shard,
warps that a product leaves idle push it to the peers, in chunks; who pushes the last one of a
tile's rows sets its flag. Then come the tiles of the peers' shards, whose loads wait for that.
"""

from __future__ import annotations

from typing import Any

import basedsl_cute as cute
from basedsl_cute import arch, pipeline
from basedsl_cute.distributed.signals import now
from basedsl_cute.nvgpu import tma
from basedsl_cute.ops.distributed.product_parts import (
    COUNTERS,
    MOVERS,
    ShardScheduler,
    copy_part,
    count_launch,
    half_address,
    has_read,
    launch_number,
    matrices_at,
    take_number,
    wait_until,
)
from basedsl_cute.ops.hopper.collective import (
    LoadParams,
    begin_block,
    check_majors,
    tile_loads,
    tile_schedule,
    tma_atoms,
    wait_for_predecessor,
)
from basedsl_cute.ops.hopper.config import check_config
from basedsl_cute.ops.hopper.gemm import Output, consumer_warpgroup

_READERS = MOVERS + 1  # warps that read the number of the launch


@cute.jit
def _push_shard(
    x: Any, w: Any, turn: Any, rows: Any, k: Any, half_bytes: Any, pace: Any, plan: cute.Constexpr
):
    """Push this rank's shard to all peers, by one of the movers, in chunks, one each `pace`
    nanoseconds of the grid. Each rank begins with the peer that needs its shard first.

    Chunks that come faster than the link takes them would hold up the loads of the tensor cores.
    """
    started = now()
    parts = cute.ceil_div(k, plan.columns)
    chunks = cute.ceil_div(rows, plan.lines) * parts
    own = w.rank.to(cute.Int64) * rows * k * 2
    number = take_number(w, turn)
    while number < (w.num_ranks - 1) * chunks:
        if pace > 0:
            wait_until(started + cute.Int64(number) * pace)
        following = take_number(w, turn)  # its answer takes as long as a part of a chunk
        chunk = number % chunks
        peer = (w.rank + w.num_ranks - 1 - number // chunks) % w.num_ranks
        row, column = chunk // parts * plan.lines, chunk % parts * plan.columns
        begin = (cute.Int64(row) * k + column) * 2
        there = half_address(w, peer, turn, half_bytes) + own + begin
        source, pitch = x.iterator.toint() + begin, cute.Int64(k) * 2
        left = (rows - row, k - column)
        copy_part(source, there, left, pitch, plan.dtype, plan.lines, plan.columns)
        arch.sync_warp()
        if arch.lane_idx() == 0:
            _count_chunk(w, peer, turn, chunk // parts, rows, parts, plan)
        number = following


@cute.jit
def _count_chunk(
    w: Any, peer: Any, turn: Any, line: Any, rows: Any, parts: Any, plan: cute.Constexpr
):
    """Count a chunk as pushed; the last one of a tile's rows sets their flag at the peer."""
    of_a_tile = plan.cfg.tile[0] // plan.lines
    tile = line // of_a_tile
    lines = cute.min(of_a_tile, cute.ceil_div(rows, plan.lines) - tile * of_a_tile)
    slot = COUNTERS + peer * cute.ceil_div(rows, plan.cfg.tile[0]) + tile
    before = w.signals.add_counter(slot, 1)
    if before == (lines * parts - 1).to(cute.Uint32):
        w.signals.set_counter(slot, 0)
        w.signals.notify(peer, turn + 1, tile)


@cute.jit
def _wait_for_rows(w: Any, source: Any, m: Any, turn: Any):
    """Wait until the rows of tile `m` of the shard of `source` have arrived, by one warp."""
    w.signals.wait(source, turn + 1, m)
    arch.sync_warp()
    arch.fence_proxy("async.global")


@cute.jit
def _load_tiles(
    own, loads, scheduler, work, k_tiles, w, rows, plan: cute.Constexpr
):  # fmt: skip
    """Load the tiles of A and B by one warp: A from this rank's own shard, or from what peers have
    pushed. Every other tile takes K backwards.
    """
    turn, has_said = launch_number(w), cute.Boolean(False)  # said late: loads do not wait for it
    cfg = plan.cfg
    load_own, load_b = tile_loads(own, cfg)
    load_a, _ = tile_loads(loads, cfg)
    tiles_m = cute.ceil_div(rows, cfg.tile[0])
    half = (turn & 1).to(cute.Int32)

    filled = pipeline.make_pipeline_state(pipeline.PipelineUserType.Producer, cfg.stages)
    step, forward = cute.Int32(0), cute.Int32(1)
    while work.is_valid_tile:
        m, n, shard = work.tile_idx
        if shard != w.rank and not has_said:
            has_read(_READERS)
            has_said = cute.Boolean(True)
        if shard != w.rank and m < tiles_m:
            _wait_for_rows(w, shard, m, turn)
        for _ in cute.range(k_tiles, unroll=1):
            loads.pipeline.producer_acquire(filled)
            barrier = loads.pipeline.producer_get_barrier(filled)
            if shard == w.rank:
                load_own.start((m, step), filled.index, barrier)
            else:
                load_a.start((m, step, shard, half), filled.index, barrier)
            load_b.start((n, step), filled.index, barrier)
            filled.advance()
            step = step + forward
        step = step - forward
        forward = 0 - forward
        scheduler.advance_to_next_work()
        work = scheduler.get_current_work()
    if not has_said:
        has_read(_READERS)
    loads.pipeline.producer_tail(filled)


@cute.kernel
def gather_product_kernel(
    x: cute.Tensor,
    load_x: tma.TmaAtom,
    tma_x: cute.Tensor,
    load_a: tma.TmaAtom,
    tma_a: cute.Tensor,
    load_b: tma.TmaAtom,
    tma_b: cute.Tensor,
    store_c: tma.TmaAtom,
    tma_c: cute.Tensor,
    w: Any,
    schedule: Any,
    k_tiles: cute.Int32,
    rows: cute.Int32,
    k: cute.Int32,
    half_bytes: cute.Int64,
    pace: cute.Int32,
    plan: cute.Constexpr,
):
    """The product of all ranks' rows with this rank's B; see the module."""
    kinds, cfg = plan.kinds, plan.cfg
    block = begin_block(kinds, cfg)
    if block.warp == 0:
        for atom in (load_x, load_b, load_a, store_c):
            tma.prefetch_descriptor(atom)
    scheduler = ShardScheduler.beginning(schedule, w.rank, cute.Int32(w.num_ranks))
    work = scheduler.get_current_work()
    pipeline.pipeline_init_wait(cfg.cluster)
    if block.warp < 4:
        arch.setmaxregister_decrease(cfg.producer_registers)
        wait_for_predecessor(cfg)
        if block.warp == 0:
            own = LoadParams(block.pipeline, load_x, tma_x, block.sa, load_b, tma_b, block.sb)
            loads = own._replace(atom_a=load_a, tma_a=tma_a)
            _load_tiles(own, loads, scheduler, work, k_tiles, w, rows, plan)
        else:
            turn = launch_number(w)
            _push_shard(x, w, turn, rows, k, half_bytes, pace, plan)
            if block.warp == 1:
                count_launch(w, turn, _READERS)
            else:
                has_read(_READERS)
    else:
        arch.setmaxregister_increase(cfg.consumer_registers)
        output = Output(store_c, tma_c)
        consumer_warpgroup(block, output, scheduler, work, k_tiles, kinds, cfg, None)


@cute.jit
def gather_product(
    x: cute.Tensor,
    b: cute.Tensor,
    y: cute.Tensor,
    w: Any,
    rows: cute.Int32,
    n: cute.Int32,
    k: cute.Int32,
    half_bytes: cute.Int64,
    pace: cute.Int32,
    blocks: cute.Int32,
    stream: cute.Int64,
    plan: cute.Constexpr,
):
    """Launch `gather_product_kernel` on flat tensors: `x` (rows, k), `b` (n, k), and `y` of the
    rows of all ranks, n columns each. `half_bytes` are those of half of the memory `w`; a chunk is
    pushed each `pace` nanoseconds, or as fast as it goes if that is 0.
    """
    kinds, cfg = plan.kinds, plan.cfg
    check_majors(kinds)
    check_config(kinds, cfg)
    ranks = w.num_ranks
    own = matrices_at(x.iterator.toint(), plan.dtype, (rows, k))
    gathered = matrices_at(
        w.local.iterator.toint(), plan.dtype, (rows, k, ranks, 2), half_bytes // 2
    )
    weight = matrices_at(b.iterator.toint(), plan.dtype, (n, k))
    c = matrices_at(y.iterator.toint(), plan.dtype, (rows, n, ranks))
    (load_x, tma_x), _, _ = tma_atoms((own, weight, c), kinds, cfg)
    (load_a, tma_a), (load_b, tma_b), (store_c, tma_c) = tma_atoms(
        (gathered, weight, c), kinds, cfg
    )
    schedule, grid = tile_schedule((rows, n, ranks), blocks, cfg)
    gather_product_kernel(
        x, load_x, tma_x, load_a, tma_a, load_b, tma_b, store_c, tma_c, w, schedule,
        cute.ceil_div(k, cfg.tile[2]), rows, k, half_bytes, pace, plan,
    ).launch(
        grid=grid,
        block=(cfg.threads, 1, 1),
        cluster=(*cfg.cluster, 1),
        stream=cute.Stream(stream.ir_value()),
        min_blocks_per_mp=1,
        use_pdl=cfg.overlap,
    )  # fmt: skip
