"""Grouped products on Hopper, tensor maps that a kernel changes, and the search for tiles."""

import sys
from pathlib import Path

import ml_dtypes
import numpy as np
import pytest

import basedsl_cute as cute
from basedsl.errors import DSLError
from basedsl_cute import arch
from basedsl_cute.lowering.ptx import ptxas
from basedsl_cute.nvgpu import cpasync
from basedsl_cute.ops.hopper.grouped_gemm import (
    Config,
    HopperGemmKinds,
    grouped_gemm,
    maps_of,
    tables,
)
from basedsl_cute.sim import reachable
from basedsl_cute.utils.group_scheduler import (
    GroupedGemmTileSchedulerHelper,
    StaticPersistentGroupTileScheduler,
    create_initial_search_state,
)
from basedsl_cute.utils.layout_enum import LayoutEnum
from basedsl_cute.utils.tensormap_manager import TensorMapManager, TensorMapUpdateMode
from basedsl_cute.utils.tile_scheduler import PersistentTileSchedulerParams

sys.path.insert(0, str(Path(__file__).parents[3] / "examples" / "cute"))

from hopper_grouped_gemm import aligned

ROW, COL = LayoutEnum.ROW_MAJOR, LayoutEnum.COL_MAJOR
SMALL = Config(tile=(64, 64, 64), stages=2, consumers=1)
SHARED = Config(tile=(128, 128, 64), stages=3)
TURNS = Config(tile=(64, 64, 64), stages=3, pingpong=True)
GROUPS = {
    "one": [(128, 64, 128)],
    "one tile of several": [(64, 64, 64), (64, 64, 128), (64, 64, 64)],
    "ragged": [(40, 200, 72), (130, 8, 8), (64, 72, 136), (1, 64, 64)],
    "none": [],
    "empty ones": [(0, 64, 64), (64, 0, 64), (72, 64, 0), (64, 64, 64), (0, 0, 0)],
    "more than a warp has lanes": [(8 * (i % 3), 64, 64) for i in range(40)],
}
TYPES = {
    cute.Float16: np.float16,
    cute.BFloat16: ml_dtypes.bfloat16,
    cute.Float32: np.float32,
    cute.Float8E4M3FN: ml_dtypes.float8_e4m3fn,
    cute.Float8E5M2: ml_dtypes.float8_e5m2,
    cute.Int8: np.int8,
    cute.Int32: np.int32,
}
F16 = HopperGemmKinds(cute.Float16, cute.Float16, cute.Float16, ROW, ROW, ROW)


POISON = (np.nan, 7)  # of floats, of integers


def array(rows, columns, major, dtype, gap=0, offset=0):
    """Poisoned, with `gap` elements behind each row, `offset` elements behind the alignment."""
    shape = (rows, columns) if major is ROW else (columns, rows)
    size = shape[0] * (shape[1] + gap)
    whole = aligned((size + offset,), dtype)
    whole[:] = POISON[np.dtype(dtype).kind == "i"]
    x = whole[offset:].reshape(shape[0], shape[1] + gap)
    view = x[:, : shape[1]]
    return whole, view if major is ROW else view.T


def operand(rng, rows, columns, major, dtype):
    kind = TYPES[dtype]
    unit = 16 // np.dtype(kind).itemsize
    gap = -(columns if major is ROW else rows) % unit
    _, x = array(rows, columns, major, kind, gap)
    x[...] = rng.integers(-4, 5, x.shape).astype(kind)  # sums of such are exact
    return x


