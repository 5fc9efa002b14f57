"""tcgen05.mma of one block: types, shapes, major modes and swizzles against float64, errors."""

import ml_dtypes
import numpy as np
import pytest

import basedsl_cute as cute
from basedsl.errors import DSLError, DSLTypeError
from basedsl_cute import arch
from basedsl_cute.lowering.ptx import ptxas
from basedsl_cute.nvgpu import tcgen05
from basedsl_cute.nvgpu.tcgen05 import CtaGroup, Field, OperandMajorMode, OperandSource
from basedsl_cute.runtime import from_dlpack
from basedsl_cute.utils import blackwell_helpers as sm100

NUMPY = {
    cute.Float16: np.float16, cute.BFloat16: ml_dtypes.bfloat16, cute.TFloat32: np.float32,
    cute.Float8E4M3FN: ml_dtypes.float8_e4m3fn, cute.Float8E5M2: ml_dtypes.float8_e5m2,
    cute.Int8: np.int8, cute.Uint8: np.uint8, cute.Float32: np.float32, cute.Int32: np.int32,
}  # fmt: skip
K, MN = OperandMajorMode.K, OperandMajorMode.MN
ONE = CtaGroup.ONE


@cute.kernel
def multiply(
    mma: cute.TiledMma,
    kinds: cute.Constexpr,
    options: cute.Constexpr,
    a: cute.Tensor,
    b: cute.Tensor,
    c: cute.Tensor,
):
    """C = A B^T, or the double of it with "twice"; A (M, K), B (N, K), C (M, N)."""
    t, _, _ = arch.thread_idx()
    warp = arch.make_warp_uniform(arch.warp_idx())
    op = mma.op
    smem = cute.utils.SmemAllocator()
    holder = smem.allocate_array(cute.Int32, 1)
    done = smem.allocate_array(cute.Int64, 1)
    tiles = []
    for operand, kind, x in (("A", kinds[0], a), ("B", kinds[1], b)):
        dtype = op.a_dtype if operand == "A" else op.b_dtype
        atom = tcgen05.make_smem_layout_atom(kind, dtype)
        shape = mma.tiling.partition_shape(operand, x.shape)
        layout = tcgen05.tile_to_mma_shape(atom, shape, (0, 1) if kind[0] == "K" else (1, 0))
        tile = smem.allocate_tensor(dtype, layout.outer, 1024, layout.inner)
        whole = mma.tiling.partition(operand, x, 0)
        for i in range(t, cute.size(x), 128):
            tile[i] = whole[i]
        tiles.append(tile)
    if warp == 0:
        with arch.elect_one():
            arch.mbarrier_init(done, 1)
            arch.mbarrier_init_fence()
        arch.alloc_tmem(256, holder)
        arch.relinquish_tmem_alloc_permit()
    arch.fence_view_async_shared()
    arch.sync_threads()
    start = arch.retrieve_tmem_ptr(op.acc_dtype, 16, holder)
    acc = cute.make_tensor(start, mma.make_fragment_C(mma.partition_shape_C(c.shape)).layout)
    ra, rb = mma.make_fragment_A(tiles[0]), mma.make_fragment_B(tiles[1])
    if warp == 0:
        mma.set(Field.ACCUMULATE, "add" in options)
        if cute.const_expr("negate" in options):
            mma.set(Field.NEGATE_A, True)
        cute.gemm(mma, acc, ra, rb, acc)
        if cute.const_expr("twice" in options):
            mma.set(Field.ACCUMULATE, True)
            cute.gemm(mma, acc, ra, rb, acc)
        if cute.const_expr("uncommitted" not in options):
            tcgen05.commit(done)
    if cute.const_expr("early" in options):
        arch.sync_threads()
    else:
        arch.mbarrier_wait(done, 0)
        arch.tcgen05_after_thread_sync()
    tile = acc[(None, None), 0, 0]
    result = mma.get_slice(0).partition_C(c)[(None, None), 0, 0]
    rows = 32 if cute.const_expr(op.shape_mnk[0] == 128) else 16
    packed = op.acc_dtype.width == 16
    ops = {32: tcgen05.Ld32x32bOp, 16: tcgen05.Ld16x32bx2Op}
    pack = tcgen05.Pack.PACK_16b_IN_32b if packed else tcgen05.Pack.NONE
    load = tcgen05.make_tmem_copy(
        cute.make_copy_atom(ops[rows](tcgen05.Repetition.x4, pack), op.acc_dtype), tile
    )
    mine = load.get_slice(t)
    there = mine.partition_D(result)
    registers = cute.make_rmem_tensor(there.shape, op.acc_dtype)
    cute.copy(load, mine.partition_S(tile), registers)
    cute.autovec_copy(registers, there)
    arch.sync_threads()
    if warp == 0:
        arch.dealloc_tmem(start, 256)


