"""Ahead of time: a compiled function as an object file and a C header, and back into Python."""

from basedsl_cute.aot.export import export_to_c
from basedsl_cute.aot.load import LoadedModule, load_module

__all__ = ["LoadedModule", "export_to_c", "load_module"]