def compare(target, groups, kinds=F16, blocks=3, cfg=SMALL, gap=0, offset=0, **options):
    """Checks what lies in C, and that nothing beside it is written."""
    rng = np.random.default_rng(3)
    triples, wholes = [], []
    for m, n, k in groups:
        pair = (
            operand(rng, m, k, kinds.major_a, kinds.a),
            operand(rng, n, k, kinds.major_b, kinds.b),
        )
        whole, c = array(m, n, kinds.major_c, TYPES[kinds.c], gap, offset)
        triples.append((*pair, c))
        wholes.append((whole, whole.copy()))
    maps = aligned((blocks, maps_of(cfg), 16), np.int64)
    if target == "gpu":
        run_on_gpu(triples, wholes, maps, kinds, cfg, **options)
    else:
        with reachable(*(x for triple in triples for x in triple if x.size)):
            grouped_gemm(*tables(triples), maps, kinds, cfg, **options)
    for (a, b, c), (whole, before) in zip(triples, wholes, strict=True):
        exact = a.astype(np.float64) @ b.astype(np.float64).T
        np.testing.assert_array_equal(
            c.astype(np.float64), exact.astype(c.dtype).astype(np.float64)
        )
        c[...] = POISON[c.dtype.kind == "i"]
        np.testing.assert_array_equal(whole.view(np.uint8), before.view(np.uint8))


def run_on_gpu(triples, wholes, maps, kinds, cfg, **options):
    """With copies of all arrays on the GPU, C copied back with what is around it."""
    import torch

    sizes, strides, addresses = tables(triples)
    kept = []
    for i, triple in enumerate(triples):
        bases = [x if x.base is None else x.base for x in triple[:2]] + [wholes[i][0]]
        for operand, (x, base) in enumerate(zip(triple, bases, strict=True)):
            raw = torch.from_numpy(np.ascontiguousarray(base).reshape(-1).view(np.uint8)).cuda()
            kept.append(raw)
            addresses[i, operand] = raw.data_ptr() + x.ctypes.data - base.ctypes.data
    described = [torch.from_numpy(x).cuda() for x in (sizes, strides, addresses, maps)]
    grouped_gemm(*described, kinds, cfg, **options)
    for (whole, _), raw in zip(wholes, kept[2::3], strict=True):
        whole.view(np.uint8)[:] = raw.cpu().numpy()


@pytest.mark.parametrize("which", GROUPS)
def test_against_numpy(hopper, which):
    compare(hopper, GROUPS[which])


@pytest.mark.parametrize("majors", [(COL, ROW, ROW), (ROW, COL, COL), (COL, COL, COL)])
def test_operands_that_are_not_row_major(hopper, majors):
    kinds = HopperGemmKinds(cute.Float16, cute.Float16, cute.Float16, *majors)
    compare(hopper, [(64, 72, 40), (136, 64, 64)], kinds)


