"""Ahead-of-time export of functions with kernels, on the core's: `compiled.export_to_c(...)`."""

from basedsl_cute.aot.export import KernelExport
from basedsl_cute.aot.loaded import LoadedKernels

__all__ = ["KernelExport", "LoadedKernels"]
