"""Atomic operations on memory: PTX ISA section 9.7.13, "atom"."""

from __future__ import annotations

from typing import Any

from basedsl.numeric import Int64, is_dynamic
from basedsl_cute.arch.indices import in_kernel
from basedsl_cute.dialect import define
from basedsl_cute.tensor import Iterator


def atomic_add(pointer: Iterator, value: Any) -> Any:
    """Add to the element at `pointer` at once; what was there before (relaxed, GPU scope)."""
    trace = in_kernel("atomic_add()")
    dtype = pointer.dtype
    number = dtype(value) if not is_dynamic(value) else value.to(dtype)
    kind = "fadd" if dtype.is_float else "add"
    old = define(trace.bindings).atomic_rmw(
        kind, number.ir_value(), pointer.ir_value(), Int64(0).ir_value(), loc=trace.loc()
    )
    return dtype.from_value(old)
