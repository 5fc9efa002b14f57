"""`cute.cutlass_dsl`: the names that helper functions written for CuTe's DSL import."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from basedsl import (
    Constexpr,
    DSLRuntimeError,
    NumericMeta,
    const_expr,
    range,
    range_constexpr,
    resolve,
)
from basedsl_cute.compat import numeric_types
from basedsl_cute.compat.base_dsl import BaseDSL, CuTeDSL, JitArgument
from basedsl_cute.compat.generate import (
    and_,
    for_generate,
    if_generate,
    not_,
    or_,
    select_,
    while_generate,
    yield_out,
)
from basedsl_cute.compat.mlir_types import T
from basedsl_cute.compat.mlir_values import (
    extract_mlir_values,
    get_c_pointers,
    get_mlir_types,
    new_from_mlir_values,
)
from basedsl_cute.compat.numeric_types import *  # noqa: F403
from basedsl_cute.compat.user_op import dsl_user_op
from basedsl_cute.device.driver import DSLCudaRuntimeError
from basedsl_cute.dsl.compiled import CuteCompiled as JitCompiledFunction
from basedsl_cute.dsl.cute import CUTE
from basedsl_cute.dsl.toolkit import target_version
from basedsl_cute.hardware.arch_enum import Arch
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


__all__ = [
    "Arch",
    "BaseDSL",
    "Constexpr",
    "CuTeDSL",
    "DSLCudaRuntimeError",
    "DSLRuntimeError",
    "JitArgument",
    "JitCompiledFunction",
    "NumericMeta",
    "T",
    "all",
    "and_",
    "any",
    "const_expr",
    "dsl_user_op",
    "dynamic_expr",
    "extract_mlir_values",
    "for_generate",
    "get_c_pointers",
    "get_mlir_types",
    "if_generate",
    "jit",
    "kernel",
    "max",
    "min",
    "new_from_mlir_values",
    "not_",
    "or_",
    "range",
    "range_constexpr",
    "range_dynamic",
    "select_",
    "target_version",
    "while_generate",
    "yield_out",
]
__all__ += numeric_types.__all__
