"""`utils.sm100` and `utils.gemm.sm100`: tiles, atoms and partitions of an epilogue, by the rules of
CUTLASS's C++ collective builders.
"""

from types import SimpleNamespace

import pytest

import basedsl_cute as cute
from basedsl_cute.nvgpu import tcgen05
from basedsl_cute.utils import LayoutEnum, sm100
from basedsl_cute.utils.gemm import sm100 as epilogues

K, MN = tcgen05.OperandMajorMode.K, tcgen05.OperandMajorMode.MN
ROW, COLUMN = LayoutEnum.ROW_MAJOR, LayoutEnum.COL_MAJOR


@pytest.mark.parametrize(
    ("arguments", "tile"),
    [
        ((128, 256, False, 16), (128, 32)),  # 4096 elements
        ((128, 256, False, 4), (128, 64)),  # 8192 of 4 bits
        ((64, 256, False, 16), (64, 64)),
        ((64, 256, True, 16), (64, 64)),  # warps in two columns
        ((128, 48, False, 16), (128, 48)),  # 32 does not divide 48
    ],
)
def test_tile_of_an_epilogue(arguments, tile):
    assert sm100.compute_epilogue_tile_size(*arguments) == tile


@pytest.mark.parametrize(
    ("major", "dtype", "tile", "kind"),
    [
        (K, cute.BFloat16, (128, 64), "K_SW128"),
        (K, cute.BFloat16, (128, 32), "K_SW64"),
        (K, cute.Int8, (128, 32), "K_SW32"),
        (K, cute.Int8, (128, 16), "K_INTER"),
        (MN, cute.Float16, (96, 64), "MN_SW64"),
        (MN, cute.Float32, (128, 8), "MN_SW128_32B"),
    ],
)
def test_widest_swizzle_of_an_operand(major, dtype, tile, kind):
    assert sm100.get_smem_layout_atom_ab(major, dtype, tile) is tcgen05.SmemLayoutAtomKind(kind)


# D's order, D's type -> the tcgen05.ld, the store to shared memory.
ATOMS = {
    (ROW, cute.Float16): (tcgen05.Ld32x32bOp, cute.nvgpu.CopyUniversalOp),
    (COLUMN, cute.Float16): (tcgen05.Ld16x256bOp, cute.nvgpu.warp.StMatrix8x8x16bOp),
    (ROW, cute.Float32): (tcgen05.Ld32x32bOp, cute.nvgpu.CopyUniversalOp),
}


@cute.jit
def partition(c: cute.Tensor, order: cute.Constexpr):
    """The partitions of accumulators and C by an epilogue of a block's tile 128 x 64."""
    kernel = SimpleNamespace(
        cta_tile_shape_mnk=(128, 64, 64), c_layout=order, c_dtype=c.element_type,
        acc_dtype=cute.Float32,
    )  # fmt: skip
    mma = sm100.make_trivial_tiled_mma(
        cute.Float16, K, K, cute.Float32, tcgen05.CtaGroup.ONE, (128, 64)
    )
    tile = sm100.compute_epilogue_tile_shape((128, 64, 64), False, order, c.element_type)
    acc = epilogues.transform_partitioned_tensor_layout(
        mma.make_fragment_C(mma.partition_shape_C((128, 64)))
    )
    assert str(acc.shape) == "((128, 1), (64, 1))"
    of_c = mma.get_slice(0).partition_C(cute.local_tile(c, (128, 64), (None, None)))
    of_c = epilogues.transform_partitioned_tensor_layout(of_c)
    load, mine, registers = epilogues.epilogue_tmem_copy_and_partition(
        kernel, 5, acc, of_c[None, None, 0, 0], tile, False
    )
    assert cute.size(registers.shape) == cute.size(tile[0]) * cute.size(tile[1]) // 128
    assert cute.size(mine.shape, mode=[3]) == 1  # tiles of the epilogue, down
    assert cute.size(mine.shape, mode=[4]) * cute.size(tile[1]) == 64  # and across
    smem = cute.make_tensor(
        cute.make_ptr(c.element_type, 0, "smem", assumed_align=128),
        sm100.make_smem_layout_epi(c.element_type, order, tile, 2).outer,
    )
    narrow = cute.make_rmem_tensor(registers.shape, c.element_type)
    store, source, staged = epilogues.epilogue_smem_copy_and_partition(
        kernel, load, narrow, 5, smem
    )
    assert cute.size(source.shape) == cute.size(registers.shape)
    assert cute.size(staged.shape) == 2 * cute.size(registers.shape)
    chosen = sm100.get_smem_store_op(order, c.element_type, cute.Float32, load)
    assert str(chosen) == str(store.atom)
    wanted = ATOMS[order, c.element_type]
    assert (type(load.op), type(store.op)) == wanted


@pytest.mark.parametrize(("order", "dtype"), ATOMS)
def test_partitions_of_an_epilogue(sim, order, dtype):
    fake = cute.runtime.make_fake_compact_tensor(
        dtype, (256, 128), stride_order=(1, 0) if order is ROW else (0, 1), assumed_align=16
    )
    cute.compile(partition, fake, order)


@pytest.mark.parametrize(
    ("columns", "dtype", "is_pair", "swizzle"),
    [
        (96, cute.Float16, False, "S<2,3,3>"),  # 64 bytes
        (96, cute.Float16, True, "S<1,3,3>"),  # 48 columns of each warp are whole 32 bytes
        (64, cute.Float16, True, "S<3,3,3>"),
        (80, cute.Float8E4M3FN, False, "S<0,4,3>"),
        (24, cute.Float32, False, "S<1,2,3>"),
    ],
)
def test_chunks_of_a_swizzle_end_where_a_warp_of_an_epilogue_does(columns, dtype, is_pair, swizzle):
    tile = sm100.compute_epilogue_tile_shape((64, columns, 64), is_pair, ROW, dtype)
    assert cute.size(tile[1]) == columns
    assert str(sm100.make_smem_layout_epi(dtype, ROW, tile, 1).inner) == swizzle
