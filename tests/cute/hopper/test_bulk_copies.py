"""Bulk copies of contiguous memory, without tensor maps: both directions, and what goes wrong."""

import numpy as np
import pytest

import basedsl_cute as cute
from basedsl.errors import DSLError, DSLTypeError
from basedsl_cute import arch
from basedsl_cute.nvgpu import cpasync
from basedsl_cute.runtime import from_dlpack
from basedsl_cute.sim import MemoryAccessError, RaceError

SIZE = 128


@cute.kernel
def doubled(x: cute.Tensor, y: cute.Tensor, leave_out: cute.Constexpr):
    smem = cute.utils.SmemAllocator()
    barrier = smem.allocate_array(cute.Int64, 1)
    tile = smem.allocate_tensor(x.element_type, cute.make_layout(SIZE), 16)
    block, t = arch.block_idx()[0], arch.thread_idx()[0]
    if t == 0:
        arch.mbarrier_init(barrier, 1)
    arch.mbarrier_init_fence()
    arch.sync_threads()
    load = cute.make_copy_atom(cpasync.CopyBulkG2SOp(), x.element_type)
    store = cute.make_copy_atom(cpasync.CopyBulkS2GOp(), x.element_type)
    here = (SIZE,), (block,)
    if arch.warp_idx() == 0:
        with arch.elect_one():
            arch.mbarrier_arrive_and_expect_tx(barrier, cute.size_in_bytes(x.element_type, SIZE))
            cute.copy(load, cute.local_tile(x, *here), tile, mbar_ptr=barrier)
    if cute.const_expr(leave_out != "wait"):
        arch.mbarrier_wait(barrier, 0)
    tile[t] = tile[t] + tile[t]
    if cute.const_expr(leave_out != "fence"):
        arch.fence_view_async_shared()
    arch.sync_threads()
    if t == 0:
        cute.copy(store, tile, cute.local_tile(y, *here))
        arch.cp_async_bulk_commit_group()
        arch.cp_async_bulk_wait_group(0)


@cute.jit
def run(x: cute.Tensor, y: cute.Tensor, blocks: cute.Int32, leave_out: cute.Constexpr = None):
    doubled(x, y, leave_out).launch(grid=blocks, block=SIZE)


def arrays(n=3 * SIZE, dtype=np.float32):
    x = np.arange(n).astype(dtype)
    y = np.zeros_like(x)
    return x, y, from_dlpack(x, assumed_align=16), from_dlpack(y, assumed_align=16)


@pytest.mark.parametrize("dtype", [np.float32, np.float16, np.int64, np.int8])
def test_there_and_back(hopper, dtype):
    x, y, a, b = arrays(dtype=dtype)
    run(a, b, 3)
    np.testing.assert_array_equal(y, x + x)


@pytest.mark.parametrize("leave_out, error", [("wait", RaceError), ("fence", RaceError)])
def test_what_the_simulator_finds(sim, monkeypatch, leave_out, error):
    monkeypatch.setenv("CUTE_DSL_CHECK_RACES", "1")
    _, _, a, b = arrays()
    with pytest.raises(error):
        run(a, b, 3, leave_out)


@cute.kernel
def moved(x: cute.Tensor, y: cute.Tensor, first: cute.Int32, count: cute.Int32):
    """`count` elements from `first` on: numbers that only the run knows."""
    smem = cute.utils.SmemAllocator()
    barrier = smem.allocate_array(cute.Int64, 1)
    tile = smem.allocate_array(cute.Float32, 64)
    part = cute.make_layout(count)
    if arch.thread_idx()[0] == 0:
        arch.mbarrier_init(barrier, 1)
        arch.mbarrier_init_fence()
        load = cute.make_copy_atom(cpasync.CopyBulkG2SOp(), cute.Float32)
        store = cute.make_copy_atom(cpasync.CopyBulkS2GOp(), cute.Float32)
        source = cute.make_tensor((x.iterator + first).align(16), part)
        there = cute.make_tensor(tile.align(16), part)
        arch.mbarrier_arrive_and_expect_tx(barrier, count * 4)
        cute.copy(load, source, there, mbar_ptr=barrier, pred=None)
        arch.mbarrier_wait(barrier, 0)
        cute.copy(store, there, cute.make_tensor(y.iterator, part))
        arch.cp_async_bulk_commit_group()
        arch.cp_async_bulk_wait_group(0)


