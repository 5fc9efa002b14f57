"""`cute.nvgpu`: the operations of NVIDIA GPUs that copy and MMA atoms are made of."""

from basedsl_cute.nvgpu import cpasync
from basedsl_cute.nvgpu.common import CopyG2ROp, CopyUniversalOp, LoadCacheMode

__all__ = ["CopyG2ROp", "CopyUniversalOp", "LoadCacheMode", "cpasync"]
