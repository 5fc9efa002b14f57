"""Correct algorithms whose blocks talk to each other through global memory."""

import numpy as np

import basedsl_cute as cute
from basedsl_cute import arch

X = np.arange(512, dtype=np.float32)


@cute.jit
def wait_for(flag, value):
    while arch.load(flag, sem="acquire") < value:
        pass


@cute.jit
def wide(c: cute.Tensor, count: cute.Constexpr):
    """The array of flags as words of 64 bits."""
    words = cute.recast_ptr(c.iterator, dtype=cute.Int64)
    return cute.make_tensor(words, cute.make_layout(count))


@cute.kernel
def lock_of_a_list(x: cute.Tensor, y: cute.Tensor, c: cute.Tensor):
    """CLH: c[0] is the tail; a block waits for the flag of the one in front, c[1 + b]."""
    b = arch.block_idx()[0]
    if arch.thread_idx()[0] == 0:
        arch.store(c.iterator + 2 + b, 1, sem="relaxed")
        before = arch.atomic_exch(c.iterator, b + 1, sem="acq_rel")
        if before != 0:
            while arch.load(c.iterator + 1 + before, sem="acquire") == 1:
                pass
        y[0] = y[0] + x[b]
        arch.store(c.iterator + 2 + b, 0, sem="release")


