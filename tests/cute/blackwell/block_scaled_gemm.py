"""A GEMM with block scale factors, of one block or of pairs: C = (A SFA) (B SFB)^T.

A (M, K) and B (N, K) are K-major arrays of bytes, packed where elements have 4 bits; scale factors
bytes in the order of `tile_atom_to_shape_SF`. Warp 0 loads, copies factors to tensor memory and
multiplies; all four warps store.
"""

import basedsl_cute as cutlass
from basedsl_cute import cute, pipeline, utils
from basedsl_cute.cute.nvgpu import cpasync, tcgen05
from basedsl_cute.utils import blockscaled_layout, sm100

THREADS = 128
K = tcgen05.OperandMajorMode.K


class BlockScaledGemm:
    """The host's choices; calling it launches the kernel."""

    def __init__(
        self, a_dtype, b_dtype, sf_dtype, vector, tile, cluster=(1, 1), pair=False, by_fields=False
    ):
        self.a_dtype, self.b_dtype, self.sf_dtype, self.vector = a_dtype, b_dtype, sf_dtype, vector
        self.tile = tile
        self.cluster = (*cluster, 1)
        self.group = tcgen05.CtaGroup.TWO if pair else tcgen05.CtaGroup.ONE
        self.by_fields = by_fields
        self.stages = 2
        # Narrow elements are packed where both are of 4 bits, else a byte each.
        self.packed = a_dtype.width == b_dtype.width == 4
        self.in_smem = [
            x if x.width == 8 or self.packed else cutlass.Int8 for x in (a_dtype, b_dtype)
        ]

    @cute.jit
    def __call__(
        self, a: cute.Tensor, b: cute.Tensor, sfa: cute.Tensor, sfb: cute.Tensor, c: cute.Tensor
    ):
        m, n, k = self.tile
        full_m, full_n = c.shape
        blocks = int(self.group)
        a, b = cute.recast_tensor(a, self.a_dtype), cute.recast_tensor(b, self.b_dtype)
        full_k = a.shape[1]
        sfa, sfb = (
            cute.make_tensor(
                cute.recast_ptr(x.iterator, dtype=self.sf_dtype),
                blockscaled_layout.tile_atom_to_shape_SF((rows, full_k, 1), self.vector),
            )
            for x, rows in ((sfa, full_m), (sfb, full_n))
        )
        args = (self.a_dtype, self.b_dtype, K, K, self.sf_dtype, self.vector)
        mma = sm100.make_blockscaled_trivial_tiled_mma(*args, self.group, (m, n))
        mma_sfb = sm100.make_blockscaled_trivial_tiled_mma(
            *args, tcgen05.CtaGroup.ONE, (128, (n + 127) // 128 * 128)
        )
        tile_sfb = (m // blocks, (n + 127) // 128 * 128, k)
        layouts = [
            sm100.make_smem_layout_a(mma, self.tile, self.in_smem[0], self.stages),
            sm100.make_smem_layout_b(mma, self.tile, self.in_smem[1], self.stages),
            blockscaled_layout.make_smem_layout_sfa(mma, self.tile, self.vector, self.stages),
            blockscaled_layout.make_smem_layout_sfb(mma, self.tile, self.vector, self.stages),
        ]
        ones = [cute.slice_(x, (None, None, None, 0)) for x in layouts]
        vmnk = cute.tiled_divide(cute.make_layout(self.cluster), (mma.thr_id.shape,))
        vmnk_sfb = cute.tiled_divide(cute.make_layout(self.cluster), (mma_sfb.thr_id.shape,))
        where = (self.cluster[:2], mma.thr_id)
        internal = [None if self.packed or x is y else y for x, y in (
            (self.a_dtype, self.in_smem[0]), (self.b_dtype, self.in_smem[1]),
        )]  # fmt: skip
        atoms = [
            cute.nvgpu.make_tiled_tma_atom_A(
                sm100.cluster_shape_to_tma_atom_A(*where), a, ones[0], self.tile, mma, vmnk.shape,
                internal_type=internal[0],
            ),
            cute.nvgpu.make_tiled_tma_atom_B(
                sm100.cluster_shape_to_tma_atom_B(*where), b, ones[1], self.tile, mma, vmnk.shape,
                internal_type=internal[1],
            ),
            cute.nvgpu.make_tiled_tma_atom_A(
                sm100.cluster_shape_to_tma_atom_A(*where), sfa, ones[2], self.tile, mma,
                vmnk.shape, internal_type=cutlass.Int16,
            ),
            cute.nvgpu.make_tiled_tma_atom_B(
                sm100.cluster_shape_to_tma_atom_SFB(*where), sfb, ones[3], tile_sfb, mma_sfb,
                vmnk_sfb.shape, internal_type=cutlass.Int16,
            ),
        ]  # fmt: skip
        kinds = (*self.in_smem, self.sf_dtype, self.sf_dtype)
        self.tx = blocks * sum(
            cute.size_in_bytes(t, cute.filter_zeros(x)) for t, x in zip(kinds, ones, strict=True)
        )

        @cute.struct
        class Storage:
            ab: cute.struct.MemRange[cutlass.Int64, self.stages * 2]
            acc: cute.struct.MemRange[cutlass.Int64, 2]
            dealloc: cutlass.Int64
            holder: cutlass.Int32

        self.storage, self.layouts, self.vmnk, self.vmnk_sfb = Storage, layouts, vmnk, vmnk_sfb
        grid = (full_m // (m // blocks), full_n // n, 1)
        self.kernel(
            mma, mma_sfb, *[x for atom in atoms for x in (atom.atom, atom.tma_tensor)], c
        ).launch(grid=grid, block=(THREADS, 1, 1), cluster=self.cluster)

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
        mC: cute.Tensor,
    ):
        t, _, _ = cute.arch.thread_idx()
        warp = cute.arch.make_warp_uniform(cute.arch.warp_idx())
        bx, by, _ = cute.arch.block_idx()
        blocks = int(self.group)
        v = bx % blocks
        is_leader = v == 0
        rank = cute.arch.make_warp_uniform(cute.arch.block_idx_in_cluster())
        place = self.vmnk.get_flat_coord(rank)
        place_sfb = self.vmnk_sfb.get_flat_coord(rank)
        smem = utils.SmemAllocator()
        storage = smem.allocate(self.storage)
        a_layout, b_layout, sfa_layout, sfb_layout = self.layouts
        sA = smem.allocate_tensor(self.in_smem[0], a_layout.outer, 1024, a_layout.inner)
        sB = smem.allocate_tensor(self.in_smem[1], b_layout.outer, 1024, b_layout.inner)
        sSFA = smem.allocate_tensor(self.sf_dtype, sfa_layout, 128)
        sSFB = smem.allocate_tensor(self.sf_dtype, sfb_layout, 128)
        one = pipeline.CooperativeGroup(pipeline.Agent.Thread)
        sharing = cute.size(self.vmnk, mode=[1]) + cute.size(self.vmnk, mode=[2]) - 1
        producer, consumer = pipeline.PipelineTmaUmma.create(
            barrier_storage=storage.ab.data_ptr(),
            num_stages=self.stages,
            producer_group=one,
            consumer_group=pipeline.CooperativeGroup(pipeline.Agent.Thread, sharing),
            tx_count=self.tx,
            cta_layout_vmnk=self.vmnk,
            defer_sync=True,
        ).make_participants()
        acc_producer, acc_consumer = pipeline.PipelineUmmaAsync.create(
            barrier_storage=storage.acc.data_ptr(),
            num_stages=1,
            producer_group=one,
            consumer_group=pipeline.CooperativeGroup(pipeline.Agent.Thread, THREADS * blocks),
            cta_layout_vmnk=self.vmnk,
            defer_sync=True,
        ).make_participants()
        tmem = utils.TmemAllocator(
            storage.holder,
            barrier_for_retrieve=pipeline.NamedBarrier(1, THREADS),
            is_two_cta=blocks == 2,
            two_cta_tmem_dealloc_mbar_ptr=storage.dealloc,
        )
        pipeline.pipeline_init_arrive(self.vmnk)
        pipeline.pipeline_init_wait(self.vmnk)

        m, n, k = self.tile
        gA = cute.local_tile(mA, (m, k), (bx // blocks, None))
        gB = cute.local_tile(mB, (n, k), (by, None))
        gSFA = cute.local_tile(mSFA, (m, k), (bx // blocks, None, 0))
        gSFB = cute.local_tile(mSFB, (cute.round_up(n, 128), k), (by * n // 128, None, 0))
        gC = cute.local_tile(mC, (m, n), (bx // blocks, by))
        part = mma.get_slice(v)
        masks = [
            cpasync.create_tma_multicast_mask(self.vmnk, place, mcast_mode=2),
            cpasync.create_tma_multicast_mask(self.vmnk, place, mcast_mode=1),
            cpasync.create_tma_multicast_mask(self.vmnk_sfb, place_sfb, mcast_mode=1),
        ]
        along_n = (place[2], cute.make_layout(cute.size(self.vmnk, mode=[2])))
        along_m = (place[1], cute.make_layout(cute.size(self.vmnk, mode=[1])))
        along_sfb = (place_sfb[1], cute.make_layout(cute.size(self.vmnk_sfb, mode=[1])))
        copies = []
        for atom, smem_tensor, tile, where, mask in (
            (a_atom, sA, part.partition_A(gA), along_n, masks[0]),
            (b_atom, sB, part.partition_B(gB), along_m, masks[1]),
            (sfa_atom, sSFA, part.partition_A(gSFA), along_n, masks[0]),
            (sfb_atom, sSFB, mma_sfb.get_slice(0).partition_B(gSFB), along_sfb, masks[2]),
        ):
            there, here = cpasync.tma_partition(
                atom, *where, cute.group_modes(smem_tensor, 0, 3), cute.group_modes(tile, 0, 3)
            )
            copies.append((atom, cute.filter_zeros(here), cute.filter_zeros(there), mask))

        rA, rB = mma.make_fragment_A(sA), mma.make_fragment_B(sB)
        fake = mma.make_fragment_C(mma.partition_shape_C((m, n)))
        tmem.allocate(512)
        tmem.wait_for_alloc()
        start = tmem.retrieve_ptr(cutlass.Float32)
        acc = cute.make_tensor(start, fake.layout)
        sfa_start = cute.recast_ptr(
            start + tcgen05.find_tmem_tensor_col_offset(acc), dtype=self.sf_dtype
        )
        args = (mma, self.tile, self.vector)
        tSFA = cute.make_tensor(
            sfa_start,
            blockscaled_layout.make_tmem_layout_sfa(
                *args, cute.slice_(sfa_layout, (None, None, None, 0))
            ),
        )
        behind = tcgen05.find_tmem_tensor_col_offset(acc)
        behind = behind + tcgen05.find_tmem_tensor_col_offset(tSFA)
        tSFB = cute.make_tensor(
            cute.recast_ptr(start + behind, dtype=self.sf_dtype),
            blockscaled_layout.make_tmem_layout_sfb(
                *args, cute.slice_(sfb_layout, (None, None, None, 0))
            ),
        )
        s2t = []
        for smem_tensor, tmem_tensor in ((sSFA, tSFA), (sSFB, tSFB)):
            compact = cute.filter_zeros(tmem_tensor)
            atom = cute.make_copy_atom(tcgen05.Cp4x32x128bOp(self.group), self.sf_dtype)
            copy = tcgen05.make_s2t_copy(atom, compact)
            mine = copy.get_slice(0)
            source = tcgen05.get_s2t_smem_desc_tensor(
                copy, mine.partition_S(cute.filter_zeros(smem_tensor))
            )
            s2t.append((copy, source, mine.partition_D(compact)))

        tiles = cute.size(gA, mode=[2])
        if warp == 0:
            if is_leader:
                acc_producer.acquire_and_advance()
            for i in cutlass.range(tiles):
                empty = producer.acquire_and_advance()
                for atom, source, target, mask in copies:
                    cute.copy(
                        atom, source[None, i], target[None, empty.index],
                        tma_bar_ptr=empty.barrier, mcast_mask=mask,
                    )  # fmt: skip
                if is_leader:
                    full = consumer.wait_and_advance()
                    for copy, source, target in s2t:
                        cute.copy(copy, source[None, None, None, None, full.index], target)
                    stage = (None, None, None, full.index)
                    if cutlass.const_expr(self.by_fields):
                        for kb in cutlass.range_constexpr(cute.size(rA, mode=[2])):
                            at = (None, None, kb)
                            mma.set(tcgen05.Field.SFA, tSFA[at].iterator)
                            mma.set(tcgen05.Field.SFB, tSFB[at].iterator)
                            cute.gemm(mma, acc, rA[stage][at], rB[stage][at], acc)
                            mma.set(tcgen05.Field.ACCUMULATE, True)
                    else:
                        mma.set(tcgen05.Field.ACCUMULATE, i != 0)
                        cute.gemm(mma, acc, [rA[stage], tSFA], [rB[stage], tSFB], acc)
                    full.release()
            if is_leader:
                acc_producer.commit()
        tmem.relinquish_alloc_permit()
        atom = cute.make_copy_atom(tcgen05.Ld32x32bOp(32), cutlass.Float32)
        done = acc_consumer.wait_and_advance()
        whole, there = acc[(None, None), 0, 0], part.partition_C(gC)[(None, None), 0, 0]
        load = tcgen05.make_tmem_copy(atom, whole)
        mine = load.get_slice(t)
        target = mine.partition_D(there)
        values = cute.make_rmem_tensor(target.shape, cutlass.Float32)
        cute.copy(load, mine.partition_S(whole), values)
        cute.autovec_copy(values, target)
        done.release()
        pipeline.sync(barrier_id=1)
        tmem.free(start)
        if warp == 0:
            producer.tail()
            if is_leader:
                acc_producer.tail()
