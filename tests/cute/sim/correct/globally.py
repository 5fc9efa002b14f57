"""Correct kernels whose blocks synchronise through global memory in unusual ways."""

import numpy as np

import basedsl_cute as cute
from basedsl_cute import arch

X = np.arange(512, dtype=np.float32)


@cute.kernel
def ticket_lock(x: cute.Tensor, y: cute.Tensor, c: cute.Tensor):
    if arch.thread_idx()[0] == 0:
        mine = arch.atomic_add(c.iterator, 1)
        while arch.load(c.iterator + 1, sem="acquire") != mine:
            pass
        y[0] = y[0] + x[1]
        arch.atomic_add(c.iterator + 1, 1, sem="release")


@cute.kernel
def lock_of_every_thread(x: cute.Tensor, y: cute.Tensor, c: cute.Tensor):
    """All lanes of a warp want the lock: the loop takes them one after another."""
    done = cute.Boolean(False)
    while not done:
        if arch.atomic_cas(c.iterator, 0, 1, sem="acquire") == 0:
            y[0] = y[0] + 1
            arch.atomic_exch(c.iterator, 0, sem="release")
            done = cute.Boolean(True)


@cute.kernel
def test_then_test_and_set(x: cute.Tensor, y: cute.Tensor, c: cute.Tensor):
    if arch.thread_idx()[0] == 0:
        have = cute.Int32(1)
        while have != 0:
            while arch.load(c.iterator, sem="relaxed") != 0:
                arch.nanosleep(20)
            have = arch.atomic_exch(c.iterator, 1, sem="acquire")
        y[0] = y[0] + 1
        arch.store(c.iterator, 0, sem="release")


@cute.kernel
def queue_lock(x: cute.Tensor, y: cute.Tensor, c: cute.Tensor):
    """MCS: c[0] is the tail, c[8 + b] says that block b waits, c[16 + b] who is behind it."""
    b = arch.block_idx()[0]
    if arch.thread_idx()[0] == 0:
        arch.store(c.iterator + 16 + b, 0, sem="relaxed")
        arch.store(c.iterator + 8 + b, 1, sem="relaxed")
        before = arch.atomic_exch(c.iterator, b + 1, sem="acq_rel")
        if before != 0:
            arch.store(c.iterator + 15 + before, b + 1, sem="release")
            while arch.load(c.iterator + 8 + b, sem="acquire") == 1:
                pass
        y[0] = y[0] + 1
        if arch.load(c.iterator + 16 + b, sem="acquire") == 0:
            if arch.atomic_cas(c.iterator, b + 1, 0, sem="acq_rel") != b + 1:
                while arch.load(c.iterator + 16 + b, sem="acquire") == 0:
                    pass
        after = arch.load(c.iterator + 16 + b, sem="acquire")
        if after != 0:
            arch.store(c.iterator + 7 + after, 0, sem="release")


@cute.kernel
def readers_and_a_writer(x: cute.Tensor, y: cute.Tensor, c: cute.Tensor):
    b = arch.block_idx()[0]
    if arch.thread_idx()[0] == 0:
        if b % 2 == 1:
            while arch.atomic_cas(c.iterator, 0, -1000, sem="acquire") != 0:
                pass
            y[0] = y[0] + 1
            arch.atomic_add(c.iterator, 1000, sem="release")
        else:
            while arch.atomic_add(c.iterator, 1, sem="acquire") < 0:
                arch.atomic_add(c.iterator, -1)
            y[b + 1] = y[0] * 0 + 3
            arch.atomic_add(c.iterator, -1, sem="release")


@cute.kernel
def sequence_lock(x: cute.Tensor, y: cute.Tensor, c: cute.Tensor):
    if arch.thread_idx()[0] == 0:
        if arch.block_idx()[0] == 0:
            for i in range(cute.Int32(3)):
                arch.store(c.iterator, 2 * i + 1, sem="relaxed")
                arch.fence_acq_rel_gpu()
                arch.store(y.iterator, x[i], sem="relaxed")
                arch.store(y.iterator + 1, x[i], sem="relaxed")
                arch.store(c.iterator, 2 * i + 2, sem="release")
        else:
            before, after = cute.Int32(1), cute.Int32(0)
            gap = cute.Float32(0)
            while before % 2 == 1 or before != after:
                before = arch.load(c.iterator, sem="acquire")
                gap = arch.load(y.iterator, sem="relaxed") - arch.load(
                    y.iterator + 1, sem="relaxed"
                )
                arch.fence_acq_rel_gpu()
                after = arch.load(c.iterator, sem="relaxed")
            y[2] = gap + 7


