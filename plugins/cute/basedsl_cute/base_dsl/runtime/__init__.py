"""`base_dsl.runtime`: has `cuda`, the same module as `basedsl_cute.cuda`."""

from basedsl_cute.interop import cuda

__all__ = ["cuda"]
