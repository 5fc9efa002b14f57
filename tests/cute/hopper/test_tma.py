"""TMA atoms: boxes and coordinates, tiles that overlap the edge, and what goes wrong."""

import numpy as np
import pytest

import basedsl_cute as cute
from basedsl.errors import DSLError, DSLRuntimeError, DSLTypeError
from basedsl_cute import arch
from basedsl_cute.algebra import gmma_smem_atom, tile_to_shape
from basedsl_cute.nvgpu import tma


def smem_layout(kind, tile, dtype, order=(0, 1)):
    if kind is None:
        return cute.make_layout(tile, stride=(tile[1], 1))
    return tile_to_shape(gmma_smem_atom(kind, dtype.width), tile, order)


@cute.kernel
def copy_tile(load, source, store, target, layout: cute.Constexpr, waits: cute.Constexpr):
    smem = cute.utils.SmemAllocator()
    barrier = smem.allocate_array(cute.Int64, 1)
    dtype = load.value_type
    if cute.const_expr(isinstance(layout, cute.ComposedLayout)):
        swizzle = cute.recast_layout(8, dtype.width, layout.inner)
        tile = smem.allocate_tensor(dtype, layout.outer, 1024, swizzle)
    else:
        tile = smem.allocate_tensor(dtype, layout, 1024)
    shape = tuple(cute.size(layout, mode=[i]) for i in (0, 1))
    if arch.warp_idx() == 0:
        with arch.elect_one():
            arch.mbarrier_init(barrier, 1)
    arch.mbarrier_init_fence()
    arch.sync_threads()
    grouped = cute.group_modes(tile, 0, 2)
    ts_s, ts_g = tma.tma_partition(load, 0, None, grouped, cute.zipped_divide(source, shape))
    td_s, td_g = tma.tma_partition(store, 0, None, grouped, cute.zipped_divide(target, shape))
    x, y, _ = arch.block_idx()
    if arch.warp_idx() == 0:
        with arch.elect_one():
            arch.mbarrier_arrive_and_expect_tx(barrier, cute.cosize(layout) * dtype.width // 8)
            cute.copy(load, ts_g[None, (x, y)], ts_s, tma_bar_ptr=barrier)
    if cute.const_expr(waits):
        arch.mbarrier_wait(barrier, 0)
    arch.fence_view_async_shared()
    arch.sync_threads()
    if arch.warp_idx() == 0:
        cute.copy(store, td_s, td_g[None, (x, y)])
        arch.cp_async_bulk_commit_group()
        arch.cp_async_bulk_wait_group(0, read=True)


@cute.jit
def through_smem(
    a: cute.Tensor,
    b: cute.Tensor,
    kind: cute.Constexpr,
    tile: cute.Constexpr,
    order: cute.Constexpr = (0, 1),
    waits: cute.Constexpr = True,
):
    layout = smem_layout(kind, tile, a.element_type, order)
    load, source = tma.make_tiled_tma_atom(tma.CopyBulkTensorTileG2SOp(), a, layout, tile)
    store, target = tma.make_tiled_tma_atom(tma.CopyBulkTensorTileS2GOp(), b, layout, tile)
    m, n = a.shape
    grid = (cute.ceil_div(m, tile[0]), cute.ceil_div(n, tile[1]), 1)
    copy_tile(load, source, store, target, layout, waits).launch(grid=grid, block=64)


def arrays(m, n, dtype=np.float16, transposed=False):
    a = np.arange(m * n).astype(dtype).reshape((n, m) if transposed else (m, n))
    b = np.full_like(a, 7)
    return (a.T, b.T) if transposed else (a, b)


@pytest.mark.parametrize("kind", ["K_SW128", "K_SW64", "K_SW32", "K_INTER", None])
@pytest.mark.parametrize("shape", [(64, 64), (72, 200)])
def test_row_major_tiles(hopper, kind, shape):
    a, b = arrays(*shape)
    through_smem(a, b, kind, (32, 64))
    np.testing.assert_array_equal(b, a)


@pytest.mark.parametrize("kind", ["MN_SW128", "MN_SW64", "MN_SW32"])
@pytest.mark.parametrize("order", [(0, 1), (1, 0)])
def test_column_major_tiles(hopper, kind, order):
    a, b = arrays(136, 40, transposed=True)
    through_smem(a, b, kind, (64, 16), order)
    np.testing.assert_array_equal(b, a)


@pytest.mark.parametrize("dtype", [np.float32, np.int8, np.float64])
def test_other_element_types(hopper, dtype):
    a, b = arrays(40, 48, dtype)
    through_smem(a, b, "K_SW32", (16, 32))
    np.testing.assert_array_equal(b, a)


def test_how_far_a_box_reaches():
    k_major = smem_layout("K_SW128", (128, 64), cute.Float16)
    assert tma.find_box(k_major, (128, 64), (512, 1), 16) == tma.Box((1, 0), (64, 128), 3)
    batched = tma.find_box(k_major, (128, 64, 1), (512, 1, 4096), 16)
    assert batched == tma.Box((1, 0, 2), (64, 128, 1), 3)
    m_major = smem_layout("MN_SW128", (128, 64), cute.Float16, (1, 0))
    assert tma.find_box(m_major, (128, 64), (1, 512), 16) == tma.Box((0, 1), (64, 64), 3)
    with pytest.raises(DSLTypeError, match="not contiguous in the mode that is contiguous"):
        tma.find_box(k_major, (128, 64), (1, 512), 16)


def test_reading_without_waiting_is_found(sim):
    a, b = arrays(32, 64)
    with pytest.raises(DSLError, match="shared memory that no thread has written"):
        through_smem(a, b, "K_SW128", (32, 64), waits=False)


def test_strides_that_tma_does_not_know(sim):
    a, b = arrays(32, 68)
    with pytest.raises(DSLRuntimeError, match=r"strides .* multiples of 16 bytes"):
        through_smem(a, b, "K_SW128", (32, 64))


def test_a_barrier_is_needed(sim):
    @cute.kernel
    def kernel(load, source):
        tile = cute.utils.SmemAllocator().allocate_tensor(cute.Float16, (64, 64), 1024)
        s, g = tma.tma_partition(
            load, 0, None, cute.group_modes(tile, 0, 2), cute.zipped_divide(source, (64, 64))
        )
        cute.copy(load, g[None, (0, 0)], s)

    @cute.jit
    def host(a: cute.Tensor):
        layout = cute.make_layout((64, 64))
        kernel(*tma.make_tiled_tma_atom(tma.CopyBulkTensorTileG2SOp(), a, layout, (64, 64))).launch(
            grid=1, block=32
        )

    with pytest.raises(DSLTypeError, match="needs the mbarrier that it completes"):
        host(arrays(64, 64, transposed=True)[0])


def test_a_tensor_map_is_made_by_the_host(sim):
    @cute.kernel
    def kernel(a: cute.Tensor):
        layout = cute.make_layout((64, 64))
        tma.make_tiled_tma_atom(tma.CopyBulkTensorTileG2SOp(), a, layout, (64, 64))

    @cute.jit
    def host(a: cute.Tensor):
        kernel(a).launch(grid=1, block=32)

    with pytest.raises(DSLError, match="encoded by the host"):
        host(arrays(64, 64, transposed=True)[0])
