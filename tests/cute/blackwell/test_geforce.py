"""Block-scaled mma.sync of GeForce Blackwell GPUs, its ldmatrix forms, and two GEMMs."""

import ml_dtypes
import numpy as np
import pytest

import basedsl_cute as cute
from basedsl.errors import DSLError
from basedsl.testing import slow_but
from basedsl_cute.lowering.ptx import ptxas
from basedsl_cute.nvgpu import warp
from basedsl_cute.runtime import from_dlpack
from tests.cute.blackwell.geforce_gemm import GeforceGemm
from tests.cute.blackwell.test_block_scaled_gemm import aligned, factors, operand

F4, E4, E5 = cute.Float4E2M1FN, cute.Float8E4M3FN, cute.Float8E5M2
E8, F32 = cute.Float8E8M0FNU, cute.Float32
NVFP4, MXFP4 = warp.MmaMXF4NVF4Op(F4, F32, E4), warp.MmaMXF4Op(F4, F32, E8)
MXFP8, MIXED = warp.MmaMXF8Op(E4, F32, E8), warp.MmaMXF8F6F4Op(E5, F4, F32, E8)
CASES = {
    "nvfp4": (GeforceGemm(NVFP4, (128, 128, 128)), (256, 128, 256)),
    "nvfp4, ping-pong": (GeforceGemm(NVFP4, (128, 64, 128), True), (256, 256, 256)),
    "mxfp4": (GeforceGemm(MXFP4, (128, 128, 128)), (128, 128, 384)),
    "mxfp8": (GeforceGemm(MXFP8, (128, 128, 128)), (128, 128, 256)),
    "mxfp8 x mxfp4, ping-pong": (GeforceGemm(MIXED, (128, 64, 128), True), (384, 128, 128)),
}


# One instruction, from the PTX ISA alone ----------------------------------------------------------

BITS = {"e2m3": 6, "e3m2": 6, "e2m1": 4}
FLOATS = {
    E4: ml_dtypes.float8_e4m3fn, E5: ml_dtypes.float8_e5m2, F4: ml_dtypes.float4_e2m1fn,
    cute.Float6E2M3FN: ml_dtypes.float6_e2m3fn, cute.Float6E3M2FN: ml_dtypes.float6_e3m2fn,
    E8: ml_dtypes.float8_e8m0fnu,
}  # fmt: skip


@cute.kernel
def one_kernel(a: cute.Tensor, b: cute.Tensor, sa: cute.Tensor, sb: cute.Tensor, c: cute.Tensor,
               op: cute.Constexpr, by_fields: cute.Constexpr):  # fmt: skip
    """Each lane reads its registers as they are: words of A and B, bytes of factors, sums."""
    t, _, _ = cute.arch.thread_idx()
    mma = cute.make_mma_atom(op)
    held = []
    for x, words, dtype in ((a, 4, op.a_dtype), (b, 2, op.b_dtype)):
        made = cute.make_rmem_tensor((words,), cute.Int32)
        cute.autovec_copy(x[t, None], made)
        as_bytes = dtype.width < 8 and op.shape_mnk[2] == 32
        held.append(cute.recast_tensor(made, cute.Int8 if as_bytes else dtype))
    scales = []
    for x in (sa, sb):
        made = cute.make_rmem_tensor((op.factors,), cute.Uint8)
        cute.autovec_copy(x[t, None], made)
        scales.append(cute.recast_tensor(made, op.sf_dtype))
    acc = cute.make_rmem_tensor((4,), cute.Float32)
    cute.autovec_copy(c[t, None], acc)
    if cute.const_expr(by_fields):
        mma.set(warp.Field.SFA, scales[0].iterator)
        mma.set(warp.Field.SFB, scales[1].iterator)
        cute.gemm(mma, acc, held[0], held[1], acc)
    else:
        cute.gemm(mma, acc, [held[0], scales[0]], [held[1], scales[1]], acc)
    cute.autovec_copy(acc, c[t, None])


@cute.jit
def one(a: cute.Tensor, b: cute.Tensor, sa: cute.Tensor, sb: cute.Tensor, c: cute.Tensor,
        op: cute.Constexpr, by_fields: cute.Constexpr = False):  # fmt: skip
    one_kernel(a, b, sa, sb, c, op, by_fields).launch(grid=1, block=32)


def codes_of(rng, dtype, shape):
    codes = rng.integers(0, 1 << dtype.width, shape, np.uint8)
    values = codes.view(FLOATS[dtype]).astype(float)
    codes[~np.isfinite(values)] = 0
    return codes, codes.view(FLOATS[dtype]).astype(float)


