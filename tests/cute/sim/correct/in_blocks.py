"""Correct kernels whose warps, or blocks of a cluster, synchronise in unusual ways."""

import numpy as np
from kernel_parts import barriers, cluster_sync, copy_async, of_rank, shared

import basedsl_cute as cute
from basedsl_cute import arch
from basedsl_cute.arch.bulk import bulk_load, bulk_store

X = np.arange(512, dtype=np.float32)


@cute.kernel
def split_barrier(x: cute.Tensor, y: cute.Tensor, c: cute.Tensor):
    """Each half arrives for the other and works before it waits."""
    t = arch.thread_idx()[0]
    tile = shared(64)
    tile[t] = x[t]
    if t < 32:
        arch.barrier_arrive(1, 64)
        own = tile[t] * 2
        arch.barrier(barrier_id=2, number_of_threads=64)
        y[t] = tile[t + 32] + own
    else:
        arch.barrier_arrive(2, 64)
        own = tile[t] * 2
        arch.barrier(barrier_id=1, number_of_threads=64)
        y[t] = tile[t - 32] + own


@cute.kernel
def ping_pong(x: cute.Tensor, y: cute.Tensor, c: cute.Tensor):
    """Two warps take turns at one tile by two named barriers."""
    t = arch.thread_idx()[0]
    tile = shared(32)
    lane, group = t % 32, t // 32
    if t < 32:
        tile[lane] = 0.0
    if group == 1:
        arch.barrier_arrive(1, 64)
    for i in range(cute.Int32(3)):
        arch.barrier(barrier_id=1 + group, number_of_threads=64)
        tile[lane] = tile[lane] + x[i * 64 + t]
        arch.barrier_arrive(2 - group, 64)
    if group == 0:
        arch.barrier(barrier_id=1, number_of_threads=64)
        y[lane] = tile[lane]


