"""A GEMM of TMA and wgmma with one mistake each: every one is an error that says what is wrong."""

import re

import numpy as np
import pytest

import basedsl_cute as cute
import basedsl_cute.utils.sm90 as sm90
from basedsl.errors import DSLError
from basedsl_cute import arch, pipeline, utils
from basedsl_cute.nvgpu import cpasync, warpgroup

ROW = utils.LayoutEnum.ROW_MAJOR
K = warpgroup.OperandMajorMode.K
F16, F32 = cute.Float16, cute.Float32


def one(layout):
    return cute.slice_(layout, (None, None, 0))


def group(size):
    return pipeline.CooperativeGroup(pipeline.Agent.Thread, size)


class Gemm:
    """C = A B^T: warp 4 loads, warps 0 to 3 multiply and send C off."""

    def __init__(self, mistake, cluster=1, tile=(64, 64, 64), stages=2, **numbers):
        self.mistake, self.cluster, self.tile, self.stages = mistake, cluster, tile, stages
        self.numbers = numbers

    @cute.jit
    def __call__(self, a: cute.Tensor, b: cute.Tensor, c: cute.Tensor):
        m, n, k = self.tile
        mma = sm90.make_trivial_tiled_mma(F16, F16, K, K, F32, (1, 1, 1), (64, n))
        sa = sm90.make_smem_layout_a(ROW, self.tile, F16, self.stages)
        sb = sm90.make_smem_layout_b(ROW, self.tile, F16, self.stages)
        sc = cute.make_ordered_layout((m, n), order=(1, 0))
        plain = cute.make_ordered_layout((m, k), order=(1, 0))
        wide = sm90.make_smem_layout_a(ROW, (m, n, 32), F16, 2)
        of_a = {"an atom without a swizzle": plain, "an atom of other rows": one(wide)}
        load, store = cpasync.CopyBulkTensorTileG2SOp(), cpasync.CopyBulkTensorTileS2GOp()
        shared = cpasync.CopyBulkTensorTileG2SMulticastOp() if self.cluster > 1 else load
        tma_a = cpasync.make_tiled_tma_atom(load, a, of_a.get(self.mistake, one(sa)), (m, k))
        tma_b = cpasync.make_tiled_tma_atom(shared, b, one(sb), (n, k), self.cluster)
        tma_c = cpasync.make_tiled_tma_atom(store, c, sc, (m, n))
        grid = (cute.ceil_div(a.shape[0], m), cute.ceil_div(b.shape[0], n), 1)
        self.kernel(*tma_a, *tma_b, *tma_c, mma, sa, sb, sc).launch(
            grid=grid, block=160, cluster=(self.cluster, 1, 1)
        )

    @cute.kernel
    def kernel(self, tma_a, a, tma_b, b, tma_c, c, mma, sa, sb, sc):
        m, n, k = self.tile
        mistake = self.mistake

        @cute.struct
        class Storage:
            full: cute.struct.MemRange[cute.Int64, self.numbers.get("words", 2 * self.stages)]
            more: cute.struct.MemRange[cute.Int64, 2]
            a: cute.struct.Align[cute.struct.MemRange[F16, cute.cosize(sa)], 1024]
            b: cute.struct.Align[cute.struct.MemRange[F16, cute.cosize(sb)], 1024]
            c: cute.struct.Align[cute.struct.MemRange[F32, cute.cosize(sc)], 128]

        storage = utils.SmemAllocator().allocate(Storage)
        swizzle = None if mistake == "a tensor without a swizzle" else sa.inner
        tile_a = storage.a.get_tensor(sa.outer, swizzle=swizzle)
        narrow = cute.Float8E5M2 if mistake == "a tensor of other elements" else F16
        tile_b = storage.b.get_tensor(sb.outer, swizzle=sb.inner, dtype=narrow)
        tile_c = storage.c.get_tensor(sc)
        nbytes = cute.size_in_bytes(F16, one(sa)) + cute.size_in_bytes(F16, one(sb))
        pipe = pipeline.PipelineTmaAsync.create(
            barrier_storage=storage.full.data_ptr(),
            num_stages=self.stages,
            producer_group=group(self.numbers.get("producers", 1)),
            consumer_group=group(self.numbers.get("consumers", 4 * self.cluster)),
            tx_count=nbytes + self.numbers.get("bytes", 0),
            cta_layout_vmnk=cute.make_layout((1, self.cluster, 1, 1)),
            defer_sync=mistake in ("nobody waits for the barriers", "barriers without a fence"),
        )
        if cute.const_expr(mistake == "barriers without a fence"):
            arch.sync_threads()
        if cute.const_expr(mistake == "two pipelines in one place"):
            pipeline.PipelineAsync.create(
                barrier_storage=storage.more.data_ptr(),
                num_stages=1,
                producer_group=group(32),
                consumer_group=group(32),
            )
        warp = arch.make_warp_uniform(arch.warp_idx())
        bm, bn, _ = arch.block_idx()
        rank = arch.make_warp_uniform(arch.block_idx_in_cluster())
        from_a = cute.local_tile(a, (m, k), (bm, None))
        from_b = cute.local_tile(b, (n, k), (bn, None))
        parts = []
        for atom, where, blocks, tile, whole in (
            (tma_a, 0, 1, tile_a, from_a),
            (tma_b, rank, self.cluster, tile_b, from_b),
            (tma_c, 0, 1, tile_c, cute.local_tile(c, (m, n), (bm, bn))),
        ):
            grouped = cute.group_modes(tile, 0, 2), cute.group_modes(whole, 0, 2)
            parts.append(cpasync.tma_partition(atom, where, cute.make_layout(blocks), *grouped))
        (to_a, of_a), (to_b, of_b), (out_s, out_g) = parts
        steps = cute.size(from_a, mode=[2])
        mask = self.numbers.get("mask", (1 << self.cluster) - 1)
        if warp == 4:
            producer, _ = pipe.make_participants()
            for i in range(steps):
                handle = producer.acquire_and_advance()
                at = of_a if mistake == "all steps at once" else of_a[None, i]
                cute.copy(tma_a, at, to_a[None, handle.index], tma_bar_ptr=handle.barrier)
                cute.copy(
                    tma_b,
                    of_b[None, i],
                    to_b[None, handle.index],
                    tma_bar_ptr=handle.barrier,
                    mcast_mask=cute.Int16(mask),
                )
            if cute.const_expr(mistake != "no tail"):
                producer.tail()
        elif mistake != "three warps multiply" or warp < 3:
            thread = mma.get_slice(arch.thread_idx()[0])
            fragment_a = mma.make_fragment_A(thread.partition_A(tile_a))
            fragment_b = mma.make_fragment_B(thread.partition_B(tile_b))
            acc = mma.make_fragment_C(mma.partition_shape_C((m, n)))
            _, consumer = pipe.make_participants()
            if cute.const_expr(mistake != "nobody clears the sums"):
                mma.set(warpgroup.Field.ACCUMULATE, False)
            if cute.const_expr(mistake == "no second fence"):
                warpgroup.fence()
            for _ in range(steps):
                handle = consumer.wait_and_advance()
                if cute.const_expr("fence" not in mistake):
                    warpgroup.fence()
                for block in cute.range_constexpr(cute.size(fragment_a, mode=[2])):
                    at = (None, None, block, handle.index)
                    cute.gemm(mma, acc, fragment_a[at], fragment_b[at], acc)
                    mma.set(warpgroup.Field.ACCUMULATE, True)
                warpgroup.commit_group()
                warpgroup.wait_group(0)
                if cute.const_expr("fence" in mistake):
                    acc[0] = acc[0] * 1.0
                if cute.const_expr(mistake != "no release"):
                    handle.release()
            if cute.const_expr(mistake != "three warps multiply"):
                cute.autovec_copy(acc, thread.partition_C(tile_c))
                if cute.const_expr(mistake != "a store sees no writes"):
                    arch.fence_proxy("async.shared", space="cta")
                arch.barrier(barrier_id=1, number_of_threads=128)
                if warp == 0:
                    cute.copy(tma_c, out_s, out_g)
                    arch.cp_async_bulk_commit_group()
                    arch.cp_async_bulk_wait_group(0, read=True)


