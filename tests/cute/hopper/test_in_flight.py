"""Asynchronous operations happen as late as a program lets them: kernels that do not wait are wrong
in the simulator too, and the race check says why.
"""

import numpy as np
import pytest

import basedsl_cute as cute
from basedsl.errors import DSLError
from basedsl_cute import arch
from basedsl_cute.nvgpu import cpasync, tma, warpgroup
from basedsl_cute.sim import RaceError
from basedsl_cute.utils import SmemAllocator

TILE = (8, 32)


@pytest.fixture(autouse=True)
def late(sim, monkeypatch):
    """The simulator shows what a program that does not wait computes."""
    monkeypatch.setenv("CUTE_DSL_CHECK_RACES", "0")


@pytest.fixture
def races(late, monkeypatch):
    """The simulator checks shared memory for races."""
    monkeypatch.setenv("CUTE_DSL_CHECK_RACES", "1")


@cute.kernel
def store_twice(store, target, fences: cute.Constexpr, waits: cute.Constexpr, last: cute.Constexpr):
    """Writes 1 and then 2 through the same shared memory, by warp 0."""
    tile = SmemAllocator().allocate_tensor(
        cute.Float32, cute.make_layout(TILE, stride=(32, 1)), 128
    )
    grouped = cute.group_modes(tile, 0, 2)
    s, g = tma.tma_partition(store, 0, None, grouped, cute.zipped_divide(target, TILE))
    for i in cute.range_constexpr(2):
        for row in cute.range_constexpr(TILE[0]):
            tile[row, arch.lane_idx()] = i + 1.0
        if cute.const_expr(fences):
            arch.fence_view_async_shared()
        arch.sync_warp()
        cute.copy(store, s, g[None, (i, 0)])
        arch.cp_async_bulk_commit_group()
        if cute.const_expr(waits if i == 0 else last):
            arch.cp_async_bulk_wait_group(0, read=True)


def run_store_twice(fences=True, waits=True, last=True):
    @cute.jit
    def host(c: cute.Tensor):
        layout = cute.make_layout(TILE, stride=(32, 1))
        atom, target = tma.make_tiled_tma_atom(tma.CopyBulkTensorTileS2GOp(), c, layout, TILE)
        store_twice(atom, target, fences, waits, last).launch(grid=1, block=32)

    c = np.zeros((16, 32), np.float32)
    host(c)
    return c[:, 0].tolist()


def test_a_store_reads_its_source_when_it_is_waited_for(sim):
    assert run_store_twice() == [1] * 8 + [2] * 8
    assert run_store_twice(waits=False) == [2] * 16  # what a late store would have read


def test_a_source_overwritten_in_flight_is_a_race(races):
    assert run_store_twice() == [1] * 8 + [2] * 8
    message = "write and a read by the asynchronous unit for warp 0 touch byte 0 of"
    with pytest.raises(RaceError, match=message) as error:
        run_store_twice(waits=False)
    assert "hint: wait for the asynchronous read first" in str(error.value)


def test_a_missing_proxy_fence_before_a_store(races):
    with pytest.raises(RaceError, match="missing proxy fence: this read by a") as error:
        run_store_twice(fences=False)
    assert "note: the write by warp 0" in str(error.value)
    assert "cute.arch.fence_proxy('async.shared'" in str(error.value)


def test_a_block_that_ends_while_its_store_is_read(races):
    with pytest.raises(RaceError, match="the block ends while a bulk store may still read"):
        run_store_twice(last=False)


