"""Bugs of asynchronous copies, mbarriers and clusters: each with the bug planted, or without."""

from kernel_parts import copy_async, shared

import basedsl_cute as cute
from basedsl_cute import arch
from basedsl_cute.arch.bulk import bulk_load, bulk_store
from basedsl_cute.sim import MemoryAccessError, RaceError, SimulationError


@cute.jit
def barrier_of_one(count=1):
    bar = cute.utils.SmemAllocator().allocate_array(cute.Int64)
    if arch.thread_idx()[0] == 0:
        arch.mbarrier_init(bar, count)
        arch.mbarrier_init_fence()
    return bar


@cute.kernel
def cp_async_not_waited_for(x: cute.Tensor, y: cute.Tensor, c: cute.Tensor, bug: cute.Constexpr):
    t = arch.thread_idx()[0]
    tile = shared(64)
    tile[t] = 0.0
    copy_async(x.iterator + t, tile.iterator + t)
    arch.cp_async_commit_group()
    if not bug:
        arch.cp_async_wait_group(0)
    y[t] = tile[t]


@cute.kernel
def cp_async_waits_for_too_few(x: cute.Tensor, y: cute.Tensor, c: cute.Tensor, bug: cute.Constexpr):
    t = arch.thread_idx()[0]
    a, b = shared(64), shared(64)
    copy_async(x.iterator + t, a.iterator + t)
    arch.cp_async_commit_group()
    copy_async(x.iterator + 64 + t, b.iterator + t)
    arch.cp_async_commit_group()
    arch.cp_async_wait_group(1 if bug else 0)
    y[t] = a[t] + b[t]


@cute.kernel
def cp_async_without_commit(x: cute.Tensor, y: cute.Tensor, c: cute.Tensor, bug: cute.Constexpr):
    t = arch.thread_idx()[0]
    tile = shared(64)
    copy_async(x.iterator + t, tile.iterator + t)
    if not bug:
        arch.cp_async_commit_group()
    arch.cp_async_wait_group(0)
    y[t] = tile[t]


@cute.kernel
def cp_async_without_barrier(x: cute.Tensor, y: cute.Tensor, c: cute.Tensor, bug: cute.Constexpr):
    t = arch.thread_idx()[0]
    tile = shared(64)
    copy_async(x.iterator + t, tile.iterator + t)
    arch.cp_async_commit_group()
    arch.cp_async_wait_group(0)
    if not bug:
        arch.sync_threads()
    y[t] = tile[63 - t]


@cute.kernel
def cp_async_over_a_read(x: cute.Tensor, y: cute.Tensor, c: cute.Tensor, bug: cute.Constexpr):
    t = arch.thread_idx()[0]
    tile = shared(64)
    tile[t] = x[t]
    arch.sync_threads()
    total = tile[63 - t]
    if not bug:
        arch.sync_threads()
    copy_async(x.iterator + 64 + t, tile.iterator + t)
    arch.cp_async_commit_group()
    arch.cp_async_wait_group(0)
    arch.sync_threads()
    y[t] = total + tile[63 - t]


@cute.kernel
def bulk_load_not_waited_for(x: cute.Tensor, y: cute.Tensor, c: cute.Tensor, bug: cute.Constexpr):
    t = arch.thread_idx()[0]
    tile = shared(64)
    tile[t] = 1.0
    arch.fence_view_async_shared()
    bar = barrier_of_one()
    arch.sync_threads()
    if t == 0:
        arch.mbarrier_arrive_and_expect_tx(bar, 256)
        bulk_load(tile.iterator, x.iterator, 256, bar)
    if not bug:
        arch.mbarrier_wait(bar, 0)
    y[t] = tile[t]
    if bug:
        arch.mbarrier_wait(bar, 0)


@cute.kernel
def only_one_thread_waits(x: cute.Tensor, y: cute.Tensor, c: cute.Tensor, bug: cute.Constexpr):
    t = arch.thread_idx()[0]
    tile = shared(64)
    bar = barrier_of_one()
    arch.sync_threads()
    if t == 0:
        arch.mbarrier_arrive_and_expect_tx(bar, 256)
        bulk_load(tile.iterator, x.iterator, 256, bar)
    if not bug or t < 32:
        arch.mbarrier_wait(bar, 0)
    y[t] = tile[t]


