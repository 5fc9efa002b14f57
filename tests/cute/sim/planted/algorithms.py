"""Algorithms whose blocks talk to each other: each with an order left out, or complete."""

import basedsl_cute as cute
from basedsl_cute import arch
from basedsl_cute.arch.bulk import bulk_store
from basedsl_cute.sim import DeadlockError, RaceError

GLOBAL = "race on global memory"


@cute.jit
def wait_for(flag, value):
    while arch.load(flag, sem="acquire") < value:
        pass


@cute.kernel
def key_before_the_value(x: cute.Tensor, y: cute.Tensor, c: cute.Tensor, bug: cute.Constexpr):
    """A hash table: keys from c[0], states from c[16]; the last block looks a key up."""
    b = arch.block_idx()[0]
    if arch.thread_idx()[0] == 0:
        if b < 3:
            slot = b * 5 % 8
            while arch.atomic_cas(c.iterator + slot, 0, b + 1, sem="release") != 0:
                slot = (slot + 1) % 8
            y[slot] = x[b]
            arch.store(c.iterator + 16 + slot, 1, sem="release")
        else:
            slot = cute.Int32(5)
            if bug:
                wait_for(c.iterator + slot, 1)
            else:
                wait_for(c.iterator + 16 + slot, 1)
            y[16] = y[slot]


@cute.kernel
def parent_read_plainly(x: cute.Tensor, y: cute.Tensor, c: cute.Tensor, bug: cute.Constexpr):
    """Union and find: c[i] is the parent of i, less one (0 is a root)."""
    b = arch.block_idx()[0]
    if arch.thread_idx()[0] == 0:
        low, high = b, cute.Int32(4)
        done = cute.Boolean(False)
        while not done:
            parent = cute.Int32(0)
            if bug:
                parent = c[high]
            else:
                parent = arch.load(c.iterator + high, sem="relaxed")
            if parent != 0:
                high = parent - 1
            elif arch.atomic_cas(c.iterator + high, 0, low + 1) == 0:
                done = cute.Boolean(True)
            if high < low:
                low, high = high, low
            if high == low:
                done = cute.Boolean(True)


@cute.kernel
def peterson(x: cute.Tensor, y: cute.Tensor, c: cute.Tensor, bug: cute.Constexpr):
    """A lock for two: c[b] says that block b wants it, c[2] whose turn it is to wait."""
    b = arch.block_idx()[0]
    if arch.thread_idx()[0] == 0:
        for _ in range(cute.Int32(2)):
            arch.store(c.iterator + b, 1, sem="relaxed")
            arch.atomic_exch(c.iterator + 2, b, sem="acq_rel")
            other = cute.Int32(1)
            turn = b
            while other == 1 and turn == b:
                other = arch.load(c.iterator + 1 - b, sem="acquire")
                turn = arch.load(c.iterator + 2, sem="acquire")
            y[0] = y[0] + 1
            arch.store(c.iterator + b, 0, sem="relaxed" if bug else "release")


@cute.kernel
def colours_of_neighbours(x: cute.Tensor, y: cute.Tensor, c: cute.Tensor, bug: cute.Constexpr):
    """Red and black points in turns, with a barrier of the grid between."""
    t, b = arch.thread_idx()[0], arch.block_idx()[0]
    i = b * 64 + t
    for turn in cute.range_constexpr(2):
        colour = (t + b) % 2 if bug else t % 2
        if colour == turn and i > 0 and i < 127:
            x[i] = (x[i - 1] + x[i + 1]) * 0.5
        arch.sync_threads()
        if t == 0:
            arch.atomic_add(c.iterator + turn, 1, sem="acq_rel")
            wait_for(c.iterator + turn, 2)
        arch.sync_threads()


@cute.kernel
def rows_that_two_blocks_share(x: cute.Tensor, y: cute.Tensor, c: cute.Tensor, bug: cute.Constexpr):
    """A sum of each ten elements; blocks of 64 elements share rows at their borders."""
    t, b = arch.thread_idx()[0], arch.block_idx()[0]
    first = b * 64
    if t < 8:
        row = first // 10 + t
        total = cute.Float32(0)
        for j in range(cute.Int32(10)):
            at = row * 10 + j
            if at >= first and at < first + 64:
                total += x[at]
        if bug:
            y[row] = y[row] + total
        else:
            arch.atomic_add(y.iterator + row, total)


@cute.kernel
def flag_of_the_wrong_child(x: cute.Tensor, y: cute.Tensor, c: cute.Tensor, bug: cute.Constexpr):
    """A tree of four blocks: block 0 takes from 1 and 2, block 2 from 3."""
    b = arch.block_idx()[0]
    if arch.thread_idx()[0] == 0:
        total = x[b + 1]
        for step in cute.range_constexpr(2):
            stride = 1 << step
            if b % (2 * stride) == 0:
                wait_for(c.iterator + b + (1 if bug else stride), 1)
                total += y[b + stride]
        y[b] = total
        arch.store(c.iterator + b, 1, sem="release")


