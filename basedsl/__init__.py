"""basedsl: a target-agnostic framework for Python DSLs that compile through MLIR.

Everything that a plugin imports is a name of this module; docs/reference.md lists them by subject.
Importing it loads nothing: the first use of a name loads the modules that the name needs.

Folders in the order of a call: `binding` (arguments), `prestage` (Python to Python), `metastage`
(Python to MLIR), `objectstage` (MLIR to code). `driver.py` is the straight line through them.
"""

from __future__ import annotations

import ast
import functools
import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from basedsl.arrays import ArrayArgument, ArrayRecord, UnreadableArray
    from basedsl.binding import (
        AdaptedArgument,
        ArgumentType,
        Constexpr,
        Each,
        NumericArgument,
        PartsArgument,
        Results,
        ResultType,
        StaticArgument,
        TreeArgument,
        Unpacker,
        argument_type,
        constexpr_type,
        is_plainly_static,
        memref_array,
        static_key,
    )
    from basedsl.binding.c_interface import CParameter
    from basedsl.cache.listing import CachedCompilation, cached_compilations
    from basedsl.compile_hooks import PostCompileHookContext, observing
    from basedsl.compile_options import (
        BooleanBasedFileDumpOption,
        BooleanCompileOption,
        Compile,
        CompileOption,
        DryRun,
        IntegerCompileOption,
        KeepIR,
        OptLevel,
        StringCompileOption,
        WarningsAsErrors,
    )
    from basedsl.compiled import Compiled
    from basedsl.conformance import Conformance
    from basedsl.dialect import (
        Dialect,
        InvalidOp,
        OpView,
        i64_array_attr,
        i64_attr,
        operand,
        result,
        str_attr,
        unit_attr,
    )
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
        hide_internal_frames,
        users_frames,
        with_article,
    )
    from basedsl.export import Export, LoadedFunction, LoadedModule
    from basedsl.external_functions import ExternalFunction, external
    from basedsl.findings import Finding
    from basedsl.function import DSLFunction
    from basedsl.kernels import as_kernel_argument, in_kernel, trace_kernel
    from basedsl.language import Language
    from basedsl.line_maps import Lined
    from basedsl.location import (
        Span,
        assigned_name,
        called_from,
        is_internal_frame,
        span_of_function,
        span_of_return,
        user_span,
    )
    from basedsl.logs import configure as configure_logs
    from basedsl.logs import logger
    from basedsl.metastage import ScfEmitter, assert_showing
    from basedsl.metastage.ranges import const_expr, range, range_constexpr
    from basedsl.mlir import Bindings
    from basedsl.native_call import (
        Invoker,
        Leaf,
        NativeEntryPoint,
        NativeInvoker,
        array_unpacker,
        arrays_supported,
        compile_kept_llvmir,
        dlpack_exchange_function,
        load_llvmir,
        native_invoker,
        python_unpacker,
    )
    from basedsl.numeric import (
        TYPES,
        BFloat16,
        Boolean,
        Float,
        Float4E2M1FN,
        Float6E2M3FN,
        Float6E3M2FN,
        Float8E4M3,
        Float8E4M3B11FNUZ,
        Float8E4M3FN,
        Float8E5M2,
        Float8E8M0FNU,
        Float16,
        Float32,
        Float64,
        Int4,
        Int8,
        Int16,
        Int32,
        Int64,
        Int128,
        Integer,
        Kind,
        Numeric,
        NumericMeta,
        TFloat32,
        Uint4,
        Uint8,
        Uint16,
        Uint32,
        Uint64,
        Uint128,
        as_numeric,
        dtype,
        elementary,
        from_dlpack,
        from_numpy_dtype,
        in_common_type,
        is_dynamic,
        kit_of,
        lanes,
        logical_not,
        maximum,
        minimum,
        mlir_type,
        resolve,
        select,
    )
    from basedsl.objectstage import (
        ENTRY_SUFFIX,
        FAILED_ASSERTIONS,
        Erase,
        Keep,
        LLVMFatalError,
        LoadedObject,
        NativeTarget,
        Pipeline,
        PipelineContext,
        Replace,
        Rewrite,
        Rule,
        RuleResult,
        RuleTable,
        Snapshot,
        Stages,
        Step,
        StorageFloats,
        apply_result,
        catching_fatal_errors,
        compile_llvmir,
        load_object,
        native_pipeline,
        native_steps,
        raise_failed_assertion,
        read_object_file,
        reject,
        slot_format,
        span_of_location,
        storage_width,
    )
    from basedsl.options import OptionError, Options, kept, option
    from basedsl.plugin import (
        Command,
        ConformanceEntry,
        DSLEntry,
        PluginError,
        ask_plugins,
        hookimpl,
        hookspec,
        register_plugin,
        unregister_plugin,
    )
    from basedsl.pytree import Node, flatten, leaf_paths, rebuild
    from basedsl.resources import Resources
    from basedsl.slips import closest_name
    from basedsl.tracing import (
        Emitter,
        LoopHints,
        Trace,
        Value,
        Values,
        current_trace,
        current_trace_or_none,
        escaped,
        spoken,
    )
    from basedsl.warning import DSLWarning, OptionWarning, warn

