"""C = A B^T of 8-bit floats on Hopper, with a second accumulator in float32.

Hopper's sums of 8-bit floats keep 14 bits or so. So products are summed for a few steps of 128
elements of K in one accumulator, which is then added to another. With scales, of 1 x 128 elements
of A and of 128 x 128 of B, each step's sum is scaled. A's scales come by TMA with the stage that
they belong to; of B's, each lane of a warp keeps one, and hands it on when its step comes.

Blocks are resident. `groups` warp groups multiply 64 rows each of a tile; while one of them adds,
the others' products run.
"""

import ml_dtypes
import numpy as np

import basedsl_cute as cutlass
import basedsl_cute.cute as cute
import basedsl_cute.pipeline as pipeline
import basedsl_cute.utils as utils
import basedsl_cute.utils.hopper_helpers as sm90_utils
from basedsl_cute.cute.nvgpu import cpasync, warpgroup
from basedsl_cute.cute.runtime import from_dlpack
from basedsl_cute.pipeline import pipeline_init_arrive, pipeline_init_wait

EPILOGUE_BARRIER = 1
STEP = 128  # elements of K


class TwoAccumulators:
    """Tiles of 64 * `groups` x `n`; the first accumulator is added each `interval` steps. Tiles run
    along M in bands of `band` tiles of N. With `overlap`, a step's products run while those of the
    step before them are added.
    """

    epi_stages = 2

    def __init__(self, groups=2, n=128, cluster=(1, 2), interval=1, band=1, overlap=False):
        self.groups, self.interval, self.band, self.overlap = groups, interval, band, overlap
        self.cluster = (*cluster, 1)
        self.tile = (64 * groups, n, STEP)
        self.epi_tile = (64 * groups, 32)
        self.threads = 128 * (groups + 1)
        self.registers = {2: (24, 240), 3: (32, 160)}[
            groups
        ]  # of the threads that load, and others

    @cute.jit
    def __call__(
        self, mA: cute.Tensor, mB: cute.Tensor, mD: cute.Tensor, clusters, stream, scales=None
    ):
        """A is (M, K, batches), B (N, K, batches), D (M, N, batches), row-major; `scales` are
        (M, K / 128) with M contiguous, and (N / 128, K / 128) with K contiguous.
        """
        self.d_dtype, self.d_layout = mD.element_type, utils.LayoutEnum.from_tensor(mD)
        row = utils.LayoutEnum.ROW_MAJOR
        tiled_mma = sm90_utils.make_trivial_tiled_mma(
            mA.element_type,
            mB.element_type,
            row.sm90_mma_major_mode(),
            row.sm90_mma_major_mode(),
            cutlass.Float32,
            (self.groups, 1, 1),
            tiler_mn=(64, self.tile[1]),
        )
        m, n, k = self.tile
        result = cute.size(self.epi_tile) * self.d_dtype.width // 8 * self.epi_stages
        scaled = scales is not None
        self.stages = (utils.get_smem_capacity_in_bytes("sm_90") - 2048 - result) // (
            (m + n) * k + 4 * m
        )
        a_smem = sm90_utils.make_smem_layout_a(row, self.tile, mA.element_type, self.stages)
        b_smem = sm90_utils.make_smem_layout_b(row, self.tile, mB.element_type, self.stages)
        s_smem = cute.make_layout((m, 1, self.stages))
        epi_smem = sm90_utils.make_smem_layout_epi(
            self.d_dtype, self.d_layout, self.epi_tile, self.epi_stages
        )
        tma_a, tA = self.load_of(mA, a_smem, (m, k), self.cluster[1])
        tma_b, tB = self.load_of(mB, b_smem, (n, k), self.cluster[0])
        tma_d, tD = cpasync.make_tiled_tma_atom(
            cpasync.CopyBulkTensorTileS2GOp(),
            mD,
            cute.slice_(epi_smem, (None, None, 0)),
            self.epi_tile,
        )
        loads = [(tma_a, tA), (tma_b, tB)]
        scales_b = None
        if cutlass.const_expr(scaled):
            loads.append(self.load_of(scales[0], s_smem, (m, 1), 1))
            scales_b = scales[1]
        blocks = cute.ceil_div(mD.shape, (m, n, 1))
        params = utils.PersistentTileSchedulerParams(blocks, self.cluster, self.band)
        grid = utils.StaticPersistentTileScheduler.get_grid_shape(params, clusters)

        @cute.struct
        class Storage:
            barriers: cute.struct.MemRange[cutlass.Int64, self.stages * 2]
            d: cute.struct.Align[cute.struct.MemRange[self.d_dtype, cute.cosize(epi_smem)], 1024]
            a: cute.struct.Align[cute.struct.MemRange[mA.element_type, cute.cosize(a_smem)], 1024]
            b: cute.struct.Align[cute.struct.MemRange[mB.element_type, cute.cosize(b_smem)], 1024]
            s: cute.struct.Align[cute.struct.MemRange[cutlass.Float32, m * self.stages], 128]

        self.storage = Storage
        self.kernel(
            loads, tma_d, tD, tiled_mma, a_smem, b_smem, s_smem, epi_smem, params, scales_b
        ).launch(
            grid=grid,
            block=[self.threads, 1, 1],
            cluster=self.cluster,
            min_blocks_per_mp=1,
            stream=stream,
        )

    @staticmethod
    def load_of(tensor, smem, tile, multicast):
        op = (
            cpasync.CopyBulkTensorTileG2SOp()
            if multicast == 1
            else cpasync.CopyBulkTensorTileG2SMulticastOp()
        )
        return cpasync.make_tiled_tma_atom(
            op, tensor, cute.slice_(smem, (None, None, 0)), tile, num_multicast=multicast
        )

    @cute.kernel
    def kernel(
        self,
        loads,
        tma_d: cute.CopyAtom,
        mD: cute.Tensor,
        tiled_mma: cute.TiledMma,
        a_smem: cute.ComposedLayout,
        b_smem: cute.ComposedLayout,
        s_smem: cute.Layout,
        epi_smem: cute.ComposedLayout,
        params: utils.PersistentTileSchedulerParams,
        scales_b,
    ):
        tidx, _, _ = cute.arch.thread_idx()
        warp_idx = cute.arch.make_warp_uniform(cute.arch.warp_idx())
        (tma_a, mA), (tma_b, mB) = loads[:2]
        scaled = len(loads) > 2
        m, n, k = self.tile
        layout = cute.make_layout(self.cluster)
        coord = layout.get_flat_coord(cute.arch.make_warp_uniform(cute.arch.block_idx_in_cluster()))
        storage = utils.SmemAllocator().allocate(self.storage)
        warps = 4 * self.groups
        mainloop = pipeline.PipelineTmaAsync.create(
            barrier_storage=storage.barriers.data_ptr(),
            num_stages=self.stages,
            producer_group=pipeline.CooperativeGroup(pipeline.Agent.Thread),
            consumer_group=pipeline.CooperativeGroup(
                pipeline.Agent.Thread, (self.cluster[0] + self.cluster[1] - 1) * warps
            ),
            tx_count=(m + n) * k + 4 * m * scaled,
            cta_layout_vmnk=cute.make_layout((1, *self.cluster)),
            defer_sync=True,
        )
        pipeline_init_arrive(cluster_shape_mn=self.cluster[:2], is_relaxed=True)
        sA = storage.a.get_tensor(a_smem.outer, swizzle=a_smem.inner)
        sB = storage.b.get_tensor(b_smem.outer, swizzle=b_smem.inner)
        sS = storage.s.get_tensor(s_smem)
        gA = cute.local_tile(mA, (m, k), (None, None, None))
        gB = cute.local_tile(mB, (n, k), (None, None, None))
        gD = cute.local_tile(mD, (m, n), (None, None, None))
        steps = cute.size(gA, mode=[3])
        pipeline_init_wait(cluster_shape_mn=self.cluster[:2])
        sched = utils.StaticPersistentTileScheduler.create(
            params, cute.arch.block_idx(), cute.arch.grid_dim()
        )
        work = sched.initial_work_tile_info()

        if warp_idx >= warps:
            cute.arch.setmaxregister_decrease(self.registers[0])
            if warp_idx == warps:
                along_n = cute.make_layout(self.cluster[1])
                along_m = cute.make_layout(self.cluster[0])
                tAsA, tAgA = cpasync.tma_partition(
                    tma_a, coord[1], along_n, cute.group_modes(sA, 0, 2), cute.group_modes(gA, 0, 2)
                )
                tBsB, tBgB = cpasync.tma_partition(
                    tma_b, coord[0], along_m, cute.group_modes(sB, 0, 2), cute.group_modes(gB, 0, 2)
                )
                a_mask = cute.make_layout_image_mask(layout, coord, mode=1)
                b_mask = cute.make_layout_image_mask(layout, coord, mode=0)
                a_mask = a_mask if self.cluster[1] > 1 else 0
                b_mask = b_mask if self.cluster[0] > 1 else 0
                if cutlass.const_expr(scaled):
                    tma_s, mS = loads[2]
                    gS = cute.local_tile(mS, (m, 1), (None, None))
                    tSsS, tSgS = cpasync.tma_partition(
                        tma_s,
                        0,
                        cute.make_layout(1),
                        cute.group_modes(sS, 0, 2),
                        cute.group_modes(gS, 0, 2),
                    )
                state = pipeline.make_pipeline_state(
                    pipeline.PipelineUserType.Producer, self.stages
                )
                while work.is_valid_tile:
                    t = work.tile_idx
                    for step in cutlass.range(steps, unroll=1):
                        mainloop.producer_acquire(state)
                        bar = mainloop.producer_get_barrier(state)
                        cute.copy(
                            tma_a,
                            tAgA[None, t[0], step, t[2]],
                            tAsA[None, state.index],
                            tma_bar_ptr=bar,
                            mcast_mask=a_mask,
                        )
                        cute.copy(
                            tma_b,
                            tBgB[None, t[1], step, t[2]],
                            tBsB[None, state.index],
                            tma_bar_ptr=bar,
                            mcast_mask=b_mask,
                        )
                        if cutlass.const_expr(scaled):
                            cute.copy(
                                tma_s,
                                tSgS[None, t[0], step],
                                tSsS[None, state.index],
                                tma_bar_ptr=bar,
                            )
                        mainloop.producer_commit(state)
                        state.advance()
                    sched.advance_to_next_work()
                    work = sched.get_current_work()
                mainloop.producer_tail(state)
        if warp_idx < warps:
            cute.arch.setmaxregister_increase(self.registers[1])
            group = cute.arch.make_warp_uniform(tidx // 128)
            thr_mma = tiled_mma.get_slice(cute.make_layout(self.groups, stride=128)(group))
            rA = tiled_mma.make_fragment_A(thr_mma.partition_A(sA))
            rB = tiled_mma.make_fragment_B(thr_mma.partition_B(sB))
            acc = cute.make_rmem_tensor(tiled_mma.partition_shape_C((m, n)), cutlass.Float32)
            part = cute.make_rmem_tensor_like(acc)
            other = cute.make_rmem_tensor_like(acc)
            coords = tiled_mma.get_slice(tidx).partition_C(cute.make_identity_tensor((m, n)))
            row = coords[0][0]
            lane = cute.arch.lane_idx()
            state = pipeline.make_pipeline_state(pipeline.PipelineUserType.Consumer, self.stages)
            store = pipeline.PipelineTmaStore.create(
                num_stages=self.epi_stages,
                producer_group=pipeline.CooperativeGroup(pipeline.Agent.Thread, 32 * warps),
            )
            while work.is_valid_tile:
                t = work.tile_idx
                acc.fill(0.0)
                kept = cutlass.Float32(0)
                if cutlass.const_expr(self.overlap):
                    pairs = steps // 4
                    for four in cutlass.range(pairs, unroll=1):
                        kept = self.scale_of_b(scales_b, kept, 4 * four, steps, t, lane)
                        now = self.scales_of(sS, row, kept, 4 * four, state, scaled, mainloop)
                        self.multiply(tiled_mma, part, rA, rB, state)
                        for i in cutlass.range_constexpr(4):
                            new, old = (part, other) if i % 2 else (other, part)
                            before = state.clone()
                            state.advance()
                            later = now
                            if cutlass.const_expr(i < 3):
                                later = self.scales_of(
                                    sS, row, kept, 4 * four + i + 1, state, scaled, mainloop
                                )
                                self.multiply(tiled_mma, new, rA, rB, state)
                            warpgroup.wait_group(1 if i < 3 else 0)
                            mainloop.consumer_release(before)
                            self.add(acc, old, now)
                            now = later
                    begin = pairs * 4
                else:
                    begin = 0
                for step in cutlass.range(begin, steps, self.interval, unroll=1):
                    kept = self.scale_of_b(scales_b, kept, step, steps, t, lane)
                    now = self.scales_of(sS, row, kept, step, state, scaled, mainloop)
                    self.multiply(tiled_mma, part, rA, rB, state)
                    for i in cutlass.range_constexpr(1, self.interval):
                        if step + i < steps:
                            before = state.clone()
                            state.advance()
                            mainloop.consumer_wait(state)
                            self.multiply(tiled_mma, part, rA, rB, state, adds=True)
                            warpgroup.wait_group(1)
                            mainloop.consumer_release(before)
                    warpgroup.wait_group(0)
                    mainloop.consumer_release(state)
                    state.advance()
                    self.add(acc, part, now)
                self.epilogue(
                    tma_d, gD[None, None, *t], storage.d.get_tensor(
                        epi_smem.outer, swizzle=epi_smem.inner
                    ), acc, tiled_mma, tidx, warp_idx, store,
                )  # fmt: skip
                sched.advance_to_next_work()
                work = sched.get_current_work()
            store.producer_tail()

    @cute.jit
    def scale_of_b(self, scales, kept, step, steps, t, lane):
        """The scale of the step that this lane keeps, of 32 steps."""
        if cutlass.const_expr(scales is not None):
            if step % 32 == 0:
                kept = scales[t[1] * self.tile[1] // 128, cutlass.min(step + lane, steps - 1)]
        return kept

    @cute.jit
    def scales_of(self, sS, row, kept, step, state, scaled: cutlass.Constexpr, mainloop):
        """Wait for a stage; the scales of the thread's two rows."""
        mainloop.consumer_wait(state)
        upper = lower = 1.0
        if cutlass.const_expr(scaled):
            b = cute.arch.shuffle_sync(kept, step % 32)
            upper = sS[row, 0, state.index] * b
            lower = sS[row + 8, 0, state.index] * b
        return upper, lower

    @cute.jit
    def multiply(
        self, tiled_mma: cute.TiledMma, part, rA, rB, state, adds: cutlass.Constexpr = False
    ):
        """Issue the products of one stage, which replace `part`, or are added to it."""
        tiled_mma.set(warpgroup.Field.ACCUMULATE, adds)
        warpgroup.fence()
        for k in cutlass.range_constexpr(cute.size(rA, mode=[2])):
            c = (None, None, k, state.index)
            cute.gemm(tiled_mma, part, rA[c], rB[c], part)
            tiled_mma.set(warpgroup.Field.ACCUMULATE, True)
        warpgroup.commit_group()

    @cute.jit
    def add(self, acc: cute.Tensor, part: cute.Tensor, scales):
        # Of four results of a thread the first two are in its upper row.
        for i in cutlass.range_constexpr(cute.size(acc)):
            acc[i] += part[i] * scales[i % 4 // 2]

    @cute.jit
    def epilogue(
        self,
        tma_d: cute.CopyAtom,
        gD: cute.Tensor,
        sD: cute.Tensor,
        acc: cute.Tensor,
        tiled_mma: cute.TiledMma,
        tidx: cutlass.Int32,
        warp_idx: cutlass.Int32,
        store,
    ):
        copy_atom = sm90_utils.sm90_get_smem_store_op(
            self.d_layout, elem_ty_d=self.d_dtype, elem_ty_acc=cutlass.Float32
        )
        copy_atom_d = cute.make_copy_atom(
            cute.nvgpu.warp.StMatrix8x8x16bOp(self.d_layout.is_m_major_c(), 4), self.d_dtype
        )
        r2s = cute.make_tiled_copy_S(copy_atom, cute.make_tiled_copy_C_atom(copy_atom_d, tiled_mma))
        thr = r2s.get_slice(tidx)
        tRS_sD, tRS_rAcc = thr.partition_D(sD), r2s.retile(acc)
        shape = cute.shape(thr.partition_S(sD))
        now = cute.make_rmem_tensor_like(cute.make_layout(shape[:3]), cutlass.Float32)
        count = cute.size(now)
        g = cute.zipped_divide(gD, self.epi_tile)
        bSG_sD, bSG_gD = cpasync.tma_partition(
            tma_d, 0, cute.make_layout(1), cute.group_modes(sD, 0, 2), g
        )
        bar = pipeline.NamedBarrier(barrier_id=EPILOGUE_BARRIER, num_threads=128 * self.groups)
        for e in cutlass.range_constexpr(cute.size(g, mode=[1])):
            for v in cutlass.range_constexpr(count):
                now[v] = tRS_rAcc[e * count + v]
            out = cute.make_rmem_tensor_like(now, self.d_dtype)
            out.store(now.load().to(self.d_dtype))
            buffer = e % self.epi_stages
            # The store that read this buffer is over: the leader has waited for it.
            cute.copy(r2s, out, tRS_sD[None, None, None, buffer])
            cute.arch.fence_proxy("async.shared", space="cta")
            bar.arrive_and_wait()
            if warp_idx == 0:
                cute.copy(tma_d, bSG_sD[None, buffer], bSG_gD[None, (0, e)])
                store.producer_commit()
                store.producer_acquire()
            bar.arrive_and_wait()


def check(m=256, n=256, k=384, scaled=True, **config):
    rng = np.random.default_rng(2)
    A, B = (rng.integers(-4, 5, (x, k)).astype(ml_dtypes.float8_e4m3fn) for x in (m, n))
    D = np.zeros((m, n), ml_dtypes.bfloat16)
    sa = (2.0 ** rng.integers(-2, 3, (m, k // 128))).astype(np.float32)
    sb = (2.0 ** rng.integers(-2, 3, (n // 128, k // 128))).astype(np.float32)
    va, vb = (from_dlpack(x.view(np.uint8)[..., None], assumed_align=16) for x in (A, B))
    for v in (va, vb):
        v.element_type = cutlass.Float8E4M3FN
    va, vb, vd = (
        v.mark_layout_dynamic(leading_dim=1)
        for v in (va, vb, from_dlpack(D[..., None], assumed_align=16))
    )
    scales = scales_of(sa, sb) if scaled else None
    stream = cutlass.cuda.default_stream()
    f = cute.compile(TwoAccumulators(**config), va, vb, vd, 1, stream, scales)
    f(va, vb, vd, 1, stream, scales)
    wide, other = A.astype(np.float32), B.astype(np.float32)
    if scaled:
        wide *= np.repeat(sa, 128, 1)
        other *= np.repeat(np.repeat(sb, 128, 1), 128, 0)
    np.testing.assert_array_equal(D, (wide @ other.T).astype(ml_dtypes.bfloat16))


def scales_of(sa, sb):
    """A's scales by columns, as TMA loads them with a tile, and B's."""
    by_column = from_dlpack(np.ascontiguousarray(sa.T).T, assumed_align=16)
    return by_column.mark_layout_dynamic(leading_dim=0), from_dlpack(sb).mark_layout_dynamic(
        leading_dim=1
    )


def run():
    check(m=128, n=128, k=640, cluster=(1, 1), overlap=True)
    check(m=192, n=128, k=128, groups=3, cluster=(1, 1))
    check(n=128, scaled=False, interval=2, cluster=(2, 1))
