"""C = (A SFA) (B SFB)^T: a persistent GEMM with block scale factors, in batches.

A tile with N = 256 leaves no room for two accumulators and the factors in the 512 columns of tensor
memory: there two accumulators share as many columns as the factors take, which the epilogue reads
and gives back first. With N = 64 two tiles share a chunk of factors of B.
"""

import argparse

import cuda.bindings.driver as cuda
import cutlass
import cutlass.cute as cute
import cutlass.pipeline as pipeline
import cutlass.utils as utils
import numpy as np
from block_scaled_operands import factors, operand, output, product
from cutlass.cute.nvgpu import cpasync, tcgen05
from cutlass.utils import blockscaled_layout, sm100
from cutlass.utils.gemm.sm100 import (
    epilogue_smem_copy_and_partition,
    epilogue_tmem_copy_and_partition,
    transform_partitioned_tensor_layout,
)

TMEM_COLUMNS = 512
INSTRUCTIONS = 4  # along K of a tile
EPILOGUE_THREADS = 128
MMA_WARP, TMA_WARP = 4, 5


def mma_tile(work, blocks):
    """The tile of C that a work tile lies in, in tiles of the MMA."""
    m, n, batch = work.tile_idx
    return m // blocks, n, batch


class PersistentBlockScaledGemm:
    def __init__(self, ab_dtype, sf_dtype, c_dtype, sf_vec_size, mma_tiler_mn, cluster_shape_mn):
        self.ab_dtype, self.sf_dtype, self.c_dtype = ab_dtype, sf_dtype, c_dtype
        self.acc_dtype = cutlass.Float32
        self.vector = sf_vec_size
        self.mn = mma_tiler_mn
        self.cluster = (*cluster_shape_mn, 1)
        self.pair = mma_tiler_mn[0] == 256
        self.group = tcgen05.CtaGroup.TWO if self.pair else tcgen05.CtaGroup.ONE
        self.overlaps = mma_tiler_mn[1] == 256
        self.num_acc_stage = 1 if self.overlaps else 2
        self.num_ab_stage, self.num_c_stage = 3, 2
        self.epilogue_warp_id = (0, 1, 2, 3)
        self.epilog_sync_bar_id, self.tmem_bar_id = 1, 2

    @cute.jit
    def __call__(
        self,
        a: cute.Tensor,
        b: cute.Tensor,
        sfa: cute.Tensor,
        sfb: cute.Tensor,
        c: cute.Tensor,
        max_active_clusters: cutlass.Constexpr,
        stream: cuda.CUstream,
    ):
        a, b = (cute.recast_tensor(x, self.ab_dtype) for x in (a, b))
        c = cute.recast_tensor(c, self.c_dtype)
        sfa, sfb = (
            cute.make_tensor(
                cute.recast_ptr(x.iterator, dtype=self.sf_dtype),
                blockscaled_layout.tile_atom_to_shape_SF(scaled.shape, self.vector),
            )
            for x, scaled in ((sfa, a), (sfb, b))
        )
        majors = [utils.LayoutEnum.from_tensor(x).mma_major_mode() for x in (a, b)]
        self.c_layout = utils.LayoutEnum.from_tensor(c)
        m, n = self.mn
        blocks = int(self.group)
        of_mma = (self.ab_dtype, *majors, self.sf_dtype, self.vector)
        mma = sm100.make_blockscaled_trivial_tiled_mma(*of_mma, self.group, self.mn)
        # Each block of a pair loads the factors of all of B, in whole chunks of 128 rows.
        mn_sfb = (m // blocks, cute.round_up(n, 128))
        mma_sfb = sm100.make_blockscaled_trivial_tiled_mma(*of_mma, tcgen05.CtaGroup.ONE, mn_sfb)
        k = cute.size(mma.shape_mnk, mode=[2]) * INSTRUCTIONS
        self.tile, self.tile_sfb = (m, n, k), (*mn_sfb, k)
        self.cta_tile_shape_mnk = (m // blocks, n, k)
        self.epi_tile = sm100.compute_epilogue_tile_shape(
            self.cta_tile_shape_mnk, self.pair, self.c_layout, self.c_dtype
        )
        stages = self.num_ab_stage
        self.layouts = [
            sm100.make_smem_layout_a(mma, self.tile, self.ab_dtype, stages),
            sm100.make_smem_layout_b(mma, self.tile, self.ab_dtype, stages),
            blockscaled_layout.make_smem_layout_sfa(mma, self.tile, self.vector, stages),
            blockscaled_layout.make_smem_layout_sfb(mma, self.tile, self.vector, stages),
        ]
        self.c_staged = sm100.make_smem_layout_epi(
            self.c_dtype, self.c_layout, self.epi_tile, self.num_c_stage
        )
        self.vmnk, self.vmnk_sfb = (
            cute.tiled_divide(cute.make_layout(self.cluster), (x.thr_id.shape,))
            for x in (mma, mma_sfb)
        )
        ones = [cute.slice_(x, (None, None, None, 0)) for x in self.layouts]
        kinds = (self.ab_dtype, self.ab_dtype, self.sf_dtype, self.sf_dtype)
        self.tx_count = blocks * sum(
            cute.size_in_bytes(kind, cute.filter_zeros(one))
            for kind, one in zip(kinds, ones, strict=True)
        )
        where = (self.cluster[:2], mma.thr_id)
        of_a, of_b, of_sfb = (
            f(*where)
            for f in (
                sm100.cluster_shape_to_tma_atom_A,
                sm100.cluster_shape_to_tma_atom_B,
                sm100.cluster_shape_to_tma_atom_SFB,
            )
        )
        whole = (self.tile, mma, self.vmnk.shape)
        chunks = (self.tile_sfb, mma_sfb, self.vmnk_sfb.shape)
        make_a, make_b = cute.nvgpu.make_tiled_tma_atom_A, cute.nvgpu.make_tiled_tma_atom_B
        a_atom, a = make_a(of_a, a, ones[0], *whole)
        b_atom, b = make_b(of_b, b, ones[1], *whole)
        sfa_atom, sfa = make_a(of_a, sfa, ones[2], *whole, internal_type=cutlass.Int16)
        sfb_atom, sfb = make_b(of_sfb, sfb, ones[3], *chunks, internal_type=cutlass.Int16)
        blocks_of_c = cute.zipped_divide(c, tiler=self.cta_tile_shape_mnk[:2])
        c_atom, c = cpasync.make_tiled_tma_atom(
            cpasync.CopyBulkTensorTileS2GOp(),
            c,
            cute.select(self.c_staged, mode=[0, 1]),
            self.epi_tile,
        )
        schedule = utils.PersistentTileSchedulerParams(
            blocks_of_c[(0, (None, None, None))].shape, self.cluster
        )

        @cute.struct
        class Storage:
            ab: cute.struct.MemRange[cutlass.Int64, self.num_ab_stage * 2]
            acc: cute.struct.MemRange[cutlass.Int64, self.num_acc_stage * 2]
            dealloc: cutlass.Int64
            holder: cutlass.Int32

        self.storage = Storage
        self.kernel(
            mma, mma_sfb, a_atom, a, b_atom, b, sfa_atom, sfa, sfb_atom, sfb, c_atom, c, schedule
        ).launch(
            grid=utils.StaticPersistentTileScheduler.get_grid_shape(schedule, max_active_clusters),
            block=(EPILOGUE_THREADS + 64, 1, 1),
            cluster=self.cluster,
            stream=stream,
        )

    @cute.kernel
    def kernel(
        self,
        mma: cute.TiledMma,
        mma_sfb: cute.TiledMma,
        a_atom: cute.CopyAtom,
        mA: cute.Tensor,
        b_atom: cute.CopyAtom,
        mB: cute.Tensor,
        sfa_atom: cute.CopyAtom,
        mSFA: cute.Tensor,
        sfb_atom: cute.CopyAtom,
        mSFB: cute.Tensor,
        c_atom: cute.CopyAtom,
        mC: cute.Tensor,
        schedule: utils.PersistentTileSchedulerParams,
    ):
        t, _, _ = cute.arch.thread_idx()
        warp = cute.arch.make_warp_uniform(cute.arch.warp_idx())
        bx, _, _ = cute.arch.block_idx()
        m, n, k = self.tile
        blocks = int(self.group)
        v = bx % blocks
        is_leader = v == 0
        rank = cute.arch.make_warp_uniform(cute.arch.block_idx_in_cluster())
        place, place_sfb = (x.get_flat_coord(rank) for x in (self.vmnk, self.vmnk_sfb))

        smem = utils.SmemAllocator()
        storage = smem.allocate(self.storage)
        a_layout, b_layout, sfa_layout, sfb_layout = self.layouts
        sA = smem.allocate_tensor(self.ab_dtype, a_layout.outer, 1024, a_layout.inner)
        sB = smem.allocate_tensor(self.ab_dtype, b_layout.outer, 1024, b_layout.inner)
        sC = smem.allocate_tensor(self.c_dtype, self.c_staged.outer, 1024, self.c_staged.inner)
        sSFA = smem.allocate_tensor(self.sf_dtype, sfa_layout, 128)
        sSFB = smem.allocate_tensor(self.sf_dtype, sfb_layout, 128)
        one = pipeline.CooperativeGroup(pipeline.Agent.Thread)
        sharing = cute.size(self.vmnk, mode=[1]) + cute.size(self.vmnk, mode=[2]) - 1
        loads, loaded = pipeline.PipelineTmaUmma.create(
            barrier_storage=storage.ab.data_ptr(),
            num_stages=self.num_ab_stage,
            producer_group=one,
            consumer_group=pipeline.CooperativeGroup(pipeline.Agent.Thread, sharing),
            tx_count=self.tx_count,
            cta_layout_vmnk=self.vmnk,
            defer_sync=True,
        ).make_participants()
        sums, summed = pipeline.PipelineUmmaAsync.create(
            barrier_storage=storage.acc.data_ptr(),
            num_stages=self.num_acc_stage,
            producer_group=one,
            consumer_group=pipeline.CooperativeGroup(
                pipeline.Agent.Thread, EPILOGUE_THREADS * blocks
            ),
            cta_layout_vmnk=self.vmnk,
            defer_sync=True,
        ).make_participants()
        tmem = utils.TmemAllocator(
            storage.holder,
            barrier_for_retrieve=pipeline.NamedBarrier(self.tmem_bar_id, EPILOGUE_THREADS + 32),
            is_two_cta=self.pair,
            two_cta_tmem_dealloc_mbar_ptr=storage.dealloc,
        )
        pipeline.pipeline_init_arrive(self.vmnk)
        pipeline.pipeline_init_wait(self.vmnk)

        every = (None, None, None)
        part = mma.get_slice(v)
        tCgA = part.partition_A(cute.local_tile(mA, (m, k), every))
        tCgB = part.partition_B(cute.local_tile(mB, (n, k), every))
        tCgSFA = part.partition_A(cute.local_tile(mSFA, (m, k), every))
        tCgSFB = mma_sfb.get_slice(0).partition_B(cute.local_tile(mSFB, self.tile_sfb[1:], every))
        tCgC = part.partition_C(cute.local_tile(mC, (m, n), every))
        tCrA, tCrB = mma.make_fragment_A(sA), mma.make_fragment_B(sB)
        acc_layout = mma.make_fragment_C(mma.partition_shape_C(self.mn)).layout
        sf_layouts = [
            make(mma, self.tile, self.vector, cute.slice_(staged, (None, None, None, 0)))
            for make, staged in (
                (blockscaled_layout.make_tmem_layout_sfa, sfa_layout),
                (blockscaled_layout.make_tmem_layout_sfb, sfb_layout),
            )
        ]
        # Columns of 32 bits of the factors: a row's 4 factors in one, 32 rows to a column.
        chunks_k = k // self.vector // 4
        sfa_columns, sfb_columns = (
            rows // 32 * chunks_k for rows in (m // blocks, self.tile_sfb[1])
        )
        sf_columns = sfa_columns + sfb_columns
        apart = n - sf_columns if self.overlaps else n
        behind = n + apart
        assert behind + sf_columns <= TMEM_COLUMNS

        tile_sched = utils.StaticPersistentTileScheduler.create(
            schedule, cute.arch.block_idx(), cute.arch.grid_dim()
        )
        work = tile_sched.initial_work_tile_info()

        if warp == TMA_WARP:
            along_n = (place[2], cute.make_layout(cute.size(self.vmnk, mode=[2])))
            along_m = (place[1], cute.make_layout(cute.size(self.vmnk, mode=[1])))
            along_m_sfb = (place_sfb[1], cute.make_layout(cute.size(self.vmnk_sfb, mode=[1])))
            to_n = cpasync.create_tma_multicast_mask(self.vmnk, place, mcast_mode=2)
            to_m = cpasync.create_tma_multicast_mask(self.vmnk, place, mcast_mode=1)
            to_m_sfb = cpasync.create_tma_multicast_mask(self.vmnk_sfb, place_sfb, mcast_mode=1)
            copies = []
            for atom, staged, tiles, where, mask in (
                (a_atom, sA, tCgA, along_n, to_n),
                (b_atom, sB, tCgB, along_m, to_m),
                (sfa_atom, sSFA, tCgSFA, along_n, to_n),
                (sfb_atom, sSFB, tCgSFB, along_m_sfb, to_m_sfb),
            ):
                there, here = cpasync.tma_partition(
                    atom, *where, cute.group_modes(staged, 0, 3), cute.group_modes(tiles, 0, 3)
                )
                copies.append((atom, cute.filter_zeros(here), cute.filter_zeros(there), mask))
            while work.is_valid_tile:
                at_m, at_n, batch = mma_tile(work, blocks)
                at_sfb = at_n * n // self.tile_sfb[1]
                for i in cutlass.range(cute.size(tCgA, mode=[4])):
                    stage = loads.acquire_and_advance()
                    for (atom, source, target, mask), at in zip(
                        copies, (at_m, at_n, at_m, at_sfb), strict=True
                    ):
                        cute.copy(
                            atom,
                            source[None, at, i, batch],
                            target[None, stage.index],
                            tma_bar_ptr=stage.barrier,
                            mcast_mask=mask,
                        )
                tile_sched.advance_to_next_work()
                work = tile_sched.get_current_work()
            loads.tail()

        if warp == MMA_WARP:
            tmem.wait_for_alloc()
            start = tmem.retrieve_ptr(self.acc_dtype)
            sfa_start = cute.recast_ptr(start + behind, dtype=self.sf_dtype)
            sfb_start = cute.recast_ptr(start + behind + sfa_columns, dtype=self.sf_dtype)
            tSFA, tSFB = (
                cute.make_tensor(at, layout)
                for at, layout in zip((sfa_start, sfb_start), sf_layouts, strict=True)
            )
            to_tmem = []
            for staged, target in ((sSFA, tSFA), (sSFB, tSFB)):
                target = cute.filter_zeros(target)
                atom = cute.make_copy_atom(tcgen05.Cp4x32x128bOp(self.group), self.sf_dtype)
                copy = tcgen05.make_s2t_copy(atom, target)
                mine = copy.get_slice(0)
                source = mine.partition_S(cute.filter_zeros(staged))
                source = tcgen05.get_s2t_smem_desc_tensor(copy, source)
                to_tmem.append((copy, source, mine.partition_D(target)))
            while work.is_valid_tile:
                if is_leader:
                    _, at_n, _ = mma_tile(work, blocks)
                    which = tile_sched.num_tiles_executed % 2
                    acc = cute.make_tensor(start + which * apart, acc_layout)
                    factors_b = tSFB
                    if cutlass.const_expr(n == 64):
                        # Rows 64 to 127 of a chunk are its columns 2 and 3.
                        second_half = start + behind + sfa_columns + at_n % 2 * 2
                        factors_b = cute.make_tensor(
                            cute.recast_ptr(second_half, dtype=self.sf_dtype), sf_layouts[1]
                        )
                    accumulator = sums.acquire_and_advance()
                    mma.set(tcgen05.Field.ACCUMULATE, False)
                    for _ in cutlass.range(cute.size(tCgA, mode=[4])):
                        stage = loaded.wait_and_advance()
                        for copy, source, target in to_tmem:
                            cute.copy(copy, source[None, None, None, None, stage.index], target)
                        for j in cutlass.range_constexpr(INSTRUCTIONS):
                            at = (None, None, j, stage.index)
                            mma.set(tcgen05.Field.SFA, tSFA[None, None, j].iterator)
                            mma.set(tcgen05.Field.SFB, factors_b[None, None, j].iterator)
                            cute.gemm(mma, acc, tCrA[at], tCrB[at], acc)
                            mma.set(tcgen05.Field.ACCUMULATE, True)
                        stage.release()
                    accumulator.commit()
                tile_sched.advance_to_next_work()
                work = tile_sched.get_current_work()
            if is_leader:
                sums.tail()

        if warp < MMA_WARP:
            tmem.allocate(TMEM_COLUMNS)
            tmem.wait_for_alloc()
            start = tmem.retrieve_ptr(self.acc_dtype)
            acc = transform_partitioned_tensor_layout(cute.make_tensor(start, acc_layout))
            whole_c = transform_partitioned_tensor_layout(tCgC)
            from_tmem, mine, loaded_sums = epilogue_tmem_copy_and_partition(
                self, t, acc, whole_c, self.epi_tile, self.pair
            )
            converted = cute.make_rmem_tensor(loaded_sums.shape, self.c_dtype)
            to_smem, converted_as_stored, stored = epilogue_smem_copy_and_partition(
                self, from_tmem, converted, t, sC
            )
            mine = cute.group_modes(mine, 3, 5)
            count = cute.size(mine, mode=[3])
            columns = cute.size(self.epi_tile[1])
            last_shared = -(-sf_columns // columns) - 1
            everyone = pipeline.NamedBarrier(self.epilog_sync_bar_id, EPILOGUE_THREADS)
            stores = pipeline.PipelineTmaStore.create(
                num_stages=self.num_c_stage,
                producer_group=pipeline.CooperativeGroup(pipeline.Agent.Thread, EPILOGUE_THREADS),
            )
            while work.is_valid_tile:
                tile_of_c = whole_c[(None, None, *mma_tile(work, blocks))]
                staged, in_global = cpasync.tma_partition(
                    c_atom,
                    0,
                    cute.make_layout(1),
                    cute.group_modes(sC, 0, 2),
                    cute.group_modes(cute.flat_divide(tile_of_c, self.epi_tile), 0, 2),
                )
                in_global = cute.group_modes(in_global, 1, 3)
                done = tile_sched.num_tiles_executed
                which = done % 2
                accumulated = cute.make_tensor(mine.iterator + which * apart, mine.layout)
                accumulator = summed.wait_and_advance()
                for i in cutlass.range_constexpr(count):
                    # The shared columns are the last ones of the first accumulator.
                    j = i
                    if cutlass.const_expr(self.overlaps):
                        j = i + (1 - which) * (count - 1 - 2 * i)
                    cute.copy(from_tmem, accumulated[None, None, None, j], loaded_sums)
                    is_read = i == (last_shared if self.overlaps else count - 1)
                    if cutlass.const_expr(is_read):
                        cute.arch.fence_view_async_tmem_load()
                        accumulator.release()
                    converted.store(loaded_sums.load().to(self.c_dtype))
                    buffer = (done * count + i) % self.num_c_stage
                    cute.copy(to_smem, converted_as_stored, stored[None, None, None, buffer])
                    cute.arch.fence_view_async_shared()
                    everyone.arrive_and_wait()
                    if warp == 0:
                        cute.copy(c_atom, staged[None, buffer], in_global[None, j])
                        stores.producer_commit()
                        stores.producer_acquire()
                    everyone.arrive_and_wait()
                tile_sched.advance_to_next_work()
                work = tile_sched.get_current_work()
            stores.producer_tail()
            tmem.relinquish_alloc_permit()
            everyone.arrive_and_wait()
            tmem.free(start)


def run(
    mnkl, ab_dtype, sf_dtype, sf_vec_size, c_dtype, majors, mma_tiler_mn, cluster_shape_mn, clusters
):
    m, n, k, l = mnkl
    rng = np.random.default_rng(1111)
    a, a_tensor = operand(rng, l, m, k, ab_dtype, majors[0] == "m")
    b, b_tensor = operand(rng, l, n, k, ab_dtype, majors[1] == "n")
    sfa, sfa_tensor = factors(rng, l, m, k, sf_dtype, sf_vec_size)
    sfb, sfb_tensor = factors(rng, l, n, k, sf_dtype, sf_vec_size)
    got, c_tensor = output(l, m, n, c_dtype, majors[2] == "m")
    gemm = PersistentBlockScaledGemm(
        ab_dtype, sf_dtype, c_dtype, sf_vec_size, mma_tiler_mn, cluster_shape_mn
    )
    tensors = (a_tensor, b_tensor, sfa_tensor, sfb_tensor, c_tensor)
    stream = cuda.CUstream(cuda.CUstream_flags.CU_STREAM_DEFAULT)
    compiled = cute.compile(gemm, *tensors, clusters, stream)
    compiled(*tensors, stream)
    np.testing.assert_array_equal(got, product(a * sfa, b * sfb, c_dtype))


def integers(text):
    return tuple(int(x) for x in text.split(","))


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--mnkl", type=integers, default=(256, 256, 512, 1))
    parser.add_argument("--ab_dtype", type=cutlass.dtype, default=cutlass.Float4E2M1FN)
    parser.add_argument("--sf_dtype", type=cutlass.dtype, default=cutlass.Float8E4M3FN)
    parser.add_argument("--sf_vec_size", type=int, default=16)
    parser.add_argument("--c_dtype", type=cutlass.dtype, default=cutlass.Float32)
    parser.add_argument("--majors", default="kkn")
    parser.add_argument("--mma_tiler_mn", type=integers, default=(128, 128))
    parser.add_argument("--cluster_shape_mn", type=integers, default=(1, 1))
    parser.add_argument("--clusters", type=int, default=1)
    run(**vars(parser.parse_args()))
    print("PASS")
