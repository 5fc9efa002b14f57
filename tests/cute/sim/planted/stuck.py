"""Kernels that never end, and barriers that not all reach: with the bug planted, or without."""

import basedsl_cute as cute
from basedsl_cute import arch
from basedsl_cute.arch.bulk import bulk_load
from basedsl_cute.sim import BarrierError, DeadlockError, RaceError


@cute.kernel
def barrier_in_a_branch(x: cute.Tensor, y: cute.Tensor, c: cute.Tensor, bug: cute.Constexpr):
    t = arch.thread_idx()[0]
    if not bug or t < 16:
        arch.sync_threads()
    y[t] = x[t]


@cute.kernel
def barrier_of_one_warp(x: cute.Tensor, y: cute.Tensor, c: cute.Tensor, bug: cute.Constexpr):
    t = arch.thread_idx()[0]
    if not bug or t < 32:
        arch.sync_threads()
    y[t] = x[t]


@cute.kernel
def early_return(x: cute.Tensor, y: cute.Tensor, c: cute.Tensor, bug: cute.Constexpr):
    t = arch.thread_idx()[0]
    n = 40 if bug else 64
    if t < n:
        y[t] = x[t]
        arch.sync_threads()


@cute.kernel
def barrier_in_a_loop(x: cute.Tensor, y: cute.Tensor, c: cute.Tensor, bug: cute.Constexpr):
    t = arch.thread_idx()[0]
    for _i in range(t % 3 if bug else cute.Int32(3)):
        y[t] = y[t] + x[t]
        arch.sync_threads()


@cute.kernel
def two_barriers(x: cute.Tensor, y: cute.Tensor, c: cute.Tensor, bug: cute.Constexpr):
    t = arch.thread_idx()[0]
    if bug:
        if t < 32:
            arch.sync_threads()
            y[t] = x[t]
        else:
            y[t] = x[t]
            arch.sync_threads()
    else:
        y[t] = x[t]
        arch.sync_threads()


@cute.kernel
def wrong_count(x: cute.Tensor, y: cute.Tensor, c: cute.Tensor, bug: cute.Constexpr):
    t = arch.thread_idx()[0]
    arch.barrier(barrier_id=1, number_of_threads=96 if bug else 64)
    y[t] = x[t]


@cute.kernel
def counts_that_differ(x: cute.Tensor, y: cute.Tensor, c: cute.Tensor, bug: cute.Constexpr):
    t = arch.thread_idx()[0]
    if t < 32:
        arch.barrier(barrier_id=1, number_of_threads=64)
    else:
        arch.barrier(barrier_id=1, number_of_threads=32 if bug else 64)
    y[t] = x[t]


@cute.kernel
def waits_in_a_circle(x: cute.Tensor, y: cute.Tensor, c: cute.Tensor, bug: cute.Constexpr):
    t = arch.thread_idx()[0]
    if t < 32:
        arch.barrier(barrier_id=1, number_of_threads=64)
        arch.barrier(barrier_id=2, number_of_threads=64)
    else:
        arch.barrier(barrier_id=2 if bug else 1, number_of_threads=64)
        arch.barrier(barrier_id=1 if bug else 2, number_of_threads=64)
    y[t] = x[t]


@cute.kernel
def flag_never_set(x: cute.Tensor, y: cute.Tensor, c: cute.Tensor, bug: cute.Constexpr):
    if arch.thread_idx()[0] == 0:
        if not bug and arch.block_idx()[0] == 0:
            arch.store(c.iterator, 1, sem="release")
        while arch.load(c.iterator, sem="acquire") == 0:
            pass


@cute.kernel
def lock_never_given_back(x: cute.Tensor, y: cute.Tensor, c: cute.Tensor, bug: cute.Constexpr):
    if arch.thread_idx()[0] == 0:
        while arch.atomic_cas(c.iterator, 0, 1, sem="acquire") != 0:
            pass
        y[0] = y[0] + 1
        if not bug:
            arch.atomic_exch(c.iterator, 0, sem="release")


@cute.kernel
def plain_polling(x: cute.Tensor, y: cute.Tensor, c: cute.Tensor, bug: cute.Constexpr):
    if arch.thread_idx()[0] == 0:
        if arch.block_idx()[0] == 1:
            arch.store(c.iterator, 1, sem="release")
        elif bug:
            while c[0] == 0:
                pass
        else:
            while arch.load(c.iterator, sem="acquire") == 0:
                pass


@cute.kernel
def counter_that_stands(x: cute.Tensor, y: cute.Tensor, c: cute.Tensor, bug: cute.Constexpr):
    t = arch.thread_idx()[0]
    i = cute.Int32(0)
    while i < 10:
        if not bug:
            i += 1
    y[t] = x[t] + i