@cute.kernel
def dependencies_without_release(
    x: cute.Tensor, y: cute.Tensor, c: cute.Tensor, bug: cute.Constexpr
):
    """A task runs in the block that takes its last dependency away: task 8 needs 0, 1 and 2."""
    b = arch.block_idx()[0]
    if arch.thread_idx()[0] == 0:
        y[b] = x[b] * 2
        if arch.atomic_add(c.iterator + 8, 1, sem="acquire" if bug else "acq_rel") == 2:
            y[8] = y[0] + y[1] + y[2]


@cute.kernel
def butterfly_of_blocks(x: cute.Tensor, y: cute.Tensor, c: cute.Tensor, bug: cute.Constexpr):
    """Sums by recursive doubling: each round has a buffer of its own."""
    t, b = arch.thread_idx()[0], arch.block_idx()[0]
    total = x[b * 64 + t]
    for step in cute.range_constexpr(2):
        here = 0 if bug else step * 256
        y[here + b * 64 + t] = total
        arch.sync_threads()
        if t == 0:
            arch.store(c.iterator + step * 4 + b, 1, sem="release")
            wait_for(c.iterator + step * 4 + (b ^ (1 << step)), 1)
        arch.sync_threads()
        total += y[here + (b ^ (1 << step)) * 64 + t]
    x[b * 64 + t] = total


@cute.kernel
def wavefront(x: cute.Tensor, y: cute.Tensor, c: cute.Tensor, bug: cute.Constexpr):
    """Row b of a table takes from row b - 1 what that has finished: c[b] columns."""
    b = arch.block_idx()[0]
    if arch.thread_idx()[0] == 0:
        left = cute.Float32(0)
        for i in range(cute.Int32(6)):
            above = cute.Float32(1)
            if b > 0:
                wait_for(c.iterator + b - 1, i if bug else i + 1)
                above = y[(b - 1) * 8 + i]
            left = left + above
            y[b * 8 + i] = left
            arch.store(c.iterator + b, i + 1, sem="release")


@cute.kernel
def vector_takes_the_counter(x: cute.Tensor, y: cute.Tensor, c: cute.Tensor, bug: cute.Constexpr):
    """A header of four words is read at once; the fourth counts blocks."""
    if arch.thread_idx()[0] == 0:
        width = 4 if bug else 2
        head = cute.make_tensor(c.iterator.align(16), cute.make_layout(width)).load()
        arch.atomic_add(c.iterator + 3, 1)
        y[arch.block_idx()[0]] = head[0].to(cute.Float32)


@cute.kernel
def only_the_poller_knows(x: cute.Tensor, y: cute.Tensor, c: cute.Tensor, bug: cute.Constexpr):
    t, b = arch.thread_idx()[0], arch.block_idx()[0]
    if b == 0:
        y[t] = x[t]
        arch.sync_threads()
        if t == 0:
            arch.store(c.iterator, 1, sem="release")
    else:
        if t == 0:
            wait_for(c.iterator, 1)
        if bug:
            arch.sync_warp()
        else:
            arch.sync_threads()
        y[64 + t] = y[t]


@cute.kernel
def flag_before_the_store_is_complete(
    x: cute.Tensor, y: cute.Tensor, c: cute.Tensor, bug: cute.Constexpr
):
    t, b = arch.thread_idx()[0], arch.block_idx()[0]
    tile = cute.utils.SmemAllocator().allocate_tensor(cute.Float32, cute.make_layout((64,)), 128)
    if b == 0:
        tile[t] = x[t]
        arch.fence_view_async_shared()
        arch.sync_threads()
        if t == 0:
            bulk_store(y.iterator, tile.iterator, 256)
            arch.cp_async_bulk_commit_group()
            arch.cp_async_bulk_wait_group(0, read=bug)
            arch.store(c.iterator, 1, sem="release")
    else:
        if t == 0:
            wait_for(c.iterator, 1)
        arch.sync_threads()
        x[64 + t] = y[t]


@cute.kernel
def blocks_wait_in_a_circle(x: cute.Tensor, y: cute.Tensor, c: cute.Tensor, bug: cute.Constexpr):
    b = arch.block_idx()[0]
    if arch.thread_idx()[0] == 0:
        if bug or b > 0:
            wait_for(c.iterator + (b + 2) % 3, 1)
        y[b] = x[b]
        arch.store(c.iterator + b, 1, sem="release")


