"""C += A B^T on Hopper with K split among blocks, whose sums the TMA unit adds up in C."""

import numpy as np

import basedsl_cute as cute
import basedsl_cute as cutlass
import basedsl_cute.pipeline as pipeline
import basedsl_cute.utils as utils
import basedsl_cute.utils.hopper_helpers as sm90_utils
from basedsl_cute.nvgpu import cpasync, warpgroup
from basedsl_cute.runtime import from_dlpack


class SplitK:
    def __init__(self, tile=(64, 64, 64), stages=3, splits=3):
        self.tile, self.stages, self.splits = tile, stages, splits

    @cute.jit
    def __call__(self, a: cute.Tensor, b: cute.Tensor, c: cute.Tensor, stream=None):
        M, N, K = self.tile
        la, lb, lc = (utils.LayoutEnum.from_tensor(t) for t in (a, b, c))
        self.dt = a.element_type
        self.cdt = c.element_type
        mma = sm90_utils.make_trivial_tiled_mma(
            self.dt,
            self.dt,
            la.sm90_mma_major_mode(),
            lb.sm90_mma_major_mode(),
            cutlass.Float32,
            (M // 64, 1, 1),
            tiler_mn=(64, N),
        )
        sa = sm90_utils.make_smem_layout_a(la, self.tile, self.dt, self.stages)
        sb = sm90_utils.make_smem_layout_b(lb, self.tile, self.dt, self.stages)
        sc = cute.make_ordered_layout(
            (M, N), order=(1, 0) if lc is utils.LayoutEnum.ROW_MAJOR else (0, 1)
        )
        op = cpasync.CopyBulkTensorTileG2SOp()
        tma_a = cpasync.make_tiled_tma_atom(op, a, cute.slice_(sa, (None, None, 0)), (M, K))
        tma_b = cpasync.make_tiled_tma_atom(op, b, cute.select(sb, mode=[0, 1]), (N, K))
        tma_c, mC = cpasync.make_tiled_tma_atom(
            cpasync.CopyReduceBulkTensorTileS2GOp(cute.ReductionOp.ADD), c, sc, (M, N)
        )

        class Storage:
            bars: cute.struct.MemRange[cutlass.Int64, 2 * self.stages]
            sC: cute.struct.Align[cute.struct.MemRange[self.cdt, cute.cosize(sc)], 128]
            sA: cute.struct.Align[cute.struct.MemRange[self.dt, cute.cosize(sa)], 1024]
            sB: cute.struct.Align[cute.struct.MemRange[self.dt, cute.cosize(sb)], 1024]

        self.Storage = cute.struct(Storage)
        k_tiles = cute.ceil_div(a.shape[1], K)
        grid = (cute.ceil_div(c.shape[0], M), cute.ceil_div(c.shape[1], N), self.splits)
        self.kernel(
            tma_a.atom,
            tma_a.tma_tensor,
            tma_b.atom,
            tma_b.tma_tensor,
            tma_c,
            mC,
            mma,
            tma_a.smem_layout,
            sa,
            sb,
            sc,
            k_tiles,
        ).launch(
            grid=grid,
            block=(128 * (M // 64) + 32, 1, 1),
            stream=stream,
            smem=self.Storage.size_in_bytes(),
        )

    @cute.kernel
    def kernel(
        self,
        tma_a: cute.CopyAtom,
        mA: cute.Tensor,
        tma_b: cute.CopyAtom,
        mB: cute.Tensor,
        tma_c: cute.CopyAtom,
        mC: cute.Tensor,
        mma: cute.TiledMma,
        one_a,
        sa: cute.ComposedLayout,
        sb: cute.ComposedLayout,
        sc: cute.Layout,
        k_tiles: cutlass.Int32,
    ):
        M, N, K = self.tile
        tidx, _, _ = cute.arch.thread_idx()
        warp = cute.arch.make_warp_uniform(cute.arch.warp_idx())
        bm, bn, split = cute.arch.block_idx()
        mma_warps = 4 * (M // 64)
        storage = utils.SmemAllocator().allocate(self.Storage)
        sA = storage.sA.get_tensor(sa.outer, swizzle=sa.inner)
        sB = storage.sB.get_tensor(sb.outer, swizzle=sb.inner)
        sC = storage.sC.get_tensor(sc)
        per = cute.ceil_div(k_tiles, self.splits)
        first = split * per
        last = cutlass.min(first + per, k_tiles)
        pipe = pipeline.PipelineTmaAsync.create(
            barrier_storage=storage.bars.data_ptr(),
            num_stages=self.stages,
            producer_group=pipeline.CooperativeGroup(pipeline.Agent.Thread),
            consumer_group=pipeline.CooperativeGroup(pipeline.Agent.Thread, mma_warps),
            tx_count=cute.size_in_bytes(self.dt, one_a)
            + cute.size_in_bytes(self.dt, cute.slice_(sb, (None, None, 0))),
        )
        gA = cute.local_tile(mA, (M, K), (bm, None))
        gB = cute.local_tile(mB, (N, K), (bn, None))
        gC = cute.local_tile(mC, (M, N), (bm, bn))
        tAs, tAg = cpasync.tma_partition(
            tma_a, 0, cute.make_layout(1), cute.group_modes(sA, 0, 2), cute.group_modes(gA, 0, 2)
        )
        tBs, tBg = cpasync.tma_partition(
            tma_b, 0, cute.make_layout(1), cute.group_modes(sB, 0, 2), cute.group_modes(gB, 0, 2)
        )
        tCs, tCg = cpasync.tma_partition(
            tma_c, smem_tensor=cute.group_modes(sC, 0, 2), gmem_tensor=cute.group_modes(gC, 0, 2)
        )
        if warp == mma_warps:
            state = pipeline.make_pipeline_state(pipeline.PipelineUserType.Producer, self.stages)
            for k in range(first, last):
                pipe.producer_acquire(state)
                bar = pipe.producer_get_barrier(state)
                cute.copy(tma_a, tAg[None, k], tAs[None, state.index], tma_bar_ptr=bar)
                cute.copy(tma_b, tBg[None, k], tBs[None, state.index], tma_bar_ptr=bar)
                pipe.producer_commit(state)
                state.advance()
            pipe.producer_tail(state)
        elif first < last:
            thr = mma.get_slice(tidx)
            tCrA = mma.make_fragment_A(thr.partition_A(sA))
            tCrB = mma.make_fragment_B(thr.partition_B(sB))
            acc = mma.make_fragment_C(mma.partition_shape_C((M, N)))
            state = pipeline.make_pipeline_state(pipeline.PipelineUserType.Consumer, self.stages)
            mma.set(warpgroup.Field.ACCUMULATE, False)
            for k in range(first, last):
                token = pipe.consumer_try_wait(state)
                pipe.consumer_wait(state, token)
                warpgroup.fence()
                for kb in cutlass.range_constexpr(cute.size(tCrA, mode=[2])):
                    cute.gemm(
                        mma,
                        acc,
                        tCrA[None, None, kb, state.index],
                        tCrB[None, None, kb, state.index],
                        acc,
                    )
                    mma.set(warpgroup.Field.ACCUMULATE, True)
                warpgroup.commit_group()
                warpgroup.wait_group(0)
                pipe.consumer_release(state)
                state.advance()
            out = cute.make_fragment_like(acc, self.cdt)
            out.store(acc.load().to(self.cdt))
            cute.autovec_copy(out, thr.partition_C(sC))
            cute.arch.fence_view_async_shared()
            cute.arch.barrier(barrier_id=2, number_of_threads=32 * mma_warps)
            if warp == 0:
                cute.copy(tma_c, tCs, tCg)
                cute.arch.cp_async_bulk_commit_group()
                cute.arch.cp_async_bulk_wait_group(0, read=True)


def check(m, n, k, dtype=np.float32, c_order="C", **options):
    rng = np.random.default_rng(0)
    a, b = (rng.integers(-2, 3, (rows, k)).astype(np.float16) for rows in (m, n))
    c = np.array(rng.integers(-2, 3, (m, n)).astype(dtype), order=c_order)
    exact = c + a.astype(np.float64) @ b.T.astype(np.float64)
    tensors = [from_dlpack(t, assumed_align=16).mark_layout_dynamic() for t in (a, b, c)]
    SplitK(**options)(*tensors)
    np.testing.assert_array_equal(c.astype(np.float64), exact)


def run():
    check(100, 80, 264)
    check(128, 72, 136, np.float16, "F", tile=(128, 64, 32), splits=2)
