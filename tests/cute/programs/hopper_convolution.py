"""Convolutions on Hopper: TMA loads shifted tiles of pixels, zeros around the image."""

import numpy as np

import basedsl_cute as cute
import basedsl_cute as cutlass
import basedsl_cute.pipeline as pipeline
import basedsl_cute.utils as utils
import basedsl_cute.utils.hopper_helpers as sm90_utils
from basedsl_cute.nvgpu import cpasync, warpgroup
from basedsl_cute.runtime import from_dlpack


class Conv:
    """out[n, p, q, k] = the sum over r, s, c of x[n, p + r - pad, q + s - pad, c] w[k, r, s, c]."""

    P, Q, KO, CI, stages = 8, 8, 64, 64, 3

    def __init__(self, rs=(3, 3), pad=1):
        self.rs, self.pad = rs, pad

    @cute.jit
    def __call__(self, x: cute.Tensor, w: cute.Tensor, y: cute.Tensor):
        xc = cute.make_tensor(x.iterator, cute.select(x.layout, mode=[2, 1, 3, 0]))  # (W, H, C, N)
        wk = cute.make_tensor(w.iterator, cute.select(w.layout, mode=[0, 3, 2, 1]))
        dt = x.element_type
        self.dt = dt
        tile = (self.P * self.Q, self.KO, self.CI)
        sa = sm90_utils.make_smem_layout_a(utils.LayoutEnum.ROW_MAJOR, tile, dt, self.stages)
        sb = sm90_utils.make_smem_layout_b(utils.LayoutEnum.ROW_MAJOR, tile, dt, self.stages)
        mma = sm90_utils.make_trivial_tiled_mma(
            dt,
            dt,
            warpgroup.OperandMajorMode.K,
            warpgroup.OperandMajorMode.K,
            cutlass.Float32,
            (1, 1, 1),
            tiler_mn=(64, self.KO),
        )
        op = cpasync.CopyBulkTensorTileG2SOp()
        tma_x, mX = cpasync.make_tiled_tma_atom(
            op, xc, cute.slice_(sa, (None, None, 0)), (self.Q, self.P, self.CI, 1)
        )
        tma_w, mW = cpasync.make_tiled_tma_atom(
            op, wk, cute.slice_(sb, (None, None, 0)), (self.KO, self.CI, 1, 1)
        )
        n, p, q, k = y.shape
        self.kernel(
            tma_x, mX, tma_w, mW, y, mma, sa, sb, cute.ceil_div(x.shape[3], self.CI)
        ).launch(
            grid=(
                cute.ceil_div(q, self.Q) * cute.ceil_div(p, self.P),
                cute.ceil_div(k, self.KO),
                n,
            ),
            block=(160, 1, 1),
        )

    @cute.kernel
    def kernel(
        self,
        tma_x: cute.CopyAtom,
        mX: cute.Tensor,
        tma_w: cute.CopyAtom,
        mW: cute.Tensor,
        y: cute.Tensor,
        mma: cute.TiledMma,
        sa: cute.ComposedLayout,
        sb: cute.ComposedLayout,
        c_tiles: cutlass.Int32,
    ):
        R, S = self.rs
        tidx, _, _ = cute.arch.thread_idx()
        warp = cute.arch.make_warp_uniform(cute.arch.warp_idx())
        bpq, bk, bn = cute.arch.block_idx()
        tiles_q = cute.ceil_div(y.shape[2], self.Q)
        bp, bq = divmod(bpq, tiles_q)
        smem = utils.SmemAllocator()
        sA = smem.allocate_tensor(self.dt, sa.outer, 1024, sa.inner)
        sB = smem.allocate_tensor(self.dt, sb.outer, byte_alignment=1024, swizzle=sb.inner)
        bars = smem.allocate_array(cutlass.Int64, 2 * self.stages)
        nbytes = cute.size_in_bytes(self.dt, cute.slice_(sa, (None, None, 0))) + cute.size_in_bytes(
            self.dt, cute.slice_(sb, (None, None, 0))
        )
        prod, cons = pipeline.PipelineTmaAsync.create(
            barrier_storage=bars,
            num_stages=self.stages,
            producer_group=pipeline.CooperativeGroup(pipeline.Agent.Thread),
            consumer_group=pipeline.CooperativeGroup(pipeline.Agent.Thread, 4),
            tx_count=nbytes,
        ).make_participants()
        if warp == 4:
            for rs in range(R * S):
                r, s = divmod(rs, S)
                xs = cute.domain_offset(
                    (bq * self.Q + s - self.pad, bp * self.P + r - self.pad, 0, bn), mX
                )
                gX = cute.local_tile(xs, (self.Q, self.P, self.CI, 1), (0, 0, None, 0))
                gW = cute.local_tile(mW, (self.KO, self.CI, 1, 1), (bk, None, s, r))
                tXs, tXg = cpasync.tma_partition(
                    tma_x,
                    0,
                    cute.make_layout(1),
                    cute.group_modes(sA, 0, 2),
                    cute.group_modes(gX, 0, 4),
                )
                tWs, tWg = cpasync.tma_partition(
                    tma_w,
                    0,
                    cute.make_layout(1),
                    cute.group_modes(sB, 0, 2),
                    cute.group_modes(gW, 0, 4),
                )
                for c in range(c_tiles):
                    h = prod.acquire_and_advance()
                    cute.copy(tma_x, tXg[None, c], tXs[None, h.index], tma_bar_ptr=h.barrier)
                    cute.copy(tma_w, tWg[None, c], tWs[None, h.index], tma_bar_ptr=h.barrier)
            prod.tail()
        else:
            thr = mma.get_slice(tidx)
            rA = mma.make_fragment_A(thr.partition_A(sA))
            rB = mma.make_fragment_B(thr.partition_B(sB))
            acc = cute.make_rmem_tensor(mma.partition_shape_C((64, self.KO)), cutlass.Float32)
            acc.fill(0.0)
            mma.set(warpgroup.Field.ACCUMULATE, True)
            for it in range(R * S * c_tiles):
                h = cons.wait_and_advance()
                warpgroup.fence()
                cute.gemm(
                    mma, acc, rA[None, None, None, h.index], rB[None, None, None, h.index], acc
                )
                warpgroup.commit_group()
                warpgroup.wait_group(0)
                h.release()
            crd = thr.partition_C(cute.make_identity_tensor(((self.Q, self.P), self.KO)))
            for i in cutlass.range(cute.size(acc), unroll_full=True):
                (q, p), k = crd[i]
                qq, pp, kk = bq * self.Q + q, bp * self.P + p, bk * self.KO + k
                if cute.elem_less((pp, qq, kk), (y.shape[1], y.shape[2], y.shape[3])):
                    y[bn, pp, qq, kk] = acc[i].to(y.element_type)


def check(n, h, w, c, k, rs=(3, 3), pad=1):
    rng = np.random.default_rng(0)
    x = rng.integers(-2, 3, (n, h, w, c)).astype(np.float16)
    wt = rng.integers(-2, 3, (k, *rs, c)).astype(np.float16)
    p, q = h + 2 * pad - rs[0] + 1, w + 2 * pad - rs[1] + 1
    y = np.full((n, p, q, k), np.nan, np.float32)
    xp = np.pad(x, ((0, 0), (pad, pad), (pad, pad), (0, 0))).astype(np.float64)
    want = np.zeros(y.shape)
    for r in range(rs[0]):
        for s in range(rs[1]):
            want += np.einsum(
                "npqc,kc->npqk", xp[:, r : r + p, s : s + q], wt[:, r, s].astype(np.float64)
            )
    ts = [from_dlpack(t, assumed_align=16).mark_layout_dynamic(leading_dim=3) for t in (x, wt, y)]
    Conv(rs, pad)(*ts)
    np.testing.assert_array_equal(y, want)


def run():
    check(2, 10, 13, 72, 40)
    check(1, 9, 7, 64, 64, (1, 3), 2)
