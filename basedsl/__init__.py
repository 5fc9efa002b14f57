"""basedsl: a target-agnostic framework for Python DSLs that compile through MLIR.

Folders in the order of a call: `binding` (arguments), `prestage` (Python to Python), `metastage`
(Python to MLIR), `objectstage` (MLIR to code). `driver.py` is the straight line through them.
"""

from basedsl.binding import Constexpr
from basedsl.compiled import Compiled
from basedsl.dsl import DSL
from basedsl.errors import (
    CompilerBug,
    DSLAttributeError,
    DSLCallError,
    DSLError,
    DSLNameError,
    DSLRecursionError,
    DSLRuntimeError,
    DSLSyntaxError,
    DSLTypeError,
)
from basedsl.function import DSLFunction
from basedsl.language import Language
from basedsl.metastage.ranges import const_expr, range, range_constexpr
from basedsl.plugin import hookimpl

__all__ = [
    "DSL",
    "Compiled",
    "CompilerBug",
    "Constexpr",
    "DSLAttributeError",
    "DSLCallError",
    "DSLError",
    "DSLFunction",
    "DSLNameError",
    "DSLRecursionError",
    "DSLRuntimeError",
    "DSLSyntaxError",
    "DSLTypeError",
    "Language",
    "const_expr",
    "hookimpl",
    "range",
    "range_constexpr",
]
