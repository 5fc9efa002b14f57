"""The first GEMM of a tutorial: one warp loads by TMA and multiplies, all four store.

C = A B^T, A (M, K), B (N, K), C (M, N). `cta_group` TWO makes it a GEMM of pairs of blocks with
multicast, whose leader multiplies for both.
"""

import basedsl_cute as cutlass
from basedsl_cute import cute, pipeline, utils
from basedsl_cute.cute.nvgpu import cpasync, tcgen05
from basedsl_cute.utils import sm100

THREADS = 128


class FirstGemm:
    """The host's choices; calling it launches the kernel."""

    def __init__(
        self,
        tile=(128, 64, 64),
        ab_stages=3,
        cta_group=tcgen05.CtaGroup.ONE,
        cluster=(1, 1),
        majors=("k", "k"),
        subtiles=2,
    ):
        self.tile = tile
        self.ab_stages = ab_stages
        self.cta_group = cta_group
        self.cluster = (*cluster, 1)
        self.majors = tuple(tcgen05.OperandMajorMode(m) for m in majors)
        self.subtiles = subtiles

    @cute.jit
    def __call__(self, a: cute.Tensor, b: cute.Tensor, c: cute.Tensor):
        blocks = int(self.cta_group)
        m, n, _ = self.tile
        dtype = a.element_type
        op = tcgen05.MmaF16BF16Op(
            dtype,
            cutlass.Float32,
            (m, n, 16),
            self.cta_group,
            tcgen05.OperandSource.SMEM,
            *self.majors,
        )
        mma = cute.make_tiled_mma(op)
        a_layout = sm100.make_smem_layout_a(mma, self.tile, dtype, self.ab_stages)
        b_layout = sm100.make_smem_layout_b(mma, self.tile, dtype, self.ab_stages)
        a_one = cute.select(a_layout, mode=[0, 1, 2])
        b_one = cute.select(b_layout, mode=[0, 1, 2])
        vmnk = cute.tiled_divide(cute.make_layout(self.cluster), (mma.thr_id.shape,))
        a_op = sm100.cluster_shape_to_tma_atom_A(self.cluster[:2], mma.thr_id)
        b_op = sm100.cluster_shape_to_tma_atom_B(self.cluster[:2], mma.thr_id)
        a_atom, a_tma = cute.nvgpu.make_tiled_tma_atom_A(a_op, a, a_one, self.tile, mma, vmnk.shape)
        b_atom, b_tma = cute.nvgpu.make_tiled_tma_atom_B(b_op, b, b_one, self.tile, mma, vmnk.shape)
        self.tx = (cute.size_in_bytes(dtype, a_one) + cute.size_in_bytes(dtype, b_one)) * blocks

        @cute.struct
        class Storage:
            ab_barriers: cute.struct.MemRange[cutlass.Int64, self.ab_stages * 2]
            acc_barriers: cute.struct.MemRange[cutlass.Int64, 2]
            dealloc: cutlass.Int64
            holder: cutlass.Int32

        self.storage = Storage
        grid = cute.round_up((*cute.ceil_div(c.shape, (m // blocks, n)), 1), self.cluster)
        self.kernel(mma, a_atom, a_tma, b_atom, b_tma, c, a_layout, b_layout, vmnk).launch(
            grid=grid, block=(THREADS, 1, 1), cluster=self.cluster
        )

    @cute.kernel
    def kernel(
        self,
        mma: cute.TiledMma,
        a_atom: cute.CopyAtom,
        a_tma: cute.Tensor,
        b_atom: cute.CopyAtom,
        b_tma: cute.Tensor,
        c: cute.Tensor,
        a_layout: cutlass.Constexpr,
        b_layout: cutlass.Constexpr,
        vmnk: cutlass.Constexpr,
    ):
        t, _, _ = cute.arch.thread_idx()
        warp = cute.arch.make_warp_uniform(cute.arch.warp_idx())
        bx, by, _ = cute.arch.block_idx()
        blocks = int(self.cta_group)
        v = bx % blocks
        is_leader = v == 0
        rank = cute.arch.make_warp_uniform(cute.arch.block_idx_in_cluster())
        place = vmnk.get_flat_coord(rank)
        smem = utils.SmemAllocator()
        storage = smem.allocate(self.storage)
        dtype = mma.op.a_dtype
        sA = smem.allocate_tensor(dtype, a_layout.outer, 1024, a_layout.inner)
        sB = smem.allocate_tensor(dtype, b_layout.outer, 1024, b_layout.inner)

        if warp == 0:
            cpasync.prefetch_descriptor(a_atom)
            cpasync.prefetch_descriptor(b_atom)
        one = pipeline.CooperativeGroup(pipeline.Agent.Thread)
        sharing = cute.size(vmnk, mode=[1]) + cute.size(vmnk, mode=[2]) - 1
        producer, consumer = pipeline.PipelineTmaUmma.create(
            barrier_storage=storage.ab_barriers.data_ptr(),
            num_stages=self.ab_stages,
            producer_group=one,
            consumer_group=pipeline.CooperativeGroup(pipeline.Agent.Thread, sharing),
            tx_count=self.tx,
            cta_layout_vmnk=vmnk,
        ).make_participants()
        acc_producer, acc_consumer = pipeline.PipelineUmmaAsync.create(
            barrier_storage=storage.acc_barriers.data_ptr(),
            num_stages=1,
            producer_group=one,
            consumer_group=pipeline.CooperativeGroup(pipeline.Agent.Thread, THREADS * blocks),
            cta_layout_vmnk=vmnk,
        ).make_participants()
        tmem = utils.TmemAllocator(
            storage.holder.ptr,
            barrier_for_retrieve=pipeline.NamedBarrier(1, THREADS),
            is_two_cta=blocks == 2,
            two_cta_tmem_dealloc_mbar_ptr=storage.dealloc.ptr,
        )
        cute.arch.cluster_arrive()
        cute.arch.cluster_wait()

        m, n, _ = self.tile
        where = (bx // blocks, by, None)
        gA = cute.local_tile(a_tma, self.tile, where, proj=(1, None, 1))
        gB = cute.local_tile(b_tma, self.tile, where, proj=(None, 1, 1))
        gC = cute.local_tile(c, self.tile, where, proj=(1, 1, None))
        part = mma.get_slice(v)
        tCgA, tCgB, tCgC = part.partition_A(gA), part.partition_B(gB), part.partition_C(gC)
        rA, rB = mma.make_fragment_A(sA), mma.make_fragment_B(sB)
        fake = mma.make_fragment_C(mma.partition_shape_C((m, n)))
        tAsA, tAgA = cpasync.tma_partition(
            a_atom,
            place[2],
            cute.make_layout(cute.size(vmnk, mode=[2])),
            cute.group_modes(sA, 0, 3),
            cute.group_modes(tCgA, 0, 3),
        )
        tBsB, tBgB = cpasync.tma_partition(
            b_atom,
            place[1],
            cute.make_layout(cute.size(vmnk, mode=[1])),
            cute.group_modes(sB, 0, 3),
            cute.group_modes(tCgB, 0, 3),
        )
        a_mask = cpasync.create_tma_multicast_mask(vmnk, place, mcast_mode=2)
        b_mask = cpasync.create_tma_multicast_mask(vmnk, place, mcast_mode=1)
        columns = utils.get_num_tmem_alloc_cols(fake)
        tmem.allocate(columns)
        tmem.wait_for_alloc()
        start = tmem.retrieve_ptr(cutlass.Float32)
        acc = cute.make_tensor(start, fake.layout)

        tiles = cute.size(gA, mode=[2])
        if warp == 0:
            if is_leader:
                acc_producer.acquire_and_advance()
            for _ in cutlass.range(tiles, prefetch_stages=self.ab_stages - 2):
                empty = producer.acquire_and_advance()
                cute.copy(
                    a_atom,
                    tAgA[None, empty.count],
                    tAsA[None, empty.index],
                    tma_bar_ptr=empty.barrier,
                    mcast_mask=a_mask,
                )
                cute.copy(
                    b_atom,
                    tBgB[None, empty.count],
                    tBsB[None, empty.index],
                    tma_bar_ptr=empty.barrier,
                    mcast_mask=b_mask,
                )
                if is_leader:
                    full = consumer.wait_and_advance()
                    for kb in cutlass.range_constexpr(cute.size(rA, mode=[2])):
                        at = (None, None, kb, full.index)
                        cute.gemm(mma, acc, rA[at], rB[at], acc)
                        mma.set(tcgen05.Field.ACCUMULATE, True)
                    full.release()
            if is_leader:
                acc_producer.commit()

        # The epilogue: columns in parts, from tensor memory through registers.
        tmem.relinquish_alloc_permit()
        tiler = ((cute.size(acc, mode=[0, 0]), cute.size(acc, mode=[0, 1]) // self.subtiles),)
        tAcc = cute.zipped_divide(acc, tiler)
        tC = cute.zipped_divide(tCgC, tiler)
        atom = cute.make_copy_atom(
            tcgen05.Ld32x32bOp(tcgen05.Repetition(n // self.subtiles)), cutlass.Float32
        )
        load = tcgen05.make_tmem_copy(atom, tAcc[None, 0])
        mine = load.get_slice(t)
        tDtC, tDgC = mine.partition_S(tAcc), mine.partition_D(tC)
        shape = tDgC[None, None, 0].shape
        values = cute.make_rmem_tensor(shape, cutlass.Float32)
        out = cute.make_rmem_tensor(shape, c.element_type)
        done = acc_consumer.wait_and_advance()
        for i in cutlass.range(cute.size(tDtC, mode=[2])):
            cute.copy(load, tDtC[None, None, i], values)
            out.store(values.load().to(c.element_type))
            cute.autovec_copy(out, tDgC[None, None, i])
        done.release()
        pipeline.sync(barrier_id=1)
        tmem.free(start)
        if warp == 0:
            producer.tail()
            acc_producer.tail()
