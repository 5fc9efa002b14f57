"""Correct exchanges between the lanes and warps of a block, and the blocks of a cluster."""

import numpy as np
from kernel_parts import barriers, cluster_sync, copy_async, of_rank, shared

import basedsl_cute as cute
from basedsl_cute import arch
from basedsl_cute.arch.bulk import bulk_load

X = np.arange(512, dtype=np.float32)


@cute.kernel
def butterfly_of_warps(x: cute.Tensor, y: cute.Tensor, c: cute.Tensor):
    """Four warps add in two rounds; each pair of a round has a named barrier of its own."""
    t = arch.thread_idx()[0]
    rounds = shared(256)
    group, lane = t // 32, t % 32
    total = x[t]
    for r in cute.range_constexpr(2):
        rounds[r * 128 + t] = total
        pair = group // 2 if r == 0 else group % 2
        arch.barrier(barrier_id=1 + 2 * r + pair, number_of_threads=64)
        total += rounds[r * 128 + (group ^ (1 << r)) * 32 + lane]
    y[t] = total


@cute.kernel
def three_warps_in_line(x: cute.Tensor, y: cute.Tensor, c: cute.Tensor):
    """Warp to warp, with a barrier that says full and one that says empty at each border."""
    t = arch.thread_idx()[0]
    group, lane = t // 32, t % 32
    first, second = shared(32), shared(32)
    for i in range(cute.Int32(3)):
        if group == 0:
            if i > 0:
                arch.barrier(barrier_id=2, number_of_threads=64)
            first[lane] = x[i * 32 + lane]
            arch.barrier_arrive(1, 64)
        elif group == 1:
            arch.barrier(barrier_id=1, number_of_threads=64)
            value = first[31 - lane] * 2
            if i < 2:
                arch.barrier_arrive(2, 64)
            if i > 0:
                arch.barrier(barrier_id=4, number_of_threads=64)
            second[lane] = value
            arch.barrier_arrive(3, 64)
        else:
            arch.barrier(barrier_id=3, number_of_threads=64)
            y[i * 32 + lane] = second[31 - lane] + 1
            if i < 2:
                arch.barrier_arrive(4, 64)


@cute.kernel
def first_of_each_key(x: cute.Tensor, y: cute.Tensor, c: cute.Tensor):
    """The thread that wins a slot of shared memory owns it until the next barrier."""
    t = arch.thread_idx()[0]
    owners, values = shared(8, cute.Int32), shared(8)
    if t < 8:
        owners[t] = -1
    arch.sync_threads()
    key = t * 3 % 8
    if arch.atomic_cas(owners.iterator + key, -1, t, scope="cta") == -1:
        values[key] = x[key]
    arch.sync_threads()
    y[t] = values[key]


