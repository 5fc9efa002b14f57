"""The `cute` MLIR dialect, defined from Python: tensors in memory and the ops that touch them."""

from basedsl_cute.dialect.builders import CuteDialect, define, load
from basedsl_cute.dialect.declare import OPS, Operands, OpSpec
from basedsl_cute.dialect.types import SPACES, MemRef, Space

__all__ = [
    "OPS",
    "SPACES",
    "CuteDialect",
    "MemRef",
    "OpSpec",
    "Operands",
    "Space",
    "define",
    "load",
]
