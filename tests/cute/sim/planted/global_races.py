"""Races on global memory, within blocks and between them: each with the bug planted, or without."""

import basedsl_cute as cute
from basedsl_cute import arch
from basedsl_cute.sim import RaceError

GLOBAL = "race on global memory"


@cute.kernel
def two_blocks_write_one(x: cute.Tensor, y: cute.Tensor, c: cute.Tensor, bug: cute.Constexpr):
    t, b = arch.thread_idx()[0], arch.block_idx()[0]
    i = t if bug else b * 64 + t
    y[i] = x[t] + b


@cute.kernel
def plain_counter(x: cute.Tensor, y: cute.Tensor, c: cute.Tensor, bug: cute.Constexpr):
    if arch.thread_idx()[0] == 0:
        if bug:
            c[0] = c[0] + 1
        else:
            arch.atomic_add(c.iterator, 1)


@cute.kernel
def counter_of_threads(x: cute.Tensor, y: cute.Tensor, c: cute.Tensor, bug: cute.Constexpr):
    if bug:
        c[0] = c[0] + 1
    else:
        arch.atomic_add(c.iterator, 1)


@cute.kernel
def exchange_between_blocks(x: cute.Tensor, y: cute.Tensor, c: cute.Tensor, bug: cute.Constexpr):
    i = arch.block_idx()[0] * 64 + arch.thread_idx()[0]
    y[i] = x[i]
    arch.sync_threads()
    if bug:
        x[i] = y[127 - i]
    else:
        x[i] = y[i ^ 63]


@cute.kernel
def last_block_sums(x: cute.Tensor, y: cute.Tensor, c: cute.Tensor, bug: cute.Constexpr):
    t, b = arch.thread_idx()[0], arch.block_idx()[0]
    if t == 0:
        y[b] = x[b * 64]
        if not bug:
            arch.fence_acq_rel_gpu()
        before = arch.atomic_add(c.iterator, 1)
        if before == 3:
            if not bug:
                arch.fence_acq_rel_gpu()
            total = cute.Float32(0)
            for i in range(cute.Int32(4)):
                total += y[i]
            y[8] = total


@cute.kernel
def last_block_of_many_threads(x: cute.Tensor, y: cute.Tensor, c: cute.Tensor, bug: cute.Constexpr):
    t, b = arch.thread_idx()[0], arch.block_idx()[0]
    last = cute.utils.SmemAllocator().allocate_tensor(cute.Int32, cute.make_layout((1,)), 16)
    y[b * 64 + t] = x[b * 64 + t]
    arch.fence_acq_rel_gpu()
    if not bug:
        arch.sync_threads()
    if t == 0:
        last[0] = arch.atomic_add(c.iterator, 1)
    arch.sync_threads()
    if last[0] == 1:
        arch.fence_acq_rel_gpu()
        x[t] = y[t] + y[64 + t]


@cute.kernel
def last_block_by_acq_rel(x: cute.Tensor, y: cute.Tensor, c: cute.Tensor, bug: cute.Constexpr):
    t, b = arch.thread_idx()[0], arch.block_idx()[0]
    if t == 0:
        y[b] = x[b]
        before = arch.atomic_add(c.iterator, 1, sem="relaxed" if bug else "acq_rel")
        if before == 3:
            y[8] = y[0] + y[1] + y[2] + y[3]


@cute.kernel
def stencil_in_place(x: cute.Tensor, y: cute.Tensor, c: cute.Tensor, bug: cute.Constexpr):
    i = arch.block_idx()[0] * 64 + arch.thread_idx()[0]
    if i > 0 and i < 127:
        both = x[i - 1] + x[i + 1]
        if bug:
            x[i] = both
        else:
            y[i] = both


@cute.kernel
def aliased_copy(x: cute.Tensor, y: cute.Tensor, c: cute.Tensor, bug: cute.Constexpr):
    i = arch.block_idx()[0] * 64 + arch.thread_idx()[0]
    if i < 127:
        y[i] = x[i + 1]


@cute.kernel
def aliased_views(x: cute.Tensor, y: cute.Tensor, c: cute.Tensor, bug: cute.Constexpr):
    i = arch.block_idx()[0] * 64 + arch.thread_idx()[0]
    y[i] = x[i] * 2


@cute.kernel
def halo_writes(x: cute.Tensor, y: cute.Tensor, c: cute.Tensor, bug: cute.Constexpr):
    i = arch.block_idx()[0] * 64 + arch.thread_idx()[0]
    y[i] = x[i]
    if bug and arch.thread_idx()[0] == 63:
        y[i + 1] = x[i] * 3


@cute.kernel
def blocks_too_close(x: cute.Tensor, y: cute.Tensor, c: cute.Tensor, bug: cute.Constexpr):
    t, b = arch.thread_idx()[0], arch.block_idx()[0]
    i = b * (32 if bug else 64) + t
    y[i] = x[t] + b