__all__ = [
    "DSL",
    "ENTRY_SUFFIX",
    "FAILED_ASSERTIONS",
    "TYPES",
    "AdaptedArgument",
    "ArgumentType",
    "ArrayArgument",
    "ArrayRecord",
    "BFloat16",
    "Bindings",
    "Boolean",
    "BooleanBasedFileDumpOption",
    "BooleanCompileOption",
    "CParameter",
    "CachedCompilation",
    "Command",
    "Compile",
    "CompileOption",
    "Compiled",
    "CompilerBug",
    "Conformance",
    "ConformanceEntry",
    "Constexpr",
    "DSLAttributeError",
    "DSLCallError",
    "DSLEntry",
    "DSLError",
    "DSLFunction",
    "DSLNameError",
    "DSLRecursionError",
    "DSLRuntimeError",
    "DSLSyntaxError",
    "DSLTypeError",
    "DSLWarning",
    "Dialect",
    "DryRun",
    "Each",
    "Emitter",
    "Erase",
    "Export",
    "ExternalFunction",
    "Finding",
    "Float",
    "Float4E2M1FN",
    "Float6E2M3FN",
    "Float6E3M2FN",
    "Float8E4M3",
    "Float8E4M3B11FNUZ",
    "Float8E4M3FN",
    "Float8E5M2",
    "Float8E8M0FNU",
    "Float16",
    "Float32",
    "Float64",
    "Int4",
    "Int8",
    "Int16",
    "Int32",
    "Int64",
    "Int128",
    "Integer",
    "IntegerCompileOption",
    "InvalidOp",
    "Invoker",
    "Keep",
    "KeepIR",
    "Kind",
    "LLVMFatalError",
    "Language",
    "Leaf",
    "Lined",
    "LoadedFunction",
    "LoadedModule",
    "LoadedObject",
    "LoopHints",
    "NativeEntryPoint",
    "NativeInvoker",
    "NativeTarget",
    "Node",
    "Numeric",
    "NumericArgument",
    "NumericMeta",
    "OpView",
    "OptLevel",
    "OptionError",
    "OptionWarning",
    "Options",
    "PartsArgument",
    "Pipeline",
    "PipelineContext",
    "PluginError",
    "PostCompileHookContext",
    "Replace",
    "Resources",
    "ResultType",
    "Results",
    "Rewrite",
    "Rule",
    "RuleResult",
    "RuleTable",
    "ScfEmitter",
    "Snapshot",
    "Span",
    "Stages",
    "StaticArgument",
    "Step",
    "StorageFloats",
    "StringCompileOption",
    "TFloat32",
    "Trace",
    "TreeArgument",
    "Uint4",
    "Uint8",
    "Uint16",
    "Uint32",
    "Uint64",
    "Uint128",
    "Unpacker",
    "UnreadableArray",
    "Value",
    "Values",
    "WarningsAsErrors",
    "apply_result",
    "argument_type",
    "array_unpacker",
    "arrays_supported",
    "as_kernel_argument",
    "as_numeric",
    "ask_plugins",
    "assert_showing",
    "assigned_name",
    "cached_compilations",
    "called_from",
    "catching_fatal_errors",
    "closest_name",
    "compile_kept_llvmir",
    "compile_llvmir",
    "configure_logs",
    "const_expr",
    "constexpr_type",
    "current_trace",
    "current_trace_or_none",
    "dlpack_exchange_function",
    "dtype",
    "elementary",
    "escaped",
    "external",
    "flatten",
    "from_dlpack",
    "from_numpy_dtype",
    "hide_internal_frames",
    "hookimpl",
    "hookspec",
    "i64_array_attr",
    "i64_attr",
    "in_common_type",
    "in_kernel",
    "is_dynamic",
    "is_internal_frame",
    "is_plainly_static",
    "kept",
    "kit_of",
    "lanes",
    "leaf_paths",
    "load_llvmir",
    "load_object",
    "logger",
    "logical_not",
    "maximum",
    "memref_array",
    "minimum",
    "mlir_type",
    "native_invoker",
    "native_pipeline",
    "native_steps",
    "observing",
    "operand",
    "option",
    "python_unpacker",
    "raise_failed_assertion",
    "range",
    "range_constexpr",
    "read_object_file",
    "rebuild",
    "register_plugin",
    "reject",
    "resolve",
    "result",
    "select",
    "slot_format",
    "span_of_function",
    "span_of_location",
    "span_of_return",
    "spoken",
    "static_key",
    "storage_width",
    "str_attr",
    "trace_kernel",
    "unit_attr",
    "unregister_plugin",
    "user_span",
    "users_frames",
    "warn",
    "with_article",
]


@functools.cache
def _homes() -> dict[str, tuple[str, str]]:
    """The module that has each public name, and the name there, as the statements above import
    them: reading them loads only the modules of the names that a program uses.
    """
    with open(__file__, encoding="utf-8") as file:
        tree = ast.parse(file.read())
    blocks = [statement.body for statement in tree.body if isinstance(statement, ast.If)]
    return {
        alias.asname or alias.name: (statement.module, alias.name)
        for statement in blocks[0]
        if isinstance(statement, ast.ImportFrom) and statement.module
        for alias in statement.names
    }


if not TYPE_CHECKING:  # a type checker reports names that do not exist

    def __getattr__(name: str) -> Any:
        if name not in __all__:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        module, inner = _homes()[name]
        value = globals()[name] = getattr(importlib.import_module(module), inner)
        return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
