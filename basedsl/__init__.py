"""basedsl: a target-agnostic framework for Python DSLs that compile through MLIR.

Everything that a plugin imports is a name of this module; docs/reference.md lists them by subject.
Importing it loads nothing: the first use of a name loads the modules that the name needs.

Folders in the order of a call: `binding` (arguments), `prestage` (Python to Python), `metastage`
(Python to MLIR), `objectstage` (MLIR to code). `driver.py` is the straight line through them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from basedsl.lazy_names import imported_later as imported_later

if TYPE_CHECKING:
    from basedsl.arrays import ArrayArgument as ArrayArgument
    from basedsl.arrays import ArrayRecord as ArrayRecord
    from basedsl.arrays import UnreadableArray as UnreadableArray
    from basedsl.binding import AdaptedArgument as AdaptedArgument
    from basedsl.binding import ArgumentType as ArgumentType
    from basedsl.binding import Constexpr as Constexpr
    from basedsl.binding import Each as Each
    from basedsl.binding import NumericArgument as NumericArgument
    from basedsl.binding import PartsArgument as PartsArgument
    from basedsl.binding import Results as Results
    from basedsl.binding import ResultType as ResultType
    from basedsl.binding import StaticArgument as StaticArgument
    from basedsl.binding import TreeArgument as TreeArgument
    from basedsl.binding import Unpacker as Unpacker
    from basedsl.binding import argument_type as argument_type
    from basedsl.binding import constexpr_type as constexpr_type
    from basedsl.binding import is_plainly_static as is_plainly_static
    from basedsl.binding import memref_array as memref_array
    from basedsl.binding import static_key as static_key
    from basedsl.binding.c_interface import CParameter as CParameter
    from basedsl.cache.listing import CachedCompilation as CachedCompilation
    from basedsl.cache.listing import cached_compilations as cached_compilations
    from basedsl.compile_hooks import PostCompileHookContext as PostCompileHookContext
    from basedsl.compile_hooks import observing as observing
    from basedsl.compile_options import BooleanBasedFileDumpOption as BooleanBasedFileDumpOption
    from basedsl.compile_options import BooleanCompileOption as BooleanCompileOption
    from basedsl.compile_options import Compile as Compile
    from basedsl.compile_options import CompileOption as CompileOption
    from basedsl.compile_options import DryRun as DryRun
    from basedsl.compile_options import IntegerCompileOption as IntegerCompileOption
    from basedsl.compile_options import KeepIR as KeepIR
    from basedsl.compile_options import OptLevel as OptLevel
    from basedsl.compile_options import StringCompileOption as StringCompileOption
    from basedsl.compile_options import WarningsAsErrors as WarningsAsErrors
    from basedsl.compiled import Compiled as Compiled
    from basedsl.conformance import Conformance as Conformance
    from basedsl.dialect import Dialect as Dialect
    from basedsl.dialect import InvalidOp as InvalidOp
    from basedsl.dialect import OpView as OpView
    from basedsl.dialect import i64_array_attr as i64_array_attr
    from basedsl.dialect import i64_attr as i64_attr
    from basedsl.dialect import operand as operand
    from basedsl.dialect import result as result
    from basedsl.dialect import str_attr as str_attr
    from basedsl.dialect import unit_attr as unit_attr
    from basedsl.dsl import DSL as DSL
    from basedsl.errors import CompilerBug as CompilerBug
    from basedsl.errors import DSLAttributeError as DSLAttributeError
    from basedsl.errors import DSLCallError as DSLCallError
    from basedsl.errors import DSLError as DSLError
    from basedsl.errors import DSLNameError as DSLNameError
    from basedsl.errors import DSLRecursionError as DSLRecursionError
    from basedsl.errors import DSLRuntimeError as DSLRuntimeError
    from basedsl.errors import DSLSyntaxError as DSLSyntaxError
    from basedsl.errors import DSLTypeError as DSLTypeError
    from basedsl.errors import hide_internal_frames as hide_internal_frames
    from basedsl.errors import users_frames as users_frames
    from basedsl.errors import with_article as with_article
    from basedsl.export import Export as Export
    from basedsl.export import LoadedFunction as LoadedFunction
    from basedsl.export import LoadedModule as LoadedModule
    from basedsl.external_functions import ExternalFunction as ExternalFunction
    from basedsl.external_functions import external as external
    from basedsl.findings import Finding as Finding
    from basedsl.function import DSLFunction as DSLFunction
    from basedsl.kernels import as_kernel_argument as as_kernel_argument
    from basedsl.kernels import in_kernel as in_kernel
    from basedsl.kernels import trace_kernel as trace_kernel
    from basedsl.language import Language as Language
    from basedsl.lazy_names import imported_later as imported_later
    from basedsl.line_maps import Lined as Lined
    from basedsl.location import Span as Span
    from basedsl.location import assigned_name as assigned_name
    from basedsl.location import called_from as called_from
    from basedsl.location import is_internal_frame as is_internal_frame
    from basedsl.location import mark_internal as mark_internal
    from basedsl.location import span_of_function as span_of_function
    from basedsl.location import span_of_return as span_of_return
    from basedsl.location import user_span as user_span
    from basedsl.logs import configure_logs as configure_logs
    from basedsl.logs import logger as logger
    from basedsl.metastage import ScfEmitter as ScfEmitter
    from basedsl.metastage import assert_showing as assert_showing
    from basedsl.metastage.ranges import const_expr as const_expr
    from basedsl.metastage.ranges import range as range
    from basedsl.metastage.ranges import range_constexpr as range_constexpr
    from basedsl.mlir import Bindings as Bindings
    from basedsl.native_call import Invoker as Invoker
    from basedsl.native_call import Leaf as Leaf
    from basedsl.native_call import NativeEntryPoint as NativeEntryPoint
    from basedsl.native_call import NativeInvoker as NativeInvoker
    from basedsl.native_call import array_unpacker as array_unpacker
    from basedsl.native_call import arrays_supported as arrays_supported
    from basedsl.native_call import compile_kept_llvmir as compile_kept_llvmir
    from basedsl.native_call import dlpack_exchange_function as dlpack_exchange_function
    from basedsl.native_call import load_llvmir as load_llvmir
    from basedsl.native_call import native_function as native_function
    from basedsl.native_call import native_invoker as native_invoker
    from basedsl.native_call import python_unpacker as python_unpacker
    from basedsl.numeric import Float as Float
    from basedsl.numeric import Integer as Integer
    from basedsl.numeric import Kind as Kind
    from basedsl.numeric import Numeric as Numeric
    from basedsl.numeric import NumericMeta as NumericMeta
    from basedsl.numeric import as_numeric as as_numeric
    from basedsl.numeric import elementary as elementary
    from basedsl.numeric import in_common_type as in_common_type
    from basedsl.numeric import is_dynamic as is_dynamic
    from basedsl.numeric import kit_of as kit_of
    from basedsl.numeric import lanes as lanes
    from basedsl.numeric import logical_not as logical_not
    from basedsl.numeric import maximum as maximum
    from basedsl.numeric import minimum as minimum
    from basedsl.numeric import resolve as resolve
    from basedsl.numeric import select as select
    from basedsl.numeric.types import *  # noqa: F403
    from basedsl.objectstage import ENTRY_SUFFIX as ENTRY_SUFFIX
    from basedsl.objectstage import FAILED_ASSERTIONS as FAILED_ASSERTIONS
    from basedsl.objectstage import Erase as Erase
    from basedsl.objectstage import Keep as Keep
    from basedsl.objectstage import LLVMFatalError as LLVMFatalError
    from basedsl.objectstage import LoadedObject as LoadedObject
    from basedsl.objectstage import NativeTarget as NativeTarget
    from basedsl.objectstage import Pipeline as Pipeline
    from basedsl.objectstage import PipelineContext as PipelineContext
    from basedsl.objectstage import Replace as Replace
    from basedsl.objectstage import Rewrite as Rewrite
    from basedsl.objectstage import Rule as Rule
    from basedsl.objectstage import RuleResult as RuleResult
    from basedsl.objectstage import RuleTable as RuleTable
    from basedsl.objectstage import Snapshot as Snapshot
    from basedsl.objectstage import Stages as Stages
    from basedsl.objectstage import Step as Step
    from basedsl.objectstage import StorageFloats as StorageFloats
    from basedsl.objectstage import apply_result as apply_result
    from basedsl.objectstage import catching_fatal_errors as catching_fatal_errors
    from basedsl.objectstage import compile_llvmir as compile_llvmir
    from basedsl.objectstage import load_object as load_object
    from basedsl.objectstage import native_pipeline as native_pipeline
    from basedsl.objectstage import native_steps as native_steps
    from basedsl.objectstage import raise_failed_assertion as raise_failed_assertion
    from basedsl.objectstage import read_object_file as read_object_file
    from basedsl.objectstage import reject as reject
    from basedsl.objectstage import slot_format as slot_format
    from basedsl.objectstage import span_of_location as span_of_location
    from basedsl.objectstage import storage_width as storage_width
    from basedsl.option_fields import OptionError as OptionError
    from basedsl.option_fields import kept as kept
    from basedsl.option_fields import option as option
    from basedsl.options import Options as Options
    from basedsl.plugin import Command as Command
    from basedsl.plugin import ConformanceEntry as ConformanceEntry
    from basedsl.plugin import DSLEntry as DSLEntry
    from basedsl.plugin import PluginError as PluginError
    from basedsl.plugin import ask_plugins as ask_plugins
    from basedsl.plugin import hookimpl as hookimpl
    from basedsl.plugin import hookspec as hookspec
    from basedsl.plugin import register_plugin as register_plugin
    from basedsl.plugin import unregister_plugin as unregister_plugin
    from basedsl.pytree import Node as Node
    from basedsl.pytree import flatten as flatten
    from basedsl.pytree import leaf_paths as leaf_paths
    from basedsl.pytree import rebuild as rebuild
    from basedsl.resources import Resources as Resources
    from basedsl.slips import closest_name as closest_name
    from basedsl.tracing import Emitter as Emitter
    from basedsl.tracing import LoopHints as LoopHints
    from basedsl.tracing import Trace as Trace
    from basedsl.tracing import Value as Value
    from basedsl.tracing import Values as Values
    from basedsl.tracing import current_trace as current_trace
    from basedsl.tracing import current_trace_or_none as current_trace_or_none
    from basedsl.tracing import escaped as escaped
    from basedsl.tracing import spoken as spoken
    from basedsl.warning import DSLWarning as DSLWarning
    from basedsl.warning import OptionWarning as OptionWarning
    from basedsl.warning import warn as warn

else:  # a type checker reports names that do not exist
    __getattr__ = imported_later(__name__)

    def __dir__() -> list[str]:
        return sorted({*globals(), *__getattr__("__all__")})