@cute.kernel
def lock_of_an_array(x: cute.Tensor, y: cute.Tensor, c: cute.Tensor):
    """Anderson: a ticket names the flag to wait for; who leaves raises the next one."""
    if arch.thread_idx()[0] == 0:
        mine = arch.atomic_add(c.iterator, 1)
        if mine > 0:
            wait_for(c.iterator + 8 + mine % 4, mine // 4 + 1)
        y[0] = y[0] + 1
        after = mine + 1
        arch.atomic_max(c.iterator + 8 + after % 4, after // 4 + 1, sem="release")


@cute.kernel
def buffers_by_bits(x: cute.Tensor, y: cute.Tensor, c: cute.Tensor):
    """Three buffers; a block takes the one whose bit it sets first."""
    b = arch.block_idx()[0]
    if arch.thread_idx()[0] == 0:
        mine = cute.Int32(-1)
        i = b % 3
        while mine < 0:
            bit = 1 << i
            if (arch.atomic_or(c.iterator, bit, sem="acquire") & bit) == 0:
                mine = i
            i = (i + 1) % 3
        y[mine] = y[mine] + 1
        arch.atomic_and(c.iterator, -1 - (1 << mine), sem="release")


@cute.kernel
def dissemination(x: cute.Tensor, y: cute.Tensor, c: cute.Tensor):
    """A barrier of four blocks in two rounds: each tells the one 1, then 2, further on."""
    t, b = arch.thread_idx()[0], arch.block_idx()[0]
    y[b * 64 + t] = x[b * 64 + t]
    arch.sync_threads()
    if t == 0:
        for r in cute.range_constexpr(2):
            arch.store(c.iterator + r * 4 + (b + (1 << r)) % 4, 1, sem="release")
            wait_for(c.iterator + r * 4 + b, 1)
    arch.sync_threads()
    x[b * 64 + t] = y[(b + 3) % 4 * 64 + t] + y[(b + 2) % 4 * 64 + t]


@cute.kernel
def combining_tree(x: cute.Tensor, y: cute.Tensor, c: cute.Tensor):
    """Pairs count at c[1] and c[2]; the later of each at c[0]; the last releases all by c[3]."""
    t, b = arch.thread_idx()[0], arch.block_idx()[0]
    y[b * 64 + t] = x[b * 64 + t]
    arch.sync_threads()
    if t == 0:
        if arch.atomic_add(c.iterator + 1 + b // 2, 1, sem="acq_rel") == 1:
            if arch.atomic_add(c.iterator, 1, sem="acq_rel") == 1:
                arch.store(c.iterator + 3, 1, sem="release")
        wait_for(c.iterator + 3, 1)
    arch.sync_threads()
    x[b * 64 + t] = y[(3 - b) * 64 + t]


@cute.kernel
def count_that_only_grows(x: cute.Tensor, y: cute.Tensor, c: cute.Tensor):
    """Barriers of the grid without a reset: the n-th waits for n times the blocks."""
    t, b = arch.thread_idx()[0], arch.block_idx()[0]
    for i in range(cute.Int32(3)):
        y[i % 2 * 192 + b * 64 + t] = x[b * 64 + t] + i
        arch.sync_threads()
        if t == 0:
            arch.atomic_add(c.iterator, 1, sem="release")
            wait_for(c.iterator, 3 * (i + 1))
        arch.sync_threads()
        x[b * 64 + t] = y[i % 2 * 192 + (b + 1) % 3 * 64 + t]


@cute.kernel
def lanes_gather_arrivals(x: cute.Tensor, y: cute.Tensor, c: cute.Tensor):
    """Lane i of block 0 waits for block i, and tells it to go on when all are there."""
    t, b = arch.thread_idx()[0], arch.block_idx()[0]
    y[b * 32 + t] = x[b * 32 + t]
    arch.sync_warp()
    if t == 0:
        arch.store(c.iterator + b, 1, sem="release")
    if b == 0:
        if t < 4:
            wait_for(c.iterator + t, 1)
        arch.sync_warp()
        if t < 4:
            arch.store(c.iterator + 8 + t, 1, sem="release")
    if t == 0:
        wait_for(c.iterator + 8 + b, 1)
    arch.sync_warp()
    x[b * 32 + t] = y[(3 - b) * 32 + t]


@cute.kernel
def summed_and_told(x: cute.Tensor, y: cute.Tensor, c: cute.Tensor):
    """Blocks add to a total by atomics; who comes last tells all, who then divide by it."""
    t, b = arch.thread_idx()[0], arch.block_idx()[0]
    part = arch.warp_reduction_sum(x[b * 32 + t] + 1)
    total = cute.Float32(0)
    if t == 0:
        arch.atomic_add(y.iterator + 256, part)
        if arch.atomic_add(c.iterator, 1, sem="acq_rel") == 3:
            y[257] = arch.load(y.iterator + 256, sem="relaxed")
            arch.store(c.iterator + 1, 1, sem="release")
        wait_for(c.iterator + 1, 1)
        total = y[257]
    total = arch.shuffle_sync(total, 0)
    y[b * 32 + t] = (x[b * 32 + t] + 1) / total


@cute.kernel
def value_beside_its_flag(x: cute.Tensor, y: cute.Tensor, c: cute.Tensor):
    """A value and its flag are one word of 64 bits, so that relaxed accesses do."""
    t, b = arch.thread_idx()[0], arch.block_idx()[0]
    words = wide(c, 32).iterator
    if t < 8:
        if b == 0:
            value = x[t].to(cute.Int32).to(cute.Int64)
            arch.store(words + t, value + (cute.Int64(1) << 32), sem="relaxed")
        else:
            word = cute.Int64(0)
            while (word >> 32) == 0:
                word = arch.load(words + t, sem="relaxed")
            y[t] = word.to(cute.Int32).to(cute.Float32)


@cute.kernel
def told_in_batches(x: cute.Tensor, y: cute.Tensor, c: cute.Tensor):
    """A queue of four slots whose head and tail are told each second turn."""
    if arch.thread_idx()[0] == 0:
        if arch.block_idx()[0] == 0:
            for i in range(cute.Int32(8)):
                if i % 2 == 0:
                    wait_for(c.iterator + 1, i - 2)
                y[i % 4] = x[i]
                if i % 2 == 1:
                    arch.store(c.iterator, i + 1, sem="release")
        else:
            total = cute.Float32(0)
            for i in range(cute.Int32(8)):
                if i % 2 == 0:
                    wait_for(c.iterator, i + 2)
                total = total * 2 + y[i % 4]
                if i % 2 == 1:
                    arch.store(c.iterator + 1, i + 1, sem="release")
            y[8] = total


@cute.kernel
def popped_one_by_one(x: cute.Tensor, y: cute.Tensor, c: cute.Tensor):
    """A stack: three blocks push, and pop when all have: top at c[0], links from c[1]."""
    b = arch.block_idx()[0]
    if arch.thread_idx()[0] == 0:
        y[b] = x[b] + 1
        top = arch.load(c.iterator, sem="relaxed")
        seen = top - 1
        while seen != top:
            c[1 + b] = top
            seen = arch.atomic_cas(c.iterator, top, b + 1, sem="acq_rel")
            if seen != top:
                top = seen
                seen = top - 1
        arch.atomic_add(c.iterator + 16, 1, sem="release")
        wait_for(c.iterator + 16, 3)
        top = arch.load(c.iterator, sem="acquire")
        seen = top - 1
        while seen != top:
            seen = arch.atomic_cas(c.iterator, top, c[top], sem="acq_rel")
            if seen != top:
                top = seen
                seen = top - 1
        y[8 + b] = y[top - 1] * 10


@cute.kernel
def set_of_keys(x: cute.Tensor, y: cute.Tensor, c: cute.Tensor):
    """Threads put keys into a table by compare-and-swap, and count those that were new."""
    t, b = arch.thread_idx()[0], arch.block_idx()[0]
    key = (b * 32 + t) % 12 + 1
    slot = key * 7 % 32
    done = cute.Boolean(False)
    while not done:
        found = arch.atomic_cas(c.iterator + slot, 0, key)
        if found == 0:
            arch.atomic_add(c.iterator + 40, 1)
        done = found == 0 or found == key
        slot = (slot + 1) % 32


@cute.kernel
def levels_of_a_tree(x: cute.Tensor, y: cute.Tensor, c: cute.Tensor):
    """Breadth first over blocks: a queue for each level, a barrier of the grid after each."""
    t, b = arch.thread_idx()[0], arch.block_idx()[0]
    if b == 0 and t == 0:
        y[0] = 0.0
        arch.store(c.iterator + 8, 1, sem="relaxed")
    for level in cute.range_constexpr(4):
        arch.sync_threads()
        if t == 0:
            arch.atomic_add(c.iterator + level, 1, sem="acq_rel")
            wait_for(c.iterator + level, 2)
        arch.sync_threads()
        i = b * 32 + t
        if i < arch.load(c.iterator + 8 + level, sem="relaxed"):
            node = y[level * 64 + i]
            x[node.to(cute.Int32)] = 100.0 + level
            if level < 3:
                at = arch.atomic_add(c.iterator + 9 + level, 2)
                y[level * 64 + 64 + at] = 2 * node + 1
                y[level * 64 + 64 + at + 1] = 2 * node + 2


@cute.kernel
def many_sequence_writers(x: cute.Tensor, y: cute.Tensor, c: cute.Tensor):
    """A sequence lock whose writers get it by compare-and-swap from an even number."""
    b = arch.block_idx()[0]
    if arch.thread_idx()[0] == 0:
        if b < 3:
            done = cute.Boolean(False)
            while not done:
                now = arch.load(c.iterator, sem="relaxed")
                if now % 2 == 0:
                    if arch.atomic_cas(c.iterator, now, now + 1, sem="acquire") == now:
                        arch.fence_acq_rel_gpu()
                        arch.store(y.iterator, x[b], sem="relaxed")
                        arch.store(y.iterator + 1, x[b], sem="relaxed")
                        arch.store(c.iterator, now + 2, sem="release")
                        done = cute.Boolean(True)
        else:
            before, after = cute.Int32(1), cute.Int32(0)
            gap = cute.Float32(1)
            while before % 2 == 1 or before != after:
                before = arch.load(c.iterator, sem="acquire")
                one = arch.load(y.iterator, sem="relaxed")
                gap = one - arch.load(y.iterator + 1, sem="relaxed")
                arch.fence_acq_rel_gpu()
                after = arch.load(c.iterator, sem="relaxed")
            y[2] = gap + 7


@cute.kernel
def old_version_is_kept(x: cute.Tensor, y: cute.Tensor, c: cute.Tensor):
    """Two versions: the writer reuses one when the readers counted at it have gone."""
    b = arch.block_idx()[0]
    if arch.thread_idx()[0] == 0:
        if b == 0:
            for i in range(cute.Int32(4)):
                that = (i + 1) % 2
                while arch.load(c.iterator + 1 + that, sem="acquire") != 0:
                    pass
                # nobody can come here any more: readers look again after they have counted
                y[that] = x[i + 1]
                arch.store(c.iterator, that, sem="release")
                arch.atomic_add(c.iterator + 8, 1, sem="release")
                wait_for(c.iterator + 9, i + 1)
        else:
            for i in range(cute.Int32(4)):
                wait_for(c.iterator + 8, i + 1)
                this = arch.load(c.iterator, sem="acquire")
                arch.atomic_add(c.iterator + 1 + this, 1, sem="acquire")
                y[8 + i] = y[this]
                arch.atomic_add(c.iterator + 1 + this, -1, sem="release")
                arch.atomic_add(c.iterator + 9, 1, sem="release")


@cute.kernel
def ranges_in_one_word(x: cute.Tensor, y: cute.Tensor, c: cute.Tensor):
    """Work is taken from both ends of a range: begin and end share 64 bits."""
    b = arch.block_idx()[0]
    word = wide(c, 32).iterator
    if arch.thread_idx()[0] == 0:
        left = cute.Boolean(True)
        begin, end = cute.Int64(0), cute.Int64(16)
        seen = cute.Int64(0)
        while left:
            now = seen
            begin = now & 0xFFFFFFFF
            end = 16 - (now >> 32)
            if begin >= end:
                left = cute.Boolean(False)
            else:
                step = cute.Int64(1)
                task = begin
                if b % 2 == 1:
                    step = cute.Int64(1) << 32
                    task = end - 1
                seen = arch.atomic_cas(word, now, now + step)
                if seen == now:
                    seen = now + step
                    y[task] = y[task] + 1


@cute.kernel
def rows_in_a_pipeline(x: cute.Tensor, y: cute.Tensor, c: cute.Tensor):
    """Block b adds its row to each tile after block b - 1 did: all lanes poll one flag."""
    t, b = arch.thread_idx()[0], arch.block_idx()[0]
    for i in range(cute.Int32(4)):
        if b > 0:
            wait_for(c.iterator + b - 1, i + 1)
        y[i * 32 + t] = y[i * 32 + t] + x[b * 32 + t]
        arch.sync_warp()
        if t == 0:
            arch.store(c.iterator + b, i + 1, sem="release")


@cute.kernel
def refit_of_a_tree(x: cute.Tensor, y: cute.Tensor, c: cute.Tensor):
    """From each leaf upwards; at a node the first that comes stops, the second goes on."""
    b = arch.block_idx()[0]
    if arch.thread_idx()[0] == 0:
        node = 8 + b
        y[node] = x[b]
        climbing = cute.Boolean(True)
        while climbing:
            node = node // 2
            if node == 0:
                climbing = cute.Boolean(False)
            elif arch.atomic_add(c.iterator + node, 1, sem="acq_rel") == 0:
                climbing = cute.Boolean(False)
            else:
                y[node] = y[2 * node] + y[2 * node + 1]


@cute.kernel
def maximum_by_compare_and_swap(x: cute.Tensor, y: cute.Tensor, c: cute.Tensor):
    i = arch.block_idx()[0] * 64 + arch.thread_idx()[0]
    mine = (x[i].to(cute.Int32) * 37) % 101
    now = arch.load(c.iterator, sem="relaxed")
    while now < mine:
        seen = arch.atomic_cas(c.iterator, now, mine)
        now = mine if seen == now else seen


@cute.kernel
def claimed_by_a_bit(x: cute.Tensor, y: cute.Tensor, c: cute.Tensor):
    """Many threads want an element; the one that sets its bit writes it."""
    t, b = arch.thread_idx()[0], arch.block_idx()[0]
    at = (t * 7 + b) % 40
    bit = cute.Int32(1) << (at % 32)
    if (arch.atomic_or(c.iterator + at // 32, bit) & bit) == 0:
        y[at] = x[at] + 1


@cute.kernel
def flag_of_each_lane(x: cute.Tensor, y: cute.Tensor, c: cute.Tensor):
    t, b = arch.thread_idx()[0], arch.block_idx()[0]
    if b == 0:
        y[t] = x[t]
        arch.store(c.iterator + t, 1, sem="release")
    else:
        wait_for(c.iterator + 31 - t, 1)
        y[32 + t] = y[31 - t]


@cute.kernel
def other_work_while_locked(x: cute.Tensor, y: cute.Tensor, c: cute.Tensor):
    """Who does not get the lock does something else, and comes back."""
    b = arch.block_idx()[0]
    if arch.thread_idx()[0] == 0:
        waiting = cute.Boolean(True)
        own = cute.Float32(0)
        while waiting:
            if arch.atomic_cas(c.iterator, 0, 1, sem="acquire") == 0:
                y[0] = y[0] + 1
                arch.store(c.iterator, 0, sem="release")
                waiting = cute.Boolean(False)
            else:
                own += 1
        y[8 + b] = own


@cute.kernel
def computed_when_not_there(x: cute.Tensor, y: cute.Tensor, c: cute.Tensor):
    """A value that another block has not published is computed once more."""
    t, b = arch.thread_idx()[0], arch.block_idx()[0]
    there = cute.Int32(0)
    if b > 0:
        there = arch.load(c.iterator + b - 1, sem="acquire")
    before = x[(b - 1 if b > 0 else 0) * 32 + t] * 3
    if there != 0:
        before = y[(b - 1) * 32 + t]
    y[b * 32 + t] = x[b * 32 + t] * 3
    x[256 + b * 32 + t] = before
    arch.sync_warp()
    if t == 0:
        arch.store(c.iterator + b, 1, sem="release")


@cute.kernel
def last_reader_clears(x: cute.Tensor, y: cute.Tensor, c: cute.Tensor):
    """A buffer with two readers: the last of them gives it back to the writer."""
    b = arch.block_idx()[0]
    if arch.thread_idx()[0] == 0:
        for i in range(cute.Int32(3)):
            if b == 0:
                while arch.load(c.iterator + 1, sem="acquire") != 0:
                    pass
                y[0] = x[i + 1]
                arch.store(c.iterator + 1, 2, sem="relaxed")
                arch.store(c.iterator, i + 1, sem="release")
            else:
                wait_for(c.iterator, i + 1)
                y[8 * b + i] = y[0]
                arch.atomic_add(c.iterator + 1, -1, sem="acq_rel")


@cute.kernel
def parts_are_fixed_up(x: cute.Tensor, y: cute.Tensor, c: cute.Tensor):
    """Stream-K: blocks that began a tile late leave parts to its owner, who adds them in order."""
    t, b = arch.thread_idx()[0], arch.block_idx()[0]
    if b % 3 == 0:
        total = x[b * 32 + t]
        for i in cute.range_constexpr(2):
            if t == 0:
                wait_for(c.iterator + b + i + 1, 1)
            arch.sync_warp()
            total += y[(b + i + 1) * 32 + t]
        y[b * 32 + t] = total
    else:
        y[b * 32 + t] = x[b * 32 + t]
        arch.sync_warp()
        if t == 31:
            arch.atomic_exch(c.iterator + b, 1, sem="release")


@cute.kernel
def odd_and_even_words(x: cute.Tensor, y: cute.Tensor, c: cute.Tensor):
    t, b = arch.thread_idx()[0], arch.block_idx()[0]
    for i in range(cute.Int32(2)):
        y[2 * (i * 64 + t) + b] = y[2 * (i * 64 + t) + b] + x[t] + b


@cute.kernel
def read_by_adding_nothing(x: cute.Tensor, y: cute.Tensor, c: cute.Tensor):
    """An atomic that changes nothing is an acquire load; one that clears a bit, a release."""
    b = arch.block_idx()[0]
    if arch.thread_idx()[0] == 0:
        if b == 0:
            arch.atomic_or(c.iterator, 2)
            y[0] = x[3]
            arch.atomic_xor(c.iterator, 3, sem="release")
        else:
            while arch.atomic_add(c.iterator, 0, sem="acquire") != 1:
                pass
            y[b] = y[0]


FOUR = {"grid": 4}
LANES = {"grid": 4, "block": 32}
CASES = [
    (lock_of_a_list, FOUR, lambda x, y, c: y[0] == 6),
    (lock_of_an_array, {"grid": 6}, lambda x, y, c: y[0] == 6),
    (buffers_by_bits, {"grid": 7}, lambda x, y, c: y[:3].sum() == 7 and c[0] == 0),
    (
        dissemination,
        FOUR | {"cooperative": True},
        lambda x, y, c: (x[:64] == X[192:256] + X[128:192]).all(),
    ),
    (
        combining_tree,
        FOUR | {"cooperative": True},
        lambda x, y, c: (x[:256].reshape(4, 64) == X[:256].reshape(4, 64)[::-1]).all(),
    ),
    (
        count_that_only_grows,
        {"grid": 3, "cooperative": True},
        lambda x, y, c: (x[:192] == X[:192] + 3).all(),
    ),
    (
        lanes_gather_arrivals,
        LANES | {"cooperative": True},
        lambda x, y, c: (x[:128].reshape(4, 32) == X[:128].reshape(4, 32)[::-1]).all(),
    ),
    (summed_and_told, LANES, lambda x, y, c: np.allclose(y[:128], (X[:128] + 1) / 8256)),
    (value_beside_its_flag, {"grid": 2}, lambda x, y, c: (y[:8] == X[:8]).all()),
    (told_in_batches, {"grid": 2}, lambda x, y, c: y[8] == 247),
    (popped_one_by_one, {"grid": 3}, lambda x, y, c: sorted(y[8:11]) == [10, 20, 30]),
    (set_of_keys, LANES, lambda x, y, c: c[40] == 12),
    (
        levels_of_a_tree,
        {"grid": 2, "block": 32, "cooperative": True},
        lambda x, y, c: x[:15].tolist() == [100, 101, 101] + [102] * 4 + [103] * 8,
    ),
    (many_sequence_writers, FOUR, lambda x, y, c: y[2] == 7 and c[0] == 6),
    (old_version_is_kept, {"grid": 2}, lambda x, y, c: y[8:12].tolist() == [1, 2, 3, 4]),
    (ranges_in_one_word, FOUR, lambda x, y, c: (y[:16] == 1).all()),
    (
        rows_in_a_pipeline,
        LANES,
        lambda x, y, c: (y[:128].reshape(4, 32) == X[:128].reshape(4, 32).sum(0)).all(),
    ),
    (refit_of_a_tree, {"grid": 8}, lambda x, y, c: y[1] == 28 and y[2] == 6),
    (maximum_by_compare_and_swap, {"grid": 2}, lambda x, y, c: c[0] == 100),
    (claimed_by_a_bit, {"grid": 3}, lambda x, y, c: (y[:40] == X[:40] + 1).all()),
    (flag_of_each_lane, {"grid": 2, "block": 32}, lambda x, y, c: (y[32:64] == X[31::-1]).all()),
    (other_work_while_locked, FOUR, lambda x, y, c: y[0] == 4),
    (
        computed_when_not_there,
        LANES,
        lambda x, y, c: (x[288:384] == X[:96] * 3).all(),
    ),
    (last_reader_clears, {"grid": 3}, lambda x, y, c: y[16:19].tolist() == [1, 2, 3]),
    (
        parts_are_fixed_up,
        {"grid": 6, "block": 32},
        lambda x, y, c: (y[:32] == X[:96].reshape(3, 32).sum(0)).all(),
    ),
    (
        odd_and_even_words,
        {"grid": 2},
        lambda x, y, c: (y[1:128:2] == X[:64] + 1).all(),
    ),
    (read_by_adding_nothing, {"grid": 3}, lambda x, y, c: y[1] == y[2] == 3),
]
