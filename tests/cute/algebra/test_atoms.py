"""Matrix and copy instructions: every element has its holder, tilings partition, names resolve."""

from __future__ import annotations

import itertools
import math

import pytest

from basedsl_cute import algebra as cute
from basedsl_cute.algebra import Layout, LayoutError

WARP = [
    "SM75_16x8x8_F32F16F16F32_TN",
    "SM75_8x8x16_S32S8S8S32_TN",
    "SM80_16x8x8_F16F16F16F16_TN",
    "SM80_16x8x16_F32BF16BF16F32_TN",
    "SM80_16x8x4_F32TF32TF32F32_TN",
    "SM80_16x8x8_F32TF32TF32F32_TN",
    "SM80_8x8x4_F64F64F64F64_TN",
    "SM80_8x8x4_GC64C64C64GC64_TN",
    "SM80_16x8x16_S32S8U8S32_TN_SATURATE",
    "SM80_16x8x32_S32U8S8S32_TN",
    "SM80_8x8x32_S32S4S4S32_TN",
    "SM80_16x8x64_S32U4S4S32_TN",
    "SM80_16x8x256_S32U1U1S32_TN_ANDPOPC",
    "SM89_16x8x32_F32E5M2E4M3F32_TN",
    "SM90_16x8x16_F64F64F64F64_TN",
    "SM120_16x8x32_TN<float_e4m3_t, float_e4m3_t, float>",
    "SM120::BLOCKSCALED::SM120_16x8x64_TN_VS<float_e2m1_t>",
    "SM70_8x8x4_F16F16F16F16_NN",
    "SM70_8x8x4_F32F16F16F32_TT",
]
OTHER = [
    "SM90::GMMA::MMA_64x96x16_F32F16F16_RS<K,K>",
    "SM90_64x8x32_S32S8S8_RS_TN",
    "SM90::GMMA::MMA_64x16x8_F32TF32TF32_RS_TN",
    "UniversalFMA<double>",
    "SM61_DP4A",
    "SM61_DP2A",
]


def image(layout: Layout) -> list[int]:
    return [layout(i) for i in range(cute.size(layout))]


@pytest.mark.parametrize("name", WARP + OTHER)
def test_each_element_of_an_operand_has_one_holder(name: str) -> None:
    atom = cute.mma_atom(name)
    m, n, k = atom.shape_mnk
    threads = cute.size(atom.thr_id)
    for operand, count in (("A", m * k), ("B", n * k), ("C", m * n)):
        layout = getattr(atom, f"tv_layout_{operand}")
        assert cute.size(layout, 0) == threads
        held = sorted(image(layout))
        if "SM90::GMMA" in name or "SM90_64" in name:
            held = sorted(set(held))  # operands in shared memory belong to all threads
        assert held == list(range(count)), operand


def test_fragments_follow_the_ptx_isa() -> None:
    """m16n8k16 with 16-bit A: row = lane / 4 (+ 8), column = 2 (lane % 4) + i % 2 (+ 8)."""
    a = cute.mma_atom("SM80_16x8x16_F32F16F16F32_TN").tv_layout_A
    for lane, i in itertools.product(range(32), range(8)):
        row = lane // 4 + (8 if i in (2, 3, 6, 7) else 0)
        column = 2 * (lane % 4) + i % 2 + (8 if i >= 4 else 0)
        assert a((lane, i)) == row + 16 * column