@cute.kernel
def grid_stride_of_a_block(x: cute.Tensor, y: cute.Tensor, c: cute.Tensor, bug: cute.Constexpr):
    t, b = arch.thread_idx()[0], arch.block_idx()[0]
    step = 64 if bug else 128
    for i in range(b * 64 + t, cute.Int32(256), cute.Int32(step)):
        y[i] = y[i] + x[i]


@cute.kernel
def sum_by_plain_stores(x: cute.Tensor, y: cute.Tensor, c: cute.Tensor, bug: cute.Constexpr):
    t, b = arch.thread_idx()[0], arch.block_idx()[0]
    part = arch.warp_reduction_sum(x[b * 32 + t])
    if t == 0:
        if bug:
            y[0] = y[0] + part
        else:
            arch.atomic_add(y.iterator, part)


@cute.kernel
def maximum_by_comparison(x: cute.Tensor, y: cute.Tensor, c: cute.Tensor, bug: cute.Constexpr):
    t, b = arch.thread_idx()[0], arch.block_idx()[0]
    mine = x[b * 64 + t].to(cute.Int32)
    if bug:
        if mine > c[0]:
            c[0] = mine
    else:
        arch.atomic_max(c.iterator, mine)


@cute.kernel
def barrier_between_blocks(x: cute.Tensor, y: cute.Tensor, c: cute.Tensor, bug: cute.Constexpr):
    t, b = arch.thread_idx()[0], arch.block_idx()[0]
    y[b * 64 + t] = x[b * 64 + t]
    arch.sync_threads()
    other = (1 - b if bug else b) * 64
    x[b * 64 + t] = y[other + 63 - t] + 1


@cute.kernel
def within_a_block(x: cute.Tensor, y: cute.Tensor, c: cute.Tensor, bug: cute.Constexpr):
    t = arch.thread_idx()[0]
    y[t] = x[t]
    if not bug:
        arch.sync_threads()
    x[t] = y[63 - t]


@cute.kernel
def two_warps_write_one(x: cute.Tensor, y: cute.Tensor, c: cute.Tensor, bug: cute.Constexpr):
    t = arch.thread_idx()[0]
    i = t % 32 if bug else t
    y[i] = x[t]


@cute.kernel
def scatter_that_collides(x: cute.Tensor, y: cute.Tensor, c: cute.Tensor, bug: cute.Constexpr):
    i = arch.block_idx()[0] * 64 + arch.thread_idx()[0]
    at = i // 2 * 2 if bug else i ^ 1
    y[at] = x[i]


@cute.kernel
def push_to_a_queue(x: cute.Tensor, y: cute.Tensor, c: cute.Tensor, bug: cute.Constexpr):
    i = arch.block_idx()[0] * 64 + arch.thread_idx()[0]
    if i % 9 == 0:
        if bug:
            slot = c[0]
            c[0] = slot + 1
            y[slot] = x[i]
        else:
            slot = arch.atomic_add(c.iterator, 1)
            y[slot] = x[i]


@cute.kernel
def bits_by_plain_or(x: cute.Tensor, y: cute.Tensor, c: cute.Tensor, bug: cute.Constexpr):
    t, b = arch.thread_idx()[0], arch.block_idx()[0]
    if bug:
        c[b % 2] = c[b % 2] | (1 << (t % 32))
    else:
        arch.atomic_or(c.iterator + b % 2, 1 << (t % 32))


@cute.kernel
def plain_read_of_a_counter(x: cute.Tensor, y: cute.Tensor, c: cute.Tensor, bug: cute.Constexpr):
    t, b = arch.thread_idx()[0], arch.block_idx()[0]
    if t == 0:
        arch.atomic_add(c.iterator, 1)
        if bug:
            c[b + 1] = c[0]
        else:
            c[b + 1] = arch.load(c.iterator, sem="relaxed")