@cute.kernel
def ring_of_two_slots(x: cute.Tensor, y: cute.Tensor, c: cute.Tensor):
    if arch.thread_idx()[0] == 0:
        if arch.block_idx()[0] == 0:
            for i in range(cute.Int32(6)):
                while i - arch.load(c.iterator + 1, sem="acquire") >= 2:
                    pass
                y[i % 2] = x[i]
                arch.store(c.iterator, i + 1, sem="release")
        else:
            total = cute.Float32(0)
            for i in range(cute.Int32(6)):
                while arch.load(c.iterator, sem="acquire") <= i:
                    pass
                total += y[i % 2]
                arch.store(c.iterator + 1, i + 1, sem="release")
            y[8] = total


@cute.kernel
def ring_of_whole_blocks(x: cute.Tensor, y: cute.Tensor, c: cute.Tensor):
    """All threads of a block fill and empty slots; one thread tells and waits."""
    t, b = arch.thread_idx()[0], arch.block_idx()[0]
    total = cute.Float32(0)
    for i in range(cute.Int32(4)):
        if b == 0:
            if t == 0:
                while i - arch.load(c.iterator + 1, sem="acquire") >= 2:
                    pass
            arch.sync_threads()
            y[i % 2 * 64 + t] = x[i * 64 + t]
            arch.sync_threads()
            if t == 0:
                arch.store(c.iterator, i + 1, sem="release")
        else:
            if t == 0:
                while arch.load(c.iterator, sem="acquire") <= i:
                    pass
            arch.sync_threads()
            total += y[i % 2 * 64 + 63 - t]
            arch.sync_threads()
            if t == 0:
                arch.store(c.iterator + 1, i + 1, sem="release")
    if b == 1:
        y[128 + t] = total


