"""Speed of the simulator, with its checks and without, against NumPy where that does the same.

`python bench/simulator.py` prints a line for each kernel: medians of alternating runs, the ratio of
checked to unchecked, and the ratio of checked to NumPy. `--repeats` sets how many runs there are.
"""

import argparse
import os
import statistics
import time

os.environ["CUTE_DSL_ARCH"] = "sim"

import numpy as np

import basedsl_cute as cute
from basedsl_cute import arch
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
def empty_kernel(x: cute.Tensor):
    pass


@cute.jit
def empty(x: cute.Tensor):
    empty_kernel(x).launch(grid=1, block=32)


def numpy_softmax(x):
    wide = np.exp(x - x.max(axis=1, keepdims=True))
    return wide / wide.sum(axis=1, keepdims=True)


def programs():
    """Name, function, arguments, and the same in NumPy or None."""
    rng = np.random.default_rng(0)
    x, y = rng.random(N, np.float32), rng.random(N, np.float32)
    rows = rng.random((256, 1024), np.float32)
    a, b = rng.random((128, 128), np.float32), rng.random((128, 128), np.float32)
    z, out, c = np.zeros_like(x), np.zeros_like(rows), np.zeros_like(a)
    index = rng.integers(0, 256, 1 << 16).astype(np.int32)
    bins = np.zeros(256, np.int32)
    small, sums = rng.random(256, np.float32), np.zeros(4096, np.float32)
    wrap = from_dlpack
    return [
        ("launch of nothing", empty, (x[:32],), None),
        ("add of 2^20", add, (x, y, z), lambda: np.add(x, y, out=z)),
        ("scale of 2^20 in place", scale, (z,), lambda: np.multiply(z, 2, out=z)),
        ("softmax 256 x 1024", softmax, (wrap(rows), wrap(out)), lambda: numpy_softmax(rows)),
        ("loop of 200 with 2 barriers, 16 x 256", loop, (small, sums, 200), None),
        ("tiled product of 128^3", product, (wrap(a), wrap(b), wrap(c)), lambda: a @ b),
        ("histogram of 2^16", histogram, (index, bins), lambda: np.bincount(index)),
    ]


def seconds(call):
    start = time.perf_counter()
    call()
    return time.perf_counter() - start


def main():
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--repeats", type=int, default=7)
    parser.add_argument("--only", default="")
    asked = parser.parse_args()
    print("| kernel | unchecked | checked | ratio | NumPy | checked / NumPy |")
    print("|---|---|---|---|---|---|")
    for name, function, args, peer in programs():
        if asked.only not in name:
            continue
        variants = [
            cute.compile(function, *args, options=f"--check-races {level}")
            for level in ("off", "error")
        ]
        calls = [lambda run=run, args=args: run(*args) for run in variants]
        if peer is not None:
            calls.append(peer)
        for call in calls:
            call()
        times = [[seconds(call) for call in calls] for _ in range(asked.repeats)]
        off, on, *other = (statistics.median(column) * 1e3 for column in zip(*times, strict=True))
        line = f"| {name} | {off:.3f} ms | {on:.3f} ms | {on / off:.2f} |"
        line += f" {other[0]:.3f} ms | {on / other[0]:.1f} |" if other else " | |"
        print(line, flush=True)


if __name__ == "__main__":
    main()
