"""`cute.nvgpu`: the operations of NVIDIA GPUs from which copy atoms and MMA atoms are made."""

from basedsl_cute.hardware.unsupported import absent
from basedsl_cute.nvgpu import cpasync, tma, warp, warpgroup
from basedsl_cute.nvgpu.common import (
    CacheEvictionPriority,
    CopyG2ROp,
    CopyR2GOp,
    CopyUniversalOp,
    LoadCacheMode,
    MemoryOrder,
    MemoryScope,
    MmaUniversalOp,
)
from basedsl_cute.nvgpu.tma import make_tiled_tma_atom_A, make_tiled_tma_atom_B
from basedsl_cute.nvgpu.warpgroup import OperandMajorMode, OperandSource

__getattr__ = absent(__name__)

__all__ = [
    "CacheEvictionPriority",
    "CopyG2ROp",
    "CopyR2GOp",
    "CopyUniversalOp",
    "LoadCacheMode",
    "MemoryOrder",
    "MemoryScope",
    "MmaUniversalOp",
    "OperandMajorMode",
    "OperandSource",
    "cpasync",
    "make_tiled_tma_atom_A",
    "make_tiled_tma_atom_B",
    "tma",
    "warp",
    "warpgroup",
]