def compile_multiply(op, kinds, k, target, options=(), seed=0):
    m, n, _ = op.shape_mnk
    rng = np.random.default_rng(seed)

    def values(dtype, shape):
        kind = NUMPY[dtype]
        if np.issubdtype(kind, np.integer):
            limits = np.iinfo(kind)
            return rng.integers(limits.min, limits.max, shape, kind, endpoint=True)
        found = rng.standard_normal(shape).astype(kind)
        if dtype is cute.TFloat32:  # numbers that it has
            found = (found.view(np.uint32) & np.uint32(0xFFFFE000)).view(np.float32)
        return found

    a, b = values(op.a_dtype, (m, k)), values(op.b_dtype, (n, k))
    c = np.full((m, n), -1, NUMPY[op.acc_dtype])
    args = []
    for x, dtype in ((a, op.a_dtype), (b, op.b_dtype), (c, op.acc_dtype)):
        tensor = from_dlpack(x.view(np.uint8) if x.dtype.itemsize == 1 else x)
        tensor.element_type = dtype
        args.append(tensor)

    @cute.jit
    def host(a: cute.Tensor, b: cute.Tensor, c: cute.Tensor):
        mma = cute.make_tiled_mma(op)
        multiply(mma, kinds, options, a, b, c).launch(grid=(1, 1, 1), block=(128, 1, 1))

    return cute.compile(host, *args, options=f"--arch {target}"), args, (a, b, c)


def check(op, kinds, k, options=(), factor=1):
    compiled, args, (a, b, c) = compile_multiply(op, kinds, k, "sim", options)
    compiled(*args)
    exact = factor * (a.astype(np.float64) @ b.astype(np.float64).T)
    if op.acc_dtype is cute.Int32:
        np.testing.assert_array_equal(c, exact.astype(np.int64).astype(np.int32))
    elif op.acc_dtype is cute.Float16:
        np.testing.assert_allclose(c.astype(np.float64), exact, rtol=2e-2, atol=2e-2)
    else:
        np.testing.assert_allclose(c, exact, rtol=1e-5, atol=1e-4)


F16 = [f"{major}_{width}" for major in ("K", "MN") for width in ("INTER", "SW32", "SW64", "SW128")]


@pytest.mark.parametrize("kind", F16)
def test_each_canonical_layout_of_16_bits(kind):
    major = K if kind.startswith("K") else MN
    op = tcgen05.MmaF16BF16Op(
        cute.Float16, cute.Float32, (128, 64, 16), ONE, OperandSource.SMEM, major, major
    )
    check(op, (kind, kind), 64)


@pytest.mark.parametrize("kind", ["K_SW128", "MN_SW128_32B"])
def test_tf32_also_in_chunks_of_32_bytes(kind):
    major = K if kind.startswith("K") else MN
    op = tcgen05.MmaTF32Op((128, 32, 8), ONE, OperandSource.SMEM, major, major)
    check(op, (kind, kind), 32)


@pytest.mark.parametrize(
    ("a", "b", "acc"),
    [
        (cute.Float8E4M3FN, cute.Float8E5M2, cute.Float32),
        (cute.Float8E5M2, cute.Float8E5M2, cute.Float16),
    ],
)
def test_float8(a, b, acc):
    check(tcgen05.MmaFP8Op(a, b, acc, (128, 48, 32)), ("K_SW64", "K_SW64"), 64)


@pytest.mark.parametrize("dtype", [cute.Int8, cute.Uint8])
def test_integers_wrap_exactly(dtype):
    check(tcgen05.MmaI8Op(dtype, (128, 32, 32)), ("K_SW128", "K_SW128"), 128)


def test_bfloat16_and_operands_of_different_major_modes():
    op = tcgen05.MmaF16BF16Op(
        cute.BFloat16, cute.Float32, (128, 64, 16), ONE, OperandSource.SMEM, K, MN
    )
    check(op, ("K_SW32", "MN_SW64"), 32)


@pytest.mark.parametrize("n", [8, 72, 256])
def test_64_rows_take_the_upper_half_of_each_quarter(n):
    check(tcgen05.MmaF16BF16Op(cute.Float16, cute.Float32, (64, n, 16)), ("K_SW32", "K_SW32"), 32)


def test_a_float16_accumulator_takes_a_column_each():
    op = tcgen05.MmaF16BF16Op(cute.Float16, cute.Float16, (128, 32, 16))
    check(op, ("K_SW64", "K_SW64"), 32)


