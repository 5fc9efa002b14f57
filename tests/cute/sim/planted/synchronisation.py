"""Locks, flags, counters and grid barriers: correct ones, and each with an order left out."""

import basedsl_cute as cute
from basedsl_cute import arch
from basedsl_cute.sim import RaceError

GLOBAL, SHARED = "race on global memory", "race on shared memory"


def shared(count, dtype=cute.Float32):
    return cute.utils.SmemAllocator().allocate_tensor(dtype, cute.make_layout((count,)), 16)


@cute.kernel
def lock(x: cute.Tensor, y: cute.Tensor, c: cute.Tensor, bug: cute.Constexpr):
    if arch.thread_idx()[0] == 0:
        sem = "relaxed" if bug else "acquire"
        while arch.atomic_cas(c.iterator, 0, 1, sem=sem) != 0:
            pass
        y[0] = y[0] + 1
        arch.atomic_exch(c.iterator, 0, sem="release")


@cute.kernel
def unlock(x: cute.Tensor, y: cute.Tensor, c: cute.Tensor, bug: cute.Constexpr):
    if arch.thread_idx()[0] == 0:
        while arch.atomic_cas(c.iterator, 0, 1, sem="acquire") != 0:
            pass
        y[0] = y[0] + 1
        arch.atomic_exch(c.iterator, 0, sem="relaxed" if bug else "release")


@cute.kernel
def lock_by_exchange(x: cute.Tensor, y: cute.Tensor, c: cute.Tensor, bug: cute.Constexpr):
    if arch.thread_idx()[0] == 0:
        if not bug:
            while arch.atomic_exch(c.iterator, 1, sem="acquire") != 0:
                pass
        y[0] = y[0] + 1
        if not bug:
            arch.store(c.iterator, 0, sem="release")


@cute.kernel
def lock_with_fences(x: cute.Tensor, y: cute.Tensor, c: cute.Tensor, bug: cute.Constexpr):
    if arch.thread_idx()[0] == 0:
        while arch.atomic_cas(c.iterator, 0, 1) != 0:
            pass
        if not bug:
            arch.fence_acq_rel_gpu()
        y[0] = y[0] + 1
        if not bug:
            arch.fence_acq_rel_gpu()
        arch.atomic_exch(c.iterator, 0)


@cute.kernel
def shared_lock(x: cute.Tensor, y: cute.Tensor, c: cute.Tensor, bug: cute.Constexpr):
    t = arch.thread_idx()[0]
    key, total = shared(1, cute.Int32), shared(1)
    if t == 0:
        key[0] = 0
        total[0] = 0.0
    arch.sync_threads()
    if t % 32 == 0:
        sem = "relaxed" if bug else "acquire"
        while arch.atomic_cas(key.iterator, 0, 1, sem=sem, scope="cta") != 0:
            pass
        total[0] = total[0] + x[t]
        arch.atomic_exch(key.iterator, 0, sem="relaxed" if bug else "release", scope="cta")
    arch.sync_threads()
    y[t] = total[0]


@cute.kernel
def ticket_lock(x: cute.Tensor, y: cute.Tensor, c: cute.Tensor, bug: cute.Constexpr):
    if arch.thread_idx()[0] == 0:
        mine = arch.atomic_add(c.iterator, 1)
        while arch.load(c.iterator + 1, sem="relaxed" if bug else "acquire") != mine:
            pass
        y[0] = y[0] + 1
        arch.store(c.iterator + 1, mine + 1, sem="relaxed" if bug else "release")


@cute.kernel
def flag_of_a_block(x: cute.Tensor, y: cute.Tensor, c: cute.Tensor, bug: cute.Constexpr):
    if arch.thread_idx()[0] == 0:
        if arch.block_idx()[0] == 0:
            y[0] = x[7]
            arch.store(c.iterator, 1, sem="relaxed" if bug else "release")
        else:
            while arch.load(c.iterator, sem="relaxed" if bug else "acquire") == 0:
                pass
            y[1] = y[0]


@cute.kernel
def flag_read_without_acquire(x: cute.Tensor, y: cute.Tensor, c: cute.Tensor, bug: cute.Constexpr):
    if arch.thread_idx()[0] == 0:
        if arch.block_idx()[0] == 0:
            y[0] = x[7]
            arch.store(c.iterator, 1, sem="release")
        else:
            while arch.load(c.iterator, sem="relaxed" if bug else "acquire") == 0:
                pass
            y[1] = y[0]