@cute.kernel
def load_twice(load, source, out: cute.Tensor, waits: cute.Constexpr, early: cute.Constexpr):
    """Warp 1 loads two tiles into one place; warp 0 adds a row of each."""
    smem = SmemAllocator()
    full = smem.allocate_array(cute.Int64, 2)
    tile = smem.allocate_tensor(cute.Float32, cute.make_layout(TILE, stride=(32, 1)), 128)
    if arch.thread_idx()[0] == 0:
        arch.mbarrier_init(full, 1)
        arch.mbarrier_init(full + 1, 32)
    arch.mbarrier_init_fence()
    arch.sync_threads()
    grouped = cute.group_modes(tile, 0, 2)
    s, g = tma.tma_partition(load, 0, None, grouped, cute.zipped_divide(source, TILE))
    lane = arch.lane_idx()
    if arch.warp_idx() == 1:
        for i in cute.range_constexpr(2):
            if cute.const_expr(i == 1):
                arch.mbarrier_wait(full + 1, 0)
            with arch.elect_one():
                arch.mbarrier_arrive_and_expect_tx(full, 4 * TILE[0] * TILE[1])
                cute.copy(load, g[None, (i, 0)], s, tma_bar_ptr=full)
    else:
        total = cute.Float32(0)
        for i in cute.range_constexpr(2):
            if cute.const_expr(waits):
                arch.mbarrier_wait(full, i)
            if cute.const_expr(early):
                arch.mbarrier_arrive(full + 1)
            total += tile[i, lane]
            if cute.const_expr(not early):
                arch.mbarrier_arrive(full + 1)
        out[lane] = total


def run_load_twice(waits=True, early=False):
    @cute.jit
    def host(a: cute.Tensor, out: cute.Tensor):
        layout = cute.make_layout(TILE, stride=(32, 1))
        atom, source = tma.make_tiled_tma_atom(tma.CopyBulkTensorTileG2SOp(), a, layout, TILE)
        load_twice(atom, source, out, waits, early).launch(grid=1, block=64)

    a = np.arange(16 * 32, dtype=np.float32).reshape(16, 32)
    out = np.zeros(32, np.float32)
    host(a, out)
    np.testing.assert_array_equal(out, a[0] + a[9])


def test_a_tile_that_nobody_waits_for_is_not_there(sim):
    run_load_twice()
    with pytest.raises(DSLError, match="read of shared memory that no thread has written"):
        run_load_twice(waits=False)


def test_a_tile_that_nobody_waits_for_is_a_race(races):
    run_load_twice()
    message = "this read and a write by the asynchronous unit for warp 1"
    with pytest.raises(RaceError, match=message):
        run_load_twice(waits=False)


def test_a_load_over_a_tile_that_is_still_read(races):
    with pytest.raises(RaceError, match="this write by a TMA load and a read by warp 0"):
        run_load_twice(early=True)


# wgmma -------------------------------------------------------------------------------------------


