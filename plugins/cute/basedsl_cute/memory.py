"""Making tensors: over a pointer, in registers, in shared memory."""

from __future__ import annotations

from typing import Any

from basedsl.errors import DSLTypeError
from basedsl.metastage import require
from basedsl_cute import algebra
from basedsl_cute.arch.indices import in_kernel
from basedsl_cute.dialect import define
from basedsl_cute.tensor import Iterator, Tensor, memref_type


def as_layout(shape_or_layout: Any) -> Any:
    """A layout; a shape becomes the compact column-major one."""
    if isinstance(shape_or_layout, algebra.Layout | algebra.ComposedLayout):
        return shape_or_layout
    return algebra.make_layout(shape_or_layout)


def make_tensor(iterator: Iterator, layout: Any) -> Tensor:
    """The view of memory that begins at `iterator`, in the order of `layout` (or of a shape)."""
    if not isinstance(iterator, Iterator):
        raise DSLTypeError(f"make_tensor takes a pointer, got {type(iterator).__name__}")
    trace = require("make_tensor()")
    layout = as_layout(layout)
    kind = memref_type(trace, iterator.dtype, iterator.space, layout, iterator.align)
    value = define(trace.bindings).recast(iterator.ir_value(), kind, loc=trace.loc())
    return Tensor(iterator.with_ir_value(value), layout)


def make_rmem_tensor(shape_or_layout: Any, dtype: Any) -> Tensor:
    """A tensor in the thread's registers, undefined until written. The layout must be static."""
    trace = in_kernel("make_rmem_tensor()")
    layout = _static(as_layout(shape_or_layout), "a register tensor")
    nbytes = algebra.size_in_bytes(dtype, layout)
    align = _power_of_two_up_to(nbytes, 16)
    kind = memref_type(trace, dtype, "rmem", layout, align)
    value = define(trace.bindings).alloc_rmem(kind, nbytes, loc=trace.loc())
    return Tensor(Iterator(dtype, "rmem", align, value), layout)


def make_smem_tensor(dtype: Any, layout: Any, byte_alignment: int | None, name: str) -> Tensor:
    """A tensor in shared memory of its own, undefined until written. The layout must be static."""
    trace = in_kernel(name)
    layout = _static(as_layout(layout), "a shared-memory tensor")
    nbytes = max(1, algebra.size_in_bytes(dtype, layout))
    align = max(byte_alignment or 16, dtype.width // 8)
    kind = memref_type(trace, dtype, "smem", layout, align)
    value = define(trace.bindings).alloc_smem(kind, nbytes, loc=trace.loc())
    return Tensor(Iterator(dtype, "smem", align, value), layout)


def _static(layout: Any, what: str) -> Any:
    if not algebra.is_static(layout):
        raise DSLTypeError(
            f"{what} needs a static layout, got {layout}",
            hint="make its shape of Python ints or Constexpr arguments",
        )
    return layout


def _power_of_two_up_to(nbytes: int, limit: int) -> int:
    align = 1
    while align < limit and align * 2 <= nbytes:
        align *= 2
    return align
