"""Ahead-of-time export: a compiled function as an object file and a C header."""

from basedsl_cute.aot.export import export_to_c

__all__ = ["export_to_c"]
