"""Products with 4-bit weights: unpacked by bit tricks, or read as tensors of Int4."""

import numpy as np

import basedsl_cute as cute
import basedsl_cute as cutlass
from basedsl_cute import Float16, Float32, Int4, Int32, Uint32
from basedsl_cute.runtime import from_dlpack


@cute.jit
def unpack8(word: Uint32):
    """Eight unsigned nibbles of a word as f16, through 0x6400 | n = 1024 + n, in pairs."""
    out = cute.make_rmem_tensor((8,), Float16)
    pairs = cute.recast_tensor(out, Uint32)
    for j in cutlass.range_constexpr(4):
        # nibbles j and j+4 are neighbours after interleaving
        pairs[j] = ((word >> Uint32(4 * j)) & Uint32(0x000F000F)) | Uint32(0x64006400)
    return out.load() - Float16(1024.0)


@cute.kernel
def w4a16(
    x: cute.Tensor,
    qw: cute.Tensor,
    scales: cute.Tensor,
    zeros: cute.Tensor,
    y: cute.Tensor,
    group: cutlass.Constexpr[int],
):
    """A warp per (row of W, batch row). qw: (N, K/8) uint32; scales, zeros: (N, K/group)."""
    lane, wid = cute.arch.lane_idx(), cute.arch.warp_idx()
    n = cute.arch.block_idx()[0] * 2 + wid
    m = cute.arch.block_idx()[1]
    if n < qw.shape[0]:
        acc = Float32(0)
        words = qw.shape[1]
        for w in cutlass.range(lane, words, 32):
            k = w * 8
            vals = unpack8(qw[n, w])
            xs = cute.local_tile(x, (1, 8), (m, w))
            xv = cute.make_rmem_tensor((8,), Float16)
            cute.autovec_copy(cute.group_modes(xs, 0, 2), xv)
            g = k // group
            deq = (vals - zeros[n, g]) * scales[n, g]
            prod = deq.to(Float32) * xv.load().to(Float32)
            acc += prod.reduce(cute.ReductionOp.ADD, Float32(0), 0)
        acc = cute.arch.warp_reduction_sum(acc)
        if lane == 0:
            y[m, n] = acc.to(y.element_type)


@cute.jit
def linear(
    x: cute.Tensor,
    qw: cute.Tensor,
    scales: cute.Tensor,
    zeros: cute.Tensor,
    y: cute.Tensor,
    group: cutlass.Constexpr[int],
):
    w4a16(x, qw, scales, zeros, y, group).launch(
        grid=[cute.ceil_div(qw.shape[0], 2), x.shape[0], 1], block=[64, 1, 1]
    )


@cute.kernel
def int4_kernel(q: cute.Pointer, s: cute.Tensor, out: cute.Tensor, shape: cute.Shape):
    """Dequantise signed int4 read through an Int4 tensor view."""
    t = cute.make_tensor(q, cute.make_layout(shape, stride=(shape[1], 1)))
    i = cute.arch.thread_idx()[0] + cute.arch.block_idx()[0] * 32
    rows, cols = shape
    if i < rows:
        for c in cutlass.range(cols // 8):
            frag = cute.make_rmem_tensor((8,), Int4)
            cute.autovec_copy(cute.local_tile(t, (1, 8), (i, c))[0, None], frag)
            v = frag.load().to(Float16) * s[i]
            cute.local_tile(out, (1, 8), (i, c))[0, None].store(v)


@cute.jit
def dequant(q: cute.Tensor, s: cute.Tensor, out: cute.Tensor, rows: Int32, cols: cutlass.Constexpr):
    q4 = cute.recast_ptr(q.iterator, dtype=Int4)
    int4_kernel(q4, s, out, (rows, cols)).launch(
        grid=(cute.ceil_div(rows, 32), 1, 1), block=(32, 1, 1)
    )


def run_packed(m=3, n=9, k=512, group=64):
    rng = np.random.default_rng(0)
    q = rng.integers(0, 16, (n, k)).astype(np.uint32)
    # Nibbles j and j + 4 of a word are neighbours.
    packed = np.zeros((n, k // 8), np.uint32)
    for j in range(4):
        packed |= q[:, 2 * j :: 8] << np.uint32(4 * j)
        packed |= q[:, 2 * j + 1 :: 8] << np.uint32(4 * (j + 4))
    s = (2.0 ** rng.integers(-4, 0, (n, k // group))).astype(np.float16)
    z = rng.integers(0, 16, (n, k // group)).astype(np.float16)
    x = rng.integers(-3, 4, (m, k)).astype(np.float16)
    y = np.zeros((m, n), np.float32)
    linear(
        *(from_dlpack(t, assumed_align=16).mark_layout_dynamic(1) for t in (x, packed, s, z, y)),
        group,
    )
    W = (q.astype(np.float32) - np.repeat(z.astype(np.float32), group, 1)) * np.repeat(
        s.astype(np.float32), group, 1
    )
    np.testing.assert_allclose(y, x.astype(np.float32) @ W.T, rtol=1e-5)


def run_int4(rows=40, cols=16):
    rng = np.random.default_rng(0)
    v = rng.integers(-8, 8, (rows, cols))
    b = ((v[:, 0::2] & 15) | ((v[:, 1::2] & 15) << 4)).astype(np.uint8)
    s = (2.0 ** rng.integers(-2, 2, rows)).astype(np.float16)
    out = np.zeros((rows, cols), np.float16)
    dequant(
        from_dlpack(b, assumed_align=16),
        from_dlpack(s),
        from_dlpack(out, assumed_align=16),
        rows,
        cols,
    )
    np.testing.assert_array_equal(out, (v * s[:, None]).astype(np.float16))


def run():
    run_packed()
    run_packed(group=128, k=256, n=2)
    run_int4()
