"""Control flow as `scf`, and which of Python's run-time errors are checked.

Host code raises what Python raises. In kernels floats follow IEEE 754, as the hardware does: a
division by zero gives an infinity, the root of a negative number NaN.
"""

from __future__ import annotations

from basedsl.metastage import ScfEmitter, Trace


class CuteEmitter(ScfEmitter):
    """The core's emitter; in host code floats are checked too."""

    def __init__(self, trace: Trace) -> None:
        super().__init__(trace)
        self.trace = trace

    @property
    def float_checks(self) -> bool:
        """Whether a float operation that Python refuses stops the program."""
        return self.trace.function_kind != "kernel"
