"""Tiled MMAs and cute.gemm: the universal multiply-add, mma.sync, ldmatrix and stmatrix."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest

import basedsl_cute as cute
from basedsl.errors import DSLError
from basedsl_cute.nvgpu import CopyUniversalOp, MmaUniversalOp, warp
from basedsl_cute.runtime import from_dlpack

NUMPY = {
    cute.Float16: np.float16, cute.BFloat16: ml_dtypes.bfloat16, cute.Float32: np.float32,
    cute.Int8: np.int8, cute.Uint8: np.uint8, cute.Int32: np.int32, cute.Float64: np.float64,
}  # fmt: skip


@cute.kernel
def straight_kernel(a: cute.Tensor, b: cute.Tensor, c: cute.Tensor, mma: cute.Constexpr):
    """Every thread reads its parts of A and B from memory."""
    thread = mma.get_slice(cute.arch.thread_idx()[0])
    part_a, part_b, part_c = thread.partition_A(a), thread.partition_B(b), thread.partition_C(c)
    held_a, held_b = mma.make_fragment_A(part_a), mma.make_fragment_B(part_b)
    acc = mma.make_fragment_C(part_c)
    cute.autovec_copy(part_a, held_a)
    cute.autovec_copy(part_b, held_b)
    acc.fill(0)
    cute.gemm(mma, acc, held_a, held_b, acc)
    cute.autovec_copy(acc, part_c)


@cute.jit
def straight(
    a: cute.Tensor,
    b: cute.Tensor,
    c: cute.Tensor,
    op: cute.Constexpr,
    atoms: cute.Constexpr = (1, 1, 1),
    permutation: cute.Constexpr = None,
):
    mma = cute.make_tiled_mma(op, atoms, permutation)
    straight_kernel(a, b, c, mma).launch(grid=1, block=mma.size)


def operands(m, n, k, dtype, acc, seed=0):
    rng = np.random.default_rng(seed)
    kind = NUMPY[dtype]
    if np.dtype(kind).kind in "iu":
        low = 0 if np.dtype(kind).kind == "u" else -100
        a, b = (rng.integers(low, 100, s).astype(kind) for s in ((m, k), (n, k)))
    else:
        a, b = (rng.standard_normal(s).astype(kind) for s in ((m, k), (n, k)))
    c = np.full((m, n), 99, NUMPY[acc])
    wide = np.int64 if np.dtype(kind).kind in "iu" else np.float64
    return a, b, c, a.astype(wide) @ b.astype(wide).T


def views(*arrays):
    return [from_dlpack(x, assumed_align=16) for x in arrays]


@pytest.mark.parametrize("dtype", [cute.Float32, cute.Float64, cute.Float16, cute.Int32])
def test_universal_multiply_add(target, dtype):
    a, b, c, expected = operands(16, 8, 5, dtype, dtype)
    straight(*views(a, b, c), MmaUniversalOp(dtype), (8, 4, 1))
    np.testing.assert_allclose(c, expected, rtol=2e-2 if dtype is cute.Float16 else 1e-5, atol=2e-2)


def test_a_permutation_gives_neighbouring_values(target):
    permutation = (
        cute.make_layout((4, 4), stride=(4, 1)),
        cute.make_layout((4, 4), stride=(4, 1)),
        None,
    )
    mma = cute.make_tiled_mma(MmaUniversalOp(cute.Float32), (4, 4, 1), permutation)
    assert [mma.get_tile_size(i) for i in range(3)] == [16, 16, 1]
    a, b, c, expected = operands(16, 16, 4, cute.Float32, cute.Float32)
    straight(*views(a, b, c), MmaUniversalOp(cute.Float32), (4, 4, 1), permutation)
    np.testing.assert_allclose(c, expected, rtol=1e-5, atol=1e-5)


WARP_OPS = [
    warp.MmaF16BF16Op(cute.Float16, cute.Float32, (16, 8, 16)),
    warp.MmaF16BF16Op(cute.Float16, cute.Float16, (16, 8, 16)),
    warp.MmaF16BF16Op(cute.Float16, cute.Float32, (16, 8, 8)),
    warp.MmaF16BF16Op(cute.BFloat16, cute.Float32, (16, 8, 16)),
    warp.MmaF16BF16Op(cute.BFloat16, cute.Float32, (16, 8, 8)),
    warp.MmaI8Op(cute.Int8),
    warp.MmaI8Op(cute.Uint8, shape_mnk=(16, 8, 16)),
]


@pytest.mark.parametrize("op", WARP_OPS, ids=str)
@pytest.mark.parametrize("atoms", [(1, 1, 1), (2, 2, 1)], ids=str)
def test_warp_mma(target, op, atoms):
    a, b, c, expected = operands(32, 16, 64, op.ab_dtype, op.acc_dtype)
    straight(*views(a, b, c), op, atoms)
    tolerance = {cute.Float16: 3e-2, cute.Float32: 1e-4}.get(op.acc_dtype, 0)
    np.testing.assert_allclose(c.astype(np.float64), expected, rtol=tolerance, atol=tolerance)


def test_tf32_mma(target):
    rng = np.random.default_rng(0)
    a, b = (rng.integers(-64, 64, s).astype(np.float32) / 8 for s in ((32, 24), (16, 24)))
    c = np.full((32, 16), np.nan, np.float32)
    x, y, z = views(a, b, c)
    x.element_type = y.element_type = cute.TFloat32
    straight(x, y, z, warp.MmaTF32Op(), (2, 1, 1))
    np.testing.assert_allclose(c, a.astype(np.float64) @ b.T, rtol=1e-6)


@pytest.mark.parametrize(
    ("op", "instruction"),
    [
        (WARP_OPS[0], "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32"),
        (WARP_OPS[1], "mma.sync.aligned.m16n8k16.row.col.f16.f16.f16.f16"),
        (WARP_OPS[3], "mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32"),
        (WARP_OPS[5], "mma.sync.aligned.m16n8k32.row.col.s32.s8.s8.s32"),
    ],
    ids=str,
)
def test_warp_mma_in_ptx(op, instruction):
    a, b, c, _ = operands(16, 8, 32, op.ab_dtype, op.acc_dtype)
    compiled = cute.compile(straight, *views(a, b, c), op, options="--arch sm_90a")
    text = compiled.stages.text("ptx")
    assert text.count(instruction) == 32 // op.shape_mnk[2] and ".local" not in text


# Through shared memory ---------------------------------------------------------------------------


@cute.kernel
def staged_kernel(
    a: cute.Tensor,
    b: cute.Tensor,
    c: cute.Tensor,
    mma: cute.Constexpr,
    number: cute.Constexpr,
    turned: cute.Constexpr,
    store: cute.Constexpr,
):
    """A and B go to swizzled shared memory and come as matrices; C goes back the same way."""
    t = cute.arch.thread_idx()[0]
    dtype = a.element_type
    smem = cute.utils.SmemAllocator()
    swizzle = cute.make_swizzle(2, 3, 3)

    def staged(x):
        rows, depth = x.shape
        stride = (1, rows) if turned else (depth, 1)
        layout = cute.make_composed_layout(swizzle, 0, cute.make_layout((rows, depth), stride))
        made = smem.allocate_tensor(dtype, layout, byte_alignment=128)
        for i in cute.range_constexpr(cute.ceil_div(cute.size(x), mma.size)):
            at = t + i * mma.size
            if at < cute.size(x):
                made[at] = x[at]
        return made

    sa, sb = staged(a), staged(b)
    cute.arch.sync_threads()
    thread = mma.get_slice(t)
    held_a = mma.make_fragment_A(thread.partition_A(sa))
    held_b = mma.make_fragment_B(thread.partition_B(sb))
    acc = mma.make_fragment_C(thread.partition_C(c))
    for make, source, held, count in (
        (cute.make_tiled_copy_A, sa, held_a, number),
        (cute.make_tiled_copy_B, sb, held_b, min(number, 2)),
    ):
        atom = cute.make_copy_atom(warp.LdMatrix8x8x16bOp(turned, count), dtype)
        tiled = make(atom, mma)
        own = tiled.get_slice(t)
        cute.copy(tiled, own.partition_S(source), own.retile(held))
    acc.fill(0)
    cute.gemm(mma, acc, held_a, held_b, acc)
    if cute.const_expr(store):
        sc = smem.allocate_tensor(dtype, cute.make_layout(c.shape, stride=(c.shape[1], 1)), 128)
        atom = cute.make_copy_atom(warp.StMatrix8x8x16bOp(False, 2), dtype)
        tiled = cute.make_tiled_copy_C(atom, mma)
        own = tiled.get_slice(t)
        narrow = cute.make_fragment_like(acc, dtype)
        narrow.store(acc.load().to(dtype))
        cute.copy(tiled, own.retile(narrow), own.partition_D(sc))
        cute.arch.sync_threads()
        for i in cute.range_constexpr(cute.ceil_div(cute.size(c), mma.size)):
            at = t + i * mma.size
            if at < cute.size(c):
                c[at] = sc[at]
    else:
        cute.autovec_copy(acc, thread.partition_C(c))


@cute.jit
def staged(
    a: cute.Tensor,
    b: cute.Tensor,
    c: cute.Tensor,
    op: cute.Constexpr,
    number: cute.Constexpr,
    turned: cute.Constexpr,
    store: cute.Constexpr,
):
    mma = cute.make_tiled_mma(op, (2, 1, 1), (32, 16, 16))
    staged_kernel(a, b, c, mma, number, turned, store).launch(grid=1, block=mma.size)


@pytest.mark.parametrize("number", [1, 2, 4])
@pytest.mark.parametrize("turned", [False, True])
@pytest.mark.parametrize("store", [False, True])
def test_matrices_through_shared_memory(target, number, turned, store):
    op = warp.MmaF16BF16Op(cute.Float16, cute.Float32, (16, 8, 16))
    a, b, c, expected = operands(32, 32, 32, cute.Float16, cute.Float16 if store else cute.Float32)
    staged(*views(a, b, c), op, number, turned, store)
    np.testing.assert_allclose(c, expected, rtol=2e-3, atol=2e-2 if store else 1e-4)


def test_matrices_in_ptx():
    op = warp.MmaF16BF16Op(cute.Float16, cute.Float32, (16, 8, 16))
    a, b, c, _ = operands(32, 32, 32, cute.Float16, cute.Float16)
    compiled = cute.compile(staged, *views(a, b, c), op, 4, False, True, options="--arch sm_90a")
    text = compiled.stages.text("ptx")
    assert "ldmatrix.sync.aligned.m8n8.x4.shared.b16" in text
    assert "stmatrix.sync.aligned.m8n8.x2.shared.b16" in text and ".local" not in text
    compiled = cute.compile(staged, *views(a, b, c), op, 4, True, True, options="--arch sm_90a")
    assert "ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16" in compiled.stages.text("ptx")


def test_what_is_refused(sim):
    def refused(text, wrong):
        with pytest.raises(DSLError) as caught:
            wrong()
        assert text in str(caught.value)

    refused(
        "multiplies Float16 in Float16", lambda: warp.MmaF16BF16Op(cute.Int8, cute.Int32, (1, 1, 1))
    )
    refused("has the shapes", lambda: warp.MmaF16BF16Op(cute.Float16, cute.Float32, (16, 16, 16)))
    refused("moves 1, 2 or 4 matrices", lambda: warp.LdMatrix8x8x16bOp(num_matrices=3))
    refused("takes an MMA operation", lambda: cute.make_mma_atom(CopyUniversalOp()))

    @cute.kernel
    def kernel(k: cute.Constexpr, dtype: cute.Constexpr):
        mma = cute.make_tiled_mma(MmaUniversalOp(cute.Float32), (1, 1, 1))
        a = cute.make_rmem_tensor((1, 4, k), cute.Float32)
        b = cute.make_rmem_tensor((1, 4, 2), dtype)
        c = cute.make_rmem_tensor((1, 4, 4), cute.Float32)
        cute.gemm(mma, c, a, b, c)

    @cute.jit
    def host(k: cute.Constexpr, dtype: cute.Constexpr):
        kernel(k, dtype).launch(grid=1, block=1)

    refused("they do not agree", lambda: cute.compile(host, 3, cute.Float32))
    refused("b has elements of Float16", lambda: cute.compile(host, 2, cute.Float16))
