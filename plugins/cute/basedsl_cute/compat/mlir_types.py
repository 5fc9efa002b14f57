"""`T`: MLIR types by short names."""

from __future__ import annotations

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


class T:
    """MLIR types, for operations and inline assembly in functions that are being compiled.

    Elsewhere, for instance in the method `__get_mlir_types__` of an argument, the functions return
    the numeric classes that stand for the types.
    """

    @staticmethod
    def bool() -> Any:
        return _type(Boolean)

    i1 = bool

    @staticmethod
    def i8() -> Any:
        return _type(Int8)

    @staticmethod
    def i16() -> Any:
        return _type(Int16)

    @staticmethod
    def i32() -> Any:
        return _type(Int32)

    @staticmethod
    def i64() -> Any:
        return _type(Int64)

    @staticmethod
    def i128() -> Any:
        return _type(Int128)

    @staticmethod
    def f16() -> Any:
        return _type(Float16)

    @staticmethod
    def bf16() -> Any:
        return _type(BFloat16)

    @staticmethod
    def f32() -> Any:
        return _type(Float32)

    @staticmethod
    def f64() -> Any:
        return _type(Float64)

    @staticmethod
    def index() -> Any:
        return current_trace("T.index()").ir.IndexType.get()

    @staticmethod
    def vector(*extents_and_element: Any) -> Any:
        """The vector type of extents and, last, an element type."""
        *extents, element = extents_and_element
        return current_trace("T.vector()").ir.VectorType.get(extents, element)


def _type(kind: Any) -> Any:
    trace = current_trace_or_none()
    return kind if trace is None else mlir_type(kind, trace.ir)
