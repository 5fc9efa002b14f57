"""Allocation of shared memory while tracing; two allocations never overlap.

Each allocation is one `cute.alloc_smem`. Where a kernel's sum is beyond what it may have
statically (48 KiB), all of them become places in dynamic shared memory, which the launch provides
by itself; `smem_report` shows them.
"""

from __future__ import annotations

import enum
from typing import Any

from basedsl import DSLTypeError, Numeric, Uint8
from basedsl_cute import algebra
from basedsl_cute.algebra.ignored_location import takes_location, takes_location_untyped
from basedsl_cute.dsl.hardware_info import get_smem_capacity_in_bytes
from basedsl_cute.tensors.make_tensor import (
    alloc_smem,
    as_layout,
    checked_alignment,
    make_smem_tensor,
    place_tensor,
)
from basedsl_cute.tensors.pointer import Pointer, element_bytes
from basedsl_cute.tensors.smem_struct import StructType, array_bytes
from basedsl_cute.tensors.tensor import Tensor


class SmemPartition(enum.Enum):
    """The part of shared memory that a program asks for; where it lies is decided here."""

    DEFAULT = "default"
    RESERVED = "reserved"


class SmemAllocator:
    """An allocator of the block's shared memory.

    >>> @cute.kernel
    ... def reverse(x: cute.Tensor):
    ...     tile = cute.utils.SmemAllocator().allocate_tensor(cute.Int32, cute.make_layout(32))
    ...     i = cute.arch.thread_idx()[0]
    ...     tile[i] = x[i]
    ...     cute.arch.sync_threads()
    ...     x[i] = tile[31 - i]
    >>> @cute.jit
    ... def launch(x: cute.Tensor):
    ...     reverse(x).launch(grid=1, block=32)
    >>> x = np.arange(32, dtype=np.int32)
    >>> launch(x)
    >>> print(x[:4])
    [31 30 29 28]
    """

    @staticmethod
    @takes_location_untyped
    def capacity_in_bytes(compute_capability: str | None = None) -> int:
        """Return the most shared memory of one block in bytes, of the target `compute_capability`
        such as "sm_90" or, by default, of the current one.
        """
        return get_smem_capacity_in_bytes(compute_capability)

    @takes_location
    def allocate(self, size_or_type: Any, byte_alignment: int = 1, *, partition: Any = None) -> Any:
        """Allocate a struct, a number, or bytes, and return it or a pointer to it.

        - `size_or_type`: a `cute.struct` class (the result is its instance in memory), a numeric
          class (a pointer to one number), or a static number of bytes (a pointer to Uint8).
        - `byte_alignment`: a power of two; a type's own alignment counts too.
        - `partition`: accepted and not used.

        Raises DSLTypeError for anything else.
        """
        what = "allocate()"
        byte_alignment = checked_alignment(byte_alignment, what)
        if isinstance(size_or_type, StructType):
            align = max(byte_alignment, size_or_type.alignment)
            fields = ";".join(f"{name}:{offset}" for name, _, offset in size_or_type.fields)
            pointer = alloc_smem(
                Uint8, size_or_type.size, align, what, name=size_or_type.name, fields=fields
            )
            return size_or_type(pointer)
        if isinstance(size_or_type, type) and issubclass(size_or_type, Numeric):
            size = element_bytes(size_or_type)
            return alloc_smem(size_or_type, size, max(byte_alignment, size), what)
        if type(size_or_type) is int and size_or_type >= 0:
            return alloc_smem(Uint8, size_or_type, byte_alignment, what)
        raise DSLTypeError(
            f"allocate() takes a struct, a numeric type or a static number of bytes, got "
            f"{size_or_type!r}"
        )

    @takes_location
    def allocate_array(
        self,
        element_type: type[Numeric],
        num_elems: int = 1,
        byte_alignment: int = 1,
        *,
        partition: Any = None,
    ) -> Pointer:
        """Allocate `num_elems` consecutive elements of `element_type`, a static number, and return
        a pointer to them.

        They are aligned to 16 bytes at least, or to `byte_alignment`, a power of two. `partition`
        is accepted and not used. Raises DSLTypeError for other arguments.
        """
        if type(num_elems) is not int or num_elems < 0:
            raise DSLTypeError(f"allocate_array() takes a static count, not {num_elems!r}")
        byte_alignment = checked_alignment(byte_alignment, "allocate_array()")
        align = max(byte_alignment, element_bytes(element_type), 16)
        return alloc_smem(
            element_type, array_bytes(element_type, num_elems), align, "allocate_array()"
        )

    @takes_location
    def allocate_tensor(
        self,
        element_type: type[Numeric],
        layout: Any,
        byte_alignment: int | None = None,
        swizzle: Any = None,
        *,
        partition: Any = None,
    ) -> Tensor:
        """Allocate a tensor of `element_type` and of `layout` (or a shape, compact and
        column-major), and return it.

        It is aligned to 16 bytes at least, or to `byte_alignment`. A `swizzle` acts on bits of the
        byte address; that of a composed layout acts on elements; both go to the pointer.
        `partition` is accepted and not used. Raises DSLTypeError for a layout that is not static or
        maps two coordinates to one place.
        """
        layout = as_layout(layout)
        plain = layout
        if isinstance(layout, algebra.ComposedLayout):
            plain = layout.outer
        made = make_smem_tensor(element_type, plain, byte_alignment, "allocate_tensor()")
        distinct = algebra.filter_zeros(plain)
        if algebra.size(distinct) > algebra.cosize(distinct):
            raise DSLTypeError(
                f"allocate_tensor(): elements of {plain} share memory",
                notes=(
                    (
                        f"it has {algebra.size(distinct)} elements in {algebra.cosize(distinct)} "
                        "places",
                        None,
                    ),
                ),
                hint="pad lines by a larger stride; a view may overlap, as get_tensor() makes",
            )
        if plain is layout and swizzle is None:
            return made
        if isinstance(layout, algebra.ComposedLayout) and not isinstance(
            layout.inner, algebra.Swizzle
        ):
            return made.with_layout(layout)
        return place_tensor(made.pointer, layout, swizzle, element_type)
