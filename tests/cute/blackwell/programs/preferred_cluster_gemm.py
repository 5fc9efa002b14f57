"""A GEMM with a preferred and a fallback cluster: a block asks which one it is in."""

import cuda.bindings.driver as cuda
import cutlass
import cutlass.cute as cute
import cutlass.pipeline as pipeline
import cutlass.utils as utils
import cutlass.utils.blackwell_helpers as sm100_utils
import numpy as np
from cutlass.cute.nvgpu import cpasync, tcgen05
from cutlass.cute.runtime import from_dlpack

io_dtype, acc_dtype = cutlass.Float16, cutlass.Float32
preferred, fallback = (4, 2, 1), (2, 1, 1)
mma_tiler = (256, 64, 64)
stages = 3


class PreferredClusterGemm:
    @cute.jit
    def __call__(self, a: cute.Tensor, b: cute.Tensor, c: cute.Tensor, stream: cuda.CUstream):
        op = tcgen05.MmaF16BF16Op(
            io_dtype,
            acc_dtype,
            (256, 64, 16),
            tcgen05.CtaGroup.TWO,
            tcgen05.OperandSource.SMEM,
            tcgen05.OperandMajorMode("k"),
            tcgen05.OperandMajorMode("k"),
        )
        mma = cute.make_tiled_mma(cute.make_mma_atom(op))
        al = sm100_utils.make_smem_layout_a(mma, mma_tiler, io_dtype, stages)
        bl = sm100_utils.make_smem_layout_b(mma, mma_tiler, io_dtype, stages, is_k_major=True)
        infos = []
        for shape in (preferred, fallback):
            vmnk = cute.tiled_divide(cute.make_layout(shape), (mma.thr_id.shape,))
            ta = cute.nvgpu.make_tiled_tma_atom_A(
                sm100_utils.cluster_shape_to_tma_atom_A(shape[:2], mma.thr_id),
                a,
                cute.select(al, mode=[0, 1, 2]),
                mma_tiler,
                mma,
                vmnk.shape,
            )
            tb = cute.nvgpu.make_tiled_tma_atom_B(
                sm100_utils.cluster_shape_to_tma_atom_B(shape[:2], mma.thr_id),
                b,
                cute.select(bl, mode=[0, 1, 2]),
                mma_tiler,
                mma,
                vmnk.shape,
            )
            infos.append((ta, tb, vmnk))
        (pa, pb, pv), (fa, fb, fv) = infos
        self.bytes = 2 * (
            cute.size_in_bytes(io_dtype, cute.select(al, mode=[0, 1, 2]))
            + cute.size_in_bytes(io_dtype, cute.select(bl, mode=[0, 1, 2]))
        )
        grid = (cute.round_up(cute.ceil_div(c.shape[0], 128), 2), cute.ceil_div(c.shape[1], 64), 1)
        self.kernel(mma, pa, pb, fa, fb, c, al, bl, pv, fv).launch(
            grid=grid,
            block=(128, 1, 1),
            cluster=preferred,
            fallback_cluster=fallback,
            stream=stream,
            smem_merge_branch_allocs=True,
        )

    @cute.kernel
    def kernel(
        self,
        mma: cute.TiledMma,
        pa: cpasync.TmaInfo,
        pb: cpasync.TmaInfo,
        fa: cpasync.TmaInfo,
        fb: cpasync.TmaInfo,
        c: cute.Tensor,
        al: cute.ComposedLayout,
        bl: cute.ComposedLayout,
        pv: cute.Layout,
        fv: cute.Layout,
    ):
        dim_x, dim_y, _ = cute.arch.block_in_cluster_dim()
        is_preferred = dim_x == preferred[0] and dim_y == preferred[1]
        if is_preferred:
            self.body(mma, pa, pb, c, al, bl, pv)
        else:
            self.body(mma, fa, fb, c, al, bl, fv)

    @cute.jit
    def body(
        self,
        mma: cute.TiledMma,
        ia: cpasync.TmaInfo,
        ib: cpasync.TmaInfo,
        c: cute.Tensor,
        al: cute.ComposedLayout,
        bl: cute.ComposedLayout,
        vmnk: cute.Layout,
    ):
        tidx, _, _ = cute.arch.thread_idx()
        warp = cute.arch.make_warp_uniform(cute.arch.warp_idx())
        bx, by, _ = cute.arch.block_idx()
        smem = utils.SmemAllocator()

        @cute.struct
        class S:
            ab: cute.struct.MemRange[cutlass.Int64, stages * 2]
            acc: cute.struct.MemRange[cutlass.Int64, 2]
            dealloc: cutlass.Int64
            hold: cutlass.Int32

        st = smem.allocate(S)
        sA = smem.allocate_tensor(io_dtype, al.outer, 128, al.inner)
        sB = smem.allocate_tensor(io_dtype, bl.outer, 128, bl.inner)
        coord = vmnk.get_flat_coord(cute.arch.make_warp_uniform(cute.arch.block_idx_in_cluster()))
        leader = coord[0] == 0
        n = cute.size(vmnk, mode=[1]) + cute.size(vmnk, mode=[2]) - 1
        G, T = pipeline.CooperativeGroup, pipeline.Agent.Thread
        p, q = pipeline.PipelineTmaUmma.create(
            barrier_storage=st.ab.data_ptr(),
            num_stages=stages,
            producer_group=G(T),
            consumer_group=G(T, n),
            tx_count=self.bytes,
            cta_layout_vmnk=vmnk,
            defer_sync=True,
        ).make_participants()
        ap, aq = pipeline.PipelineUmmaAsync.create(
            barrier_storage=st.acc.data_ptr(),
            num_stages=1,
            producer_group=G(T),
            consumer_group=G(T, 256),
            cta_layout_vmnk=vmnk,
            defer_sync=True,
        ).make_participants()
        tmem = utils.TmemAllocator(
            st.hold.ptr,
            barrier_for_retrieve=pipeline.NamedBarrier(barrier_id=1, num_threads=128),
            is_two_cta=True,
            two_cta_tmem_dealloc_mbar_ptr=st.dealloc.ptr,
        )
        pipeline.pipeline_init_arrive(cluster_shape_mn=vmnk, is_relaxed=True)
        pipeline.pipeline_init_wait(cluster_shape_mn=vmnk)
        mc = (bx // 2, by, None)
        thr = mma.get_slice(coord[0])
        gA = cute.local_tile(ia.tma_tensor, mma_tiler, mc, proj=(1, None, 1))
        gB = cute.local_tile(ib.tma_tensor, mma_tiler, mc, proj=(None, 1, 1))
        gC = cute.local_tile(c, mma_tiler, mc, proj=(1, 1, None))
        tA, tB, tC = thr.partition_A(gA), thr.partition_B(gB), thr.partition_C(gC)
        sAs, gAs = cpasync.tma_partition(
            ia.atom,
            coord[2],
            cute.make_layout(cute.size(vmnk, mode=[2])),
            cute.group_modes(sA, 0, 3),
            cute.group_modes(tA, 0, 3),
        )
        sBs, gBs = cpasync.tma_partition(
            ib.atom,
            coord[1],
            cute.make_layout(cute.size(vmnk, mode=[1])),
            cute.group_modes(sB, 0, 3),
            cute.group_modes(tB, 0, 3),
        )
        am = cpasync.create_tma_multicast_mask(vmnk, coord, mcast_mode=2)
        bm = cpasync.create_tma_multicast_mask(vmnk, coord, mcast_mode=1)
        rA, rB = mma.make_fragment_A(sA), mma.make_fragment_B(sB)
        fake = mma.make_fragment_C(mma.partition_shape_C(mma_tiler[:2]))
        tmem.allocate(64)
        tmem.wait_for_alloc()
        ptr = tmem.retrieve_ptr(acc_dtype)
        acc = cute.make_tensor(ptr, fake.layout)
        if warp == 0:
            if leader:
                ap.acquire_and_advance()
            for k in cutlass.range(cute.size(gA, mode=[2])):
                e = p.acquire_and_advance()
                cute.copy(
                    ia.atom,
                    gAs[None, e.count],
                    sAs[None, e.index],
                    tma_bar_ptr=e.barrier,
                    mcast_mask=am,
                )
                cute.copy(
                    ib.atom,
                    gBs[None, e.count],
                    sBs[None, e.index],
                    tma_bar_ptr=e.barrier,
                    mcast_mask=bm,
                )
                if leader:
                    f = q.wait_and_advance()
                    mma.set(tcgen05.Field.ACCUMULATE, k != 0)
                    cute.gemm(
                        mma, acc, rA[None, None, None, f.index], rB[None, None, None, f.index], acc
                    )
                    f.release()
            if leader:
                ap.commit()
        tmem.relinquish_alloc_permit()
        full = aq.wait_and_advance()
        t2r = tcgen05.make_tmem_copy(
            cute.make_copy_atom(
                tcgen05.Ld32x32bOp(tcgen05.Repetition.x64, tcgen05.Pack.NONE), acc_dtype
            ),
            acc[((None, None), 0, 0)],
        )
        mine = t2r.get_slice(tidx)
        d = mine.partition_D(tC[((None, None), 0, 0)])
        cd = mine.partition_D(
            thr.partition_C(
                cute.local_tile(
                    cute.make_identity_tensor(c.shape), mma_tiler, mc, proj=(1, 1, None)
                )
            )[((None, None), 0, 0)]
        )
        r = cute.make_rmem_tensor(d.shape, acc_dtype)
        cute.copy(t2r, mine.partition_S(acc[((None, None), 0, 0)]), r)
        out = cute.make_fragment_like(r, io_dtype)
        out.store(r.load().to(io_dtype))
        pred = cute.make_rmem_tensor(d.shape, cutlass.Boolean)
        for i in cutlass.range_constexpr(cute.size(pred)):
            pred[i] = cute.elem_less(cd[i], c.shape)
        cute.basic_copy_if(pred, out, d)
        full.release()
        cute.arch.barrier()
        tmem.free(ptr)
        if warp == 0:
            p.tail()
            ap.tail()


def run(m, n, k):
    rng = np.random.default_rng(0)
    a, b = (rng.integers(-2, 3, (rows, k)).astype(np.float16) for rows in (m, n))
    c = np.full((m, n), np.nan, np.float16)
    tensors = [from_dlpack(x, assumed_align=16).mark_layout_dynamic() for x in (a, b, c)]
    stream = cuda.CUstream(cuda.CUstream_flags.CU_STREAM_DEFAULT)
    cute.compile(PreferredClusterGemm(), *tensors, stream)(*tensors, stream)
    np.testing.assert_array_equal(
        c, (a.astype(np.float32) @ b.astype(np.float32).T).astype(c.dtype)
    )


if __name__ == "__main__":
    run(1024, 128, 192)
    run(600, 120, 64)
    print("PASS")
