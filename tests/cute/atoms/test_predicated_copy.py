"""Copies with a predicate for each element: the same results at borders and at any alignment, wide
accesses away from the borders.
"""

import re

import numpy as np
import pytest

import basedsl_cute as cute
from basedsl_cute import arch
from basedsl_cute.runtime import from_dlpack, make_fake_compact_tensor


@cute.kernel
def add_kernel(a, b, c, coordinates, shape: cute.Shape, threads: cute.Layout, values: cute.Layout):
    block = ((None, None), arch.block_idx()[0])
    atom = cute.make_copy_atom(cute.nvgpu.CopyUniversalOp(), a.element_type)
    thread = cute.make_tiled_copy_tv(atom, threads, values).get_slice(arch.thread_idx()[0])
    mine_a, mine_b, mine_c, where = (thread.partition_S(t[block]) for t in (a, b, c, coordinates))
    one, two, total = (cute.make_fragment_like(t) for t in (mine_a, mine_b, mine_c))
    inside = cute.make_rmem_tensor(where.shape, cute.Boolean)
    for i in range(cute.size(inside)):
        inside[i] = cute.elem_less(where[i], shape)
    one.fill(0)
    two.fill(0)
    cute.copy(atom, mine_a, one, pred=inside)
    cute.copy(atom, mine_b, two, pred=inside)
    total.store(one.load() + two.load())
    cute.copy(atom, total, mine_c, pred=inside)


@cute.jit
def add(a: cute.Tensor, b: cute.Tensor, c: cute.Tensor):
    """Each thread has rows of 16 bytes in 4 rows; a block has 16 rows and 32 threads in each."""
    wide = 128 // a.element_type.width
    threads = cute.make_ordered_layout((4, 8), order=(1, 0))
    values = cute.make_ordered_layout((4, wide), order=(1, 0))
    tiler, _ = cute.make_layout_tv(threads, values)
    parts = [cute.zipped_divide(t, tiler) for t in (a, b, c)]
    coordinates = cute.zipped_divide(cute.make_identity_tensor(c.shape), tiler)
    add_kernel(*parts, coordinates, c.shape, threads, values).launch(
        grid=[cute.size(parts[2], mode=[1]), 1, 1], block=[32, 1, 1]
    )


SHAPES = [(16, 64), (20, 64), (17, 33), (1, 130)]


@pytest.mark.parametrize(
    ("kind", "is_static"), [(np.float16, False), (np.float32, False), (np.float32, True)]
)
def test_borders_and_alignments(sim, kind, is_static):
    rng = np.random.default_rng(5)
    for shape in SHAPES[1:3] if is_static else SHAPES:
        for offset in (0, 1):  # in elements, from an aligned address
            a, b = (aligned(rng.integers(-40, 40, shape).astype(kind), offset) for _ in "ab")
            c = aligned(np.full(shape, 99, kind), 0)
            add(*(map(from_dlpack, (a, b, c)) if is_static else (a, b, c)))
            np.testing.assert_array_equal(c, a + b)


def aligned(values, offset):
    """The same values in memory `offset` elements behind an address aligned to 64 bytes."""
    memory = np.empty(values.size + 128, values.dtype)
    start = (-memory.ctypes.data % 64) // values.itemsize + offset
    out = memory[start : start + values.size].reshape(values.shape)
    out[...] = values
    return out


def ptx_of(*extents):
    fakes = [
        make_fake_compact_tensor(cute.Float32, extents, stride_order=(1, 0), assumed_align=16)
        for _ in "abc"
    ]
    return cute.compile(add, *fakes, options="--gpu-arch sm_90a").__ptx__


def count(pattern, ptx):
    return len(re.findall(pattern, ptx))


def test_ptx_of_static_shapes_has_no_scalar_access():
    ptx = ptx_of(1024, 4096)
    assert count(r"ld\.global\.v4\.b32", ptx) == count(r"ld\.global", ptx) == 8
    assert count(r"st\.global\.v4\.b32", ptx) == count(r"st\.global", ptx) == 4
    assert count(r"\bbra\b", ptx) <= 3 and count(r"\bdiv\.", ptx) == 0


def test_ptx_of_dynamic_shapes_has_both():
    ptx = ptx_of(cute.sym_int(), cute.sym_int())
    assert count(r"ld\.global\.v4\.b32", ptx) == 8 and count(r"ld\.global\.b32", ptx) == 32
    assert count(r"st\.global\.v4\.b32", ptx) == 4 and count(r"st\.global\.b32", ptx) == 16
    assert count(r"m(ul|ad)\.wide", ptx) <= 17  # one a row and tensor, not one an element
    assert count(r"\bdiv\.", ptx) == 4 and ".local" not in ptx


@cute.kernel
def through_shared_memory(x: cute.Tensor, out: cute.Tensor):
    """Tiles of 16 x 32 go into shared memory with lines of 33, and out again."""
    block = arch.block_idx()[:2]
    shape = (16, 32)
    mine, there = (cute.local_tile(t, shape, block) for t in (x, out))
    coordinates = cute.local_tile(cute.make_identity_tensor(x.shape), shape, block)
    padded = cute.make_layout(shape, stride=(33, 1))
    shared = cute.utils.SmemAllocator().allocate_tensor(x.element_type, padded, 16)
    atom = cute.make_copy_atom(cute.nvgpu.CopyUniversalOp(), x.element_type)
    threads, values = (
        cute.make_layout((4, 8), stride=(8, 1)),
        cute.make_layout((4, 4), stride=(4, 1)),
    )
    thread = cute.make_tiled_copy_tv(atom, threads, values).get_slice(arch.thread_idx()[0])
    source, middle, target = (
        thread.partition_S(mine),
        thread.partition_D(shared),
        thread.partition_D(there),
    )
    where = thread.partition_S(coordinates)
    inside = cute.make_rmem_tensor(where.shape, cute.Boolean)
    for i in range(cute.size(inside)):
        inside[i] = cute.elem_less(where[i], x.shape)
    middle.fill(0)
    cute.copy(atom, source, middle, pred=inside)
    arch.sync_threads()
    registers = cute.make_fragment_like(middle)
    cute.autovec_copy(middle, registers)
    cute.copy(atom, registers, target, pred=inside)


@cute.jit
def copy_all(x: cute.Tensor, out: cute.Tensor):
    grid = [cute.ceil_div(x.shape[0], 16), cute.ceil_div(x.shape[1], 32), 1]
    through_shared_memory(x, out).launch(grid=grid, block=[32, 1, 1])


@pytest.mark.parametrize("transposed", [False, True])
def test_into_shared_memory(sim, transposed):
    for shape in ((16, 64), (17, 40), (5, 7)):
        x = np.arange(np.prod(shape), dtype=np.float32).reshape(shape)
        x = np.ascontiguousarray(x.T).T if transposed else x
        out = np.zeros_like(x)
        copy_all(x, out)
        np.testing.assert_array_equal(out, x)
