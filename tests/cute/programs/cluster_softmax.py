"""Softmax of rows spread over the blocks of a cluster, which send each other what they found."""

import numpy as np

import basedsl_cute as cutlass
import basedsl_cute.cute as cute
from basedsl_cute.cute.runtime import from_dlpack


class ClusterSoftmax:
    def __init__(self, dtype, N, cluster_n=4, threads=64):
        self.dtype, self.N, self.cluster_n, self.threads = dtype, N, cluster_n, threads
        self.per_cta = N // cluster_n
        self.vec = self.per_cta // threads

    @cute.jit
    def __call__(self, mX: cute.Tensor, mO: cute.Tensor, stream):
        warps = self.threads // 32

        @cute.struct
        class Shared:
            mbar: cute.struct.MemRange[cutlass.Int64, 2]
            red: cute.struct.MemRange[cutlass.Float32, warps * self.cluster_n * 2]

        self.Shared = Shared
        self.kernel(mX, mO).launch(
            grid=[mX.shape[0], self.cluster_n, 1],
            block=[self.threads, 1, 1],
            cluster=[1, self.cluster_n, 1],
            stream=stream,
        )

    @cute.jit
    def all_reduce(
        self,
        val: cutlass.Float32,
        buf: cute.Tensor,
        mbar,
        op: cutlass.Constexpr,
        init: cutlass.Constexpr,
    ):
        warps = self.threads // 32
        lane, wid = cute.arch.lane_idx(), cute.arch.warp_idx()
        rank = cute.arch.block_idx_in_cluster()
        val = cute.arch.warp_reduction(val, op)
        if wid == 0:
            with cute.arch.elect_one():
                cute.arch.mbarrier_arrive_and_expect_tx(mbar, warps * self.cluster_n * 4)
        if lane < self.cluster_n:
            # to peer `lane`, slot (wid, rank)
            slot = buf.iterator + (rank * warps + wid)
            remote = cute.arch.map_dsmem_ptr(slot, lane)
            remote_bar = cute.arch.map_dsmem_ptr(mbar, lane)
            atom = cute.make_copy_atom(
                cute.nvgpu.cpasync.CopyDsmemStoreOp(), cutlass.Float32, num_bits_per_copy=32
            )
            frag = cute.make_rmem_tensor((1,), cutlass.Float32)
            frag[0] = val
            cute.copy(
                atom, frag, cute.make_tensor(remote, cute.make_layout(1)), mbar_ptr=remote_bar
            )
        cute.arch.mbarrier_wait(mbar, 0)
        out = cutlass.Float32(init)
        for i in cutlass.range_constexpr(warps * self.cluster_n):
            out = op(out, buf[i])
        return out

    @cute.kernel
    def kernel(self, mX: cute.Tensor, mO: cute.Tensor):
        tidx = cute.arch.thread_idx()[0]
        row, part, _ = cute.arch.block_idx()
        sm = cutlass.utils.SmemAllocator().allocate(self.Shared)
        warps = self.threads // 32
        red = sm.red.get_tensor(cute.make_layout((warps * self.cluster_n, 2)))
        mbar = sm.mbar.data_ptr()
        if tidx == 0:
            cute.arch.mbarrier_init(mbar, 1)
            cute.arch.mbarrier_init(mbar + 1, 1)
            cute.arch.mbarrier_init_fence()
        cute.arch.cluster_arrive_relaxed()
        cute.arch.cluster_wait()
        gX = cute.local_tile(mX, (1, self.per_cta), (row, part))
        gO = cute.local_tile(mO, (1, self.per_cta), (row, part))
        tX = cute.local_partition(cute.group_modes(gX, 0, 2), cute.make_layout(self.threads), tidx)
        tO = cute.local_partition(cute.group_modes(gO, 0, 2), cute.make_layout(self.threads), tidx)
        x = cute.make_fragment_like(tX)
        cute.autovec_copy(tX, x)
        v = x.load().to(cutlass.Float32)
        m = v.reduce(cute.ReductionOp.MAX, -cutlass.Float32.inf, 0)
        m = self.all_reduce(m, red[None, 0], mbar, cute.arch.fmax, -cutlass.Float32.inf)
        e = cute.math.exp(v - m, fastmath=True)
        s = e.reduce(cute.ReductionOp.ADD, 0.0, 0)
        s = self.all_reduce(s, red[None, 1], mbar + 1, lambda a, b: a + b, 0.0)
        o = cute.make_fragment_like(tO)
        o.store((e * cute.arch.rcp_approx(s)).to(self.dtype))
        cute.autovec_copy(o, tO)
        cute.arch.cluster_arrive()
        cute.arch.cluster_wait()


def check(rows=3, N=512, cluster_n=4, threads=64, dt=np.float32):
    rng = np.random.default_rng(0)
    x = rng.standard_normal((rows, N)).astype(dt) * 3
    o = np.zeros_like(x)
    cdt = {np.float32: cutlass.Float32, np.float16: cutlass.Float16}[dt]
    a, b = (from_dlpack(t, assumed_align=16) for t in (x, o))
    stream = cutlass.cuda.default_stream()
    f = cute.compile(ClusterSoftmax(cdt, N, cluster_n, threads), a, b, stream)
    f(a, b, stream)
    w = np.exp(x.astype(np.float64) - x.max(1, keepdims=True).astype(np.float64))
    w /= w.sum(1, keepdims=True)
    np.testing.assert_allclose(o, w, atol=1e-3 if dt == np.float16 else 1e-5)


def run():
    check()
    check(cluster_n=1)
    check(cluster_n=8, N=1024, dt=np.float16)