@cute.kernel
def flag_before_the_data(x: cute.Tensor, y: cute.Tensor, c: cute.Tensor, bug: cute.Constexpr):
    if arch.thread_idx()[0] == 0:
        if arch.block_idx()[0] == 0:
            if bug:
                arch.store(c.iterator, 1, sem="release")
            y[0] = x[7]
            if not bug:
                arch.store(c.iterator, 1, sem="release")
        else:
            while arch.load(c.iterator, sem="acquire") == 0:
                pass
            y[1] = y[0]


@cute.kernel
def flag_of_a_narrow_scope(x: cute.Tensor, y: cute.Tensor, c: cute.Tensor, bug: cute.Constexpr):
    scope = "cta" if bug else "gpu"
    if arch.thread_idx()[0] == 0:
        if arch.block_idx()[0] == 0:
            y[0] = x[7]
            arch.store(c.iterator, 1, sem="release", scope=scope)
        else:
            while arch.load(c.iterator, sem="acquire", scope=scope) == 0:
                pass
            y[1] = y[0]


@cute.kernel
def flag_of_another_lane(x: cute.Tensor, y: cute.Tensor, c: cute.Tensor, bug: cute.Constexpr):
    t = arch.thread_idx()[0]
    if arch.block_idx()[0] == 0:
        y[t] = x[t]
        if not bug:
            arch.sync_warp()
        if t == 0:
            arch.store(c.iterator, 1, sem="release")
    else:
        if t == 0:
            while arch.load(c.iterator, sem="acquire") == 0:
                pass
        arch.sync_warp()
        y[t + 32] = y[t]


@cute.kernel
def waiting_lane_tells_nobody(x: cute.Tensor, y: cute.Tensor, c: cute.Tensor, bug: cute.Constexpr):
    t = arch.thread_idx()[0]
    if arch.block_idx()[0] == 0:
        y[t] = x[t]
        arch.sync_threads()
        if t == 0:
            arch.store(c.iterator, 1, sem="release")
    else:
        if t == 0:
            while arch.load(c.iterator, sem="acquire") == 0:
                pass
        if not bug:
            arch.sync_threads()
        y[t + 64] = y[t]


@cute.kernel
def flag_of_a_warp(x: cute.Tensor, y: cute.Tensor, c: cute.Tensor, bug: cute.Constexpr):
    t = arch.thread_idx()[0]
    tile, ready = shared(32), shared(1, cute.Int32)
    if t == 0:
        ready[0] = 0
    arch.sync_threads()
    if t < 32:
        tile[t] = x[t]
        arch.sync_warp()
        if t == 0:
            arch.store(ready.iterator, 1, sem="relaxed" if bug else "release", scope="cta")
    else:
        while arch.load(ready.iterator, sem="acquire", scope="cta") == 0:
            pass
        y[t] = tile[63 - t]


@cute.kernel
def volatile_flag(x: cute.Tensor, y: cute.Tensor, c: cute.Tensor, bug: cute.Constexpr):
    if arch.thread_idx()[0] == 0:
        if arch.block_idx()[0] == 0:
            y[0] = x[7]
            if not bug:
                arch.fence_acq_rel_gpu()
            arch.store(c.iterator, 1, sem="volatile")
        else:
            while arch.load(c.iterator, sem="volatile") == 0:
                pass
            if not bug:
                arch.fence_acq_rel_gpu()
            y[1] = y[0]


@cute.kernel
def bounded_polling(x: cute.Tensor, y: cute.Tensor, c: cute.Tensor, bug: cute.Constexpr):
    if arch.thread_idx()[0] == 0:
        if arch.block_idx()[0] == 0:
            y[0] = x[7]
            arch.store(c.iterator, 1, sem="relaxed" if bug else "release")
        else:
            turns = cute.Int32(0)
            seen = cute.Int32(0)
            while seen == 0 and turns < 1000:
                seen = arch.load(c.iterator, sem="acquire")
                turns += 1
            if seen == 1:
                y[1] = y[0]


