"""wgmma: every element type and canonical layout, A in registers, its fields, what it refuses."""

import ml_dtypes
import numpy as np
import pytest

import basedsl_cute as cute
from basedsl.errors import DSLTypeError
from basedsl_cute import algebra, arch
from basedsl_cute.lowering.ptx import ptxas
from basedsl_cute.nvgpu import warpgroup
from basedsl_cute.nvgpu.matrix_descriptor import canonical
from basedsl_cute.nvgpu.warpgroup import Field, OperandMajorMode, OperandSource
from basedsl_cute.runtime import from_dlpack
from basedsl_cute.utils import hopper_helpers as sm90

NUMPY = {
    cute.Float16: np.float16, cute.BFloat16: ml_dtypes.bfloat16, cute.TFloat32: np.float32,
    cute.Float8E4M3FN: ml_dtypes.float8_e4m3fn, cute.Float8E5M2: ml_dtypes.float8_e5m2,
    cute.Int8: np.int8, cute.Uint8: np.uint8, cute.Float32: np.float32, cute.Int32: np.int32,
}  # fmt: skip
SMEM, RMEM = OperandSource.SMEM, OperandSource.RMEM


@cute.kernel
def multiply(
    a: cute.Tensor,
    b: cute.Tensor,
    c: cute.Tensor,
    mma: cute.TiledMma,
    replace: cute.Boolean,
    kinds: cute.Constexpr,
):
    """C (full of ones before) += A B^T, or = A B^T with `replace`; A (64, K), B (N, K) staged."""
    op = mma.op
    n, k = op.shape_mnk[1], a.shape[1]
    smem = cute.utils.SmemAllocator()
    tiles = []
    for kind, rows, dtype in ((kinds[0], 64, op.a_dtype), (kinds[1], n, op.b_dtype)):
        atom = warpgroup.make_smem_layout_atom(kind, dtype)
        layout = cute.tile_to_shape(atom, (rows, k), (0, 1))
        swizzle = cute.recast_layout(8, dtype.width, layout.inner)
        tiles.append(smem.allocate_tensor(dtype, layout.outer, 1024, swizzle))
    sa, sb = tiles
    thread = arch.thread_idx()[0]
    for i in range(thread, 64 * k, 128):
        sa[i % 64, i // 64] = a[i % 64, i // 64]
    for i in range(thread, n * k, 128):
        sb[i % n, i // n] = b[i % n, i // n]
    arch.fence_view_async_shared()
    arch.sync_threads()
    mine = mma.get_slice(thread)
    ra = mma.make_fragment_A(mine.partition_A(sa))
    if cute.const_expr(op.a_src is RMEM):
        cute.autovec_copy(mine.partition_A(sa), ra)
    rb = mma.make_fragment_B(mine.partition_B(sb))
    acc = mma.make_fragment_C(mma.partition_shape_C((64, n)))
    acc.fill(1)
    if replace:
        mma.set(Field.ACCUMULATE, False)
    warpgroup.fence()
    cute.gemm(mma, acc, ra, rb, acc)
    warpgroup.commit_group()
    warpgroup.wait_group(0)
    cute.autovec_copy(acc, mine.partition_C(c))


@cute.jit
def host(
    a: cute.Tensor,
    b: cute.Tensor,
    c: cute.Tensor,
    replace: cute.Boolean,
    op: cute.Constexpr,
    kinds: cute.Constexpr,
    fields: cute.Constexpr = (),
):
    mma = cute.make_tiled_mma(op)
    for field in fields:
        mma.set(field, True)
    multiply(a, b, c, mma, replace, kinds).launch(grid=1, block=128)


def operands(op, k):
    rng = np.random.default_rng(2)
    shapes = (64, k), (op.shape_mnk[1], k)
    if op.acc_dtype is cute.Int32:
        limits = (np.iinfo(NUMPY[x]) for x in (op.a_dtype, op.b_dtype))
        a, b = (
            rng.integers(x.min, x.max + 1, shape).astype(x.dtype)
            for x, shape in zip(limits, shapes, strict=True)
        )
    else:
        a, b = (
            rng.standard_normal(shape).astype(NUMPY[x])
            for x, shape in zip((op.a_dtype, op.b_dtype), shapes, strict=True)
        )
    if op.a_dtype is cute.TFloat32:  # as the instruction reads them
        a, b = ((x.view(np.uint32) & np.uint32(0xFFFFE000)).view(np.float32) for x in (a, b))
    c = np.full((64, op.shape_mnk[1]), 99, NUMPY[op.acc_dtype])
    wide = np.int64 if op.acc_dtype is cute.Int32 else np.float64
    return a, b, c, a.astype(wide) @ b.astype(wide).T


def views(op, a, b, c):
    tensors = [from_dlpack(x, assumed_align=16) for x in (a, b, c)]
    for tensor, dtype in zip(tensors, (op.a_dtype, op.b_dtype), strict=False):
        tensor.element_type = dtype
    return tensors


def check(op, kinds=None, *, replace=False, fields=(), sign=1):
    k = 2 * max(64, op.shape_mnk[2])
    a, b, c, product = operands(op, k)
    if kinds is None:
        kinds = [
            ("K" if major is OperandMajorMode.K else "MN") + "_SW128"
            for major in (op.a_major_mode, op.b_major_mode)
        ]
    host(*views(op, a, b, c), replace, op, tuple(kinds), fields)
    expected = sign * product + (0 if replace else 1)
    if op.acc_dtype is cute.Int32:
        np.testing.assert_array_equal(c, expected)
        return
    # The hardware adds 8-bit products with fewer bits than float32 has.
    exact = op.acc_dtype is cute.Float32 and op.a_dtype.width > 8
    tolerance = {cute.Float16: 3e-2, cute.Float32: 1e-4 if exact else 1e-2}[op.acc_dtype]
    np.testing.assert_allclose(c.astype(np.float64), expected, rtol=tolerance, atol=tolerance * 5)


def half(n=64, source=SMEM, major_a=OperandMajorMode.K, major_b=OperandMajorMode.K):
    return warpgroup.MmaF16BF16Op(cute.Float16, cute.Float32, (64, n, 16), source, major_a, major_b)


def major_of(kind):
    return OperandMajorMode.MN if kind.startswith("MN") else OperandMajorMode.K


@pytest.mark.parametrize("kind", algebra.SMEM_ATOM_KINDS)
def test_every_layout_of_a(hopper, kind):
    check(half(major_a=major_of(kind)), (kind, "K_SW128"))


@pytest.mark.parametrize("kind", algebra.SMEM_ATOM_KINDS)
def test_every_layout_of_b(hopper, kind):
    check(half(major_b=major_of(kind)), ("K_SW64", kind))


F8 = (cute.Float8E4M3FN, cute.Float8E5M2)
I8 = (cute.Int8, cute.Uint8)
TYPES = [
    (cute.Float16, cute.Float16, cute.Float32),
    (cute.Float16, cute.Float16, cute.Float16),
    (cute.BFloat16, cute.BFloat16, cute.Float32),
    (cute.TFloat32, cute.TFloat32, cute.Float32),
    *((a, b, d) for d in (cute.Float32, cute.Float16) for a in F8 for b in F8),
    *((a, b, cute.Int32) for a in I8 for b in I8),
]


def named(value):
    return value.__name__ if isinstance(value, type) else "-".join(x.__name__ for x in value)


@pytest.mark.parametrize("source", [SMEM, RMEM])
@pytest.mark.parametrize("types", TYPES, ids=named)
def test_every_type(hopper, types, source):
    a, b, acc = types
    check(warpgroup.make_mma_op(a, b, acc, 64, source))


@pytest.mark.parametrize("kind", [k for k in algebra.SMEM_ATOM_KINDS if k.startswith("K")])
@pytest.mark.parametrize("dtype", [cute.TFloat32, cute.Float8E4M3FN, cute.Int8], ids=named)
def test_every_k_major_layout_of_other_widths(hopper, dtype, kind):
    acc = cute.Int32 if dtype is cute.Int8 else cute.Float32
    check(warpgroup.make_mma_op(dtype, dtype, acc, 32), (kind, kind))


@pytest.mark.parametrize("n", [8, 24, 256])
def test_widths(hopper, n):
    check(half(n))


@pytest.mark.parametrize("n", [8, 24, 48])
@pytest.mark.parametrize("types", [TYPES[1], TYPES[-1]], ids=named)
def test_widths_of_other_accumulators(hopper, types, n):
    check(warpgroup.make_mma_op(*types, n))


@pytest.mark.parametrize("types", TYPES[:5] + TYPES[-1:], ids=named)
def test_accumulate_is_a_run_time_value(hopper, types):
    check(warpgroup.make_mma_op(*types, 32), replace=True)


@pytest.mark.parametrize(
    ("fields", "sign"),
    [
        ((Field.NEGATE_A,), -1),
        ((Field.NEGATE_B,), -1),
        ((Field.NEGATE_A, Field.NEGATE_B), 1),
    ],
)
@pytest.mark.parametrize("types", [TYPES[0], TYPES[3], TYPES[4]], ids=named)
def test_negation(hopper, types, fields, sign):
    check(warpgroup.make_mma_op(*types, 32), fields=fields, sign=sign)


# Tiles of several instructions, ranks ------------------------------------------------------------


@cute.kernel
def by_rank(
    a: cute.Tensor, b: cute.Tensor, c: cute.Tensor, mma: cute.TiledMma, rank: cute.Constexpr
):
    """C = A B^T, (128, 64, 64) on one warpgroup, each gemm with operands of `rank` modes."""
    smem = cute.utils.SmemAllocator()
    layout_a = sm90.make_smem_layout_a(sm90.LayoutEnum.ROW_MAJOR, (128, 64, 64), cute.Float16, 1)
    layout_b = sm90.make_smem_layout_b(sm90.LayoutEnum.ROW_MAJOR, (128, 64, 64), cute.Float16, 1)
    swizzle = cute.recast_layout(8, 16, layout_a.inner)
    sa = smem.allocate_tensor(cute.Float16, layout_a.outer, 1024, swizzle)
    sb = smem.allocate_tensor(cute.Float16, layout_b.outer, 1024, swizzle)
    thread = arch.thread_idx()[0]
    for i in range(thread, 128 * 64, 128):
        sa[i % 128, i // 128, 0] = a[i % 128, i // 128]
    for i in range(thread, 64 * 64, 128):
        sb[i % 64, i // 64, 0] = b[i % 64, i // 64]
    arch.fence_view_async_shared()
    arch.sync_threads()
    mine = mma.get_slice(thread)
    ra = mma.make_fragment_A(mine.partition_A(sa))[None, None, None, 0]
    rb = mma.make_fragment_B(mine.partition_B(sb))[None, None, None, 0]
    tc = mine.partition_C(c)
    acc = mma.make_fragment_C(tc)
    ms, ns, ks = cute.size(acc, mode=[1]), cute.size(acc, mode=[2]), cute.size(ra, mode=[2])
    mma.set(Field.ACCUMULATE, False)
    warpgroup.fence()
    if cute.const_expr(rank == 3):
        cute.gemm(mma, acc, ra, rb, acc)
    for k in cute.range_constexpr(ks if rank < 3 else 0):
        if cute.const_expr(rank == 2):
            cute.gemm(mma, acc, ra[None, None, k], rb[None, None, k], acc)
        for m in cute.range_constexpr(ms if rank == 1 else 0):
            for n in cute.range_constexpr(ns):
                part = acc[None, m, n]
                cute.mma_atom_call(mma, part, ra[None, m, k], rb[None, n, k], part)
        mma.set(Field.ACCUMULATE, True)
    warpgroup.commit_group()
    warpgroup.wait_group(0)
    cute.autovec_copy(acc, tc)


@cute.jit
def by_rank_host(a: cute.Tensor, b: cute.Tensor, c: cute.Tensor, rank: cute.Constexpr):
    mma = cute.make_tiled_mma(half(32))
    by_rank(a, b, c, mma, rank).launch(grid=1, block=128)


@pytest.mark.parametrize("rank", [1, 2, 3])
def test_fragments_of_every_rank(hopper, rank):
    rng = np.random.default_rng(5)
    a, b = (rng.standard_normal((x, 64)).astype(np.float16) for x in (128, 64))
    c = np.full((128, 64), np.nan, np.float32)
    by_rank_host(*(from_dlpack(x, assumed_align=16) for x in (a, b, c)), rank)
    np.testing.assert_allclose(c, a.astype(np.float64) @ b.astype(np.float64).T, atol=1e-4)


# PTX ---------------------------------------------------------------------------------------------


def compiled(op, fields=()):
    a, b, c, _ = operands(op, 2 * op.shape_mnk[2])
    kinds = tuple(
        "K_SW32" if major is OperandMajorMode.K else "MN_SW32"
        for major in (op.a_major_mode, op.b_major_mode)
    )
    tensors = views(op, a, b, c)
    return cute.compile(host, *tensors, True, op, kinds, fields, options="--arch sm_90a")


INSTRUCTIONS = [
    (half(64, SMEM, OperandMajorMode.MN), (), "m64n64k16.f32.f16.f16", "first, 1, 1, 1, 0"),
    (half(64, RMEM, OperandMajorMode.K, OperandMajorMode.MN), (), "k16.f32.f16.f16", "1, 1, 1"),
    (warpgroup.make_mma_op(*TYPES[1], 8), (), "m64n8k16.f16.f16.f16", "1, 1, 0, 0"),
    (warpgroup.make_mma_op(*TYPES[2], 64, RMEM), (), "k16.f32.bf16.bf16", "first, 1, 1, 0"),
    (warpgroup.make_mma_op(*TYPES[3], 64), (Field.NEGATE_B,), "k8.f32.tf32.tf32", "first, 1, -1"),
    (warpgroup.make_mma_op(*TYPES[3], 64, RMEM), (Field.NEGATE_A,), "k8.f32.tf32", "first, -1, 1"),
    (warpgroup.make_mma_op(*TYPES[5], 64), (), "m64n64k32.f32.e4m3.e5m2", "first, 1, 1"),
    (warpgroup.make_mma_op(*TYPES[-6], 64, RMEM), (), "k32.f16.e5m2.e4m3", "first, 1, 1"),
    (warpgroup.make_mma_op(*TYPES[-2], 64, RMEM), (), "k32.s32.u8.s8", "b0, first"),
]


@pytest.mark.skipif(ptxas.find_ptxas() is None, reason="no ptxas here")
@pytest.mark.parametrize(("op", "fields", "name", "modifiers"), INSTRUCTIONS, ids=str)
def test_ptx_that_ptxas_takes(op, fields, name, modifiers):
    ptx = compiled(op, fields).stages.text("ptx")
    first = next(line for line in ptx.splitlines() if "wgmma.mma_async" in line)
    assert name in first and modifiers + ";" in first
    assert ".local" not in ptx
    made = ptxas.start(ptx, "sm_90a").finish()
    assert made.warnings == ()
    (kernel,) = made.kernels.values()
    assert (kernel.spill_stores, kernel.spill_loads, kernel.stack) == (0, 0, 0)


# Layouts and descriptors -------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("types", "source", "name"),
    [
        (TYPES[0], SMEM, "SM90::GMMA::MMA_64x64x16_F32F16F16_SS<K,K>"),
        (TYPES[0], RMEM, "SM90::GMMA::MMA_64x64x16_F32F16F16_RS<K,K>"),
        (TYPES[3], RMEM, "SM90::GMMA::MMA_64x64x8_F32TF32TF32_RS_TN"),
        (TYPES[4], SMEM, "SM90::GMMA::MMA_64x64x32_F32E4M3E4M3_SS_TN"),
        (TYPES[4], RMEM, "SM90::GMMA::MMA_64x64x32_F32E4M3E4M3_RS_TN"),
        (TYPES[-4], SMEM, "SM90::GMMA::MMA_64x64x32_S32S8S8_SS_TN"),
    ],
    ids=str,
)
def test_layouts_are_those_of_cute(types, source, name):
    """`algebra.mma_atom` agrees with the shared vectors (tests/cute/algebra/test_vectors.py)."""
    mma = cute.make_tiled_mma(warpgroup.make_mma_op(*types, 64, source), (2, 1, 1))
    known = algebra.mma_atom(name)
    assert mma.shape_mnk == known.shape_mnk
    for which in ("thr_id", "tv_layout_A", "tv_layout_B", "tv_layout_C"):
        assert getattr(mma, which) == getattr(known, which)
    assert mma.size == 256 and str(mma.thr_layout_vmnk) == "(128,2,1,1):(1,128,0,0)"
    assert algebra.size(mma.tv_layout_C_tiled) == 128 * 64


def test_descriptors_by_hand():
    """PTX ISA, "Strides": 8 rows of 128 bytes are 1024 bytes apart."""
    layout = algebra.tile_to_shape(algebra.gmma_smem_atom("K_SW128", 16), (64, 64), (0, 1)).outer
    found = canonical(algebra.composition(layout, ((64), (16))), 3, True, 16)
    assert (found.stride, found.swizzle_bits) == (1024, 3)
    assert found.constant_bits == 1 << 62 | 64 << 32 | 1 << 16


def test_a_layout_that_wgmma_cannot_read():
    plain = algebra.Layout((64, 16), (16, 1))
    with pytest.raises(DSLTypeError, match="cannot read a K-major operand"):
        canonical(plain, 3, True, 16)


# Choices -----------------------------------------------------------------------------------------

K, MN = OperandMajorMode.K, OperandMajorMode.MN


@pytest.mark.parametrize("types", TYPES, ids=named)
def test_the_trivial_tiled_mma_is_chosen_by_type(types):
    mma = sm90.make_trivial_tiled_mma(types[0], types[1], K, K, types[2], (2, 1, 1), (64, 96))
    assert mma.op == warpgroup.make_mma_op(*types, 96)
    assert mma.size == 256 and mma.get_tile_size(0) == 128


def op16(dtype, acc, shape, *rest):
    return lambda: warpgroup.MmaF16BF16Op(dtype, acc, shape, *rest)


WRONG = [
    (op16(cute.Float32, cute.Float32, (64, 64, 16)), "takes operands of Float16 or BFloat16"),
    (op16(cute.Int8, cute.Int32, (64, 64, 32)), "hint: MmaI8Op multiplies Int8"),
    (op16(cute.Float64, cute.Float64, (64, 64, 16)), "wgmma multiplies Float16, BFloat16, TF"),
    (op16(cute.BFloat16, cute.Float16, (64, 64, 16)), "of BFloat16 accumulates in Float32, not"),
    (op16(cute.Float16, cute.Float32, (64, 12, 16)), "N is a multiple of 8 from 8 to 256"),
    (op16(cute.Float16, cute.Float32, (128, 64, 16)), r"the shapes \(64, N, 16\), not \(128"),
    (op16(cute.Float16, cute.Float32, (64, 64, 16), RMEM, MN), "A in registers is K-major"),
    (
        lambda: warpgroup.MmaF8Op(cute.Float8E5M2, cute.Float16, cute.Float32, (64, 64, 32)),
        "MmaF8Op takes operands of Float8E4M3FN or Float8E5M2, not Float16",
    ),
    (
        lambda: warpgroup.make_mma_op(cute.Float8E5M2, cute.Float8E5M2, cute.Float32, 64, SMEM, MN),
        "MmaF8Op takes A K-major only: wgmma transposes 16-bit operands, no others",
    ),
    (
        lambda: warpgroup.make_mma_op(cute.TFloat32, cute.TFloat32, cute.Float32, 64, SMEM, K, MN),
        "MmaTF32Op takes B K-major only",
    ),
    (
        lambda: warpgroup.MmaI8Op(cute.Int8, cute.Uint8, cute.Int32, (64, 40, 32)),
        "N of integers is 8, 24 or a multiple of 16",
    ),
    (
        lambda: warpgroup.make_mma_op(cute.Float16, cute.BFloat16, cute.Float32, 64),
        "wgmma does not mix operands of Float16 and BFloat16",
    ),
    (
        lambda: warpgroup.make_mma_op(cute.Float32, cute.Float32, cute.Float32, 64),
        "declare the operands as TFloat32",
    ),
]


@pytest.mark.parametrize(("make", "message"), WRONG, ids=[text for _, text in WRONG])
def test_operations_that_there_are_not(make, message):
    with pytest.raises(DSLTypeError, match=message):
        make()


def test_fields_that_there_are_not():
    mma = cute.make_tiled_mma(half())
    assert mma.get(Field.ACCUMULATE) is True
    with pytest.raises(DSLTypeError, match=r"has Field.ACCUMULATE, Field.NEGATE_A, Field.NEGATE_B"):
        mma.set("SFA", 1)
    with pytest.raises(DSLTypeError, match="True or False when the kernel is compiled"):
        mma.set(Field.NEGATE_A, 1)
    integers = cute.make_tiled_mma(warpgroup.make_mma_op(*TYPES[-1], 64))
    with pytest.raises(DSLTypeError, match="MmaI8Op has no field"):
        integers.set(Field.NEGATE_A, True)
    with pytest.raises(DSLTypeError, match="has no fields at all"):
        cute.make_tiled_mma(cute.nvgpu.MmaUniversalOp(cute.Float32)).get(Field.ACCUMULATE)


@cute.jit
def wrong_fragments(which: cute.Constexpr):
    wrong_kernel(which).launch(grid=1, block=128)


@cute.kernel
def wrong_kernel(which: cute.Constexpr):
    mma = cute.make_tiled_mma(half(64, RMEM))
    smem = cute.utils.SmemAllocator()
    layout = sm90.make_smem_layout_b(sm90.LayoutEnum.ROW_MAJOR, (64, 64, 64), cute.Float16, 1)
    swizzle = cute.recast_layout(8, 16, layout.inner)
    sb = smem.allocate_tensor(cute.Float16, layout.outer, 1024, swizzle)
    rb = mma.make_fragment_B(mma.get_slice(0).partition_B(sb))[None, None, None, 0]
    ra = mma.make_fragment_A(mma.partition_shape_A((64, 64)))
    acc = mma.make_fragment_C(mma.partition_shape_C((64, 64)))
    if cute.const_expr(which == "b in registers"):
        cute.gemm(mma, acc, ra, cute.make_rmem_tensor((4, 1, 4), cute.Float16), acc)
    elif cute.const_expr(which == "a of floats"):
        cute.gemm(mma, acc, cute.make_rmem_tensor(ra.shape, cute.Float32), rb, acc)
    elif cute.const_expr(which == "fewer steps"):
        cute.gemm(mma, acc, ra[None, None, 0], rb, acc)
    elif cute.const_expr(which == "another d"):
        other = mma.make_fragment_C(mma.partition_shape_C((64, 64)))
        cute.gemm(mma, acc, ra, rb, other)
    elif cute.const_expr(which == "values apart"):
        strided = cute.make_rmem_tensor(cute.make_layout((8, 1, 4), stride=(4, 0, 1)), cute.Float16)
        cute.gemm(mma, acc, strided, rb, acc)
    elif cute.const_expr(which == "two instructions"):
        cute.mma_atom_call(mma, acc, ra, rb, acc)
    elif cute.const_expr(which == "a shape for b"):
        mma.make_fragment_B((64, 64))


@pytest.mark.parametrize(
    ("which", "message"),
    [
        ("b in registers", "takes b as descriptors of shared memory"),
        ("a of floats", "a has elements of Float32, not Float16"),
        ("fewer steps", "gemm: mode K of A has extent"),
        ("another d", "pass the same tensor as d and c"),
        ("values apart", "takes the 8 values of a in consecutive registers"),
        ("two instructions", "is more than one instruction takes"),
        ("a shape for b", "wgmma reads B from shared memory"),
    ],
)
def test_wrong_fragments(sim, which, message):
    with pytest.raises(DSLTypeError, match=message) as caught:
        cute.compile(wrong_fragments, which)
    assert caught.value.span is not None
    assert caught.value.span.filename == __file__
