"""`cute.runtime`: tensors and pointers as arguments, placeholders, and loading exported objects."""

from basedsl_cute.arrays.placeholders import (
    make_fake_compact_tensor,
    make_fake_stream,
    make_fake_tensor,
)
from basedsl_cute.arrays.tensor import HostPointer as Pointer
from basedsl_cute.arrays.tensor import HostTensor as Tensor
from basedsl_cute.arrays.tensor import from_dlpack, make_ptr
from basedsl_cute.dsl.loaded import find_runtime_libraries, load_module

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
