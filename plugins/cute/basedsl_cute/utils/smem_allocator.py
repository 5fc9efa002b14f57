"""Shared memory, allocated while tracing; two allocations never overlap."""

from __future__ import annotations

from typing import Any

from basedsl_cute.memory import make_smem_tensor
from basedsl_cute.pointer import Pointer
from basedsl_cute.tensor import Tensor


class SmemAllocator:
    """Gives out shared memory of the block."""

    def allocate_tensor(
        self, element_type: Any, layout: Any, byte_alignment: int | None = None
    ) -> Tensor:
        """A tensor of `layout` (or a shape), aligned to `byte_alignment` bytes (at least 16)."""
        return make_smem_tensor(element_type, layout, byte_alignment, "allocate_tensor()")

    def allocate_array(self, element_type: Any, num_elems: int = 1) -> Pointer:
        """A pointer to `num_elems` consecutive elements."""
        return make_smem_tensor(element_type, num_elems, None, "allocate_array()").iterator
