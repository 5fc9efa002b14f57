"""The `cute` MLIR dialect, defined from Python: tensors in memory and the ops that touch them."""

from basedsl_cute.dialect import cluster, launch_control, ops, tensor_map, tensor_memory, warpgroup
from basedsl_cute.dialect.cute_op import OPS, CuteOp
from basedsl_cute.dialect.definition import CuteDialect, define, load, note_access
from basedsl_cute.dialect.types import SPACES, MemRef, Space

__all__ = [
    "OPS",
    "SPACES",
    "CuteDialect",
    "CuteOp",
    "MemRef",
    "Space",
    "cluster",
    "define",
    "launch_control",
    "load",
    "note_access",
    "ops",
    "tensor_map",
    "tensor_memory",
    "warpgroup",
]
