"""Convolutions: an image seen as a matrix through a layout, a ring in registers, gathers."""

import numpy as np

import basedsl_cute as cute
import basedsl_cute as cutlass
from basedsl_cute.runtime import from_dlpack


@cute.jit
def im2col_view(
    x: cute.Tensor, filt: cutlass.Constexpr, stride: cutlass.Constexpr, out_hw: cutlass.Constexpr
):
    """x: (N, H, W, C) static -> ((N, P, Q), (R, S, C)), overlapping windows."""
    n, _, _, c = x.shape
    sn, sh, sw, sc = x.stride
    r, s = filt
    p, q = out_hw
    layout = cute.make_layout(
        ((q, p, n), (c, s, r)), stride=((sw * stride, sh * stride, sn), (sc, sw, sh))
    )
    return cute.make_tensor(x.iterator, layout)


@cute.kernel
def conv_kernel(act: cute.Tensor, wgt: cute.Tensor, out: cute.Tensor, tiler: cutlass.Constexpr):
    tid, _, _ = cute.arch.thread_idx()
    bx, by, _ = cute.arch.block_idx()
    M, N, K = tiler
    mma = cute.make_tiled_mma(cute.nvgpu.MmaUniversalOp(cutlass.Float32), (8, 8, 1))
    thr = mma.get_slice(tid)
    MM, KK, NN = cute.size(act, mode=[0]), cute.size(act, mode=[1]), cute.size(wgt, mode=[0])
    smem = cutlass.utils.SmemAllocator()
    sA = smem.allocate_tensor(act.element_type, cute.make_layout((M, K), stride=(1, M + 1)))
    sB = smem.allocate_tensor(wgt.element_type, cute.make_layout((N, K), stride=(1, N + 1)))
    acc = mma.make_fragment_C(mma.partition_shape_C((M, N)))
    acc.fill(0.0)
    for k in cutlass.range(cute.ceil_div(KK, K)):
        for i in cutlass.range(tid, M * K, 64):
            m, kk = i % M, i // M
            at = (bx * M + m, k * K + kk)
            sA[m, kk] = act[at] if cute.elem_less(at, (MM, KK)) else cutlass.Float32(0)
        for i in cutlass.range(tid, N * K, 64):
            nn, kk = i % N, i // N
            ok = by * N + nn < NN and k * K + kk < KK
            sB[nn, kk] = wgt[by * N + nn, k * K + kk] if ok else cutlass.Float32(0)
        cute.arch.sync_threads()
        tA, tB = thr.partition_A(sA), thr.partition_B(sB)
        rA, rB = mma.make_fragment_A(tA), mma.make_fragment_B(tB)
        cute.basic_copy(tA, rA)
        cute.basic_copy(tB, rB)
        cute.gemm(mma, acc, rA, rB, acc)
        cute.arch.sync_threads()
    cC = thr.partition_C(cute.make_identity_tensor((M, N)))
    for i in cutlass.range_constexpr(cute.size(acc)):
        at = (bx * M + cC[i][0], by * N + cC[i][1])
        if cute.elem_less(at, (MM, NN)):
            out[at] = acc[i]


@cute.jit
def conv2d(x: cute.Tensor, w: cute.Tensor, y: cute.Tensor, stride: cutlass.Constexpr[int]):
    n, p, q, k = y.shape
    kk, r, s, c = w.shape
    act = im2col_view(x, (r, s), stride, (p, q))
    wgt = cute.make_tensor(
        w.iterator,
        cute.make_layout(
            (kk, (c, s, r)), stride=(w.stride[0], (w.stride[3], w.stride[2], w.stride[1]))
        ),
    )
    out = cute.make_tensor(
        y.iterator,
        cute.make_layout(
            ((q, p, n), k), stride=((y.stride[2], y.stride[1], y.stride[0]), y.stride[3])
        ),
    )
    tiler = (16, 16, 8)
    conv_kernel(act, wgt, out, tiler).launch(
        grid=(*cute.ceil_div((cute.size(out, mode=[0]), cute.size(out, mode=[1])), tiler[:2]), 1),
        block=(64, 1, 1),
    )