@cute.jit
def move(x: cute.Tensor, y: cute.Tensor, first: cute.Int32, count: cute.Int32):
    moved(x, y, first, count).launch(grid=1, block=32)


def test_sizes_of_the_run(hopper):
    x, y, a, b = arrays(64)
    move(a, b, 8, 12)
    np.testing.assert_array_equal(y, [*x[8:20], *[0] * 52])
    move(a, b, 0, 64)
    np.testing.assert_array_equal(y, x)


@pytest.mark.parametrize(
    "first, count, message",
    [
        (2, 4, "of 16 bytes at global address .*, not in 16s"),
        (0, 3, "a bulk copy of 12 bytes"),
        (56, 12, "out-of-bounds read of 48 bytes at address .* by a bulk copy"),
        (0, 68, "reaches beyond the block's shared memory"),
    ],
)
def test_bad_sizes_of_the_run(sim, first, count, message):
    _, _, a, b = arrays(64)
    with pytest.raises(MemoryAccessError, match=message):
        move(a, b, first, count)


LOAD, STORE = cpasync.CopyBulkG2SOp(), cpasync.CopyBulkS2GOp()


@pytest.mark.parametrize(
    "op, source, target, message",
    [
        (LOAD, "x", "x", "CopyBulkG2SOp copies gmem to smem, not gmem to gmem"),
        (STORE, "x", "s", "CopyBulkS2GOp copies smem to gmem, not gmem to smem"),
        (LOAD, "columns", "s", "copies contiguous memory, and this tensor is not"),
        (LOAD, "x", "swizzled", "copies contiguous memory, and this tensor is not"),
        (
            LOAD,
            "unaligned",
            "s",
            "needs memory known to be aligned to 16 bytes, not only to 4",
        ),
        (LOAD, "x", "short", "differ in size"),
        (LOAD, "three", "three in smem", "copies multiples of 16 bytes, not 12"),
    ],
)
def test_what_is_refused(sim, op, source, target, message):
    @cute.kernel
    def kernel(x: cute.Tensor):
        smem = cute.utils.SmemAllocator()
        s = smem.allocate_array(cute.Float32, 64, byte_alignment=128)
        swizzled = cute.recast_ptr(s, cute.make_swizzle(2, 4, 3))
        tensors = {
            "x": cute.local_tile(x, (64,), (0,)),
            "s": cute.make_tensor(s, 64),
            "columns": cute.make_tensor(x.iterator, cute.make_layout(64, stride=2)),
            "swizzled": cute.make_tensor(swizzled, 64),
            "unaligned": cute.make_tensor(x.iterator + 1, 64),
            "short": cute.make_tensor(s, 32),
            "three": cute.make_tensor(x.iterator, 3),
            "three in smem": cute.make_tensor(s, 3),
        }
        barrier = smem.allocate_array(cute.Int64, 1)
        field = {"mbar_ptr": barrier} if cute.const_expr(op is LOAD) else {}
        atom = cute.make_copy_atom(op, cute.Float32)
        cute.copy(atom, tensors[source], tensors[target], **field)

    @cute.jit
    def host(x: cute.Tensor):
        kernel(x).launch(grid=1, block=32)

    with pytest.raises(DSLTypeError, match=message):
        cute.compile(host, arrays()[2])


def test_a_load_needs_an_mbarrier(sim):
    @cute.kernel
    def kernel(x: cute.Tensor):
        s = cute.utils.SmemAllocator().allocate_tensor(cute.Float32, cute.make_layout(64), 16)
        atom = cute.make_copy_atom(LOAD, cute.Float32)
        cute.copy(atom, cute.local_tile(x, (64,), (0,)), s)

    @cute.jit
    def host(x: cute.Tensor):
        kernel(x).launch(grid=1, block=32)

    with pytest.raises(DSLError, match="needs the mbarrier that it completes: mbar_ptr="):
        cute.compile(host, arrays()[2])
