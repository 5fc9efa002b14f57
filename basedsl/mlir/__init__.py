"""MLIR as a value: the bindings a DSL uses, and its one long-lived context."""

from basedsl.mlir.bindings import Bindings, libraries, load_bindings, uninterrupted
from basedsl.mlir.context import MLIRContext
from basedsl.mlir.functions import new_function

__all__ = [
    "Bindings",
    "MLIRContext",
    "libraries",
    "load_bindings",
    "new_function",
    "uninterrupted",
]
