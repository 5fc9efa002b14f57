"""Queues, counters and look-back in global memory: each with an order left out, or complete."""

import basedsl_cute as cute
from basedsl_cute import arch
from basedsl_cute.sim import RaceError

GLOBAL = "race on global memory"


@cute.kernel
def seqlock_read_plainly(x: cute.Tensor, y: cute.Tensor, c: cute.Tensor, bug: cute.Constexpr):
    if arch.thread_idx()[0] == 0:
        if arch.block_idx()[0] == 0:
            arch.store(c.iterator, 1, sem="relaxed")
            arch.fence_acq_rel_gpu()
            arch.store(y.iterator, x[3], sem="relaxed")
            arch.store(y.iterator + 1, x[4], sem="relaxed")
            arch.store(c.iterator, 2, sem="release")
        else:
            before = cute.Int32(1)
            after = cute.Int32(0)
            sum_ = cute.Float32(0)
            while before % 2 == 1 or before != after:
                before = arch.load(c.iterator, sem="acquire")
                if bug:
                    sum_ = y[0] + y[1]
                else:
                    sum_ = arch.load(y.iterator, sem="relaxed")
                    sum_ += arch.load(y.iterator + 1, sem="relaxed")
                arch.fence_acq_rel_gpu()
                after = arch.load(c.iterator, sem="relaxed")
            y[2] = sum_


@cute.kernel
def queue_of_many_writers(x: cute.Tensor, y: cute.Tensor, c: cute.Tensor, bug: cute.Constexpr):
    b = arch.block_idx()[0]
    if arch.thread_idx()[0] == 0:
        if b < 3:
            slot = arch.atomic_add(c.iterator, 1)
            y[slot] = x[b]
            arch.store(c.iterator + 1 + slot, 1, sem="relaxed" if bug else "release")
        else:
            total = cute.Float32(0)
            for i in range(cute.Int32(3)):
                while arch.load(c.iterator + 1 + i, sem="acquire") == 0:
                    pass
                total += y[i]
            y[8] = total


@cute.kernel
def slot_given_back_too_soon(x: cute.Tensor, y: cute.Tensor, c: cute.Tensor, bug: cute.Constexpr):
    """One writer, one reader, two slots: head at c[0], tail at c[1]."""
    if arch.thread_idx()[0] == 0:
        if arch.block_idx()[0] == 0:
            for i in range(cute.Int32(5)):
                while i - arch.load(c.iterator + 1, sem="acquire") >= 2:
                    pass
                y[i % 2] = x[i]
                arch.store(c.iterator, i + 1, sem="release")
        else:
            total = cute.Float32(0)
            for i in range(cute.Int32(5)):
                while arch.load(c.iterator, sem="acquire") <= i:
                    pass
                if bug:
                    arch.store(c.iterator + 1, i + 1, sem="release")
                total += y[i % 2]
                if not bug:
                    arch.store(c.iterator + 1, i + 1, sem="release")
            y[8] = total


@cute.kernel
def checked_twice(x: cute.Tensor, y: cute.Tensor, c: cute.Tensor, bug: cute.Constexpr):
    """The first block that comes initialises; c[0] is the lock, c[1] says that it is done."""
    b = arch.block_idx()[0]
    if arch.thread_idx()[0] == 0:
        done = cute.Int32(0)
        if bug:
            done = c[1]
        else:
            done = arch.load(c.iterator + 1, sem="acquire")
        if done == 0:
            while arch.atomic_cas(c.iterator, 0, 1, sem="acquire") != 0:
                pass
            if arch.load(c.iterator + 1, sem="relaxed") == 0:
                y[0] = x[9]
                arch.store(c.iterator + 1, 1, sem="release")
            arch.atomic_exch(c.iterator, 0, sem="release")
        y[b + 1] = y[0]


@cute.kernel
def reader_leaves_before_it_reads(
    x: cute.Tensor, y: cute.Tensor, c: cute.Tensor, bug: cute.Constexpr
):
    """A lock of readers and a writer: c[0] counts readers, -1000 is a writer."""
    b = arch.block_idx()[0]
    if arch.thread_idx()[0] == 0:
        if b == 1:
            while arch.atomic_cas(c.iterator, 0, -1000, sem="acquire") != 0:
                pass
            y[0] = x[5]
            arch.atomic_add(c.iterator, 1000, sem="release")
        else:
            while arch.atomic_add(c.iterator, 1, sem="acquire") < 0:
                arch.atomic_add(c.iterator, -1)
            if bug:
                arch.atomic_add(c.iterator, -1, sem="release")
            y[b + 1] = y[0]
            if not bug:
                arch.atomic_add(c.iterator, -1, sem="release")


