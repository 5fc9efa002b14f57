"""Grouping: products that are independent are written as one, with the results of one by one."""

from __future__ import annotations

import numpy as np

import basedsl_cute as cute
from basedsl_cute import arch
from basedsl_cute.nvgpu import warp
from basedsl_cute.runtime import from_dlpack
from basedsl_cute.sim.machine import fragments, matrix
from basedsl_cute.sim.machine.access import RegisterArray
from basedsl_cute.sim.site import Site
from basedsl_cute.sim.translate.grouping import Grouping, RegisterBytes
from basedsl_cute.sim.translate.records import Op, OpRegion, Value

ARRAY = RegisterArray(0, 64, 4)


def op(name: str, operands=(), results: int = 0, row: int = 0) -> Op:
    made = Op(name, list(operands), [], {"row": str(row)} if row else {}, [], Site(name, None))
    made.results = [Value(0, None, made) for _ in range(results)]
    return made


def order(ops: list[Op]) -> tuple[list[str], list[int]]:
    def rows(one: Op) -> RegisterBytes:
        at = int(one.attributes.get("row", "0"))
        return RegisterBytes(ARRAY, at, at + 1)

    end = op("gpu.return")
    found = Grouping(OpRegion([], [*ops, end]), lambda one: one.name == "mma", rows)
    assert sorted(map(id, found.region.ops)) == sorted(map(id, [*ops, end]))
    return [one.name for one in found.region.ops], [len(group) for group in found.groups.values()]


def product(row: int, written: int) -> list[Op]:
    load = op("llvm.load", [Value(0, None, None)], 1, row)
    mma = op("mma", load.results, 1)
    part = op("llvm.extractvalue", mma.results, 1)
    store = op("llvm.store", [part.results[0], Value(0, None, None)], 0, written)
    return [load, mma, part, store]


def test_independent_products_become_neighbours():
    names, groups = order([*product(1, 1), *product(2, 2), *product(3, 3)])
    assert groups == [3]
    assert names[:6] == ["llvm.load"] * 3 + ["mma"] * 3
    assert names[6:] == ["llvm.extractvalue", "llvm.store"] * 3 + ["gpu.return"]


def test_a_product_that_reads_what_one_before_wrote_stays_behind_it():
    before = [*product(1, 5), *product(5, 6)]
    assert order(before) == ([one.name for one in before] + ["gpu.return"], [])


def test_what_is_not_known_to_be_harmless_ends_a_group():
    between = op("nvvm.barrier0")
    ops = [*product(1, 1), between, *product(2, 2)]
    assert order(ops) == ([one.name for one in ops] + ["gpu.return"], [])


@cute.kernel
def chained_kernel(a: cute.Tensor, b: cute.Tensor, c: cute.Tensor, mma: cute.TiledMma):
    thread = mma.get_slice(arch.thread_idx()[0])
    fa = mma.make_fragment_A(thread.partition_A(a))
    fb = mma.make_fragment_B(thread.partition_B(b))
    part = thread.partition_C(c)
    fc = mma.make_fragment_C(part)
    cute.autovec_copy(thread.partition_A(a), fa)
    cute.autovec_copy(thread.partition_B(b), fb)
    fc.fill(0.5)
    cute.gemm(mma, fc, fa, fb, fc)
    cute.gemm(mma, fc, fa, fb, fc)
    cute.autovec_copy(fc, part)


@cute.jit
def chained(a: cute.Tensor, b: cute.Tensor, c: cute.Tensor):
    op = warp.MmaF16BF16Op(cute.Float16, cute.Float32, (16, 8, 16))
    mma = cute.make_tiled_mma(op, (2, 1, 1))
    chained_kernel(a, b, c, mma).launch(grid=1, block=64)


def test_groups_give_the_results_of_products_one_by_one(monkeypatch):
    rng = np.random.default_rng(0)
    a, b = (rng.standard_normal((64, 32)).astype(np.float16) for _ in range(2))
    sizes = []

    def one_by_one(g, whats, a, b, c, which_a, which_b):
        sizes.append(len(c))
        rows = zip(whats, which_a, which_b, c, strict=True)
        return [matrix.mma_sync(g, what, a[i], b[j], added, None) for what, i, j, added in rows]

    found = []
    for alone in (False, True):
        if alone:
            monkeypatch.setattr(fragments, "multiply_rows", lambda g, *rest: False)
            monkeypatch.setattr(matrix, "mma_many", one_by_one)
        c = np.zeros((64, 64), np.float32)
        args = [from_dlpack(x) for x in (a, b, c)]
        cute.compile(chained, *args, options="--arch sim")(*args)
        found.append(c)
    assert sizes == [16] * 4  # two steps of K, twice
    assert np.array_equal(found[0].view(np.int32), found[1].view(np.int32))
    exact = a.astype(np.float32) @ b.astype(np.float32).T
    assert np.allclose(found[0], 2 * exact + 0.5, atol=1e-2)