@cute.kernel
def chain_of_blocks(x: cute.Tensor, y: cute.Tensor, c: cute.Tensor, bug: cute.Constexpr):
    b = arch.block_idx()[0]
    if arch.thread_idx()[0] == 0:
        before = cute.Float32(0)
        if b > 0:
            while arch.load(c.iterator + b - 1, sem="acquire") == 0:
                pass
            before = y[b - 1]
        y[b] = before + x[b]
        arch.store(c.iterator + b, 1, sem="relaxed" if bug else "release")


@cute.kernel
def transitive_flags(x: cute.Tensor, y: cute.Tensor, c: cute.Tensor, bug: cute.Constexpr):
    b = arch.block_idx()[0]
    if arch.thread_idx()[0] == 0:
        if b == 0:
            y[0] = x[3]
            arch.store(c.iterator, 1, sem="release")
        elif b == 1:
            while arch.load(c.iterator, sem="relaxed" if bug else "acquire") == 0:
                pass
            arch.store(c.iterator + 1, 1, sem="release")
        else:
            while arch.load(c.iterator + 1, sem="acquire") == 0:
                pass
            y[1] = y[0]


@cute.kernel
def release_sequence(x: cute.Tensor, y: cute.Tensor, c: cute.Tensor, bug: cute.Constexpr):
    b = arch.block_idx()[0]
    if arch.thread_idx()[0] == 0:
        if b == 0:
            y[0] = x[3]
            arch.store(c.iterator, 1, sem="relaxed" if bug else "release")
        elif b == 1:
            while arch.atomic_cas(c.iterator, 1, 2) != 1:
                pass
        else:
            while arch.load(c.iterator, sem="acquire") != 2:
                pass
            y[1] = y[0]


@cute.kernel
def grid_barrier(x: cute.Tensor, y: cute.Tensor, c: cute.Tensor, bug: cute.Constexpr):
    t, b = arch.thread_idx()[0], arch.block_idx()[0]
    y[b * 64 + t] = x[b * 64 + t]
    arch.sync_threads()
    if t == 0:
        arch.atomic_add(c.iterator, 1, sem="relaxed" if bug else "release")
        while arch.load(c.iterator, sem="relaxed" if bug else "acquire") < 3:
            pass
    arch.sync_threads()
    x[b * 64 + t] = y[(b + 1) % 3 * 64 + 63 - t]


@cute.kernel
def grid_barrier_with_fences(x: cute.Tensor, y: cute.Tensor, c: cute.Tensor, bug: cute.Constexpr):
    t, b = arch.thread_idx()[0], arch.block_idx()[0]
    y[b * 64 + t] = x[b * 64 + t]
    arch.sync_threads()
    if t == 0:
        arch.fence_acq_rel_gpu()
        arch.atomic_add(c.iterator, 1)
        while arch.load(c.iterator, sem="relaxed") < 3:
            pass
        if not bug:
            arch.fence_acq_rel_gpu()
    arch.sync_threads()
    x[b * 64 + t] = y[(b + 1) % 3 * 64 + 63 - t]


@cute.kernel
def grid_barrier_of_one_warp(x: cute.Tensor, y: cute.Tensor, c: cute.Tensor, bug: cute.Constexpr):
    t, b = arch.thread_idx()[0], arch.block_idx()[0]
    y[b * 64 + t] = x[b * 64 + t]
    if not bug:
        arch.sync_threads()
    if t == 0:
        arch.atomic_add(c.iterator, 1, sem="acq_rel")
        while arch.load(c.iterator, sem="acquire") < 2:
            pass
    arch.sync_threads()
    x[b * 64 + t] = y[(1 - b) * 64 + 63 - t]


@cute.kernel
def fence_of_a_narrow_scope(x: cute.Tensor, y: cute.Tensor, c: cute.Tensor, bug: cute.Constexpr):
    if arch.thread_idx()[0] == 0:
        if arch.block_idx()[0] == 0:
            y[0] = x[7]
            if bug:
                arch.fence_acq_rel_cta()
            else:
                arch.fence_acq_rel_gpu()
            arch.store(c.iterator, 1, sem="relaxed")
        else:
            while arch.load(c.iterator, sem="relaxed") == 0:
                pass
            arch.fence_acq_rel_gpu()
            y[1] = y[0]


