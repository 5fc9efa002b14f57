"""`utils.gemm`: parts of GEMM kernels, by architecture."""

from basedsl_cute.utils.gemm import sm100

__all__ = ["sm100"]
