"""Sorting, scans, reductions and exchanges in a block: each with an order left out, or complete."""

import basedsl_cute as cute
from basedsl_cute import arch
from basedsl_cute.sim import RaceError, SimulationError, WarpError


def shared(count, dtype=cute.Float32):
    return cute.utils.SmemAllocator().allocate_tensor(dtype, cute.make_layout((count,)), 16)


@cute.kernel
def barrier_in_the_last_turn(x: cute.Tensor, y: cute.Tensor, c: cute.Tensor, bug: cute.Constexpr):
    t = arch.thread_idx()[0]
    tile = shared(128)
    total = cute.Float32(0)
    for i in range(cute.Int32(4)):
        tile[i % 2 * 64 + t] = x[t] + i
        if not bug or i == 3:
            arch.sync_threads()
        total += tile[i % 2 * 64 + 63 - t]
        if not bug:
            arch.sync_threads()
    y[t] = total


@cute.kernel
def transposed_in_place(x: cute.Tensor, y: cute.Tensor, c: cute.Tensor, bug: cute.Constexpr):
    tx, ty, _ = arch.thread_idx()
    tile = cute.utils.SmemAllocator().allocate_tensor(cute.Float32, cute.make_layout((8, 8)), 16)
    tile[tx, ty] = x[ty * 8 + tx]
    arch.sync_threads()
    if bug or tx < ty:
        left, right = tile[tx, ty], tile[ty, tx]
        tile[tx, ty] = right
        tile[ty, tx] = left
    arch.sync_threads()
    y[ty * 8 + tx] = tile[tx, ty]


@cute.kernel
def odd_even_sort(x: cute.Tensor, y: cute.Tensor, c: cute.Tensor, bug: cute.Constexpr):
    t = arch.thread_idx()[0]
    tile = shared(128)
    tile[t] = -x[t]
    tile[t + 64] = -x[t + 64]
    arch.sync_threads()
    for i in range(cute.Int32(8)):
        at = 2 * t + i % 2
        if at < 127:
            a, b = tile[at], tile[at + 1]
            tile[at] = arch.fmin(a, b)
            tile[at + 1] = arch.fmax(a, b)
        if not bug:
            arch.sync_threads()
    arch.sync_threads()
    y[t] = tile[t]


@cute.kernel
def warp_at_the_end_of_a_tree(x: cute.Tensor, y: cute.Tensor, c: cute.Tensor, bug: cute.Constexpr):
    t = arch.thread_idx()[0]
    tile = shared(128)
    tile[t] = x[t]
    arch.sync_threads()
    if t < 64:
        tile[t] = tile[t] + tile[t + 64]
    arch.sync_threads()
    if t < 32:
        for i in cute.range_constexpr(6):
            half = 32 >> i
            mine = tile[t] + tile[t + half]
            if not bug:
                arch.sync_warp()
            tile[t] = mine
            if not bug:
                arch.sync_warp()
        if t == 0:
            y[0] = tile[0]


@cute.kernel
def one_memory_for_two_tiles(x: cute.Tensor, y: cute.Tensor, c: cute.Tensor, bug: cute.Constexpr):
    t = arch.thread_idx()[0]
    room = shared(96)
    halves = cute.make_tensor(
        cute.recast_ptr(room.iterator + (32 if bug else 64), dtype=cute.Float16),
        cute.make_layout(64),
    )
    room[t] = x[t]
    halves[t] = x[t].to(cute.Float16)
    arch.sync_threads()
    y[t] = room[63 - t] + halves[t].to(cute.Float32)


@cute.kernel
def next_value_of_thread_zero(x: cute.Tensor, y: cute.Tensor, c: cute.Tensor, bug: cute.Constexpr):
    t = arch.thread_idx()[0]
    box = shared(1)
    total = cute.Float32(0)
    for i in range(cute.Int32(3)):
        if t == 0:
            box[0] = x[i]
        arch.sync_threads()
        total += box[0]
        if not bug:
            arch.sync_threads()
    y[t] = total


