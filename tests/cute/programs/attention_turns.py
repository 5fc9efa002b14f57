"""Attention by mma.sync whose two groups of warps take turns (ping-pong): while one multiplies, the
other computes the weights of its next products.

A group's turn is the product of its weights with one tile of V and then of its queries with the
next tile of K. Both groups read the same tiles, of which each loads a half at the beginning of its
turn. When a group's turn begins, the other has ended its own: so all have read what a new tile is
written over.
"""

import math

import numpy as np

import basedsl_cute as cutlass
import basedsl_cute.cute as cute
from basedsl_cute import utils
from basedsl_cute.cute.nvgpu import cpasync, warp
from basedsl_cute.cute.runtime import from_dlpack

GROUPS = 2
FIRST_BARRIER = 1  # of the turns; 0 is that of sync_threads()


class AttentionInTurns:
    """Tiles of 32 queries a warp and `columns` keys, `stages` tiles of K and of V in shared memory.

    With `ahead`, fragments are loaded one step before they are multiplied. A turn is passed on
    `early` steps before its end, which needs a third stage.
    """

    def __init__(
        self, head_dim, columns=64, warps=8, causal=False, stages=2, ahead=True, early=0, turns=True
    ):
        self.head_dim, self.columns, self.causal = head_dim, columns, causal
        self.stages, self.ahead, self.early, self.turns = stages, ahead, early, turns
        self.threads = warps * 32
        self.group_rows = self.threads // GROUPS
        self.rows = self.group_rows * GROUPS
        self.dtype = cutlass.Float16

    def can_implement(self):
        loaded = self.threads * 8 // self.head_dim  # rows at a time
        enough = self.stages >= (3 if self.early else 2)
        return self.head_dim % 32 == 0 and self.columns % loaded == 0 and enough

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
        across = 64 if d % 64 == 0 else 32
        atom = cute.make_composed_layout(
            cute.make_swizzle(3 if across == 64 else 2, 3, 3),
            0,
            cute.make_layout((8, across), stride=(across, 1)),
        )
        sQ_layout = cute.tile_to_shape(atom, (self.group_rows, d, GROUPS), (0, 1, 2))
        sK_layout = cute.tile_to_shape(atom, (self.columns, d, self.stages), (0, 1, 2))

        @cute.struct
        class SharedStorage:
            q: cute.struct.Align[cute.struct.MemRange[self.dtype, cute.cosize(sQ_layout)], 128]
            k: cute.struct.Align[cute.struct.MemRange[self.dtype, cute.cosize(sK_layout)], 128]
            v: cute.struct.Align[cute.struct.MemRange[self.dtype, cute.cosize(sK_layout)], 128]

        self.shared_storage = SharedStorage
        warps = self.threads // GROUPS // 32
        mma = cute.make_tiled_mma(
            warp.MmaF16BF16Op(self.dtype, cutlass.Float32, (16, 8, 16)),
            (warps, 1, 1),
            permutation_mnk=(warps * 16, 16, 16),
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
        heads = cute.size(mQ, mode=[2])
        self.kernel(
            mQ, mK, mV, mO, scale * math.log2(math.e), sQ_layout, sK_layout, mma, load
        ).launch(
            grid=(cute.ceil_div(cute.size(mQ, mode=[0]), self.rows), heads, 1),
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
        thread, _, _ = cute.arch.thread_idx()
        block, head, _ = cute.arch.block_idx()
        d = self.head_dim
        if cutlass.const_expr(self.causal):
            block = cute.arch.grid_dim()[0] - 1 - block  # those with most keys begin first
        group = cute.arch.make_warp_uniform(thread // (self.threads // GROUPS))
        tid = thread % (self.threads // GROUPS)
        tile = block * GROUPS + group

        gQ = cute.local_tile(mQ[None, None, head], (self.group_rows, d), (None, 0))
        gK = cute.local_tile(mK[None, None, head], (self.columns, d), (None, 0))
        gV = cute.local_tile(mV[None, None, head], (self.columns, d), (None, 0))
        gO = cute.local_tile(mO[None, None, head], (self.group_rows, d), (tile, 0))

        storage = utils.SmemAllocator().allocate(self.shared_storage)
        sQ = storage.q.get_tensor(sQ_layout)
        sK = storage.k.get_tensor(sK_layout)
        sV = storage.v.get_tensor(sK_layout)
        # V as operand B: (head_dim, columns, stages).
        turned = cute.make_layout(
            (d, self.columns, self.stages), stride=(self.columns, 1, self.columns * d)
        )
        sVt = cute.composition(sV, turned)

        tiles = cute.size(gK, mode=[2])
        mine = whole = tiles
        if cutlass.const_expr(self.causal):
            tiles = cutlass.min(tiles, cute.ceil_div((block + 1) * self.rows, self.columns))
            mine = cutlass.min(tiles, cute.ceil_div((tile + 1) * self.group_rows, self.columns))
            whole = tile * self.group_rows // self.columns

        thr_load = load.get_slice(thread)
        tQgQ, tQsQ = thr_load.partition_S(gQ), thr_load.partition_D(sQ)
        tKgK, tKsK = thr_load.partition_S(gK), thr_load.partition_D(sK)
        tVgV, tVsV = thr_load.partition_S(gV), thr_load.partition_D(sV)
        for g in cutlass.range_constexpr(GROUPS):
            cute.copy(load, tQgQ[None, None, None, block * GROUPS + g], tQsQ[None, None, None, g])
        cute.copy(load, tKgK[None, None, None, 0], tKsK[None, None, None, 0])
        cute.arch.cp_async_commit_group()
        cute.copy(load, tVgV[None, None, None, 0], tVsV[None, None, None, 0])
        if tiles > 1:
            cute.copy(load, tKgK[None, None, None, 1], tKsK[None, None, None, 1])
        cute.arch.cp_async_commit_group()

        thr_mma = tiled_mma.get_slice(tid)
        rQ = tiled_mma.make_fragment_A(thr_mma.partition_A(sQ[None, None, 0]))
        rK = tiled_mma.make_fragment_B(thr_mma.partition_B(sK[None, None, 0]))
        rV = tiled_mma.make_fragment_B(thr_mma.partition_B(sVt[None, None, 0]))
        rO = cute.make_rmem_tensor(
            tiled_mma.partition_shape_C((self.group_rows, d)), cutlass.Float32
        )
        rS = cute.make_rmem_tensor(
            tiled_mma.partition_shape_C((self.group_rows, self.columns)), cutlass.Float32
        )
        rP = cute.make_fragment_like(rS, self.dtype)
        rO.fill(0.0)

        ldmatrix = cute.make_copy_atom(warp.LdMatrix8x8x16bOp(False, 4), self.dtype)
        ldmatrix_t = cute.make_copy_atom(warp.LdMatrix8x8x16bOp(True, 4), self.dtype)
        copy_q = cute.make_tiled_copy_A(ldmatrix, tiled_mma)
        copy_k = cute.make_tiled_copy_B(ldmatrix, tiled_mma)
        copy_v = cute.make_tiled_copy_B(ldmatrix_t, tiled_mma)
        thr_q, thr_k, thr_v = copy_q.get_slice(tid), copy_k.get_slice(tid), copy_v.get_slice(tid)
        tSsQ = thr_q.partition_S(sQ)[None, None, None, group]
        tSrQ = thr_q.retile(rQ)
        tSsK, tSrK = thr_k.partition_S(sK), thr_k.retile(rK)
        tOsV, tOrV = thr_v.partition_S(sVt), thr_v.retile(rV)

        # Of each of the thread's two rows an atom: the maximum so far and the sum.
        rows = cute.size(rO.shape[0][1]) * cute.size(rO, mode=[1])
        row_max = cute.make_rmem_tensor((rows,), cutlass.Float32)
        row_sum = cute.make_rmem_tensor((rows,), cutlass.Float32)
        row_max.fill(-cutlass.Float32.inf)
        row_sum.fill(0.0)
        coordinates = thr_mma.partition_C(
            cute.make_identity_tensor((self.group_rows, self.columns))
        )

        # ((2, 2), M, N) -> ((2, 2, 2), M, N / 2): two results are one operand A.
        split = cute.logical_divide(rP.layout, (None, None, 2))
        as_operand = cute.make_layout(
            ((*split.shape[0], split.shape[2][0]), split.shape[1], split.shape[2][1]),
            stride=((*split.stride[0], split.stride[2][0]), split.stride[1], split.stride[2][1]),
        )
        rP_operand = cute.make_tensor(rP.iterator, as_operand)

        q_steps, v_steps = cute.size(rQ, mode=[2]), cute.size(rP_operand, mode=[2])
        mine_turn = FIRST_BARRIER + group
        other_turn = FIRST_BARRIER + 1 - group

        cute.arch.cp_async_wait_group(1)
        cute.arch.sync_threads()
        # The first products of queries and keys: -1 is the turn before the first.
        for n in cutlass.range(-1, tiles, unroll=1):
            if n >= 0:
                if cutlass.const_expr(self.turns):
                    cute.arch.barrier(barrier_id=mine_turn, number_of_threads=self.threads)
                else:
                    cute.arch.sync_threads()
                if n + 1 < tiles:
                    fill = (n + 1) % self.stages
                    cute.copy(load, tVgV[None, None, None, n + 1], tVsV[None, None, None, fill])
                if n + 2 < tiles:
                    fill = (n + 2) % self.stages
                    cute.copy(load, tKgK[None, None, None, n + 2], tKsK[None, None, None, fill])
                cute.arch.cp_async_commit_group()
                if n < mine:
                    stage = n % self.stages
                    for k in cutlass.range_constexpr(v_steps + self.ahead):
                        if cutlass.const_expr(k < v_steps):
                            cute.copy(copy_v, tOsV[None, None, k, stage], tOrV[None, None, k])
                        if cutlass.const_expr(k >= self.ahead):
                            last = (None, None, k - self.ahead)
                            cute.gemm(tiled_mma, rO, rP_operand[last], rV[last], rO)
            rS.fill(0.0)
            if n + 1 < mine:
                stage = (n + 1) % self.stages
                for k in cutlass.range_constexpr(q_steps + self.ahead):
                    if cutlass.const_expr(k < q_steps):
                        cute.copy(copy_q, tSsQ[None, None, k], tSrQ[None, None, k])
                        cute.copy(copy_k, tSsK[None, None, k, stage], tSrK[None, None, k])
                    if cutlass.const_expr(k >= self.ahead):
                        last = (None, None, k - self.ahead)
                        cute.gemm(tiled_mma, rS, rQ[last], rK[last], rS)
            cute.arch.cp_async_wait_group(0)
            if cutlass.const_expr(self.turns):
                # Group 0 begins; the last turn of group 1 is passed on to nobody.
                if (group == 0 and n >= 0) or (group == 1 and n + 1 < tiles):
                    cute.arch.barrier_arrive(other_turn, self.threads)
            if n + 1 < mine:
                if cutlass.const_expr(self.causal):
                    if n + 1 >= whole:
                        for i in cutlass.range_constexpr(cute.size(rS)):
                            row = tile * self.group_rows + coordinates[i][0]
                            if row < (n + 1) * self.columns + coordinates[i][1]:
                                rS[i] = -cutlass.Float32.inf
                self.softmax_rescale(rS, rO, row_max, row_sum, scale_log2)
                rP.store(rS.load().to(self.dtype))

        # Normalise and write.
        out = self.by_rows(rO)
        for r in cutlass.range_constexpr(rows):
            total = self.across_lanes(row_sum[r], lambda x, y: x + y)
            out[r, None] = out[r, None].load() * cute.arch.rcp_approx(total)
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
    def softmax_rescale(
        self,
        scores: cute.Tensor,
        out: cute.Tensor,
        row_max: cute.Tensor,
        row_sum: cute.Tensor,
        scale_log2: cutlass.Float32,
    ):
        """Turn scores into weights, and scale what there is for the new maxima."""
        scores_mn, out_mn = self.by_rows(scores), self.by_rows(out)
        for r in cutlass.range_constexpr(cute.size(row_max)):
            line = scores_mn[r, None].load()
            before = row_max[r]
            now = line.reduce(cute.ReductionOp.MAX, before, 0)
            now = self.across_lanes(now, cute.arch.fmax)
            weights = cute.math.exp2(line * scale_log2 - now * scale_log2, fastmath=True)
            shrink = cute.math.exp2((before - now) * scale_log2, fastmath=True)
            scores_mn[r, None] = weights
            row_sum[r] = weights.reduce(cute.ReductionOp.ADD, row_sum[r] * shrink, 0)
            row_max[r] = now
            out_mn[r, None] = out_mn[r, None].load() * shrink


def run():
    check(128, 32, 1, warps=4, columns=32, causal=True)


def check(length, head_dim, heads, **config):
    rng = np.random.default_rng(2)
    q, k, v, o = (
        rng.standard_normal((heads, length, head_dim)).astype(np.float16) for _ in range(4)
    )
    attention = AttentionInTurns(head_dim, **config)
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
