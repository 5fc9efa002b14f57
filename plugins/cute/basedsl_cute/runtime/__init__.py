"""Running compiled kernels: arrays from other libraries, the CUDA driver, launches.

For callers: tensors and pointers as arguments, and placeholders to compile with.
"""

from basedsl_cute.runtime.fakes import (
    make_fake_compact_tensor,
    make_fake_stream,
    make_fake_tensor,
)
from basedsl_cute.runtime.tensor import Pointer, Tensor, from_dlpack, make_ptr

__all__ = [
    "Pointer",
    "Tensor",
    "from_dlpack",
    "make_fake_compact_tensor",
    "make_fake_stream",
    "make_fake_tensor",
    "make_ptr",
]
