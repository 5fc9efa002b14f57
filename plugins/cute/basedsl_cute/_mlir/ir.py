"""`_mlir.ir`: the module `ir` of MLIR's Python bindings itself."""

import sys

from basedsl_cute.dsl.cute import CUTE

sys.modules[__name__] = CUTE.mlir.bindings.ir
