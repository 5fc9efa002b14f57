"""Conformance: the promises of every DSL on basedsl, as programs that Python and the DSL both run.

    pytest --pyargs basedsl.conformance --basedsl-dsl toy

A DSL takes part with a `Conformance` that its plugin declares. `programs` holds the programs,
`generate` makes random ones, `shrink` makes failing ones small.
"""

import os

from basedsl import location
from basedsl.conformance.cases import Buf, Case, program, program_of, refused
from basedsl.conformance.declaration import Conformance

location.mark_user(os.path.join(os.path.dirname(__file__), "programs"))
location.mark_user(os.path.join(os.path.dirname(__file__), "objects.py"))

__all__ = ["Buf", "Case", "Conformance", "program", "program_of", "refused"]
