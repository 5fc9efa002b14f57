"""Conformance: its programs run on toy as they are."""

from basedsl import Conformance
from basedsl_toy.dsl import TOY

CONFORMANCE = Conformance("toy", TOY)
