"""Accesses beyond extents, in bounds of the allocation or not: with the bug planted, or without."""

import basedsl_cute as cute
from basedsl_cute import arch
from basedsl_cute.sim import CoordinateError, MemoryAccessError

EIGHT = {"shape": (8, 8), "block": 8}


@cute.kernel
def column_beyond(x: cute.Tensor, y: cute.Tensor, c: cute.Tensor, bug: cute.Constexpr):
    t = arch.thread_idx()[0]
    y[t, 0] = x[t, cute.Int32(8 if bug else 7)]


@cute.kernel
def static_column_beyond(x: cute.Tensor, y: cute.Tensor, c: cute.Tensor, bug: cute.Constexpr):
    t = arch.thread_idx()[0]
    if t < 7:
        y[t, 0] = x[t, 8 if bug else 7]


@cute.kernel
def write_to_the_next_row(x: cute.Tensor, y: cute.Tensor, c: cute.Tensor, bug: cute.Constexpr):
    t = arch.thread_idx()[0]
    if t < 7:
        y[0, t + (2 if bug else 1)] = x[t, t]


@cute.kernel
def column_before(x: cute.Tensor, y: cute.Tensor, c: cute.Tensor, bug: cute.Constexpr):
    t = arch.thread_idx()[0]
    if t > 0:
        y[t, 0] = x[t, t - (2 if bug else 1)]


@cute.kernel
def loop_too_long(x: cute.Tensor, y: cute.Tensor, c: cute.Tensor, bug: cute.Constexpr):
    t = arch.thread_idx()[0]
    total = cute.Float32(0)
    for i in range(cute.Int32(9 if bug else 8)):
        if t < 7:
            total += x[t, i]
    y[t, 0] = total


@cute.kernel
def exchanged_coordinates(x: cute.Tensor, y: cute.Tensor, c: cute.Tensor, bug: cute.Constexpr):
    t = arch.thread_idx()[0]
    if t < 6:
        if bug:
            y[t, 0] = x[t % 4, t + 2]
        else:
            y[t, 0] = x[t + 2, t % 4]


@cute.kernel
def tile_overhangs(x: cute.Tensor, y: cute.Tensor, c: cute.Tensor, bug: cute.Constexpr):
    t = arch.thread_idx()[0]
    from_x = cute.local_tile(x, (2, 4), (0, 2))
    to_y = cute.local_tile(y, (2, 4), (0, 2))
    row, column = t // 4, t % 4
    if bug or 8 + column < cute.size(x, mode=[1]):
        to_y[row, column] = from_x[row, column]


@cute.kernel
def gap_of_a_view(x: cute.Tensor, y: cute.Tensor, c: cute.Tensor, bug: cute.Constexpr):
    t = arch.thread_idx()[0]
    view = cute.make_tensor(x.iterator, cute.make_layout((4, 8), stride=(8, 1)))
    left = cute.make_tensor(x.iterator, cute.make_layout((8, 4), stride=(8, 1)))
    y[t, 0] = left[t, cute.Int32(5 if bug else 3)] + view[t % 4, t]


