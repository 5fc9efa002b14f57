"""Speed of the simulator, with its checks and without, against NumPy where that does the same.

`python bench/simulator.py` prints a line for each kernel: the processor time of this process, the
least of alternating runs, which other load disturbs least; the ratio of checked to unchecked, and
the ratio of checked to NumPy. `--repeats` sets how many runs there are, `--wall` measures by the
clock instead, as medians. Unchecked is without the race check alone: others are always on.
`--triton` adds a column for Triton's interpreter, which needs the packages triton and torch; it
checks no races. Each of its calls runs thrice at most: one takes seconds.
"""

import argparse
import os
import statistics
import time

os.environ["CUTE_DSL_ARCH"] = "sim"

import numpy as np

import basedsl_cute as cute
from basedsl_cute import arch
from basedsl_cute.nvgpu import warp
from basedsl_cute.ops.hopper.gemm import Config, gemm
from basedsl_cute.runtime import from_dlpack

N = 1 << 20


@cute.kernel
def add_kernel(x: cute.Tensor, y: cute.Tensor, z: cute.Tensor):
    i = arch.block_idx()[0] * 256 + arch.thread_idx()[0]
    if i < cute.size(x):
        z[i] = x[i] + y[i]


@cute.jit
def add(x: cute.Tensor, y: cute.Tensor, z: cute.Tensor):
    add_kernel(x, y, z).launch(grid=cute.ceil_div(cute.size(x), 256), block=256)


@cute.kernel
def scale_kernel(x: cute.Tensor):
    i = arch.block_idx()[0] * 256 + arch.thread_idx()[0]
    if i < cute.size(x):
        x[i] = x[i] * 2.0


@cute.jit
def scale(x: cute.Tensor):
    scale_kernel(x).launch(grid=cute.ceil_div(cute.size(x), 256), block=256)


