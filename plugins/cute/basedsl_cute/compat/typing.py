"""`cute.typing`: names for annotations."""

from __future__ import annotations

from basedsl import NumericMeta as NumericMeta
from basedsl_cute.compat.annotation_types import *  # noqa: F403
from basedsl_cute.compat.base_dsl import JitArgument as JitArgument
from basedsl_cute.compat.mlir_types import T as T
from basedsl_cute.compat.mlir_values import get_c_pointers as get_c_pointers
from basedsl_cute.compat.mlir_values import get_mlir_types as get_mlir_types
from basedsl_cute.compat.mlir_values import is_dynamic_expression as is_dynamic_expression
from basedsl_cute.compat.numeric_types import *  # noqa: F403
from basedsl_cute.tensors.tensor_ssa import TensorSSA

Vector = TensorSSA
