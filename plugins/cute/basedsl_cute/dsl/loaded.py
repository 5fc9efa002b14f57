"""`load_module`: calling the functions of an exported object file or shared library from Python."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from basedsl_cute.algebra.explained_calls import explains_arguments
from basedsl_cute.dsl.cute import CUTE

if TYPE_CHECKING:
    from basedsl import LoadedModule


@explains_arguments
def load_module(path: str | Path, *, enable_tvm_ffi: bool = False) -> LoadedModule:
    """Load the functions of the object file at `path`, which `export_to_c` wrote, or of a shared
    library (".so") linked from such files. `enable_tvm_ffi` has no effect.

    Returns a module with each function as the attribute of its prefix. Raises DSLRuntimeError for
    a file without exported functions, and for one that is not as it was written: an object file has
    a digest of all of it, a shared library one of the description of its functions. Only load files
    that you trust: they contain machine code.
    """
    return CUTE.load_module(path)


@explains_arguments
def find_runtime_libraries(*, enable_tvm_ffi: bool = False) -> list[str]:
    """Return the libraries that an exported object is linked with besides libcuda: none, whatever
    `enable_tvm_ffi` is."""
    return []