@cute.kernel
def link_after_the_push(x: cute.Tensor, y: cute.Tensor, c: cute.Tensor, bug: cute.Constexpr):
    """A stack: c[0] is the top, c[1 + i] the one below node i; the last block pops all."""
    b = arch.block_idx()[0]
    if arch.thread_idx()[0] == 0:
        if b < 3:
            top = arch.load(c.iterator, sem="relaxed")
            seen = cute.Int32(-1)
            while seen != top:
                if seen != -1:
                    top = seen
                if not bug:
                    c[1 + b] = top
                seen = arch.atomic_cas(c.iterator, top, b + 1, sem="release")
            if bug:
                c[1 + b] = top
            arch.atomic_add(c.iterator + 32, 1, sem="release" if not bug else "relaxed")
        else:
            while arch.load(c.iterator + 32, sem="acquire") < 3:
                pass
            node = arch.atomic_exch(c.iterator, 0, sem="acquire")
            total = cute.Float32(0)
            while node != 0:
                total += x[node]
                node = c[node]
            y[0] = total


@cute.kernel
def lost_update(x: cute.Tensor, y: cute.Tensor, c: cute.Tensor, bug: cute.Constexpr):
    b = arch.block_idx()[0]
    if arch.thread_idx()[0] == 0:
        slot = cute.Int32(0)
        if bug:
            slot = arch.load(c.iterator, sem="relaxed")
            arch.store(c.iterator, slot + 1, sem="relaxed")
        else:
            slot = arch.atomic_add(c.iterator, 1)
        y[slot] = x[b]


@cute.kernel
def grid_barrier_used_twice(x: cute.Tensor, y: cute.Tensor, c: cute.Tensor, bug: cute.Constexpr):
    t, b = arch.thread_idx()[0], arch.block_idx()[0]
    for i in cute.range_constexpr(2):
        y[b * 64 + t] = x[b * 64 + t] + i
        arch.sync_threads()
        if t == 0:
            arch.atomic_add(c.iterator + i, 1, sem="acq_rel")
            while arch.load(c.iterator + i, sem="acquire") < 2:
                pass
        arch.sync_threads()
        x[128 + b * 64 + t] = y[(1 - b) * 64 + t]
        if not bug:
            arch.sync_threads()
            if t == 0:
                arch.atomic_add(c.iterator + 2 + i, 1, sem="acq_rel")
                while arch.load(c.iterator + 2 + i, sem="acquire") < 2:
                    pass
            arch.sync_threads()


@cute.kernel
def status_before_the_value(x: cute.Tensor, y: cute.Tensor, c: cute.Tensor, bug: cute.Constexpr):
    """Decoupled look-back: a block publishes its sum, and later its prefix."""
    b = arch.block_idx()[0]
    if arch.thread_idx()[0] == 0:
        mine = x[b]
        if bug:
            arch.store(c.iterator + b, 1, sem="release")
        y[b] = mine
        if not bug:
            arch.store(c.iterator + b, 1, sem="release")
        before = cute.Float32(0)
        at = b - 1
        while at >= 0:
            state = arch.load(c.iterator + at, sem="acquire")
            if state == 1:
                before += y[at]
                at -= 1
            elif state == 2:
                before += y[16 + at]
                at = cute.Int32(-1)
        y[16 + b] = before + mine
        arch.store(c.iterator + b, 2, sem="release")


@cute.kernel
def one_slot_for_a_warp(x: cute.Tensor, y: cute.Tensor, c: cute.Tensor, bug: cute.Constexpr):
    """Atomics of a warp as one: the leader adds how many there are."""
    t = arch.thread_idx()[0]
    i = arch.block_idx()[0] * 64 + t
    lane = t % 32
    wanted = x[i].to(cute.Int32) % 3 == 0
    votes = arch.vote_ballot_sync(wanted)
    base = cute.Int32(0)
    if lane == 0:
        base = arch.atomic_add(c.iterator, arch.popc(votes))
    base = arch.shuffle_sync(base, 0)
    if wanted:
        rank = arch.popc(votes & ((1 << lane) - 1))
        y[base + (0 if bug else rank)] = x[i]


@cute.kernel
def reset_while_polled(x: cute.Tensor, y: cute.Tensor, c: cute.Tensor, bug: cute.Constexpr):
    b = arch.block_idx()[0]
    if arch.thread_idx()[0] == 0:
        if b == 0:
            y[0] = x[1]
            arch.store(c.iterator, 1, sem="release")
            if bug:
                c[0] = 0
        else:
            turns = cute.Int32(0)
            seen = cute.Int32(0)
            while seen == 0 and turns < 20:
                seen = arch.load(c.iterator, sem="acquire")
                turns += 1
            if seen == 1:
                y[b] = y[0]


