"""Fragments moved and multiplied many at once: the results, and the reports, of one by one."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest

import basedsl_cute as cute
from basedsl_cute import arch
from basedsl_cute.nvgpu import warp
from basedsl_cute.runtime import from_dlpack
from basedsl_cute.sim import RaceError, UninitializedReadError
from basedsl_cute.sim.machine import async_copy, fragments

TOGETHER = ((async_copy, "issue_copies"), (fragments, "load_rows"), (fragments, "multiply_rows"))


@cute.kernel
def product_kernel(
    a: cute.Tensor,
    b: cute.Tensor,
    c: cute.Tensor,
    mma: cute.TiledMma,
    copy: cute.TiledCopy,
    bug: cute.Constexpr,
):
    """C = A B with B stored by rows of K, so that its fragments are transposed."""
    t = arch.thread_idx()[0]
    smem = cute.utils.SmemAllocator()
    tile_a = smem.allocate_tensor(a.element_type, cute.make_layout((32, 32), stride=(40, 1)), 128)
    tile_b = smem.allocate_tensor(a.element_type, cute.make_layout((32, 32), stride=(40, 1)), 128)
    mine = copy.get_slice(t)
    cute.copy(copy, mine.partition_S(a), mine.partition_D(tile_a))
    if cute.const_expr(bug != "unwritten"):
        cute.copy(copy, mine.partition_S(b), mine.partition_D(tile_b))
    arch.cp_async_commit_group()
    arch.cp_async_wait_group(0)
    if cute.const_expr(bug != "barrier"):
        arch.sync_threads()
    part_b = cute.make_tensor(tile_b.iterator, cute.make_layout((32, 32), stride=(1, 40)))
    total = cute.make_rmem_tensor(mma.partition_shape_C((32, 32)), cute.Float32)
    if cute.const_expr(bug != "sums"):
        total.fill(0)
    held_a = mma.make_fragment_A(mma.partition_shape_A((32, 32)))
    held_b = mma.make_fragment_B(mma.partition_shape_B((32, 32)))
    rows = cute.make_copy_atom(warp.LdMatrix8x8x16bOp(num_matrices=4), a.element_type)
    turned = cute.make_copy_atom(warp.LdMatrix8x8x16bOp(True, 2), a.element_type)
    load_a, load_b = cute.make_tiled_copy_A(rows, mma), cute.make_tiled_copy_B(turned, mma)
    cute.copy(load_a, load_a.get_slice(t).partition_S(tile_a), load_a.retile(held_a))
    cute.copy(load_b, load_b.get_slice(t).partition_S(part_b), load_b.retile(held_b))
    cute.gemm(mma, total, held_a, held_b, total)
    cute.autovec_copy(total, mma.get_slice(t).partition_C(c))


@cute.jit
def product(a: cute.Tensor, b: cute.Tensor, c: cute.Tensor, bug: cute.Constexpr):
    op = warp.MmaF16BF16Op(a.element_type, cute.Float32, (16, 8, 16))
    copy = cute.make_tiled_copy_tv(
        cute.make_copy_atom(cute.nvgpu.cpasync.CopyG2SOp(), a.element_type, num_bits_per_copy=64),
        cute.make_layout((8, 8), stride=(8, 1)),
        cute.make_layout((1, 4)),
    )
    mma = cute.make_tiled_mma(op, (2, 1, 1))
    product_kernel(a, b, c, mma, copy, bug).launch(grid=1, block=64)


def run(dtype, bug=None):
    rng = np.random.default_rng(0)
    a, b = (rng.standard_normal((32, 32)).astype(dtype) for _ in range(2))
    c = np.zeros((32, 32), np.float32)
    options = "--arch sim"
    args = from_dlpack(a, 16), from_dlpack(b, 16), from_dlpack(c, 16)
    cute.compile(product, *args, bug, options=options)(*args)
    return a.astype(np.float32) @ b.astype(np.float32), c


def noted(function, results):
    """The function, whose results are listed."""

    def call(*args):
        results.append(function(*args))
        return results[-1]

    return call


@pytest.mark.parametrize("dtype", [np.float16, ml_dtypes.bfloat16])
def test_many_at_once_give_what_one_by_one_give(dtype, monkeypatch):
    done = {name: [] for _, name in TOGETHER}
    for module, name in TOGETHER:
        monkeypatch.setattr(module, name, noted(getattr(module, name), done[name]))
    exact, together = run(dtype)
    assert all(all(calls) and calls for calls in done.values()), done
    for module, name in TOGETHER:
        monkeypatch.setattr(module, name, lambda *args: False)
    alone = run(dtype)[1]
    assert np.array_equal(together.view(np.int32), alone.view(np.int32))
    assert np.allclose(together, exact, atol=1e-3)


@pytest.mark.parametrize(
    ("bug", "error"),
    [
        ("barrier", RaceError),
        ("unwritten", UninitializedReadError),
        ("sums", UninitializedReadError),
    ],
)
def test_reports_are_those_of_one_by_one(bug, error, monkeypatch):
    found = []
    for alone in (False, True):
        for module, name in TOGETHER if alone else ():
            monkeypatch.setattr(module, name, lambda *args: False)
        with pytest.raises(error) as caught:
            run(np.float16, bug)
        found.append((str(caught.value).splitlines()[0], caught.value.span, caught.value.where))
    assert found[0] == found[1]