@cute.kernel
def multiply(
    a: cute.Tensor,
    c: cute.Tensor,
    fences: cute.Constexpr,
    commits: cute.Constexpr,
    waits: cute.Constexpr,
    overwrites: cute.Constexpr,
):
    """C = A A^T for A of 64 x 16, by one warpgroup."""
    op = warpgroup.MmaF16BF16Op(
        cute.Float16,
        cute.Float32,
        (64, 64, 16),
        warpgroup.OperandSource.SMEM,
        warpgroup.OperandMajorMode.K,
        warpgroup.OperandMajorMode.K,
    )
    mma = cute.make_tiled_mma(op)
    atom = warpgroup.make_smem_layout_atom("K_SW32", cute.Float16)
    layout = cute.tile_to_shape(atom, (64, 16), (0, 1))
    swizzle = cute.recast_layout(8, 16, layout.inner)
    sa = SmemAllocator().allocate_tensor(cute.Float16, layout.outer, 1024, swizzle)
    thread = arch.thread_idx()[0]
    for i in cute.range_constexpr(8):
        sa[thread % 64, thread // 64 * 8 + i] = a[thread % 64, thread // 64 * 8 + i]
    if cute.const_expr(fences):
        arch.fence_view_async_shared()
    arch.sync_threads()
    mine = mma.get_slice(thread)
    ra = mma.make_fragment_A(mine.partition_A(sa))
    rb = mma.make_fragment_B(mine.partition_B(sa))
    acc = mma.make_fragment_C(mma.partition_shape_C((64, 64)))
    acc.fill(0.0)
    warpgroup.fence()
    mma.gemm(acc, ra, rb, acc)
    if cute.const_expr(commits):
        warpgroup.commit_group()
    if cute.const_expr(overwrites):
        sa[thread % 64, thread // 64 * 8] = cute.Float16(0)
    if cute.const_expr(waits):
        warpgroup.wait_group(0)
    tc = mine.partition_C(c)
    for i in cute.range_constexpr(cute.size(acc)):
        tc[i] = acc[i]
    warpgroup.wait_group(0)


def run_multiply(fences=True, commits=True, waits=True, overwrites=False):
    @cute.jit
    def host(a: cute.Tensor, c: cute.Tensor):
        static = cute.make_tensor(c.iterator, cute.make_layout((64, 64), stride=(64, 1)))
        multiply(a, static, fences, commits, waits, overwrites).launch(grid=1, block=128)

    a = np.random.default_rng(0).integers(-4, 5, (64, 16)).astype(np.float16)
    c = np.zeros((64, 64), np.float32)
    host(a, c)
    np.testing.assert_array_equal(c, a.astype(np.float32) @ a.astype(np.float32).T)


@pytest.mark.parametrize("missing", ["waits", "commits"])
def test_accumulators_read_too_early(sim, missing):
    run_multiply()
    message = "a read of the accumulators of a wgmma that is still running"
    with pytest.raises(DSLError, match=message) as error:
        run_multiply(**{missing: False})
    text = str(error.value)
    assert "tc[i] = acc[i]" in text and "mma.gemm(acc, ra, rb, acc)" in text
    assert "hint: first warpgroup.commit_group() and warpgroup.wait_group(0)" in text


def test_operands_overwritten_in_flight(races):
    run_multiply()
    with pytest.raises(RaceError, match="this write and a read by the asynchronous unit for warp"):
        run_multiply(overwrites=True)


def test_operands_overwritten_in_flight_change_the_product(sim):
    with pytest.raises(AssertionError, match="not equal"):
        run_multiply(overwrites=True)


def test_a_missing_proxy_fence_before_wgmma(races):
    with pytest.raises(RaceError, match="missing proxy fence: this read by wgmma touches byte"):
        run_multiply(fences=False)


# cp.async ----------------------------------------------------------------------------------------


@cute.kernel
def gather(a: cute.Tensor, out: cute.Tensor, waits: cute.Constexpr, by_barrier: cute.Constexpr):
    """Warp 1 copies 32 floats; warp 0 reads them, after a barrier or an mbarrier."""
    smem = SmemAllocator()
    full = smem.allocate_array(cute.Int64, 1)
    tile = smem.allocate_tensor(cute.Float32, cute.make_layout((1, 32)), 128)
    lane = arch.lane_idx()
    if arch.thread_idx()[0] == 0:
        arch.mbarrier_init(full, 32)
    arch.mbarrier_init_fence()
    arch.sync_threads()
    atom = cute.make_copy_atom(cpasync.CopyG2SOp(), cute.Float32, num_bits_per_copy=32)
    if arch.warp_idx() == 1:
        mine = (1, 1), (0, lane)
        cute.copy(atom, cute.local_tile(a, *mine), cute.local_tile(tile, *mine))
        if cute.const_expr(by_barrier):
            arch.cp_async_mbarrier_arrive_noinc(full)
        else:
            arch.cp_async_commit_group()
            if cute.const_expr(waits):
                arch.cp_async_wait_group(0)
    if cute.const_expr(not by_barrier):
        arch.sync_threads()
    elif cute.const_expr(waits):
        arch.mbarrier_wait(full, 0)
    if arch.warp_idx() == 0:
        out[lane] = tile[0, lane]


def run_gather(waits=True, by_barrier=False):
    @cute.jit
    def host(a: cute.Tensor, out: cute.Tensor):
        static = cute.make_tensor(a.iterator, cute.make_layout((1, 32)))
        gather(static, out, waits, by_barrier).launch(grid=1, block=64)

    a, out = np.arange(32, dtype=np.float32), np.zeros(32, np.float32)
    host(a, out)
    np.testing.assert_array_equal(out, a)


@pytest.mark.parametrize("by_barrier", [False, True])
def test_a_cp_async_that_nobody_waits_for(sim, by_barrier):
    run_gather(by_barrier=by_barrier)
    with pytest.raises(DSLError, match="read of shared memory that no thread has written"):
        run_gather(False, by_barrier)


@pytest.mark.parametrize("by_barrier", [False, True])
def test_a_cp_async_in_flight_is_a_race(races, by_barrier):
    run_gather(by_barrier=by_barrier)
    with pytest.raises(RaceError, match=r"this read and a write by cp\.async of warp 1"):
        run_gather(False, by_barrier)
