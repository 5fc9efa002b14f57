"""A GEMM splits K over a cluster: its blocks add up in the first one's shared memory."""

import cuda.bindings.driver as cuda
import cutlass
import cutlass.cute as cute
import cutlass.pipeline as pipeline
import cutlass.utils as utils
import cutlass.utils.blackwell_helpers as sm100_utils
import numpy as np
from blackwell_operands import matrix, tensor_like
from cutlass.cute.nvgpu import cpasync, tcgen05


class SplitKGemm:
    def __init__(self, split):
        self.tiler_mn, self.split = (128, 64), split
        self.threads = 128

    @cute.jit
    def __call__(self, a: cute.Tensor, b: cute.Tensor, c: cute.Tensor, stream: cuda.CUstream):
        mma = sm100_utils.make_trivial_tiled_mma(
            a.element_type,
            utils.LayoutEnum.from_tensor(a).mma_major_mode(),
            utils.LayoutEnum.from_tensor(b).mma_major_mode(),
            cutlass.Float32,
            tcgen05.CtaGroup.ONE,
            self.tiler_mn,
        )
        self.tiler = (*self.tiler_mn, 4 * cute.size(mma.shape_mnk, mode=[2]))
        self.stages, self.dtype = 2, a.element_type
        a_l = sm100_utils.make_smem_layout_a(mma, self.tiler, a.element_type, self.stages)
        b_l = sm100_utils.make_smem_layout_b(mma, self.tiler, b.element_type, self.stages)
        a1, b1 = (cute.slice_(x, (None, None, None, 0)) for x in (a_l, b_l))
        op = cpasync.CopyBulkTensorTileG2SOp(tcgen05.CtaGroup.ONE)
        ta, mA = cute.nvgpu.make_tiled_tma_atom_A(op, a, a1, self.tiler, mma)
        tb, mB = cute.nvgpu.make_tiled_tma_atom_B(op, b, b1, self.tiler, mma)
        self.bytes = cute.size_in_bytes(a.element_type, a1) + cute.size_in_bytes(b.element_type, b1)
        m, n, _ = c.shape
        grid = (cute.ceil_div(m, self.tiler[0]), cute.ceil_div(n, self.tiler[1]), self.split)
        self.kernel(mma, ta, mA, tb, mB, c, a_l, b_l).launch(
            grid=grid, block=(self.threads, 1, 1), cluster=(1, 1, self.split), stream=stream
        )

    @cute.kernel
    def kernel(
        self,
        mma: cute.TiledMma,
        ta: cute.CopyAtom,
        mA: cute.Tensor,
        tb: cute.CopyAtom,
        mB: cute.Tensor,
        mC: cute.Tensor,
        a_l: cute.ComposedLayout,
        b_l: cute.ComposedLayout,
    ):
        tidx, _, _ = cute.arch.thread_idx()
        warp_idx = cute.arch.make_warp_uniform(cute.arch.warp_idx())
        bx, by, bz = cute.arch.block_idx()
        smem = utils.SmemAllocator()

        @cute.struct
        class Storage:
            ab: cute.struct.MemRange[cutlass.Int64, 2 * self.stages]
            acc: cute.struct.MemRange[cutlass.Int64, 2]
            mail: cutlass.Int64
            empty: cutlass.Int64
            holder: cutlass.Int32
            mailbox: cute.struct.Align[
                cute.struct.MemRange[cutlass.Float32, 128 * self.tiler[1]], 128
            ]

        st = smem.allocate(Storage)
        sA = smem.allocate_tensor(self.dtype, a_l.outer, 1024, a_l.inner)
        sB = smem.allocate_tensor(self.dtype, b_l.outer, 1024, b_l.inner)
        G, T = pipeline.CooperativeGroup, pipeline.Agent.Thread
        prod, cons = pipeline.PipelineTmaUmma.create(
            barrier_storage=st.ab.data_ptr(),
            num_stages=self.stages,
            producer_group=G(T),
            consumer_group=G(T),
            tx_count=self.bytes,
        ).make_participants()
        acc_p, acc_c = pipeline.PipelineUmmaAsync.create(
            barrier_storage=st.acc.data_ptr(),
            num_stages=1,
            producer_group=G(T),
            consumer_group=G(T, 128),
        ).make_participants()
        if warp_idx == 0:
            cute.arch.alloc_tmem(64, st.holder.ptr)
        if tidx == 0:
            cute.arch.mbarrier_init(st.mail.ptr, 1)
            cute.arch.mbarrier_init(st.empty.ptr, 1)
        cute.arch.mbarrier_init_fence()
        cute.arch.cluster_arrive_relaxed()
        cute.arch.cluster_wait()
        cute.arch.barrier()
        tmem_ptr = cute.arch.retrieve_tmem_ptr(
            cutlass.Float32, alignment=16, ptr_to_buffer_holding_addr=st.holder.ptr
        )
        gA = cute.local_tile(mA, self.tiler, (bx, by, None, 0), proj=(1, None, 1))
        gB = cute.local_tile(mB, self.tiler, (bx, by, None, 0), proj=(None, 1, 1))
        gC = cute.local_tile(mC, self.tiler, (bx, by, None, 0), proj=(1, 1, None))
        thr = mma.get_slice(0)
        tCgA, tCgB, tCgC = thr.partition_A(gA), thr.partition_B(gB), thr.partition_C(gC)
        tAsA, tAgA = cpasync.tma_partition(
            ta, 0, cute.make_layout(1), cute.group_modes(sA, 0, 3), cute.group_modes(tCgA, 0, 3)
        )
        tBsB, tBgB = cpasync.tma_partition(
            tb, 0, cute.make_layout(1), cute.group_modes(sB, 0, 3), cute.group_modes(tCgB, 0, 3)
        )
        rA, rB = mma.make_fragment_A(sA), mma.make_fragment_B(sB)
        fake = mma.make_fragment_C(mma.partition_shape_C(self.tiler[:2]))
        acc = cute.make_tensor(tmem_ptr, fake.layout)
        total = cute.size(gA, mode=[2])
        start = bz * total // self.split
        count = (bz + 1) * total // self.split - start
        if warp_idx == 0:
            acc_p.acquire_and_advance()
            for k in cutlass.range(count, unroll=1):
                e = prod.acquire_and_advance()
                cute.copy(ta, tAgA[None, start + k], tAsA[None, e.index], tma_bar_ptr=e.barrier)
                cute.copy(tb, tBgB[None, start + k], tBsB[None, e.index], tma_bar_ptr=e.barrier)
                f = cons.wait_and_advance()
                mma.set(tcgen05.Field.ACCUMULATE, f.count > 0)
                at = (None, None, None, f.index)
                cute.gemm(mma, acc, rA[at], rB[at], acc)
                f.release()
            acc_p.commit()
        atom = cute.make_copy_atom(
            tcgen05.Ld32x32bOp(tcgen05.copy.Repetition(self.tiler[1])), cutlass.Float32
        )
        flat = acc[((None, None), 0, 0)]
        ld = tcgen05.make_tmem_copy(atom, flat)
        mine = ld.get_slice(tidx)
        gout = mine.partition_D(tCgC[((None, None), 0, 0)])
        values = cute.make_rmem_tensor(gout.shape, cutlass.Float32)
        full = acc_c.wait_and_advance()
        cute.copy(ld, mine.partition_S(flat), values)
        cute.arch.fence_view_async_tmem_load()
        full.release()
        # One block after another sends its sums to block 0, at its invitation.
        my_box = st.mailbox.get_tensor(cute.make_layout((self.tiler[1], 128)))
        if bz != 0:
            cute.arch.mbarrier_wait(st.empty.ptr, 0)
            box0 = cute.arch.smem.map_dsmem_ptr(my_box.iterator, cutlass.Int32(0))
            bar0 = cute.arch.smem.map_dsmem_ptr(st.mail.ptr, cutlass.Int32(0))
            there = cute.make_tensor(box0, my_box.layout)
            store = cute.make_copy_atom(
                cpasync.CopyDsmemStoreOp(), cutlass.Float32, num_bits_per_copy=128
            )
            src = cute.make_tensor(values.iterator, cute.make_layout((4, self.tiler[1] // 4)))
            dst = cute.logical_divide(there[None, tidx], cute.make_layout(4))
            cute.copy(store, src, dst, mbar_ptr=bar0)
        else:
            for z in cutlass.range_constexpr(1, self.split):
                if warp_idx == 0:
                    with cute.arch.elect_one():
                        cute.arch.mbarrier_arrive_and_expect_tx(
                            st.mail.ptr, 4 * 128 * self.tiler[1]
                        )
                        cute.arch.mbarrier_arrive(st.empty.ptr, peer_cta_rank_in_cluster=z)
                cute.arch.mbarrier_wait(st.mail.ptr, (z - 1) % 2)
                got = cute.make_rmem_tensor(values.shape, cutlass.Float32)
                cute.autovec_copy(
                    my_box[None, tidx],
                    cute.make_tensor(got.iterator, cute.make_layout(self.tiler[1])),
                )
                values.store(values.load() + got.load())
                cute.arch.barrier(barrier_id=3, number_of_threads=128)
            cute.autovec_copy(values, gout)
        if warp_idx == 0:
            prod.tail()
            acc_p.tail()
        cute.arch.sync_threads()
        if warp_idx == 0:
            cute.arch.relinquish_tmem_alloc_permit()
            cute.arch.dealloc_tmem(tmem_ptr, 64)
        cute.arch.cluster_arrive()
        cute.arch.cluster_wait()


def run(m, n, k, split):
    rng = np.random.default_rng(0)
    a, b, c = (matrix(rng, 1, *shape, False) for shape in ((m, k), (n, k), (m, n)))
    half, single = cutlass.Float16, cutlass.Float32
    (a_tensor, _), (b_tensor, _), (c_tensor, got) = (
        tensor_like(x, dtype, False) for x, dtype in ((a, half), (b, half), (c, single))
    )
    stream = cuda.CUstream(cuda.CUstream_flags.CU_STREAM_DEFAULT)
    compiled = cute.compile(SplitKGemm(split), a_tensor, b_tensor, c_tensor, stream)
    compiled(a_tensor, b_tensor, c_tensor, stream)
    np.testing.assert_array_equal(got, np.einsum("mkl,nkl->mnl", a, b))


if __name__ == "__main__":
    run(256, 128, 320, 2)
    run(128, 64, 320, 4)
    print("PASS")
