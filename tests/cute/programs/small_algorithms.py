"""Small algorithms of a thread or a block: checksums, edit distances, Fourier transforms in
registers, searches that stop early.
"""

import math
import zlib

import numpy as np

import basedsl_cute as cutlass
import basedsl_cute.cute as cute


@cute.kernel
def checksum_kernel(data: cute.Tensor, out: cute.Tensor):
    row = cute.arch.thread_idx()[0]
    crc = cutlass.Uint32(0xFFFFFFFF)
    for i in range(data.shape[1]):
        crc ^= cutlass.Uint32(data[row, i])
        for _ in cutlass.range_constexpr(8):
            crc = (crc >> 1) ^ (cutlass.Uint32(0xEDB88320) if crc & 1 else cutlass.Uint32(0))
    out[row] = ~crc


@cute.jit
def checksums(data: cute.Tensor, out: cute.Tensor):
    checksum_kernel(data, out).launch(grid=1, block=32)


@cute.kernel
def distance_kernel(a: cute.Tensor, b: cute.Tensor, out: cute.Tensor):
    """Three diagonals of the table of distances are kept in turns."""
    i = cute.arch.thread_idx()[0]
    storage = cute.arch.alloc_smem(cutlass.Int32, 3 * 33)
    diagonals = cute.make_tensor(storage, cute.make_layout((3, 33), stride=(33, 1)))
    n, m = cute.size(a), cute.size(b)
    for d in cutlass.range(0, n + m + 1, unroll=1):
        now, last, before = d % 3, (d + 2) % 3, (d + 1) % 3
        j = d - i
        if i <= n and j >= 0 and j <= m:
            if i == 0:
                diagonals[now, i] = j
            elif j == 0:
                diagonals[now, i] = i
            else:
                changed = diagonals[before, i - 1] + (0 if a[i - 1] == b[j - 1] else 1)
                shorter = cutlass.min(diagonals[last, i], diagonals[last, i - 1]) + 1
                diagonals[now, i] = cutlass.min(changed, shorter)
            if i == n and j == m:
                out[0] = diagonals[now, i]
        cute.arch.sync_threads()


@cute.jit
def distance(a: cute.Tensor, b: cute.Tensor, out: cute.Tensor):
    distance_kernel(a, b, out).launch(grid=1, block=64)


def edit_distance(a, b):
    row = list(range(len(b) + 1))
    for i, x in enumerate(a):
        last, row[0] = row[0], i + 1
        for j, y in enumerate(b):
            last, row[j + 1] = row[j + 1], min(last + (x != y), row[j + 1] + 1, row[j] + 1)
    return row[-1]


@cute.kernel
def fourier_kernel(x: cute.Tensor, out: cute.Tensor):
    """Eight points of a thread, by decimation in time; the loops run while it is traced."""
    t = cute.arch.thread_idx()[0]
    z = [(x[t, i, 0], x[t, i, 1]) for i in (0, 4, 2, 6, 1, 5, 3, 7)]
    span = 1
    while span < 8:
        for start in range(0, 8, 2 * span):
            for q in range(span):
                wr, wi = math.cos(-math.pi * q / span), math.sin(-math.pi * q / span)
                (ar, ai), (br, bi) = z[start + q], z[start + q + span]
                tr, ti = br * wr - bi * wi, br * wi + bi * wr
                z[start + q], z[start + q + span] = (ar + tr, ai + ti), (ar - tr, ai - ti)
        span *= 2
    for i, (re, im) in enumerate(z):
        out[t, i, 0], out[t, i, 1] = re, im


@cute.jit
def fourier(x: cute.Tensor, out: cute.Tensor):
    fourier_kernel(x, out).launch(grid=1, block=32)


@cute.jit
def band(value: cutlass.Int32, limits: cutlass.Constexpr):
    for i, limit in enumerate(limits):
        if value < limit:
            return cutlass.Int32(i)
    return cutlass.Int32(len(limits))


@cute.kernel
def search_kernel(x: cute.Tensor, bands: cute.Tensor, first: cute.Tensor):
    """The first larger number, leaving out those that are smaller by 3 or more."""
    t = cute.arch.thread_idx()[0]
    bands[t] = band(x[t], (-5, 0, 3))
    found = cutlass.Int32(-1)
    for i in range(cute.size(x)):
        if x[i] <= x[t] - 3:
            continue
        if x[i] > x[t]:
            found = i
            break
    else:
        found = cutlass.Int32(99)
    first[t] = found
    if x[t] > 5:
        return
    bands[t] = bands[t] + 10


@cute.jit
def search(x: cute.Tensor, bands: cute.Tensor, first: cute.Tensor):
    search_kernel(x, bands, first).launch(grid=1, block=32)


def run():
    rng = np.random.default_rng(0)
    data = rng.integers(0, 256, (32, 13)).astype(np.uint8)
    sums = np.zeros(32, np.uint32)
    checksums(data, sums)
    np.testing.assert_array_equal(sums, [zlib.crc32(row.tobytes()) for row in data])

    for n, m in ((3, 25), (29, 4), (17, 18)):
        a, b = (rng.integers(0, 4, size).astype(np.int32) for size in (n, m))
        out = np.zeros(1, np.int32)
        distance(a, b, out)
        assert out[0] == edit_distance(a.tolist(), b.tolist())

    x = rng.standard_normal((32, 8, 2)).astype(np.float32)
    out = np.zeros_like(x)
    fourier(x, out)
    exact = np.fft.fft(x[..., 0] + 1j * x[..., 1])
    np.testing.assert_allclose(out[..., 0] + 1j * out[..., 1], exact, rtol=1e-4, atol=1e-4)

    x = rng.integers(-9, 9, 32).astype(np.int32)
    bands, first = np.zeros(32, np.int32), np.zeros(32, np.int32)
    search(x, bands, first)
    which = np.digitize(x, [-5, 0, 3])
    np.testing.assert_array_equal(bands, np.where(x > 5, which, which + 10))
    larger = [next((i for i in range(32) if x[i] > value), 99) for value in x]
    np.testing.assert_array_equal(first, larger)
