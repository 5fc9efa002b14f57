"""One problem a thread, its data in registers: Cholesky, Gauss-Jordan, loops of unknown length."""

import numpy as np

import basedsl_cute as cute
import basedsl_cute as cutlass
from basedsl_cute import Float32, Int32, range_constexpr
from basedsl_cute.runtime import from_dlpack


@cute.kernel
def cholesky(A: cute.Tensor, b: cute.Tensor, x: cute.Tensor, n: cutlass.Constexpr[int]):
    i = cute.arch.block_idx()[0] * cute.arch.block_dim()[0] + cute.arch.thread_idx()[0]
    if i < A.shape[0]:
        L = cute.make_rmem_tensor((n, n), A.element_type)
        for r in range_constexpr(n):
            for c in range_constexpr(r + 1):
                s = A[i, r, c]
                for k in range_constexpr(c):
                    s -= L[r, k] * L[c, k]
                if cutlass.const_expr(r == c):
                    L[r, c] = cute.math.sqrt(s)
                else:
                    L[r, c] = s / L[c, c]
        y = [b[i, r] for r in range_constexpr(n)]
        for r in range_constexpr(n):
            for k in range_constexpr(r):
                y[r] = y[r] - L[r, k] * y[k]
            y[r] = y[r] / L[r, r]
        for r in range_constexpr(n - 1, -1, -1):
            for k in range_constexpr(r + 1, n):
                y[r] = y[r] - L[k, r] * y[k]
            y[r] = y[r] / L[r, r]
            x[i, r] = y[r]


@cute.jit
def solve(A: cute.Tensor, b: cute.Tensor, x: cute.Tensor):
    cholesky(A, b, x, A.shape[1]).launch(grid=cute.ceil_div(A.shape[0], 32), block=32)


@cute.kernel
def inverse(A: cute.Tensor, out: cute.Tensor, singular: cute.Tensor, n: cutlass.Constexpr[int]):
    i = cute.arch.thread_idx()[0] + cute.arch.block_idx()[0] * 32
    if i < A.shape[0]:
        w = cute.make_rmem_tensor((n, 2 * n), Float32)
        for r in range(n):
            for c in range(n):
                w[r, c] = A[i, r, c]
                w[r, c + n] = Float32(1) if r == c else Float32(0)
        bad = False
        for c in range(n):
            # pivot
            best, at = Float32(-1), c
            for r in range(c, n):
                v = cute.math.absf(w[r, c])
                if v > best:
                    best, at = v, r
            if best < 1e-9:
                bad = True
                break
            if at != c:
                for j in range(2 * n):
                    w[c, j], w[at, j] = w[at, j], w[c, j]
            inv = 1.0 / w[c, c]
            for j in range(2 * n):
                w[c, j] *= inv
            for r in range(n):
                if r != c:
                    f = w[r, c]
                    for j in range(2 * n):
                        w[r, j] -= f * w[c, j]
        singular[i] = Int32(1) if bad else Int32(0)
        if not bad:
            for r in range(n):
                for c in range(n):
                    out[i, r, c] = w[r, n + c]


@cute.jit
def invert(A: cute.Tensor, out: cute.Tensor, singular: cute.Tensor):
    inverse(A, out, singular, A.shape[1]).launch(
        grid=[cute.ceil_div(A.shape[0], 32), 1, 1], block=[32, 1, 1]
    )


@cute.jit
def escape(cx: Float32, cy: Float32, limit: Int32):
    zx, zy = Float32(0), Float32(0)
    n = 0
    while n < limit and zx * zx + zy * zy <= 4.0:
        zx, zy = zx * zx - zy * zy + cx, 2.0 * zx * zy + cy
        n += 1
    return n


@cute.kernel
def mandel(img: cute.Tensor, limit: Int32):
    bx, by, _ = cute.arch.block_idx()
    tx, ty, _ = cute.arch.thread_idx()
    x, y = bx * 8 + tx, by * 8 + ty
    h, w = img.shape
    if not (x < w and y < h):
        return
    img[y, x] = escape(-2.0 + 3.0 * x / w, -1.5 + 3.0 * y / h, limit)


@cute.jit
def mandelbrot(img: cute.Tensor, limit: Int32):
    h, w = img.shape
    mandel(img, limit).launch(grid=(cute.ceil_div(w, 8), cute.ceil_div(h, 8), 1), block=(8, 8, 1))


@cute.kernel
def collatz_kernel(start: cute.Tensor, steps: cute.Tensor, peak: cute.Tensor):
    i = cute.arch.thread_idx()[0]
    n = start[i]
    count, top = 0, n
    while n != 1:
        n = n // 2 if n % 2 == 0 else 3 * n + 1
        top = max(top, n)
        count += 1
        if count > 1000:
            break
    else:
        peak[i] = top
    steps[i] = count


@cute.jit
def collatz(start: cute.Tensor, steps: cute.Tensor, peak: cute.Tensor):
    collatz_kernel(start, steps, peak).launch(grid=1, block=start.shape[0])


def run_solve(m=40, n=5, dt=np.float32):
    rng = np.random.default_rng(0)
    a = rng.standard_normal((m, n, n))
    a = (a @ a.transpose(0, 2, 1) + n * np.eye(n)).astype(dt)
    b = rng.standard_normal((m, n)).astype(dt)
    x = np.zeros_like(b)
    solve(from_dlpack(a), from_dlpack(b), from_dlpack(x))
    np.testing.assert_allclose(
        x, np.linalg.solve(a.astype(np.float64), b[..., None])[..., 0], rtol=1e-3, atol=1e-4
    )


def run_inv(m=33, n=4):
    rng = np.random.default_rng(0)
    a = rng.standard_normal((m, n, n)).astype(np.float32)
    a[3] = 0
    a[5, 0, 0] = 0
    out, s = np.zeros_like(a), np.zeros(m, np.int32)
    invert(from_dlpack(a), from_dlpack(out), from_dlpack(s))
    assert s[3] == 1 and s.sum() == 1
    ok = s == 0
    np.testing.assert_allclose(
        out[ok] @ a[ok], np.broadcast_to(np.eye(n), (ok.sum(), n, n)), atol=1e-2
    )


def run_mandel(h=20, w=30, limit=50):
    img = np.zeros((h, w), np.int32)
    mandelbrot(from_dlpack(img).mark_layout_dynamic(1), limit)
    want = np.zeros_like(img)
    f = np.float32
    for y in range(h):
        for x in range(w):
            cx, cy = f(-2) + f(3) * f(x) / f(w), f(-1.5) + f(3) * f(y) / f(h)
            zx = zy = f(0)
            n = 0
            while n < limit and zx * zx + zy * zy <= 4:
                zx, zy = zx * zx - zy * zy + cx, f(2) * zx * zy + cy
                n += 1
            want[y, x] = n
    np.testing.assert_array_equal(img, want)


def run_collatz():
    s = np.arange(1, 65).astype(np.int64)
    st = np.zeros(64, np.int32)
    pk = np.zeros(64, np.int64)
    collatz(s, st, pk)
    for i, n in enumerate(s):
        c, t = 0, n
        while n != 1:
            n = n // 2 if n % 2 == 0 else 3 * n + 1
            t = max(t, n)
            c += 1
        assert (st[i], pk[i]) == (c, t), (i, st[i], pk[i], c, t)


def run():
    run_solve()
    run_solve(dt=np.float64, n=3)
    run_inv()
    run_mandel()
    run_collatz()