@cute.kernel
def all_voters_are_leaders(x: cute.Tensor, y: cute.Tensor, c: cute.Tensor, bug: cute.Constexpr):
    t = arch.thread_idx()[0]
    found = shared(2, cute.Int32)
    wanted = x[t].to(cute.Int32) % 5 == 0
    votes = arch.vote_ballot_sync(wanted)
    first = (votes & ((1 << (t % 32)) - 1)) == 0
    if wanted and (bug or first):
        found[t // 32] = t
    arch.sync_threads()
    c[t] = found[t // 32]


@cute.kernel
def redux_of_missing_lanes(x: cute.Tensor, y: cute.Tensor, c: cute.Tensor, bug: cute.Constexpr):
    t = arch.thread_idx()[0]
    if t < 8:
        c[t] = arch.warp_redux_sync(t, "add", 0xFFFF if bug else 0xFF)


@cute.kernel
def lanes_that_left_the_loop(x: cute.Tensor, y: cute.Tensor, c: cute.Tensor, bug: cute.Constexpr):
    t = arch.thread_idx()[0]
    value = x[t]
    i = cute.Int32(0)
    going = i < 4
    while going:
        value += arch.shuffle_sync_bfly(value, 1)
        i += 1
        going = i < (t % 4 + 1 if bug else 4)
    y[t] = value


@cute.kernel
def elected_lane_waits_for_all(x: cute.Tensor, y: cute.Tensor, c: cute.Tensor, bug: cute.Constexpr):
    t = arch.thread_idx()[0]
    if t < 32:
        with arch.elect_one():
            y[0] = x[3]
            if bug:
                arch.sync_warp()
        if not bug:
            arch.sync_warp()


@cute.kernel
def exchange_by_way_of_global(x: cute.Tensor, y: cute.Tensor, c: cute.Tensor, bug: cute.Constexpr):
    t = arch.thread_idx()[0]
    if t % 2 == 0:
        y[t] = x[t]
    if not bug:
        arch.sync_warp()
    if t % 2 == 1:
        y[t] = y[t - 1] + 1


@cute.kernel
def counting_sort(x: cute.Tensor, y: cute.Tensor, c: cute.Tensor, bug: cute.Constexpr):
    t = arch.thread_idx()[0]
    starts, sizes = shared(4, cute.Int32), shared(4, cute.Int32)
    if t < 4:
        sizes[t] = 0
    arch.sync_threads()
    digit = x[t].to(cute.Int32) % 4
    arch.atomic_add(sizes.iterator + digit, 1)
    arch.sync_threads()
    if t == 0:
        at = cute.Int32(0)
        for i in cute.range_constexpr(4):
            starts[i] = at
            at += sizes[i]
    arch.sync_threads()
    if bug:
        place = starts[digit]
        starts[digit] = place + 1
        y[place] = x[t]
    else:
        y[arch.atomic_add(starts.iterator + digit, 1)] = x[t]


@cute.kernel
def two_halves_of_a_block(x: cute.Tensor, y: cute.Tensor, c: cute.Tensor, bug: cute.Constexpr):
    """Each half has a named barrier; what the other half wrote needs another."""
    t = arch.thread_idx()[0]
    tile = shared(128)
    half = t // 64
    tile[t] = x[t]
    arch.barrier(barrier_id=1 + half, number_of_threads=64)
    inside = tile[t ^ 32]
    if not bug:
        arch.barrier(barrier_id=3, number_of_threads=128)
    y[t] = inside + tile[t ^ 64]


@cute.kernel
def halo_of_a_tile(x: cute.Tensor, y: cute.Tensor, c: cute.Tensor, bug: cute.Constexpr):
    t = arch.thread_idx()[0]
    tile = shared(66)
    tile[t + 1] = x[t + 1]
    if t == 0:
        tile[0] = x[0]
        tile[65] = x[65]
    arch.sync_threads()
    for _ in range(cute.Int32(2)):
        both = tile[t] + tile[t + 2]
        arch.sync_threads()
        tile[t + 1] = both
        if not bug:
            arch.sync_threads()
    arch.sync_threads()
    y[t] = tile[t + 1]


SHARED, GLOBAL = "race on shared memory", "race on global memory"
CASES = [
    (barrier_in_the_last_turn, SimulationError, SHARED + "|no thread has written"),
    (transposed_in_place, RaceError, SHARED, {"block": (8, 8, 1)}),
    (odd_even_sort, RaceError, SHARED),
    (warp_at_the_end_of_a_tree, RaceError, SHARED, {"block": 128}),
    (one_memory_for_two_tiles, RaceError, SHARED),
    (next_value_of_thread_zero, RaceError, SHARED),
    (all_voters_are_leaders, RaceError, SHARED),
    (redux_of_missing_lanes, WarpError, "names lane"),
    (lanes_that_left_the_loop, WarpError, "names lane"),
    (elected_lane_waits_for_all, WarpError, "names lane"),
    (exchange_by_way_of_global, RaceError, GLOBAL, {"block": 32}),
    (counting_sort, RaceError, SHARED),
    (two_halves_of_a_block, SimulationError, SHARED + "|no thread has written", {"block": 128}),
    (halo_of_a_tile, RaceError, SHARED),
]