def test_it_accumulates_and_negates():
    op = tcgen05.MmaF16BF16Op(cute.Float16, cute.Float32, (128, 16, 16))
    check(op, ("K_SW32", "K_SW32"), 16, ("twice", "negate"), -2)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("add",), "adds to tensor memory that nobody has written"),
        (("early",), "reads tensor memory that a tcgen05.mma may still write"),
        (("uncommitted",), "of the mbarrier"),
    ],
)
def test_the_simulator_reports(options, message):
    op = tcgen05.MmaF16BF16Op(cute.Float16, cute.Float32, (128, 16, 16))
    compiled, args, _ = compile_multiply(op, ("K_SW32", "K_SW32"), 16, "sim", options)
    with pytest.raises(DSLError) as error:
        compiled(*args)
    assert message in str(error.value)


PTX = [
    (tcgen05.MmaF16BF16Op(cute.Float16, cute.Float32, (128, 64, 16)), "f16"),
    (tcgen05.MmaTF32Op((128, 64, 8)), "tf32"),
    (tcgen05.MmaI8Op(cute.Int8, (128, 64, 32)), "i8"),
    (tcgen05.MmaFP8Op(*[cute.Float8E4M3FN] * 2, cute.Float32, (128, 64, 32)), "f8f6f4"),
    (
        tcgen05.MmaF8F6F4Op(cute.Float8E5M2, cute.Float8E4M3FN, cute.Float32, (128, 64, 32)),
        "f8f6f4",
    ),
]


@pytest.mark.skipif(ptxas.find_ptxas() is None, reason="there is no ptxas")
@pytest.mark.parametrize(("op", "kind"), PTX)
def test_ptxas_takes_each_kind(op, kind):
    compiled, *_ = compile_multiply(op, ("K_SW128", "K_SW128"), 1024 // op.a_dtype.width, "sm_100a")
    text = compiled.stages.text("ptx")
    assert text.count(f"tcgen05.mma.cta_group::1.kind::{kind}") == 4
    assert "tcgen05.commit.cta_group::1.mbarrier::arrive::one" in text
    assert compiled.__cubin__


def test_integers_are_of_one_architecture():
    with pytest.raises(DSLTypeError, match=r"sm_103a has no tcgen05.mma of kind i8: only sm_100a"):
        compile_multiply(PTX[2][0], ("K_SW32", "K_SW32"), 32, "sm_103a")


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (
            lambda: tcgen05.MmaF16BF16Op(cute.Float32, cute.Float32, (128, 64, 16)),
            "takes A of Float16",
        ),
        (lambda: tcgen05.MmaF16BF16Op(cute.BFloat16, cute.Float16, (128, 64, 16)), "in Float32"),
        (lambda: tcgen05.MmaF16BF16Op(cute.Float16, cute.Float32, (96, 64, 16)), "M is 64 or 128"),
        (lambda: tcgen05.MmaF16BF16Op(cute.Float16, cute.Float32, (128, 64, 32)), "(M, N, 16)"),
        (lambda: tcgen05.MmaI8Op(cute.Int8, (128, 24, 32)), "N is a multiple of 16"),
        (
            lambda: tcgen05.MmaTF32Op((128, 64, 8), ONE, OperandSource.TMEM, MN),
            "A in tensor memory is K-major",
        ),
    ],
)
def test_an_operation_that_there_is_not(make, message):
    with pytest.raises(DSLTypeError) as error:
        make()
    assert message in error.value.message


def test_the_helpers_choose_the_widest_swizzle():
    mma = sm100.make_trivial_tiled_mma(cute.Float16, K, MN, cute.Float32, ONE, (128, 96))
    a = sm100.make_smem_layout_a(mma, (128, 96, 64), cute.Float16, 3)
    b = sm100.make_smem_layout_b(mma, (128, 96, 64), cute.Float16, 3)
    assert str(a) == "S<3,3,3> o 0 o ((128,16),1,4,(1,3)):((64,1),0,16,(0,8192))"
    assert str(b.inner) == "S<2,3,3>" and b.shape[1:3] == (1, 4)
    row_major = cute.utils.LayoutEnum.ROW_MAJOR
    tile = sm100.compute_epilogue_tile_shape((128, 128, 64), False, row_major, cute.Float16)
    assert str(tile) == "(128:1, 32:1)"
    atom = sm100.get_tmem_load_op(
        (128, 128, 64), row_major, cute.Float16, cute.Float32, tile, False
    )
    assert atom.op == tcgen05.Ld32x32bOp(tcgen05.Repetition.x32)
