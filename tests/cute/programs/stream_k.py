"""C = A B^T with equal shares of the k loop for every block (stream-K): who has the beginning of a
tile waits for the blocks that have the rest of it.
"""

import numpy as np

import basedsl_cute as cute
import basedsl_cute as cutlass
from basedsl_cute import Int32
from basedsl_cute.nvgpu import warp
from basedsl_cute.runtime import from_dlpack


class StreamKParams:
    def __init__(self, problem_mnk, tile_mnk, ctas):
        m, n, k = problem_mnk
        bm, bn, bk = tile_mnk
        self.tiles_m, self.tiles_n = cute.ceil_div(m, bm), cute.ceil_div(n, bn)
        self.iters_per_tile = cute.ceil_div(k, bk)
        self.total = self.tiles_m * self.tiles_n * self.iters_per_tile
        self.per_cta = cute.ceil_div(self.total, ctas)
        self.tile_div = cute.FastDivmodDivisor(self.iters_per_tile)
        self.n_div = cute.fast_divmod_create_divisor(self.tiles_n)


class StreamKGemm:
    tile = (32, 32, 64)

    def __init__(self, ctas=3):
        self.ctas = ctas

    @cute.jit
    def __call__(
        self, a: cute.Tensor, b: cute.Tensor, c: cute.Tensor, ws: cute.Tensor, flags: cute.Tensor
    ):
        p = StreamKParams((c.shape[0], c.shape[1], a.shape[1]), self.tile, self.ctas)
        mma = cute.make_tiled_mma(warp.MmaI8Op(a.element_type, Int32, (16, 8, 32)), (2, 2, 1))
        self.kernel(
            a, b, c, ws, flags, p.iters_per_tile, p.total, p.per_cta, p.tile_div, p.n_div, mma
        ).launch(grid=[self.ctas, 1, 1], block=[128, 1, 1])

    @cute.jit
    def mac_loop(self, a, b, acc, mma, thr, tm, tn, k_begin, k_end):
        M, N, K = self.tile
        gA = cute.local_tile(a, (M, K), (tm, None))
        gB = cute.local_tile(b, (N, K), (tn, None))
        for k in cutlass.range(k_begin, k_end, unroll=1):
            tA, tB = thr.partition_A(gA[None, None, k]), thr.partition_B(gB[None, None, k])
            rA, rB = mma.make_fragment_A(tA), mma.make_fragment_B(tB)
            cute.autovec_copy(tA, rA)
            cute.autovec_copy(tB, rB)
            cute.gemm(mma, acc, rA, rB, acc)

    @cute.kernel
    def kernel(
        self,
        a: cute.Tensor,
        b: cute.Tensor,
        c: cute.Tensor,
        ws: cute.Tensor,
        flags: cute.Tensor,
        iters: Int32,
        total: Int32,
        per_cta: Int32,
        tile_div: cute.FastDivmodDivisor,
        n_div: cute.FastDivmodDivisor,
        mma: cute.TiledMma,
    ):
        tid = cute.arch.thread_idx()[0]
        cta = cute.arch.block_idx()[0]
        M, N, _ = self.tile
        thr = mma.get_slice(tid)
        it = cta * per_cta
        end = min(it + per_cta, total)
        while it < end:
            tile, k0 = divmod(it, tile_div)
            tm, tn = divmod(tile, n_div)
            k1 = min(iters, k0 + (end - it))
            acc = cute.make_rmem_tensor(mma.partition_shape_C((M, N)), Int32)
            acc.fill(0)
            self.mac_loop(a, b, acc, mma, thr, tm, tn, k0, k1)
            tW = thr.partition_C(ws[None, None, cta])
            if k0 != 0:
                # not the owner: hand the partial sums over
                cute.autovec_copy(acc, tW)
                cute.arch.fence_acq_rel_gpu()
                cute.arch.sync_threads()
                if tid == 0:
                    cute.arch.store((flags.iterator + cta), Int32(1), sem="release", scope="gpu")
            else:
                if k1 < iters:
                    # owner waits for the others that hold the rest of this tile
                    tile_end = (tile + 1) * iters
                    peer = cta + 1
                    while peer * per_cta < tile_end:
                        if tid == 0:
                            ready = cute.arch.load(
                                flags.iterator + peer, Int32, sem="acquire", scope="gpu"
                            )
                            while ready == 0:
                                ready = cute.arch.load(
                                    flags.iterator + peer, Int32, sem="acquire", scope="gpu"
                                )
                        cute.arch.sync_threads()
                        part = thr.partition_C(ws[None, None, peer])
                        for i in cutlass.range(cute.size(acc), unroll_full=True):
                            acc[i] += part[i]
                        peer += 1
                tC = thr.partition_C(cute.local_tile(c, (M, N), (tm, tn)))
                cC = thr.partition_C(cute.make_identity_tensor((M, N)))
                for i in cutlass.range(cute.size(acc), unroll_full=True):
                    if cute.elem_less((cC[i][0] + tm * M, cC[i][1] + tn * N), c.shape):
                        tC[i] = acc[i]
            it += k1 - k0


def check(m=64, n=96, k=320, ctas=3):
    rng = np.random.default_rng(0)
    a, b = rng.integers(-8, 8, (m, k)).astype(np.int8), rng.integers(-8, 8, (n, k)).astype(np.int8)
    c = np.zeros((m, n), np.int32)
    ws = np.zeros((ctas, 32, 32), np.int32).transpose(1, 2, 0)
    fl = np.zeros(ctas, np.int32)
    args = [from_dlpack(x, assumed_align=16).mark_layout_dynamic(1) for x in (a, b, c)] + [
        from_dlpack(ws),
        from_dlpack(fl),
    ]
    StreamKGemm(ctas)(*args)
    np.testing.assert_array_equal(c, a.astype(np.int32) @ b.astype(np.int32).T)


def run():
    for ctas in (1, 3, 30):
        check(ctas=ctas)
    check(m=32, n=32, k=640, ctas=4)