@cute.kernel
def waits_for_the_wrong_phase(x: cute.Tensor, y: cute.Tensor, c: cute.Tensor, bug: cute.Constexpr):
    t = arch.thread_idx()[0]
    tile = shared(64)
    bar = barrier_of_one()
    arch.sync_threads()
    if t == 0:
        arch.mbarrier_arrive_and_expect_tx(bar, 256)
        bulk_load(tile.iterator, x.iterator, 256, bar)
    arch.mbarrier_wait(bar, 1 if bug else 0)
    y[t] = tile[t]


@cute.kernel
def load_over_a_read(x: cute.Tensor, y: cute.Tensor, c: cute.Tensor, bug: cute.Constexpr):
    t = arch.thread_idx()[0]
    tile = shared(64)
    bar = barrier_of_one()
    total = cute.Float32(0)
    arch.sync_threads()
    for i in range(cute.Int32(2)):
        if t == 0:
            arch.mbarrier_arrive_and_expect_tx(bar, 256)
            bulk_load(tile.iterator, x.iterator + i * 64, 256, bar)
        arch.mbarrier_wait(bar, i)
        total += tile[63 - t]
        if not bug:
            arch.sync_threads()
    y[t] = total


@cute.kernel
def store_without_proxy_fence(x: cute.Tensor, y: cute.Tensor, c: cute.Tensor, bug: cute.Constexpr):
    t = arch.thread_idx()[0]
    tile = shared(64)
    tile[t] = x[t]
    if not bug:
        arch.fence_view_async_shared()
    arch.sync_threads()
    if t == 0:
        bulk_store(y.iterator, tile.iterator, 256)
        arch.cp_async_bulk_commit_group()
        arch.cp_async_bulk_wait_group(0, read=True)


@cute.kernel
def store_without_barrier(x: cute.Tensor, y: cute.Tensor, c: cute.Tensor, bug: cute.Constexpr):
    t = arch.thread_idx()[0]
    tile = shared(64)
    tile[t] = x[t]
    arch.fence_view_async_shared()
    if not bug:
        arch.sync_threads()
    if t == 0:
        bulk_store(y.iterator, tile.iterator, 256)
        arch.cp_async_bulk_commit_group()
        arch.cp_async_bulk_wait_group(0, read=True)


@cute.kernel
def source_changed_too_soon(x: cute.Tensor, y: cute.Tensor, c: cute.Tensor, bug: cute.Constexpr):
    t = arch.thread_idx()[0]
    tile = shared(64)
    tile[t] = x[t]
    arch.fence_view_async_shared()
    arch.sync_threads()
    if t == 0:
        bulk_store(y.iterator, tile.iterator, 256)
        arch.cp_async_bulk_commit_group()
        if not bug:
            arch.cp_async_bulk_wait_group(0, read=True)
    arch.sync_threads()
    tile[t] = 0.0
    if bug:
        if t == 0:
            arch.cp_async_bulk_wait_group(0, read=True)


@cute.kernel
def block_ends_too_soon(x: cute.Tensor, y: cute.Tensor, c: cute.Tensor, bug: cute.Constexpr):
    t = arch.thread_idx()[0]
    tile = shared(64)
    tile[t] = x[t]
    arch.fence_view_async_shared()
    arch.sync_threads()
    if t == 0:
        bulk_store(y.iterator, tile.iterator, 256)
        arch.cp_async_bulk_commit_group()
        if not bug:
            arch.cp_async_bulk_wait_group(0, read=True)


@cute.kernel
def stored_data_read_at_once(x: cute.Tensor, y: cute.Tensor, c: cute.Tensor, bug: cute.Constexpr):
    t = arch.thread_idx()[0]
    tile = shared(64)
    tile[t] = x[t] + 1
    arch.fence_view_async_shared()
    arch.sync_threads()
    if t == 0:
        bulk_store(y.iterator, tile.iterator, 256)
        arch.cp_async_bulk_commit_group()
        arch.cp_async_bulk_wait_group(0, read=bug)
        y[64] = y[3]


@cute.kernel
def mbarrier_without_barrier(x: cute.Tensor, y: cute.Tensor, c: cute.Tensor, bug: cute.Constexpr):
    t = arch.thread_idx()[0]
    bar = barrier_of_one(2)
    if not bug:
        arch.sync_threads()
    if t % 32 == 0:
        arch.mbarrier_arrive(bar)
    arch.mbarrier_wait(bar, 0)
    y[t] = x[t]


