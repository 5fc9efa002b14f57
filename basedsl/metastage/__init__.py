"""The meta-stage: the Python interpreter runs the rewritten function with proxy values."""

from basedsl.metastage.assertion import assert_showing
from basedsl.metastage.scf_emitter import ScfEmitter
from basedsl.tracing import Emitter, LoopHints, Trace, activate, current, escaped, require

__all__ = [
    "Emitter",
    "LoopHints",
    "ScfEmitter",
    "Trace",
    "activate",
    "assert_showing",
    "current",
    "escaped",
    "require",
]
