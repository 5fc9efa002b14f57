"""The conformance adapter: its programs run on toy as they are."""

from basedsl.conformance import Adapter
from basedsl_toy.dsl import TOY

ADAPTER = Adapter("toy", TOY)
