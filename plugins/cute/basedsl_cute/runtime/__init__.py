"""Running compiled kernels: arrays from other libraries, the CUDA driver, launches.

For callers: tensors and pointers as arguments, and placeholders to compile with.
"""

from pathlib import Path
from typing import Any

from basedsl_cute.runtime.fakes import (
    make_fake_compact_tensor,
    make_fake_stream,
    make_fake_tensor,
)
from basedsl_cute.runtime.tensor import Pointer, Tensor, from_dlpack, make_ptr


def load_module(path: str | Path, *, enable_tvm_ffi: bool = False) -> Any:
    """The functions of an object that `compiled.export_to_c` wrote, as attributes by prefix."""
    from basedsl_cute.aot import load  # which needs the DSL, which needs this package

    return load.load_module(path, enable_tvm_ffi=enable_tvm_ffi)


def find_runtime_libraries(*, enable_tvm_ffi: bool = False) -> list[str]:
    """What an exported object is linked with besides libcuda: nothing."""
    return []


__all__ = [
    "Pointer",
    "Tensor",
    "find_runtime_libraries",
    "from_dlpack",
    "load_module",
    "make_fake_compact_tensor",
    "make_fake_stream",
    "make_fake_tensor",
    "make_ptr",
]
