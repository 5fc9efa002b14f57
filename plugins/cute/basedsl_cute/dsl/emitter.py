"""The emitter of control flow, which also decides which run-time errors of Python are checked.

Host code raises what Python raises. In kernels floats follow IEEE 754, as the hardware does: a
division by zero gives an infinity, the root of a negative number NaN; and a * b + c rounds once,
unless the option `contract` is off.
"""

from __future__ import annotations

from typing import Any

from basedsl import LoopHints, ScfEmitter, Trace
from basedsl_cute.dsl.register_loops import indexes_registers

_FULL = "#llvm.loop_annotation<unroll = <full = true>>"


class CuteEmitter(ScfEmitter):
    """The core's emitter over `scf`, with checks of float operations in host code."""

    def __init__(self, trace: Trace) -> None:
        super().__init__(trace)
        self.trace = trace

    @property
    def float_checks(self) -> bool:
        """True if a float operation that raises in Python, such as x / 0.0, stops the program."""
        return self.trace.function_kind != "kernel"

    @property
    def known_zero_divisors(self) -> bool:
        """True in kernels: a quotient by a static 0 counts only if something uses it."""
        return self.trace.function_kind == "kernel"

    @property
    def contracts(self) -> bool:
        """True in kernels, unless the option `contract` is off: a * b + c rounds once."""
        return self.trace.function_kind == "kernel" and self.trace.options.contract

    def loop_traced(self, op: Any, hints: LoopHints) -> None:
        """Unroll a loop that indexes registers, unless the loop asks for some copies of its body:
        an index known at run time would put the registers into memory. `unroll=1`, which programs
        write on every loop, does not forbid that.
        """
        hinted = hints not in (LoopHints(), LoopHints(unroll=1))
        if self.trace.function_kind == "kernel" and not hinted and indexes_registers(op):
            op.attributes["loop_annotation"] = self.trace.ir.Attribute.parse(_FULL)