def multiply(mistake="", rows=128, **options):
    rng = np.random.default_rng(0)
    a, b = (rng.integers(-2, 3, (size, 264)).astype(np.float16) for size in (rows, 64))
    c = np.full((rows, 64), np.nan, np.float32)
    Gemm(mistake, **options)(a, b, c)
    np.testing.assert_array_equal(c, a.astype(np.float32) @ b.T.astype(np.float32))


@pytest.mark.parametrize("cluster", [1, 2])
def test_without_a_mistake(sim, monkeypatch, cluster):
    monkeypatch.setenv("CUTE_DSL_CHECK_RACES", "1")
    multiply(cluster=cluster)


BEFORE_IT_RUNS = {
    "no stages": ({"stages": 0}, "a pipeline has a static number of stages from 1, not 0"),
    "too large": (
        {"tile": (64, 256, 128), "stages": 4},
        "allocates 394240 bytes of shared memory",
    ),
    "less than a step of K": (
        {"tile": (64, 64, 8)},
        "takes A in steps of (64, 16), and (64, 8) is no multiple",
    ),
    "rows of a step and a half": (
        {"tile": (96, 64, 64)},
        "takes A in steps of (64, 16), and (96, 64) is no multiple",
    ),
    "a grid of odd clusters": ({"cluster": 2, "rows": 192}, "does not divide grid=(3, 1, 1)"),
    "an atom without a swizzle": (
        {},
        "was made for no swizzle, and its shared tensor has a swizzle of 128 bytes",
    ),
    "an atom of other rows": ({}, "is not one tile of (64, 64)"),
    "a tensor without a swizzle": ({}, "has no swizzle"),
    "a tensor of other elements": (
        {},
        "the TMA atom has elements of 16 bits, its shared tensor of 8",
    ),
    "arrivals of threads": (
        {"consumers": 128},
        "is released by 128 arrivals: more than there are warps",
    ),
    "loads of 32 threads": (
        {"producers": 32},
        "is filled by 32 arrivals: more than there are warps",
    ),
    "all steps at once": ({}, "choose the tile and the stage"),
}


