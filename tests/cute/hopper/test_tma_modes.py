"""TMA of tensors with nested modes, and of modes of one element."""

import numpy as np
import pytest

import basedsl_cute as cute
from basedsl.errors import DSLTypeError
from basedsl_cute import arch
from basedsl_cute.nvgpu import tma
from basedsl_cute.runtime import from_dlpack

STORE = tma.CopyBulkTensorTileS2GOp()


@cute.kernel
def copy_tiles(load, source, store, target, tile: cute.Constexpr):
    """The tile at this block's place there and back, by one warp."""
    smem = cute.utils.SmemAllocator()
    barrier = smem.allocate_array(cute.Int64, 1)
    here = smem.allocate_tensor(cute.Float32, cute.make_ordered_layout(tile, order=(1, 0)), 128)
    if arch.thread_idx()[0] == 0:
        arch.mbarrier_init(barrier, 1)
    arch.mbarrier_init_fence()
    arch.sync_threads()
    row, head, _ = arch.block_idx()
    parts = []
    for atom, whole in ((load, source), (store, target)):
        of_head = whole[None, None, cute.idx2crd(head, whole.shape[2])]
        there = cute.local_tile(of_head, tile, (row, 0))
        parts.append(
            tma.tma_partition(
                atom,
                smem_tensor=cute.group_modes(here, 0, 2),
                gmem_tensor=cute.group_modes(there, 0, 2),
            )
        )
    with arch.elect_one():
        arch.mbarrier_arrive_and_expect_tx(barrier, 4 * cute.size(here))
    cute.copy(load, parts[0][1], parts[0][0], tma_bar_ptr=barrier)
    arch.mbarrier_wait(barrier, 0)
    cute.copy(store, parts[1][0], parts[1][1])
    arch.cp_async_bulk_commit_group()
    arch.cp_async_bulk_wait_group(0)


@cute.jit
def copy_heads(x: cute.Tensor, y: cute.Tensor, group: cute.Constexpr, packed: cute.Constexpr):
    """(batch, rows, heads, columns), the heads in groups: as rows beside each other, or apart."""
    tile = (16, 32)
    layout = cute.make_ordered_layout(tile, order=(1, 0))
    atoms = []
    for op, t in ((tma.CopyBulkTensorTileG2SOp(), x), (tma.CopyBulkTensorTileS2GOp(), y)):
        b, s, h, d = t.shape
        sb, ss, sh, sd = t.stride
        if cute.const_expr(packed):
            shape, stride = ((group, s), d, (h // group, b)), ((sh, ss), sd, (sh * group, sb))
        else:
            shape, stride = (s, d, ((group, h // group), b)), (ss, sd, ((sh, sh * group), sb))
        whole = cute.make_tensor(t.iterator, cute.make_layout(shape, stride=stride))
        coordinates = cute.composition(cute.make_identity_layout(shape), (*tile, 1))
        made = tma.make_tiled_tma_atom(op, whole, layout, coordinates if packed else tile)
        assert made.smem_layout is layout and made[1] is made.tma_tensor
        atoms += made
    source = atoms[1]
    grid = (cute.ceil_div(cute.size(source, mode=[0]), 16), cute.size(source, mode=[2]), 1)
    copy_tiles(*atoms, tile).launch(grid=grid, block=32)


@pytest.mark.parametrize("packed", [False, True])
def test_nested_modes(hopper, packed):
    """A tile of rows of several heads is one box, and the tiler may be a layout of coordinates."""
    x = np.arange(2 * 13 * 6 * 32, dtype=np.float32).reshape(2, 13, 6, 32)
    y = np.full_like(x, -1)
    copy_heads(x, y, 2, packed)
    cute.synchronize()
    np.testing.assert_array_equal(y, x)


def test_too_many_nested_modes(sim):
    x = cute.make_layout(((2, (2, 2)), 4, (2, 2)), stride=((4, (8, 16)), 1, (32, 64)))

    @cute.jit
    def host(a: cute.Tensor):
        whole = cute.make_tensor(a.iterator, x)
        tma.make_tiled_tma_atom(STORE, whole, cute.make_layout((1, 4)), (1, 4))

    with pytest.raises(DSLTypeError, match="no tensor map has 6 extents"):
        host(np.zeros(128, np.float32))


@cute.jit
def copy_one_batch(a: cute.Tensor, b: cute.Tensor):
    layout = cute.make_ordered_layout((16, 32), order=(1, 0))
    load, source = tma.make_tiled_tma_atom(tma.CopyBulkTensorTileG2SOp(), a, layout, (16, 32))
    store, target = tma.make_tiled_tma_atom(STORE, b, layout, (16, 32))
    copy_tiles(load, source, store, target, (16, 32)).launch(grid=(1, 1, 1), block=32)


def test_a_mode_of_one_element_may_have_any_stride(hopper):
    """NumPy gives a last mode of one element a stride of one element."""
    x = np.arange(16 * 32, dtype=np.float32).reshape(16, 32, 1)
    y = np.full_like(x, -1)
    views = [from_dlpack(t, assumed_align=16).mark_layout_dynamic(leading_dim=1) for t in (x, y)]
    copy_one_batch(*views)
    cute.synchronize()
    np.testing.assert_array_equal(y, x)


def test_a_tiler_that_is_no_coordinates(sim):
    @cute.jit
    def host(a: cute.Tensor):
        tma.make_tiled_tma_atom(
            STORE, a, cute.make_layout((8, 8)), cute.make_layout((8, 8), stride=(8, 1))
        )

    with pytest.raises(DSLTypeError, match="or a layout into coordinates"):
        host(np.zeros((8, 8), np.float32))
