"""Races between lanes of one warp: each kernel with the bug planted, or without."""

import basedsl_cute as cute
from basedsl_cute import arch
from basedsl_cute.sim import RaceError


def shared(count, dtype=cute.Float32):
    return cute.utils.SmemAllocator().allocate_tensor(dtype, cute.make_layout((count,)), 16)


@cute.kernel
def two_lanes_write_one(x: cute.Tensor, y: cute.Tensor, c: cute.Tensor, bug: cute.Constexpr):
    t = arch.thread_idx()[0]
    i = t // 2 if bug else t
    y[i] = x[t]


@cute.kernel
def two_lanes_write_one_shared(x: cute.Tensor, y: cute.Tensor, c: cute.Tensor, bug: cute.Constexpr):
    t = arch.thread_idx()[0]
    tile = shared(32)
    tile[t // 2 if bug else t] = x[t]
    arch.sync_warp()
    y[t] = tile[t // 2]


@cute.kernel
def divergent_lanes(x: cute.Tensor, y: cute.Tensor, c: cute.Tensor, bug: cute.Constexpr):
    t = arch.thread_idx()[0]
    tile = shared(16)
    if t < 16:
        tile[t] = x[t]
    if not bug:
        arch.sync_warp()
    if t >= 16:
        y[t] = tile[t - 16]


@cute.kernel
def neighbours(x: cute.Tensor, y: cute.Tensor, c: cute.Tensor, bug: cute.Constexpr):
    t = arch.thread_idx()[0]
    tile = shared(32)
    tile[t] = x[t]
    if not bug:
        arch.sync_warp()
    y[t] = tile[31 - t]


@cute.kernel
def sync_of_some_lanes(x: cute.Tensor, y: cute.Tensor, c: cute.Tensor, bug: cute.Constexpr):
    t = arch.thread_idx()[0]
    tile = shared(32)
    tile[t] = x[t]
    if bug:
        if t < 16:
            arch.sync_warp(0xFFFF)
    else:
        arch.sync_warp()
    y[t] = tile[31 - t]


@cute.kernel
def tree_of_a_warp(x: cute.Tensor, y: cute.Tensor, c: cute.Tensor, bug: cute.Constexpr):
    t = arch.thread_idx()[0]
    tile = shared(32)
    tile[t] = x[t]
    arch.sync_warp()
    for i in cute.range_constexpr(5):
        half = 16 >> i
        if t < half:
            tile[t] = tile[t] + tile[t + half]
        if not bug:
            arch.sync_warp()
    arch.sync_warp()
    y[t] = tile[0]


@cute.kernel
def total_of_lane_zero(x: cute.Tensor, y: cute.Tensor, c: cute.Tensor, bug: cute.Constexpr):
    t = arch.thread_idx()[0]
    if t == 0:
        y[0] = x[3]
    if not bug:
        arch.sync_warp()
    if t > 0:
        y[t] = y[0]


@cute.kernel
def butterfly(x: cute.Tensor, y: cute.Tensor, c: cute.Tensor, bug: cute.Constexpr):
    t = arch.thread_idx()[0]
    tile = shared(32)
    tile[t] = x[t]
    arch.sync_warp()
    for i in cute.range_constexpr(5):
        other = tile[t ^ (1 << i)]
        if not bug:
            arch.sync_warp()
        tile[t] = tile[t] + other
        arch.sync_warp()
    y[t] = tile[t]


@cute.kernel
def two_chosen_lanes(x: cute.Tensor, y: cute.Tensor, c: cute.Tensor, bug: cute.Constexpr):
    t = arch.thread_idx()[0]
    if t == 3 or (bug and t == 17):
        y[0] = x[t]


@cute.kernel
def counter_of_lanes(x: cute.Tensor, y: cute.Tensor, c: cute.Tensor, bug: cute.Constexpr):
    if bug:
        c[0] = c[0] + 1
    else:
        arch.atomic_add(c.iterator, 1)


@cute.kernel
def both_branches(x: cute.Tensor, y: cute.Tensor, c: cute.Tensor, bug: cute.Constexpr):
    t = arch.thread_idx()[0]
    if t % 2 == 0:
        y[t] = x[t]
    else:
        y[t - 1 if bug else t] = x[t] + 1


@cute.kernel
def shift_in_place(x: cute.Tensor, y: cute.Tensor, c: cute.Tensor, bug: cute.Constexpr):
    t = arch.thread_idx()[0]
    tile = shared(40)
    tile[t] = x[t]
    arch.sync_warp()
    right = cute.Float32(0)
    if t < 31:
        right = tile[t + 1]
    if not bug:
        arch.sync_warp()
    tile[t] = right
    arch.sync_warp()
    y[t] = tile[t]


@cute.kernel
def lane_of_another_warp(x: cute.Tensor, y: cute.Tensor, c: cute.Tensor, bug: cute.Constexpr):
    t = arch.thread_idx()[0]
    tile = shared(64)
    tile[t] = x[t]
    arch.sync_warp()
    y[t] = tile[t ^ 32 if bug else t ^ 31]


@cute.kernel
def rows_of_a_fragment(x: cute.Tensor, y: cute.Tensor, c: cute.Tensor, bug: cute.Constexpr):
    t = arch.thread_idx()[0]
    for i in cute.range_constexpr(2):
        at = t + i * (16 if bug else 32)
        y[at] = x[t] + i


@cute.kernel
def flag_within_a_warp(x: cute.Tensor, y: cute.Tensor, c: cute.Tensor, bug: cute.Constexpr):
    t = arch.thread_idx()[0]
    found = shared(1, cute.Int32)
    if t == 0:
        found[0] = 0
    arch.sync_warp()
    if x[t] == 5:
        found[0] = t
    if not bug:
        arch.sync_warp()
    c[t] = found[0]


SHARED, GLOBAL = "race on shared memory", "race on global memory"
WARP = {"block": 32}
CASES = [
    (two_lanes_write_one, RaceError, GLOBAL, WARP),
    (two_lanes_write_one_shared, RaceError, SHARED, WARP),
    (divergent_lanes, RaceError, SHARED, WARP),
    (neighbours, RaceError, SHARED, WARP),
    (sync_of_some_lanes, RaceError, SHARED, WARP),
    (tree_of_a_warp, RaceError, SHARED, WARP),
    (total_of_lane_zero, RaceError, GLOBAL, WARP),
    (butterfly, RaceError, SHARED, WARP),
    (two_chosen_lanes, RaceError, GLOBAL, WARP),
    (counter_of_lanes, RaceError, GLOBAL, WARP),
    (both_branches, RaceError, GLOBAL, WARP),
    (shift_in_place, RaceError, SHARED, WARP),
    (lane_of_another_warp, RaceError, SHARED),
    (rows_of_a_fragment, RaceError, GLOBAL, WARP),
    (flag_within_a_warp, RaceError, SHARED, WARP),
]