@cute.kernel
def steps_over_the_end(x: cute.Tensor, y: cute.Tensor, c: cute.Tensor, bug: cute.Constexpr):
    t = arch.thread_idx()[0]
    i = cute.Int32(0)
    total = cute.Float32(0)
    while i != 10:
        total += x[t]
        i = (i + (4 if bug else 5)) & 1023
    y[t] = total


@cute.kernel
def grows_for_ever(x: cute.Tensor, y: cute.Tensor, c: cute.Tensor, bug: cute.Constexpr):
    t = arch.thread_idx()[0]
    value = x[t]
    while value >= 0:
        value = value + (1 if bug else -1)
    y[t] = value


@cute.kernel
def one_lane_for_ever(x: cute.Tensor, y: cute.Tensor, c: cute.Tensor, bug: cute.Constexpr):
    t = arch.thread_idx()[0]
    value = t
    while value != 1 and (bug or value > 0):
        value = value // 2
    y[t] = x[t]


@cute.kernel
def blocks_that_do_not_fit(x: cute.Tensor, y: cute.Tensor, c: cute.Tensor, bug: cute.Constexpr):
    if arch.thread_idx()[0] == 0:
        arch.atomic_add(c.iterator, 1, sem="acq_rel")
        while arch.load(c.iterator, sem="acquire") < (4 if bug else 3):
            pass


@cute.kernel
def mbarrier_of_too_many(x: cute.Tensor, y: cute.Tensor, c: cute.Tensor, bug: cute.Constexpr):
    t = arch.thread_idx()[0]
    bar = cute.utils.SmemAllocator().allocate_array(cute.Int64)
    if t == 0:
        arch.mbarrier_init(bar, 3 if bug else 2)
    arch.sync_threads()
    if t % 32 == 0:
        arch.mbarrier_arrive(bar)
    arch.mbarrier_wait(bar, 0)
    y[t] = x[t]


@cute.kernel
def mbarrier_of_the_other_phase(
    x: cute.Tensor, y: cute.Tensor, c: cute.Tensor, bug: cute.Constexpr
):
    t = arch.thread_idx()[0]
    bar = cute.utils.SmemAllocator().allocate_array(cute.Int64)
    if t == 0:
        arch.mbarrier_init(bar, 2)
    arch.sync_threads()
    for i in range(cute.Int32(2)):
        if t % 32 == 0:
            arch.mbarrier_arrive(bar)
        arch.mbarrier_wait(bar, 1 - i if bug else i)
    arch.mbarrier_wait(bar, 0 if bug else 1)
    y[t] = x[t]


@cute.kernel
def bytes_that_never_come(x: cute.Tensor, y: cute.Tensor, c: cute.Tensor, bug: cute.Constexpr):
    t = arch.thread_idx()[0]
    smem = cute.utils.SmemAllocator()
    tile = smem.allocate_tensor(cute.Float32, cute.make_layout((64,)), 128)
    bar = smem.allocate_array(cute.Int64)
    if t == 0:
        arch.mbarrier_init(bar, 1)
        arch.mbarrier_init_fence()
    arch.sync_threads()
    if t == 0:
        arch.mbarrier_arrive_and_expect_tx(bar, 512 if bug else 256)
        bulk_load(tile.iterator, x.iterator, 256, bar)
    arch.mbarrier_wait(bar, 0)
    y[t] = tile[t]


CASES = [
    (barrier_in_a_branch, BarrierError, "divergent"),
    (barrier_of_one_warp, BarrierError, "barrier"),
    (early_return, BarrierError, "barrier"),
    (barrier_in_a_loop, BarrierError, "barrier"),
    (two_barriers, BarrierError, "different barriers"),
    (wrong_count, DeadlockError, "deadlock"),
    (counts_that_differ, BarrierError, "threads here"),
    (waits_in_a_circle, DeadlockError, "deadlock"),
    (flag_never_set, DeadlockError, "polls memory", {"grid": 2}),
    (lock_never_given_back, DeadlockError, "polls memory", {"grid": 2}),
    (plain_polling, RaceError, "race on global memory", {"grid": 2}),
    (counter_that_stands, DeadlockError, "loop"),
    (steps_over_the_end, DeadlockError, "loop"),
    (grows_for_ever, DeadlockError, "loop"),
    (one_lane_for_ever, DeadlockError, "loop"),
    (blocks_that_do_not_fit, DeadlockError, "polls memory", {"grid": 3}),
    (mbarrier_of_too_many, DeadlockError, "arrivals still to come"),
    (mbarrier_of_the_other_phase, DeadlockError, "deadlock"),
    (bytes_that_never_come, DeadlockError, "256 bytes still to come"),
]
