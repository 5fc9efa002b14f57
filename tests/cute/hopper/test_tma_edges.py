"""TMA stores and reductions write where a tensor's contiguous extent ends within 16 bytes: the
same on the simulator and the GPU. On the GPU a bad start ends the process's CUDA context.
"""

import ml_dtypes
import numpy as np
import pytest

import basedsl_cute as cute
from basedsl.errors import DSLError
from basedsl_cute import arch
from basedsl_cute.arch.tma import tma_reduce, tma_store
from basedsl_cute.nvgpu import tma

BOX = (4, 32)
STORE, ADD = tma.CopyBulkTensorTileS2GOp(), tma.CopyReduceBulkTensorTileS2GOp("add")
ROWS, PITCH, MARGIN = 3, 96, 32


@cute.kernel
def write_box(store, x: cute.Int32, y: cute.Int32):
    """Column j of the box is j + 1."""
    smem = cute.utils.SmemAllocator()
    layout = cute.make_layout(BOX, stride=(BOX[1], 1))
    tile = smem.allocate_tensor(store.value_type, layout, 128)
    for i in cute.range_constexpr(BOX[0]):
        tile[i, arch.lane_idx()] = (arch.lane_idx() + 1).to(store.value_type)
    arch.fence_view_async_shared()
    arch.sync_warp()
    with arch.elect_one():
        if cute.const_expr(store.op == ADD):
            tma_reduce(store.tensor_map, tile.iterator, (x, y), "add")
        else:
            tma_store(store.tensor_map, tile.iterator, (x, y))
        arch.cp_async_bulk_commit_group()
        arch.cp_async_bulk_wait_group(0)


@cute.jit
def host(whole: cute.Tensor, columns: cute.Int32, x: cute.Int32, y: cute.Int32, op: cute.Constexpr):
    """The tensor is ROWS x `columns` in the middle of `whole`."""
    layout = cute.make_layout((ROWS, columns), stride=(PITCH, 1))
    c = cute.make_tensor(whole.iterator + (PITCH + MARGIN), layout)
    store, _ = tma.make_tiled_tma_atom(op, c, cute.make_layout(BOX, stride=(BOX[1], 1)), BOX)
    write_box(store, x, y).launch(grid=1, block=32)


def run(dtype, columns, x=0, y=0, op=STORE):
    """The tensor, with what is behind its columns."""
    whole = np.full((ROWS + 2) * PITCH, 64, dtype)
    host(whole, columns, x, y, op)
    cute.synchronize()
    written = whole.reshape(ROWS + 2, PITCH).astype(np.float64)
    assert (written[:, :MARGIN] == 64).all()
    assert (written[[0, -1]] == 64).all()
    return written[1:-1, MARGIN:]


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.int8, np.float64, np.int32])
def test_a_store_writes_whole_16_bytes(hopper, dtype):
    unit = 16 // np.dtype(dtype).itemsize
    for columns in (1, unit - 1, unit, unit + 1, 31):
        for x in (0, unit):
            end = min(-(-columns // unit) * unit, x + BOX[1])
            expected = np.full((ROWS, PITCH - MARGIN), 64.0)
            expected[:, x:end] = np.arange(1, max(end - x, 0) + 1)
            np.testing.assert_array_equal(run(dtype, columns, x), expected, str((columns, x)))


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.int32])
def test_a_reduction_combines_whole_16_bytes(hopper, dtype):
    unit = 16 // np.dtype(dtype).itemsize
    expected = np.full((ROWS, PITCH - MARGIN), 64.0)
    expected[:, : 2 * unit] += np.arange(1, 2 * unit + 1)
    np.testing.assert_array_equal(run(dtype, unit + 1, op=ADD), expected)


def test_rows_beyond_the_last_are_not_written(hopper):
    expected = np.full((ROWS, PITCH - MARGIN), 64.0)
    expected[2, :32] = np.arange(1, 33)
    np.testing.assert_array_equal(run(np.float16, 32, y=2), expected)
    np.testing.assert_array_equal(run(np.float16, 32, y=3), np.full_like(expected, 64))


@pytest.mark.parametrize("x, y", [(-8, 0), (0, -2), (4, 0), (13, 0)])
@pytest.mark.parametrize("op", [STORE, ADD], ids=["store", "reduce"])
def test_where_no_store_can_begin(sim, op, x, y):
    with pytest.raises(DSLError, match=r"the first must be a multiple of 8 elements \(16 bytes\)"):
        run(np.float16, 20, x, y, op)


def test_whole_16_bytes_beyond_the_array(sim):
    """The elements that a kernel would write behind the last row's end."""
    whole = np.zeros(40 + 2 * PITCH + PITCH + MARGIN - 1, ml_dtypes.bfloat16)
    with pytest.raises(DSLError, match="a TMA store reaches outside of its array") as caught:
        host(whole.view(np.uint16)[: PITCH + MARGIN + 2 * PITCH + 20], 20, 0, 0, STORE)
    assert "acts on whole 16 bytes, 8 elements, and the contiguous extent of 20" in str(
        caught.value
    )
