"""`T`: MLIR types by short names."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from basedsl import (
    BFloat16,
    Boolean,
    Float16,
    Float32,
    Float64,
    Int8,
    Int16,
    Int32,
    Int64,
    Int128,
    current_trace,
    current_trace_or_none,
    mlir_type,
)


def _type_of(kind: Any) -> Callable[[], Any]:
    """Make the function that returns the MLIR type of a numeric class; outside of compilations, the
    class.
    """

    def mlir_type_of_kind() -> Any:
        trace = current_trace_or_none()
        return kind if trace is None else mlir_type(kind, trace.ir)

    return staticmethod(mlir_type_of_kind)


class T:
    """MLIR types, for operations and inline assembly in functions that are being compiled.

    Elsewhere, for instance in the method `__get_mlir_types__` of an argument, the functions return
    the numeric classes that stand for the types.
    """

    i1 = bool = _type_of(Boolean)
    i8 = _type_of(Int8)
    i16 = _type_of(Int16)
    i32 = _type_of(Int32)
    i64 = _type_of(Int64)
    i128 = _type_of(Int128)
    f16 = _type_of(Float16)
    bf16 = _type_of(BFloat16)
    f32 = _type_of(Float32)
    f64 = _type_of(Float64)

    @staticmethod
    def index() -> Any:
        return current_trace("T.index()").ir.IndexType.get()

    @staticmethod
    def vector(*extents_and_element: Any) -> Any:
        """The vector type of extents and, last, an element type."""
        *extents, element = extents_and_element
        return current_trace("T.vector()").ir.VectorType.get(extents, element)