@cute.kernel
def arrival_before_the_data(x: cute.Tensor, y: cute.Tensor, c: cute.Tensor, bug: cute.Constexpr):
    t = arch.thread_idx()[0]
    tile = shared(32)
    bar = barrier_of_one(32)
    arch.sync_threads()
    if t < 32:
        if bug:
            arch.mbarrier_arrive(bar)
        tile[t] = x[t]
        if not bug:
            arch.mbarrier_arrive(bar)
    else:
        arch.mbarrier_wait(bar, 0)
        y[t] = tile[63 - t]


@cute.kernel
def too_many_arrivals(x: cute.Tensor, y: cute.Tensor, c: cute.Tensor, bug: cute.Constexpr):
    t = arch.thread_idx()[0]
    bar = barrier_of_one(64)
    arch.sync_threads()
    arch.mbarrier_arrive(bar)
    if bug and t == 0:
        arch.mbarrier_arrive(bar)
        for _i in range(cute.Int32(64)):
            arch.mbarrier_arrive(bar)
    arch.mbarrier_wait(bar, 0)
    y[t] = x[t]


@cute.kernel
def never_initialised(x: cute.Tensor, y: cute.Tensor, c: cute.Tensor, bug: cute.Constexpr):
    t = arch.thread_idx()[0]
    bar = cute.utils.SmemAllocator().allocate_array(cute.Int64)
    if not bug:
        if t == 0:
            arch.mbarrier_init(bar, 64)
    arch.sync_threads()
    arch.mbarrier_arrive(bar)
    arch.mbarrier_wait(bar, 0)
    y[t] = x[t]


@cute.kernel
def misaligned_bulk_load(x: cute.Tensor, y: cute.Tensor, c: cute.Tensor, bug: cute.Constexpr):
    t = arch.thread_idx()[0]
    tile = shared(64)
    bar = barrier_of_one()
    arch.sync_threads()
    if t == 0:
        arch.mbarrier_arrive_and_expect_tx(bar, 128)
        bulk_load(tile.iterator, x.iterator + (1 if bug else 4), 128, bar)
    arch.mbarrier_wait(bar, 0)
    if t < 32:
        y[t] = tile[t]


@cute.kernel
def bulk_load_beyond(x: cute.Tensor, y: cute.Tensor, c: cute.Tensor, bug: cute.Constexpr):
    t = arch.thread_idx()[0]
    tile = shared(64)
    bar = barrier_of_one()
    arch.sync_threads()
    if t == 0:
        arch.mbarrier_arrive_and_expect_tx(bar, 256)
        bulk_load(tile.iterator, x.iterator + (220 if bug else 192), 256, bar)
    arch.mbarrier_wait(bar, 0)
    y[t] = tile[t]


@cute.kernel
def peer_read_without_barrier(x: cute.Tensor, y: cute.Tensor, c: cute.Tensor, bug: cute.Constexpr):
    t, rank = arch.thread_idx()[0], arch.block_idx_in_cluster()
    tile = shared(64)
    tile[t] = x[t]
    if not bug:
        arch.cluster_arrive()
        arch.cluster_wait()
    else:
        arch.sync_threads()
    peer = cute.make_tensor(arch.map_dsmem_ptr(tile.iterator, rank ^ 1), cute.make_layout((64,)))
    y[rank * 64 + t] = peer[t]
    arch.cluster_arrive()
    arch.cluster_wait()


@cute.kernel
def peer_ends_before(x: cute.Tensor, y: cute.Tensor, c: cute.Tensor, bug: cute.Constexpr):
    t, rank = arch.thread_idx()[0], arch.block_idx_in_cluster()
    tile = shared(64)
    tile[t] = x[t]
    arch.cluster_arrive()
    arch.cluster_wait()
    peer = cute.make_tensor(arch.map_dsmem_ptr(tile.iterator, rank ^ 1), cute.make_layout((64,)))
    y[rank * 64 + t] = peer[t]
    if not bug:
        arch.cluster_arrive()
        arch.cluster_wait()


