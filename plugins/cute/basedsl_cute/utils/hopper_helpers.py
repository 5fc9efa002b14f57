"""`utils.hopper_helpers` (= `utils.sm90`): layouts, tiles and instructions that Hopper kernels
share.
"""

from __future__ import annotations

from typing import Any

from basedsl import DSLTypeError, Numeric
from basedsl_cute import algebra
from basedsl_cute.algebra.ignored_location import takes_location
from basedsl_cute.atoms.copy import CopyAtom, make_copy_atom
from basedsl_cute.atoms.mma import TiledMma, make_tiled_mma
from basedsl_cute.nvgpu.common import CopyUniversalOp
from basedsl_cute.nvgpu.warp import StMatrix8x8x16bOp
from basedsl_cute.nvgpu.warpgroup import (
    OperandMajorMode,
    OperandSource,
    SmemLayoutAtomKind,
    make_mma_op,
    make_smem_layout_atom,
)
from basedsl_cute.utils.layout_enum import LayoutEnum

__all__ = [
    "LayoutEnum",
    "compute_tile_shape_or_override",
    "get_smem_layout_atom",
    "make_smem_layout_a",
    "make_smem_layout_b",
    "make_smem_layout_epi",
    "make_trivial_tiled_mma",
    "sm90_get_smem_store_op",
]


@takes_location
def make_trivial_tiled_mma(
    a_dtype: type[Numeric],
    b_dtype: type[Numeric],
    a_leading_mode: OperandMajorMode,
    b_leading_mode: OperandMajorMode,
    acc_dtype: type[Numeric],
    atom_layout_mnk: Any,
    tiler_mn: tuple[int, int],
    a_source: OperandSource = OperandSource.SMEM,
) -> TiledMma:
    """Return the tiled wgmma of these element types, repeated over warpgroups.

    - `a_dtype`, `b_dtype`, `acc_dtype`: element types of A, B and the accumulator.
    - `a_leading_mode`, `b_leading_mode`: the major modes of A and B in shared memory.
    - `atom_layout_mnk`: the warpgroups along M, N and K, such as (2, 1, 1).
    - `tiler_mn`: N of one instruction is `tiler_mn[1]`.
    - `a_source`: where A is read from.

    Raises DSLTypeError if there is no such instruction.
    """
    majors = (a_leading_mode, b_leading_mode)
    op = make_mma_op(a_dtype, b_dtype, acc_dtype, tiler_mn[1], a_source, *majors)
    return make_tiled_mma(op, atom_layout_mnk)


@takes_location
def get_smem_layout_atom(
    layout: LayoutEnum, dtype: type[Numeric], major_mode_size: int
) -> SmemLayoutAtomKind:
    """Return the layout atom with the widest swizzle that divides the contiguous extent of a tile.

    The swizzles are 128, 64 and 32 bytes, or none. `layout` says which mode is contiguous,
    `major_mode_size` is its extent in elements of `dtype`. Raises DSLTypeError unless that is a
    multiple of 16 bytes.
    """
    major = "K" if layout is LayoutEnum.ROW_MAJOR else "MN"
    bits = major_mode_size * dtype.width
    for width, name in ((128, "SW128"), (64, "SW64"), (32, "SW32"), (16, "INTER")):
        if bits % (8 * width) == 0:
            return SmemLayoutAtomKind[f"{major}_{name}"]
    raise DSLTypeError(
        f"{major_mode_size} elements of {dtype.__name__} are no multiple of 16 bytes"
    )


@takes_location
def make_smem_layout_a(
    a_layout: LayoutEnum,
    mma_tiler_mnk: tuple[int, int, int],
    a_dtype: type[Numeric],
    num_stages: int,
) -> Any:
    """Return the layout (M, K, stage) of A in shared memory, swizzled as wgmma and TMA know it.

    `a_layout` says which mode of A is contiguous; M and K are those of `mma_tiler_mnk`. Elements
    are of `a_dtype`, and there are `num_stages` stages.

    >>> hopper = cute.utils.hopper_helpers
    >>> row_major = cute.utils.LayoutEnum.ROW_MAJOR
    >>> print(hopper.make_smem_layout_a(row_major, (128, 128, 64), cute.Float16, 4))
    S<3,3,3> o 0 o ((8,16),(64,1),(1,4)):((64,512),(1,0),(0,8192))
    """
    m, _, k = mma_tiler_mnk
    return _operand(a_layout, (m, k), a_dtype, (m, k, num_stages))