@cute.kernel
def ring_of_warps(x: cute.Tensor, y: cute.Tensor, c: cute.Tensor):
    t = arch.thread_idx()[0]
    slots = shared(64)
    bar = barriers(32, 32, 32, 32)
    if t < 32:
        for i in range(cute.Int32(4)):
            s = i % 2
            arch.mbarrier_wait(bar + 2 + s, (i // 2 + 1) % 2)
            slots[s * 32 + t] = x[i * 32 + t]
            arch.mbarrier_arrive(bar + s)
    else:
        total = cute.Float32(0)
        for i in range(cute.Int32(4)):
            s = i % 2
            arch.mbarrier_wait(bar + s, i // 2 % 2)
            total += slots[s * 32 + 63 - t]
            arch.mbarrier_arrive(bar + 2 + s)
        y[t] = total


@cute.kernel
def one_lane_arrives(x: cute.Tensor, y: cute.Tensor, c: cute.Tensor):
    """A warp syncs, then one lane arrives for all."""
    t = arch.thread_idx()[0]
    slots = shared(64)
    bar = barriers(1, 1, 1, 1)
    if t < 32:
        for i in range(cute.Int32(4)):
            s = i % 2
            arch.mbarrier_wait(bar + 2 + s, (i // 2 + 1) % 2)
            slots[s * 32 + t] = x[i * 32 + t]
            arch.sync_warp()
            if t == 0:
                arch.mbarrier_arrive(bar + s)
    else:
        total = cute.Float32(0)
        for i in range(cute.Int32(4)):
            s = i % 2
            arch.mbarrier_wait(bar + s, i // 2 % 2)
            total += slots[s * 32 + 63 - t]
            arch.sync_warp()
            if t == 32:
                arch.mbarrier_arrive(bar + 2 + s)
        y[t] = total


@cute.kernel
def ring_of_bulk_loads(x: cute.Tensor, y: cute.Tensor, c: cute.Tensor):
    t = arch.thread_idx()[0]
    slots = shared(128)
    bar = barriers(1, 1, 64, 64)
    total = cute.Float32(0)
    for i in range(cute.Int32(4)):
        s = i % 2
        if t == 0:
            arch.mbarrier_wait(bar + 2 + s, (i // 2 + 1) % 2)
            arch.mbarrier_arrive_and_expect_tx(bar + s, 256)
            bulk_load(slots.iterator + s * 64, x.iterator + i * 64, 256, bar + s)
        arch.mbarrier_wait(bar + s, i // 2 % 2)
        total += slots[s * 64 + 63 - t]
        arch.mbarrier_arrive(bar + 2 + s)
    y[t] = total


@cute.kernel
def filled_ahead(x: cute.Tensor, y: cute.Tensor, c: cute.Tensor):
    """Two stages are loaded before the loop, the next one as soon as a stage is free."""
    t = arch.thread_idx()[0]
    slots = shared(128)
    bar = barriers(1, 1)
    if t == 0:
        for i in cute.range_constexpr(2):
            arch.mbarrier_arrive_and_expect_tx(bar + i, 256)
            bulk_load(slots.iterator + i * 64, x.iterator + i * 64, 256, bar + i)
    total = cute.Float32(0)
    for i in range(cute.Int32(4)):
        s = i % 2
        arch.mbarrier_wait(bar + s, i // 2 % 2)
        total += slots[s * 64 + 63 - t]
        arch.sync_threads()
        if t == 0 and i < 2:
            arch.mbarrier_arrive_and_expect_tx(bar + s, 256)
            bulk_load(slots.iterator + s * 64, x.iterator + (i + 2) * 64, 256, bar + s)
    y[t] = total


@cute.kernel
def expected_by_two(x: cute.Tensor, y: cute.Tensor, c: cute.Tensor):
    """Two threads expect bytes and load, at one mbarrier."""
    t = arch.thread_idx()[0]
    tile = shared(64)
    bar = barriers(2)
    if t % 32 == 0:
        arch.mbarrier_expect_tx(bar, 128)
        bulk_load(tile.iterator + t, x.iterator + t, 128, bar)
        arch.mbarrier_arrive(bar)
    arch.mbarrier_wait(bar, 0)
    y[t] = tile[63 - t]


@cute.kernel
def polled_barrier(x: cute.Tensor, y: cute.Tensor, c: cute.Tensor):
    """try_wait in a loop of the program's own."""
    t = arch.thread_idx()[0]
    tile = shared(64)
    bar = barriers(1)
    if t == 0:
        arch.mbarrier_arrive_and_expect_tx(bar, 256)
        bulk_load(tile.iterator, x.iterator, 256, bar)
    while not arch.mbarrier_try_wait(bar, 0):
        pass
    y[t] = tile[63 - t]


@cute.kernel
def copies_that_arrive(x: cute.Tensor, y: cute.Tensor, c: cute.Tensor):
    """cp.async counted by an mbarrier."""
    t = arch.thread_idx()[0]
    tile = shared(64)
    bar = barriers(32)
    if t < 32:
        copy_async(x.iterator + t, tile.iterator + t)
        copy_async(x.iterator + 32 + t, tile.iterator + 32 + t)
        arch.cp_async_mbarrier_arrive_noinc(bar)
    arch.mbarrier_wait(bar, 0)
    y[t] = tile[63 - t]


@cute.kernel
def pipeline_of_async_copies(x: cute.Tensor, y: cute.Tensor, c: cute.Tensor):
    t = arch.thread_idx()[0]
    ring = shared(192)
    for i in cute.range_constexpr(2):
        copy_async(x.iterator + i * 64 + t, ring.iterator + i * 64 + t)
        arch.cp_async_commit_group()
    total = cute.Float32(0)
    for i in cute.range_constexpr(4):
        arch.cp_async_wait_group(1)
        arch.sync_threads()
        total += ring[i % 3 * 64 + 63 - t]
        if i < 2:
            copy_async(x.iterator + (i + 2) * 64 + t, ring.iterator + (i + 2) % 3 * 64 + t)
        arch.cp_async_commit_group()
    y[t] = total


@cute.kernel
def stores_in_turns(x: cute.Tensor, y: cute.Tensor, c: cute.Tensor):
    """Two buffers for bulk stores: one is filled while the other is read."""
    t = arch.thread_idx()[0]
    tile = shared(128)
    for i in cute.range_constexpr(4):
        if t == 0:
            arch.cp_async_bulk_wait_group(1, read=True)
        arch.sync_threads()
        tile[i % 2 * 64 + t] = x[i * 64 + t] * 2
        arch.fence_view_async_shared()
        arch.sync_threads()
        if t == 0:
            bulk_store(y.iterator + i * 64, tile.iterator + i % 2 * 64, 256)
            arch.cp_async_bulk_commit_group()
    if t == 0:
        arch.cp_async_bulk_wait_group(0, read=True)


@cute.kernel
def through_the_async_proxy(x: cute.Tensor, y: cute.Tensor, c: cute.Tensor):
    """Stored in bulk, waited for in full, loaded again."""
    t = arch.thread_idx()[0]
    tile, back = shared(64), shared(64)
    bar = barriers(1)
    tile[t] = x[t] + 1
    arch.fence_view_async_shared()
    arch.sync_threads()
    if t == 0:
        bulk_store(y.iterator, tile.iterator, 256)
        arch.cp_async_bulk_commit_group()
        arch.cp_async_bulk_wait_group(0)
        arch.mbarrier_arrive_and_expect_tx(bar, 256)
        bulk_load(back.iterator, y.iterator, 256, bar)
    arch.mbarrier_wait(bar, 0)
    y[64 + t] = back[63 - t]


@cute.kernel
def flag_in_shared_memory(x: cute.Tensor, y: cute.Tensor, c: cute.Tensor):
    t = arch.thread_idx()[0]
    tile, flags = shared(64), shared(2, cute.Int32)
    if t < 2:
        flags[t] = 0
    arch.sync_threads()
    tile[t] = x[t]
    arch.sync_warp()
    if t % 32 == 0:
        arch.store(flags.iterator + t // 32, 1, sem="release", scope="cta")
    while arch.load(flags.iterator + (1 - t // 32), sem="acquire", scope="cta") == 0:
        pass
    y[t] = tile[63 - t]


@cute.kernel
def lock_in_shared_memory(x: cute.Tensor, y: cute.Tensor, c: cute.Tensor):
    t = arch.thread_idx()[0]
    key, total = shared(1, cute.Int32), shared(1)
    if t == 0:
        key[0] = 0
        total[0] = 0.0
    arch.sync_threads()
    if t % 32 == 0:
        while arch.atomic_cas(key.iterator, 0, 1, sem="acquire", scope="cta") != 0:
            pass
        total[0] = total[0] + 1
        arch.atomic_exch(key.iterator, 0, sem="release", scope="cta")
    arch.sync_threads()
    y[t] = total[0]


@cute.kernel
def last_warp_sums(x: cute.Tensor, y: cute.Tensor, c: cute.Tensor):
    """The warp that comes last adds what all left in shared memory."""
    t = arch.thread_idx()[0]
    sums, count = shared(4), shared(1, cute.Int32)
    if t == 0:
        count[0] = 0
    arch.sync_threads()
    part = arch.warp_reduction_sum(x[t])
    if t % 32 == 0:
        sums[t // 32] = part
        if arch.atomic_add(count.iterator, 1, sem="acq_rel", scope="cta") == 3:
            y[0] = sums[0] + sums[1] + sums[2] + sums[3]


@cute.kernel
def halves_of_a_warp(x: cute.Tensor, y: cute.Tensor, c: cute.Tensor):
    """Each half of a warp syncs by itself."""
    t = arch.thread_idx()[0]
    tile = shared(32)
    mask = cute.Int32(0xFFFF)
    if t >= 16:
        mask = cute.Int32(-65536)
    tile[t] = x[t]
    arch.sync_warp(mask)
    y[t] = tile[t ^ 15]


@cute.kernel
def equal_values_by_all_lanes(x: cute.Tensor, y: cute.Tensor, c: cute.Tensor):
    t = arch.thread_idx()[0]
    found = shared(2, cute.Int32)
    if t % 32 == 0:
        found[t // 32] = -1
    arch.sync_warp()
    if x[t] > 20:
        found[t // 32] = 1
    arch.sync_warp()
    c[t] = found[t // 32]


@cute.kernel
def owner_changes_by_barriers(x: cute.Tensor, y: cute.Tensor, c: cute.Tensor):
    """A tile is written by another warp each time, with a named barrier for each pair."""
    t = arch.thread_idx()[0]
    tile = shared(32)
    group, lane = t // 32, t % 32
    if group == 0:
        tile[lane] = x[lane]
        arch.barrier_arrive(1, 64)
    elif group == 1:
        arch.barrier(barrier_id=1, number_of_threads=64)
        tile[lane] = tile[lane] + x[t]
        arch.barrier_arrive(2, 64)
    elif group == 2:
        arch.barrier(barrier_id=2, number_of_threads=64)
        y[lane] = tile[31 - lane] + x[t]


@cute.kernel
def exchange_of_peers(x: cute.Tensor, y: cute.Tensor, c: cute.Tensor):
    t, rank = arch.thread_idx()[0], arch.block_idx_in_cluster()
    tile = shared(64)
    tile[t] = x[rank * 64 + t]
    cluster_sync()
    other = of_rank(tile, rank ^ 1)[t]
    cluster_sync()
    tile[t] = other
    arch.sync_threads()
    y[rank * 64 + t] = tile[63 - t]


@cute.kernel
def sums_pushed_to_rank_zero(x: cute.Tensor, y: cute.Tensor, c: cute.Tensor):
    t, rank = arch.thread_idx()[0], arch.block_idx_in_cluster()
    sums = shared(8)
    part = arch.warp_reduction_sum(x[rank * 64 + t])
    cluster_sync()
    if t % 32 == 0:
        of_rank(sums, 0)[rank * 2 + t // 32] = part
    cluster_sync()
    if rank == 0 and t == 0:
        total = cute.Float32(0)
        for i in cute.range_constexpr(8):
            total += sums[i]
        y[0] = total


@cute.kernel
def remote_arrivals(x: cute.Tensor, y: cute.Tensor, c: cute.Tensor):
    """Data and its arrival go to the peer; no barrier of the cluster in the loop."""
    t, rank = arch.thread_idx()[0], arch.block_idx_in_cluster()
    tile = shared(128)
    bar = barriers(64, 64)
    cluster_sync()
    total = cute.Float32(0)
    for i in cute.range_constexpr(2):
        of_rank(tile, rank ^ 1)[i * 64 + t] = x[rank * 128 + i * 64 + t]
        arch.mbarrier_arrive(bar + i, rank ^ 1)
        arch.mbarrier_wait(bar + i, 0)
        total += tile[i * 64 + 63 - t]
    y[rank * 64 + t] = total
    cluster_sync()


@cute.kernel
def atomics_of_a_cluster(x: cute.Tensor, y: cute.Tensor, c: cute.Tensor):
    t, rank = arch.thread_idx()[0], arch.block_idx_in_cluster()
    bins = shared(4, cute.Int32)
    if t < 4:
        bins[t] = 0
    cluster_sync()
    digit = x[t].to(cute.Int32) % 8
    arch.atomic_add(arch.map_dsmem_ptr(bins.iterator + digit % 4, digit // 4), 1, scope="cluster")
    cluster_sync()
    if t < 4:
        c[rank * 4 + t] = bins[t]


@cute.kernel
def relaxed_arrival_at_the_end(x: cute.Tensor, y: cute.Tensor, c: cute.Tensor):
    """The last barrier only keeps the memory: nothing is written before it."""
    t, rank = arch.thread_idx()[0], arch.block_idx_in_cluster()
    tile = shared(64)
    tile[t] = x[rank * 64 + t]
    cluster_sync()
    y[rank * 64 + t] = of_rank(tile, rank ^ 1)[t]
    arch.cluster_arrive_relaxed()
    arch.cluster_wait()


TWO = {"grid": 2, "cluster": (2, 1, 1)}


def quarters(y):
    return (y == X[:128].reshape(4, 32).sum(0)[::-1]).all()


CASES = [
    (split_barrier, {}, lambda x, y, c: (y[:64] == np.roll(X[:64], 32) + 2 * X[:64]).all()),
    (ping_pong, {}, lambda x, y, c: (y[:32] == X[:192].reshape(6, 32).sum(0)).all()),
    (ring_of_warps, {}, lambda x, y, c: quarters(y[32:64])),
    (one_lane_arrives, {}, lambda x, y, c: quarters(y[32:64])),
    (ring_of_bulk_loads, {}, lambda x, y, c: (y[:64] == X[:256].reshape(4, 64).sum(0)[::-1]).all()),
    (filled_ahead, {}, lambda x, y, c: (y[:64] == X[:256].reshape(4, 64).sum(0)[::-1]).all()),
    (expected_by_two, {}, lambda x, y, c: (y[:64] == X[63::-1]).all()),
    (polled_barrier, {}, lambda x, y, c: (y[:64] == X[63::-1]).all()),
    (copies_that_arrive, {}, lambda x, y, c: (y[:64] == X[63::-1]).all()),
    (
        pipeline_of_async_copies,
        {},
        lambda x, y, c: (y[:64] == X[:256].reshape(4, 64).sum(0)[::-1]).all(),
    ),
    (stores_in_turns, {}, lambda x, y, c: (y[:256] == X[:256] * 2).all()),
    (through_the_async_proxy, {}, lambda x, y, c: (y[64:128] == X[63::-1] + 1).all()),
    (flag_in_shared_memory, {}, lambda x, y, c: (y[:64] == X[63::-1]).all()),
    (lock_in_shared_memory, {"block": 128}, lambda x, y, c: (y[:128] == 4).all()),
    (last_warp_sums, {"block": 128}, lambda x, y, c: y[0] == X[:128].sum()),
    (halves_of_a_warp, {"block": 32}, lambda x, y, c: (y[:32] == X[np.arange(32) ^ 15]).all()),
    (equal_values_by_all_lanes, {}, lambda x, y, c: (c == 1).all()),
    (
        owner_changes_by_barriers,
        {"block": 96},
        lambda x, y, c: (y[:32] == (X[:32] + X[32:64])[::-1] + X[64:96]).all(),
    ),
    (
        exchange_of_peers,
        TWO,
        lambda x, y, c: (y[:128] == X[:128][::-1]).all(),
    ),
    (
        sums_pushed_to_rank_zero,
        {"grid": 4, "cluster": (4, 1, 1)},
        lambda x, y, c: y[0] == X[:256].sum(),
    ),
    (
        remote_arrivals,
        TWO,
        lambda x, y, c: (y[:64] == (X[128:192] + X[192:256])[::-1]).all(),
    ),
    (atomics_of_a_cluster, TWO, lambda x, y, c: (c[:8] == 16).all()),
    (relaxed_arrival_at_the_end, TWO, lambda x, y, c: (y[:128] == np.roll(X[:128], 64)).all()),
]
