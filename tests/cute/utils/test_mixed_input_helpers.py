"""`utils.mixed_input_helpers`: layouts and atoms; the GEMM that uses them is
tests/cute/blackwell/mixed_input_gemm.py.
"""

import pytest

import basedsl_cute as cute
from basedsl.errors import DSLError
from basedsl_cute.nvgpu import tcgen05
from basedsl_cute.nvgpu.tcgen05 import CtaGroup, OperandMajorMode, OperandSource
from basedsl_cute.utils import LayoutEnum, sm100
from basedsl_cute.utils import mixed_input_helpers as mixed

K, MN = OperandMajorMode.K, OperandMajorMode.MN


def test_a_k_major_operand_is_read_from_tensor_memory():
    assert mixed.get_transform_a_source(K) is OperandSource.TMEM
    assert mixed.get_transform_a_source(MN) is OperandSource.SMEM
    with pytest.raises(DSLError, match="a major mode is an OperandMajorMode"):
        mixed.get_transform_a_source("row")


def test_layouts_of_the_operands():
    one = CtaGroup.ONE
    mma = sm100.make_trivial_tiled_mma(
        cute.BFloat16, K, K, cute.Float32, one, (128, 64), OperandSource.TMEM
    )
    a, transformed, b = mixed.compute_smem_layout(
        mma, (128, 64, 64), cute.Int8, cute.BFloat16, 3, 2
    )
    assert a.outer.shape[:3] == transformed.outer.shape[:3] == ((128, 16), 1, 4)
    assert b.outer.shape[:3] == ((64, 16), 1, 4)
    assert [cute.size(x.outer.shape, mode=[3]) for x in (a, transformed, b)] == [3, 2, 3]
    assert (a.inner.bits, transformed.inner.bits, b.inner.bits) == (2, 3, 3)  # of 64, 128 bytes


@pytest.mark.parametrize(
    ("major", "strides"), [(MN, (1, 7)), (LayoutEnum.COL_MAJOR, (1, 7)), (K, (3, 1))]
)
def test_factors_in_global_memory(major, strides):
    layout = mixed.get_gmem_layout_scale((200, 320, 2), 32, 128, major)
    assert layout.shape == ((32, 7), (128, 3), 2)
    for row, k, batch in ((0, 0, 0), (199, 319, 1), (64, 130, 1), (31, 128, 0)):
        wanted = row // 32 * strides[0] + k // 128 * strides[1] + batch * 21
        assert layout((row, k, batch)) == wanted


@pytest.mark.parametrize("pairs", [False, True])
def test_factors_in_shared_memory(pairs):
    arguments = (256 if pairs else 128, 64, 64), pairs
    layout = mixed.get_smem_layout_scale(*arguments, 1, 128, MN, cute.Float32, 4)
    assert layout.shape == ((1, 128), (64, 1), 4)
    assert layout((5, 63, 2)) == 5 + 2 * 128
    layout = mixed.get_smem_layout_scale(*arguments, 32, 16, K, cute.BFloat16, 2)
    assert layout((33, 17, 1)) == 4 + 1 + 64  # a stage begins at 128 bytes
    for granularity in ((48, 16), (1, 0), (1, 96)):
        with pytest.raises(DSLError, match="do not fit a tile"):
            mixed.get_smem_layout_scale(*arguments, *granularity, K, cute.BFloat16, 2)


def test_loads_of_a_signal_their_own_block():
    for is_b, multicast, group in ((True, False, 2), (False, False, 1), (False, True, 1)):
        op = mixed.get_tma_atom_kind(multicast, True, is_b)
        assert op.cta_group == group
        assert ("Multicast" in type(op).__name__) is multicast
    assert mixed.get_tma_atom_kind(False, False, True).cta_group == 1


def test_atoms_of_the_transform():
    whole = ((128, 16), 1, 4, 3)
    load, store = mixed.get_copy_atom_a_transform(
        cute.BFloat16, False, OperandSource.TMEM, whole, cute.Int8
    )
    assert tcgen05.get_tmem_copy_properties(store) == (32, 32, 32, tcgen05.Unpack.NONE)
    assert load.values_src == 16  # 128 bits
    load, store = mixed.get_copy_atom_a_transform(
        cute.BFloat16, False, OperandSource.SMEM, whole, cute.Int8
    )
    assert (load.values_src, store.values_src) == (8, 8)
    with pytest.raises(DSLError, match="by blocks of 128 rows, not of 64"):
        mixed.get_copy_atom_a_transform(
            cute.BFloat16, True, OperandSource.TMEM, ((64, 16), 1, 4), cute.Int8
        )


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        (
            lambda: mixed.get_gmem_layout_scale((128, 64), 1, 64, MN),
            r"takes the \(M, K, L\) of A, not \(128, 64\)",
        ),
        (
            lambda: mixed.get_copy_atom_a_transform(
                cute.BFloat16, False, OperandSource.TMEM, (128, 64), cute.Int8
            ),
            r"A of shape \(\(M, K\), MMA_M, MMA_K, stage\), not \(128, 64\)",
        ),
        (lambda: mixed.cvt_tensor_a(3, cute.BFloat16), "converts registers or a vector of them"),
    ],
)
def test_what_does_not_fit(wrong, message):
    with pytest.raises(DSLError, match=message):
        wrong()


@cute.jit
def partitioned(tiles: cute.Constexpr):
    pointer = cute.make_ptr(cute.Int8, 0, "smem", assumed_align=128)
    flat = cute.make_tensor(pointer, tiles)
    mixed.transform_partition(
        OperandSource.SMEM, mixed.TransformMode.ConvertOnly, None, None, flat, flat, 0
    )


@pytest.mark.parametrize(
    ("layout", "message"),
    [
        (cute.make_layout((128, 64)), "transform_partition takes A of shape"),
        (tcgen05.make_smem_layout_atom("K_SW64", cute.Int8), "with the swizzle on the pointer"),
    ],
)
def test_tensors_that_are_no_operand(sim, layout, message):
    with pytest.raises(DSLError, match=message):
        cute.compile(partitioned, layout)


def test_what_is_not_offered():
    with pytest.raises(DSLError, match="no public description has their order"):
        mixed.cvt_tensor_a(None, cute.BFloat16, True)
    with pytest.raises(DSLError, match="the mode of a transform is a TransformMode"):
        mixed.transform_partition(OperandSource.SMEM, "scale", None, None, None, None, 0)
