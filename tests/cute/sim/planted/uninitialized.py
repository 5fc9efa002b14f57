"""Values that nobody wrote and that matter, and stale shared memory: with the bug, or without."""

import basedsl_cute as cute
from basedsl_cute import arch
from basedsl_cute.sim import UninitializedReadError


def shared(count, dtype=cute.Float32):
    return cute.utils.SmemAllocator().allocate_tensor(dtype, cute.make_layout((count,)), 16)


@cute.kernel
def shared_memory(x: cute.Tensor, y: cute.Tensor, c: cute.Tensor, bug: cute.Constexpr):
    t = arch.thread_idx()[0]
    tile = shared(64)
    if not bug:
        tile[t] = x[t]
    y[t] = tile[t]


@cute.kernel
def half_of_a_tile(x: cute.Tensor, y: cute.Tensor, c: cute.Tensor, bug: cute.Constexpr):
    t = arch.thread_idx()[0]
    tile = shared(64)
    if not bug or t < 40:
        tile[t] = x[t]
    arch.sync_threads()
    y[t] = tile[63 - t]


@cute.kernel
def computed_with(x: cute.Tensor, y: cute.Tensor, c: cute.Tensor, bug: cute.Constexpr):
    t = arch.thread_idx()[0]
    tile = shared(64)
    if not bug:
        tile[t] = x[t]
    y[t] = x[t] + tile[t] * 2


@cute.kernel
def address_of_a_store(x: cute.Tensor, y: cute.Tensor, c: cute.Tensor, bug: cute.Constexpr):
    t = arch.thread_idx()[0]
    table = shared(64, cute.Int32)
    if not bug:
        table[t] = t
    y[table[t] & 63] = x[t]


@cute.kernel
def condition(x: cute.Tensor, y: cute.Tensor, c: cute.Tensor, bug: cute.Constexpr):
    t = arch.thread_idx()[0]
    flags = shared(64, cute.Int32)
    if not bug:
        flags[t] = t % 2
    if flags[t] > 0:
        y[t] = x[t]


@cute.kernel
def counter_of_atomics(x: cute.Tensor, y: cute.Tensor, c: cute.Tensor, bug: cute.Constexpr):
    t = arch.thread_idx()[0]
    total = shared(1, cute.Int32)
    if not bug and t == 0:
        total[0] = 0
    arch.sync_threads()
    arch.atomic_add(total.iterator, 1)
    arch.sync_threads()
    c[t] = total[0]


@cute.kernel
def accumulator(x: cute.Tensor, y: cute.Tensor, c: cute.Tensor, bug: cute.Constexpr):
    t = arch.thread_idx()[0]
    sums = cute.make_rmem_tensor(cute.make_layout(4), cute.Float32)
    if not bug:
        sums.fill(0.0)
    for i in range(cute.Int32(4)):
        sums[i] = sums[i] + x[t + i]
    y[t] = sums[0] + sums[3]


@cute.kernel
def element_of_registers(x: cute.Tensor, y: cute.Tensor, c: cute.Tensor, bug: cute.Constexpr):
    t = arch.thread_idx()[0]
    mine = cute.make_rmem_tensor(cute.make_layout(4), cute.Int32)
    for i in range(cute.Int32(3 if bug else 4)):
        mine[i] = t + i
    for i in range(cute.Int32(4)):
        c[t] = mine[i]


@cute.kernel
def registers_as_a_condition(x: cute.Tensor, y: cute.Tensor, c: cute.Tensor, bug: cute.Constexpr):
    t = arch.thread_idx()[0]
    keep = cute.make_rmem_tensor(cute.make_layout(4), cute.Int32)
    if not bug:
        keep.fill(1)
    for i in range(cute.Int32(4)):
        if keep[i] > 0:
            y[t] = x[t]


@cute.kernel
def registers_as_an_index(x: cute.Tensor, y: cute.Tensor, c: cute.Tensor, bug: cute.Constexpr):
    t = arch.thread_idx()[0]
    at = cute.make_rmem_tensor(cute.make_layout(2), cute.Int32)
    if not bug:
        at.fill(0)
    for i in range(cute.Int32(2)):
        y[t] = x[at[i] & 15]


@cute.kernel
def predicated_load(x: cute.Tensor, y: cute.Tensor, c: cute.Tensor, bug: cute.Constexpr):
    t = arch.thread_idx()[0]
    mine = cute.make_rmem_tensor(cute.make_layout(2), cute.Float32)
    if not bug:
        mine.fill(0.0)
    for i in range(cute.Int32(2)):
        if t + i < 60:
            mine[i] = x[t + i]
    total = cute.Float32(0)
    for i in range(cute.Int32(2)):
        total += mine[i]
    y[t] = total


@cute.kernel
def shared_by_way_of_registers(x: cute.Tensor, y: cute.Tensor, c: cute.Tensor, bug: cute.Constexpr):
    t = arch.thread_idx()[0]
    a, b = shared(64), shared(64)
    if not bug:
        a[t] = x[t]
    b[t] = a[t]
    arch.sync_threads()
    y[t] = b[63 - t]


@cute.kernel
def tile_of_an_earlier_kernel(x: cute.Tensor, y: cute.Tensor, c: cute.Tensor, bug: cute.Constexpr):
    t = arch.thread_idx()[0]
    tile = shared(64)
    if arch.block_idx()[0] == 0 or not bug:
        tile[t] = x[t]
    y[arch.block_idx()[0] * 64 + t] = tile[t]


@cute.kernel
def shuffled(x: cute.Tensor, y: cute.Tensor, c: cute.Tensor, bug: cute.Constexpr):
    t = arch.thread_idx()[0]
    tile = shared(64)
    if not bug or t % 32 == 0:
        tile[t] = x[t]
    y[t] = arch.shuffle_sync(tile[t], 1)


READ = "read of shared memory that no thread has written|nobody has written"
CASES = [
    (shared_memory, UninitializedReadError, READ),
    (half_of_a_tile, UninitializedReadError, READ),
    (computed_with, UninitializedReadError, READ),
    (address_of_a_store, UninitializedReadError, READ),
    (condition, UninitializedReadError, READ),
    (counter_of_atomics, UninitializedReadError, READ),
    (accumulator, UninitializedReadError, READ),
    (element_of_registers, UninitializedReadError, READ),
    (registers_as_a_condition, UninitializedReadError, READ),
    (registers_as_an_index, UninitializedReadError, READ),
    (predicated_load, UninitializedReadError, READ),
    (shared_by_way_of_registers, UninitializedReadError, READ),
    (tile_of_an_earlier_kernel, UninitializedReadError, READ, {"grid": 2}),
    (shuffled, UninitializedReadError, READ),
]
