"""`utils.blackwell_helpers` (= `utils.sm100`): layouts, tiles and instructions that kernels for
Blackwell share.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from basedsl import (
    BFloat16,
    DSLTypeError,
    Float4E2M1FN,
    Float6E2M3FN,
    Float6E3M2FN,
    Float8E4M3FN,
    Float8E5M2,
    Float8E8M0FNU,
    Float16,
    Float32,
    Int8,
    Numeric,
    TFloat32,
    Uint8,
)
from basedsl_cute import algebra
from basedsl_cute.algebra.ignored_location import takes_location
from basedsl_cute.atoms.copy import CopyAtom, TiledCopy, make_copy_atom
from basedsl_cute.atoms.mma import TiledMma, make_tiled_mma
from basedsl_cute.hardware.targets import WARP_SIZE
from basedsl_cute.hardware.unsupported import unsupported_names
from basedsl_cute.nvgpu import tcgen05
from basedsl_cute.nvgpu.common import CopyUniversalOp
from basedsl_cute.nvgpu.tcgen05 import CtaGroup, OperandMajorMode, OperandSource
from basedsl_cute.nvgpu.tma import CopyBulkTensorTileG2SMulticastOp, CopyBulkTensorTileG2SOp
from basedsl_cute.nvgpu.warp import StMatrix8x8x16bOp
from basedsl_cute.utils import blackwell_choices as choices
from basedsl_cute.utils.layout_enum import LayoutEnum
from basedsl_cute.utils.warp_scale_factors import (
    get_layoutSFA_TV,
    get_layoutSFB_TV,
    get_permutation_mnk,
    partition_fragment_SFA,
    partition_fragment_SFB,
    sm120_get_smem_store_op,
)

make_smem_layout_atom = tcgen05.make_smem_layout_atom

if not TYPE_CHECKING:  # a type checker reports names that do not exist
    __getattr__ = unsupported_names(__name__)

__all__ = [
    "cluster_shape_to_tma_atom_A",
    "cluster_shape_to_tma_atom_B",
    "cluster_shape_to_tma_atom_SFB",
    "compute_epilogue_tile_shape",
    "compute_epilogue_tile_size",
    "get_layoutSFA_TV",
    "get_layoutSFB_TV",
    "get_permutation_mnk",
    "get_smem_layout_atom_ab",
    "get_smem_store_op",
    "get_tmem_load_op",
    "make_blockscaled_trivial_tiled_mma",
    "make_smem_layout",
    "make_smem_layout_a",
    "make_smem_layout_atom",
    "make_smem_layout_b",
    "make_smem_layout_epi",
    "make_trivial_tiled_mma",
    "partition_fragment_SFA",
    "partition_fragment_SFB",
    "sm120_get_smem_store_op",
]

_LOADS = {
    op.shape: op
    for op in (
        tcgen05.Ld32x32bOp,
        tcgen05.Ld16x256bOp,
        tcgen05.Ld16x128bOp,
        tcgen05.Ld16x64bOp,
        tcgen05.Ld16x32bx2Op,
    )
}


_FLOATS_8_6_4 = (Float8E4M3FN, Float8E5M2, Float6E2M3FN, Float6E3M2FN, Float4E2M1FN)


@takes_location
def make_trivial_tiled_mma(
    a_dtype: type[Numeric], *args: Any, a_source: OperandSource = OperandSource.SMEM
) -> TiledMma:
    """Return the tiled tcgen05.mma of one instruction for these element types.

    Arguments are `(a_dtype, b_dtype, a_major, b_major, acc_dtype, cta_group, mma_tiler_mn[,
    a_source])`, or without `b_dtype` where A and B have the same. M and N of the instruction are
    `mma_tiler_mn`. Raises DSLTypeError if there is no such instruction.
    """
    rest = list(args)
    one_type = isinstance(rest[0], OperandMajorMode)
    b_dtype = a_dtype if one_type else rest.pop(0)
    if len(rest) == 6:
        a_source = rest.pop()
    a_major, b_major, acc_dtype, cta_group, (m, n) = rest
    where = (CtaGroup(cta_group), a_source, a_major, b_major)
    op: Any
    if a_dtype in _FLOATS_8_6_4:
        op = tcgen05.MmaF8F6F4Op(a_dtype, b_dtype, acc_dtype, (m, n, 32), *where)
    elif a_dtype is not b_dtype:
        raise DSLTypeError(
            f"tcgen05.mma does not mix operands of {a_dtype.__name__} and {b_dtype.__name__}"
        )
    elif a_dtype in (Float16, BFloat16):
        op = tcgen05.MmaF16BF16Op(a_dtype, acc_dtype, (m, n, 16), *where)
    elif a_dtype in (TFloat32, Float32):
        op = tcgen05.MmaTF32Op((m, n, 8), *where)
    elif a_dtype in (Int8, Uint8):
        op = tcgen05.MmaI8Op(a_dtype, (m, n, 32), *where)
    else:
        raise DSLTypeError(f"no tcgen05.mma is offered for operands of {a_dtype.__name__}")
    return make_tiled_mma(op)


@takes_location
def make_blockscaled_trivial_tiled_mma(
    a_dtype: type[Numeric], *args: Any, a_source: OperandSource = OperandSource.SMEM
) -> TiledMma:
    """Return the tiled tcgen05.mma with scale factors of one instruction for these element types.

    Arguments are `(a_dtype, b_dtype, a_major, b_major, sf_dtype, sf_vec_size, cta_group,
    mma_tiler_mn[, a_source])`, or without `b_dtype` where A and B have the same. 4-bit elements are
    multiplied packed, with others as bytes. Raises DSLTypeError if there is no such instruction.
    """
    rest = list(args)
    b_dtype = a_dtype if isinstance(rest[0], OperandMajorMode) else rest.pop(0)
    if len(rest) == 7:
        a_source = rest.pop()
    a_major, b_major, sf_dtype, vector, cta_group, (m, n) = rest
    where = (CtaGroup(cta_group), a_source, a_major, b_major)
    op: Any
    if a_dtype is Float4E2M1FN and b_dtype is Float4E2M1FN:
        if vector == 32 and sf_dtype is Float8E8M0FNU:
            op = tcgen05.MmaMXF4Op((m, n, 64), *where)
        else:
            op = tcgen05.MmaMXF4NVF4Op(sf_dtype, (m, n, 64), *where, sf_vec_size=vector)
    else:
        op = tcgen05.MmaMXF8F6F4Op(
            a_dtype, b_dtype, (m, n, 32), *where, sf_dtype=sf_dtype, sf_vec_size=vector
        )
    return make_tiled_mma(op)


@takes_location
def get_smem_layout_atom_ab(
    major_mode: OperandMajorMode, element_type: type[Numeric], smem_shape_mn_k: tuple[int, int]
) -> tcgen05.SmemLayoutAtomKind:
    """Return the kind of `make_smem_layout_atom` with the widest swizzle that divides the
    contiguous extent of an operand's tile in shared memory.

    `major_mode` says which mode is contiguous, `element_type` is that of the operand, and
    `smem_shape_mn_k` are the tile's extents (MN, K) in elements. Raises LayoutError for a tile that
    is no multiple of 16 bytes.
    """
    is_k = major_mode is OperandMajorMode.K
    kind = algebra.widest_smem_atom(is_k, element_type.width, smem_shape_mn_k)
    return tcgen05.SmemLayoutAtomKind(kind)


@takes_location
def make_smem_layout_a(
    tiled_mma: TiledMma,
    mma_tiler_mnk: tuple[int, int, int],
    a_dtype: type[Numeric],
    num_stages: int,
    *,
    is_k_major: bool | None = None,
) -> Any:
    """Return the layout ((M, K), MMA_M, MMA_K, stage) of one block's A in shared memory, with the
    widest swizzle that divides its contiguous extent.

    `mma_tiler_mnk` is the tile (M, N, K) in elements that the blocks of `tiled_mma` compute
    together, `a_dtype` the element type in shared memory, and `num_stages` the number of tiles.
    `is_k_major` is by default that of the MMA's operation. Raises LayoutError for a tile that is no
    multiple of 16 bytes.
    """
    m, _, k = mma_tiler_mnk
    return _operand("A", tiled_mma, (m, k), a_dtype, num_stages, is_k_major)


@takes_location
def make_smem_layout_b(
    tiled_mma: TiledMma,
    mma_tiler_mnk: tuple[int, int, int],
    b_dtype: type[Numeric],
    num_stages: int,
    *,
    is_k_major: bool | None = None,
) -> Any:
    """Return the layout ((N, K), MMA_N, MMA_K, stage) of one block's B in shared memory.

    `b_dtype` is its element type; `tiled_mma`, `mma_tiler_mnk`, `num_stages` and `is_k_major` are
    as for `make_smem_layout_a`, and so are the errors.
    """
    _, n, k = mma_tiler_mnk
    return _operand("B", tiled_mma, (n, k), b_dtype, num_stages, is_k_major)


def _operand(
    operand: str,
    tiled_mma: TiledMma,
    tile: tuple[int, int],
    dtype: type[Numeric],
    stages: int,
    is_k_major: bool | None,
) -> Any:
    op: Any = tiled_mma.op
    major = op.a_major_mode if operand == "A" else op.b_major_mode
    is_k = major is OperandMajorMode.K if is_k_major is None else is_k_major
    shape = tiled_mma.tiling.partition_shape(operand, tile)
    extents = tuple(shape[0][i] * algebra.size(shape[1 + i]) for i in (0, 1))
    kind = algebra.widest_smem_atom(is_k, dtype.width, extents)
    atom = tcgen05.make_smem_layout_atom(kind, dtype)
    # Atoms go along the strided mode first, so that one TMA box reaches as far as it can.
    order = (0, 1, 2) if is_k else (1, 0, 2)
    return algebra.tile_to_mma_shape(atom, (*shape, stages), order)


@takes_location
def make_smem_layout(
    major_mode: OperandMajorMode,
    tile_mn_k: tuple[int, int],
    dtype: type[Numeric],
    num_stages: int,
) -> Any:
    """Return the layout (MN, K, stage) of an operand's tile in shared memory, with the widest
    swizzle that divides its contiguous extent, for copies of parts of an operand.

    `major_mode` says which mode is contiguous, `tile_mn_k` are the tile's extents in elements,
    `dtype` is the element type, and `num_stages` the number of tiles. Raises LayoutError for a tile
    that is no multiple of 16 bytes.
    """
    is_k = major_mode is OperandMajorMode.K
    kind = algebra.widest_smem_atom(is_k, dtype.width, tile_mn_k)
    atom = tcgen05.make_smem_layout_atom(kind, dtype)
    order = (0, 1, 2) if is_k else (1, 0, 2)
    return algebra.tile_to_shape(atom, (*tile_mn_k, num_stages), order)


def _tma_load(cluster_shape_mn: Any, atom_thr_id: Any, operand: str) -> Any:
    blocks = int(algebra.size(atom_thr_id))
    m, n = (int(x) for x in tuple(cluster_shape_mn)[:2])
    if choices.multicasts((m, n), blocks, operand):
        return CopyBulkTensorTileG2SMulticastOp(CtaGroup(blocks))
    return CopyBulkTensorTileG2SOp(CtaGroup(blocks))


@takes_location
def cluster_shape_to_tma_atom_A(cluster_shape_mn: Any, atom_thr_id: Any) -> Any:
    """Return the TMA load of A: multicast if the cluster has blocks along N.

    `cluster_shape_mn` is the cluster's blocks along M and N, static (an L behind them is ignored);
    `atom_thr_id` is the tiled MMA's `thr_id`, of 1 or 2 blocks. Raises LayoutError if the cluster's
    M is no multiple of them.
    """
    return _tma_load(cluster_shape_mn, atom_thr_id, "A")


@takes_location
def cluster_shape_to_tma_atom_B(cluster_shape_mn: Any, atom_thr_id: Any) -> Any:
    """Return the TMA load of B: multicast if the cluster has MMAs along M. `cluster_shape_mn` and
    `atom_thr_id` are as for `cluster_shape_to_tma_atom_A`, and so are the errors.
    """
    return _tma_load(cluster_shape_mn, atom_thr_id, "B")


@takes_location
def cluster_shape_to_tma_atom_SFB(cluster_shape_mn: Any, atom_thr_id: Any) -> Any:
    """Return the TMA load of the scale factors of B: multicast as B, and to both blocks of a pair.
    `cluster_shape_mn` and `atom_thr_id` are as for `cluster_shape_to_tma_atom_A`.
    """
    return _tma_load(cluster_shape_mn, atom_thr_id, "SFB")


def _output(layout: LayoutEnum, dtype: type[Numeric]) -> choices.EpilogueMatrix:
    return choices.EpilogueMatrix(dtype.width, layout.is_m_major_c())


def _epilogue_atom(d: choices.EpilogueMatrix, tile: Any) -> str:
    """Return the canonical layout for an epilogue's tile: of two halves side by side, each of which
    one column of warps stores, such that its chunks end where a half does.
    """
    columns = tile[1]
    if d.is_m_major or not isinstance(columns, algebra.Layout) or algebra.rank(columns) != 2:
        return choices.epilogue_smem_atom(d, tile)
    if algebra.rank(algebra.coalesce(columns)) == 2:  # the halves are apart
        return choices.epilogue_smem_atom(d, tile)
    half = int(algebra.size(columns, 0))
    return algebra.widest_smem_atom(True, d.bits, (int(algebra.size(tile[0])), half))


@takes_location
def make_smem_layout_epi(
    epi_dtype: type[Numeric], epi_layout: LayoutEnum, epi_tile: Any, epi_stage: int
) -> Any:
    """Return the layout (EPI_M, EPI_N, stage) of the epilogue's tiles in shared memory, swizzled as
    TMA and matrix stores know it.

    `epi_dtype` is the type of the elements that are stored, `epi_layout` the major mode of C,
    `epi_tile` the tile (M, N), extents or layouts, and `epi_stage` the number of tiles.
    """
    kind = _epilogue_atom(_output(epi_layout, epi_dtype), epi_tile)
    extents = (*(int(algebra.size(x)) for x in epi_tile), epi_stage)
    order = (1, 0, 2) if epi_layout.is_m_major_c() else (0, 1, 2)
    atom = tcgen05.make_smem_layout_atom(kind, epi_dtype)
    return algebra.tile_to_shape(atom, extents, order)


@takes_location
def compute_epilogue_tile_shape(
    cta_tile_shape: tuple[int, int, int],
    use_2cta_instrs: bool,
    layout_d: LayoutEnum,
    elem_ty_d: type[Numeric],
    *,
    layout_c: LayoutEnum | None = None,
    elem_ty_c: type[Numeric] | None = None,
) -> Any:
    """Return the tile (M, N) that an epilogue does at once, as layouts.

    `cta_tile_shape` is the tile of one block in elements, and `use_2cta_instrs` is True for MMAs by
    pairs of blocks. `layout_d` and `elem_ty_d` are the major mode and the element type of the
    output D; `layout_c` (by default D's) and `elem_ty_c` those of C, the matrix that the epilogue
    reads, None without one.
    """
    m, n = cta_tile_shape[:2]
    warps = choices.tmem_warps(2 if use_2cta_instrs else 1, 2 * m)
    c = None
    if elem_ty_c is not None:
        c = _output(layout_d if layout_c is None else layout_c, elem_ty_c)
    d = _output(layout_d, elem_ty_d)
    rows, columns = choices.epilogue_tile((m, n), warps, d, c)
    half = int(algebra.size(columns)) // 2
    if warps[1] == 2 and not d.is_m_major and columns == algebra.make_layout(2 * half):
        chunk = algebra.gmma_smem_atom(choices.epilogue_smem_atom(d, (rows, columns)), d.bits)
        width = int(algebra.size(chunk.outer.shape, 1))
        if half % width and width % half:  # `make_smem_layout_epi` takes narrower chunks
            columns = algebra.Layout((half, 2), (1, half))
    return rows, columns


@takes_location
def compute_epilogue_tile_size(
    cta_tile_m: int, cta_tile_n: int, use_2cta_instrs: bool, elem_width_d: int
) -> tuple[int, int]:
    """Return the extents (M, N) of the tile that an epilogue does at once, for N-major output of
    elements of `elem_width_d` bits.

    `cta_tile_m` and `cta_tile_n` are the extents of one block's tile in elements, and
    `use_2cta_instrs` is True for MMAs by pairs of blocks.
    """
    warps = choices.tmem_warps(2 if use_2cta_instrs else 1, 2 * cta_tile_m)
    tile = choices.epilogue_tile(
        (cta_tile_m, cta_tile_n), warps, choices.EpilogueMatrix(elem_width_d, False)
    )
    return int(algebra.size(tile[0])), int(algebra.size(tile[1]))


@takes_location
def get_tmem_load_op(
    cta_tile_shape: tuple[int, int, int],
    layout_d: LayoutEnum,
    elem_ty_d: type[Numeric],
    elem_ty_acc: type[Numeric],
    epi_tile: Any,
    use_2cta_instrs: bool,
) -> CopyAtom:
    """Return the tcgen05.ld of an epilogue tile whose registers store to shared memory widest.

    `cta_tile_shape` is the tile of one block in elements, `layout_d` and `elem_ty_d` are the major
    mode and the element type of the output D, `elem_ty_acc` is the type of the accumulators, and
    `use_2cta_instrs` is True for MMAs by pairs of blocks. `epi_tile` is that of
    `compute_epilogue_tile_shape`. Raises LayoutError for widths without one.
    """
    m_warps, n_warps = choices.tmem_warps(2 if use_2cta_instrs else 1, 2 * cta_tile_shape[0])
    rows, columns = (int(algebra.size(x)) for x in epi_tile)
    lanes = min(rows // m_warps, WARP_SIZE)
    d = _output(layout_d, elem_ty_d)
    shape, packed = choices.tmem_load(elem_ty_acc.width, d, lanes)
    repeat = algebra.widest_repeat(shape, columns // n_warps * elem_ty_acc.width)
    pack = tcgen05.Pack.PACK_16b_IN_32b if packed else tcgen05.Pack.NONE
    return make_copy_atom(_LOADS[shape](tcgen05.Repetition(repeat), pack), elem_ty_acc)


@takes_location
def get_smem_store_op(
    layout_d: LayoutEnum,
    elem_ty_d: type[Numeric],
    elem_ty_acc: type[Numeric],
    tiled_tmem_load: TiledCopy,
) -> CopyAtom:
    """Return the copy atom that stores what `tiled_tmem_load` loaded, converted to `elem_ty_d`.

    `elem_ty_acc` is the type of the accumulators, and `layout_d` the major mode of D. It is
    stmatrix of 16-bit elements where the registers lie as that takes them, else ordinary stores.
    """
    load: Any = tiled_tmem_load.op
    found = choices.matrix_store(
        elem_ty_acc.width,
        _output(layout_d, elem_ty_d),
        load.shape,
        int(load.repeat),
        load.is_packed,
    )
    if found is None or found.bits == 8:  # 8-bit matrices would spare instructions, no more
        return make_copy_atom(CopyUniversalOp(), elem_ty_d)
    return make_copy_atom(StMatrix8x8x16bOp(found.transposed, found.matrices), elem_ty_d)
