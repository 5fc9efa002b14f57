"""Random tiled MMAs: which warps, permutations and swizzles, and which copies feed and empty them.

What does not fit together is an error; what compiles is right.
"""

from __future__ import annotations

import dataclasses
import random
from typing import Any

import ml_dtypes
import numpy as np
import pytest

import basedsl_cute as cute
from basedsl.errors import DSLTypeError
from basedsl_cute.algebra import LayoutError
from basedsl_cute.nvgpu import CopyUniversalOp, warp
from basedsl_cute.runtime import from_dlpack

HALF, FULL = (16, 8, 8), (16, 8, 16)
OPS = [
    warp.MmaF16BF16Op(cute.Float16, cute.Float32, FULL),
    warp.MmaF16BF16Op(cute.Float16, cute.Float16, HALF),
    warp.MmaF16BF16Op(cute.BFloat16, cute.Float32, HALF),
    warp.MmaTF32Op(),
    warp.MmaF64Op(),
    warp.MmaI8Op(cute.Int8),
    warp.MmaFP8Op(cute.Float8E4M3FN),
]
NUMPY = {
    cute.Float16: np.float16, cute.BFloat16: ml_dtypes.bfloat16, cute.TFloat32: np.float32,
    cute.Float64: np.float64, cute.Int8: np.int8, cute.Float8E4M3FN: ml_dtypes.float8_e4m3fn,
    cute.Float32: np.float32, cute.Int32: np.int32,
}  # fmt: skip


@dataclasses.dataclass(frozen=True)
class Case:
    """`read_a` and so on are copy atoms; None is `autovec_copy` of what the MMA partitions."""

    op: Any
    warps: Any
    permutation: Any
    tile: tuple[int, int, int]
    smem_a: Any
    smem_b: Any
    smem_c: Any
    read_a: Any
    read_b: Any
    write_c: Any


def drawn(seed: int) -> Case:
    rng = random.Random(seed)
    op = rng.choice(OPS)
    width = op.dtypes[1].width
    wm, wn = rng.choice([(1, 1), (2, 1), (1, 2), (2, 2)])
    warps = rng.choice([(wm, wn, 1), cute.make_layout((wm, wn, 1), stride=(wn, 1, 0))])
    factors = [rng.choice([1, 2]) for _ in range(3)]
    extents = [e * w * f for e, w, f in zip(op.shape_mnk, (wm, wn, 1), factors, strict=True)]
    permutation = tuple(rng.choice([extent, ordered(rng, extent)]) for extent in extents)
    tile = tuple(extent * rng.choice([1, 2]) for extent in extents)
    by_row_a, by_row_b, by_row_c = (rng.random() < 0.7 for _ in range(3))
    m, n, k = tile
    c_atoms = [None, CopyUniversalOp()]
    if op.dtypes[0] is cute.Float16:
        c_atoms += [warp.StMatrix8x8x16bOp(not by_row_c, number) for number in (1, 2, 4)]
    return Case(
        op, warps, permutation, tile,
        shared(rng, m, k, width, by_row_a), shared(rng, n, k, width, by_row_b),
        cute.make_layout((m, n), stride=(n + 16, 1) if by_row_c else (1, m + 16)),
        reader(rng, by_row_a), reader(rng, by_row_b), rng.choice(c_atoms),
    )  # fmt: skip


def ordered(rng: random.Random, extent: int) -> Any:
    """The numbers below a power of two in an order made of factors of 2."""
    modes = extent.bit_length() - 1
    strides = [2**i for i in range(modes)]
    rng.shuffle(strides)
    return cute.make_layout((2,) * modes, stride=tuple(strides))