@cute.kernel
def two_permits_for_one_buffer(x: cute.Tensor, y: cute.Tensor, c: cute.Tensor, bug: cute.Constexpr):
    """A semaphore; c[0] counts permits in use, c[1 + i] says that buffer i is."""
    if arch.thread_idx()[0] == 0:
        while arch.atomic_add(c.iterator, 1, sem="acquire") >= 2:
            arch.atomic_add(c.iterator, -1)
        mine = cute.Int32(0)
        if not bug:
            if arch.atomic_exch(c.iterator + 1, 1, sem="acquire") != 0:
                mine = cute.Int32(1)
        y[mine] = y[mine] + 1
        if not bug and mine == 0:
            arch.store(c.iterator + 1, 0, sem="release")
        arch.atomic_add(c.iterator, -1, sem="release")


@cute.kernel
def generation_read_too_late(x: cute.Tensor, y: cute.Tensor, c: cute.Tensor, bug: cute.Constexpr):
    """A barrier of the grid: c[0] counts, c[1] is its generation."""
    b = arch.block_idx()[0]
    if arch.thread_idx()[0] == 0:
        before = arch.load(c.iterator + 1, sem="relaxed")
        if arch.atomic_add(c.iterator, 1, sem="acq_rel") == 1:
            arch.store(c.iterator, 0, sem="relaxed")
            arch.store(c.iterator + 1, before + 1, sem="release")
        else:
            if bug:
                before = arch.load(c.iterator + 1, sem="relaxed")
            while arch.load(c.iterator + 1, sem="acquire") == before:
                pass
        y[b] = x[b]


@cute.kernel
def reader_takes_no_lock(x: cute.Tensor, y: cute.Tensor, c: cute.Tensor, bug: cute.Constexpr):
    b = arch.block_idx()[0]
    if arch.thread_idx()[0] == 0:
        if not bug or b == 0:
            while arch.atomic_exch(c.iterator, 1, sem="acquire") != 0:
                pass
        if b == 0:
            y[0] = x[7]
        else:
            y[b] = y[0]
        if not bug or b == 0:
            arch.store(c.iterator, 0, sem="release")


@cute.kernel
def two_locks_for_one_place(x: cute.Tensor, y: cute.Tensor, c: cute.Tensor, bug: cute.Constexpr):
    b = arch.block_idx()[0]
    if arch.thread_idx()[0] == 0:
        key = c.iterator + (b % 2 if bug else 0)
        while arch.atomic_cas(key, 0, 1, sem="acquire") != 0:
            pass
        y[0] = y[0] + x[b]
        arch.atomic_exch(key, 0, sem="release")


@cute.kernel
def unlocked_by_another_thread(x: cute.Tensor, y: cute.Tensor, c: cute.Tensor, bug: cute.Constexpr):
    t = arch.thread_idx()[0]
    if t == 0:
        while arch.atomic_cas(c.iterator, 0, 1, sem="acquire") != 0:
            pass
    arch.sync_threads()
    if t < 32:
        y[t] = y[t] + x[t]
    if not bug:
        arch.sync_threads()
    if t == 63:
        arch.atomic_exch(c.iterator, 0, sem="release")


TWO, FOUR = {"grid": 2}, {"grid": 4}
CASES = [
    (key_before_the_value, RaceError, GLOBAL, FOUR),
    (parent_read_plainly, RaceError, GLOBAL, FOUR),
    (peterson, RaceError, GLOBAL, TWO),
    (colours_of_neighbours, RaceError, GLOBAL, {"grid": 2, "cooperative": True}),
    (rows_that_two_blocks_share, RaceError, GLOBAL, FOUR),
    (flag_of_the_wrong_child, RaceError, GLOBAL, FOUR),
    (dependencies_without_release, RaceError, GLOBAL, {"grid": 3}),
    (butterfly_of_blocks, RaceError, GLOBAL, FOUR | {"y": 512}),
    (wavefront, RaceError, GLOBAL, {"grid": 3, "schedules": 30}),
    (vector_takes_the_counter, RaceError, GLOBAL, FOUR),
    (only_the_poller_knows, RaceError, GLOBAL, TWO),
    (flag_before_the_store_is_complete, RaceError, GLOBAL, TWO),
    (blocks_wait_in_a_circle, DeadlockError, "turns|wait", {"grid": 3}),
    (two_permits_for_one_buffer, RaceError, GLOBAL, FOUR | {"schedules": 30}),
    (generation_read_too_late, DeadlockError, "turns|wait", TWO | {"schedules": 60}),
    (reader_takes_no_lock, RaceError, GLOBAL, {"grid": 3}),
    (two_locks_for_one_place, RaceError, GLOBAL, FOUR),
    (unlocked_by_another_thread, RaceError, GLOBAL, FOUR),
]
