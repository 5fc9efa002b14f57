"""Indices, extents, divisors and values that nobody wrote: with the bug planted, or without."""

from kernel_parts import copy_async

import basedsl_cute as cute
from basedsl_cute import arch
from basedsl_cute.sim import (
    ArithmeticTrapError,
    CoordinateError,
    MemoryAccessError,
    UninitializedReadError,
)


def shared(count, dtype=cute.Float32, align=16):
    return cute.utils.SmemAllocator().allocate_tensor(dtype, cute.make_layout((count,)), align)


@cute.kernel
def first_sum_is_missing(x: cute.Tensor, y: cute.Tensor, c: cute.Tensor, bug: cute.Constexpr):
    """An exclusive scan: thread t writes element t + 1, and nobody element 0."""
    t = arch.thread_idx()[0]
    sums = shared(65)
    sums[t + 1] = x[t]
    if not bug and t == 0:
        sums[0] = 0.0
    arch.sync_threads()
    y[t] = sums[t]


@cute.kernel
def popped_too_often(x: cute.Tensor, y: cute.Tensor, c: cute.Tensor, bug: cute.Constexpr):
    """A stack of each thread in registers: three are pushed."""
    t = arch.thread_idx()[0]
    stack = cute.make_rmem_tensor(cute.make_layout(8), cute.Float32)
    top = cute.Int32(0)
    for i in range(cute.Int32(3)):
        stack[top] = x[t + i]
        top += 1
    total = cute.Float32(0)
    if bug:
        top += 1
    while top > 0:
        top -= 1
        total += stack[top]
    y[t] = total


@cute.kernel
def first_turn_reads_the_next_stage(
    x: cute.Tensor, y: cute.Tensor, c: cute.Tensor, bug: cute.Constexpr
):
    t = arch.thread_idx()[0]
    stages = shared(128)
    total = cute.Float32(0)
    for i in range(cute.Int32(3)):
        stages[i % 2 * 64 + t] = x[i * 64 + t]
        arch.sync_threads()
        at = (i + 1) % 2 if bug else i % 2
        total += stages[at * 64 + 63 - t]
        arch.sync_threads()
    y[t] = total


@cute.kernel
def gathered_column_beyond(x: cute.Tensor, y: cute.Tensor, c: cute.Tensor, bug: cute.Constexpr):
    """The column comes from memory."""
    t = arch.thread_idx()[0]
    column = x[0, t].to(cute.Int32) + (1 if bug else 0)
    y[t, 0] = x[t % 4, column]


@cute.kernel
def halo_guarded_in_rows_only(x: cute.Tensor, y: cute.Tensor, c: cute.Tensor, bug: cute.Constexpr):
    """A stencil of 3 x 3: rows are compared with the extent, columns are not."""
    t = arch.thread_idx()[0]
    total = cute.Float32(0)
    for i in cute.range_constexpr(3):
        for j in cute.range_constexpr(3):
            row, column = 3 + i - 1, t + j - 1
            inside = row >= 0 and row < 8
            if not bug:
                inside = inside and column >= 0 and column < 8
            if inside:
                total += x[row, column]
    y[t, 0] = total


@cute.kernel
def band_that_leaves_the_row(x: cute.Tensor, y: cute.Tensor, c: cute.Tensor, bug: cute.Constexpr):
    """The product of a band matrix: elements beside the diagonal, and on it."""
    t = arch.thread_idx()[0]
    total = cute.Float32(0)
    for k in range(cute.Int32(3)):
        column = t + k - 1
        if column >= 0 and (bug or column < 8):
            total += x[t // 2, column]
    y[t, 0] = total


@cute.kernel
def transposed_view(x: cute.Tensor, y: cute.Tensor, c: cute.Tensor, bug: cute.Constexpr):
    """A view of 6 x 8 on an array of 8 x 6, used with the array's own coordinates."""
    t = arch.thread_idx()[0]
    turned = cute.make_tensor(x.iterator, cute.make_layout((6, 8), stride=(1, 6)))
    if bug:
        y[t, 0] = turned[t, cute.Int32(3)]
    else:
        y[t, 0] = turned[cute.Int32(3), t]


@cute.kernel
def share_of_no_voters(x: cute.Tensor, y: cute.Tensor, c: cute.Tensor, bug: cute.Constexpr):
    """Work is divided among the lanes that vote for it: in the second warp none does."""
    t = arch.thread_idx()[0]
    voters = arch.popc(arch.vote_ballot_sync(x[t] < 20))
    if not bug:
        voters = cute.Int32(1) if voters == 0 else voters
    c[t] = 64 // voters


@cute.kernel
def index_that_wraps_around(x: cute.Tensor, y: cute.Tensor, c: cute.Tensor, bug: cute.Constexpr):
    """A product of 32 bits overflows and the index is negative."""
    t = arch.thread_idx()[0]
    pitch = x[64].to(cute.Int32)
    y[t * pitch * (1 << 25) >> 23 if bug else t * pitch] = x[t]


@cute.kernel
def copied_to_an_unknown_place(x: cute.Tensor, y: cute.Tensor, c: cute.Tensor, bug: cute.Constexpr):
    """Two asynchronous copies of each thread, to where a table says."""
    t = arch.thread_idx()[0]
    tile, table = shared(128), shared(64, cute.Int32)
    if not bug:
        table[t] = 63 - t
    for i in cute.range_constexpr(2):
        copy_async(x.iterator + i * 64 + t, tile.iterator + i * 64 + (table[t] & 63))
    arch.cp_async_commit_group()
    arch.cp_async_wait_group(0)
    arch.sync_threads()
    y[t] = tile[t] + tile[64 + t]


READ = "that no thread has written|nobody has written"
EIGHT = {"shape": (8, 8), "block": 8}
CASES = [
    (first_sum_is_missing, UninitializedReadError, READ),
    (popped_too_often, UninitializedReadError, READ),
    (first_turn_reads_the_next_stage, UninitializedReadError, READ),
    (copied_to_an_unknown_place, UninitializedReadError, READ),
    (gathered_column_beyond, CoordinateError, "extent is 8", EIGHT),
    (halo_guarded_in_rows_only, CoordinateError, "extent is 8", EIGHT),
    (band_that_leaves_the_row, CoordinateError, "extent is 8", EIGHT),
    (transposed_view, CoordinateError, "extent is 6", {"shape": (8, 6), "block": 8}),
    (share_of_no_voters, ArithmeticTrapError, "by zero"),
    (index_that_wraps_around, MemoryAccessError, "-256|before", {"block": 2}),
]
