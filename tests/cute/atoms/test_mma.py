"""Tiled MMAs and cute.gemm: the universal multiply-add, mma.sync, ldmatrix and stmatrix."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest

import basedsl_cute as cute
from basedsl.errors import DSLError
from basedsl_cute import algebra
from basedsl_cute.algebra import LayoutError
from basedsl_cute.lowering.ptx import ptxas
from basedsl_cute.nvgpu import CopyUniversalOp, MmaUniversalOp, warp
from basedsl_cute.runtime import from_dlpack
from basedsl_cute.sim import UninitializedReadError

NUMPY = {
    cute.Float16: np.float16, cute.BFloat16: ml_dtypes.bfloat16, cute.Float32: np.float32,
    cute.Int8: np.int8, cute.Uint8: np.uint8, cute.Int32: np.int32, cute.Float64: np.float64,
    cute.TFloat32: np.float32, cute.Float8E4M3FN: ml_dtypes.float8_e4m3fn,
    cute.Float8E5M2: ml_dtypes.float8_e5m2,
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


def operands(m, n, k, dtype, acc, b_dtype=None, seed=0):
    """A, B, a poisoned C, and what C is to be."""
    rng = np.random.default_rng(seed)

    def made(dtype, shape):
        kind = np.dtype(NUMPY[dtype])
        if kind.kind in "iu":
            limits = np.iinfo(kind)
            return rng.integers(limits.min, limits.max + 1, shape).astype(kind)
        values = rng.standard_normal(shape).astype(kind)
        if dtype is cute.TFloat32:  # as the instruction reads them
            values = (values.view(np.uint32) & np.uint32(0xFFFFE000)).view(np.float32)
        return values

    a, b = made(dtype, (m, k)), made(b_dtype or dtype, (n, k))
    c = np.full((m, n), 99, NUMPY[acc])
    wide = np.int64 if acc is cute.Int32 else np.float64
    return a, b, c, a.astype(wide) @ b.astype(wide).T


def of_op(op, m, n, k):
    _, a, b, acc = op.dtypes
    return operands(m, n, k, a, acc, b)


def agrees(op, c, expected):
    """Integers exactly, floats within what rounding in any order can make of them."""
    if op.acc_dtype is cute.Int32:
        np.testing.assert_array_equal(c, expected)
        return
    # 8-bit floats are added with fewer bits than float32 has.
    tolerance = {cute.Float16: 3e-2, cute.Float32: 1e-5, cute.Float64: 1e-13}[op.acc_dtype]
    if isinstance(op, warp.MmaFP8Op):
        tolerance = 1e-2
    np.testing.assert_allclose(c.astype(np.float64), expected, rtol=tolerance, atol=tolerance * 10)


def views(*arrays, op=None):
    tensors = [from_dlpack(x, assumed_align=16) for x in arrays]
    if op is not None:
        _, tensors[0].element_type, tensors[1].element_type, _ = op.dtypes
    return tensors


@pytest.mark.parametrize("dtype", [cute.Float32, cute.Float64, cute.Float16, cute.Int32])
def test_universal_multiply_add(target, dtype):
    a, b, c, expected = operands(16, 8, 5, dtype, dtype)
    straight(*views(a, b, c), MmaUniversalOp(dtype), (8, 4, 1))
    if dtype is cute.Int32:  # wraps
        expected = expected.astype(np.int32).astype(np.int64)
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


F8, I8 = (cute.Float8E4M3FN, cute.Float8E5M2), (cute.Int8, cute.Uint8)
WARP_OPS = [
    warp.MmaF16BF16Op(cute.Float16, cute.Float32, (16, 8, 16)),
    warp.MmaF16BF16Op(cute.Float16, cute.Float16, (16, 8, 16)),
    warp.MmaF16BF16Op(cute.Float16, cute.Float32, (16, 8, 8)),
    warp.MmaF16BF16Op(cute.Float16, cute.Float16, (16, 8, 8)),
    warp.MmaF16BF16Op(cute.BFloat16, cute.Float32, (16, 8, 16)),
    warp.MmaF16BF16Op(cute.BFloat16, cute.Float32, (16, 8, 8)),
    *(warp.MmaTF32Op(shape_mnk=(16, 8, k)) for k in (4, 8)),
    *(warp.MmaFP8Op(a, b_dtype=b) for a in F8 for b in F8),
    *(warp.MmaI8Op(a, shape_mnk=(16, 8, k), b_dtype=b) for a in I8 for b in I8 for k in (16, 32)),
    *(warp.MmaF64Op(shape) for shape in ((8, 8, 4), (16, 8, 4), (16, 8, 8), (16, 8, 16))),
]


def instruction(op):
    """The name PTX has for it."""
    kinds = {
        cute.Float16: "f16", cute.BFloat16: "bf16", cute.Float32: "f32", cute.TFloat32: "tf32",
        cute.Float64: "f64", cute.Int8: "s8", cute.Uint8: "u8", cute.Int32: "s32",
        cute.Float8E4M3FN: "e4m3", cute.Float8E5M2: "e5m2",
    }  # fmt: skip
    m, n, k = op.shape_mnk
    return f"m{m}n{n}k{k}.row.col.{'.'.join(kinds[t] for t in op.dtypes)}"


BY_NAME = {instruction(op): op for op in WARP_OPS}
F16, F16_K8, TF32, E4M3, S8, F64_SM80, F64_K4, F64 = (
    BY_NAME[name.replace(" ", ".row.col.")]
    for name in (
        "m16n8k16 f32.f16.f16.f32", "m16n8k8 f32.f16.f16.f32", "m16n8k8 f32.tf32.tf32.f32",
        "m16n8k32 f32.e4m3.e4m3.f32", "m16n8k32 s32.s8.s8.s32", "m8n8k4 f64.f64.f64.f64",
        "m16n8k4 f64.f64.f64.f64", "m16n8k16 f64.f64.f64.f64",
    )
)  # fmt: skip


@pytest.mark.parametrize("op", WARP_OPS, ids=instruction)
@pytest.mark.parametrize("atoms", [(1, 1, 1), (2, 2, 1)], ids=str)
def test_warp_mma(target, op, atoms):
    a, b, c, expected = of_op(op, 32, 16, 64)
    straight(*views(a, b, c, op=op), op, atoms)
    agrees(op, c, expected)


@cute.kernel
def added_kernel(a: cute.Tensor, b: cute.Tensor, c: cute.Tensor, mma: cute.TiledMma):
    """D = A B + C and D = A B + D, with D in other registers than C, by each rank of operands."""
    thread = mma.get_slice(cute.arch.thread_idx()[0])
    part_a, part_b, part_c = thread.partition_A(a), thread.partition_B(b), thread.partition_C(c)
    held_a, held_b = thread.make_fragment_A(part_a), thread.make_fragment_B(part_b)
    added, acc = thread.make_fragment_C(part_c), thread.make_fragment_C(part_c)
    cute.autovec_copy(part_a, held_a)
    cute.autovec_copy(part_b, held_b)
    cute.autovec_copy(part_c, added)
    cute.gemm(thread, acc, held_a[None, None, 0], held_b[None, None, 0], added)
    atom = cute.make_mma_atom(mma.op)
    for k in cute.range_constexpr(1, cute.size(held_a, mode=[2])):
        for m in cute.range_constexpr(cute.size(acc, mode=[1])):
            for n in cute.range_constexpr(cute.size(acc, mode=[2])):
                d = acc[None, m, n]
                cute.mma_atom_call(atom, d, held_a[None, m, k], held_b[None, n, k], d)
    cute.autovec_copy(acc, part_c)


@cute.jit
def added(a: cute.Tensor, b: cute.Tensor, c: cute.Tensor, op: cute.Constexpr):
    mma = cute.make_tiled_mma(op, (1, 2, 1))
    added_kernel(a, b, c, mma).launch(grid=1, block=mma.size)


@pytest.mark.parametrize("op", [F16, E4M3, S8, F64], ids=instruction)
def test_what_is_added(target, op):
    a, b, c, product = of_op(op, 32, 32, 64)
    c[:] = np.arange(c.size).reshape(c.shape) % 7
    expected = product + c.astype(np.float64)
    added(*views(a, b, c, op=op), op)
    agrees(op, c, expected)


@pytest.mark.skipif(ptxas.find_ptxas() is None, reason="no ptxas here")
@pytest.mark.parametrize("op", WARP_OPS, ids=instruction)
def test_warp_mma_in_ptx(op):
    a, b, c, _ = of_op(op, 16, 8, 32)
    compiled = cute.compile(straight, *views(a, b, c, op=op), op, options="--arch sm_90a")
    text = compiled.stages.text("ptx")
    rows = 16 // op.shape_mnk[0]
    assert text.count(f"mma.sync.aligned.{instruction(op)}") == 32 // op.shape_mnk[2] * rows
    assert ".local" not in text
    made = ptxas.start(text, "sm_90a").finish()
    assert made.warnings == ()


@pytest.mark.parametrize(
    ("op", "arch", "first"),
    [
        (F16, "sm_75", "sm_80"),
        (E4M3, "sm_80", "sm_89"),
        (F64, "sm_89", "sm_90"),
    ],
    ids=str,
)
def test_architectures_that_have_it_not(op, arch, first):
    a, b, c, _ = of_op(op, 16, 8, 32)
    with pytest.raises(
        DSLError, match=f"{arch} has no mma.sync of .*: {first} and later have it"
    ) as e:
        cute.compile(straight, *views(a, b, c, op=op), op, options=f"--arch {arch}")
    assert e.value.span.filename == __file__


@pytest.mark.parametrize(
    ("op", "name"),
    [
        (F16, "SM80_16x8x16_F32F16F16F32_TN"),
        (F16_K8, "SM75_16x8x8_F32F16F16F32_TN"),
        (TF32, "SM80_16x8x8_F32TF32TF32F32_TN"),
        (E4M3, "SM89_16x8x32_F32E4M3E4M3F32_TN"),
        (S8, "SM80_16x8x32_S32S8S8S32_TN"),
        (F64_SM80, "SM80_8x8x4_F64F64F64F64_TN"),
        (F64_K4, "SM90_16x8x4_F64F64F64F64_TN"),
    ],
    ids=str,
)
def test_layouts_are_those_of_cute(op, name):
    """`algebra.mma_atom` agrees with the shared vectors (tests/cute/algebra/test_vectors.py)."""
    atom, known = cute.make_mma_atom(op), algebra.mma_atom(name)
    assert atom.shape_mnk == known.shape_mnk
    for which in ("thr_id", "tv_layout_A", "tv_layout_B", "tv_layout_C"):
        assert getattr(atom, which) == getattr(known, which)


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
    swizzle = cute.make_swizzle(2, (128 // dtype.width).bit_length() - 1, 3)  # 16 bytes stay

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
    mma = cute.make_tiled_mma(op, (2, 1, 1), (32, 16, op.shape_mnk[2]))
    staged_kernel(a, b, c, mma, number, turned, store).launch(grid=1, block=mma.size)


OTHER_WIDTHS = [
    warp.MmaTF32Op(),
    warp.MmaFP8Op(cute.Float8E5M2),
    warp.MmaI8Op(cute.Int8),
    warp.MmaI8Op(cute.Uint8),
]


@pytest.mark.parametrize("number", [1, 2, 4])
@pytest.mark.parametrize("op", OTHER_WIDTHS, ids=instruction)
def test_matrices_of_other_widths(target, op, number):
    """ldmatrix moves 16 bytes of a row, whatever they are."""
    a, b, c, expected = of_op(op, 32, 32, 64)
    staged(*views(a, b, c, op=op), op, number, False, False)
    agrees(op, c, expected)


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
        with pytest.raises((DSLError, LayoutError)) as caught:
            wrong()
        assert text in str(caught.value)

    refused(
        "multiplies Float16 in Float16", lambda: warp.MmaF16BF16Op(cute.Int8, cute.Int32, (1, 1, 1))
    )
    refused("has the shapes", lambda: warp.MmaF16BF16Op(cute.Float16, cute.Float32, (16, 16, 16)))
    refused("hint: warp.MmaI8Op multiplies Int8", lambda: warp.MmaFP8Op(cute.Int8))
    refused("hint: declare the operands as TFloat32", lambda: warp.MmaTF32Op(cute.Float32))
    refused("not Int8 and Float16 in Int32", lambda: warp.MmaI8Op(cute.Int8, b_dtype=cute.Float16))
    refused("(16, 8, 16), not (8, 8, 16)", lambda: warp.MmaF64Op((8, 8, 16)))
    refused(
        "turns matrices of 16-bit elements, not of 8 bits",
        lambda: cute.make_copy_atom(warp.LdMatrix8x8x16bOp(True, 4), cute.Int8),
    )
    refused(
        "a thread holds 8 values of A in the tile; the copy moves 16",
        lambda: cute.make_tiled_copy_A(
            cute.make_copy_atom(warp.LdMatrix8x8x16bOp(False, 4), cute.Int8),
            cute.make_tiled_mma(warp.MmaI8Op(cute.Int8, shape_mnk=(16, 8, 16))),
        ),
    )
    for width in (cute.Float64, cute.Int64):
        refused(
            "gives each lane words of 32 bits, and an element has 64",
            lambda dtype=width: cute.make_copy_atom(warp.LdMatrix8x8x16bOp(False, 4), dtype),
        )
    refused("moves 1, 2 or 4 matrices", lambda: warp.LdMatrix8x8x16bOp(num_matrices=3))
    refused("hint: LdMatrix8x8x16bOp(transpose=False, num_m", lambda: warp.LdMatrix8x8x16bOp(4))
    refused("takes an MMA operation", lambda: cute.make_mma_atom(CopyUniversalOp()))
    half = warp.MmaF16BF16Op(cute.Float16, cute.Float32, (16, 8, 16))
    refused("(2,0,1):(1,2,0) has no atoms", lambda: cute.make_tiled_mma(half, (2, 0, 1)))
    for permutation, text in [
        ((24, 16, 16), "permutation_mnk has 24 for M: 24 is no multiple of 32 (2 x 16)"),
        ((None, 8), "permutation_mnk has 8 for N: 8 is no multiple of 16"),
        ((None, None, -16), "permutation_mnk has -16 for K"),
        ((cute.make_layout((16, 2), stride=(1, 8)),), "no order of the numbers from 0 to 31"),
        ((cute.make_layout((16, 2), stride=(2, 32)),), "no order of the numbers from 0 to 31"),
        (32, "an entry for each of M, N, K, not 32"),
        ((32, 16, 16, 1), "an entry for each of M, N, K, not (32, 16, 16, 1)"),
    ]:
        refused(text, lambda p=permutation: cute.make_tiled_mma(half, (2, 2, 1), p))
    for thread in (None, (0, 0, 0)):
        refused(
            "get_slice takes the number", lambda t=thread: cute.make_tiled_mma(half).get_slice(t)
        )

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

    refused(
        "gemm: mode K of A has extent 3, but that of B has 2",
        lambda: cute.compile(host, 3, cute.Float32),
    )
    refused("b has elements of Float16", lambda: cute.compile(host, 2, cute.Float16))

    for name in ("partition_A", "partition_B", "partition_C"):
        refused(
            f"hint: x.get_slice(tid).{name}", lambda n=name: getattr(cute.make_tiled_mma(half), n)
        )

    @cute.kernel
    def exchanged():
        mma = cute.make_tiled_mma(half)
        a, b, c = fragments(mma)
        cute.gemm(mma, c, b, a, c)

    @cute.jit
    def launched():
        exchanged().launch(grid=1, block=32)

    refused(
        "a has 4 values for each instruction, which takes 8",
        lambda: cute.compile(launched),
    )


def fragments(mma):
    """Fragments of one instruction, the operands filled and the sums not."""
    a = mma.make_fragment_A(mma.partition_shape_A((16, 16)))
    b = mma.make_fragment_B(mma.partition_shape_B((8, 16)))
    a.fill(1.0)
    b.fill(1.0)
    return a, b, mma.make_fragment_C(mma.partition_shape_C((16, 8)))


@cute.kernel
def sums_kernel(out: cute.Tensor, filled: cute.Constexpr):
    mma = cute.make_tiled_mma(warp.MmaF16BF16Op(cute.Float16, cute.Float32, (16, 8, 16)))
    a, b, c = fragments(mma)
    if cute.const_expr(filled):
        c.fill(0.0)
    for _ in range(2):
        cute.gemm(mma, c, a, b, c)
    cute.autovec_copy(c, mma.get_slice(cute.arch.thread_idx()[0]).partition_C(out))


@cute.jit
def sums(out: cute.Tensor, filled: cute.Constexpr):
    sums_kernel(out, filled).launch(grid=1, block=32)


def test_sums_begin_somewhere(sim):
    out = np.zeros((16, 8), np.float32)
    sums(from_dlpack(out), True)
    assert (out == 32).all()
    with pytest.raises(UninitializedReadError, match=r"accumulators that nobody has written"):
        sums(from_dlpack(out), False)


@cute.kernel
def registers_kernel(out: cute.Tensor, dtype: cute.Constexpr):
    held = cute.make_rmem_tensor((4,), dtype)
    held[1] = dtype(1)
    out[cute.arch.thread_idx()[0]] = held[2].to(cute.Float32)


@cute.jit
def registers(out: cute.Tensor, dtype: cute.Constexpr):
    registers_kernel(out, dtype).launch(grid=1, block=32)


@pytest.mark.parametrize("dtype", [cute.Float16, cute.BFloat16, cute.Float32, cute.Float64])
def test_registers_hold_no_number_before_they_are_written(sim, dtype):
    with pytest.raises(UninitializedReadError, match="element 2 of `held`"):
        registers(np.zeros(32, np.float32), dtype)


# 8-bit matrices ----------------------------------------------------------------------------------


@cute.kernel
def byte_matrices_kernel(a: cute.Tensor, out: cute.Tensor, op: cute.Constexpr):
    """`out` (32, values): what each lane gets of the rows of 16 bytes in `a`."""
    t = cute.arch.thread_idx()[0]
    smem = cute.utils.SmemAllocator()
    sa = smem.allocate_tensor(cute.Int8, cute.make_layout((32, 16), stride=(16, 1)), 16)
    for i in cute.range_constexpr(16):
        sa[t, i] = a[t, i]
    cute.arch.sync_threads()
    held = cute.make_rmem_tensor(out.shape[1], cute.Int8)
    cute.copy(cute.make_copy_atom(op, cute.Int8), sa[t, None], held)
    cute.autovec_copy(held, out[t, None])


@cute.jit
def byte_matrices(a: cute.Tensor, out: cute.Tensor, op: cute.Constexpr):
    byte_matrices_kernel(a, out, op).launch(grid=1, block=32)


BYTE_OPS = [
    (warp.LdMatrix16x16x8bOp(), algebra.byte_matrix_copy(1)),
    (warp.LdMatrix16x16x8bOp(num_matrices=2), algebra.byte_matrix_copy(2)),
    (warp.LdMatrix8x16x8bOp(num_matrices=4), algebra.matrix_copy(4)),
]


def byte_operands(layout):
    a = np.arange(512, dtype=np.int16).astype(np.int8).reshape(32, 16)
    values = algebra.size(layout.in_elements(8).layout_dst_tv, 1)
    return views(a, np.full((32, values), 99, np.int8))


@pytest.mark.parametrize(("op", "layout"), BYTE_OPS, ids=str)
def test_byte_matrices(sim, op, layout):
    """Lanes get what the instruction's layout says: the source's numbering is that of rows."""
    a, out = byte_operands(layout)
    byte_matrices(a, out, op)
    bits = layout.in_elements(8)
    where = {}
    for lane in range(32):
        for byte in range(16):
            where.setdefault(bits.layout_src_tv((lane, byte)), 16 * lane + byte)
    flat = np.arange(512, dtype=np.int16).astype(np.int8)
    count = algebra.size(bits.layout_dst_tv, 1)
    expected = [
        [flat[where[bits.layout_dst_tv((lane, v))]] for v in range(count)] for lane in range(32)
    ]
    np.testing.assert_array_equal(np.from_dlpack(out), expected)


@pytest.mark.skipif(ptxas.find_ptxas() is None, reason="no ptxas here")
def test_byte_matrices_in_ptx():
    op, layout = BYTE_OPS[1]
    tensors = byte_operands(layout)
    text = cute.compile(byte_matrices, *tensors, op, options="--arch sm_100a").stages.text("ptx")
    assert "ldmatrix.sync.aligned.m16n16.x2.trans.shared.b8" in text
    assert ptxas.start(text, "sm_100a").finish().warnings == ()
    for arch in ("sm_90a", "sm_100"):
        with pytest.raises(DSLError, match=f"{arch} has no ldmatrix.b8: only the families"):
            cute.compile(byte_matrices, *tensors, op, options=f"--arch {arch}")


def test_byte_matrices_that_there_are_not():
    for message, wrong in (
        ("1 or 2 matrices, not 4", lambda: warp.LdMatrix16x16x8bOp(num_matrices=4)),
        ("hint: LdMatrix8x16x8bOp loads", lambda: warp.LdMatrix16x16x8bOp(False)),
        ("of 4 or 6 bits, not of 5", lambda: warp.LdMatrix16x16x8bOp(unpack_bits=5)),
        ("does not transpose", lambda: warp.LdMatrix8x16x8bOp(transpose=True, unpack_bits=6)),
        (
            "turns matrices of 8-bit elements, not of 16",
            lambda: cute.make_copy_atom(warp.LdMatrix16x16x8bOp(), cute.Float16),
        ),
        (
            "moves 8-bit elements, not such of 16 bits",
            lambda: cute.make_copy_atom(warp.LdMatrix8x16x8bOp(), cute.Float16),
        ),
    ):
        with pytest.raises(DSLError) as caught:
            wrong()
        assert message in str(caught.value)