@pytest.mark.parametrize(
    "types",
    [
        (cute.BFloat16, cute.BFloat16, cute.Float32),
        (cute.Float8E4M3FN, cute.Float8E5M2, cute.Float16),
        (cute.Float32, cute.Float32, cute.Float32),  # as TFloat32
        (cute.Int8, cute.Int8, cute.Int32),
    ],
)
def test_other_types(hopper, types):
    cfg = Config(tile=(64, 64, 128 * 8 // types[0].width), stages=2, consumers=1)
    compare(
        hopper,
        [(72, 64, 80), (64, 80, 208), (8, 8, 16)],
        HopperGemmKinds(*types, ROW, ROW, ROW),
        cfg=cfg,
    )


def test_types_that_need_k_contiguous(sim):
    kinds = HopperGemmKinds(cute.Int8, cute.Int8, cute.Int32, ROW, COL, ROW)
    with pytest.raises(DSLError, match="B of Int8 must have K contiguous"):
        compare("sim", [(64, 64, 64)], kinds)


@pytest.mark.parametrize("major", [ROW, COL])
@pytest.mark.parametrize(
    "shape, gap, offset",
    [((70, 41, 64), 7, 0), ((35, 66, 64), 0, 0), ((64, 64, 64), 8, 1)],
    ids=["extent", "stride", "address"],
)
def test_c_that_is_not_of_whole_16_bytes(hopper, major, shape, gap, offset):
    kinds = HopperGemmKinds(cute.Float16, cute.Float16, cute.Float16, ROW, ROW, major)
    shape = shape if major is ROW else (shape[1], shape[0], shape[2])
    compare(hopper, [(64, 64, 64), shape, (8, 8, 64)], kinds, gap=gap, offset=offset)


def test_operands_that_tma_does_not_load(sim):
    a, b, c = (aligned((8, 64), np.float16) for _ in range(3))
    sizes, strides, addresses = tables([(a, b, c[:, :8])])
    strides[0, 1, 0] = 60
    with (
        reachable(a, b, c),
        pytest.raises(DSLError, match="strides of A and B must be multiples of 16 bytes"),
    ):
        grouped_gemm(sizes, strides, addresses, aligned((1, 3, 16), np.int64), F16, SMALL)


def test_two_consumers_and_maps_changed_in_global_memory(hopper):
    groups = [(128, 64, 128), (40, 200, 72), (256, 128, 64)]
    compare(hopper, groups, blocks=2, cfg=SHARED, update=TensorMapUpdateMode.GMEM)


@pytest.mark.parametrize("which", ["ragged", "empty ones", "one tile of several"])
def test_consumers_that_take_turns(hopper, which):
    compare(hopper, GROUPS[which], blocks=2, cfg=TURNS)


@pytest.mark.parametrize("cluster, pingpong", [((1, 2), True), ((2, 1), False), ((2, 2), False)])
def test_clusters(hopper, cluster, pingpong):
    cfg = Config((64, 64, 64), 2, 2 if pingpong else 1, pingpong, cluster)
    groups = [(40, 200, 72), (130, 8, 8), (64, 72, 136), (72, 64, 0), (65, 64, 64)]
    compare(hopper, groups, blocks=2 * cluster[0] * cluster[1], cfg=cfg)


@pytest.mark.parametrize("cfg", [SMALL, TURNS], ids=["alone", "turns"])
def test_there_is_no_race(sim, monkeypatch, cfg):
    monkeypatch.setenv("CUTE_DSL_CHECK_RACES", "1")
    compare("sim", [*GROUPS["ragged"], (35, 66, 64)], blocks=1, cfg=cfg)


@pytest.mark.parametrize(
    "cfg",
    [
        Config(),
        Config((128, 128, 64), 6, pingpong=True, cluster=(1, 2)),
        Config((128, 192, 64), pingpong=True, slots=1),
    ],
    ids=["128x256", "128x128 in turns", "128x192 in turns"],
)
def test_the_accumulator_stays_in_registers(monkeypatch, cfg):
    monkeypatch.setenv("CUTE_DSL_ARCH", "sm_90a")
    rows = tables([(np.zeros((8, 8), np.float16),) * 3])
    maps = aligned((132, maps_of(cfg), 16), np.int64)
    stages = cute.compile(grouped_gemm, *rows, maps, F16, cfg).stages
    ptx = stages.text("ptx")
    assert "tensormap.replace.tile.global_address.shared::cta.b1024.b64" in ptx
    assert "tensormap.cp_fenceproxy.global.shared::cta" in ptx
    assert "fence.proxy.tensormap::generic.acquire.gpu" in ptx
    assert ".local" not in ptx
    made = ptxas.start(ptx, "sm_90a").finish()
    assert made.warnings == ()
    (kernel,) = made.kernels.values()
    assert (kernel.spill_stores, kernel.spill_loads, kernel.stack) == (0, 0, 0)
    assert kernel.registers <= 168


# Tensor maps -------------------------------------------------------------------------------------

TILE = (8, 32)


@cute.kernel
def double_each(
    load,
    store,
    a: cute.Tensor,
    b: cute.Tensor,
    maps: cute.Tensor,
    acquires: cute.Constexpr,
    mode: cute.Constexpr,
):
    """b[g] = 2 a[g] for each g, through one place in shared memory, by maps changed for each g."""
    smem = cute.utils.SmemAllocator()
    full = smem.allocate_array(cute.Int64, 1)
    scratch = smem.allocate_array(cute.Int64, 32, byte_alignment=128)
    tile = smem.allocate_tensor(cute.Float32, cute.make_layout(TILE, stride=(32, 1)), 128)
    lane = arch.lane_idx()
    if lane == 0:
        arch.mbarrier_init(full, 1)
    arch.mbarrier_init_fence()
    arch.sync_warp()
    manager = TensorMapManager(mode)
    in_smem = mode is TensorMapUpdateMode.SMEM
    atoms, at = (load, store), (maps.iterator, maps.iterator + 16)
    staging = (scratch, scratch + 16)
    for i in cute.range_constexpr(2):
        where = staging[i] if cute.const_expr(in_smem) else at[i]
        manager.init_tensormap_from_atom(atoms[i], where, 0)
    manager.fence_tensormap_initialization()
    coordinates = cute.zipped_divide(cute.make_identity_tensor(a.shape[1:]), TILE)
    s, g = cpasync.tma_partition(load, 0, None, cute.group_modes(tile, 0, 2), coordinates)
    for group in cute.range(a.shape[0], unroll=1):
        both = (cute.slice_(a, (group, None, None)), cute.slice_(b, (group, None, None)))
        manager.update_tensormap(both, atoms, at, 0, staging)
        if cute.const_expr(acquires):
            for place in at:
                manager.fence_tensormap_update(place)
        with arch.elect_one():
            arch.mbarrier_arrive_and_expect_tx(full, 4 * TILE[0] * TILE[1])
        cute.copy(load, g[None, (0, 0)], s, tma_bar_ptr=full, tma_desc_ptr=at[0])
        arch.mbarrier_wait(full, group % 2)
        for i in cute.range_constexpr(TILE[0]):
            tile[i, lane] = 2 * tile[i, lane]
        arch.fence_view_async_shared()
        arch.sync_warp()
        cute.copy(store, s, g[None, (0, 0)], tma_desc_ptr=at[1])
        arch.cp_async_bulk_commit_group()
        arch.cp_async_bulk_wait_group(0)


def run_double_each(acquires=True, mode=TensorMapUpdateMode.SMEM):
    @cute.jit
    def host(a: cute.Tensor, b: cute.Tensor, maps: cute.Tensor):
        layout = cute.make_layout(TILE, stride=(32, 1))
        first = cute.slice_(a, (0, None, None))
        load, _ = cpasync.make_tiled_tma_atom(
            cpasync.CopyBulkTensorTileG2SOp(), first, layout, TILE
        )
        store, _ = cpasync.make_tiled_tma_atom(
            cpasync.CopyBulkTensorTileS2GOp(), first, layout, TILE
        )
        double_each(load, store, a, b, maps, acquires, mode).launch(grid=1, block=32)

    a = np.arange(3 * 6 * 28, dtype=np.float32).reshape(3, 6, 28)
    b = np.full_like(a, -1)
    host(a, b, aligned((2, 16), np.int64))
    cute.synchronize()
    np.testing.assert_array_equal(b, 2 * a)


@pytest.mark.parametrize("mode", TensorMapUpdateMode)
def test_tensor_maps_change_in_a_kernel(hopper, mode):
    if hopper == "gpu":
        pytest.skip("`maps` must lie at a multiple of 128 bytes on the device")
    run_double_each(mode=mode)


def test_a_tensor_map_that_is_not_acquired_is_the_old_one(sim):
    with pytest.raises(AssertionError, match="not equal"):
        run_double_each(acquires=False)


def test_no_tensor_map_there(sim):
    @cute.kernel
    def kernel(load, maps: cute.Tensor):
        smem = cute.utils.SmemAllocator()
        full = smem.allocate_array(cute.Int64, 1)
        tile = smem.allocate_tensor(cute.Float32, cute.make_layout(TILE, stride=(32, 1)), 128)
        coordinates = cute.zipped_divide(cute.make_identity_tensor(TILE), TILE)
        s, g = cpasync.tma_partition(load, 0, None, cute.group_modes(tile, 0, 2), coordinates)
        arch.mbarrier_init(full, 1)
        cute.copy(load, g[None, (0, 0)], s, tma_bar_ptr=full, tma_desc_ptr=maps.iterator)

    @cute.jit
    def host(a: cute.Tensor, maps: cute.Tensor):
        layout = cute.make_layout(TILE, stride=(32, 1))
        load, _ = cpasync.make_tiled_tma_atom(cpasync.CopyBulkTensorTileG2SOp(), a, layout, TILE)
        kernel(load, maps).launch(grid=1, block=32)

    with pytest.raises(DSLError, match="there is no tensor map at") as error:
        host(np.zeros(TILE, np.float32), aligned((16,), np.int64))
    assert "or copy one there with copy_tensormap" in str(error.value)


# The search --------------------------------------------------------------------------------------


@cute.kernel
def list_tiles(sizes: cute.Tensor, out: cute.Tensor, counts: cute.Tensor, cluster: cute.Constexpr):
    params = PersistentTileSchedulerParams((1, 1, 1), (*cluster, 1))
    block = arch.block_idx()
    scheduler = StaticPersistentGroupTileScheduler.create(
        params,
        block,
        arch.grid_dim(),
        (64 * cluster[0], 32 * cluster[1], 16),
        create_initial_search_state(),
        sizes.shape[0],
        sizes,
    )
    work = scheduler.initial_work_tile_info()
    number = block[0] + cluster[0] * (block[1] + cluster[1] * block[2])
    while work.is_valid_tile:
        m, n, g = work.tile_idx
        found = work.group_search_result
        if arch.thread_idx()[0] == 0:
            i = counts[number]
            out[number, i, 0], out[number, i, 1], out[number, i, 2] = g, m, n
            out[number, i, 3] = found.cta_tile_count_k
            counts[number] = i + 1
        scheduler.advance_to_next_work()
        work = scheduler.get_current_work()


@pytest.mark.parametrize("cluster", [(1, 1), (2, 1), (2, 2)])
def test_every_tile_of_every_group_comes_once(hopper, cluster):
    @cute.jit
    def host(sizes: cute.Tensor, out: cute.Tensor, counts: cute.Tensor):
        list_tiles(sizes, out, counts, cluster).launch(grid=(*cluster, 3), block=32)

    rng = np.random.default_rng(5)
    sizes = rng.integers(0, 200, (70, 4)).astype(np.int32)
    sizes[rng.random(70) < 0.3, 0] = 0
    out = np.full((3 * cluster[0] * cluster[1], 600, 4), -1, np.int32)
    counts = np.zeros(len(out), np.int32)
    host(sizes, out, counts)
    cute.synchronize()
    got = sorted(tuple(out[b, i].tolist()) for b in range(len(out)) for i in range(counts[b]))
    up = [
        [-(-int(n) // (t * c)) * c for n, t, c in zip(row, (64, 32), cluster, strict=False)]
        for row in sizes
    ]
    want = [
        (g, m, n, -(-int(sizes[g, 2]) // 16))
        for g, (tiles_m, tiles_n) in enumerate(up)
        for m in range(tiles_m)
        for n in range(tiles_n)
    ]
    assert got == sorted(want)


def test_the_group_of_a_number(sim):
    @cute.kernel
    def kernel(sizes: cute.Tensor, out: cute.Tensor):
        params = PersistentTileSchedulerParams((1, 1, 9), (1, 1, 1))
        helper = GroupedGemmTileSchedulerHelper(
            sizes.shape[0], params, (64, 64, 64), create_initial_search_state()
        )
        for number in cute.range(out.shape[0]):
            found = helper.delinearize_z((0, 0, number), sizes)
            if arch.thread_idx()[0] == 0:
                out[number, 0], out[number, 1] = found.group_idx, found.cta_tile_idx_m
                out[number, 2] = found.cta_tile_idx_n

    @cute.jit
    def host(sizes: cute.Tensor, out: cute.Tensor):
        kernel(sizes, out).launch(grid=1, block=32)

    sizes = np.array([(128, 65, 1, 1), (0, 9, 9, 1), (64, 64, 64, 1)], np.int32)
    out = np.full((5, 3), -1, np.int32)
    host(sizes, out)
    assert out.tolist() == [[0, 0, 0], [0, 1, 0], [0, 0, 1], [0, 1, 1], [2, 0, 0]]