@takes_location
def make_smem_layout_b(
    b_layout: LayoutEnum,
    mma_tiler_mnk: tuple[int, int, int],
    b_dtype: type[Numeric],
    num_stages: int,
) -> Any:
    """Return the layout (N, K, stage) of B in shared memory, swizzled as wgmma and TMA know it.

    `b_layout` says which mode of B is contiguous; N and K are those of `mma_tiler_mnk`. Elements
    are of `b_dtype`, and there are `num_stages` stages.
    """
    _, n, k = mma_tiler_mnk
    return _operand(b_layout, (n, k), b_dtype, (n, k, num_stages))


@takes_location
def make_smem_layout_epi(
    dtype: type[Numeric],
    layout: LayoutEnum,
    epi_tile: tuple[int, int],
    num_stages: int,
    target_shape: tuple[int, ...] | None = None,
    smem_order: tuple[int, ...] | None = None,
) -> Any:
    """Return the layout (M, N, stage) of the epilogue's tiles in shared memory.

    - `dtype`, `layout`: the element type of C, and which mode is contiguous.
    - `epi_tile`: the tile (M, N) that goes through shared memory at once; the swizzle is the
      widest for it.
    - `num_stages`: the number of such tiles.
    - `target_shape`: the whole shape to cover, by default `num_stages` tiles.
    - `smem_order`: the order in which the swizzled blocks go along the modes of that shape.
    """
    shape = (*epi_tile, num_stages) if target_shape is None else target_shape
    return _operand(layout, epi_tile, dtype, shape, smem_order)


@takes_location
def sm90_get_smem_store_op(
    layout_d: LayoutEnum, elem_ty_d: type[Numeric], elem_ty_acc: type[Numeric]
) -> CopyAtom:
    """Return the copy atom that stores accumulators of `elem_ty_acc`, converted to `elem_ty_d`, to
    shared memory with the major mode of `layout_d`, a `LayoutEnum`.

    It is stmatrix of four matrices for 16-bit results, transposing where M is contiguous, and
    ordinary stores for others. Raises DSLTypeError for something else than element types.
    """
    for name, dtype in (("elem_ty_d", elem_ty_d), ("elem_ty_acc", elem_ty_acc)):
        if not (isinstance(dtype, type) and issubclass(dtype, Numeric)):
            raise DSLTypeError(f"{name} is an element type, not {dtype!r}")
    if elem_ty_d.width == 16:
        return make_copy_atom(StMatrix8x8x16bOp(layout_d.is_m_major_c(), 4), elem_ty_d)
    return make_copy_atom(CopyUniversalOp(), elem_ty_d)


def _operand(
    layout: LayoutEnum, tile: tuple[int, int], dtype: Any, shape: Any, order: Any = None
) -> Any:
    is_row = layout is LayoutEnum.ROW_MAJOR
    kind = get_smem_layout_atom(layout, dtype, tile[1] if is_row else tile[0])
    atom = make_smem_layout_atom(kind, dtype)
    if order is None:
        # Atoms go along the strided mode first, so that one TMA box reaches as far as it can.
        order = (0, 1, 2) if is_row else (1, 0, 2)
    return algebra.tile_to_shape(atom, shape, order)


@takes_location
def compute_tile_shape_or_override(
    tile_shape_mnk: tuple[int, int, int],
    element_type: type[Numeric],
    is_cooperative: bool = False,
    epi_tile_override: tuple[int, int] | None = None,
) -> tuple[int, int]:
    """Return the epilogue's tile (M, N): the part of a tile that goes through shared memory at
    once.

    - `tile_shape_mnk`: the tile that a block computes.
    - `element_type`: that of C.
    - `is_cooperative`: two warpgroups share the tile's rows.
    - `epi_tile_override`: the answer, if given.
    """
    if epi_tile_override is not None:
        return epi_tile_override
    m, n, _ = tile_shape_mnk
    if is_cooperative:
        return (min(128, m), min(32, n))
    return (min(64, m), min(64 if element_type.width == 8 else 32, n))
