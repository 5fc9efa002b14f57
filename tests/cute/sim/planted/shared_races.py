"""Races on shared memory between warps of a block: each kernel with the bug planted, or without."""

import basedsl_cute as cute
from basedsl_cute import arch
from basedsl_cute.sim import RaceError, SimulationError


def shared(count, dtype=cute.Float32):
    return cute.utils.SmemAllocator().allocate_tensor(dtype, cute.make_layout((count,)), 16)


@cute.kernel
def read_before_barrier(x: cute.Tensor, y: cute.Tensor, c: cute.Tensor, bug: cute.Constexpr):
    t = arch.thread_idx()[0]
    tile = shared(64)
    tile[t] = x[t]
    if not bug:
        arch.sync_threads()
    y[t] = tile[63 - t]


@cute.kernel
def next_turn_overwrites(x: cute.Tensor, y: cute.Tensor, c: cute.Tensor, bug: cute.Constexpr):
    t = arch.thread_idx()[0]
    tile = shared(64)
    total = cute.Float32(0)
    for i in range(cute.Int32(3)):
        tile[t] = x[t] * i
        arch.sync_threads()
        total += tile[63 - t]
        if not bug:
            arch.sync_threads()
    y[t] = total


@cute.kernel
def tree_without_barrier(x: cute.Tensor, y: cute.Tensor, c: cute.Tensor, bug: cute.Constexpr):
    t = arch.thread_idx()[0]
    tile = shared(128)
    tile[t] = x[t]
    tile[t + 64] = x[t + 64]
    arch.sync_threads()
    for i in cute.range_constexpr(7):
        half = 64 >> i
        if t < half:
            tile[t] = tile[t] + tile[t + half]
        if not bug:
            arch.sync_threads()
    arch.sync_threads()
    y[t] = tile[0]


@cute.kernel
def one_buffer_for_two(x: cute.Tensor, y: cute.Tensor, c: cute.Tensor, bug: cute.Constexpr):
    t = arch.thread_idx()[0]
    ring = shared(128)
    total = cute.Float32(0)
    for i in range(cute.Int32(4)):
        at = (i % 2) * (0 if bug else 64)
        ring[at + t] = x[t] + i
        arch.sync_threads()
        total += ring[at + 63 - t]
    y[t] = total


@cute.kernel
def transposed_tile(x: cute.Tensor, y: cute.Tensor, c: cute.Tensor, bug: cute.Constexpr):
    tx, ty, _ = arch.thread_idx()
    tile = cute.utils.SmemAllocator().allocate_tensor(cute.Float32, cute.make_layout((8, 8)), 16)
    tile[ty, tx] = x[ty * 8 + tx]
    if not bug:
        arch.sync_threads()
    y[ty * 8 + tx] = tile[tx, ty]


@cute.kernel
def histogram(x: cute.Tensor, y: cute.Tensor, c: cute.Tensor, bug: cute.Constexpr):
    t = arch.thread_idx()[0]
    bins = shared(8, cute.Int32)
    if t < 8:
        bins[t] = 0
    arch.sync_threads()
    b = x[t].to(cute.Int32) % 8
    if bug:
        bins[b] = bins[b] + 1
    else:
        arch.atomic_add(bins.iterator + b, 1)
    arch.sync_threads()
    if t < 8:
        c[t] = bins[t]


@cute.kernel
def barriers_of_two_numbers(x: cute.Tensor, y: cute.Tensor, c: cute.Tensor, bug: cute.Constexpr):
    t = arch.thread_idx()[0]
    tile = shared(64)
    tile[t] = x[t]
    number = t // 32 + 1 if bug else 1
    arch.barrier(barrier_id=number, number_of_threads=32 if bug else 64)
    y[t] = tile[63 - t]


@cute.kernel
def sync_warp_for_a_block(x: cute.Tensor, y: cute.Tensor, c: cute.Tensor, bug: cute.Constexpr):
    t = arch.thread_idx()[0]
    tile = shared(64)
    tile[t] = x[t]
    if bug:
        arch.sync_warp()
    else:
        arch.sync_threads()
    y[t] = tile[(t + 32) % 64]


@cute.kernel
def broadcast_of_one_thread(x: cute.Tensor, y: cute.Tensor, c: cute.Tensor, bug: cute.Constexpr):
    t = arch.thread_idx()[0]
    tile = shared(64)
    if t == 0:
        tile[0] = x[5]
    if not bug:
        arch.sync_threads()
    if t >= 32:
        y[t] = tile[0]


