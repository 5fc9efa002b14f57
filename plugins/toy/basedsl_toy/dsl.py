"""The language itself: default types, emitter, argument kinds. The core does the rest."""

import os

import numpy as np

from basedsl import DSL, Language, location
from basedsl.numeric import Float64, Int64
from basedsl_toy.buffer import BufferArgument
from basedsl_toy.cf_emitter import CfEmitter

location.mark_internal(os.path.dirname(__file__))


class Toy(Language):
    """Scalars and NumPy buffers, compiled to native code."""

    name = "toy"
    default_int = Int64
    default_float = Float64
    dialects = ("func", "arith", "cf", "math", "llvm")

    def emitter(self, trace):
        return CfEmitter(trace)

    def argument_type_of(self, value, annotation, name):
        if isinstance(value, np.ndarray) or BufferArgument.is_declared_by(annotation):
            return BufferArgument.of(value, annotation, name)
        return None


TOY = DSL(Toy())
