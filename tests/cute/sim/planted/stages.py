"""Stages, queues and exchanges of blocks and clusters: with an order left out, or complete."""

from kernel_parts import barriers, cluster_sync, copy_async, shared

import basedsl_cute as cute
from basedsl_cute import arch
from basedsl_cute.arch.bulk import bulk_load
from basedsl_cute.nvgpu import warp
from basedsl_cute.sim import RaceError, SimulationError


@cute.kernel
def frontier_is_cleared_too_soon(
    x: cute.Tensor, y: cute.Tensor, c: cute.Tensor, bug: cute.Constexpr
):
    """Breadth-first levels of a tree: node n has the children 2 n + 1 and 2 n + 2."""
    t = arch.thread_idx()[0]
    queue, size = shared(128, cute.Int32), shared(2, cute.Int32)
    if t == 0:
        queue[0] = 0
        size[0] = 1
        size[1] = 0
    arch.sync_threads()
    for level in cute.range_constexpr(3):
        this, that = level % 2, 1 - level % 2
        if t < size[this]:
            node = queue[this * 64 + t]
            c[node] = level
            at = arch.atomic_add(size.iterator + that, 2, scope="cta")
            queue[that * 64 + at] = 2 * node + 1
            queue[that * 64 + at + 1] = 2 * node + 2
        if not bug:
            arch.sync_threads()
        if t == 0:
            size[this] = 0
        arch.sync_threads()


@cute.kernel
def copy_of_a_neighbours_word(x: cute.Tensor, y: cute.Tensor, c: cute.Tensor, bug: cute.Constexpr):
    """Threads write global memory and others of the block copy it to shared memory."""
    t = arch.thread_idx()[0]
    tile = shared(64)
    y[t] = x[t] + 1
    if not bug:
        arch.sync_threads()
    copy_async(y.iterator + 63 - t, tile.iterator + t)
    arch.cp_async_commit_group()
    arch.cp_async_wait_group(0)
    y[64 + t] = tile[t]


@cute.kernel
def barrier_of_the_other_slot(x: cute.Tensor, y: cute.Tensor, c: cute.Tensor, bug: cute.Constexpr):
    """Two slots, each with a named barrier of its own to say that it is full."""
    t = arch.thread_idx()[0]
    slots = shared(64)
    lane = t % 32
    if t < 32:
        for s in cute.range_constexpr(2):
            slots[s * 32 + lane] = x[s * 32 + lane]
            arch.barrier_arrive(1 + s, 64)
    else:
        for s in cute.range_constexpr(2):
            arch.barrier(barrier_id=1 + s, number_of_threads=64)
            y[s * 32 + lane] = slots[(1 - s if bug else s) * 32 + 31 - lane]


@cute.kernel
def down_sweep_without_a_barrier(
    x: cute.Tensor, y: cute.Tensor, c: cute.Tensor, bug: cute.Constexpr
):
    """An exclusive scan by up-sweep and down-sweep, as Blelloch has it."""
    t = arch.thread_idx()[0]
    tree = shared(128)
    tree[2 * t] = x[2 * t]
    tree[2 * t + 1] = x[2 * t + 1]
    for level in cute.range_constexpr(7):
        arch.sync_threads()
        if t < 64 >> level:
            right = ((2 * t + 2) << level) - 1
            tree[right] = tree[right] + tree[right - (1 << level)]
    arch.sync_threads()
    if t == 0:
        tree[127] = 0.0
    for down in cute.range_constexpr(7):
        level = 6 - down
        if not bug or down != 2:
            arch.sync_threads()
        if t < 64 >> level:
            right = ((2 * t + 2) << level) - 1
            left = tree[right - (1 << level)]
            tree[right - (1 << level)] = tree[right]
            tree[right] = tree[right] + left
    arch.sync_threads()
    y[t] = tree[2 * t + 1]