@cute.kernel
def relaxed_cluster_barrier(x: cute.Tensor, y: cute.Tensor, c: cute.Tensor, bug: cute.Constexpr):
    t, rank = arch.thread_idx()[0], arch.block_idx_in_cluster()
    tile = shared(64)
    tile[t] = x[t]
    arch.cluster_arrive_relaxed() if bug else arch.cluster_arrive()
    arch.cluster_wait()
    peer = cute.make_tensor(arch.map_dsmem_ptr(tile.iterator, rank ^ 1), cute.make_layout((64,)))
    y[rank * 64 + t] = peer[t]
    arch.cluster_arrive()
    arch.cluster_wait()


@cute.kernel
def dependent_without_wait(x: cute.Tensor, y: cute.Tensor, c: cute.Tensor, bug: cute.Constexpr):
    t = arch.thread_idx()[0]
    if not bug:
        arch.griddepcontrol_wait()
    y[t] = x[t]


@cute.kernel
def dependent_reads_before_the_wait(
    x: cute.Tensor, y: cute.Tensor, c: cute.Tensor, bug: cute.Constexpr
):
    t = arch.thread_idx()[0]
    before = cute.Float32(0)
    scale = x[t]  # no kernel in front writes it
    if bug:
        before = y[t]
    arch.griddepcontrol_wait()
    if not bug:
        before = y[t]
    y[t] = before + scale


@cute.kernel
def tile_by_tma(
    load: cute.CopyAtom, source: cute.Tensor, y: cute.Tensor, aligned_to: cute.Constexpr
):
    t = arch.thread_idx()[0]
    bar = barrier_of_one()
    tile = shared(64, align=aligned_to)
    arch.sync_threads()
    to, what = cute.nvgpu.cpasync.tma_partition(
        load, 0, None, tile, cute.zipped_divide(source, (64,))
    )
    if arch.warp_idx() == 0:
        with arch.elect_one():
            arch.mbarrier_arrive_and_expect_tx(bar, 256)
            cute.copy(load, what[None, 0], to, tma_bar_ptr=bar)
    arch.mbarrier_wait(bar, 0)
    y[t] = tile[t]


@cute.jit
def shared_memory_aligned_by_luck(
    x: cute.Tensor, y: cute.Tensor, c: cute.Tensor, bug: cute.Constexpr
):
    load, source = cute.nvgpu.cpasync.make_tiled_tma_atom(
        cute.nvgpu.cpasync.CopyBulkTensorTileG2SOp(), x, cute.make_layout(64), (64,)
    )
    tile_by_tma(load, source, y, 16 if bug else 128).launch(grid=1, block=64)


SHARED = "race on shared memory"
NOT_YET = "that no thread has written|deadlock|race on shared memory"
TWO = {"grid": 2, "cluster": (2, 1, 1)}
CASES = [
    (cp_async_not_waited_for, RaceError, SHARED),
    (cp_async_waits_for_too_few, RaceError, SHARED),
    (cp_async_without_commit, RaceError, SHARED),
    (cp_async_without_barrier, RaceError, SHARED),
    (cp_async_over_a_read, RaceError, SHARED),
    (bulk_load_not_waited_for, RaceError, SHARED),
    (only_one_thread_waits, SimulationError, NOT_YET),
    (waits_for_the_wrong_phase, SimulationError, NOT_YET),
    (load_over_a_read, SimulationError, NOT_YET),
    (store_without_proxy_fence, RaceError, "missing proxy fence"),
    (store_without_barrier, SimulationError, NOT_YET),
    (source_changed_too_soon, RaceError, SHARED),
    (block_ends_too_soon, RaceError, "the block ends while"),
    (stored_data_read_at_once, RaceError, "race on global memory"),
    (mbarrier_without_barrier, SimulationError, "mbarrier|race on shared"),
    (arrival_before_the_data, RaceError, SHARED),
    (too_many_arrivals, SimulationError, "arrivals at an mbarrier|deadlock"),
    (never_initialised, SimulationError, "no mbarrier was initialised"),
    (misaligned_bulk_load, MemoryAccessError, "16"),
    (bulk_load_beyond, MemoryAccessError, "out-of-bounds"),
    (peer_read_without_barrier, RaceError, "may not have started", TWO),
    (peer_ends_before, RaceError, "may have ended", TWO),
    (relaxed_cluster_barrier, RaceError, SHARED, TWO),
    (dependent_without_wait, RaceError, "never waits", {"use_pdl": True}),
    (dependent_reads_before_the_wait, RaceError, "before", {"use_pdl": True, "launches": 2}),
    (shared_memory_aligned_by_luck, MemoryAccessError, "not aligned", {"whole": True}),
]
