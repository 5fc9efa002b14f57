"""The meta-stage: the Python interpreter runs the rewritten function with proxy values."""

from basedsl.metastage.assertion import assert_showing
from basedsl.metastage.scf_emitter import ScfEmitter

__all__ = ["ScfEmitter", "assert_showing"]