@cute.kernel
def row_of_a_view(x: cute.Tensor, y: cute.Tensor, c: cute.Tensor, bug: cute.Constexpr):
    t = arch.thread_idx()[0]
    top = cute.make_tensor(x.iterator, cute.make_layout((4, 8), stride=(8, 1)))
    y[t, 0] = top[t // (1 if bug else 2), 0]


@cute.kernel
def shared_column_beyond(x: cute.Tensor, y: cute.Tensor, c: cute.Tensor, bug: cute.Constexpr):
    t = arch.thread_idx()[0]
    tile = cute.utils.SmemAllocator().allocate_tensor(
        cute.Float32, cute.make_layout((8, 8), stride=(8, 1)), 16
    )
    for i in range(cute.Int32(8)):
        tile[t, i] = x[t, i]
    arch.sync_threads()
    if t < 7:
        y[t, 0] = tile[t, t + (2 if bug else 1)]


@cute.kernel
def register_column_beyond(x: cute.Tensor, y: cute.Tensor, c: cute.Tensor, bug: cute.Constexpr):
    t = arch.thread_idx()[0]
    mine = cute.make_rmem_tensor(cute.make_layout((2, 4), stride=(4, 1)), cute.Float32)
    mine.fill(0.0)
    for i in range(cute.Int32(5 if bug else 4)):
        mine[0, i] = x[t, i]
    y[t, 0] = mine[0, 1]


@cute.kernel
def end_of_the_array(x: cute.Tensor, y: cute.Tensor, c: cute.Tensor, bug: cute.Constexpr):
    i = arch.block_idx()[0] * 96 + arch.thread_idx()[0]
    if bug or i < 256:
        y[i] = x[i]


@cute.kernel
def before_the_array(x: cute.Tensor, y: cute.Tensor, c: cute.Tensor, bug: cute.Constexpr):
    t = arch.thread_idx()[0]
    if bug or t > 0:
        y[t] = x[t - 1]


@cute.kernel
def pointer_beyond(x: cute.Tensor, y: cute.Tensor, c: cute.Tensor, bug: cute.Constexpr):
    t = arch.thread_idx()[0]
    y[t] = (x.iterator + (200 if bug else 100) + t).load()


@cute.kernel
def index_from_memory(x: cute.Tensor, y: cute.Tensor, c: cute.Tensor, bug: cute.Constexpr):
    t = arch.thread_idx()[0]
    at = x[t].to(cute.Int32) * (9 if bug else 1)
    y[t] = x[at]


@cute.kernel
def beyond_shared_memory(x: cute.Tensor, y: cute.Tensor, c: cute.Tensor, bug: cute.Constexpr):
    t = arch.thread_idx()[0]
    tile = cute.utils.SmemAllocator().allocate_tensor(cute.Float32, cute.make_layout((64,)), 16)
    tile[t + (1 if bug else 0)] = x[t]
    arch.sync_threads()
    y[t] = tile[t]


@cute.kernel
def beyond_registers(x: cute.Tensor, y: cute.Tensor, c: cute.Tensor, bug: cute.Constexpr):
    t = arch.thread_idx()[0]
    mine = cute.make_rmem_tensor(cute.make_layout(4), cute.Float32)
    mine.fill(0.0)
    for i in range(cute.Int32(5 if bug else 4)):
        mine[i] = x[t + i]
    y[t] = mine[2]


@cute.kernel
def neighbouring_tensor_in_shared_memory(
    x: cute.Tensor, y: cute.Tensor, c: cute.Tensor, bug: cute.Constexpr
):
    t = arch.thread_idx()[0]
    smem = cute.utils.SmemAllocator()
    a = smem.allocate_tensor(cute.Float32, cute.make_layout((64,)), 16)
    b = smem.allocate_tensor(cute.Float32, cute.make_layout((64,)), 16)
    a[t] = x[t]
    b[t] = x[t]
    arch.sync_threads()
    y[t] = a[t + (1 if bug else 0)] + b[t]


@cute.kernel
def vector_beyond(x: cute.Tensor, y: cute.Tensor, c: cute.Tensor, bug: cute.Constexpr):
    t = arch.thread_idx()[0]
    at = t * 4 + (4 if bug else 0)
    four = cute.make_tensor((x.iterator + at).align(16), cute.make_layout(4)).load()
    y[t] = four[0] + four[3]


CASES = [
    (column_beyond, CoordinateError, r"coordinate 8 .* extent is 8", EIGHT),
    (static_column_beyond, CoordinateError, r"coordinate 8 .* extent is 8", EIGHT),
    (write_to_the_next_row, CoordinateError, r"coordinate 8 .* extent is 8", EIGHT),
    (column_before, CoordinateError, r"coordinate -1 .* extent is 8", EIGHT),
    (loop_too_long, CoordinateError, r"coordinate 8 .* extent is 8", EIGHT),
    (exchanged_coordinates, CoordinateError, r"extent", {"shape": (8, 6), "block": 8}),
    (tile_overhangs, CoordinateError, r"extent", {"shape": (8, 10), "block": 8}),
    (gap_of_a_view, CoordinateError, r"coordinate 5 .* extent is 4", EIGHT),
    (row_of_a_view, CoordinateError, r"coordinate 4 .* extent is 4", EIGHT),
    (shared_column_beyond, CoordinateError, r"coordinate 8 .* extent is 8", EIGHT),
    (register_column_beyond, CoordinateError, r"coordinate 4 .* extent is 4", EIGHT),
    (end_of_the_array, MemoryAccessError, "out-of-bounds|extent", {"grid": 3, "block": 96}),
    (before_the_array, MemoryAccessError, "out-of-bounds|extent"),
    (pointer_beyond, MemoryAccessError, "out-of-bounds"),
    (index_from_memory, MemoryAccessError, "out-of-bounds|extent"),
    (beyond_shared_memory, MemoryAccessError, "out-of-bounds|extent"),
    (beyond_registers, MemoryAccessError, "out-of-bounds|extent"),
    (neighbouring_tensor_in_shared_memory, CoordinateError, r"coordinate 64 .* extent is 64"),
    (vector_beyond, MemoryAccessError, "out-of-bounds"),
]
