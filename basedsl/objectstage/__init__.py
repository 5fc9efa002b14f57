"""The object-stage: a module goes through a pipeline; text, bytes or native code comes out."""

import importlib
from typing import TYPE_CHECKING, Any

from basedsl.objectstage.asserts import FAILED_ASSERTIONS, raise_failed_assertion
from basedsl.objectstage.entry_thunk import ENTRY_SUFFIX, slot_format
from basedsl.objectstage.failure import Diagnostic, PassFailed, reject, span_of_location
from basedsl.objectstage.native import LoadedObject, NativeTarget, compile_llvmir, load_object
from basedsl.objectstage.object_file import read_object_file
from basedsl.objectstage.pipeline import Pipeline, PipelineContext, Step
from basedsl.objectstage.rules import (
    Erase,
    Keep,
    Replace,
    Rewrite,
    Rule,
    RuleResult,
    RuleTable,
    apply_result,
)
from basedsl.objectstage.runner import Stages, run_pipeline
from basedsl.objectstage.snapshot import Snapshot

if TYPE_CHECKING:
    from basedsl.objectstage.fatal import LLVMFatalError, catching_fatal_errors
    from basedsl.objectstage.lowering import native_pipeline, native_steps
    from basedsl.objectstage.storage_floats import StorageFloats, storage_width

__all__ = [
    "ENTRY_SUFFIX",
    "FAILED_ASSERTIONS",
    "Diagnostic",
    "Erase",
    "Keep",
    "LLVMFatalError",
    "LoadedObject",
    "NativeTarget",
    "PassFailed",
    "Pipeline",
    "PipelineContext",
    "Replace",
    "Rewrite",
    "Rule",
    "RuleResult",
    "RuleTable",
    "Snapshot",
    "Stages",
    "Step",
    "StorageFloats",
    "apply_result",
    "catching_fatal_errors",
    "compile_llvmir",
    "load_object",
    "native_pipeline",
    "native_steps",
    "raise_failed_assertion",
    "read_object_file",
    "reject",
    "run_pipeline",
    "slot_format",
    "span_of_location",
    "storage_width",
]

# Only a compilation needs these, and calls of code that is on the disk shall not import them.
_LOADED_ON_USE = {
    "LLVMFatalError": "fatal",
    "StorageFloats": "storage_floats",
    "catching_fatal_errors": "fatal",
    "native_pipeline": "lowering",
    "native_steps": "lowering",
    "storage_width": "storage_floats",
}

if not TYPE_CHECKING:  # a type checker reports names that do not exist

    def __getattr__(name: str) -> Any:
        if name not in _LOADED_ON_USE:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        return getattr(importlib.import_module(f"{__name__}.{_LOADED_ON_USE[name]}"), name)
