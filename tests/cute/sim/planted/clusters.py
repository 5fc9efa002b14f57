"""Shared memory of other blocks of a cluster: each with an order left out, or complete."""

from kernel_parts import cluster_sync, of_rank

import basedsl_cute as cute
from basedsl_cute import arch
from basedsl_cute.sim import RaceError, SimulationError


def shared(count, dtype=cute.Float32):
    return cute.utils.SmemAllocator().allocate_tensor(dtype, cute.make_layout((count,)), 16)


@cute.kernel
def peer_may_not_have_started(x: cute.Tensor, y: cute.Tensor, c: cute.Tensor, bug: cute.Constexpr):
    t, rank = arch.thread_idx()[0], arch.block_idx_in_cluster()
    tile = shared(64)
    if not bug:
        cluster_sync()
    of_rank(tile, rank ^ 1)[t] = x[t]
    cluster_sync()
    y[rank * 64 + t] = tile[t]


@cute.kernel
def two_ranks_write_one(x: cute.Tensor, y: cute.Tensor, c: cute.Tensor, bug: cute.Constexpr):
    t, rank = arch.thread_idx()[0], arch.block_idx_in_cluster()
    tile = shared(256)
    cluster_sync()
    of_rank(tile, 0)[t + (0 if bug else rank * 64)] = x[t] + rank
    cluster_sync()
    if rank == 0:
        y[t] = tile[t]


@cute.kernel
def atomics_of_peers_read_at_once(
    x: cute.Tensor, y: cute.Tensor, c: cute.Tensor, bug: cute.Constexpr
):
    t, rank = arch.thread_idx()[0], arch.block_idx_in_cluster()
    total = shared(1, cute.Int32)
    if t == 0:
        total[0] = 0
    cluster_sync()
    if t == 0:
        arch.atomic_add(arch.map_dsmem_ptr(total.iterator, 0), 1, scope="cluster")
    if bug:
        arch.sync_threads()
    else:
        cluster_sync()
    if rank == 0:
        c[t] = total[0]
    cluster_sync()


@cute.kernel
def arrived_but_not_waited(x: cute.Tensor, y: cute.Tensor, c: cute.Tensor, bug: cute.Constexpr):
    t, rank = arch.thread_idx()[0], arch.block_idx_in_cluster()
    tile = shared(64)
    tile[t] = x[t]
    value = cute.Float32(0)
    arch.cluster_arrive()
    if bug:
        value = of_rank(tile, rank ^ 1)[t]
    arch.cluster_wait()
    if not bug:
        value = of_rank(tile, rank ^ 1)[t]
    y[rank * 64 + t] = value
    cluster_sync()


@cute.kernel
def remote_arrival_of_a_block(x: cute.Tensor, y: cute.Tensor, c: cute.Tensor, bug: cute.Constexpr):
    t, rank = arch.thread_idx()[0], arch.block_idx_in_cluster()
    tile = shared(64)
    bar = cute.utils.SmemAllocator().allocate_array(cute.Int64)
    if t == 0:
        arch.mbarrier_init(bar, 64)
        arch.mbarrier_init_fence()
    cluster_sync()
    if rank == 0:
        of_rank(tile, 1)[t] = x[t]
        arch.mbarrier_arrive(bar, 1, scope="cta" if bug else "cluster")
    else:
        arch.mbarrier_wait(bar, 0)
        y[t] = tile[63 - t]
    cluster_sync()


@cute.kernel
def rank_beyond_the_cluster(x: cute.Tensor, y: cute.Tensor, c: cute.Tensor, bug: cute.Constexpr):
    t, rank = arch.thread_idx()[0], arch.block_idx_in_cluster()
    tile = shared(64)
    tile[t] = x[t]
    cluster_sync()
    y[rank * 64 + t] = of_rank(tile, rank + 1 if bug else (rank + 1) % 2)[t]
    cluster_sync()


@cute.kernel
def next_turn_overwrites_a_peer(
    x: cute.Tensor, y: cute.Tensor, c: cute.Tensor, bug: cute.Constexpr
):
    t, rank = arch.thread_idx()[0], arch.block_idx_in_cluster()
    tile = shared(64)
    total = cute.Float32(0)
    for i in range(cute.Int32(3)):
        tile[t] = x[t] + i
        cluster_sync()
        total += of_rank(tile, rank ^ 1)[t]
        if not bug:
            cluster_sync()
    y[rank * 64 + t] = total
    cluster_sync()


@cute.kernel
def flag_of_a_peer(x: cute.Tensor, y: cute.Tensor, c: cute.Tensor, bug: cute.Constexpr):
    t, rank = arch.thread_idx()[0], arch.block_idx_in_cluster()
    tile, flag = shared(64), shared(1, cute.Int32)
    if t == 0:
        flag[0] = 0
    cluster_sync()
    scope = "cta" if bug else "cluster"
    if rank == 0:
        of_rank(tile, 1)[t] = x[t]
        arch.sync_threads()
        if t == 0:
            arch.store(arch.map_dsmem_ptr(flag.iterator, 1), 1, sem="release", scope=scope)
    else:
        if t == 0:
            while arch.load(flag.iterator, sem="acquire", scope=scope) == 0:
                pass
        arch.sync_threads()
        y[t] = tile[t]
    cluster_sync()


@cute.kernel
def barrier_of_half_a_cluster(x: cute.Tensor, y: cute.Tensor, c: cute.Tensor, bug: cute.Constexpr):
    t, rank = arch.thread_idx()[0], arch.block_idx_in_cluster()
    if not bug or rank == 0:
        arch.cluster_arrive()
        arch.cluster_wait()
    y[rank * 64 + t] = x[t]


TWO = {"grid": 2, "cluster": (2, 1, 1)}
FOUR = {"grid": 4, "cluster": (4, 1, 1)}
NOT_YET = "may not have started|that no thread has written|deadlock|race on shared memory"
CASES = [
    (peer_may_not_have_started, RaceError, "start", TWO),
    (two_ranks_write_one, RaceError, "race on shared memory", FOUR),
    (atomics_of_peers_read_at_once, RaceError, "race on shared memory", TWO),
    (arrived_but_not_waited, SimulationError, NOT_YET, TWO),
    (remote_arrival_of_a_block, RaceError, "race on shared memory", TWO),
    (rank_beyond_the_cluster, SimulationError, "rank|cluster|out-of-bounds", TWO),
    (next_turn_overwrites_a_peer, RaceError, "race on shared memory", TWO),
    (flag_of_a_peer, RaceError, "race on shared memory", TWO),
    (barrier_of_half_a_cluster, SimulationError, "deadlock|barrier|cluster", TWO),
]