@cute.kernel
def tickets_of_warps(x: cute.Tensor, y: cute.Tensor, c: cute.Tensor):
    """Warps pass tiles by tickets in shared memory: a turn of each slot says whose it is."""
    t = arch.thread_idx()[0]
    group, lane = t // 32, t % 32
    slots, turns, tickets = shared(64), shared(2, cute.Int32), shared(2, cute.Int32)
    if t < 2:
        turns[t] = 0
        tickets[t] = 0
    arch.sync_threads()
    mine = cute.Int32(0)
    if lane == 0:
        mine = arch.atomic_add(tickets.iterator + group // 2, 1, scope="cta")
    mine = arch.shuffle_sync(mine, 0)
    want = mine // 2 * 2 + group // 2
    slot = mine % 2
    if lane == 0:
        while arch.load(turns.iterator + slot, sem="acquire", scope="cta") != want:
            pass
    arch.sync_warp()
    if group < 2:
        slots[slot * 32 + lane] = x[mine * 32 + lane]
    else:
        y[mine * 32 + lane] = slots[slot * 32 + 31 - lane]
    arch.sync_warp()
    if lane == 0:
        arch.store(turns.iterator + slot, want + 1, sem="release", scope="cta")


@cute.kernel
def barrier_at_two_lines(x: cute.Tensor, y: cute.Tensor, c: cute.Tensor):
    """Warps meet at one barrier from two branches."""
    t = arch.thread_idx()[0]
    tile = shared(64)
    if t < 32:
        tile[t] = x[t] * 2
        arch.barrier(barrier_id=1, number_of_threads=64)
        y[t] = tile[63 - t]
    else:
        tile[t] = x[t] * 3
        arch.barrier(barrier_id=1, number_of_threads=64)
        y[t] = tile[63 - t] + 1


@cute.kernel
def waits_for_a_phase_long_past(x: cute.Tensor, y: cute.Tensor, c: cute.Tensor):
    """A phase that is complete stays so until the next one is."""
    t = arch.thread_idx()[0]
    tile = shared(32)
    bar = barriers(32)
    if t < 32:
        tile[t] = x[t]
        arch.mbarrier_arrive(bar)
    arch.mbarrier_wait(bar, 0)
    if t >= 32:
        first = tile[t - 32]
        arch.mbarrier_wait(bar, 0)
        y[t - 32] = first + tile[63 - t]
        arch.mbarrier_wait(bar, 0)


@cute.kernel
def three_stages_two_readers(x: cute.Tensor, y: cute.Tensor, c: cute.Tensor):
    """One warp loads in bulk; each of two warps frees a stage by one arrival."""
    t = arch.thread_idx()[0]
    ring = shared(192)
    bar = barriers(1, 1, 1, 2, 2, 2)
    total = cute.Float32(0)
    if t < 32:
        if t == 0:
            for i in range(cute.Int32(7)):
                s = i % 3
                arch.mbarrier_wait(bar + 3 + s, (i // 3 + 1) % 2)
                arch.mbarrier_arrive_and_expect_tx(bar + s, 256)
                bulk_load(ring.iterator + s * 64, x.iterator + i * 64, 256, bar + s)
    else:
        for i in range(cute.Int32(7)):
            s = i % 3
            arch.mbarrier_wait(bar + s, i // 3 % 2)
            total += ring[s * 64 + 95 - t]
            arch.sync_warp()
            if t % 32 == 0:
                arch.mbarrier_arrive(bar + 3 + s)
        y[t - 32] = total


@cute.kernel
def expected_after_the_copy(x: cute.Tensor, y: cute.Tensor, c: cute.Tensor):
    """The bytes are announced behind the copy: the arrival still to come keeps the phase open."""
    t = arch.thread_idx()[0]
    tile = shared(64)
    bar = barriers(1)
    if t == 0:
        bulk_load(tile.iterator, x.iterator, 256, bar)
        arch.mbarrier_arrive_and_expect_tx(bar, 256)
    arch.mbarrier_wait(bar, 0)
    y[t] = tile[63 - t]


@cute.kernel
def announced_in_pieces(x: cute.Tensor, y: cute.Tensor, c: cute.Tensor):
    t = arch.thread_idx()[0]
    tile = shared(64)
    bar = barriers(1)
    if t == 0:
        for i in cute.range_constexpr(4):
            arch.mbarrier_expect_tx(bar, 64)
            bulk_load(tile.iterator + i * 16, x.iterator + (3 - i) * 16, 64, bar)
        arch.mbarrier_arrive(bar)
    arch.mbarrier_wait(bar, 0)
    y[t] = tile[t]


@cute.kernel
def steps_of_one_warp(x: cute.Tensor, y: cute.Tensor, c: cute.Tensor):
    """A scan in one warp, with a sync of the warp between reads and writes of each step."""
    t = arch.thread_idx()[0]
    sums = shared(32)
    sums[t] = x[t]
    for step in cute.range_constexpr(5):
        arch.sync_warp()
        before = cute.Float32(0)
        if t >= 1 << step:
            before = sums[t - (1 << step)]
        arch.sync_warp()
        sums[t] = sums[t] + before
    arch.sync_warp()
    four = cute.make_tensor((sums.iterator + t // 4 * 4).align(16), cute.make_layout(4)).load()
    y[t] = four[0] + four[3]


@cute.kernel
def exchanged_in_place(x: cute.Tensor, y: cute.Tensor, c: cute.Tensor):
    """A matrix is turned in place: the thread above the diagonal exchanges both elements."""
    t = arch.thread_idx()[0]
    i, j = t // 8, t % 8
    tile = shared(64)
    tile[t] = x[t]
    arch.sync_threads()
    if i < j:
        upper = tile[i * 8 + j]
        tile[i * 8 + j] = tile[j * 8 + i]
        tile[j * 8 + i] = upper
    arch.sync_threads()
    y[t] = tile[t]


@cute.kernel
def scattered_by_a_permutation(x: cute.Tensor, y: cute.Tensor, c: cute.Tensor):
    """A thread finds in memory where it writes; no two write one place."""
    t = arch.thread_idx()[0]
    tile = shared(64)
    for i in range(cute.Int32(3)):
        to = (x[t].to(cute.Int32) * 37 + i) % 64
        tile[to] = x[t] + i
        arch.sync_threads()
        y[t] = y[t] + tile[(t * 37 + i) % 64]
        arch.sync_threads()


@cute.kernel
def rows_of_a_triangle(x: cute.Tensor, y: cute.Tensor, c: cute.Tensor):
    """Thread t owns t + 1 elements, from t (t + 1) / 2 on."""
    t = arch.thread_idx()[0]
    tile = shared(136)
    if t < 16:
        for j in range(t + 1):
            tile[t * (t + 1) // 2 + j] = x[t] + j
        total = cute.Float32(0)
        for j in range(t + 1):
            total += tile[t * (t + 1) // 2 + t - j]
        y[t] = total


@cute.kernel
def neighbouring_bytes(x: cute.Tensor, y: cute.Tensor, c: cute.Tensor):
    """Threads of both warps write bytes of the same words."""
    t = arch.thread_idx()[0]
    tile = shared(64, cute.Int8)
    at = t * 2 % 64 + t // 32
    tile[at] = at.to(cute.Int8)
    arch.sync_threads()
    words = cute.make_tensor(cute.recast_ptr(tile.iterator, dtype=cute.Int32), cute.make_layout(16))
    if t < 16:
        c[t] = words[t] >> 24


@cute.kernel
def own_copies_need_no_barrier(x: cute.Tensor, y: cute.Tensor, c: cute.Tensor):
    """A thread reads its own copies when it has waited for them."""
    t = arch.thread_idx()[0]
    tile = shared(128)
    for i in cute.range_constexpr(2):
        copy_async(x.iterator + i * 64 + t, tile.iterator + i * 64 + t)
        arch.cp_async_commit_group()
    arch.cp_async_wait_group(1)
    first = tile[t]
    tile[t] = first * 2
    arch.cp_async_wait_group(0)
    y[t] = tile[t] + tile[64 + t]


@cute.kernel
def elected_lanes_write(x: cute.Tensor, y: cute.Tensor, c: cute.Tensor):
    t = arch.thread_idx()[0]
    sums = shared(2)
    part = arch.warp_reduction_sum(x[t])
    with arch.elect_one():
        sums[t // 32] = part
    arch.sync_warp()
    own = sums[t // 32]
    arch.sync_threads()
    y[t] = own + sums[1 - t // 32]


@cute.kernel
def two_of_four_warps(x: cute.Tensor, y: cute.Tensor, c: cute.Tensor):
    """Which warps meet at the barrier is found in memory."""
    t = arch.thread_idx()[0]
    tile = shared(128)
    tile[t] = x[t]
    group = x[256 + t // 32].to(cute.Int32) % 4
    if group == 1 or group == 3:
        arch.barrier(barrier_id=5, number_of_threads=64)
        y[t] = tile[(t + 64) % 128]


@cute.kernel
def early_arrival_late_wait(x: cute.Tensor, y: cute.Tensor, c: cute.Tensor):
    """Between the arrival at the cluster's barrier and the wait only own memory is used."""
    t, rank = arch.thread_idx()[0], arch.block_idx_in_cluster()
    tile, own = shared(64), shared(64)
    tile[t] = x[rank * 64 + t]
    arch.cluster_arrive()
    own[t] = x[t] * 2
    arch.sync_threads()
    twice = own[63 - t]
    arch.cluster_wait()
    y[rank * 64 + t] = of_rank(tile, 1 - rank)[t] + twice
    cluster_sync()


@cute.kernel
def ring_of_ranks(x: cute.Tensor, y: cute.Tensor, c: cute.Tensor):
    """Sums go round a ring of four blocks: data and arrival to the next, a buffer for each step."""
    t, rank = arch.thread_idx()[0], arch.block_idx_in_cluster()
    steps = shared(192)
    bar = barriers(64, 64, 64)
    cluster_sync()
    value = x[rank * 64 + t]
    total = value
    following = (rank + 1) % 4
    for i in cute.range_constexpr(3):
        of_rank(steps, following)[i * 64 + t] = value
        arch.mbarrier_arrive(bar + i, following)
        arch.mbarrier_wait(bar + i, 0)
        value = steps[i * 64 + t]
        total += value
    y[rank * 64 + t] = total
    cluster_sync()


@cute.kernel
def handed_over_and_back(x: cute.Tensor, y: cute.Tensor, c: cute.Tensor):
    """Rank 0 writes into rank 1's memory and tells it by a flag; rank 1 answers likewise."""
    t, rank = arch.thread_idx()[0], arch.block_idx_in_cluster()
    tile, flag = shared(64), shared(1, cute.Int32)
    if t == 0:
        flag[0] = 0
    cluster_sync()
    for i in range(cute.Int32(2)):
        if rank == 0:
            of_rank(tile, 1)[t] = x[i * 64 + t]
            arch.sync_threads()
            if t == 0:
                theirs = arch.map_dsmem_ptr(flag.iterator, 1)
                arch.store(theirs, i + 1, sem="release", scope="cluster")
                while arch.load(flag.iterator, sem="acquire", scope="cluster") != i + 1:
                    pass
            arch.sync_threads()
        else:
            if t == 0:
                while arch.load(flag.iterator, sem="acquire", scope="cluster") != i + 1:
                    pass
            arch.sync_threads()
            y[i * 64 + t] = tile[63 - t]
            arch.sync_threads()
            if t == 0:
                theirs = arch.map_dsmem_ptr(flag.iterator, 0)
                arch.store(theirs, i + 1, sem="release", scope="cluster")
    cluster_sync()


@cute.kernel
def counted_at_rank_zero(x: cute.Tensor, y: cute.Tensor, c: cute.Tensor):
    """Peers write their sums into rank 0 and count up; rank 0 waits for the count."""
    t, rank = arch.thread_idx()[0], arch.block_idx_in_cluster()
    sums, count = shared(4), shared(1, cute.Int32)
    if t == 0:
        count[0] = 0
    cluster_sync()
    part = arch.warp_reduction_sum(x[rank * 32 + t])
    if t == 0:
        of_rank(sums, 0)[rank] = part
        arch.atomic_add(arch.map_dsmem_ptr(count.iterator, 0), 1, sem="release", scope="cluster")
        if rank == 0:
            while arch.load(count.iterator, sem="acquire", scope="cluster") != 4:
                pass
            y[0] = sums[0] + sums[1] + sums[2] + sums[3]
    cluster_sync()


PEERS = {"grid": 2, "cluster": (2, 1, 1)}
RANKS = {"grid": 4, "cluster": (4, 1, 1)}
CASES = [
    (
        butterfly_of_warps,
        {"block": 128},
        lambda x, y, c: (y[:128].reshape(4, 32) == X[:128].reshape(4, 32).sum(0)).all(),
    ),
    (three_warps_in_line, {"block": 96}, lambda x, y, c: (y[:96] == 2 * X[:96] + 1).all()),
    (first_of_each_key, {}, lambda x, y, c: (y[:64] == np.arange(64) * 3 % 8).all()),
    (
        tickets_of_warps,
        {"block": 128},
        lambda x, y, c: (y[:64].reshape(2, 32) == X[:64].reshape(2, 32)[:, ::-1]).all(),
    ),
    (
        barrier_at_two_lines,
        {},
        lambda x, y, c: (y[:64] == np.r_[X[63:31:-1] * 3, X[31::-1] * 2 + 1]).all(),
    ),
    (waits_for_a_phase_long_past, {}, lambda x, y, c: (y[:32] == 31).all()),
    (
        three_stages_two_readers,
        {"block": 96},
        lambda x, y, c: (y[:64] == X[:448].reshape(7, 64).sum(0)[::-1]).all(),
    ),
    (expected_after_the_copy, {}, lambda x, y, c: (y[:64] == X[63::-1]).all()),
    (
        announced_in_pieces,
        {},
        lambda x, y, c: (y[:64].reshape(4, 16) == X[:64].reshape(4, 16)[::-1]).all(),
    ),
    (
        steps_of_one_warp,
        {"block": 32},
        lambda x, y, c: y[5] == X[:5].sum() + X[:8].sum(),
    ),
    (
        exchanged_in_place,
        {},
        lambda x, y, c: (y[:64].reshape(8, 8) == X[:64].reshape(8, 8).T).all(),
    ),
    (scattered_by_a_permutation, {}, lambda x, y, c: (y[:64] == 3 * X[:64] + 3).all()),
    (rows_of_a_triangle, {}, lambda x, y, c: y[15] == 16 * 15 + 120),
    (neighbouring_bytes, {}, lambda x, y, c: (c[:16] == np.arange(16) * 4 + 3).all()),
    (own_copies_need_no_barrier, {}, lambda x, y, c: (y[:64] == X[:64] * 3 + 64).all()),
    (elected_lanes_write, {}, lambda x, y, c: (y[:64] == X[:64].sum()).all()),
    (
        two_of_four_warps,
        {"block": 128},
        lambda x, y, c: (y[32:64] == X[96:128]).all() and (y[96:128] == X[32:64]).all(),
    ),
    (
        early_arrival_late_wait,
        PEERS,
        lambda x, y, c: (y[:64] == X[64:128] + 2 * X[63::-1]).all(),
    ),
    (
        ring_of_ranks,
        RANKS,
        lambda x, y, c: (y[:256].reshape(4, 64) == X[:256].reshape(4, 64).sum(0)).all(),
    ),
    (
        handed_over_and_back,
        PEERS,
        lambda x, y, c: (y[:128].reshape(2, 64) == X[:128].reshape(2, 64)[:, ::-1]).all(),
    ),
    (counted_at_rank_zero, RANKS | {"block": 32}, lambda x, y, c: y[0] == X[:128].sum()),
]
