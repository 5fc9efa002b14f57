"""The names that programs import from `base_dsl.compiler`: compile options, the hook around a
compilation, and the errors of one.
"""

from basedsl import (
    BooleanBasedFileDumpOption,
    BooleanCompileOption,
    CompileOption,
    DSLError,
    KeepIR,
    OptLevel,
    PostCompileHookContext,
    StringCompileOption,
)
from basedsl_cute.device.driver import CudaDriverDependencyError
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

CompilationError = DSLError

__all__ = [
    "BooleanBasedFileDumpOption",
    "BooleanCompileOption",
    "CompilationError",
    "CompileOption",
    "CudaDriverDependencyError",
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