def shared(rng: random.Random, rows: int, columns: int, width: int, by_row: bool) -> Any:
    """Compact, padded or, where a tile of 8 lines fits, swizzled."""
    along, across = (columns, rows) if by_row else (rows, columns)
    vector = 128 // width
    bits = min(3, max(0, (along // vector).bit_length() - 1))
    if rng.random() < 0.5 and across % 8 == 0:
        line = min(along, vector << bits)
        shape, order = ((8, line), (1, 0)) if by_row else ((line, 8), (0, 1))
        atom = cute.make_composed_layout(
            cute.make_swizzle(bits, vector.bit_length() - 1, 3),
            0,
            cute.make_ordered_layout(shape, order=order),
        )
        return cute.tile_to_shape(atom, (rows, columns), (0, 1))
    line = along + rng.choice([0, vector])
    return cute.make_layout((rows, columns), stride=(line, 1) if by_row else (1, line))


def reader(rng: random.Random, by_row: bool) -> Any:
    matrices = [warp.LdMatrix8x8x16bOp(not by_row, number) for number in (1, 2, 4)]
    return rng.choice([None, CopyUniversalOp(), *matrices])


@cute.kernel
def product_kernel(a: cute.Tensor, b: cute.Tensor, c: cute.Tensor, case: cute.Constexpr):
    t = cute.arch.thread_idx()[0]
    mma = cute.make_tiled_mma(case.op, case.warps, case.permutation)
    thread = mma.get_slice(t)
    smem = cute.utils.SmemAllocator()
    sa = smem.allocate_tensor(a.element_type, case.smem_a, 128)
    sb = smem.allocate_tensor(b.element_type, case.smem_b, 128)
    for source, target in ((a, sa), (b, sb)):
        for i in range(t, cute.size(source), mma.size):
            target[i] = source[i]
    cute.arch.sync_threads()
    part_a, part_b = thread.partition_A(sa), thread.partition_B(sb)
    held_a, held_b = mma.make_fragment_A(part_a), mma.make_fragment_B(part_b)
    for op, make, shared, part, held in (
        (case.read_a, cute.make_tiled_copy_A, sa, part_a, held_a),
        (case.read_b, cute.make_tiled_copy_B, sb, part_b, held_b),
    ):
        if cute.const_expr(op is None):
            cute.autovec_copy(part, held)
        else:
            load = make(cute.make_copy_atom(op, shared.element_type), mma)
            cute.copy(load, load.get_slice(t).partition_S(shared), load.retile(held))
    acc = mma.make_fragment_C(mma.partition_shape_C(case.tile[:2]))
    acc.fill(0)
    cute.gemm(mma, acc, held_a, held_b, acc)
    if cute.const_expr(case.write_c is None):
        cute.autovec_copy(acc, thread.partition_C(c))
    else:
        sc = smem.allocate_tensor(c.element_type, case.smem_c, 128)
        store = cute.make_tiled_copy_C(cute.make_copy_atom(case.write_c, c.element_type), mma)
        cute.copy(store, store.retile(acc), store.get_slice(t).partition_D(sc))
        cute.arch.sync_threads()
        for i in range(t, cute.size(c), mma.size):
            c[i] = sc[i]


@cute.jit
def product(a: cute.Tensor, b: cute.Tensor, c: cute.Tensor, case: cute.Constexpr):
    threads = cute.make_tiled_mma(case.op, case.warps, case.permutation).size
    product_kernel(a, b, c, case).launch(grid=1, block=threads)


def run(seed: int) -> bool:
    """True if the case could be compiled; then it is right."""
    case = drawn(seed)
    d, a_type, b_type, _ = case.op.dtypes
    m, n, k = case.tile
    rng = np.random.default_rng(seed)
    a = rng.integers(-3, 4, (m, k)).astype(NUMPY[a_type])
    b = rng.integers(-3, 4, (n, k)).astype(NUMPY[b_type])
    c = np.full((m, n), 99, NUMPY[d])
    tensors = [from_dlpack(x, assumed_align=16) for x in (a, b, c)]
    tensors[0].element_type, tensors[1].element_type = a_type, b_type
    try:
        compiled = cute.compile(product, *tensors, case)
    except (DSLTypeError, LayoutError):
        return False
    compiled(*tensors)
    np.testing.assert_array_equal(
        c.astype(np.float64), a.astype(np.float64) @ b.astype(np.float64).T, err_msg=str(case)
    )
    return True


@pytest.mark.parametrize("first", range(0, 48, 12))
def test_what_compiles_is_right(target, first):
    assert sum(run(seed) for seed in range(first, first + 12)) >= 3
