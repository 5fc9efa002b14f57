"""The meta-stage: the Python interpreter runs the rewritten function with proxy values."""

from basedsl.metastage.emitter import Emitter, LoopHints
from basedsl.metastage.trace import Trace, activate, current, require

__all__ = ["Emitter", "LoopHints", "Trace", "activate", "current", "require"]
