"""C = A B^T on Hopper: resident blocks whose two multiplying warp groups share a tile, or take
turns (ping-pong): one multiplies while the other writes its results.
"""

import enum

import numpy as np

import basedsl_cute as cutlass
import basedsl_cute.cute as cute
import basedsl_cute.pipeline as pipeline
import basedsl_cute.utils as utils
import basedsl_cute.utils.hopper_helpers as sm90_utils
from basedsl_cute.cute.nvgpu import cpasync, warpgroup
from basedsl_cute.cute.runtime import from_dlpack
from basedsl_cute.pipeline import pipeline_init_arrive, pipeline_init_wait


class NamedBarrierGemm(enum.IntEnum):
    Epilogue = enum.auto()
    EpilogueLoad = enum.auto()


class HopperGemm:
    num_epi_stages = 2

    def __init__(
        self,
        acc_dtype,
        tile_shape_mn,
        cluster_shape_mn=(1, 1),
        pingpong=True,
        swizzle_size=1,
    ):
        self.swizzle_size = swizzle_size  # tiles side by side, which share what is in the L2 cache
        self.acc_dtype = acc_dtype
        self.pingpong = pingpong
        self.cluster_shape_mn = cluster_shape_mn
        self.tile_shape_mnk = (*tile_shape_mn, 1)
        self.atom_layout_mnk = (1, 1, 1) if pingpong else (2, 1, 1)
        self.mma_warp_groups = 2
        self.num_threads_per_warp_group = 128
        self.threads_per_cta = 3 * 128
        self.smem_capacity = utils.get_smem_capacity_in_bytes("sm_90")
        self.load_register_requirement = 24
        self.mma_register_requirement = 240
        self.is_a_mcast = cluster_shape_mn[1] > 1
        self.is_b_mcast = cluster_shape_mn[0] > 1
        self.load_warp_id = 8
        self.buffer_align_bytes = 1024

    @cute.jit
    def __call__(
        self,
        mA: cute.Tensor,
        mB: cute.Tensor,
        mD: cute.Tensor,
        max_active_clusters: cutlass.Int32,
        stream,
    ):
        self.a_dtype, self.b_dtype, self.d_dtype = mA.element_type, mB.element_type, mD.element_type
        self.a_layout, self.b_layout, self.d_layout = (
            utils.LayoutEnum.from_tensor(t) for t in (mA, mB, mD)
        )
        if cutlass.const_expr(self.a_dtype.width == 16 and self.a_dtype != self.b_dtype):
            raise TypeError(f"Type mismatch: {self.a_dtype} != {self.b_dtype}")
        if cutlass.const_expr(self.a_dtype.width not in (8, 16)):
            raise TypeError("a_dtype should be 8 or 16 bits")
        self.tiled_mma = sm90_utils.make_trivial_tiled_mma(
            self.a_dtype,
            self.b_dtype,
            self.a_layout.sm90_mma_major_mode(),
            self.b_layout.sm90_mma_major_mode(),
            self.acc_dtype,
            self.atom_layout_mnk,
            tiler_mn=(64, self.tile_shape_mnk[1]),
        )
        k = cute.size(self.tiled_mma.shape_mnk, mode=[2])
        self.tile_shape_mnk = (self.tile_shape_mnk[0], self.tile_shape_mnk[1], k * 4)
        self.cluster_layout_mnk = cute.make_layout((*self.cluster_shape_mn, 1))
        self.epi_tile = sm90_utils.compute_tile_shape_or_override(
            self.tile_shape_mnk, self.d_dtype, is_cooperative=not self.pingpong
        )
        self.ab_stage = self._stages()
        self.a_smem = sm90_utils.make_smem_layout_a(
            self.a_layout, self.tile_shape_mnk, self.a_dtype, self.ab_stage
        )
        self.b_smem = sm90_utils.make_smem_layout_b(
            self.b_layout, self.tile_shape_mnk, self.b_dtype, self.ab_stage
        )
        self.epi_smem = sm90_utils.make_smem_layout_epi(
            self.d_dtype, self.d_layout, self.epi_tile, self.num_epi_stages
        )
        tma_a, tA = self._tma_load(
            mA,
            self.a_smem,
            (self.tile_shape_mnk[0], self.tile_shape_mnk[2]),
            self.cluster_shape_mn[1],
        )
        tma_b, tB = self._tma_load(
            mB,
            self.b_smem,
            (self.tile_shape_mnk[1], self.tile_shape_mnk[2]),
            self.cluster_shape_mn[0],
        )
        tma_d, tD = cpasync.make_tiled_tma_atom(
            cpasync.CopyBulkTensorTileS2GOp(),
            mD,
            cute.slice_(self.epi_smem, (None, None, 0)),
            self.epi_tile,
        )
        tile_m, tile_n = self.tile_shape_mnk[:2]
        gd = cute.zipped_divide(mD, tiler=(tile_m, tile_n))
        num_ctas_mnl = gd[(0, (None, None, None))].shape
        self.tile_sched_params = utils.PersistentTileSchedulerParams(
            num_ctas_mnl, (*self.cluster_shape_mn, 1), self.swizzle_size
        )
        grid = utils.StaticPersistentTileScheduler.get_grid_shape(
            self.tile_sched_params, max_active_clusters
        )

        @cute.struct
        class SharedStorage:
            mainloop: cute.struct.MemRange[cutlass.Int64, self.ab_stage * 2]
            math_order: cute.struct.MemRange[cutlass.Int64, self.mma_warp_groups * 2]
            sD: cute.struct.Align[
                cute.struct.MemRange[
                    self.d_dtype, cute.cosize(self.epi_smem) * (2 if self.pingpong else 1)
                ],
                self.buffer_align_bytes,
            ]
            sA: cute.struct.Align[
                cute.struct.MemRange[self.a_dtype, cute.cosize(self.a_smem)],
                self.buffer_align_bytes,
            ]
            sB: cute.struct.Align[
                cute.struct.MemRange[self.b_dtype, cute.cosize(self.b_smem)],
                self.buffer_align_bytes,
            ]

        self.shared_storage = SharedStorage
        self.kernel(
            tma_a,
            tA,
            tma_b,
            tB,
            tma_d,
            tD,
            self.tiled_mma,
            self.cluster_layout_mnk,
            self.a_smem,
            self.b_smem,
            self.epi_smem,
            self.tile_sched_params,
        ).launch(
            grid=grid,
            block=[self.threads_per_cta, 1, 1],
            cluster=(*self.cluster_shape_mn, 1),
            min_blocks_per_mp=1,
            stream=stream,
        )

    def _stages(self):
        """The number of stages that fit beside the results and the barriers."""
        m, n, k = self.tile_shape_mnk
        groups = 2 if self.pingpong else 1
        result = cute.size(self.epi_tile) * self.d_dtype.width // 8 * self.num_epi_stages * groups
        return (self.smem_capacity - 1024 - result) // (
            (m * self.a_dtype.width + n * self.b_dtype.width) * k // 8
        )

    @staticmethod
    def _tma_load(tensor, smem, tile, mcast):
        op = (
            cpasync.CopyBulkTensorTileG2SOp()
            if mcast == 1
            else cpasync.CopyBulkTensorTileG2SMulticastOp()
        )
        return cpasync.make_tiled_tma_atom(
            op, tensor, cute.slice_(smem, (None, None, 0)), tile, num_multicast=mcast
        )

    @cute.kernel
    def kernel(
        self,
        tma_a: cute.CopyAtom,
        mA: cute.Tensor,
        tma_b: cute.CopyAtom,
        mB: cute.Tensor,
        tma_d: cute.CopyAtom,
        mD: cute.Tensor,
        tiled_mma: cute.TiledMma,
        cluster_layout_mnk: cute.Layout,
        a_smem: cute.ComposedLayout,
        b_smem: cute.ComposedLayout,
        epi_smem: cute.ComposedLayout,
        params: utils.PersistentTileSchedulerParams,
    ):
        tidx, _, _ = cute.arch.thread_idx()
        warp_idx = cute.arch.make_warp_uniform(cute.arch.warp_idx())
        if warp_idx == 0:
            for d in (tma_a, tma_b, tma_d):
                cpasync.prefetch_descriptor(d)
        rank = cute.arch.make_warp_uniform(cute.arch.block_idx_in_cluster())
        coord = cluster_layout_mnk.get_flat_coord(rank)
        a_mask = cute.make_layout_image_mask(cluster_layout_mnk, coord, mode=1)
        b_mask = cute.make_layout_image_mask(cluster_layout_mnk, coord, mode=0)
        a_mask = a_mask if self.is_a_mcast else 0
        b_mask = b_mask if self.is_b_mcast else 0
        tx = cute.size_in_bytes(
            self.a_dtype, cute.slice_(a_smem, (None, None, 0))
        ) + cute.size_in_bytes(self.b_dtype, cute.slice_(b_smem, (None, None, 0)))
        smem = cutlass.utils.SmemAllocator()
        storage = smem.allocate(self.shared_storage)
        mcast_size = self.cluster_shape_mn[0] + self.cluster_shape_mn[1] - 1
        warps = 4 if self.pingpong else 8
        mainloop = pipeline.PipelineTmaAsync.create(
            barrier_storage=storage.mainloop.data_ptr(),
            num_stages=self.ab_stage,
            producer_group=pipeline.CooperativeGroup(pipeline.Agent.Thread),
            consumer_group=pipeline.CooperativeGroup(pipeline.Agent.Thread, mcast_size * warps),
            tx_count=tx,
            cta_layout_vmnk=cute.make_layout((1, *cluster_layout_mnk.shape)),
            defer_sync=True,
        )
        math_order = pipeline.PipelineOrder.create(
            barrier_storage=storage.math_order.data_ptr(),
            depth=2,
            length=2,
            group_id=cute.arch.make_warp_uniform(tidx // 128) % 2,
            producer_group=pipeline.CooperativeGroup(pipeline.Agent.Thread, 128),
            defer_sync=True,
        )
        pipeline_init_arrive(cluster_shape_mn=self.cluster_shape_mn, is_relaxed=True)
        sA = storage.sA.get_tensor(a_smem.outer, swizzle=a_smem.inner)
        sB = storage.sB.get_tensor(b_smem.outer, swizzle=b_smem.inner)
        gA = cute.local_tile(
            mA, cute.slice_(self.tile_shape_mnk, (None, 0, None)), (None, None, None)
        )
        gB = cute.local_tile(
            mB, cute.slice_(self.tile_shape_mnk, (0, None, None)), (None, None, None)
        )
        gD = cute.local_tile(
            mD, cute.slice_(self.tile_shape_mnk, (None, None, 0)), (None, None, None)
        )
        a_cta_layout = cute.make_layout(cute.slice_(cluster_layout_mnk, (0, None, 0)).shape)
        tAsA, tAgA = cpasync.tma_partition(
            tma_a, coord[1], a_cta_layout, cute.group_modes(sA, 0, 2), cute.group_modes(gA, 0, 2)
        )
        b_cta_layout = cute.make_layout(cute.slice_(cluster_layout_mnk, (None, 0, 0)).shape)
        tBsB, tBgB = cpasync.tma_partition(
            tma_b, coord[0], b_cta_layout, cute.group_modes(sB, 0, 2), cute.group_modes(gB, 0, 2)
        )
        k_tile_cnt = cute.size(gA, mode=[3])
        pipeline_init_wait(cluster_shape_mn=self.cluster_shape_mn)

        if warp_idx >= self.load_warp_id:
            cute.arch.setmaxregister_decrease(self.load_register_requirement)
            if warp_idx == self.load_warp_id:
                state = pipeline.make_pipeline_state(
                    pipeline.PipelineUserType.Producer, self.ab_stage
                )
                sched = utils.StaticPersistentTileScheduler.create(
                    params, cute.arch.block_idx(), cute.arch.grid_dim()
                )
                work = sched.initial_work_tile_info()
                while work.is_valid_tile:
                    t = work.tile_idx
                    tAgA_k = tAgA[(None, t[0], None, t[2])]
                    tBgB_k = tBgB[(None, t[1], None, t[2])]
                    state.reset_count()
                    for _ in cutlass.range(k_tile_cnt, unroll=1):
                        mainloop.producer_acquire(state)
                        bar = mainloop.producer_get_barrier(state)
                        cute.copy(
                            tma_a,
                            tAgA_k[(None, state.count)],
                            tAsA[(None, state.index)],
                            tma_bar_ptr=bar,
                            mcast_mask=a_mask,
                        )
                        cute.copy(
                            tma_b,
                            tBgB_k[(None, state.count)],
                            tBsB[(None, state.index)],
                            tma_bar_ptr=bar,
                            mcast_mask=b_mask,
                        )
                        mainloop.producer_commit(state)
                        state.advance()
                    sched.advance_to_next_work()
                    work = sched.get_current_work()
                mainloop.producer_tail(state)
        if warp_idx < self.load_warp_id:
            cute.arch.setmaxregister_increase(self.mma_register_requirement)
            wg = cute.arch.make_warp_uniform(tidx // 128)
            if cutlass.const_expr(self.pingpong):
                tidx = tidx % 128
            wg_layout = cute.make_layout(
                self.mma_warp_groups if not self.pingpong else 1, stride=128
            )
            thr_mma = tiled_mma.get_slice(wg_layout(wg if not self.pingpong else 0))
            tCrA = tiled_mma.make_fragment_A(thr_mma.partition_A(sA))
            tCrB = tiled_mma.make_fragment_B(thr_mma.partition_B(sB))
            acc = cute.make_rmem_tensor(
                tiled_mma.partition_shape_C(self.tile_shape_mnk[:2]), self.acc_dtype
            )
            read = pipeline.make_pipeline_state(pipeline.PipelineUserType.Consumer, self.ab_stage)
            release = pipeline.make_pipeline_state(
                pipeline.PipelineUserType.Consumer, self.ab_stage
            )
            sched = utils.StaticPersistentTileScheduler.create(
                params, cute.arch.block_idx(), cute.arch.grid_dim()
            )
            work = sched.initial_work_tile_info()
            if cutlass.const_expr(self.pingpong):
                if wg == 1:
                    sched.advance_to_next_work()
                    work = sched.get_current_work()
                    for _ in cutlass.range(k_tile_cnt):
                        read.advance()
                        release.advance()
            sD_all = storage.sD.get_tensor(
                cute.append(
                    epi_smem.outer,
                    cute.make_layout(2 if self.pingpong else 1, stride=cute.cosize(epi_smem.outer)),
                ),
                swizzle=epi_smem.inner,
            )
            sD = sD_all[None, None, None, wg if cutlass.const_expr(self.pingpong) else 0]
            num_k_blocks = cute.size(tCrA, mode=[2])
            store = pipeline.PipelineTmaStore.create(
                num_stages=self.num_epi_stages,
                producer_group=pipeline.CooperativeGroup(
                    pipeline.Agent.Thread, 128 * (1 if self.pingpong else 2)
                ),
            )
            while work.is_valid_tile:
                t = work.tile_idx
                if cutlass.const_expr(self.pingpong):
                    math_order.wait()
                tiled_mma.set(warpgroup.Field.ACCUMULATE, False)
                warpgroup.fence()
                peek = cutlass.Boolean(1)
                if 0 < k_tile_cnt:
                    peek = mainloop.consumer_try_wait(read)
                for k_tile in cutlass.range(k_tile_cnt, unroll=1):
                    mainloop.consumer_wait(read, peek)
                    warpgroup.fence()
                    for kb in cutlass.range(num_k_blocks, unroll_full=True):
                        c = (None, None, kb, read.index)
                        cute.gemm(tiled_mma, acc, tCrA[c], tCrB[c], acc)
                        tiled_mma.set(warpgroup.Field.ACCUMULATE, True)
                    warpgroup.commit_group()
                    # This tile's products run while the next is waited for.
                    warpgroup.wait_group(1)
                    if k_tile > 0:
                        mainloop.consumer_release(release)
                        release.advance()
                    read.advance()
                    peek = cutlass.Boolean(1)
                    if k_tile + 1 < k_tile_cnt:
                        peek = mainloop.consumer_try_wait(read)
                warpgroup.wait_group(0)
                mainloop.consumer_release(release)
                release.advance()
                if cutlass.const_expr(self.pingpong):
                    math_order.arrive()
                    math_order.wait()
                self.epilogue(
                    tma_d, gD[(None, None, *t)], sD, acc, tiled_mma, tidx, wg, warp_idx, store
                )
                if cutlass.const_expr(self.pingpong):
                    math_order.arrive()
                    for _ in cutlass.range(k_tile_cnt):
                        read.advance()
                        release.advance()
                    sched.advance_to_next_work(advance_count=self.mma_warp_groups)
                else:
                    sched.advance_to_next_work()
                work = sched.get_current_work()
            store.producer_tail()

    @cute.jit
    def epilogue(
        self,
        tma_d: cute.CopyAtom,
        gD: cute.Tensor,
        sD: cute.Tensor,
        acc: cute.Tensor,
        tiled_mma: cute.TiledMma,
        tidx: cutlass.Int32,
        wg: cutlass.Int32,
        warp_idx: cutlass.Int32,
        store,
    ):
        copy_atom_r2s = sm90_utils.sm90_get_smem_store_op(
            self.d_layout, elem_ty_d=self.d_dtype, elem_ty_acc=self.acc_dtype
        )
        copy_atom_D = cute.make_copy_atom(
            cute.nvgpu.warp.StMatrix8x8x16bOp(self.d_layout.is_m_major_c(), 4), self.d_dtype
        )
        tiled_D_atom = cute.make_tiled_copy_C_atom(copy_atom_D, tiled_mma)
        r2s = cute.make_tiled_copy_S(copy_atom_r2s, tiled_D_atom)
        thr = r2s.get_slice(tidx)
        tRS_sD = thr.partition_D(sD)
        tRS_rAcc = r2s.retile(acc)
        rD_shape = cute.shape(thr.partition_S(sD))
        tRS_rD_acc = cute.make_rmem_tensor_like(cute.make_layout(rD_shape[:3]), self.acc_dtype)
        n_per = cute.size(tRS_rD_acc)
        g = cute.zipped_divide(gD, self.epi_tile)
        bSG_sD, bSG_gD = cpasync.tma_partition(
            tma_d, 0, cute.make_layout(1), cute.group_modes(sD, 0, 2), g
        )
        num = cute.size(g, mode=[1])
        lay = cute.make_layout(g.shape[1], stride=(g.shape[1][1], 1))
        bar_id = int(NamedBarrierGemm.Epilogue)
        threads = 128 * (1 if self.pingpong else 2)
        bar = pipeline.NamedBarrier(barrier_id=bar_id, num_threads=threads)
        is_leader = warp_idx == 0 if not self.pingpong else warp_idx % 4 == 0
        for e in cutlass.range_constexpr(num):
            for v in cutlass.range_constexpr(n_per):
                tRS_rD_acc[v] = tRS_rAcc[e * n_per + v]
            out = cute.make_rmem_tensor_like(tRS_rD_acc, self.d_dtype)
            out.store(tRS_rD_acc.load().to(self.d_dtype))
            buf = e % cute.size(tRS_sD, mode=[3])
            cute.copy(r2s, out, tRS_sD[(None, None, None, buf)])
            cute.arch.fence_proxy("async.shared", space="cta")
            if cutlass.const_expr(self.pingpong):
                cute.arch.barrier(barrier_id=bar_id + wg, number_of_threads=128)
            else:
                bar.arrive_and_wait()
            if is_leader:
                cute.copy(tma_d, bSG_sD[(None, buf)], bSG_gD[(None, lay.get_hier_coord(e))])
                store.producer_commit()
                store.producer_acquire()
            if cutlass.const_expr(self.pingpong):
                cute.arch.barrier(barrier_id=bar_id + wg, number_of_threads=128)
            else:
                bar.arrive_and_wait()
        if is_leader:
            store.producer_tail()
        if cutlass.const_expr(self.pingpong):
            cute.arch.barrier(barrier_id=bar_id + wg, number_of_threads=128)
        else:
            bar.arrive_and_wait()


def check(m=200, n=136, k=136, l=2, tile=(64, 64), pingpong=True, cluster=(1, 1), c="n", mac=2):
    rng = np.random.default_rng(1)
    A = rng.integers(-2, 3, (l, m, k)).astype(np.float16)
    B = rng.integers(-2, 3, (l, n, k)).astype(np.float16)
    D = np.zeros((l, m, n) if c == "n" else (l, n, m), np.float16)
    va, vb = (
        from_dlpack(x.transpose(1, 2, 0), assumed_align=16).mark_layout_dynamic(leading_dim=1)
        for x in (A, B)
    )
    d = D.transpose(1, 2, 0) if c == "n" else D.transpose(2, 1, 0)
    vd = from_dlpack(d, assumed_align=16).mark_layout_dynamic(leading_dim=1 if c == "n" else 0)
    st = cutlass.cuda.default_stream()
    f = cute.compile(HopperGemm(cutlass.Float32, tile, cluster, pingpong), va, vb, vd, mac, st)
    f(va, vb, vd, mac, st)
    np.testing.assert_array_equal(
        d, np.einsum("lmk,lnk->mnl", A.astype(np.float32), B.astype(np.float32)).astype(np.float16)
    )


def run():
    check(c="m", k=72)
    check(pingpong=False, tile=(128, 64), cluster=(1, 2), l=1)