@cute.kernel
def every_thread_writes_one(x: cute.Tensor, y: cute.Tensor, c: cute.Tensor, bug: cute.Constexpr):
    t = arch.thread_idx()[0]
    tile = shared(64)
    if bug or t == 7:
        tile[0] = x[t]
    arch.sync_threads()
    y[t] = tile[0]


@cute.kernel
def read_after_atomics(x: cute.Tensor, y: cute.Tensor, c: cute.Tensor, bug: cute.Constexpr):
    t = arch.thread_idx()[0]
    total = shared(1, cute.Int32)
    if t == 0:
        total[0] = 0
    arch.sync_threads()
    arch.atomic_add(total.iterator, 1)
    if not bug:
        arch.sync_threads()
    c[t] = total[0]


@cute.kernel
def zeroed_before_atomics(x: cute.Tensor, y: cute.Tensor, c: cute.Tensor, bug: cute.Constexpr):
    t = arch.thread_idx()[0]
    total = shared(1, cute.Int32)
    if t == 0:
        total[0] = 0
    if not bug:
        arch.sync_threads()
    if t >= 32:
        arch.atomic_add(total.iterator, 1)
    arch.sync_threads()
    c[t] = total[0]


@cute.kernel
def atomics_of_the_same_warp_between(
    x: cute.Tensor, y: cute.Tensor, c: cute.Tensor, bug: cute.Constexpr
):
    t = arch.thread_idx()[0]
    total = shared(1, cute.Int32)
    if t == 0:
        total[0] = 0
    if bug:
        arch.sync_warp()
    else:
        arch.sync_threads()
    arch.atomic_add(total.iterator, 1)
    arch.sync_threads()
    c[t] = total[0]


@cute.kernel
def scan_in_place(x: cute.Tensor, y: cute.Tensor, c: cute.Tensor, bug: cute.Constexpr):
    t = arch.thread_idx()[0]
    tile = shared(64)
    tile[t] = x[t]
    arch.sync_threads()
    for i in cute.range_constexpr(6):
        step = 1 << i
        before = cute.Float32(0)
        if t >= step:
            before = tile[t - step]
        if not bug:
            arch.sync_threads()
        tile[t] = tile[t] + before
        arch.sync_threads()
    y[t] = tile[t]


@cute.kernel
def stencil_in_place(x: cute.Tensor, y: cute.Tensor, c: cute.Tensor, bug: cute.Constexpr):
    t = arch.thread_idx()[0]
    tile = shared(64)
    tile[t] = x[t]
    arch.sync_threads()
    both = tile[(t + 1) % 64] + tile[(t + 63) % 64]
    if not bug:
        arch.sync_threads()
    tile[t] = both
    arch.sync_threads()
    y[t] = tile[t]


@cute.kernel
def barrier_on_the_wrong_side(x: cute.Tensor, y: cute.Tensor, c: cute.Tensor, bug: cute.Constexpr):
    t = arch.thread_idx()[0]
    tile = shared(64)
    if bug:
        arch.sync_threads()
    tile[t] = x[t]
    if not bug:
        arch.sync_threads()
    y[t] = tile[t ^ 32]


@cute.kernel
def barrier_in_even_turns(x: cute.Tensor, y: cute.Tensor, c: cute.Tensor, bug: cute.Constexpr):
    t = arch.thread_idx()[0]
    tile = shared(64)
    total = cute.Float32(0)
    for i in range(cute.Int32(4)):
        tile[t] = x[t] + i
        arch.sync_threads()
        total += tile[t ^ 32]
        if not bug or i % 2 == 0:
            arch.sync_threads()
    y[t] = total


@cute.kernel
def halves_of_a_word(x: cute.Tensor, y: cute.Tensor, c: cute.Tensor, bug: cute.Constexpr):
    t = arch.thread_idx()[0]
    tile = shared(64, cute.Float16)
    at = t % 32 if bug else t
    tile[at] = x[t].to(cute.Float16)
    arch.sync_threads()
    y[t] = tile[at].to(cute.Float32)


