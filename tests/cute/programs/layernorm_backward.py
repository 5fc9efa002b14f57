"""Gradients of layer normalisation: of the input by rows, of the parameters by atomic additions."""

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

import basedsl_cute as cute
import basedsl_cute as cutlass
from basedsl_cute import Float32
from basedsl_cute.runtime import from_dlpack


class Grads(NamedTuple):
    dgamma: cute.Tensor
    dbeta: cute.Tensor


@dataclass(frozen=True)
class Config:
    N: int
    rows_per_block: int = 4
    threads: int = 64
    vec: int = 4


def warp_sum(x):
    return cute.arch.warp_reduction_sum(x)


@cute.jit
def block_sum2(a: Float32, b: Float32, buf: cute.Tensor):
    lane, wid = cute.arch.lane_idx(), cute.arch.warp_idx()
    a, b = warp_sum(a), warp_sum(b)
    if lane == 0:
        buf[wid, 0] = a
        buf[wid, 1] = b
    cute.arch.sync_threads()
    ra, rb = Float32(0), Float32(0)
    for w in cutlass.range_constexpr(buf.shape[0]):
        ra += buf[w, 0]
        rb += buf[w, 1]
    cute.arch.sync_threads()
    return ra, rb


@cute.kernel
def ln_bwd_kernel(
    mDy: cute.Tensor,
    mX: cute.Tensor,
    mGamma: cute.Tensor,
    mMean: cute.Tensor | None,
    mRstd: cute.Tensor,
    mDx: cute.Tensor,
    grads: Grads,
    cfg: cutlass.Constexpr[Config],
):
    tidx, _, _ = cute.arch.thread_idx()
    bidx, _, _ = cute.arch.block_idx()
    smem = cutlass.utils.SmemAllocator()
    buf = smem.allocate_tensor(Float32, cute.make_layout((cfg.threads // 32, 2)), 16)
    tiler_mn, tv = cute.make_layout_tv(
        cute.make_ordered_layout((1, cfg.threads), order=(1, 0)),
        cute.make_ordered_layout((1, cfg.vec), order=(1, 0)),
    )
    atom = cute.make_copy_atom(cute.nvgpu.CopyUniversalOp(), mX.element_type)
    tiled = cute.make_tiled_copy(atom, tv, tiler_mn)
    thr = tiled.get_slice(tidx)
    N = cfg.N
    gam = thr.partition_S(cute.prepend(mGamma, cute.make_layout(1, stride=0)))
    rG = cute.make_rmem_tensor(gam.shape, Float32)
    rG.store(gam.load().to(Float32))
    acc_g = cute.make_rmem_tensor_like(rG)
    acc_b = cute.make_rmem_tensor_like(rG)
    acc_g.fill(0.0)
    acc_b.fill(0.0)
    for r in cutlass.range(cfg.rows_per_block):
        row = bidx * cfg.rows_per_block + r
        if row < mX.shape[0]:
            gX = cute.local_tile(mX, (1, N), (row, 0))
            gDy = cute.local_tile(mDy, (1, N), (row, 0))
            gDx = cute.local_tile(mDx, (1, N), (row, 0))
            x = thr.partition_S(gX).load().to(Float32)
            dy = thr.partition_S(gDy).load().to(Float32)
            rstd = mRstd[row]
            mean = mMean[row] if cutlass.const_expr(mMean is not None) else Float32(0)
            xhat = (x - mean) * rstd
            wdy = dy * rG.load()
            c1, c2 = block_sum2(
                (wdy * xhat).reduce(cute.ReductionOp.ADD, 0.0, 0),
                wdy.reduce(cute.ReductionOp.ADD, 0.0, 0),
                buf,
            )
            c1 = c1 / N
            c2 = c2 / N
            if cutlass.const_expr(mMean is None):
                c2 = Float32(0)
            dx = (wdy - (xhat * c1 + c2)) * rstd
            thr.partition_D(gDx).store(dx.to(mDx.element_type))
            acc_g.store(acc_g.load() + dy * xhat)
            acc_b.store(acc_b.load() + dy)
    coords = thr.partition_S(cute.make_identity_tensor((1, N)))
    for i in cutlass.range(cute.size(acc_g), unroll_full=True):
        col = coords[i][1]
        cute.arch.atomic_add((grads.dgamma.iterator + col).llvm_ptr, acc_g[i])
        cute.arch.atomic_add((grads.dbeta.iterator + col).llvm_ptr, acc_b[i])


@cute.jit
def ln_bwd(
    mDy: cute.Tensor,
    mX: cute.Tensor,
    mGamma: cute.Tensor,
    mMean: cute.Tensor | None,
    mRstd: cute.Tensor,
    mDx: cute.Tensor,
    grads: Grads,
    cfg: cutlass.Constexpr[Config],
):
    ln_bwd_kernel(mDy, mX, mGamma, mMean, mRstd, mDx, grads, cfg).launch(
        grid=[cute.ceil_div(mX.shape[0], cfg.rows_per_block), 1, 1], block=[cfg.threads, 1, 1]
    )


def check(rows=10, N=512, dt=np.float32, rms=False):
    rng = np.random.default_rng(0)
    x, dy = (rng.standard_normal((rows, N)).astype(dt) for _ in range(2))
    g = rng.standard_normal(N).astype(np.float32)
    X, DY = x.astype(np.float64), dy.astype(np.float64)
    mean = np.zeros(rows) if rms else X.mean(1)
    rstd = 1 / np.sqrt(((X - mean[:, None]) ** 2).mean(1) + 1e-5)
    dx = np.zeros_like(x)
    dg, db = np.zeros(N, np.float32), np.zeros(N, np.float32)
    mean32, rstd32 = mean.astype(np.float32), rstd.astype(np.float32)
    D = from_dlpack
    grads = Grads(D(dg), D(db))
    args = (
        D(dy, assumed_align=16).mark_compact_shape_dynamic(mode=0, stride_order=(0, 1)),
        D(x, assumed_align=16).mark_compact_shape_dynamic(mode=0, stride_order=(0, 1)),
        D(g),
        None if rms else D(mean32).mark_layout_dynamic(),
        D(rstd32).mark_layout_dynamic(),
        D(dx, assumed_align=16).mark_compact_shape_dynamic(mode=0, stride_order=(0, 1)),
        grads,
    )
    f = cute.compile(ln_bwd, *args, Config(N))
    f(*args)
    xhat = (X - mean[:, None]) * rstd[:, None]
    w = DY * g
    want = (
        w - xhat * (w * xhat).mean(1, keepdims=True) - (0 if rms else w.mean(1, keepdims=True))
    ) * rstd[:, None]
    np.testing.assert_allclose(dx, want, atol=2e-2 if dt == np.float16 else 1e-4)
    np.testing.assert_allclose(dg, (DY * xhat).sum(0), atol=1e-3, rtol=1e-3)
    np.testing.assert_allclose(db, DY.sum(0), atol=1e-3, rtol=1e-3)


def run():
    check()
    check(rows=1, N=256, dt=np.float16)
    check(rms=True)