@cute.kernel
def bounded_queue(x: cute.Tensor, y: cute.Tensor, c: cute.Tensor):
    """Many writers, many readers (Vyukov): c[8 + i] is the turn of slot i; c[0], c[1] tickets."""
    b = arch.block_idx()[0]
    if arch.thread_idx()[0] == 0:
        if b % 2 == 0:
            mine = arch.atomic_add(c.iterator, 1)
            slot = mine % 2
            while arch.load(c.iterator + 8 + slot, sem="acquire") != mine // 2 * 2:
                pass
            y[slot] = x[mine]
            arch.store(c.iterator + 8 + slot, mine // 2 * 2 + 1, sem="release")
        else:
            mine = arch.atomic_add(c.iterator + 1, 1)
            slot = mine % 2
            while arch.load(c.iterator + 8 + slot, sem="acquire") != mine // 2 * 2 + 1:
                pass
            y[8 + mine] = y[slot]
            arch.store(c.iterator + 8 + slot, mine // 2 * 2 + 2, sem="release")


@cute.kernel
def stack(x: cute.Tensor, y: cute.Tensor, c: cute.Tensor):
    """Pushes by compare-and-swap; the last block pops all at once."""
    b = arch.block_idx()[0]
    if arch.thread_idx()[0] == 0:
        y[b] = x[b]
        top = arch.load(c.iterator, sem="relaxed")
        seen = top - 1
        while seen != top:
            c[1 + b] = top
            seen = arch.atomic_cas(c.iterator, top, b + 1, sem="release")
            if seen != top:
                top = seen
                seen = top - 1
        if arch.atomic_add(c.iterator + 32, 1, sem="acq_rel") == 3:
            node = arch.atomic_exch(c.iterator, 0, sem="acquire")
            total = cute.Float32(0)
            while node != 0:
                total += y[node - 1]
                node = c[node]
            y[8] = total


@cute.kernel
def grid_barrier(x: cute.Tensor, y: cute.Tensor, c: cute.Tensor):
    """A barrier that resets itself: the last to come turns the generation."""
    t, b = arch.thread_idx()[0], arch.block_idx()[0]
    y[b * 64 + t] = x[b * 64 + t]
    for _ in range(cute.Int32(3)):
        arch.sync_threads()
        if t == 0:
            turn = arch.load(c.iterator + 1, sem="relaxed")
            if arch.atomic_add(c.iterator, 1, sem="acq_rel") == 2:
                arch.store(c.iterator, 0, sem="relaxed")
                arch.store(c.iterator + 1, turn + 1, sem="release")
            else:
                while arch.load(c.iterator + 1, sem="acquire") == turn:
                    pass
        arch.sync_threads()
        other = y[(b + 1) % 3 * 64 + t]
        arch.sync_threads()
        if t == 0:
            turn = arch.load(c.iterator + 3, sem="relaxed")
            if arch.atomic_add(c.iterator + 2, 1, sem="acq_rel") == 2:
                arch.store(c.iterator + 2, 0, sem="relaxed")
                arch.store(c.iterator + 3, turn + 1, sem="release")
            else:
                while arch.load(c.iterator + 3, sem="acquire") == turn:
                    pass
        arch.sync_threads()
        y[b * 64 + t] = other


@cute.kernel
def grid_barrier_by_the_sign(x: cute.Tensor, y: cute.Tensor, c: cute.Tensor):
    """Block 0 adds what turns the highest bit; all wait for it to turn."""
    t, b = arch.thread_idx()[0], arch.block_idx()[0]
    y[b * 64 + t] = x[b * 64 + t]
    arch.sync_threads()
    if t == 0:
        arch.fence_acq_rel_gpu()
        step = cute.Int32(1)
        if b == 0:
            step = cute.Int32(2147483647)  # 0x80000000 less the other block's 1
        old = arch.atomic_add(c.iterator, step)
        while ((arch.load(c.iterator, sem="volatile") ^ old) & -2147483648) == 0:
            pass
        arch.fence_acq_rel_gpu()
    arch.sync_threads()
    x[128 + b * 64 + t] = y[(1 - b) * 64 + t]


@cute.kernel
def last_block_sums(x: cute.Tensor, y: cute.Tensor, c: cute.Tensor):
    t, b = arch.thread_idx()[0], arch.block_idx()[0]
    last = cute.utils.SmemAllocator().allocate_tensor(cute.Int32, cute.make_layout((1,)), 16)
    y[b * 64 + t] = x[b * 64 + t]
    arch.fence_acq_rel_gpu()
    arch.sync_threads()
    if t == 0:
        last[0] = arch.atomic_add(c.iterator, 1)
    arch.sync_threads()
    if last[0] == 3:
        arch.fence_acq_rel_gpu()
        total = cute.Float32(0)
        for i in range(cute.Int32(4)):
            total += y[i * 64 + t]
        x[t] = total
        if t == 0:
            c[0] = 0


@cute.kernel
def last_block_of_each_row(x: cute.Tensor, y: cute.Tensor, c: cute.Tensor):
    """Split-K with a semaphore for each tile: the later block adds to what the first stored."""
    t, b = arch.thread_idx()[0], arch.block_idx()[0]
    row, part = b % 2, b // 2
    if part == 0:
        y[row * 64 + t] = x[b * 64 + t]
        arch.sync_threads()
        if t == 0:
            arch.store(c.iterator + row, 1, sem="release")
    else:
        if t == 0:
            while arch.load(c.iterator + row, sem="acquire") != 1:
                pass
        arch.sync_threads()
        y[row * 64 + t] = y[row * 64 + t] + x[b * 64 + t]
        if t == 0:
            c[row] = 0


@cute.kernel
def look_back(x: cute.Tensor, y: cute.Tensor, c: cute.Tensor):
    """Decoupled look-back: sums in y[0..], prefixes in y[16..], states in c."""
    b = arch.block_idx()[0]
    if arch.thread_idx()[0] == 0:
        mine = x[b]
        y[b] = mine
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
def look_back_of_one_word(x: cute.Tensor, y: cute.Tensor, c: cute.Tensor):
    """State and value share a word, so that relaxed accesses do: state * 65536 + value."""
    b = arch.block_idx()[0]
    if arch.thread_idx()[0] == 0:
        mine = x[b].to(cute.Int32)
        arch.store(c.iterator + b, 65536 + mine, sem="relaxed")
        before = cute.Int32(0)
        at = b - 1
        while at >= 0:
            word = arch.load(c.iterator + at, sem="relaxed")
            if word // 65536 == 1:
                before += word % 65536
                at -= 1
            elif word // 65536 == 2:
                before += word % 65536
                at = cute.Int32(-1)
        arch.store(c.iterator + b, 131072 + before + mine, sem="relaxed")
        y[b] = (before + mine).to(cute.Float32)


@cute.kernel
def look_back_of_a_warp(x: cute.Tensor, y: cute.Tensor, c: cute.Tensor):
    """The lanes of a warp look at as many blocks before theirs."""
    t, b = arch.thread_idx()[0], arch.block_idx()[0]
    if t == 0:
        y[b] = x[b]
        arch.store(c.iterator + b, 1, sem="release")
    before = cute.Float32(0)
    if t < b:
        while arch.load(c.iterator + t, sem="acquire") == 0:
            pass
        before = y[t]
    before = arch.warp_reduction_sum(before)
    if t == 0:
        y[16 + b] = before + x[b]


@cute.kernel
def one_atomic_for_a_warp(x: cute.Tensor, y: cute.Tensor, c: cute.Tensor):
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
        y[base + arch.popc(votes & ((1 << lane) - 1))] = x[i]


@cute.kernel
def work_queue(x: cute.Tensor, y: cute.Tensor, c: cute.Tensor):
    """Blocks fetch their tiles one by one."""
    t = arch.thread_idx()[0]
    box = cute.utils.SmemAllocator().allocate_tensor(cute.Int32, cute.make_layout((1,)), 16)
    tile = cute.Int32(0)
    while tile < 6:
        if t == 0:
            box[0] = arch.atomic_add(c.iterator, 1)
        arch.sync_threads()
        tile = box[0]
        arch.sync_threads()
        if tile < 6:
            y[tile * 64 + t] = x[tile * 64 + t] * 2


@cute.kernel
def once_for_all(x: cute.Tensor, y: cute.Tensor, c: cute.Tensor):
    """One block initialises, the others wait until it has: 0, 1 (at it), 2 (done)."""
    b = arch.block_idx()[0]
    if arch.thread_idx()[0] == 0:
        if arch.atomic_cas(c.iterator, 0, 1, sem="acquire") == 0:
            y[0] = x[9]
            arch.store(c.iterator, 2, sem="release")
        else:
            while arch.load(c.iterator, sem="acquire") != 2:
                pass
        y[b + 1] = y[0]


@cute.kernel
def handed_from_block_to_block(x: cute.Tensor, y: cute.Tensor, c: cute.Tensor):
    """A sum in order, as deterministic reductions have it: block b waits for its turn."""
    t, b = arch.thread_idx()[0], arch.block_idx()[0]
    if t == 0:
        while arch.load(c.iterator, sem="acquire") != b:
            pass
    arch.sync_threads()
    y[t] = y[t] + x[b * 64 + t]
    arch.sync_threads()
    if t == 0:
        arch.atomic_add(c.iterator, 1, sem="release")


@cute.kernel
def sum_of_release_and_fence(x: cute.Tensor, y: cute.Tensor, c: cute.Tensor):
    """One side uses fences, the other an acquire."""
    b = arch.block_idx()[0]
    if arch.thread_idx()[0] == 0:
        if b < 3:
            y[b] = x[b + 1]
            arch.fence_acq_rel_sys()
            arch.atomic_or(c.iterator, 1 << b)
        else:
            while arch.load(c.iterator, sem="acquire", scope="sys") != 7:
                pass
            y[8] = y[0] + y[1] + y[2]


@cute.kernel
def flags_of_two_epochs(x: cute.Tensor, y: cute.Tensor, c: cute.Tensor):
    """Two blocks pass data to and fro; an epoch is the flag, nothing is reset."""
    t, b = arch.thread_idx()[0], arch.block_idx()[0]
    for i in range(cute.Int32(3)):
        if b == 0:
            if i > 0:
                if t == 0:
                    while arch.load(c.iterator + 1, sem="acquire") < i:
                        pass
                arch.sync_threads()
            y[t] = x[t] + i
            arch.sync_threads()
            if t == 0:
                arch.store(c.iterator, i + 1, sem="release")
        else:
            if t == 0:
                while arch.load(c.iterator, sem="acquire") < i + 1:
                    pass
            arch.sync_threads()
            y[64 + t] = y[64 + t] + y[t]
            arch.sync_threads()
            if t == 0:
                arch.store(c.iterator + 1, i + 1, sem="release")


@cute.kernel
def hazard_pointer(x: cute.Tensor, y: cute.Tensor, c: cute.Tensor):
    """c[0] is the version in use, c[1] what the reader holds: the writer spares that."""
    if arch.thread_idx()[0] == 0:
        if arch.block_idx()[0] == 0:
            for i in range(cute.Int32(3)):
                free = cute.Int32(1)
                while free == arch.load(c.iterator, sem="relaxed") + 1 or free == arch.load(
                    c.iterator + 1, sem="acquire"
                ):
                    free = free % 3 + 1
                y[free - 1] = x[i] + 1
                arch.atomic_exch(c.iterator, free - 1, sem="acq_rel")
                arch.fence_acq_rel_gpu()
        else:
            y[8] = 4.0


CASES = [
    (ticket_lock, {"grid": 4}, lambda x, y, c: y[0] == 4),
    (lock_of_every_thread, {"grid": 2, "block": 32}, lambda x, y, c: y[0] == 64),
    (test_then_test_and_set, {"grid": 4}, lambda x, y, c: y[0] == 4),
    (queue_lock, {"grid": 4}, lambda x, y, c: y[0] == 4),
    (readers_and_a_writer, {"grid": 5}, lambda x, y, c: y[0] == 2 and y[1] == y[3] == y[5] == 3),
    (sequence_lock, {"grid": 2}, lambda x, y, c: y[2] == 7),
    (ring_of_two_slots, {"grid": 2}, lambda x, y, c: y[8] == 15),
    (
        ring_of_whole_blocks,
        {"grid": 2},
        lambda x, y, c: (y[128:192] == X[:256].reshape(4, 64).sum(0)[::-1]).all(),
    ),
    (bounded_queue, {"grid": 8}, lambda x, y, c: sorted(y[8:12]) == [0, 1, 2, 3]),
    (stack, {"grid": 4}, lambda x, y, c: y[8] == 6),
    (
        grid_barrier,
        {"grid": 3, "cooperative": True},
        lambda x, y, c: (y[:192] == X[:192]).all(),
    ),
    (
        grid_barrier_by_the_sign,
        {"grid": 2, "cooperative": True},
        lambda x, y, c: (x[128:192] == X[64:128]).all(),
    ),
    (last_block_sums, {"grid": 4}, lambda x, y, c: (x[:64] == X[:256].reshape(4, 64).sum(0)).all()),
    (
        last_block_of_each_row,
        {"grid": 4},
        lambda x, y, c: (y[:128] == X[:128] + X[128:256]).all(),
    ),
    (look_back, {"grid": 6}, lambda x, y, c: (y[16:22] == X[:6].cumsum()).all()),
    (look_back_of_one_word, {"grid": 6}, lambda x, y, c: (y[:6] == X[:6].cumsum()).all()),
    (
        look_back_of_a_warp,
        {"grid": 6, "block": 32},
        lambda x, y, c: (y[16:22] == X[:6].cumsum()).all(),
    ),
    (one_atomic_for_a_warp, {"grid": 2}, lambda x, y, c: sorted(y[:43]) == list(range(0, 128, 3))),
    (work_queue, {"grid": 2}, lambda x, y, c: (y[:384] == X[:384] * 2).all()),
    (once_for_all, {"grid": 4}, lambda x, y, c: (y[1:5] == 9).all()),
    (
        handed_from_block_to_block,
        {"grid": 4},
        lambda x, y, c: (y[:64] == X[:256].reshape(4, 64).sum(0)).all(),
    ),
    (sum_of_release_and_fence, {"grid": 4}, lambda x, y, c: y[8] == 6),
    (flags_of_two_epochs, {"grid": 2}, lambda x, y, c: (y[64:128] == 3 * X[:64] + 3).all()),
    (hazard_pointer, {"grid": 2}, lambda x, y, c: y[8] == 4),
]