@cute.kernel
def bytes_of_a_word(x: cute.Tensor, y: cute.Tensor, c: cute.Tensor, bug: cute.Constexpr):
    t = arch.thread_idx()[0]
    tile = shared(65, cute.Uint8)
    tile[t] = t.to(cute.Uint8)
    if not bug:
        arch.sync_threads()
    if t == 32:
        y[t] = tile[31].to(cute.Float32)


@cute.kernel
def one_too_far(x: cute.Tensor, y: cute.Tensor, c: cute.Tensor, bug: cute.Constexpr):
    t = arch.thread_idx()[0]
    tile = shared(132)
    tile[2 * t] = x[t]
    tile[2 * t + (2 if bug else 1)] = x[t + 1]
    arch.sync_threads()
    y[t] = tile[2 * t]


@cute.kernel
def ring_of_too_few(x: cute.Tensor, y: cute.Tensor, c: cute.Tensor, bug: cute.Constexpr):
    t = arch.thread_idx()[0]
    stages = 2 if bug else 3
    ring = shared(64 * 3)
    ring[t] = x[t]
    total = cute.Float32(0)
    for i in range(cute.Int32(4)):
        arch.sync_threads()
        ring[((i + 1) % stages) * 64 + t] = x[t] + i
        total += ring[(i % stages) * 64 + 63 - t]
        if i > 0:
            total += ring[((i + stages - 1) % stages) * 64 + 63 - t]
    y[t] = total


@cute.kernel
def arrival_before_the_write(x: cute.Tensor, y: cute.Tensor, c: cute.Tensor, bug: cute.Constexpr):
    t = arch.thread_idx()[0]
    tile = shared(32)
    if t < 32:
        if bug:
            arch.barrier_arrive(1, 64)
        tile[t] = x[t]
        if not bug:
            arch.barrier_arrive(1, 64)
    else:
        arch.barrier(barrier_id=1, number_of_threads=64)
        y[t] = tile[63 - t]


@cute.kernel
def released_before_the_read(x: cute.Tensor, y: cute.Tensor, c: cute.Tensor, bug: cute.Constexpr):
    t = arch.thread_idx()[0]
    tile = shared(32)
    if t >= 32:
        tile[t - 32] = x[t]
    arch.sync_threads()
    if t < 32:
        arch.barrier(barrier_id=1, number_of_threads=64)
        tile[t] = x[t]
    else:
        if bug:
            arch.barrier_arrive(1, 64)
        y[t] = tile[63 - t]
        if not bug:
            arch.barrier_arrive(1, 64)


@cute.kernel
def rows_of_another_warp(x: cute.Tensor, y: cute.Tensor, c: cute.Tensor, bug: cute.Constexpr):
    tx, ty, _ = arch.thread_idx()
    tile = cute.utils.SmemAllocator().allocate_tensor(cute.Float32, cute.make_layout((32, 4)), 16)
    tile[tx, ty] = x[ty * 32 + tx]
    if not bug:
        arch.sync_threads()
    else:
        arch.sync_warp()
    y[ty * 32 + tx] = tile[tx, (ty + 1) % 4]


@cute.kernel
def run_time_loop(x: cute.Tensor, y: cute.Tensor, c: cute.Tensor, bug: cute.Constexpr):
    t = arch.thread_idx()[0]
    tile = shared(64)
    turns = x[3].to(cute.Int32)
    tile[t] = x[t]
    arch.sync_threads()
    for i in range(turns):
        other = tile[(t + i + 1) % 64]
        if not bug:
            arch.sync_threads()
        tile[t] = other
        arch.sync_threads()
    y[t] = tile[t]


@cute.kernel
def lane_for_thread(x: cute.Tensor, y: cute.Tensor, c: cute.Tensor, bug: cute.Constexpr):
    t = arch.thread_idx()[0]
    tile = shared(64)
    at = arch.lane_idx() if bug else t
    tile[at] = x[t]
    arch.sync_threads()
    y[t] = tile[at]


