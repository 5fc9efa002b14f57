"""MLIR as a value: the bindings a DSL uses, and its one long-lived context."""

from basedsl.mlir.bindings import Bindings, libraries, load_bindings
from basedsl.mlir.context import MLIRContext

__all__ = ["Bindings", "MLIRContext", "libraries", "load_bindings"]