@pytest.mark.parametrize("mistake", BEFORE_IT_RUNS)
def test_before_it_runs(sim, mistake):
    options, message = BEFORE_IT_RUNS[mistake]
    with pytest.raises(DSLError, match=re.escape(message)):
        multiply(mistake, **options)


WHEN_IT_RUNS = {
    "too few bytes": ({"bytes": -8192}, "8192 bytes came that nobody expects"),
    "too many bytes": ({"bytes": 128}, "128 bytes still to come"),
    "no release": ({}, "byte offset 16 of `Storage.full` (4 of 4 arrivals still to come"),
    "not for all of the cluster": ({"cluster": 2, "mask": 1}, "8192 bytes still to come"),
    "two pipelines in one place": (
        {"words": 2},
        "an mbarrier at byte offset 0 of `Storage.more` already",
    ),
    "nobody clears the sums": ({}, "adds to accumulators that nobody has written"),
    "no fence": ({}, "a wgmma with no warpgroup.fence() before"),
    "no second fence": ({}, "were written since the last warpgroup.fence()"),
    "three warps multiply": (
        {"consumers": 3},
        "warps 2 and 3 of one warpgroup execute different wgmma",
    ),
}


@pytest.mark.parametrize("mistake", WHEN_IT_RUNS)
def test_when_it_runs(sim, mistake):
    options, message = WHEN_IT_RUNS[mistake]
    with pytest.raises(DSLError, match=re.escape(message)):
        multiply(mistake, **options)


RACES = {
    "nobody waits for the barriers": ({}, "this wait and a write by warp 0 touch byte"),
    "barriers without a fence": ({}, "missing fence: this copy counts at the mbarrier at byte"),
    "a store sees no writes": ({}, "missing proxy fence: this read by a TMA store touches byte"),
    "no tail": ({"cluster": 2}, "this arrival is in the shared memory of another block"),
}


@pytest.mark.parametrize("mistake", RACES)
def test_races(sim, monkeypatch, mistake):
    monkeypatch.setenv("CUTE_DSL_CHECK_RACES", "1")
    options, message = RACES[mistake]
    with pytest.raises(DSLError, match=re.escape(message)):
        multiply(mistake, **options)
