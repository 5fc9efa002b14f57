"""Attention of one query tile against all keys, with the softmax kept in registers.

Scores come out of one product in the accumulator's order and go into the next one as its operand A:
the same registers under another layout. Rows are shared by four lanes.
"""

import math

import numpy as np

import basedsl_cute as cute
import basedsl_cute as cutlass
from basedsl_cute import utils
from basedsl_cute.nvgpu import cpasync, warp
from basedsl_cute.runtime import from_dlpack


class Attention:
    """Tiles of `rows` queries and `columns` keys, of which `stages` are in flight or in use.

    A warp has 16 or 32 rows. Each fragment of K and V is then for two products, but Q must be read
    again for each tile: beside 192 registers of results there is no room for it. A warp scales its
    results only where a score of its rows is above the last base by more than `slack`, in powers of
    two: weights are as large as 2 ** slack then, and sums as exact. 16 columns of weights are
    computed beside the product of the 16 before them, and summed by products with ones.
    """

    def __init__(
        self,
        head_dim,
        rows=32,
        columns=32,
        warps=2,
        causal=False,
        stages=1,
        slack=8.0,
    ):
        self.head_dim, self.rows, self.columns = head_dim, rows, columns
        self.threads = warps * 32
        self.causal, self.stages, self.slack = causal, stages, slack
        self.keep_q = rows == warps * 16
        self.dtype = cutlass.Float16

    def can_implement(self):
        return self.head_dim % 16 == 0 and self.rows in (self.threads // 2, self.threads)

    @cute.jit
    def __call__(
        self,
        mQ: cute.Tensor,
        mK: cute.Tensor,
        mV: cute.Tensor,
        mO: cute.Tensor,
        scale: cutlass.Float32,
    ):
        d = self.head_dim
        # Rows of 128 bytes where there are such: a quarter of a warp writes one, by all banks.
        across = 64 if d % 64 == 0 else 32
        atom = cute.make_composed_layout(
            cute.make_swizzle(3 if across == 64 else 2, 3, 3),
            0,
            cute.make_layout((8, across), stride=(across, 1)),
        )
        sQ_layout = cute.tile_to_shape(atom, (self.rows, d), (0, 1))
        sK_layout = cute.tile_to_shape(atom, (self.columns, d, self.stages), (0, 1, 2))

        @cute.struct
        class SharedStorage:
            q: cute.struct.Align[cute.struct.MemRange[self.dtype, cute.cosize(sQ_layout)], 128]
            k: cute.struct.Align[cute.struct.MemRange[self.dtype, cute.cosize(sK_layout)], 128]
            v: cute.struct.Align[cute.struct.MemRange[self.dtype, cute.cosize(sK_layout)], 128]

        self.shared_storage = SharedStorage

        mma = cute.make_tiled_mma(
            warp.MmaF16BF16Op(self.dtype, cutlass.Float32, (16, 8, 16)),
            (self.threads // 32, 1, 1),
            permutation_mnk=(self.threads // 2, 16, 16),
        )
        async_copy = cute.make_copy_atom(
            cpasync.CopyG2SOp(cache_mode=cpasync.LoadCacheMode.GLOBAL),
            self.dtype,
            num_bits_per_copy=128,
        )
        across = d // 8
        load = cute.make_tiled_copy_tv(
            async_copy,
            cute.make_layout((self.threads // across, across), stride=(across, 1)),
            cute.make_layout((1, 8)),
        )
        tiles, heads = cute.ceil_div(mQ.shape[0], self.rows), mQ.shape[2]
        self.kernel(
            mQ, mK, mV, mO, scale * math.log2(math.e), sQ_layout, sK_layout, mma, load
        ).launch(
            grid=(heads, tiles, 1) if self.causal else (tiles, heads, 1),
            block=(self.threads, 1, 1),
        )

    @cute.kernel
    def kernel(
        self,
        mQ: cute.Tensor,
        mK: cute.Tensor,
        mV: cute.Tensor,
        mO: cute.Tensor,
        scale_log2: cutlass.Float32,
        sQ_layout: cute.ComposedLayout,
        sK_layout: cute.ComposedLayout,
        tiled_mma: cute.TiledMma,
        load: cute.TiledCopy,
    ):
        tid, _, _ = cute.arch.thread_idx()
        tile, head, _ = cute.arch.block_idx()
        d = self.head_dim
        if cutlass.const_expr(self.causal):
            # Those with most keys begin first, of all heads.
            head, tile, _ = cute.arch.block_idx()
            tile = cute.arch.grid_dim()[1] - 1 - tile

        gQ = cute.local_tile(mQ[None, None, head], (self.rows, d), (tile, 0))
        gK = cute.local_tile(mK[None, None, head], (self.columns, d), (None, 0))
        gV = cute.local_tile(mV[None, None, head], (self.columns, d), (None, 0))
        gO = cute.local_tile(mO[None, None, head], (self.rows, d), (tile, 0))

        storage = utils.SmemAllocator().allocate(self.shared_storage)
        sQ = storage.q.get_tensor(sQ_layout)
        sK = storage.k.get_tensor(sK_layout)
        sV = storage.v.get_tensor(sK_layout)
        # V as operand B: (head_dim, columns, stages).
        turned = cute.make_layout(
            (d, self.columns, self.stages), stride=(self.columns, 1, self.columns * d)
        )
        sVt = cute.composition(sV, turned)

        thr_load = load.get_slice(tid)
        tQgQ, tQsQ = thr_load.partition_S(gQ), thr_load.partition_D(sQ)
        tKgK, tKsK = thr_load.partition_S(gK), thr_load.partition_D(sK)
        tVgV, tVsV = thr_load.partition_S(gV), thr_load.partition_D(sV)
        cute.copy(load, tQgQ, tQsQ)
        cute.copy(load, tKgK[None, None, None, 0], tKsK[None, None, None, 0])
        if cutlass.const_expr(self.stages > 1):
            cute.copy(load, tVgV[None, None, None, 0], tVsV[None, None, None, 0])
        cute.arch.cp_async_commit_group()

        thr_mma = tiled_mma.get_slice(tid)
        rQ = tiled_mma.make_fragment_A(thr_mma.partition_A(sQ))
        rK = tiled_mma.make_fragment_B(thr_mma.partition_B(sK[None, None, 0]))
        rV = tiled_mma.make_fragment_B(thr_mma.partition_B(sVt[None, None, 0]))
        rO = cute.make_rmem_tensor(tiled_mma.partition_shape_C((self.rows, d)), cutlass.Float32)
        rO.fill(0.0)

        ldmatrix = cute.make_copy_atom(warp.LdMatrix8x8x16bOp(False, 4), self.dtype)
        ldmatrix_t = cute.make_copy_atom(warp.LdMatrix8x8x16bOp(True, 4), self.dtype)
        copy_q = cute.make_tiled_copy_A(ldmatrix, tiled_mma)
        copy_k = cute.make_tiled_copy_B(ldmatrix, tiled_mma)
        copy_v = cute.make_tiled_copy_B(ldmatrix_t, tiled_mma)
        thr_q, thr_k, thr_v = copy_q.get_slice(tid), copy_k.get_slice(tid), copy_v.get_slice(tid)
        tSsQ, tSrQ = thr_q.partition_S(sQ), thr_q.retile(rQ)
        tSsK, tSrK = thr_k.partition_S(sK), thr_k.retile(rK)
        tOsV, tOrV = thr_v.partition_S(sVt), thr_v.retile(rV)

        # Of each of the thread's two rows an atom: the maximum of the last base. Sums are those of
        # weights times ones, eight columns of them.
        rows = cute.size(rO.shape[0][1]) * cute.size(rO, mode=[1])
        row_max = cute.make_rmem_tensor((rows,), cutlass.Float32)
        row_max.fill(-cutlass.Float32.inf)
        narrow_mma = cute.make_tiled_mma(
            tiled_mma.op, (self.threads // 32, 1, 1), permutation_mnk=(self.threads // 2, 8, 16)
        )
        ones = narrow_mma.make_fragment_B(narrow_mma.partition_shape_B((8, 16)))
        ones.fill(1.0)
        sums = cute.make_rmem_tensor(narrow_mma.partition_shape_C((self.rows, 8)), cutlass.Float32)
        sums.fill(0.0)

        coordinates = thr_mma.partition_C(cute.make_identity_tensor((self.rows, self.columns)))
        tiles = cute.size(gK, mode=[2])
        whole = tiles
        if cutlass.const_expr(self.causal):
            tiles = cutlass.min(tiles, cute.ceil_div((tile + 1) * self.rows, self.columns))
            whole = tile * self.rows // self.columns

        if cutlass.const_expr(self.keep_q):
            cute.arch.cp_async_wait_group(0)
            cute.arch.sync_threads()
            cute.copy(copy_q, tSsQ, tSrQ)
        # Tiles of keys that every query sees come first, those that need a mask after them.
        for masked in cutlass.range_constexpr(2 if self.causal else 1):
            for n in cutlass.range(whole if masked else 0, tiles if masked else whole, unroll=1):
                stage = n % self.stages
                cute.arch.cp_async_wait_group(0)
                cute.arch.sync_threads()
                if cutlass.const_expr(self.stages == 1):
                    cute.copy(load, tVgV[None, None, None, n], tVsV[None, None, None, 0])
                elif n + 1 < tiles:
                    fill = (n + 1) % self.stages
                    cute.copy(load, tKgK[None, None, None, n + 1], tKsK[None, None, None, fill])
                    cute.copy(load, tVgV[None, None, None, n + 1], tVsV[None, None, None, fill])
                cute.arch.cp_async_commit_group()
                rS = cute.make_rmem_tensor(
                    tiled_mma.partition_shape_C((self.rows, self.columns)), cutlass.Float32
                )
                rS.fill(0.0)
                for k in cutlass.range_constexpr(cute.size(rQ, mode=[2])):
                    if cutlass.const_expr(not self.keep_q):
                        cute.copy(copy_q, tSsQ[None, None, k], tSrQ[None, None, k])
                    cute.copy(copy_k, tSsK[None, None, k, stage], tSrK[None, None, k])
                    cute.gemm(tiled_mma, rS, rQ[None, None, k], rK[None, None, k], rS)
                if cutlass.const_expr(self.stages == 1):
                    cute.arch.cp_async_wait_group(0)
                    cute.arch.sync_threads()
                    if n + 1 < tiles:
                        cute.copy(load, tKgK[None, None, None, n + 1], tKsK[None, None, None, 0])
                        cute.arch.cp_async_commit_group()
                if cutlass.const_expr(masked):
                    for i in cutlass.range_constexpr(cute.size(rS)):
                        row = tile * self.rows + coordinates[i][0]
                        if row < n * self.columns + coordinates[i][1]:
                            rS[i] = -cutlass.Float32.inf

                rP = cute.make_fragment_like(rS, self.dtype)
                bases = self.rescale(rS, rO, sums, row_max, scale_log2)
                # ((2, 2), M, N) -> ((2, 2, 2), M, N / 2): two results are one operand A.
                split = cute.logical_divide(rP.layout, (None, None, 2))
                as_operand = cute.make_layout(
                    (
                        (split.shape[0][0], split.shape[0][1], split.shape[2][0]),
                        split.shape[1],
                        split.shape[2][1],
                    ),
                    stride=(
                        (split.stride[0][0], split.stride[0][1], split.stride[2][0]),
                        split.stride[1],
                        split.stride[2][1],
                    ),
                )
                rP_operand = cute.make_tensor(rP.iterator, as_operand)
                for k in cutlass.range_constexpr(cute.size(rP_operand, mode=[2])):
                    cute.copy(copy_v, tOsV[None, None, k, stage], tOrV[None, None, k])
                    self.weights(rS, rP, bases, scale_log2, k)
                    weights = rP_operand[None, None, k]
                    cute.gemm(tiled_mma, rO, weights, rV[None, None, k], rO)
                    cute.gemm(narrow_mma, sums, weights, ones[None, None, 0], sums)

        # Normalise and write.
        out, sums_mn = self.by_rows(rO), self.by_rows(sums)
        for r in cutlass.range_constexpr(rows):
            out[r, None] = out[r, None].load() * cute.arch.rcp_approx(sums_mn[r, 0])
        result = cute.make_fragment_like(rO, self.dtype)
        result.store(rO.load().to(self.dtype))
        cute.autovec_copy(result, thr_mma.partition_C(gO))

    def by_rows(self, accumulator):
        """((2, 2), M, N) as (2 * M, 2 * N): rows, and what the thread holds of each."""
        shape, stride = accumulator.shape, accumulator.stride
        layout = cute.make_layout(
            ((shape[0][1], shape[1]), (shape[0][0], shape[2])),
            stride=((stride[0][1], stride[1]), (stride[0][0], stride[2])),
        )
        return cute.make_tensor(accumulator.iterator, layout)

    def across_lanes(self, x, op):
        """Four lanes share a row."""
        for step in (2, 1):
            x = op(x, cute.arch.shuffle_sync_bfly(x, offset=step, mask=-1, mask_and_clamp=31))
        return x

    @cute.jit
    def rescale(
        self,
        scores: cute.Tensor,
        out: cute.Tensor,
        sums: cute.Tensor,
        row_max: cute.Tensor,
        scale_log2: cutlass.Float32,
    ):
        """Scale what there is for the new maxima, and return the bases of the weights."""
        scores_mn, out_mn, sums_mn = (self.by_rows(x) for x in (scores, out, sums))
        rows = cute.size(row_max)
        highest = cute.make_rmem_tensor(row_max.layout, cutlass.Float32)
        grown = -cutlass.Float32.inf
        for r in cutlass.range_constexpr(rows):
            highest[r] = scores_mn[r, None].load().reduce(cute.ReductionOp.MAX, row_max[r], 0)
            grown = cute.arch.fmax(grown, highest[r] - row_max[r])
        if cute.arch.vote_any_sync(grown * scale_log2 > self.slack):
            for r in cutlass.range_constexpr(rows):
                now = self.across_lanes(highest[r], cute.arch.fmax)
                shrink = cute.math.exp2((row_max[r] - now) * scale_log2, fastmath=True)
                row_max[r] = now
                for line in (out_mn[r, None], sums_mn[r, None]):
                    line.store(line.load() * shrink)
        bases = cute.make_rmem_tensor(row_max.layout, cutlass.Float32)
        bases.store(row_max.load() * scale_log2)
        return bases

    @cute.jit
    def weights(
        self,
        scores: cute.Tensor,
        operand: cute.Tensor,
        bases: cute.Tensor,
        scale_log2: cutlass.Float32,
        k: cutlass.Constexpr,
    ):
        """Make 16 columns of weights, two of an accumulator's tiles."""
        for n in cutlass.range_constexpr(2 * k, 2 * k + 2):
            tile = scores[None, None, n]
            for i in cutlass.range_constexpr(cute.size(tile)):
                r = i % 4 // 2 + i // 4 * 2  # of four results two are in a row
                tile[i] = cute.math.exp2(tile[i] * scale_log2 - bases[r], fastmath=True)
            operand[None, None, n].store(tile.load().to(self.dtype))


def run():
    check(64, 32, 2, causal=True, slack=0.0)
    check(128, 32, 1, rows=64, stages=2, causal=False, slack=1.0)


def check(length, head_dim, heads, **config):
    rng = np.random.default_rng(2)
    q, k, v, o = (
        rng.standard_normal((heads, length, head_dim)).astype(np.float16) for _ in range(4)
    )
    attention = Attention(head_dim, **config)
    assert attention.can_implement()
    views = [
        from_dlpack(x.transpose(1, 2, 0), assumed_align=16)
        .mark_layout_dynamic(leading_dim=1)
        .mark_compact_shape_dynamic(mode=1, stride_order=(2, 0, 1), divisibility=8)
        for x in (q, k, v, o)
    ]
    scale = 1 / math.sqrt(head_dim)
    compiled = cute.compile(attention, *views, scale)
    compiled(*views, scale)

    wide = [x.astype(np.float64) for x in (q, k, v)]
    scores = wide[0] @ wide[1].transpose(0, 2, 1) * scale
    if config["causal"]:
        scores[:, np.arange(length)[:, None] < np.arange(length)] = -np.inf
    weights = np.exp(scores - scores.max(axis=-1, keepdims=True))
    wanted = weights / weights.sum(axis=-1, keepdims=True) @ wide[2]
    np.testing.assert_allclose(o.astype(np.float64), wanted, atol=2e-3)