@cute.kernel
def halves_of_a_word(x: cute.Tensor, y: cute.Tensor, c: cute.Tensor, bug: cute.Constexpr):
    i = arch.block_idx()[0] * 64 + arch.thread_idx()[0]
    half = cute.make_tensor(cute.recast_ptr(y.iterator, dtype=cute.Float16), cute.make_layout(512))
    half[i // 2 if bug else i] = x[i].to(cute.Float16)


@cute.kernel
def tiles_that_overlap(x: cute.Tensor, y: cute.Tensor, c: cute.Tensor, bug: cute.Constexpr):
    t, b = arch.thread_idx()[0], arch.block_idx()[0]
    for i in range(cute.Int32(2)):
        at = b * (96 if bug else 128) + i * 64 + t
        y[at] = x[t] + b + i


@cute.kernel
def ping_and_pong(x: cute.Tensor, y: cute.Tensor, c: cute.Tensor, bug: cute.Constexpr):
    i = arch.block_idx()[0] * 64 + arch.thread_idx()[0]
    left = (i + 1) % 128 if bug else i
    y[i] = x[left]
    x[i] = y[left]


@cute.kernel
def zeroed_by_one_block(x: cute.Tensor, y: cute.Tensor, c: cute.Tensor, bug: cute.Constexpr):
    t, b = arch.thread_idx()[0], arch.block_idx()[0]
    if bug and b == 0 and t == 0:
        c[0] = 0
    if t == 0:
        arch.atomic_add(c.iterator, 1)


@cute.kernel
def plain_write_before_atomics(x: cute.Tensor, y: cute.Tensor, c: cute.Tensor, bug: cute.Constexpr):
    t, b = arch.thread_idx()[0], arch.block_idx()[0]
    if b == 0:
        if bug and t == 0:
            c[0] = 5
        if bug:
            arch.sync_warp()
        arch.atomic_add(c.iterator, 1)
    else:
        arch.atomic_add(c.iterator, 1)


@cute.kernel
def row_of_the_next_block(x: cute.Tensor, y: cute.Tensor, c: cute.Tensor, bug: cute.Constexpr):
    t, b = arch.thread_idx()[0], arch.block_idx()[0]
    total = cute.Float32(0)
    for i in range(cute.Int32(4)):
        total += y[(b * 64 + t + i * (40 if bug else 0)) % 128]
    y[b * 64 + t] = total + x[t]


@cute.kernel
def reduce_into_partials(x: cute.Tensor, y: cute.Tensor, c: cute.Tensor, bug: cute.Constexpr):
    t, b = arch.thread_idx()[0], arch.block_idx()[0]
    if t % 32 == 0:
        at = b if bug else b * 2 + t // 32
        y[at] = x[b * 64 + t]


@cute.kernel
def named_barrier_of_the_others(
    x: cute.Tensor, y: cute.Tensor, c: cute.Tensor, bug: cute.Constexpr
):
    t = arch.thread_idx()[0]
    y[t] = x[t]
    if not bug or t < 64:
        arch.barrier(barrier_id=1, number_of_threads=64 if bug else 128)
    x[t] = y[127 - t]


@cute.kernel
def vectors_over_each_other(x: cute.Tensor, y: cute.Tensor, c: cute.Tensor, bug: cute.Constexpr):
    i = arch.block_idx()[0] * 32 + arch.thread_idx()[0]
    at = i * 2 if bug else i * 4
    for j in cute.range_constexpr(4):
        y[at + j] = x[i] + j


CASES = [
    (two_blocks_write_one, RaceError, GLOBAL, {"grid": 2}),
    (plain_counter, RaceError, GLOBAL, {"grid": 3}),
    (counter_of_threads, RaceError, GLOBAL, {"grid": 1}),
    (exchange_between_blocks, RaceError, GLOBAL, {"grid": 2}),
    (last_block_sums, RaceError, GLOBAL, {"grid": 4}),
    (last_block_of_many_threads, RaceError, GLOBAL, {"grid": 2, "block": 64}),
    (last_block_by_acq_rel, RaceError, GLOBAL, {"grid": 4, "block": 32}),
    (stencil_in_place, RaceError, GLOBAL, {"grid": 2}),
    (aliased_copy, RaceError, GLOBAL, {"grid": 2, "alias": "same"}),
    (aliased_views, RaceError, GLOBAL, {"grid": 2, "alias": "shifted"}),
    (halo_writes, RaceError, GLOBAL, {"grid": 2}),
    (blocks_too_close, RaceError, GLOBAL, {"grid": 3}),
    (grid_stride_of_a_block, RaceError, GLOBAL, {"grid": 2}),
    (sum_by_plain_stores, RaceError, GLOBAL, {"grid": 4, "block": 32}),
    (maximum_by_comparison, RaceError, GLOBAL, {"grid": 2}),
    (barrier_between_blocks, RaceError, GLOBAL, {"grid": 2}),
    (within_a_block, RaceError, GLOBAL),
    (two_warps_write_one, RaceError, GLOBAL),
    (scatter_that_collides, RaceError, GLOBAL, {"grid": 2}),
    (push_to_a_queue, RaceError, GLOBAL, {"grid": 2}),
    (bits_by_plain_or, RaceError, GLOBAL, {"grid": 4}),
    (plain_read_of_a_counter, RaceError, GLOBAL, {"grid": 4}),
    (halves_of_a_word, RaceError, GLOBAL, {"grid": 2}),
    (tiles_that_overlap, RaceError, GLOBAL, {"grid": 2}),
    (ping_and_pong, RaceError, GLOBAL, {"grid": 2}),
    (zeroed_by_one_block, RaceError, GLOBAL, {"grid": 2}),
    (plain_write_before_atomics, RaceError, GLOBAL, {"grid": 2, "block": 32}),
    (row_of_the_next_block, RaceError, GLOBAL, {"grid": 2}),
    (reduce_into_partials, RaceError, GLOBAL, {"grid": 2}),
    (named_barrier_of_the_others, RaceError, GLOBAL, {"block": 128}),
    (vectors_over_each_other, RaceError, GLOBAL, {"grid": 2, "block": 32}),
]
