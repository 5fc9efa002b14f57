"""Scale factors of block-scaled mma.sync (GeForce Blackwell): tiles of threads, and the parts of
shared memory and of registers that a thread has.
"""

from __future__ import annotations

from typing import Any

from basedsl import DSLTypeError, Numeric
from basedsl_cute import algebra
from basedsl_cute.algebra import MmaAtomLayout, MmaTiling
from basedsl_cute.algebra.ignored_location import takes_location
from basedsl_cute.atoms.copy import CopyAtom, make_copy_atom
from basedsl_cute.atoms.mma import ThrMma, TiledMma
from basedsl_cute.nvgpu.common import CopyUniversalOp
from basedsl_cute.nvgpu.warp import StMatrix8x8x16bOp, WarpBlockScaledMma
from basedsl_cute.tensors.make_tensor import make_rmem_tensor
from basedsl_cute.tensors.tensor import Tensor
from basedsl_cute.utils import blackwell_choices as choices
from basedsl_cute.utils.layout_enum import LayoutEnum

_ROWS = 128  # of a tile at once


@takes_location
def get_permutation_mnk(
    tile_shape_mnk: tuple[int, int, int], sf_vec_size: int, use_mxf8f6f4: bool
) -> tuple[Any, Any, Any]:
    """Return the `permutation_mnk` of a tiled block-scaled mma.sync for a tile of `tile_shape_mnk`
    elements.

    M is that of the tile, up to 128; N is ordered so that one ldmatrix feeds several instructions;
    K is that of one instruction, 32 of `use_mxf8f6f4` and else 64. `sf_vec_size` is the elements
    along K that share a factor. Raises DSLTypeError for another number than 16 and 32.

    >>> print(cute.utils.sm100.get_permutation_mnk((128, 64, 128), 16, False))
    (128, (8,2,2):(1,16,8), 64)
    """
    m, n, _ = tile_shape_mnk
    if sf_vec_size not in (16, 32):
        raise DSLTypeError(f"factors are for 16 or 32 elements, not {sf_vec_size}")
    return min(m, _ROWS), choices.sm120_columns(n), 32 if use_mxf8f6f4 else 64


def _tiling(tiled_mma: TiledMma) -> MmaTiling:
    """Return the tiling of the scale factors: that of the operands, with lanes that share them."""
    op = tiled_mma.op
    if not isinstance(op, WarpBlockScaledMma):
        raise DSLTypeError(
            f"{op} has no scale factors in registers",
            hint="nvgpu.warp.MmaMXF8Op, MmaMXF8F6F4Op, MmaMXF4Op and MmaMXF4NVF4Op have",
        )
    atom, tiling = op.layout(), tiled_mma.tiling
    scales = MmaAtomLayout(
        atom.shape_mnk,
        atom.thr_id,
        algebra.warp_scales(atom, "SFA"),
        algebra.warp_scales(atom, "SFB"),
        atom.tv_layout_C,
    )
    return MmaTiling(scales, tiling.atom_layout_mnk, tiling.permutation_mnk)


@takes_location
def get_layoutSFA_TV(tiled_mma: TiledMma) -> Any:
    """Return the layout (thread, value) -> position in the tile (M, K) of the factors of A, for
    `cute.make_tiled_copy` from shared memory. Raises DSLTypeError for a `tiled_mma` whose operation
    takes no scale factors in registers.
    """
    return _tiling(tiled_mma).tv_layout_tiled("A")


@takes_location
def get_layoutSFB_TV(tiled_mma: TiledMma) -> Any:
    """Return the layout (thread, value) -> position in the tile (N, K) of the factors of B for
    `tiled_mma`; see `get_layoutSFA_TV`.
    """
    return _tiling(tiled_mma).tv_layout_tiled("B")


@takes_location
def partition_fragment_SFA(sfa_tensor: Tensor, thr_mma: ThrMma, tidx: Any) -> Tensor:
    """Return registers for the factors of A of thread `tidx`: (values, MMA_M, MMA_K, ...).

    `sfa_tensor` is one stage (M, K) of the factors in shared memory, and `thr_mma` the tiled MMA or
    a thread's slice of it. Raises DSLTypeError for an operation without scale factors in registers.
    """
    return _fragment(sfa_tensor, thr_mma, "A", tidx)


@takes_location
def partition_fragment_SFB(sfb_tensor: Tensor, thr_mma: ThrMma, tidx: Any) -> Tensor:
    """Return registers for the factors of B of thread `tidx`: (values, MMA_N, MMA_K, ...).

    `sfb_tensor` is one stage (N, K) of the factors in shared memory; `thr_mma` is as for
    `partition_fragment_SFA`, and so are the errors.
    """
    return _fragment(sfb_tensor, thr_mma, "B", tidx)


def _fragment(tensor: Tensor, thr_mma: Any, operand: str, tidx: Any) -> Tensor:
    mma = thr_mma.tiled_mma if isinstance(thr_mma, ThrMma) else thr_mma
    part, _ = _tiling(mma).partition(operand, tensor.layout, tidx)
    made: Tensor = make_rmem_tensor(algebra.make_fragment_like(part), tensor.element_type)
    return made


@takes_location
def sm120_get_smem_store_op(
    layout_d: LayoutEnum, elem_ty_d: type[Numeric], elem_ty_acc: type[Numeric]
) -> CopyAtom:
    """Return the copy atom that stores accumulators of mma.sync, converted to `elem_ty_d`, to
    shared memory.

    It is stmatrix of the two matrices of an accumulator for 16-bit results, transposing where
    `layout_d`, the major mode of D, has M contiguous, and ordinary stores for others.
    `elem_ty_acc`, the type of the accumulators, has no effect.
    """
    if elem_ty_d.width == 16:
        return make_copy_atom(StMatrix8x8x16bOp(layout_d.is_m_major_c(), 2), elem_ty_d)
    return make_copy_atom(CopyUniversalOp(), elem_ty_d)
