"""The declaration for the conformance suite, whose programs run on toy unchanged."""

from basedsl import Conformance
from basedsl_toy.dsl import TOY

CONFORMANCE = Conformance("toy", TOY)