@cute.kernel
def last_but_one_block(x: cute.Tensor, y: cute.Tensor, c: cute.Tensor, bug: cute.Constexpr):
    b = arch.block_idx()[0]
    if arch.thread_idx()[0] == 0:
        y[b] = x[b]
        if arch.atomic_add(c.iterator, 1, sem="acq_rel") == (2 if bug else 3):
            y[8] = y[0] + y[1] + y[2] + y[3]


@cute.kernel
def maximum_read_at_once(x: cute.Tensor, y: cute.Tensor, c: cute.Tensor, bug: cute.Constexpr):
    t = arch.thread_idx()[0]
    arch.atomic_max(c.iterator, x[t].to(cute.Int32))
    if not bug:
        arch.sync_threads()
    c[t + 1] = c[0]


@cute.kernel
def atomics_of_a_narrow_scope(x: cute.Tensor, y: cute.Tensor, c: cute.Tensor, bug: cute.Constexpr):
    if arch.thread_idx()[0] == 0:
        arch.atomic_add(c.iterator, 1, scope="cta" if bug else "gpu")


@cute.kernel
def half_of_a_wide_word(x: cute.Tensor, y: cute.Tensor, c: cute.Tensor, bug: cute.Constexpr):
    b = arch.block_idx()[0]
    if arch.thread_idx()[0] == 0:
        if b == 0:
            arch.atomic_add(c.iterator + 1, 1)
        else:
            wide = cute.make_tensor(
                cute.recast_ptr(c.iterator, dtype=cute.Int64), cute.make_layout(8)
            )
            wide[0 if bug else 1] = cute.Int64(7)


@cute.kernel
def one_of_two_flags(x: cute.Tensor, y: cute.Tensor, c: cute.Tensor, bug: cute.Constexpr):
    t, b = arch.thread_idx()[0], arch.block_idx()[0]
    if b == 0:
        y[t] = x[t]
        arch.sync_warp()
        if t % 32 == 0:
            arch.store(c.iterator + t // 32, 1, sem="release")
    else:
        if t == 0:
            for i in cute.range_constexpr(1 if bug else 2):
                while arch.load(c.iterator + i, sem="acquire") == 0:
                    pass
        arch.sync_threads()
        y[64 + t] = y[t]


@cute.kernel
def sense_of_a_barrier(x: cute.Tensor, y: cute.Tensor, c: cute.Tensor, bug: cute.Constexpr):
    """A barrier that is used again: the last to come resets the count, then turns the sense."""
    t, b = arch.thread_idx()[0], arch.block_idx()[0]
    for i in cute.range_constexpr(2):
        y[b * 64 + t] = x[b * 64 + t] + i
        arch.sync_threads()
        if t == 0:
            if arch.atomic_add(c.iterator, 1, sem="acq_rel") == 1:
                arch.store(c.iterator, 0, sem="relaxed")
                arch.store(c.iterator + 1, i + 1, sem="relaxed" if bug else "release")
            else:
                while arch.load(c.iterator + 1, sem="acquire") != i + 1:
                    pass
        arch.sync_threads()
        x[128 + i * 64 * 2 + b * 64 + t] = y[(1 - b) * 64 + t]
        arch.sync_threads()
        if t == 0:
            arch.atomic_add(c.iterator + 2 + i, 1, sem="acq_rel")
            while arch.load(c.iterator + 2 + i, sem="acquire") < 2:
                pass
        arch.sync_threads()


CASES = [
    (seqlock_read_plainly, RaceError, GLOBAL, {"grid": 2, "schedules": 30}),
    (queue_of_many_writers, RaceError, GLOBAL, {"grid": 4}),
    (slot_given_back_too_soon, RaceError, GLOBAL, {"grid": 2}),
    (checked_twice, RaceError, GLOBAL, {"grid": 3}),
    (reader_leaves_before_it_reads, RaceError, GLOBAL, {"grid": 3}),
    (link_after_the_push, RaceError, GLOBAL, {"grid": 4}),
    (lost_update, RaceError, GLOBAL, {"grid": 3}),
    (grid_barrier_used_twice, RaceError, GLOBAL, {"grid": 2, "cooperative": True}),
    (status_before_the_value, RaceError, GLOBAL, {"grid": 4, "schedules": 30}),
    (one_slot_for_a_warp, RaceError, GLOBAL, {"grid": 2}),
    (reset_while_polled, RaceError, GLOBAL, {"grid": 3}),
    (last_but_one_block, RaceError, GLOBAL, {"grid": 4}),
    (maximum_read_at_once, RaceError, GLOBAL, {"block": 32}),
    (atomics_of_a_narrow_scope, RaceError, GLOBAL, {"grid": 2}),
    (half_of_a_wide_word, RaceError, GLOBAL, {"grid": 2}),
    (one_of_two_flags, RaceError, GLOBAL, {"grid": 2}),
    (sense_of_a_barrier, RaceError, GLOBAL, {"grid": 2, "cooperative": True, "x": 512}),
]