@cute.kernel
def fence_after_the_flag(x: cute.Tensor, y: cute.Tensor, c: cute.Tensor, bug: cute.Constexpr):
    if arch.thread_idx()[0] == 0:
        if arch.block_idx()[0] == 0:
            y[0] = x[7]
            if not bug:
                arch.fence_acq_rel_gpu()
            arch.store(c.iterator, 1, sem="relaxed")
            if bug:
                arch.fence_acq_rel_gpu()
        else:
            while arch.load(c.iterator, sem="relaxed") == 0:
                pass
            arch.fence_acq_rel_gpu()
            y[1] = y[0]


@cute.kernel
def two_flags(x: cute.Tensor, y: cute.Tensor, c: cute.Tensor, bug: cute.Constexpr):
    if arch.thread_idx()[0] == 0:
        if arch.block_idx()[0] == 0:
            y[0] = x[7]
            arch.store(c.iterator, 1, sem="release")
            y[1] = x[8]
            arch.store(c.iterator + 1, 1, sem="release")
        else:
            while arch.load(c.iterator + (0 if bug else 1), sem="acquire") == 0:
                pass
            y[2] = y[0] + y[1]


@cute.kernel
def answer_to_a_flag(x: cute.Tensor, y: cute.Tensor, c: cute.Tensor, bug: cute.Constexpr):
    if arch.thread_idx()[0] == 0:
        if arch.block_idx()[0] == 0:
            y[0] = x[7]
            arch.store(c.iterator, 1, sem="release")
            if not bug:
                while arch.load(c.iterator, sem="acquire") != 2:
                    pass
            y[0] = x[9]
        else:
            while arch.load(c.iterator, sem="acquire") != 1:
                pass
            y[1] = y[0]
            arch.store(c.iterator, 2, sem="release")


@cute.kernel
def look_back(x: cute.Tensor, y: cute.Tensor, c: cute.Tensor, bug: cute.Constexpr):
    t, b = arch.thread_idx()[0], arch.block_idx()[0]
    total = arch.warp_reduction_sum(x[b * 32 + t])
    if t == 0:
        y[b] = total
        if not bug:
            arch.fence_acq_rel_gpu()
        arch.atomic_exch(c.iterator + b, 1)
        if b > 0:
            while arch.atomic_add(c.iterator + b - 1, 0) == 0:
                pass
            if not bug:
                arch.fence_acq_rel_gpu()
            y[b + 8] = y[b - 1]


CASES = [
    (lock, RaceError, GLOBAL, {"grid": 3}),
    (unlock, RaceError, GLOBAL, {"grid": 3}),
    (lock_by_exchange, RaceError, GLOBAL, {"grid": 3}),
    (lock_with_fences, RaceError, GLOBAL, {"grid": 3}),
    (shared_lock, RaceError, SHARED, {"block": 96}),
    (ticket_lock, RaceError, GLOBAL, {"grid": 3}),
    (flag_of_a_block, RaceError, GLOBAL, {"grid": 2}),
    (flag_read_without_acquire, RaceError, GLOBAL, {"grid": 2}),
    (flag_before_the_data, RaceError, GLOBAL, {"grid": 2}),
    (flag_of_a_narrow_scope, RaceError, GLOBAL, {"grid": 2}),
    (flag_of_another_lane, RaceError, GLOBAL, {"grid": 2, "block": 32}),
    (waiting_lane_tells_nobody, RaceError, GLOBAL, {"grid": 2}),
    (flag_of_a_warp, RaceError, SHARED),
    (volatile_flag, RaceError, GLOBAL, {"grid": 2}),
    (bounded_polling, RaceError, GLOBAL, {"grid": 2}),
    (chain_of_blocks, RaceError, GLOBAL, {"grid": 4}),
    (transitive_flags, RaceError, GLOBAL, {"grid": 3}),
    (release_sequence, RaceError, GLOBAL, {"grid": 3}),
    (grid_barrier, RaceError, GLOBAL, {"grid": 3, "cooperative": True}),
    (grid_barrier_with_fences, RaceError, GLOBAL, {"grid": 3, "cooperative": True}),
    (grid_barrier_of_one_warp, RaceError, GLOBAL, {"grid": 2, "cooperative": True}),
    (fence_of_a_narrow_scope, RaceError, GLOBAL, {"grid": 2}),
    (fence_after_the_flag, RaceError, GLOBAL, {"grid": 2}),
    (two_flags, RaceError, GLOBAL, {"grid": 2}),
    (answer_to_a_flag, RaceError, GLOBAL, {"grid": 2}),
    (look_back, RaceError, GLOBAL, {"grid": 3, "block": 32}),
]