@cute.kernel
def digits_counted_plainly(x: cute.Tensor, y: cute.Tensor, c: cute.Tensor, bug: cute.Constexpr):
    """Each warp counts the digits of its keys in a table of its own."""
    t = arch.thread_idx()[0]
    table = shared(16, cute.Int32)
    if t % 32 < 8:
        table[t // 32 * 8 + t % 32] = 0
    arch.sync_warp()
    digit = x[t].to(cute.Int32) * 5 % 8
    if bug:
        table[t // 32 * 8 + digit] = table[t // 32 * 8 + digit] + 1
    else:
        arch.atomic_add(table.iterator + t // 32 * 8 + digit, 1, scope="cta")
    arch.sync_threads()
    if t < 8:
        c[t] = table[t] + table[8 + t]


@cute.kernel
def workspace_cut_too_small(x: cute.Tensor, y: cute.Tensor, c: cute.Tensor, bug: cute.Constexpr):
    """One allocation is cut by hand into 48 floats and the integers behind them."""
    t = arch.thread_idx()[0]
    room = shared(128)
    after = room.iterator + (32 if bug else 48)
    counts = cute.make_tensor(cute.recast_ptr(after, dtype=cute.Int32), cute.make_layout(32))
    if t < 48:
        room[t] = x[t]
    if t >= 32:
        counts[63 - t] = t
    arch.sync_threads()
    if t < 32:
        y[t] = room[t] + counts[t].to(cute.Float32)


@cute.kernel
def try_is_not_wait(x: cute.Tensor, y: cute.Tensor, c: cute.Tensor, bug: cute.Constexpr):
    t = arch.thread_idx()[0]
    tile = shared(64)
    bar = barriers(1)
    if t == 0:
        arch.mbarrier_arrive_and_expect_tx(bar, 256)
        bulk_load(tile.iterator, x.iterator, 256, bar)
    there = arch.mbarrier_try_wait(bar, 0)
    if not bug:
        if not there:
            arch.mbarrier_wait(bar, 0)
    y[t] = tile[63 - t]


@cute.kernel
def parity_of_the_turn(x: cute.Tensor, y: cute.Tensor, c: cute.Tensor, bug: cute.Constexpr):
    """Three stages: the parity turns each third turn, not each."""
    t = arch.thread_idx()[0]
    ring = shared(192)
    bar = barriers(1, 1, 1)
    total = cute.Float32(0)
    for i in range(cute.Int32(5)):
        s = i % 3
        if t == 0:
            arch.mbarrier_arrive_and_expect_tx(bar + s, 256)
            bulk_load(ring.iterator + s * 64, x.iterator + i % 4 * 64, 256, bar + s)
        arch.mbarrier_wait(bar + s, i % 2 if bug else i // 3 % 2)
        total += ring[s * 64 + 63 - t]
        arch.sync_threads()
    y[t] = total


@cute.kernel
def freed_by_one_of_two_warps(x: cute.Tensor, y: cute.Tensor, c: cute.Tensor, bug: cute.Constexpr):
    """One warp fills a slot, two read it: both must say that it is free."""
    t = arch.thread_idx()[0]
    slot = shared(32)
    bar = barriers(32, 1 if bug else 2)
    total = cute.Float32(0)
    for i in range(cute.Int32(3)):
        if t < 32:
            arch.mbarrier_wait(bar + 1, (i + 1) % 2)
            slot[t] = x[i * 32 + t]
            arch.mbarrier_arrive(bar)
        else:
            arch.mbarrier_wait(bar, i % 2)
            total += slot[31 - t % 32]
            arch.sync_warp()
            if t % 32 == 0 and (not bug or t == 32):
                arch.mbarrier_arrive(bar + 1)
    if t >= 32:
        y[t] = total


@cute.kernel
def results_over_the_operand(x: cute.Tensor, y: cute.Tensor, c: cute.Tensor, bug: cute.Constexpr):
    """Warps load the same tile by ldmatrix; each then puts its result where the tile was."""
    t = arch.thread_idx()[0]
    tile = cute.utils.SmemAllocator().allocate_tensor(
        cute.Float16, cute.make_layout((16, 8), stride=(8, 1)), 128
    )
    for i in cute.range_constexpr(2):
        tile[t // 8 + i * 8, t % 8] = x[t].to(cute.Float16)
    arch.sync_threads()
    two = cute.make_copy_atom(warp.LdMatrix8x8x16bOp(num_matrices=2), cute.Float16)
    mine = cute.make_rmem_tensor(cute.make_layout((4, 1)), cute.Float16)
    rows = cute.make_tensor(tile.iterator + t % 16 * 8, cute.make_layout((8, 1)))
    cute.copy(two, rows, mine)
    if not bug:
        arch.sync_threads()
    tile[t // 8, t % 8] = mine[0] + mine[3]
    arch.sync_threads()
    y[t] = tile[7 - t // 8, t % 8].to(cute.Float32)


@cute.kernel
def total_reset_while_peers_add(
    x: cute.Tensor, y: cute.Tensor, c: cute.Tensor, bug: cute.Constexpr
):
    """Ranks add to a total of rank 0, which takes it and begins the next turn at zero."""
    t, rank = arch.thread_idx()[0], arch.block_idx_in_cluster()
    total = shared(1, cute.Int32)
    if t == 0:
        total[0] = 0
    cluster_sync()
    for i in range(cute.Int32(2)):
        if t == 0:
            arch.atomic_add(arch.map_dsmem_ptr(total.iterator, 0), rank + 1, scope="cluster")
        cluster_sync()
        if rank == 0 and t == 0:
            c[i] = total[0]
            total[0] = 0
        if not bug:
            cluster_sync()
    cluster_sync()


@cute.kernel
def told_before_the_push(x: cute.Tensor, y: cute.Tensor, c: cute.Tensor, bug: cute.Constexpr):
    t, rank = arch.thread_idx()[0], arch.block_idx_in_cluster()
    tile = shared(64)
    bar = barriers(64)
    cluster_sync()
    theirs = cute.make_tensor(arch.map_dsmem_ptr(tile.iterator, rank ^ 1), tile.layout)
    if bug:
        arch.mbarrier_arrive(bar, rank ^ 1)
    theirs[t] = x[t] + rank
    if not bug:
        arch.mbarrier_arrive(bar, rank ^ 1)
    arch.mbarrier_wait(bar, 0)
    y[rank * 64 + t] = tile[63 - t]
    cluster_sync()


@cute.kernel
def dependent_writes_before_the_wait(
    x: cute.Tensor, y: cute.Tensor, c: cute.Tensor, bug: cute.Constexpr
):
    t = arch.thread_idx()[0]
    if bug:
        x[64 + t] = 0.0
    arch.griddepcontrol_wait()
    y[t] = x[64 + t] + x[t]
    arch.sync_threads()
    x[64 + t] = 0.0


@cute.kernel
def sum_of_halves(x: cute.Tensor, y: cute.Tensor):
    t = arch.thread_idx()[0]
    arch.griddepcontrol_wait()
    y[t] = x[t] + x[64 + t]


@cute.kernel
def clear(x: cute.Tensor, bug: cute.Constexpr):
    t = arch.thread_idx()[0]
    if not bug:
        arch.griddepcontrol_wait()
    x[t] = 0.0
    if bug:
        arch.griddepcontrol_wait()


@cute.jit
def dependent_overwrites_what_is_read(
    x: cute.Tensor, y: cute.Tensor, c: cute.Tensor, bug: cute.Constexpr
):
    sum_of_halves(x, y).launch(grid=1, block=64)
    clear(x, bug).launch(grid=1, block=64, use_pdl=True)


SHARED, GLOBAL = "race on shared memory", "race on global memory"
NOT_YET = "that no thread has written|deadlock|race on shared memory"
PEERS = {"grid": 2, "cluster": (2, 1, 1)}
CASES = [
    (frontier_is_cleared_too_soon, RaceError, SHARED),
    (copy_of_a_neighbours_word, RaceError, GLOBAL),
    (barrier_of_the_other_slot, SimulationError, NOT_YET),
    (down_sweep_without_a_barrier, RaceError, SHARED),
    (digits_counted_plainly, RaceError, SHARED),
    (workspace_cut_too_small, RaceError, SHARED),
    (try_is_not_wait, SimulationError, NOT_YET),
    (parity_of_the_turn, SimulationError, NOT_YET),
    (freed_by_one_of_two_warps, RaceError, SHARED, {"block": 96}),
    (results_over_the_operand, RaceError, SHARED),
    (total_reset_while_peers_add, RaceError, SHARED, PEERS),
    (told_before_the_push, SimulationError, NOT_YET, PEERS),
    (dependent_writes_before_the_wait, RaceError, "before", {"use_pdl": True, "launches": 2}),
    (dependent_overwrites_what_is_read, RaceError, "while it may be read", {"whole": True}),
]
