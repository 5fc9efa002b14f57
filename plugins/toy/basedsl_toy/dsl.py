"""The language itself: default types, emitter, argument kinds. The core does the rest."""

from __future__ import annotations

from typing import Any

import numpy as np

from basedsl import DSL, Float64, Int64, Language, Trace
from basedsl_toy.buffer import BufferArgument
from basedsl_toy.cf_emitter import CfEmitter


class Toy(Language):
    """A language of scalars and NumPy buffers, compiled to native code for this machine's CPU.

    Python's int is an Int64 and its float a Float64, so arithmetic means what Python means, up to
    the width of integers. `dialects` are those of MLIR that the bindings must have.
    """

    name = "toy"
    default_int = Int64
    default_float = Float64
    dialects = ("func", "arith", "cf", "math", "llvm")

    def emitter(self, trace: Trace) -> CfEmitter:
        """The emitter of control flow for one compilation."""
        return CfEmitter(trace)

    def argument_type(self, value: Any, annotation: Any, name: str) -> BufferArgument | None:
        """The argument type of `value`; None leaves numbers, tuples and the like to the core."""
        if isinstance(value, np.ndarray) or BufferArgument.is_declared_by(annotation):
            return BufferArgument.of(value, annotation, name)
        return None


TOY = DSL(Toy())
