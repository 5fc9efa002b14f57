"""From wgmma's accumulators to shared memory: stmatrix and plain stores, by tiled copies."""

import ml_dtypes
import numpy as np
import pytest

import basedsl_cute as cute
from basedsl.errors import DSLTypeError
from basedsl_cute import arch
from basedsl_cute.lowering.ptx import ptxas
from basedsl_cute.nvgpu import CopyUniversalOp, warp, warpgroup
from basedsl_cute.runtime import from_dlpack
from basedsl_cute.utils import hopper_helpers as sm90
from basedsl_cute.utils.layout_enum import LayoutEnum

ROW, COL = LayoutEnum.ROW_MAJOR, LayoutEnum.COL_MAJOR
NUMPY = {
    cute.Float16: np.float16, cute.BFloat16: ml_dtypes.bfloat16, cute.Float32: np.float32,
    cute.Float8E4M3FN: ml_dtypes.float8_e4m3fn,
}  # fmt: skip


@cute.kernel
def through_shared_memory(
    values: cute.Tensor,
    out: cute.Tensor,
    mma: cute.TiledMma,
    major: cute.Constexpr,
    epi: cute.Constexpr,
):
    """Registers as wgmma leaves them -> shared memory, a tile of `epi` at a time -> `out`."""
    thread = arch.thread_idx()[0]
    dtype, (m, n) = out.element_type, out.shape
    thr_mma = mma.get_slice(thread)
    part = thr_mma.partition_C(values)
    acc = thr_mma.make_fragment_C(part)
    cute.autovec_copy(part, acc)

    smem = cute.utils.SmemAllocator()
    layout = sm90.make_smem_layout_epi(dtype, major, epi, 2)
    swizzle = cute.recast_layout(8, dtype.width, layout.inner)
    staged = smem.allocate_tensor(dtype, layout.outer, 1024, swizzle)

    store = sm90.sm90_get_smem_store_op(major, elem_ty_d=dtype, elem_ty_acc=cute.Float32)
    matrices = cute.make_copy_atom(warp.StMatrix8x8x16bOp(major.is_m_major_c(), 4), cute.Float16)
    tiled = cute.make_tiled_copy_S(store, cute.make_tiled_copy_C_atom(matrices, mma))
    mine = tiled.get_slice(thread)
    target = mine.partition_D(staged)
    held = tiled.retile(acc)
    shape = cute.shape(mine.partition_S(staged))[:3]
    narrow = cute.make_rmem_tensor(shape, dtype)
    wide = cute.make_rmem_tensor(shape, cute.Float32)
    each = cute.size(wide)
    down, across = m // epi[0], n // epi[1]
    for i in cute.range_constexpr(down * across):
        for v in cute.range_constexpr(each):
            wide[v] = held[i * each + v]
        narrow.store(wide.load().to(dtype))
        cute.copy(tiled, narrow, target[None, None, None, i % 2])
        arch.sync_threads()
        tile = cute.local_tile(out, epi, (i % down, i // down))
        for at in range(thread, epi[0] * epi[1], mma.size):
            where = (at % epi[0], at // epi[0])
            tile[where] = staged[where[0], where[1], i % 2]
        arch.sync_threads()


@cute.jit
def store_tiles(
    values: cute.Tensor,
    out: cute.Tensor,
    groups: cute.Constexpr,
    major: cute.Constexpr,
    epi: cute.Constexpr,
):
    op = warpgroup.MmaF16BF16Op(cute.Float16, cute.Float32, (64, out.shape[1], 16))
    mma = cute.make_tiled_mma(op, (groups, 1, 1))
    through_shared_memory(values, out, mma, major, epi).launch(grid=1, block=mma.size)


def arrays(dtype, m, n):
    rng = np.random.default_rng(4)
    values = rng.standard_normal((m, n)).astype(np.float32)
    return values, np.full((m, n), 99, NUMPY[dtype])


@pytest.mark.parametrize("dtype", NUMPY, ids=lambda t: t.__name__)
@pytest.mark.parametrize("major", [ROW, COL], ids=["row", "column"])
@pytest.mark.parametrize("groups", [1, 2])
def test_accumulators_through_shared_memory(hopper, dtype, major, groups):
    epi = sm90.compute_tile_shape_or_override((64 * groups, 64, 64), dtype, groups == 2)
    values, out = arrays(dtype, 64 * groups, 64)
    views = [from_dlpack(x, assumed_align=16) for x in (values, out)]
    store_tiles(*views, groups, major, epi)
    np.testing.assert_array_equal(out.astype(np.float32), values.astype(NUMPY[dtype]))


@pytest.mark.skipif(ptxas.find_ptxas() is None, reason="no ptxas here")
@pytest.mark.parametrize("major", [ROW, COL], ids=["row", "column"])
def test_stmatrix_in_ptx(major):
    values, out = arrays(cute.BFloat16, 64, 64)
    views = [from_dlpack(x, assumed_align=16) for x in (values, out)]
    compiled = cute.compile(store_tiles, *views, 1, major, (64, 32), options="--arch sm_90a")
    ptx = compiled.stages.text("ptx")
    turned = ".trans" if major is COL else ""
    # 16 accumulators a thread and tile: 8 registers of pairs, 4 to an instruction.
    assert ptx.count(f"stmatrix.sync.aligned.m8n8.x4{turned}.shared.b16") == 2 * 2
    assert ".local" not in ptx
    assert ptxas.start(ptx, "sm_90a").finish().warnings == ()


def test_an_atom_of_tiles_does_not_store_other_widths(sim):
    """An stmatrix is an atom of any type, as a tile of C has it; it stores 16 bits transposed."""

    @cute.kernel
    def kernel():
        atom = cute.make_copy_atom(warp.StMatrix8x8x16bOp(True, 4), cute.Float32)
        tile = cute.utils.SmemAllocator().allocate_tensor(cute.Float32, cute.make_layout((4,)), 16)
        cute.copy(atom, cute.make_rmem_tensor((4,), cute.Float32), tile)

    @cute.jit
    def host():
        kernel().launch(grid=1, block=32)

    with pytest.raises(DSLTypeError, match="turns matrices of 16-bit elements, not of 32 bits"):
        host()


def test_which_store():
    for dtype in (cute.Float16, cute.BFloat16):
        atom = sm90.sm90_get_smem_store_op(COL, dtype, cute.Float32)
        assert atom.op == warp.StMatrix8x8x16bOp(True, 4) and atom.value_type is dtype
        assert sm90.sm90_get_smem_store_op(ROW, dtype, cute.Float16).op.transpose is False
    for dtype in (cute.Float32, cute.Float8E5M2, cute.Int8):
        assert isinstance(sm90.sm90_get_smem_store_op(ROW, dtype, cute.Float32).op, CopyUniversalOp)
    with pytest.raises(DSLTypeError, match="elem_ty_d is an element type"):
        sm90.sm90_get_smem_store_op(ROW, 16, cute.Float32)


def test_epilogue_tiles():
    compute = sm90.compute_tile_shape_or_override
    assert compute((256, 128, 64), cute.Float16, is_cooperative=True) == (128, 32)
    assert compute((64, 16, 64), cute.Float16, is_cooperative=True) == (64, 16)
    assert compute((128, 128, 64), cute.Float16) == (64, 32)
    assert compute((128, 128, 64), cute.Int8) == (64, 64)
    assert compute((128, 128, 64), cute.Int8, epi_tile_override=(64, 128)) == (64, 128)


def test_swizzles():
    kinds = warpgroup.SmemLayoutAtomKind
    for extent, kind in ((64, "SW128"), (32, "SW64"), (16, "SW32"), (24, "INTER"), (96, "SW64")):
        assert sm90.get_smem_layout_atom(ROW, cute.Float16, extent) is kinds[f"K_{kind}"]
        assert sm90.get_smem_layout_atom(COL, cute.BFloat16, extent) is kinds[f"MN_{kind}"]
    assert sm90.get_smem_layout_atom(ROW, cute.Int8, 128) is kinds.K_SW128
    assert sm90.get_smem_layout_atom(ROW, cute.TFloat32, 32) is kinds.K_SW128
    with pytest.raises(DSLTypeError, match="no multiple of 16 bytes"):
        sm90.get_smem_layout_atom(ROW, cute.Float16, 4)


def test_epilogue_layouts():
    layout = sm90.make_smem_layout_epi(cute.Float16, ROW, (64, 32), 4)
    assert cute.size(layout, mode=[2]) == 4 and cute.size(layout) == 64 * 32 * 4
    wide = sm90.make_smem_layout_epi(cute.Float16, ROW, (64, 32), 1, (128, 64), (1, 0))
    assert cute.size(wide, mode=[0]) == 128 and cute.rank(wide) == 2
    # The blocks of 8 x 32 go along N first.
    assert wide.outer((0, 32)) == 8 * 32 and wide.outer((8, 0)) == 2 * 8 * 32
