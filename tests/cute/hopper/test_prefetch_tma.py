"""`range(prefetch_stages=n)` over TMA loads: the loop brings the barriers."""

import numpy as np
import pytest

import basedsl_cute as cute
from basedsl.errors import DSLTypeError
from basedsl_cute import arch
from basedsl_cute.nvgpu import cpasync, tma, warpgroup
from basedsl_cute.utils import hopper_helpers as sm90

TILE = (8, 32)


@cute.kernel
def mix(
    load,
    source,
    out: cute.Tensor,
    tiles: cute.Int32,
    stages: cute.Constexpr,
    rounds: cute.Constexpr,
):
    """A sum over tiles in which their order matters, `rounds` times over, by 64 threads."""
    tile = cute.utils.SmemAllocator().allocate_tensor(
        cute.Float32, cute.make_layout(TILE, stride=(32, 1)), 128
    )
    grouped = cute.group_modes(tile, 0, 2)
    s, g = tma.tma_partition(load, 0, None, grouped, cute.zipped_divide(source, TILE))
    t = arch.thread_idx()[0]
    total = cute.Float32(0)
    for _ in cute.range(rounds, unroll=1):
        for i in cute.range(tiles, prefetch_stages=stages):
            cute.copy(load, g[None, (i, 0)], s)
            arch.sync_threads()
            for j in cute.range_constexpr(4):
                total = total * 0.75 + tile[j * 2 + t // 32, (t + 7 * j) % 32]
            arch.sync_threads()
    out[t] = total


def run_mix(tiles, stages, rounds=1):
    @cute.jit
    def host(a: cute.Tensor, out: cute.Tensor, tiles: cute.Int32):
        layout = cute.make_layout(TILE, stride=(32, 1))
        load, source = tma.make_tiled_tma_atom(tma.CopyBulkTensorTileG2SOp(), a, layout, TILE)
        mix(load, source, out, tiles, stages, rounds).launch(grid=1, block=64)

    a = np.random.default_rng(tiles).standard_normal((8 * max(1, tiles), 28)).astype(np.float32)
    out = np.full(64, np.nan, np.float32)
    host(a, out, tiles)
    cute.synchronize()
    padded = np.pad(a, ((0, 0), (0, 4)))
    t = np.arange(64)
    expected = np.zeros(64, np.float32)
    for _ in range(rounds):
        for i in range(tiles):
            for j in range(4):
                expected = expected * np.float32(0.75)
                expected += padded[8 * i + 2 * j + t // 32, (t + 7 * j) % 32]
    np.testing.assert_allclose(out, expected, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("stages", [1, 2, 3])
def test_tiles_come_in_order(hopper, stages):
    for tiles in (0, 1, 2, 3, 4, 11):
        run_mix(tiles, stages)


def test_in_another_loop(hopper):
    run_mix(5, 2, rounds=3)


def test_there_is_no_race(sim, monkeypatch):
    monkeypatch.setenv("CUTE_DSL_CHECK_RACES", "1")
    run_mix(7, 2)


@cute.kernel
def product(
    load_a, tma_a, load_b, tma_b, c: cute.Tensor, tiles: cute.Int32, stages: cute.Constexpr
):
    """C = A B^T of 64 x 64 by one warpgroup, K in tiles of 64."""
    row = sm90.LayoutEnum.ROW_MAJOR
    smem = cute.utils.SmemAllocator()
    tensors = []
    for make in (sm90.make_smem_layout_a, sm90.make_smem_layout_b):
        layout = make(row, (64, 64, 64), cute.Float16, 1)
        swizzle = cute.recast_layout(8, 16, layout.inner)
        tensors.append(smem.allocate_tensor(cute.Float16, layout.outer, 1024, swizzle))
    sa, sb = tensors
    mma = sm90.make_trivial_tiled_mma(
        cute.Float16,
        cute.Float16,
        row.sm90_mma_major_mode(),
        row.sm90_mma_major_mode(),
        cute.Float32,
        (1, 1, 1),
        (64, 64),
    )
    mine = mma.get_slice(arch.thread_idx()[0])
    ra = mma.make_fragment_A(mine.partition_A(sa))
    rb = mma.make_fragment_B(mine.partition_B(sb))
    acc = mma.make_fragment_C(mma.partition_shape_C((64, 64)))
    ga, gb = (cute.zipped_divide(x, (64, 64)) for x in (tma_a, tma_b))
    ta_s, ta_g = tma.tma_partition(load_a, 0, None, cute.group_modes(sa, 0, 2), ga)
    tb_s, tb_g = tma.tma_partition(load_b, 0, None, cute.group_modes(sb, 0, 2), gb)
    acc.fill(0.0)
    for k in cute.range(tiles, unroll=1, prefetch_stages=stages):
        cute.copy(load_a, ta_g[None, (0, k)], ta_s[None, 0])
        cute.copy(load_b, tb_g[None, (0, k)], tb_s[None, 0])
        arch.sync_threads()
        warpgroup.fence()
        cute.gemm(mma, acc, ra[None, None, None, 0], rb[None, None, None, 0], acc)
        warpgroup.commit_group()
        warpgroup.wait_group(0)
        arch.sync_threads()
    tc = mine.partition_C(c)
    for i in cute.range_constexpr(cute.size(acc)):
        tc[i] = acc[i]


@cute.jit
def product_host(a: cute.Tensor, b: cute.Tensor, c: cute.Tensor, stages: cute.Constexpr):
    row = sm90.LayoutEnum.ROW_MAJOR
    made = []
    for x, make in ((a, sm90.make_smem_layout_a), (b, sm90.make_smem_layout_b)):
        layout = cute.slice_(make(row, (64, 64, 64), cute.Float16, 1), (None, None, 0))
        made += tma.make_tiled_tma_atom(tma.CopyBulkTensorTileG2SOp(), x, layout, (64, 64))
    static = cute.make_tensor(c.iterator, cute.make_layout((64, 64), stride=(64, 1)))
    tiles = cute.ceil_div(a.shape[1], 64)
    product(*made, static, tiles, stages).launch(grid=1, block=128)


@pytest.mark.parametrize("stages, k", [(1, 64), (3, 40), (2, 520)])
def test_wgmma_from_tiles_that_run_ahead(hopper, stages, k):
    rng = np.random.default_rng(k)
    a, b = (rng.standard_normal((64, k)).astype(np.float16) for _ in range(2))
    c = np.full((64, 64), np.nan, np.float32)
    product_host(a, b, c, stages)
    cute.synchronize()
    np.testing.assert_allclose(c, a.astype(np.float64) @ b.astype(np.float64).T, atol=1e-3)


def test_the_loads_complete_mbarriers(monkeypatch):
    monkeypatch.setenv("CUTE_DSL_ARCH", "sm_90a")
    a = np.zeros((64, 64), np.float16)
    ptx = cute.compile(product_host, a, a, np.zeros((64, 64), np.float32), 3).stages.text("ptx")
    assert (
        ptx.count("cp.async.bulk.tensor.2d.shared") == 8
    )  # of A and B: three times before the loop
    assert ptx.count("mbarrier.init") == ptx.count("mbarrier.inval") == 4
    assert ptx.count("mbarrier.arrive.expect_tx") == 4 and "mbarrier.try_wait.parity" in ptx


def refused(body, message, hint, stages=2):
    body = cute.jit(body)

    @cute.kernel
    def kernel(load, source, out: cute.Tensor):
        smem = cute.utils.SmemAllocator()
        barrier = smem.allocate_array(cute.Int64, 1)
        tile = smem.allocate_tensor(cute.Float32, cute.make_layout(TILE, stride=(32, 1)), 128)
        grouped = cute.group_modes(tile, 0, 2)
        s, g = tma.tma_partition(load, 0, None, grouped, cute.zipped_divide(source, TILE))
        body(load, g, s, tile, out, barrier, stages)

    @cute.jit
    def host(a: cute.Tensor, out: cute.Tensor):
        layout = cute.make_layout(TILE, stride=(32, 1))
        op = cpasync.CopyBulkTensorTileG2SOp()
        kernel(*cpasync.make_tiled_tma_atom(op, a, layout, TILE), out).launch(grid=1, block=64)

    with pytest.raises(DSLTypeError) as error:
        cute.compile(host, np.zeros((64, 32), np.float32), np.zeros(64, np.float32))
    assert message in str(error.value) and f"hint: {hint}" in str(error.value), str(error.value)


def test_a_load_in_a_branch(sim):
    def body(load, g, s, tile, out, barrier, stages):
        for i in cute.range(4, prefetch_stages=stages):
            if arch.warp_idx() == 0:
                cute.copy(load, g[None, (i, 0)], s)
            arch.sync_threads()
            out[0] = 1.0

    refused(body, "not all threads of the block call this TMA copy", "take it out of the branch")


def test_a_load_with_a_barrier_of_its_own(sim):
    def body(load, g, s, tile, out, barrier, stages):
        for i in cute.range(4, prefetch_stages=stages):
            cute.copy(load, g[None, (i, 0)], s, tma_bar_ptr=barrier)
            arch.sync_threads()

    refused(
        body, "its TMA copies complete a barrier of the program's own", "leave tma_bar_ptr= out"
    )


@pytest.mark.parametrize("stages", [0, None])
def test_a_load_that_nobody_waits_for(sim, stages):
    def body(load, g, s, tile, out, barrier, stages):
        for i in cute.range(4, prefetch_stages=stages):
            cute.copy(load, g[None, (i, 0)], s)
            arch.sync_threads()

    message = "a TMA load needs the mbarrier that it completes: tma_bar_ptr="
    refused(body, message, "or a loop that waits for it", stages)
