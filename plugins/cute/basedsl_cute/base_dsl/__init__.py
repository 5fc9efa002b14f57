"""`base_dsl`: where CuTe's DSL keeps what other modules of this package have."""

import importlib
from typing import Any

from basedsl_cute.compat.base_dsl import BaseDSL, CuTeDSL, JitArgument
from basedsl_cute.compat.mlir_values import (
    extract_mlir_values,
    get_mlir_types,
    new_from_mlir_values,
)
from basedsl_cute.hardware.arch_enum import Arch

__all__ = [
    "Arch",
    "BaseDSL",
    "CuTeDSL",
    "JitArgument",
    "extract_mlir_values",
    "get_mlir_types",
    "new_from_mlir_values",
]

_MODULES = (
    "arch",
    "ast_preprocessor",
    "cache_helpers",
    "compiler",
    "dsl",
    "enums",
    "runtime",
    "tvm_ffi_builder",
    "typing",
    "utils",
)


def __getattr__(name: str) -> Any:
    if name in _MODULES:
        return importlib.import_module(f"{__name__}.{name}")
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
