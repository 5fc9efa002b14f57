"""`Array`, `make_array_view`, `inttoptr`, `GridConstant`: what programs of CuTe's experimental
primitives use in place of layouts.
"""

from __future__ import annotations

import math
from typing import Any

from basedsl import DSLTypeError, Uint8, current_trace
from basedsl_cute import algebra
from basedsl_cute.algebra.ignored_location import takes_location, takes_location_untyped
from basedsl_cute.tensors.make_tensor import (
    alloc_smem,
    make_ptr,
    make_rmem_tensor,
    make_tensor,
    space_name,
)
from basedsl_cute.tensors.pointer import Pointer, element_bytes
from basedsl_cute.tensors.tensor import Tensor


class Array:
    """An array of `shape` elements of `dtype`, in C's order: the last index is the fastest.

    `ptr` is the pointer to the first element, or None for new memory in `space`: registers of the
    thread ("rmem", the default) or shared memory of the block ("smem"). `alignment` is in bytes.
    `a[i, j]` is an element, `a[i]` of an array of several dimensions the array of its rest. Raises
    DSLTypeError for another space, and for a shape that is not static.

    >>> import basedsl_cute as cute
    >>> @cute.kernel
    ... def corner(out: cute.Tensor):
    ...     square = cute.Array(None, cute.Float32, (4, 4))
    ...     square.fill(0.0)
    ...     square[3, 3] = 1.0
    ...     out[0] = square[3][3]
    """

    @takes_location_untyped
    def __init__(
        self,
        ptr: Pointer | None,
        dtype: Any,
        shape: Any,
        space: Any = None,
        alignment: int | None = None,
    ) -> None:
        current_trace("an Array")
        shape = shape if isinstance(shape, tuple) else (shape,)
        if not all(type(extent) is int for extent in shape):
            raise DSLTypeError(f"the shape of an Array is static integers, not {shape}")
        layout = algebra.make_ordered_layout(shape, tuple(reversed(range(len(shape)))))
        if ptr is not None:
            start = ptr if alignment is None else ptr.align(alignment)
            self.tensor: Tensor = make_tensor(start, layout)
            return
        kind = "rmem" if space is None else space_name(space)
        if kind == "rmem":
            self.tensor = make_rmem_tensor(layout, dtype)
        elif kind == "smem":
            size = math.prod(shape) * element_bytes(dtype)
            align = alignment or element_bytes(dtype)
            self.tensor = make_tensor(alloc_smem(dtype, size, align, "an Array"), layout)
        else:
            raise DSLTypeError(
                f"an Array without a pointer is in registers or shared memory, not in {kind}",
                hint="pass the pointer of the memory as first argument",
            )

    @classmethod
    def of(cls, tensor: Tensor) -> Array:
        """Return the array that is `tensor`, a view of memory."""
        made = cls.__new__(cls)
        made.tensor = tensor
        return made

    @property
    def dtype(self) -> Any:
        """The element type, a numeric class."""
        return self.tensor.element_type

    @property
    def shape(self) -> Any:
        """The extents, as a tuple."""
        shape = self.tensor.shape
        return shape if isinstance(shape, tuple) else (shape,)

    @property
    def ptr(self) -> Pointer:
        """The pointer to the first element."""
        return self.tensor.pointer

    @property
    def alignment(self) -> int:
        """The known alignment of the first element, in bytes."""
        return self.ptr.alignment

    def __len__(self) -> int:
        return int(self.shape[0])

    def __getitem__(self, index: Any) -> Any:
        where = index if isinstance(index, tuple) else (index,)
        if len(where) > len(self.shape):
            raise DSLTypeError(f"{len(where)} indices for an Array of shape {self.shape}")
        if len(where) == len(self.shape):
            return self.tensor[where if len(where) > 1 else where[0]]
        return Array.of(self.tensor[(*where, *(None,) * (len(self.shape) - len(where)))])

    def __setitem__(self, index: Any, value: Any) -> None:
        where = index if isinstance(index, tuple) else (index,)
        if len(where) != len(self.shape):
            raise DSLTypeError(
                f"one element of an Array of shape {self.shape} takes {len(self.shape)} indices",
                hint="store a vector into a part: a[i].store(vector)",
            )
        self.tensor[where if len(where) > 1 else where[0]] = value

    @takes_location
    def load(self) -> Any:
        """Load all elements as a vector of the array's shape."""
        return self.tensor.load()

    @takes_location
    def store(self, value: Any) -> None:
        """Store `value`, a vector of the array's shape."""
        self.tensor.store(value)

    @takes_location
    def fill(self, value: Any) -> None:
        """Set all elements to the number `value`."""
        self.tensor.fill(value)

    def __str__(self) -> str:
        return f"array<{self.dtype.__name__}, {self.shape}, {self.ptr.space}>"

    __repr__ = __str__


@takes_location
def make_array_view(tensor: Tensor) -> Array:
    """Return the elements of a tensor as an `Array` with its modes as dimensions."""
    if not isinstance(tensor, Tensor):
        raise DSLTypeError(f"make_array_view takes a tensor, got {type(tensor).__name__}")
    return Array.of(tensor)


@takes_location
def inttoptr(value: Any, mem_space: Any = "generic", dtype: Any = None) -> Pointer:
    """Return the pointer to elements of `dtype` (by default bytes) at the address `value` in the
    address space `mem_space`.
    """
    return make_ptr(Uint8 if dtype is None else dtype, value, mem_space)


class GridConstant:
    """The annotation `GridConstant[T]` of a kernel's parameter that is passed by value. Objects,
    structs and tensor maps are in any case: it is `T`.
    """

    def __class_getitem__(cls, item: Any) -> Any:
        return item
