"""`basedsl_cute.ops`: whole kernels, ready to call; `matmul` picks one for two arrays."""

from basedsl_cute.ops.gemm.matmul import matmul

__all__ = ["matmul"]
