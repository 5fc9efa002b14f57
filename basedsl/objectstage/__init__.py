"""The object-stage: a module goes through a pipeline; text, bytes or native code comes out."""

from basedsl.objectstage.failure import Diagnostic, PassFailed, reject, span_of_location
from basedsl.objectstage.pipeline import Pipeline, PipelineContext, Step
from basedsl.objectstage.rules import (
    Erase,
    Keep,
    Replace,
    Rule,
    RuleResult,
    RuleTable,
    apply_result,
)
from basedsl.objectstage.runner import Stages, run
from basedsl.objectstage.snapshot import Snapshot

__all__ = [
    "Diagnostic",
    "Erase",
    "Keep",
    "PassFailed",
    "Pipeline",
    "PipelineContext",
    "Replace",
    "Rule",
    "RuleResult",
    "RuleTable",
    "Snapshot",
    "Stages",
    "Step",
    "apply_result",
    "reject",
    "run",
    "span_of_location",
]
