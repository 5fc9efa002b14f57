"""The running compilation (trace), and the protocol by which control flow becomes IR.

Below `numeric`, whose operators emit into the running trace, and below `metastage`, which decides
what a construct carries and then calls the emitter.
"""

from basedsl.tracing.emitter import Emitter, LoopHints, Value, Values
from basedsl.tracing.raised import spoken
from basedsl.tracing.trace import (
    RUNNING,
    Outside,
    Region,
    Trace,
    activate,
    current_trace,
    current_trace_or_none,
    escaped,
)

__all__ = [
    "RUNNING",
    "Emitter",
    "LoopHints",
    "Outside",
    "Region",
    "Trace",
    "Value",
    "Values",
    "activate",
    "current_trace",
    "current_trace_or_none",
    "escaped",
    "spoken",
]
