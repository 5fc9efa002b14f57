"""`nvgpu.tcgen05`: the fifth generation of tensor cores and its memory (sm_100 and its family).

`cute.gemm` with a tiled MMA of an operation from here multiplies matrices of shared memory into
tensor memory, `commit` says to whom when that is complete, and copies made by `make_tmem_copy`
bring the accumulators to registers.
"""

from typing import TYPE_CHECKING

from basedsl_cute.hardware.unsupported import unsupported_names
from basedsl_cute.nvgpu.operand_modes import OperandMajorMode
from basedsl_cute.nvgpu.tcgen05 import copy, mma
from basedsl_cute.nvgpu.tcgen05.block_scaled import (
    MmaMXF4NVF4Op,
    MmaMXF4Op,
    MmaMXF8F6F4Op,
    MmaMXF8Op,
    SM103MmaMXF4NVF4Op,
    SM103MmaMXF4Op,
)
from basedsl_cute.nvgpu.tcgen05.copy import (
    Ld16x32bx2Op,
    Ld16x64bOp,
    Ld16x128bOp,
    Ld16x256bOp,
    Ld32x32bOp,
    LdRed16x32bx2Op,
    LdRed32x32bOp,
    St16x32bx2Op,
    St16x64bOp,
    St16x128bOp,
    St16x256bOp,
    St32x32bOp,
    find_tmem_tensor_col_offset,
    get_tmem_copy_properties,
    is_tmem_load,
    is_tmem_store,
    make_tmem_copy,
)
from basedsl_cute.nvgpu.tcgen05.cp import (
    Cp2x64x128b0123Op,
    Cp2x64x128b0213Op,
    Cp4x32x128bOp,
    Cp4x256bOp,
    Cp128x128bOp,
    Cp128x256bOp,
    CpExpand,
    get_s2t_smem_desc_tensor,
    make_s2t_copy,
)
from basedsl_cute.nvgpu.tcgen05.mma import (
    MmaF8F6F4Op,
    MmaF16BF16Op,
    MmaFP8Op,
    MmaI8Op,
    MmaTF32Op,
    commit,
)
from basedsl_cute.nvgpu.tcgen05.modes import (
    CtaGroup,
    Field,
    OperandSource,
    Pack,
    Repetition,
    SmemLayoutAtomKind,
    TmemLoadRedOp,
    Unpack,
    make_smem_layout_atom,
    tile_to_mma_shape,
)
from basedsl_cute.nvgpu.tcgen05.operands import make_umma_smem_desc

if not TYPE_CHECKING:  # a type checker reports names that do not exist
    __getattr__ = unsupported_names(__name__)

__all__ = [
    "Cp2x64x128b0123Op",
    "Cp2x64x128b0213Op",
    "Cp4x32x128bOp",
    "Cp4x256bOp",
    "Cp128x128bOp",
    "Cp128x256bOp",
    "CpExpand",
    "CtaGroup",
    "Field",
    "Ld16x32bx2Op",
    "Ld16x64bOp",
    "Ld16x128bOp",
    "Ld16x256bOp",
    "Ld32x32bOp",
    "LdRed16x32bx2Op",
    "LdRed32x32bOp",
    "MmaF8F6F4Op",
    "MmaF16BF16Op",
    "MmaFP8Op",
    "MmaI8Op",
    "MmaMXF4NVF4Op",
    "MmaMXF4Op",
    "MmaMXF8F6F4Op",
    "MmaMXF8Op",
    "MmaTF32Op",
    "OperandMajorMode",
    "OperandSource",
    "Pack",
    "Repetition",
    "SM103MmaMXF4NVF4Op",
    "SM103MmaMXF4Op",
    "SmemLayoutAtomKind",
    "St16x32bx2Op",
    "St16x64bOp",
    "St16x128bOp",
    "St16x256bOp",
    "St32x32bOp",
    "TmemLoadRedOp",
    "Unpack",
    "commit",
    "copy",
    "find_tmem_tensor_col_offset",
    "get_s2t_smem_desc_tensor",
    "get_tmem_copy_properties",
    "is_tmem_load",
    "is_tmem_store",
    "make_s2t_copy",
    "make_smem_layout_atom",
    "make_tmem_copy",
    "make_umma_smem_desc",
    "mma",
    "tile_to_mma_shape",
]
