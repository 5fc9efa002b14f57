"""`cute.cutlass_dsl`: the names that helper functions written for CuTe's DSL import."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from basedsl import Constexpr, const_expr, range, range_constexpr
from basedsl.numeric import (
    BFloat16,
    Boolean,
    Float,
    Float16,
    Float32,
    Float64,
    Int8,
    Int16,
    Int32,
    Int64,
    Integer,
    Numeric,
    Uint8,
    Uint16,
    Uint32,
    Uint64,
    mlir_type,
    resolve,
)
from basedsl.pytree import flatten, rebuild
from basedsl.tracing import current, require
from basedsl_cute.compat.user_op import dsl_user_op
from basedsl_cute.device.driver import DSLCudaRuntimeError
from basedsl_cute.dsl.cute import CUTE
from basedsl_cute.dsl.toolkit import target_version
from basedsl_cute.hardware.unsupported import unsupported_names

if not TYPE_CHECKING:  # a type checker reports names that do not exist
    __getattr__ = unsupported_names("basedsl_cute.cutlass_dsl")

jit = CUTE.jit
kernel = CUTE.kernel

# Python's functions, which take dynamic values as well.
min = resolve(min)
max = resolve(max)
all = resolve(all)
any = resolve(any)


def dynamic_expr(value: Any) -> Any:
    """Return `value`: whether a condition is dynamic is detected without this mark."""
    return value


range_dynamic = range  # its old name


def extract_mlir_values(value: Any) -> list[Any]:
    """The SSA values in a tree, in order.

    A tree is a number, a tensor, or a tuple, list, dict or object of trees.
    """
    return [leaf.ir_value() for leaf in flatten(value)[1] if _is_dynamic(leaf)]


def new_from_mlir_values(value: Any, values: Sequence[Any]) -> Any:
    """A tree like `value` with other SSA values, as many as `extract_mlir_values` returns."""
    node, leaves = flatten(value)
    new = iter(values)
    return rebuild(node, [_with(leaf, next(new)) if _is_dynamic(leaf) else leaf for leaf in leaves])


def _is_dynamic(leaf: Any) -> bool:
    if isinstance(leaf, Numeric):
        return leaf.is_dynamic
    return hasattr(type(leaf), "with_ir_value")


def _with(leaf: Any, value: Any) -> Any:
    return type(leaf).from_value(value) if isinstance(leaf, Numeric) else leaf.with_ir_value(value)


class T:
    """MLIR types, for operations and inline assembly in functions that are being compiled.

    Elsewhere, for instance in the method `__get_mlir_types__` of an argument, the functions return
    the numeric classes that stand for the types.
    """

    @staticmethod
    def bool() -> Any:
        return _type(Boolean)

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
    def vector(length: int, element: Any) -> Any:
        return require("T.vector()").ir.VectorType.get([length], element)


def _type(kind: Any) -> Any:
    trace = current()
    return kind if trace is None else mlir_type(kind, trace.ir)


__all__ = [
    "BFloat16",
    "Boolean",
    "Constexpr",
    "DSLCudaRuntimeError",
    "Float",
    "Float16",
    "Float32",
    "Float64",
    "Int8",
    "Int16",
    "Int32",
    "Int64",
    "Integer",
    "Numeric",
    "T",
    "Uint8",
    "Uint16",
    "Uint32",
    "Uint64",
    "all",
    "any",
    "const_expr",
    "dsl_user_op",
    "dynamic_expr",
    "extract_mlir_values",
    "jit",
    "kernel",
    "max",
    "min",
    "new_from_mlir_values",
    "range",
    "range_constexpr",
    "range_dynamic",
    "target_version",
]
