"""`cute.nvgpu`: the operations of NVIDIA GPUs from which copy atoms and MMA atoms are made."""

from typing import TYPE_CHECKING

from basedsl import imported_later
from basedsl_cute.hardware.unsupported import unsupported_names
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

if TYPE_CHECKING:
    from basedsl_cute.nvgpu import cpasync, tcgen05, tma, warp, warpgroup
    from basedsl_cute.nvgpu.tma import make_tiled_tma_atom_A, make_tiled_tma_atom_B
    from basedsl_cute.nvgpu.warpgroup import OperandMajorMode, OperandSource
else:  # a type checker reports names that do not exist
    # Most kernels use the operations of one architecture, or none of these.
    __getattr__ = imported_later(__name__, unsupported_names(__name__))

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
    "tcgen05",
    "tma",
    "warp",
    "warpgroup",
]


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