@cute.kernel
def sums_of_warps(x: cute.Tensor, y: cute.Tensor, c: cute.Tensor, bug: cute.Constexpr):
    t = arch.thread_idx()[0]
    sums = shared(4)
    part = arch.warp_reduction_sum(x[t])
    if t % 32 == 0:
        sums[t // 32] = part
    if not bug:
        arch.sync_threads()
    if t == 0:
        y[0] = sums[0] + sums[1] + sums[2] + sums[3]


@cute.kernel
def result_of_thread_zero(x: cute.Tensor, y: cute.Tensor, c: cute.Tensor, bug: cute.Constexpr):
    t = arch.thread_idx()[0]
    tile = shared(64)
    tile[t] = x[t]
    arch.sync_threads()
    if t == 0:
        total = cute.Float32(0)
        for i in range(cute.Int32(64)):
            total += tile[i]
        tile[0] = total
    if not bug:
        arch.sync_threads()
    y[t] = tile[0]


@cute.kernel
def exchanged_pointers(x: cute.Tensor, y: cute.Tensor, c: cute.Tensor, bug: cute.Constexpr):
    t = arch.thread_idx()[0]
    a, b = shared(64), shared(64)
    a[t] = x[t]
    arch.sync_threads()
    for i in cute.range_constexpr(4):
        source, target = (a, b) if i % 2 == 0 else (b, a)
        target[t] = source[(t + 1) % 64]
        if not bug:
            arch.sync_threads()
    y[t] = a[t]


@cute.kernel
def counter_by_plain_stores(x: cute.Tensor, y: cute.Tensor, c: cute.Tensor, bug: cute.Constexpr):
    t = arch.thread_idx()[0]
    count = shared(1, cute.Int32)
    if t == 0:
        count[0] = 0
    arch.sync_threads()
    if bug:
        if t % 32 == 0:
            count[0] = count[0] + 1
    else:
        if t % 32 == 0:
            arch.atomic_add(count.iterator, 1)
    arch.sync_threads()
    c[t] = count[0]


@cute.kernel
def vectors_that_overlap(x: cute.Tensor, y: cute.Tensor, c: cute.Tensor, bug: cute.Constexpr):
    t = arch.thread_idx()[0]
    tile = shared(260)
    step = 2 if bug else 4
    part = cute.make_tensor(tile.iterator + t * step, cute.make_layout(4))
    mine = cute.make_rmem_tensor(cute.make_layout(4), cute.Float32)
    for i in cute.range_constexpr(4):
        mine[i] = x[t] + i
    for i in cute.range_constexpr(4):
        part[i] = mine[i]
    arch.sync_threads()
    y[t] = tile[t]


# One warp runs ahead, and reads what is not there yet.
NOT_YET = "race on shared memory|that no thread has written"
CASES = [
    (read_before_barrier, RaceError, "race on shared memory"),
    (next_turn_overwrites, RaceError, "race on shared memory"),
    (tree_without_barrier, RaceError, "race on shared memory"),
    (one_buffer_for_two, RaceError, "race on shared memory"),
    (transposed_tile, RaceError, "race on shared memory", {"block": (8, 8, 1)}),
    (histogram, RaceError, "race on shared memory"),
    (barriers_of_two_numbers, SimulationError, NOT_YET),
    (sync_warp_for_a_block, RaceError, "race on shared memory"),
    (broadcast_of_one_thread, RaceError, "race on shared memory"),
    (every_thread_writes_one, RaceError, "race on shared memory"),
    (read_after_atomics, RaceError, "race on shared memory"),
    (zeroed_before_atomics, RaceError, "race on shared memory"),
    (atomics_of_the_same_warp_between, RaceError, "race on shared memory"),
    (scan_in_place, RaceError, "race on shared memory"),
    (stencil_in_place, RaceError, "race on shared memory"),
    (barrier_on_the_wrong_side, RaceError, "race on shared memory"),
    (barrier_in_even_turns, RaceError, "race on shared memory"),
    (halves_of_a_word, RaceError, "race on shared memory"),
    (bytes_of_a_word, RaceError, "race on shared memory"),
    (one_too_far, RaceError, "race on shared memory"),
    (ring_of_too_few, RaceError, "race on shared memory"),
    (arrival_before_the_write, SimulationError, NOT_YET),
    (released_before_the_read, RaceError, "race on shared memory"),
    (rows_of_another_warp, RaceError, "race on shared memory", {"block": (32, 4, 1)}),
    (run_time_loop, RaceError, "race on shared memory"),
    (lane_for_thread, RaceError, "race on shared memory"),
    (sums_of_warps, RaceError, "race on shared memory", {"block": 128}),
    (result_of_thread_zero, RaceError, "race on shared memory"),
    (exchanged_pointers, RaceError, "race on shared memory"),
    (counter_by_plain_stores, RaceError, "race on shared memory"),
    (vectors_that_overlap, RaceError, "race on shared memory"),
]