@cute.kernel
def softmax_kernel(x: cute.Tensor, y: cute.Tensor):
    t, row, _ = arch.thread_idx()[0], arch.block_idx()[0], 0
    parts = cute.utils.SmemAllocator().allocate_tensor(cute.Float32, cute.make_layout((8,)), 16)
    values = cute.make_rmem_tensor(cute.make_layout(4), cute.Float32)
    most = cute.Float32(-1e30)
    for j in cute.range_constexpr(4):
        values[j] = x[row, j * 256 + t]
        most = arch.fmax(most, values[j])
    most = arch.warp_reduction_max(most)
    if t % 32 == 0:
        parts[t // 32] = most
    arch.sync_threads()
    for j in cute.range_constexpr(8):
        most = arch.fmax(most, parts[j])
    arch.sync_threads()
    total = cute.Float32(0)
    for j in cute.range_constexpr(4):
        values[j] = cute.math.exp(values[j] - most)
        total += values[j]
    total = arch.warp_reduction_sum(total)
    if t % 32 == 0:
        parts[t // 32] = total
    arch.sync_threads()
    total = cute.Float32(0)
    for j in cute.range_constexpr(8):
        total += parts[j]
    for j in cute.range_constexpr(4):
        y[row, j * 256 + t] = values[j] / total


@cute.jit
def softmax(x: cute.Tensor, y: cute.Tensor):
    softmax_kernel(x, y).launch(grid=256, block=256)


@cute.kernel
def loop_kernel(x: cute.Tensor, y: cute.Tensor, turns: cute.Int32):
    t = arch.thread_idx()[0]
    tile = cute.utils.SmemAllocator().allocate_tensor(cute.Float32, cute.make_layout((256,)), 16)
    total = cute.Float32(0)
    for i in range(turns):
        tile[t] = x[t] + i
        arch.sync_threads()
        total += tile[255 - t]
        arch.sync_threads()
    y[arch.block_idx()[0] * 256 + t] = total


@cute.jit
def loop(x: cute.Tensor, y: cute.Tensor, turns: cute.Int32):
    loop_kernel(x, y, turns).launch(grid=16, block=256)


@cute.kernel
def product_kernel(a: cute.Tensor, b: cute.Tensor, c: cute.Tensor):
    tx, ty, _ = arch.thread_idx()
    bx, by, _ = arch.block_idx()
    smem = cute.utils.SmemAllocator()
    tile_a = smem.allocate_tensor(cute.Float32, cute.make_layout((16, 16), stride=(16, 1)), 16)
    tile_b = smem.allocate_tensor(cute.Float32, cute.make_layout((16, 16), stride=(16, 1)), 16)
    total = cute.Float32(0)
    for k in range(cute.Int32(8)):
        tile_a[ty, tx] = a[by * 16 + ty, k * 16 + tx]
        tile_b[ty, tx] = b[k * 16 + ty, bx * 16 + tx]
        arch.sync_threads()
        for j in cute.range_constexpr(16):
            total += tile_a[ty, j] * tile_b[j, tx]
        arch.sync_threads()
    c[by * 16 + ty, bx * 16 + tx] = total


@cute.jit
def product(a: cute.Tensor, b: cute.Tensor, c: cute.Tensor):
    product_kernel(a, b, c).launch(grid=(8, 8, 1), block=(16, 16, 1))


@cute.kernel
def histogram_kernel(x: cute.Tensor, y: cute.Tensor):
    i = arch.block_idx()[0] * 256 + arch.thread_idx()[0]
    t = arch.thread_idx()[0]
    bins = cute.utils.SmemAllocator().allocate_tensor(cute.Int32, cute.make_layout((256,)), 16)
    bins[t] = 0
    arch.sync_threads()
    arch.atomic_add(bins.iterator + x[i], 1)
    arch.sync_threads()
    arch.atomic_add(y.iterator + t, bins[t])


@cute.jit
def histogram(x: cute.Tensor, y: cute.Tensor):
    histogram_kernel(x, y).launch(grid=256, block=256)


@cute.kernel
def mma_kernel(
    a: cute.Tensor,
    b: cute.Tensor,
    c: cute.Tensor,
    layout: cute.ComposedLayout,
    mma: cute.TiledMma,
    copy: cute.TiledCopy,
):
    t = arch.thread_idx()[0]
    smem = cute.utils.SmemAllocator()
    tile_a = smem.allocate_tensor(cute.Float16, layout, 128)
    tile_b = smem.allocate_tensor(cute.Float16, layout, 128)
    mine = copy.get_slice(t)
    cute.copy(copy, mine.partition_S(a), mine.partition_D(tile_a))
    cute.copy(copy, mine.partition_S(b), mine.partition_D(tile_b))
    arch.cp_async_commit_group()
    arch.cp_async_wait_group(0)
    arch.sync_threads()
    total = cute.make_rmem_tensor(mma.partition_shape_C((128, 128)), cute.Float32)
    total.fill(0)
    part_a = mma.make_fragment_A(mma.partition_shape_A((128, 64)))
    part_b = mma.make_fragment_B(mma.partition_shape_B((128, 64)))
    load = cute.make_copy_atom(warp.LdMatrix8x8x16bOp(num_matrices=4), cute.Float16)
    load_a, load_b = cute.make_tiled_copy_A(load, mma), cute.make_tiled_copy_B(load, mma)
    for k in cute.range_constexpr(4):
        at = (None, None, k)
        from_a = load_a.get_slice(t).partition_S(tile_a)
        from_b = load_b.get_slice(t).partition_S(tile_b)
        cute.copy(load_a, from_a[at], load_a.retile(part_a)[at])
        cute.copy(load_b, from_b[at], load_b.retile(part_b)[at])
        cute.gemm(mma, total, part_a[at], part_b[at], total)
    cute.autovec_copy(total, mma.get_slice(t).partition_C(c))


@cute.jit
def mma_tile(a: cute.Tensor, b: cute.Tensor, c: cute.Tensor):
    op = warp.MmaF16BF16Op(cute.Float16, cute.Float32, (16, 8, 16))
    mma = cute.make_tiled_mma(op, cute.make_layout((2, 2, 1)), (32, 32, 16))
    rows = cute.make_layout((8, 64), stride=(64, 1))
    atom = cute.make_composed_layout(cute.make_swizzle(3, 3, 3), 0, rows)
    layout = cute.tile_to_shape(atom, (128, 64), (0, 1))
    copy = cute.make_tiled_copy_tv(
        cute.make_copy_atom(cute.nvgpu.cpasync.CopyG2SOp(), cute.Float16, num_bits_per_copy=128),
        cute.make_layout((16, 8), stride=(8, 1)),
        cute.make_layout((1, 8)),
    )
    mma_kernel(a, b, c, layout, mma, copy).launch(grid=1, block=128)


@cute.jit
def wgmma_tile(a: cute.Tensor, b: cute.Tensor, c: cute.Tensor):
    gemm(a, b, c, 1, Config(tile=(128, 128, 64)))


@cute.kernel
def empty_kernel(x: cute.Tensor):
    pass


@cute.jit
def empty(x: cute.Tensor):
    empty_kernel(x).launch(grid=1, block=32)


def numpy_softmax(x):
    wide = np.exp(x - x.max(axis=1, keepdims=True))
    return wide / wide.sum(axis=1, keepdims=True)


_ARRAYS = []  # of the kernels that Triton's interpreter runs too
_BY_TRITON = 3  # calls of it, at most


def triton_peers():
    """Calls of Triton's interpreter by names of kernels; none, and why, without the packages."""
    try:
        from triton_interpreter import peers
    except ImportError as error:
        print(f"Triton's interpreter is left out: {error}\n")
        return {}
    return peers(*_ARRAYS)


def programs():
    """Name, function, arguments, and the same in NumPy or None."""
    rng = np.random.default_rng(0)
    x, y = rng.random(N, np.float32), rng.random(N, np.float32)
    rows = rng.random((256, 1024), np.float32)
    a, b = rng.random((128, 128), np.float32), rng.random((128, 128), np.float32)
    z, out, c = np.zeros_like(x), np.zeros_like(rows), np.zeros_like(a)
    index = rng.integers(0, 256, 1 << 16).astype(np.int32)
    bins = np.zeros(256, np.int32)
    left, right = (rng.random((128, 64), np.float32).astype(np.float16) for _ in range(2))
    tile = np.zeros((128, 128), np.float32)
    half_tile = tile.astype(np.float16)
    small, sums = rng.random(256, np.float32), np.zeros(4096, np.float32)
    wrap = from_dlpack
    _ARRAYS[:] = x, y, z, rows, out, left, right, tile
    return [
        ("launch of nothing", empty, (x[:32],), None),
        ("add of 2^20", add, (x, y, z), lambda: np.add(x, y, out=z)),
        ("scale of 2^20 in place", scale, (z,), lambda: np.multiply(z, 2, out=z)),
        ("softmax 256 x 1024", softmax, (wrap(rows), wrap(out)), lambda: numpy_softmax(rows)),
        ("loop of 200 with 2 barriers, 16 x 256", loop, (small, sums, 200), None),
        ("tiled product of 128^3", product, (wrap(a), wrap(b), wrap(c)), lambda: a @ b),
        (
            "mma.sync tile of 128 x 128 x 64",
            mma_tile,
            (wrap(left, 16), wrap(right, 16), wrap(tile, 16)),
            None,
        ),
        (
            "wgmma tile of 128 x 128 x 64",
            wgmma_tile,
            (left[..., None], right[..., None], half_tile[..., None]),
            None,
        ),
        ("histogram of 2^16", histogram, (index, bins), lambda: np.bincount(index)),
    ]


def seconds(call, clock):
    start = clock()
    call()
    return clock() - start


def main():
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--repeats", type=int, default=25)
    parser.add_argument("--wall", action="store_true")
    parser.add_argument("--only", default="")
    parser.add_argument("--triton", action="store_true")
    asked = parser.parse_args()
    every = programs()
    interpreted = triton_peers() if asked.triton else {}
    print(
        "| kernel | unchecked | checked | ratio | NumPy | checked / NumPy | Triton's interpreter |"
    )
    print("|---|---|---|---|---|---|---|")
    for name, function, args, peer in every:
        if asked.only not in name:
            continue
        variants = [
            cute.compile(function, *args, options=f"--check-races {level}")
            for level in ("off", "error")
        ]
        calls = [lambda run=run, args=args: run(*args) for run in variants]
        if peer is not None:
            calls.append(peer)
        slow = [call for known, call in interpreted.items() if known.startswith(name)]
        for call in calls + slow:
            call()
        clock = time.perf_counter if asked.wall else time.process_time
        best = statistics.median if asked.wall else min
        times, waited = [], []
        for turn in range(asked.repeats):
            times.append([seconds(call, clock) for call in calls])
            if slow and turn < _BY_TRITON:
                waited.append([seconds(call, clock) for call in slow])
        off, on, *other = (best(column) * 1e3 for column in zip(*times, strict=True))
        line = f"| {name} | {off:.3f} ms | {on:.3f} ms | {on / off:.2f} |"
        line += f" {other[0]:.3f} ms | {on / other[0]:.1f} |" if other else " | |"
        peers = [best(column) * 1e3 for column in zip(*waited, strict=True)]
        line += f" {' or '.join(f'{time:.0f} ms' for time in peers)} |"
        print(line, flush=True)


if __name__ == "__main__":
    main()
