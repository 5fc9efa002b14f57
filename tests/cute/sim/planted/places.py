"""Extents, alignment and values that nobody wrote, in tiles: with the bug planted, or without."""

import basedsl_cute as cute
from basedsl_cute import arch
from basedsl_cute.arch.bulk import bulk_store
from basedsl_cute.sim import (
    CoordinateError,
    MemoryAccessError,
    SimulationError,
    UninitializedReadError,
)


def shared(count, dtype=cute.Float32, align=16):
    return cute.utils.SmemAllocator().allocate_tensor(dtype, cute.make_layout((count,)), align)


@cute.kernel
def partition_overhangs(x: cute.Tensor, y: cute.Tensor, c: cute.Tensor, bug: cute.Constexpr):
    """Tiles of four columns over ten, by partitions of threads."""
    t = arch.thread_idx()[0]
    tile_x = cute.local_tile(x, (4, 4), (0, 2))
    tile_y = cute.local_tile(y, (4, 4), (0, 2))
    rows = cute.make_layout((4, 1))
    mine_x = cute.local_partition(tile_x, rows, t)
    mine_y = cute.local_partition(tile_y, rows, t)
    for i in cute.range_constexpr(4 if bug else 2):
        mine_y[0, i] = mine_x[0, i]


@cute.kernel
def copy_overhangs(x: cute.Tensor, y: cute.Tensor, c: cute.Tensor, bug: cute.Constexpr):
    """Each thread copies a row of a tile by one copy that no predicate guards."""
    t = arch.thread_idx()[0]
    width = 4 if bug else 2
    tile_x = cute.local_tile(x, (1, width), (t, 2 if bug else 4))
    tile_y = cute.local_tile(y, (1, width), (t, 2 if bug else 4))
    mine = cute.make_rmem_tensor(tile_x.shape, cute.Float32)
    cute.autovec_copy(tile_x, mine)
    cute.autovec_copy(mine, tile_y)


@cute.kernel
def tile_beyond_the_last(x: cute.Tensor, y: cute.Tensor, c: cute.Tensor, bug: cute.Constexpr):
    t = arch.thread_idx()[0]
    which = cute.Int32(2 if bug else 1)
    row = cute.local_tile(x, (1, 4), (0, which))
    if t < 4:
        y[0, t] = row[0, t]


@cute.kernel
def middle_of_three(x: cute.Tensor, y: cute.Tensor, c: cute.Tensor, bug: cute.Constexpr):
    t = arch.thread_idx()[0]
    for i in range(cute.Int32(5 if bug else 4)):
        y[0, 0, t % 4] = x[0, i, t % 4]


@cute.kernel
def padding_of_a_tile(x: cute.Tensor, y: cute.Tensor, c: cute.Tensor, bug: cute.Constexpr):
    t = arch.thread_idx()[0]
    tile = cute.utils.SmemAllocator().allocate_tensor(
        cute.Float32, cute.make_layout((8, 8), stride=(9, 1)), 16
    )
    for i in range(cute.Int32(9 if bug else 8)):
        tile[t, i] = x[t, i % 8]
    y[t, 0] = tile[t, 3]


@cute.kernel
def stencil_at_the_edge(x: cute.Tensor, y: cute.Tensor, c: cute.Tensor, bug: cute.Constexpr):
    t = arch.thread_idx()[0]
    if bug or t > 0:
        y[t, 1] = x[t, 1] + x[t, t - 1]


@cute.kernel
def transposed_extents(x: cute.Tensor, y: cute.Tensor, c: cute.Tensor, bug: cute.Constexpr):
    t = arch.thread_idx()[0]
    if bug:
        if t < cute.size(x, mode=[0]):
            y[0, t] = x[0, t]
    else:
        if t < cute.size(x, mode=[1]):
            y[0, t] = x[0, t]


@cute.kernel
def vector_of_an_odd_offset(x: cute.Tensor, y: cute.Tensor, c: cute.Tensor, bug: cute.Constexpr):
    t = arch.thread_idx()[0]
    tile = shared(68, align=8)
    tile[t] = x[t]
    if t < 4:
        tile[64 + t] = x[64 + t]
    arch.sync_threads()
    if t < 8:
        start = (tile.iterator + t * 4 + (1 if bug else 0)).align(8)
        two = cute.make_tensor(start, cute.make_layout(2)).load()
        y[t] = two[0] + two[1]


@cute.kernel
def promise_that_half_the_threads_keep(
    x: cute.Tensor, y: cute.Tensor, c: cute.Tensor, bug: cute.Constexpr
):
    t = arch.thread_idx()[0]
    tile = shared(132)
    for i in cute.range_constexpr(4):
        tile[t * 4 + i] = x[t + i]
    arch.sync_threads()
    at = t * (2 if bug else 4)
    four = cute.make_tensor((tile.iterator + at).align(16), cute.make_layout(4)).load()
    y[t] = four[0] + four[3]


