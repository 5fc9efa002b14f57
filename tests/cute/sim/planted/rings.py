"""Rings of buffers, mbarriers and bulk copies: each with an order left out, or complete."""

from kernel_parts import barriers, copy_async, shared

import basedsl_cute as cute
from basedsl_cute import arch
from basedsl_cute.arch.bulk import bulk_load, bulk_store
from basedsl_cute.sim import RaceError, SimulationError


@cute.kernel
def freed_before_the_read(x: cute.Tensor, y: cute.Tensor, c: cute.Tensor, bug: cute.Constexpr):
    t = arch.thread_idx()[0]
    slots = shared(64)
    bar = barriers(32, 32, 32, 32)  # two full, two empty
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
            if bug:
                arch.mbarrier_arrive(bar + 2 + s)
            total += slots[s * 32 + 63 - t]
            if not bug:
                arch.mbarrier_arrive(bar + 2 + s)
        y[t] = total


@cute.kernel
def producer_does_not_wait(x: cute.Tensor, y: cute.Tensor, c: cute.Tensor, bug: cute.Constexpr):
    t = arch.thread_idx()[0]
    slots = shared(64)
    bar = barriers(32, 32, 32, 32)
    if t < 32:
        for i in range(cute.Int32(4)):
            s = i % 2
            if not bug:
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
def phase_never_flips(x: cute.Tensor, y: cute.Tensor, c: cute.Tensor, bug: cute.Constexpr):
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
            arch.mbarrier_wait(bar + s, 0 if bug else i // 2 % 2)
            total += slots[s * 32 + 63 - t]
            arch.mbarrier_arrive(bar + 2 + s)
        y[t] = total


@cute.kernel
def reads_the_next_stage(x: cute.Tensor, y: cute.Tensor, c: cute.Tensor, bug: cute.Constexpr):
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
            at = (s + 1) % 2 if bug else s
            total += slots[at * 32 + 63 - t]
            arch.mbarrier_arrive(bar + 2 + s)
        y[t] = total


@cute.kernel
def expects_too_few_bytes(x: cute.Tensor, y: cute.Tensor, c: cute.Tensor, bug: cute.Constexpr):
    t = arch.thread_idx()[0]
    tile = shared(64)
    bar = barriers(1)
    if t == 0:
        arch.mbarrier_arrive_and_expect_tx(bar, 128 if bug else 256)
        bulk_load(tile.iterator, x.iterator, 128, bar)
        bulk_load(tile.iterator + 32, x.iterator + 32, 128, bar)
    arch.mbarrier_wait(bar, 0)
    y[t] = tile[t]


@cute.kernel
def loads_that_overlap(x: cute.Tensor, y: cute.Tensor, c: cute.Tensor, bug: cute.Constexpr):
    t = arch.thread_idx()[0]
    tile = shared(64)
    bar = barriers(1)
    if t == 0:
        arch.mbarrier_arrive_and_expect_tx(bar, 256)
        bulk_load(tile.iterator, x.iterator, 128, bar)
        bulk_load(tile.iterator + (16 if bug else 32), x.iterator + 64, 128, bar)
    arch.mbarrier_wait(bar, 0)
    if t < 48:
        y[t] = tile[t]


@cute.kernel
def refilled_while_stored(x: cute.Tensor, y: cute.Tensor, c: cute.Tensor, bug: cute.Constexpr):
    t = arch.thread_idx()[0]
    tile = shared(64)
    bar = barriers(1)
    if t == 0:
        for i in cute.range_constexpr(2):
            arch.mbarrier_arrive_and_expect_tx(bar, 256)
            bulk_load(tile.iterator, x.iterator + i * 64, 256, bar)
            arch.mbarrier_wait(bar, i)
            bulk_store(y.iterator + i * 64, tile.iterator, 256)
            arch.cp_async_bulk_commit_group()
            if not bug:
                arch.cp_async_bulk_wait_group(0, read=True)
        arch.cp_async_bulk_wait_group(0, read=True)


@cute.kernel
def pipeline_waits_one_short(x: cute.Tensor, y: cute.Tensor, c: cute.Tensor, bug: cute.Constexpr):
    t = arch.thread_idx()[0]
    ring = shared(128)
    copy_async(x.iterator + t, ring.iterator + t)
    arch.cp_async_commit_group()
    total = cute.Float32(0)
    for i in cute.range_constexpr(3):
        if i < 2:
            target = (i + 1) % 2 * 64
            copy_async(x.iterator + (i + 1) * 64 + t, ring.iterator + target + t)
        arch.cp_async_commit_group()
        arch.cp_async_wait_group(2 if bug else 1)
        arch.sync_threads()
        total += ring[i % 2 * 64 + 63 - t]
        arch.sync_threads()
    arch.cp_async_wait_group(0)
    y[t] = total


@cute.kernel
def plain_arrival_for_a_copy(x: cute.Tensor, y: cute.Tensor, c: cute.Tensor, bug: cute.Constexpr):
    t = arch.thread_idx()[0]
    tile = shared(32)
    bar = barriers(32)
    if t < 32:
        copy_async(x.iterator + t, tile.iterator + t)
        if bug:
            arch.mbarrier_arrive(bar)
        else:
            arch.cp_async_mbarrier_arrive_noinc(bar)
    else:
        arch.mbarrier_wait(bar, 0)
        y[t] = tile[63 - t]
    arch.cp_async_wait_group(0)


@cute.kernel
def rewritten_after_a_bulk_store(
    x: cute.Tensor, y: cute.Tensor, c: cute.Tensor, bug: cute.Constexpr
):
    t = arch.thread_idx()[0]
    tile = shared(64)
    tile[t] = x[t]
    arch.fence_view_async_shared()
    arch.sync_threads()
    if t == 0:
        bulk_store(y.iterator, tile.iterator, 256)
        arch.cp_async_bulk_commit_group()
        arch.cp_async_bulk_wait_group(0, read=bug)
    arch.sync_threads()
    y[t] = tile[t] + 1


@cute.kernel
def loaded_without_a_proxy_fence(
    x: cute.Tensor, y: cute.Tensor, c: cute.Tensor, bug: cute.Constexpr
):
    t = arch.thread_idx()[0]
    tile = shared(64)
    bar = barriers(1)
    y[t] = x[t]
    if not bug:
        arch.fence_proxy("async")
    arch.sync_threads()
    if t == 0:
        arch.mbarrier_arrive_and_expect_tx(bar, 256)
        bulk_load(tile.iterator, y.iterator, 256, bar)
    arch.mbarrier_wait(bar, 0)
    x[t] = tile[63 - t]


@cute.kernel
def initialised_twice(x: cute.Tensor, y: cute.Tensor, c: cute.Tensor, bug: cute.Constexpr):
    t = arch.thread_idx()[0]
    bar = barriers(2)
    if t % 32 == 0:
        arch.mbarrier_arrive(bar)
    arch.mbarrier_wait(bar, 0)
    if not bug:
        arch.sync_threads()
    if t == 63:
        arch.mbarrier_init(bar, 64)
    arch.sync_threads()
    arch.mbarrier_arrive(bar)
    arch.mbarrier_wait(bar, 0)
    y[t] = x[t]


@cute.kernel
def two_stores_to_one_place(x: cute.Tensor, y: cute.Tensor, c: cute.Tensor, bug: cute.Constexpr):
    t = arch.thread_idx()[0]
    tile = shared(64)
    tile[t] = x[t]
    arch.fence_view_async_shared()
    arch.sync_threads()
    if t % 32 == 0:
        at = t // 32 * (0 if bug else 32)
        bulk_store(y.iterator + at, tile.iterator + t, 128)
        arch.cp_async_bulk_commit_group()
        arch.cp_async_bulk_wait_group(0)


@cute.kernel
def initialised_without_a_fence(
    x: cute.Tensor, y: cute.Tensor, c: cute.Tensor, bug: cute.Constexpr
):
    t = arch.thread_idx()[0]
    tile = shared(64)
    bar = cute.utils.SmemAllocator().allocate_array(cute.Int64)
    if t == 0:
        arch.mbarrier_init(bar, 1)
        if not bug:
            arch.mbarrier_init_fence()
    arch.sync_threads()
    if t == 0:
        arch.mbarrier_arrive_and_expect_tx(bar, 256)
        bulk_load(tile.iterator, x.iterator, 256, bar)
    arch.mbarrier_wait(bar, 0)
    y[t] = tile[t]


@cute.kernel
def blocks_store_one_place(x: cute.Tensor, y: cute.Tensor, c: cute.Tensor, bug: cute.Constexpr):
    t, b = arch.thread_idx()[0], arch.block_idx()[0]
    tile = shared(64)
    tile[t] = x[t] + b
    arch.fence_view_async_shared()
    arch.sync_threads()
    if t == 0:
        bulk_store(y.iterator + b * (32 if bug else 64), tile.iterator, 256)
        arch.cp_async_bulk_commit_group()
        arch.cp_async_bulk_wait_group(0)


@cute.kernel
def data_over_a_barrier(x: cute.Tensor, y: cute.Tensor, c: cute.Tensor, bug: cute.Constexpr):
    t = arch.thread_idx()[0]
    room = shared(4)
    words = cute.recast_ptr(room.iterator, dtype=cute.Int64)
    if t == 0:
        arch.mbarrier_init(words, 2)
        arch.mbarrier_init_fence()
    arch.sync_threads()
    if t == 5:
        room[1 if bug else 2] = x[t]
    if t % 32 == 0:
        arch.mbarrier_arrive(words)
    arch.mbarrier_wait(words, 0)
    y[t] = x[t]


@cute.kernel
def order_of_the_stages(x: cute.Tensor, y: cute.Tensor, c: cute.Tensor, bug: cute.Constexpr):
    """Two stages are loaded in one order and waited for in the other."""
    t = arch.thread_idx()[0]
    ring = shared(128)
    bar = barriers(1, 1)
    if t == 0:
        for i in cute.range_constexpr(2):
            arch.mbarrier_arrive_and_expect_tx(bar + i, 256)
            bulk_load(ring.iterator + i * 64, x.iterator + i * 64, 256, bar + i)
    arch.mbarrier_wait(bar + (1 if bug else 0), 0)
    first = ring[t]
    arch.mbarrier_wait(bar + (0 if bug else 1), 0)
    y[t] = first + ring[64 + t]


SHARED, GLOBAL = "race on shared memory", "race on global memory"
NOT_YET = "that no thread has written|deadlock|race on shared memory"
CASES = [
    (freed_before_the_read, SimulationError, NOT_YET),
    (producer_does_not_wait, SimulationError, NOT_YET + "|arrivals"),
    (phase_never_flips, SimulationError, NOT_YET),
    (reads_the_next_stage, SimulationError, NOT_YET),
    (expects_too_few_bytes, SimulationError, "bytes|" + NOT_YET),
    (loads_that_overlap, RaceError, SHARED),
    (refilled_while_stored, RaceError, SHARED),
    (pipeline_waits_one_short, SimulationError, NOT_YET),
    (plain_arrival_for_a_copy, SimulationError, NOT_YET),
    (rewritten_after_a_bulk_store, RaceError, GLOBAL),
    (loaded_without_a_proxy_fence, RaceError, "missing proxy fence"),
    (initialised_twice, SimulationError, "mbarrier|race on shared"),
    (two_stores_to_one_place, RaceError, GLOBAL),
    (initialised_without_a_fence, SimulationError, "fence"),
    (blocks_store_one_place, RaceError, GLOBAL, {"grid": 2}),
    (data_over_a_barrier, SimulationError, "mbarrier|race on shared"),
    (order_of_the_stages, SimulationError, NOT_YET),
]
