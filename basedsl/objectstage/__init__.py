"""The object-stage: a module goes through a pipeline; text, bytes or native code comes out."""

from basedsl.objectstage.failure import Diagnostic, PassFailed, reject, span_of_location
from basedsl.objectstage.pipeline import Pipeline, PipelineContext, Step
from basedsl.objectstage.runner import Stages, run
from basedsl.objectstage.snapshot import Snapshot

__all__ = [
    "Diagnostic",
    "PassFailed",
    "Pipeline",
    "PipelineContext",
    "Snapshot",
    "Stages",
    "Step",
    "reject",
    "run",
    "span_of_location",
]
