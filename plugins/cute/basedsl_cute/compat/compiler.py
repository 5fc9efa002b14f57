"""The names that programs import from `base_dsl.compiler`: compile options, and the hook around a
compilation.
"""

from basedsl import (
    BooleanBasedFileDumpOption,
    BooleanCompileOption,
    CompileOption,
    KeepIR,
    OptLevel,
    PostCompileHookContext,
    StringCompileOption,
)
from basedsl_cute.dsl.compile import (
    EnableAssertions,
    EnableTVMFFI,
    GenerateLineInfo,
    GPUArch,
    KeepCUBIN,
    KeepPTX,
    KeepSASS,
    LinkLibraries,
    PtxasOptions,
)

__all__ = [
    "BooleanBasedFileDumpOption",
    "BooleanCompileOption",
    "CompileOption",
    "EnableAssertions",
    "EnableTVMFFI",
    "GPUArch",
    "GenerateLineInfo",
    "KeepCUBIN",
    "KeepIR",
    "KeepPTX",
    "KeepSASS",
    "LinkLibraries",
    "OptLevel",
    "PostCompileHookContext",
    "PtxasOptions",
    "StringCompileOption",
]
