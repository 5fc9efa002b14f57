"""The meta-stage: the Python interpreter runs the rewritten function with proxy values."""

from basedsl.tracing import Emitter, LoopHints, Trace, activate, current, require

__all__ = ["Emitter", "LoopHints", "Trace", "activate", "current", "require"]