@cute.kernel
def async_copy_of_sixteen(x: cute.Tensor, y: cute.Tensor, c: cute.Tensor, bug: cute.Constexpr):
    t = arch.thread_idx()[0]
    tile = shared(260)
    atom = cute.make_copy_atom(cute.nvgpu.cpasync.CopyG2SOp(), cute.Float32, num_bits_per_copy=128)
    four = cute.make_layout(4)
    if t < 32:
        source = (x.iterator + t * 4 + (2 if bug else 0)).align(16)
        target = (tile.iterator + t * 4).align(16)
        cute.copy(atom, cute.make_tensor(source, four), cute.make_tensor(target, four))
    arch.cp_async_commit_group()
    arch.cp_async_wait_group(0)
    arch.sync_threads()
    y[t] = tile[t]


@cute.kernel
def stored_but_never_filled(x: cute.Tensor, y: cute.Tensor, c: cute.Tensor, bug: cute.Constexpr):
    t = arch.thread_idx()[0]
    tile = shared(64, align=128)
    if not bug or t < 60:
        tile[t] = x[t]
    arch.fence_view_async_shared()
    arch.sync_threads()
    if t == 0:
        bulk_store(y.iterator, tile.iterator, 256)
        arch.cp_async_bulk_commit_group()
        arch.cp_async_bulk_wait_group(0)


@cute.kernel
def tail_that_is_not_cleared(x: cute.Tensor, y: cute.Tensor, c: cute.Tensor, bug: cute.Constexpr):
    t = arch.thread_idx()[0]
    tile = shared(64)
    if t < 50:
        tile[t] = x[t]
    elif not bug:
        tile[t] = 0.0
    arch.sync_threads()
    total = cute.Float32(0)
    for i in range(cute.Int32(64)):
        total += tile[i]
    y[t] = total


@cute.kernel
def branch_that_leaves_it_out(x: cute.Tensor, y: cute.Tensor, c: cute.Tensor, bug: cute.Constexpr):
    t = arch.thread_idx()[0]
    mine = cute.make_rmem_tensor(cute.make_layout(2), cute.Float32)
    if not bug:
        mine.fill(0.0)
    if x[t] > 10:
        mine[0] = x[t]
        mine[1] = x[t] * 2
    y[t] = mine[0] + mine[1]


@cute.kernel
def maximum_from_nothing(x: cute.Tensor, y: cute.Tensor, c: cute.Tensor, bug: cute.Constexpr):
    t = arch.thread_idx()[0]
    most = cute.make_rmem_tensor(cute.make_layout(2), cute.Float32)
    if not bug:
        most.fill(-1.0e30)
    for i in range(cute.Int32(4)):
        if x[t + i] > most[0]:
            most[0] = x[t + i]
    y[t] = most[0]


@cute.kernel
def one_warp_of_sums(x: cute.Tensor, y: cute.Tensor, c: cute.Tensor, bug: cute.Constexpr):
    """Sums of warps are read as if there were four of them."""
    t = arch.thread_idx()[0]
    sums = shared(4)
    part = arch.warp_reduction_sum(x[t])
    if t % 32 == 0:
        sums[t // 32] = part
    arch.sync_threads()
    total = cute.Float32(0)
    for i in range(cute.Int32(4 if bug else 2)):
        total += sums[i]
    y[t] = total


READ = "that no thread has written|nobody has written"
TEN = {"shape": (4, 10), "block": 4}
EIGHT = {"shape": (8, 8), "block": 8}
CASES = [
    (partition_overhangs, CoordinateError, "extent", TEN),
    (copy_overhangs, CoordinateError, "extent", TEN),
    (tile_beyond_the_last, CoordinateError, "extent", EIGHT),
    (middle_of_three, CoordinateError, "extent is 4", {"shape": (3, 4, 4), "block": 4}),
    (padding_of_a_tile, CoordinateError, "extent is 8", EIGHT),
    (stencil_at_the_edge, CoordinateError, "coordinate -1", EIGHT),
    (transposed_extents, CoordinateError, "extent is 6", {"shape": (8, 6), "block": 8}),
    (vector_of_an_odd_offset, MemoryAccessError, "align"),
    (promise_that_half_the_threads_keep, MemoryAccessError, "align", {"block": 32}),
    (async_copy_of_sixteen, MemoryAccessError, "align"),
    (stored_but_never_filled, UninitializedReadError, READ),
    (tail_that_is_not_cleared, UninitializedReadError, READ),
    (branch_that_leaves_it_out, UninitializedReadError, READ),
    (maximum_from_nothing, UninitializedReadError, READ),
    (one_warp_of_sums, SimulationError, READ),
]