def lane_words(codes, dtype, rows, k):
    """The words (32, n) of the lanes: four of them share a row; each has 32 bits of it, then those
    8 rows below, then the same 16 bytes further along K.
    """
    if k == 64:
        raw = codes[:, ::2] | codes[:, 1::2] << 4
    else:
        raw = codes << 2 if dtype.width == 4 else codes
    words = np.ascontiguousarray(raw).view(np.int32)  # (rows, 8)
    lane = np.arange(32)
    return np.stack(
        [words[lane // 4 + 8 * i, lane % 4 + 4 * j] for j in (0, 1) for i in range(rows // 8)], 1
    )


def instruction(op, seed=0):
    """Tensors of one instruction and what C is to be; registers that do not count are random."""
    rng = np.random.default_rng(seed)
    k = op.shape_mnk[2]
    a, exact_a = codes_of(rng, op.a_dtype, (16, k))
    b, exact_b = codes_of(rng, op.b_dtype, (8, k))
    lane = np.arange(32)
    scales = []
    for rows, lanes in ((16, lambda r: r % 8 * 4 + r // 8), (8, lambda r: r * 4)):
        held = rng.integers(0, 256, (32, op.factors), np.uint8)
        own = rng.integers(115, 140, (rows, op.factors), np.uint8)
        if op.sf_dtype is E4:
            own = rng.integers(0, 0x7F, (rows, op.factors), np.uint8)
        held[[lanes(r) for r in range(rows)]] = own | (0x80 if op.sf_dtype is E4 else 0)
        scales.append(
            (held, np.repeat(own.view(FLOATS[op.sf_dtype]).astype(float), k // op.factors, 1))
        )
    c = rng.standard_normal((16, 8)).astype(np.float32)
    exact = (exact_a * scales[0][1]) @ (exact_b * scales[1][1]).T + c
    place = np.stack([(lane // 4 + 8 * (v // 2)) * 8 + lane % 4 * 2 + v % 2 for v in range(4)], 1)
    arrays = [
        lane_words(a, op.a_dtype, 16, k), lane_words(b, op.b_dtype, 8, k), scales[0][0],
        scales[1][0], c.ravel()[place],
    ]  # fmt: skip
    arrays = [aligned(np.ascontiguousarray(x)) for x in arrays]
    return [from_dlpack(x, assumed_align=16) for x in arrays], arrays, exact.ravel()[place]


OPS = [
    NVFP4, MXFP4, MXFP8, MIXED, warp.MmaMXF8F6F4Op(F4, E4, F32, E8),
    warp.MmaMXF8F6F4Op(cute.Float6E3M2FN, cute.Float6E2M3FN, F32, E8),
]  # fmt: skip


def test_pairs_of_types_that_are_multiplied_as_bytes():
    pairs = warp.mma.MXF8F6F4_SUPPORTED_PAIRS
    assert {(F4, E4), (F4, E5), (E4, F4), (E5, F4), (E4, E5)} < {*pairs}
    for a, b in pairs:
        op = warp.MmaMXF8F6F4Op(a, b, F32, E8)
        assert (op.shape_mnk, op.a_dtype, op.b_dtype) == ((16, 8, 32), a, b)


@pytest.mark.parametrize("by_fields", [False, True])
@pytest.mark.parametrize("op", OPS, ids=str)
def test_an_instruction(op, by_fields):
    tensors, arrays, exact = instruction(op, by_fields)
    cute.compile(one, *tensors, op, by_fields, options="--arch sim")(*tensors)
    np.testing.assert_allclose(arrays[-1], exact, rtol=1e-6)


@pytest.mark.skipif(ptxas.find_ptxas() is None, reason="there is no ptxas")
@pytest.mark.parametrize("op", OPS, ids=str)
def test_ptxas_takes_an_instruction(op):
    tensors, *_ = instruction(op)
    for arch in ("sm_120a", "sm_121a"):
        compiled = cute.compile(one, *tensors, op, options=f"--arch {arch}")
        text = compiled.stages.text("ptx")
        assert f".kind::{op.kind}.block_scale.scale_vec::{op.factors}X" in text
        assert ptxas.start(text, arch).finish().warnings == ()
    with pytest.raises(DSLError, match=r"sm_100a has no mma.sync with scale factors"):
        cute.compile(one, *tensors, op, options="--arch sm_100a")


# Two kernels --------------------------------------------------------------------------------------


def arguments(gemm, mnk):
    m, n, k = mnk
    rng = np.random.default_rng(0)
    a, raw_a = operand(rng, gemm.op.a_dtype, m, k)
    b, raw_b = operand(rng, gemm.op.b_dtype, n, k)
    fa, raw_fa = factors(rng, gemm.op.sf_dtype, m, k, gemm.vector)
    fb, raw_fb = factors(rng, gemm.op.sf_dtype, n, k, gemm.vector)
    c = np.full((m, n), np.nan, ml_dtypes.bfloat16)
    exact = (a * np.repeat(fa, gemm.vector, 1)) @ (b * np.repeat(fb, gemm.vector, 1)).T
    arrays = [aligned(x) for x in (raw_a, raw_b, raw_fa, raw_fb, c)]
    return [from_dlpack(x, assumed_align=32) for x in arrays], arrays, exact


@pytest.mark.parametrize("name", slow_but(CASES, "mxfp8 x mxfp4, ping-pong"))
def test_against_float64(name):
    gemm, mnk = CASES[name]
    tensors, arrays, exact = arguments(gemm, mnk)
    cute.compile(gemm, *tensors, options="--arch sim")(*tensors)
    found = arrays[-1].astype(float)
    np.testing.assert_allclose(found, exact, rtol=4e-3, atol=1e-5 * np.abs(exact).max())


@pytest.mark.skipif(ptxas.find_ptxas() is None, reason="there is no ptxas")
@pytest.mark.slow
@pytest.mark.parametrize("name", CASES)
def test_ptxas_takes_it(name):
    gemm, mnk = CASES[name]
    tensors, *_ = arguments(gemm, mnk)
    compiled = cute.compile(gemm, *tensors, options="--arch sm_120a")
    (resources,) = compiled.resources.values()
    assert ".block_scale" in compiled.stages.text("ptx")
    assert resources.spills == 0


@pytest.mark.parametrize(("wrong", "message"), [
    (lambda: warp.MmaMXF4Op(E4, F32, E8), "multiplies Float4E2M1FN, not Float8E4M3FN"),
    (lambda: warp.MmaMXF8Op(E4, cute.Float16, E8), "accumulates in Float32, not Float16"),
    (lambda: warp.MmaMXF4NVF4Op(F4, F32, E8), "takes factors of Float8E4M3FN for 16 elements"),
    (lambda: cute.make_mma_atom(NVFP4).set("accumulate", False), "always adds C"),
    (lambda: cute.make_mma_atom(NVFP4).set("sfa", 1), "is a pointer to registers, not 1"),
    (lambda: cute.utils.sm100.get_layoutSFA_TV(
        cute.make_tiled_mma(warp.MmaFP8Op(E4))), "has no scale factors in registers"),
])  # fmt: skip
def test_what_there_is_not(wrong, message):
    with pytest.raises(DSLError, match=message):
        wrong()


@cute.kernel
def matrices_kernel(x: cute.Tensor, out: cute.Tensor, op: cute.Constexpr):
    t, _, _ = cute.arch.thread_idx()
    smem = cute.utils.SmemAllocator()
    rows = smem.allocate_tensor(cute.Int8, cute.make_layout((32, 16), stride=(16, 1)), 16)
    stores = cute.const_expr(isinstance(op, warp.StMatrix16x8x8bOp))
    atom = cute.make_copy_atom(op, cute.Int8)
    held = cute.make_rmem_tensor(4 * op.num_matrices * (1 + op_is_square(op)), cute.Int8)
    if cute.const_expr(stores):
        for i in cute.range_constexpr(16):
            rows[t, i] = 0
        cute.autovec_copy(x[t, None], held)
        cute.arch.sync_threads()
        cute.copy(atom, held, rows[t, None])
        cute.arch.sync_threads()
        for i in cute.range_constexpr(16):
            out[t, i] = rows[t, i]
    else:
        # Bytes behind packed elements are never written: ldmatrix does not read them.
        for i in cute.range_constexpr(2 * op.unpack_bits):
            rows[t, i] = x[t, i]
        cute.arch.sync_threads()
        cute.copy(atom, rows[t, None], held)
        cute.autovec_copy(held, out[t, None])


def op_is_square(op):
    return isinstance(op, warp.LdMatrix16x16x8bOp)


@cute.jit
def matrices(x: cute.Tensor, out: cute.Tensor, op: cute.Constexpr):
    matrices_kernel(x, out, op).launch(grid=1, block=32)


UNPACKING = [
    warp.LdMatrix8x16x8bOp(num_matrices=4, unpack_bits=4),
    warp.LdMatrix8x16x8bOp(num_matrices=2, unpack_bits=6),
    warp.LdMatrix16x16x8bOp(num_matrices=2, unpack_bits=4),
    warp.LdMatrix16x16x8bOp(num_matrices=1, unpack_bits=6),
]


def unpacking(op, seed=0):
    rng = np.random.default_rng(seed)
    codes = rng.integers(0, 1 << op.unpack_bits, (32, 16), np.uint8)
    bits = (codes[:, :, None] >> np.arange(op.unpack_bits) & 1).reshape(32, -1)
    rows = np.zeros((32, 16), np.uint8)
    rows[:, : 2 * op.unpack_bits] = np.packbits(bits, axis=1, bitorder="little")
    lane = np.arange(32)
    columns = []
    for i in range(op.num_matrices):
        if op_is_square(op):
            # Two rows of two columns, 8 apart, in a register; then the next two rows.
            for pair in (0, 1):
                for column in (0, 8):
                    for row in (0, 1):
                        at = 16 * i + 4 * (lane % 4) + 2 * pair + row
                        columns.append(codes[at, lane // 4 + column])
        else:
            columns += [codes[8 * i + lane // 4, 4 * (lane % 4) + j] for j in range(4)]
    out = np.full((32, len(columns)), 99, np.int8)
    arrays = [aligned(rows.view(np.int8)), aligned(out)]
    return [from_dlpack(x, assumed_align=16) for x in arrays], arrays, np.stack(columns, 1)


@pytest.mark.parametrize("op", UNPACKING, ids=str)
def test_matrices_of_packed_elements(op):
    tensors, arrays, expected = unpacking(op)
    cute.compile(matrices, *tensors, op, options="--arch sim")(*tensors)
    np.testing.assert_array_equal(arrays[1], expected)


STORES = [warp.StMatrix16x8x8bOp(num_matrices=n) for n in (1, 2, 4)]


def storing(op):
    """A lane has, of 8 rows of 16 bytes, the bytes l / 4 of two rows, then those 8 further on."""
    n = op.num_matrices
    x = np.random.default_rng(0).integers(-128, 128, (32, 4 * n)).astype(np.int8)
    expected = np.zeros((32, 16), np.int8)
    for lane in range(32):
        for i in range(n):
            for j, (column, row) in enumerate(((0, 0), (0, 1), (8, 0), (8, 1))):
                expected[8 * i + 2 * (lane % 4) + row, lane // 4 + column] = x[lane, 4 * i + j]
    arrays = [aligned(x), aligned(np.full((32, 16), 99, np.int8))]
    return [from_dlpack(x, assumed_align=16) for x in arrays], arrays, expected


@pytest.mark.parametrize("op", STORES, ids=str)
def test_matrices_of_bytes_stored(op):
    tensors, arrays, expected = storing(op)
    cute.compile(matrices, *tensors, op, options="--arch sim")(*tensors)
    np.testing.assert_array_equal(arrays[1], expected)


@pytest.mark.skipif(ptxas.find_ptxas() is None, reason="there is no ptxas")
@pytest.mark.parametrize("op", [*UNPACKING, *STORES], ids=str)
def test_ptxas_takes_matrices(op):
    tensors, *_ = (storing if op in STORES else unpacking)(op)
    for arch in ("sm_100a", "sm_120a"):
        text = cute.compile(matrices, *tensors, op, options=f"--arch {arch}").stages.text("ptx")
        assert ptxas.start(text, arch).finish().warnings == ()
    name = "stmatrix.b8" if op in STORES else "ldmatrix.b8x16"
    with pytest.raises(DSLError, match=f"sm_90a has no {name}"):
        cute.compile(matrices, *tensors, op, options="--arch sm_90a")


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(100))
def test_random_configurations(seed):
    rng = np.random.default_rng(seed)
    op = (NVFP4, MXFP4, MXFP8, MIXED)[rng.integers(4)]
    ping_pong = bool(rng.integers(2))
    tile = (128, 64 if ping_pong else int(rng.choice((64, 128))), 128)
    gemm = GeforceGemm(op, tile, ping_pong, int(rng.integers(1, 5)), int(rng.integers(2, 4)))
    mnk = [128 * int(rng.integers(1, 4)) for _ in range(3)]
    tensors, arrays, exact = arguments(gemm, mnk)
    cute.compile(gemm, *tensors, options="--arch sim")(*tensors)
    found = arrays[-1].astype(float)
    np.testing.assert_allclose(found, exact, rtol=4e-3, atol=1e-5 * np.abs(exact).max())
