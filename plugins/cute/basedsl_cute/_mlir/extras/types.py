"""`_mlir.extras.types`: the same as `cutlass_dsl.T`, function by function."""

from typing import Any

from basedsl_cute.compat.mlir_types import T


def __getattr__(name: str) -> Any:
    return getattr(T, name)