@cute.kernel
def dw_kernel(x: cute.Tensor, w: cute.Tensor, y: cute.Tensor, ring: cutlass.Constexpr):
    """Causal, by channels: a thread has the last `ring` values of its channel."""
    ch = cute.arch.block_idx()[0] * 32 + cute.arch.thread_idx()[0]
    b = cute.arch.block_idx()[1]
    _, L, C = x.shape
    if ch < C:
        taps = [w[ch, j] for j in cutlass.range_constexpr(ring)]
        hist = [cutlass.Float32(0)] * ring
        for t in cutlass.range(L):
            for j in cutlass.range_constexpr(ring - 1):
                hist[j] = hist[j + 1]
            hist[ring - 1] = x[b, t, ch].to(cutlass.Float32)
            s = cutlass.Float32(0)
            for h, tap in zip(hist, taps, strict=True):
                s = s + h * tap
            silu = s / (1.0 + cute.math.exp(-s))
            y[b, t, ch] = silu.to(y.element_type)


@cute.jit
def dwconv(x: cute.Tensor, w: cute.Tensor, y: cute.Tensor):
    dw_kernel(x, w, y, w.shape[1]).launch(
        grid=(cute.ceil_div(x.shape[2], 32), x.shape[0], 1), block=(32, 1, 1)
    )


@cute.kernel
def deconv_kernel(
    x: cute.Tensor,
    w: cute.Tensor,
    y: cute.Tensor,
    stride: cutlass.Constexpr,
    pad: cutlass.Constexpr,
):
    """Transposed conv 1d by gather: y[o, t] = sum_{c,k} x[c, (t + pad - k) / stride] w[c, o, k]."""
    t = cute.arch.block_idx()[0] * 32 + cute.arch.thread_idx()[0]
    o = cute.arch.block_idx()[1]
    if t >= y.shape[1]:
        return
    acc = cutlass.Float32(0)
    for k in cutlass.range(w.shape[2]):
        pos = t + pad - k
        if pos < 0 or pos % stride != 0:
            continue
        src = pos // stride
        if src >= x.shape[1]:
            continue
        for c in cutlass.range(x.shape[0]):
            acc += x[c, src] * w[c, o, k]
    y[o, t] = acc


@cute.jit
def deconv(
    x: cute.Tensor,
    w: cute.Tensor,
    y: cute.Tensor,
    stride: cutlass.Constexpr,
    pad: cutlass.Constexpr = 0,
):
    deconv_kernel(x, w, y, stride, pad).launch(
        grid=[cute.ceil_div(y.shape[1], 32), y.shape[0], 1], block=[32, 1, 1]
    )


def run_conv(n=2, h=9, w=7, c=3, k=5, r=3, s=3, stride=1):
    rng = np.random.default_rng(0)
    x = rng.integers(-3, 4, (n, h, w, c)).astype(np.float32)
    f = rng.integers(-3, 4, (k, r, s, c)).astype(np.float32)
    p, q = (h - r) // stride + 1, (w - s) // stride + 1
    y = np.zeros((n, p, q, k), np.float32)
    conv2d(from_dlpack(x), from_dlpack(f), from_dlpack(y), stride)
    win = np.lib.stride_tricks.sliding_window_view(x, (r, s), (1, 2))[:, ::stride, ::stride]
    np.testing.assert_array_equal(y, np.einsum("npqcrs,krsc->npqk", win, f))


def run_dw(b=2, l=20, c=40, k=4):
    rng = np.random.default_rng(0)
    x = rng.standard_normal((b, l, c)).astype(np.float16)
    w = rng.standard_normal((c, k)).astype(np.float32)
    y = np.zeros_like(x)
    dwconv(
        from_dlpack(x).mark_layout_dynamic(), from_dlpack(w), from_dlpack(y).mark_layout_dynamic()
    )
    xp = np.pad(x.astype(np.float64), ((0, 0), (k - 1, 0), (0, 0)))
    s = sum(xp[:, j : j + l] * w[:, j] for j in range(k))
    np.testing.assert_allclose(y, s / (1 + np.exp(-s)), atol=5e-3)


def run_deconv(ci=3, co=4, l=10, k=4, stride=2, pad=1):
    rng = np.random.default_rng(0)
    x = rng.integers(-3, 4, (ci, l)).astype(np.float32)
    w = rng.integers(-3, 4, (ci, co, k)).astype(np.float32)
    L = (l - 1) * stride - 2 * pad + k
    y = np.full((co, L), 99, np.float32)
    deconv(x, w, y, stride, pad)
    full = np.zeros((co, (l - 1) * stride + k), np.float32)
    for i in range(l):
        full[:, i * stride : i * stride + k] += np.einsum("c,cok->ok", x[:, i], w)
    np.testing.assert_array_equal(y, full[:, pad : pad + L])


def run():
    run_conv()
    run_conv(stride=2)
    run_dw()
    run_deconv()
    run_deconv(stride=3, k=5, pad=2)
