"""`_mlir.dialects`: builders of operations, for use while a function is traced."""

from basedsl_cute.compat.mlir_dialects import register_dialects

register_dialects(__name__)
