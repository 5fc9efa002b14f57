"""Pre-stage: from a Python function to readable Python that calls back for its control flow.

The public names of the package. `stage_function(fn)` gives a `StagedFunction`; its `bind(runtime)`
makes a function that calls `runtime` (a `ControlFlowCallbacks`) as `__dsl__`.

A process imports the package when it first compiles. Its records are named tuples, or dataclasses
without comparison and text, since each method that a dataclass writes takes 0.1 ms.
"""

from basedsl.prestage.callbacks import (
    CALLBACKS,
    RETURN_VALUE,
    RETURNED,
    RUNTIME,
    ControlFlowCallbacks,
    is_compiler_variable,
    is_flag,
    shared_cells,
)
from basedsl.prestage.resolve import STATIC_ATTRIBUTE
from basedsl.prestage.rewriter import PassDiff, StagedFunction, stage_function

__all__ = [
    "CALLBACKS",
    "RETURNED",
    "RETURN_VALUE",
    "RUNTIME",
    "STATIC_ATTRIBUTE",
    "ControlFlowCallbacks",
    "PassDiff",
    "StagedFunction",
    "is_compiler_variable",
    "is_flag",
    "shared_cells",
    "stage_function",
]
