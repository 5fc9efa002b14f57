"""C = A B^T on Hopper: resident blocks walk over tiles; one warp loads by TMA, a warp group
multiplies by wgmma, and results leave through shared memory by TMA.
"""

import numpy as np

import basedsl_cute as cute
import basedsl_cute as cutlass
import basedsl_cute.pipeline as pipeline
import basedsl_cute.utils as utils
import basedsl_cute.utils.hopper_helpers as sm90_utils
from basedsl_cute.nvgpu import cpasync, warpgroup
from basedsl_cute.runtime import from_dlpack


class PersistentGemm:
    tile_mnk = (64, 64, 64)
    stages = 2
    threads = 256  # a warp group that multiplies, and one of which a warp loads
    load_registers, mma_registers = 40, 232

    def __init__(self, acc_dtype=cutlass.Float32):
        self.acc_dtype = acc_dtype

    @cute.jit
    def __call__(
        self,
        a: cute.Tensor,
        b: cute.Tensor,
        c: cute.Tensor,
        max_active_clusters: cutlass.Constexpr,
        stream=None,
    ):
        self.dtype = a.element_type
        a_layout, b_layout, c_layout = (utils.LayoutEnum.from_tensor(t) for t in (a, b, c))
        m, n, k = self.tile_mnk
        tiled_mma = sm90_utils.make_trivial_tiled_mma(
            self.dtype,
            self.dtype,
            a_layout.sm90_mma_major_mode(),
            b_layout.sm90_mma_major_mode(),
            self.acc_dtype,
            (1, 1, 1),
            tiler_mn=(64, n),
        )
        a_smem = sm90_utils.make_smem_layout_a(a_layout, self.tile_mnk, self.dtype, self.stages)
        b_smem = sm90_utils.make_smem_layout_b(b_layout, self.tile_mnk, self.dtype, self.stages)
        epi_tile = sm90_utils.compute_tile_shape_or_override(self.tile_mnk, c.element_type)
        c_smem = sm90_utils.make_smem_layout_epi(c.element_type, c_layout, epi_tile, 2)

        load = cpasync.CopyBulkTensorTileG2SOp()
        tma_a, tma_tensor_a = cpasync.make_tiled_tma_atom(
            load, a, cute.slice_(a_smem, (None, None, 0)), (m, k)
        )
        tma_b, tma_tensor_b = cpasync.make_tiled_tma_atom(
            load, b, cute.slice_(b_smem, (None, None, 0)), (n, k)
        )
        tma_c, tma_tensor_c = cpasync.make_tiled_tma_atom(
            cpasync.CopyBulkTensorTileS2GOp(), c, cute.slice_(c_smem, (None, None, 0)), epi_tile
        )

        tiles = cute.ceil_div(c.shape, (m, n, 1))
        params = utils.PersistentTileSchedulerParams(tiles, (1, 1, 1))
        grid = utils.StaticPersistentTileScheduler.get_grid_shape(params, max_active_clusters)

        @cute.struct
        class SharedStorage:
            barriers: cute.struct.MemRange[cutlass.Int64, self.stages * 2]
            sA: cute.struct.Align[cute.struct.MemRange[self.dtype, cute.cosize(a_smem)], 1024]
            sB: cute.struct.Align[cute.struct.MemRange[self.dtype, cute.cosize(b_smem)], 1024]
            sC: cute.struct.Align[cute.struct.MemRange[c.element_type, cute.cosize(c_smem)], 1024]

        self.shared_storage = SharedStorage
        self.c_layout = c_layout
        self.kernel(
            tma_a, tma_tensor_a, tma_b, tma_tensor_b, tma_c, tma_tensor_c,
            tiled_mma, a_smem, b_smem, c_smem, epi_tile, params,
        ).launch(
            grid=grid, block=(self.threads, 1, 1), min_blocks_per_mp=1, stream=stream
        )  # fmt: skip

    @cute.kernel
    def kernel(
        self,
        tma_a: cute.CopyAtom,
        mA: cute.Tensor,
        tma_b: cute.CopyAtom,
        mB: cute.Tensor,
        tma_c: cute.CopyAtom,
        mC: cute.Tensor,
        tiled_mma: cute.TiledMma,
        a_smem: cute.ComposedLayout,
        b_smem: cute.ComposedLayout,
        c_smem: cute.ComposedLayout,
        epi_tile: cutlass.Constexpr,
        params: utils.PersistentTileSchedulerParams,
    ):
        tidx, _, _ = cute.arch.thread_idx()
        warp = cute.arch.make_warp_uniform(cute.arch.warp_idx())
        if warp == 0:
            cpasync.prefetch_descriptor(tma_a)
            cpasync.prefetch_descriptor(tma_b)
            cpasync.prefetch_descriptor(tma_c)

        storage = cutlass.utils.SmemAllocator().allocate(self.shared_storage)
        sA = storage.sA.get_tensor(a_smem.outer, swizzle=a_smem.inner)
        sB = storage.sB.get_tensor(b_smem.outer, swizzle=b_smem.inner)
        sC = storage.sC.get_tensor(c_smem.outer, swizzle=c_smem.inner)

        bytes_of_stage = cute.size_in_bytes(
            self.dtype, cute.slice_(a_smem, (None, None, 0))
        ) + cute.size_in_bytes(self.dtype, cute.slice_(b_smem, (None, None, 0)))
        producer, consumer = pipeline.PipelineTmaAsync.create(
            barrier_storage=storage.barriers.data_ptr(),
            num_stages=self.stages,
            producer_group=pipeline.CooperativeGroup(pipeline.Agent.Thread),
            consumer_group=pipeline.CooperativeGroup(pipeline.Agent.Thread, 4),
            tx_count=bytes_of_stage,
            cta_layout_vmnk=cute.make_layout((1, 1, 1, 1)),
        ).make_participants()

        gA = cute.local_tile(mA, cute.slice_(self.tile_mnk, (None, 0, None)), (None, None, None))
        gB = cute.local_tile(mB, cute.slice_(self.tile_mnk, (0, None, None)), (None, None, None))
        gC = cute.local_tile(mC, cute.slice_(self.tile_mnk, (None, None, 0)), (None, None, None))
        one = cute.make_layout(1)
        tAsA, tAgA = cpasync.tma_partition(
            tma_a, 0, one, cute.group_modes(sA, 0, 2), cute.group_modes(gA, 0, 2)
        )
        tBsB, tBgB = cpasync.tma_partition(
            tma_b, 0, one, cute.group_modes(sB, 0, 2), cute.group_modes(gB, 0, 2)
        )
        k_tiles = cute.size(gA, mode=[3])
        scheduler = utils.StaticPersistentTileScheduler.create(
            params, cute.arch.block_idx(), cute.arch.grid_dim()
        )
        work = scheduler.initial_work_tile_info()

        if warp >= 4:
            cute.arch.warpgroup_reg_dealloc(self.load_registers)
            if warp == 4:
                while work.is_valid_tile:
                    m, n, l = work.tile_idx
                    for k in cutlass.range(k_tiles, unroll=1):
                        handle = producer.acquire_and_advance()
                        cute.copy(
                            tma_a,
                            tAgA[None, m, k, l],
                            tAsA[None, handle.index],
                            tma_bar_ptr=handle.barrier,
                        )
                        cute.copy(
                            tma_b,
                            tBgB[None, n, k, l],
                            tBsB[None, handle.index],
                            tma_bar_ptr=handle.barrier,
                        )
                    scheduler.advance_to_next_work()
                    work = scheduler.get_current_work()
                producer.tail()
        else:
            cute.arch.warpgroup_reg_alloc(self.mma_registers)
            thr_mma = tiled_mma.get_slice(tidx)
            tCrA = tiled_mma.make_fragment_A(thr_mma.partition_A(sA))
            tCrB = tiled_mma.make_fragment_B(thr_mma.partition_B(sB))
            accumulators = cute.make_rmem_tensor(
                tiled_mma.partition_shape_C(self.tile_mnk[:2]), self.acc_dtype
            )
            store = pipeline.PipelineTmaStore.create(
                num_stages=2,
                producer_group=pipeline.CooperativeGroup(pipeline.Agent.Thread, 128),
            )
            while work.is_valid_tile:
                m, n, l = work.tile_idx
                tiled_mma.set(warpgroup.Field.ACCUMULATE, False)
                for k in cutlass.range(k_tiles, unroll=1):
                    handle = consumer.wait_and_advance()
                    warpgroup.fence()
                    for block in cutlass.range_constexpr(cute.size(tCrA, mode=[2])):
                        at = (None, None, block, handle.index)
                        cute.gemm(tiled_mma, accumulators, tCrA[at], tCrB[at], accumulators)
                        tiled_mma.set(warpgroup.Field.ACCUMULATE, True)
                    warpgroup.commit_group()
                    warpgroup.wait_group(0)
                    handle.release()

                self.write_tile(
                    tma_c,
                    gC[None, None, m, n, l],
                    sC,
                    accumulators,
                    tiled_mma,
                    tidx,
                    warp,
                    store,
                    epi_tile,
                )
                scheduler.advance_to_next_work()
                work = scheduler.get_current_work()
            store.producer_tail()

    @cute.jit
    def write_tile(self, tma_c, tile, sC, accumulators, tiled_mma, tidx, warp, store, epi_tile):
        """Registers to shared memory in pieces of `epi_tile`, each sent off by one warp."""
        dtype = sC.element_type
        op = sm90_utils.sm90_get_smem_store_op(
            self.c_layout, elem_ty_d=dtype, elem_ty_acc=self.acc_dtype
        )
        atom = cute.make_copy_atom(cute.nvgpu.warp.StMatrix8x8x16bOp(False, 4), dtype)
        tiled_atom = cute.make_tiled_copy_C_atom(atom, tiled_mma)
        to_smem = cute.make_tiled_copy_S(op, tiled_atom)
        thread = to_smem.get_slice(tidx)
        tRS_sD = thread.partition_D(sC)
        tRS_rAcc = to_smem.retile(accumulators)
        shape = cute.shape(thread.partition_S(sC))
        piece = cute.make_rmem_tensor_like(cute.make_layout(shape[:3]), self.acc_dtype)
        per_piece = cute.size(piece)

        pieces = cute.zipped_divide(tile, epi_tile)
        bSG_sD, bSG_gD = cpasync.tma_partition(
            tma_c, 0, cute.make_layout(1), cute.group_modes(sC, 0, 2), pieces
        )
        count = cute.size(bSG_gD, mode=[1])
        order = cute.make_layout(
            bSG_gD.shape[1], stride=cute.make_ordered_layout(bSG_gD.shape[1], order=(1, 0)).stride
        )
        for i in cutlass.range_constexpr(count):
            for v in cutlass.range_constexpr(per_piece):
                piece[v] = tRS_rAcc[i * per_piece + v]
            out = cute.make_rmem_tensor_like(piece, dtype)
            out.store(piece.load().to(dtype))
            stage = i % 2
            cute.copy(to_smem, out, tRS_sD[None, None, None, stage])
            cute.arch.fence_proxy("async.shared", space="cta")
            cute.arch.barrier(barrier_id=1, number_of_threads=128)
            if warp == 0:
                cute.copy(tma_c, bSG_sD[None, stage], bSG_gD[None, order.get_hier_coord(i)])
                store.producer_commit()
                store.producer_acquire()
            cute.arch.barrier(barrier_id=1, number_of_threads=128)


def run(m=128, n=192, k=128, batches=1):
    rng = np.random.default_rng(6)
    a = rng.integers(-2, 3, (batches, m, k)).astype(np.float16)
    b = rng.integers(-2, 3, (batches, n, k)).astype(np.float16)
    c = np.zeros((batches, m, n), np.float16)
    views = [
        from_dlpack(x.transpose(1, 2, 0), assumed_align=16).mark_layout_dynamic(leading_dim=1)
        for x in (a, b, c)
    ]
    hardware = utils.HardwareInfo()
    gemm = PersistentGemm()
    compiled = cute.compile(gemm, *views, min(hardware.get_max_active_clusters(1), 2))
    compiled(*views)
    np.testing.assert_array_equal(
        c, (a.astype(np.float32) @ b.transpose(0, 2, 1)).astype(np.float16)
    )