def test_accumulators_of_wgmma_follow_the_ptx_isa() -> None:
    """Row = 16 (warp) + lane / 4 (+ 8), column = 8 (i / 4) + 2 (lane % 4) + i % 2."""
    c = cute.mma_atom("SM90::GMMA::MMA_64x32x16_F32F16F16_SS<K,K>").tv_layout_C
    for thread, i in itertools.product(range(128), range(16)):
        warp, lane = divmod(thread, 32)
        row = 16 * warp + lane // 4 + (8 if i % 4 >= 2 else 0)
        column = 8 * (i // 4) + 2 * (lane % 4) + i % 2
        assert c((thread, i)) == row + 64 * column


@pytest.mark.parametrize("matrices", [1, 2, 4])
def test_ldmatrix_follows_the_ptx_isa(matrices: int) -> None:
    """Thread 8 q + r addresses row r of matrix q; lane l gets elements 2 (l % 4), + 1 of row l / 4,
    or with .trans those of column l / 4."""
    plain = cute.matrix_copy(matrices).in_elements(16)
    transposed = cute.matrix_copy(matrices, transpose=True).in_elements(16)
    for thread, i in itertools.product(range(32), range(8)):
        matrix, row = divmod(thread % (8 * matrices), 8)
        assert plain.layout_src_tv((thread, i)) == 64 * matrix + 8 * row + i
    for lane, register, half in itertools.product(range(32), range(matrices), range(2)):
        along, across = 2 * (lane % 4) + half, lane // 4
        where = (lane, 2 * register + half)
        assert plain.layout_dst_tv(where) == 64 * register + 8 * across + along
        assert transposed.layout_dst_tv(where) == 64 * register + 8 * along + across
    store = cute.matrix_copy(matrices, store=True)
    assert store.layout_dst_tv == cute.matrix_copy(matrices).layout_src_tv
    assert store.layout_ref_tv == store.layout_src_tv


@pytest.mark.parametrize(
    ("name", "bits", "values"),
    [
        ("UniversalCopy<float>", 32, 1),
        ("UniversalCopy<cute::uint128_t>", 16, 8),
        ("SM80_CP_ASYNC_CACHEGLOBAL_ZFILL<uint128_t, uint128_t>", 8, 16),
        ("AutoVectorizingCopyWithAssumedAlignment<64>", 32, 2),
        ("DefaultCopy", 8, 1),
        ("SM50_Shuffle_U32_2x2Trans_XOR1", 32, 2),
        ("SM50_Shuffle_U32_2x2Trans_XOR4", 32, 2),
        ("SM75_U32x1_MOVM_T", 16, 2),
        ("SM100_U8x16_LDSM_T", 8, 16),
        ("SM100_U8x16_STSM_T", 8, 16),
        ("SM100_SU4_DU8x16_x4_LDSM_N", 8, 16),
    ],
)
def test_other_copies_move_the_same_elements(name: str, bits: int, values: int) -> None:
    atom = cute.copy_atom(name, bits)
    assert cute.size(atom.layout_ref_tv, 1) == values
    assert sorted(image(atom.layout_src_tv)) == sorted(image(atom.layout_dst_tv))


@pytest.mark.parametrize("operand", "ABC")
@pytest.mark.parametrize(
    ("name", "layout", "permutation"),
    [
        ("SM80_16x8x16_F32F16F16F32_TN", (2, 2, 1), None),
        ("SM80_16x8x16_F32F16F16F32_TN", (2, 2, 2), None),
        ("SM80_16x8x16_F32F16F16F32_TN", (2, 2), (None, Layout((8, 2, 2), (1, 16, 8)), None)),
        ("SM80_16x8x8_F32TF32TF32F32_TN", Layout((1, 4, 1), (0, 1, 0)), (32, 32, 8)),
        ("UniversalFMA<float>", Layout((16, 16, 1), (16, 1, 0)), (64, 64, 1)),
        ("SM90::GMMA::MMA_64x64x16_F32F16F16_SS<K,K>", (2, 1, 1), None),
    ],
)
def test_a_tiled_mma_partitions_its_operands(
    name: str, layout: Layout, permutation: tuple | None, operand: str
) -> None:
    mma = cute.make_mma_tiling(cute.mma_atom(name), layout, permutation)
    m, n, k = mma.tile_shape_mnk
    rows, columns = {"A": (m, k), "B": (n, k), "C": (m, n)}[operand]
    shape = (rows * 2, columns)
    tiled = mma.tv_layout_tiled(operand)
    assert cute.size(tiled, 0) == mma.size
    part, start = mma.partition(operand, cute.make_layout(shape), cute.Dyn("t"))
    in_tile, first = mma.partition(operand, cute.make_layout((rows, columns)), cute.Dyn("t"))
    assert part.shape == mma.partition_shape(operand, shape)
    values, tile_values, held = image(part), image(in_tile), set()
    for thread in range(mma.size):
        begin, tile_begin = (cute.evaluate(x, {"t": thread}) for x in (start, first))
        held |= {begin + v for v in values}
        for v in range(0, len(tile_values), 7):
            assert tile_begin + tile_values[v] == tiled((thread, v))
    assert held == set(range(math.prod(shape)))


def test_a_tiled_copy_matches_the_mma_it_feeds() -> None:
    mma = cute.make_mma_tiling(cute.mma_atom("SM80_16x8x16_F32F16F16F32_TN"), (2, 2, 1))
    load = cute.copy_atom("SM75_U32x4_LDSM_N", 16)
    copy = cute.make_copy_tiling_of_mma(load, mma, "A")
    tensor = cute.make_layout((64, 32), (32, 1))
    for thread in (0, 1, 37, 127):
        fragment, start = mma.partition("A", tensor, thread)
        mine, offset = copy.partition("D", tensor, thread)
        assert sorted(start + v for v in image(fragment)) == sorted(offset + v for v in image(mine))
    register = cute.make_fragment_like(mma.partition("A", tensor, 0)[0])
    retiled = copy.retile(register)
    assert retiled.shape == copy.partition("S", tensor, 0)[0].shape
    assert sorted(image(retiled)) == sorted(image(register))
    with pytest.raises(LayoutError, match="multiple of 8 values"):
        cute.make_copy_tiling_of_mma(load, mma, "B")


def test_copies_derived_from_copies() -> None:
    mma = cute.make_mma_tiling(cute.mma_atom("SM90::GMMA::MMA_64x64x16_F32F16F16_SS<K,K>"))
    store = cute.copy_atom("SM90_U32x4_STSM_N", 16)
    whole = cute.make_copy_tiling_of_mma(store, mma, "C")
    small = cute.make_copy_tiling_C_atom(store, mma)
    assert cute.size(small.tiler_mn) == 64 * 16 and small.size == 128
    scalar = cute.copy_atom("UniversalCopy<half_t>", 16)
    same = cute.make_copy_tiling_of_copy(scalar, whole, "S")
    assert same.layout_tv == whole.layout_src_tv_tiled
    other = cute.make_copy_tiling_of_copy(scalar, whole, "D")
    assert sorted(image(other.layout_tv)) == list(range(64 * 64))


def test_a_copy_from_offsets_touches_exactly_those() -> None:
    data = cute.make_layout((16, 8), (8, 1))
    wanted = Layout((32, 4), (4, 1))
    copy = cute.make_cotiled_copy(cute.copy_atom("UniversalCopy<uint128_t>", 32), wanted, data)
    for thread in range(32):
        part, offset = copy.partition("S", data, thread)
        assert [offset + v for v in image(part)] == [wanted((thread, v)) for v in range(4)]
    with pytest.raises(LayoutError, match="do not exist"):
        cute.make_cotiled_copy(
            cute.copy_atom("UniversalCopy<float>", 32), Layout((4, 4), (4, 1)), Layout(16, 2)
        )


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: cute.mma_atom("SM80_16x8x17_F32F16F16F32_TN"), "no warp-level mma"),
        (lambda: cute.mma_atom("SM99_MAGIC"), "unknown mma instruction 'SM99_MAGIC'"),
        (lambda: cute.mma_atom("SM90_64x12x16_F32F16F16_SS<K,K>"), "no wgmma of shape"),
        (lambda: cute.copy_atom("SM75_U32x8_LDSM_N"), "1, 2 or 4 matrices, not 8"),
        (lambda: cute.copy_atom("SM100_U8x4_LDSM_T"), "no transposing 8-bit matrix copy"),
        (lambda: cute.copy_atom("Teleport"), "unknown copy instruction"),
        (lambda: cute.copy_atom("UniversalCopy<string>"), "unknown element type 'string'"),
        (lambda: cute.gmma_smem_atom("K_SW256", 16), "unknown shared-memory layout"),
    ],
)
def test_unknown_instructions_are_named(make: object, message: str) -> None:
    with pytest.raises(LayoutError, match=message):
        make()  # type: ignore[operator]
