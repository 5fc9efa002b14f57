"""A stage that TMA fills and that both tcgen05.mma and threads read, as in state-space scans:
C = A B^T, and the sums of the rows of A by threads.
"""

import numpy as np
import pytest

import basedsl_cute as cutlass
from basedsl_cute import cute, pipeline, utils
from basedsl_cute.cute.nvgpu import cpasync, tcgen05
from basedsl_cute.runtime import from_dlpack
from basedsl_cute.utils import sm100

M, N, K, STAGES = 128, 32, 64, 2
SUMS, MMA, LOAD = (0, 1, 2, 3), 4, 5


class Program:
    @cute.jit
    def __call__(self, a: cute.Tensor, b: cute.Tensor, c: cute.Tensor, sums: cute.Tensor):
        one, major = tcgen05.CtaGroup.ONE, tcgen05.OperandMajorMode.K
        dtype, tiler = a.element_type, (M, N, K)
        mma = sm100.make_trivial_tiled_mma(dtype, major, major, cutlass.Float32, one, (M, N))
        self.a_smem = sm100.make_smem_layout_a(mma, tiler, dtype, STAGES)
        self.b_smem = sm100.make_smem_layout_b(mma, tiler, dtype, STAGES)
        a_one, b_one = (cute.slice_(x, (None, None, None, 0)) for x in (self.a_smem, self.b_smem))
        load = cpasync.CopyBulkTensorTileG2SOp(one)
        a_atom, mA = cute.nvgpu.make_tiled_tma_atom_A(load, a, a_one, tiler, mma)
        b_atom, mB = cute.nvgpu.make_tiled_tma_atom_B(load, b, b_one, tiler, mma)
        self.dtype = dtype
        self.tx = cute.size_in_bytes(dtype, a_one) + cute.size_in_bytes(dtype, b_one)
        self.kernel(mma, a_atom, mA, b_atom, mB, c, sums).launch(grid=1, block=192)

    @cute.kernel
    def kernel(
        self, mma: cute.TiledMma, a_atom: cute.CopyAtom, mA: cute.Tensor, b_atom: cute.CopyAtom,
        mB: cute.Tensor, mC: cute.Tensor, sums: cute.Tensor,
    ):  # fmt: skip
        thread, _, _ = cute.arch.thread_idx()
        warp = cute.arch.make_warp_uniform(cute.arch.warp_idx())
        smem = utils.SmemAllocator()
        barriers = smem.allocate_array(cutlass.Int64, 2 * STAGES)
        acc_barriers = smem.allocate_array(cutlass.Int64, 2)
        holder = smem.allocate_array(cutlass.Int32, 1)
        sA = smem.allocate_tensor(self.dtype, self.a_smem.outer, 1024, self.a_smem.inner)
        sB = smem.allocate_tensor(self.dtype, self.b_smem.outer, 1024, self.b_smem.inner)
        agent = pipeline.Agent.Thread
        one, many = pipeline.CooperativeGroup(agent), pipeline.CooperativeGroup(agent, 128)
        loads = pipeline.PipelineTmaMultiConsumersAsync.create(
            barrier_storage=barriers, num_stages=STAGES, producer_group=one,
            consumer_group_umma=one, consumer_group_async=many, tx_count=self.tx,
        )  # fmt: skip
        acc_producer, acc_consumer = pipeline.PipelineUmmaAsync.create(
            barrier_storage=acc_barriers, num_stages=1, producer_group=one, consumer_group=many
        ).make_participants()
        tmem = utils.TmemAllocator(
            holder, barrier_for_retrieve=pipeline.NamedBarrier(1, 160), allocator_warp_id=0
        )
        part = mma.get_slice(0)
        gA, gB = (cute.local_tile(x, (n, K), (0, None)) for x, n in ((mA, M), (mB, N)))
        layout = cute.make_layout(1)
        tAs, tAg = cpasync.tma_partition(
            a_atom, 0, layout, cute.group_modes(sA, 0, 3),
            cute.group_modes(part.partition_A(gA), 0, 3),
        )  # fmt: skip
        tBs, tBg = cpasync.tma_partition(
            b_atom, 0, layout, cute.group_modes(sB, 0, 3),
            cute.group_modes(part.partition_B(gB), 0, 3),
        )  # fmt: skip
        fake = mma.make_fragment_C(mma.partition_shape_C((M, N)))
        count = cute.size(gA, mode=[2])
        if warp == LOAD:
            state = pipeline.make_pipeline_state(pipeline.PipelineUserType.Producer, STAGES)
            for i in cutlass.range(count):
                loads.producer_acquire(state)
                bar = loads.producer_get_barrier(state)
                cute.copy(a_atom, tAg[None, i], tAs[None, state.index], tma_bar_ptr=bar)
                cute.copy(b_atom, tBg[None, i], tBs[None, state.index], tma_bar_ptr=bar)
                state.advance()
            loads.producer_tail(state)
        if warp == MMA:
            tmem.wait_for_alloc()
            acc = cute.make_tensor(tmem.retrieve_ptr(cutlass.Float32), fake.layout)
            rA, rB = mma.make_fragment_A(sA), mma.make_fragment_B(sB)
            state = pipeline.make_pipeline_state(pipeline.PipelineUserType.Consumer, STAGES)
            empty = acc_producer.acquire_and_advance()
            mma.set(tcgen05.Field.ACCUMULATE, False)
            for _ in cutlass.range(count):
                loads.consumer_wait(state)
                at = (None, None, None, state.index)
                cute.gemm(mma, acc, rA[at], rB[at], acc)
                mma.set(tcgen05.Field.ACCUMULATE, True)
                loads.consumer_release(state, pipeline.PipelineOp.TCGen05Mma)
                state.advance()
            empty.commit()
            acc_producer.tail()
        if warp < MMA:
            tmem.allocate(32)
            tmem.wait_for_alloc()
            start = tmem.retrieve_ptr(cutlass.Float32)
            tmem.relinquish_alloc_permit()
            total = cutlass.Float32(0.0)
            state = pipeline.make_pipeline_state(pipeline.PipelineUserType.Consumer, STAGES)
            for _ in cutlass.range(count):
                loads.consumer_wait(state)
                mine = cute.make_rmem_tensor((16, K // 16), self.dtype)
                row = sA[(thread, None), 0, None, state.index]
                cute.autovec_copy(cute.group_modes(row, 0, 2), cute.group_modes(mine, 0, 2))
                total += (
                    mine.load()
                    .to(cutlass.Float32)
                    .reduce(cute.ReductionOp.ADD, cutlass.Float32(0.0), 0)
                )
                loads.consumer_release(state, pipeline.PipelineOp.AsyncThread)
                state.advance()
            sums[thread] = total
            whole = cute.make_tensor(start, fake.layout)[(None, None), 0, 0]
            load = tcgen05.make_tmem_copy(
                cute.make_copy_atom(tcgen05.Ld32x32bOp(tcgen05.Repetition(N)), cutlass.Float32),
                whole,
            )
            target = load.get_slice(thread).partition_D(mC)
            values = cute.make_rmem_tensor(target.shape, cutlass.Float32)
            full = acc_consumer.wait_and_advance()
            cute.copy(load, load.get_slice(thread).partition_S(whole), values)
            cute.autovec_copy(values, target)
            full.release()
            pipeline.NamedBarrier(2, 128).arrive_and_wait()
            tmem.free(start)


@pytest.mark.slow
def test_both_read_each_stage():
    rng = np.random.default_rng(0)
    a, b = (rng.standard_normal((n, 5 * K)).astype(np.float16) for n in (M, N))
    c, sums = np.full((M, N), np.nan, np.float32), np.full(M, np.nan, np.float32)
    tensors = [from_dlpack(x, assumed_align=16) for x in (a, b, c, sums)]
    cute.compile(Program(), *tensors, options="--arch sim")(*tensors)
    np.testing.assert_allclose(c, a.astype(float) @ b.astype(float).T, rtol=1e-4, atol=1e-4)
    np.testing.assert_allclose(sums, a.astype(float).sum(1), rtol=1e-4, atol=1e-4)
