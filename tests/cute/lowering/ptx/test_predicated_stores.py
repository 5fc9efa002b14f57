"""Loops of stores with a predicate each write wide where they may, and the same elements."""

import re

import numpy as np
import pytest

import basedsl_cute as cute
from basedsl_cute.runtime import from_dlpack

SIZES = ((7, 126), (1, 131))


@cute.kernel
def kernel(x: cute.Tensor, y: cute.Tensor, columns: cute.Constexpr, twice: cute.Constexpr):
    t, _, _ = cute.arch.thread_idx()
    block, _, _ = cute.arch.block_idx()
    mine = cute.make_rmem_tensor(columns, y.element_type)
    inside = cute.make_rmem_tensor(columns, cute.Boolean)
    for i in range(columns):
        inside[i] = cute.elem_less((block, t * columns + i), y.shape)
        if inside[i]:
            mine[i] = x[block, t * columns + i]
    for i in range(columns):
        if inside[i]:
            y[block, t * columns + i] = mine[i] * 2
            if cute.const_expr(twice):
                y[block, t * columns + i] = mine[i] * 3


@cute.jit
def doubled(x: cute.Tensor, y: cute.Tensor, columns: cute.Constexpr, twice: cute.Constexpr = False):
    threads = cute.ceil_div(y.shape[1], columns)
    kernel(x, y, columns, twice).launch(grid=(y.shape[0], 1, 1), block=(threads, 1, 1))


def views(shape, dtype, shift=0):
    """Two arrays in larger ones, whose first elements lie `shift` elements behind a boundary."""
    rows, columns = shape
    full = np.random.default_rng(0).integers(-9, 9, (2, rows, columns + 8)).astype(dtype)
    return full[0][:, shift : shift + columns], full[1][:, shift : shift + columns], full


@pytest.mark.parametrize("dtype, columns", [(np.float32, 8), (np.float16, 16), (np.int8, 4)])
def test_the_same_elements(target, dtype, columns):
    for shape in SIZES:
        for shift in (0, 1):
            x, y, full = views(shape, dtype, shift)
            wanted = full.copy()
            wanted[1][:, shift : shift + shape[1]] = 2 * x
            doubled(*(from_dlpack(a).mark_layout_dynamic(leading_dim=1) for a in (x, y)), columns)
            np.testing.assert_array_equal(full, wanted)


def stores(dtype, columns, twice=False, static=False):
    x, y, _ = views((8, 128), dtype)
    arguments = [from_dlpack(np.ascontiguousarray(a), assumed_align=16) for a in (x, y)]
    if not static:
        arguments = [a.mark_layout_dynamic(leading_dim=1) for a in arguments]
    options = cute.GPUArch("sm_90a"), cute.KeepPTX()
    text = cute.compile[options](doubled, *arguments, columns, twice).__ptx__
    return re.findall(r"st\.global\.(\S+)", text)


@pytest.mark.parametrize(
    "dtype, columns, wide",
    [
        (np.float32, 8, "v4.b32"),
        (np.float16, 16, "v4.b32"),
        (np.float32, 6, "v2.b32"),
        (np.int8, 32, "v4.b32"),
        (np.int32, 6, "v2.b32"),
    ],
)
def test_wide_stores(sim, dtype, columns, wide):
    found = stores(dtype, columns)
    elements = {"v4.b32": 16, "v2.b32": 8}[wide] // np.dtype(dtype).itemsize
    assert found.count(wide) == columns // elements
    assert len(found) == columns + columns // elements


def test_what_is_known_needs_no_other_way(sim):
    assert stores(np.float32, 8, static=True) == ["v4.b32"] * 2


def test_other_loops_stay(sim):
    assert set(stores(np.float32, 8, twice=True)) == {"b32"}
    assert set(stores(np.float32, 5)) == {"b32"}
