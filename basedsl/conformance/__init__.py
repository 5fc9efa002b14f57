"""Conformance: the promises of every DSL on basedsl, as programs that Python and the DSL both run.

    pytest --pyargs basedsl.conformance --dsl toy

A DSL takes part with an `Adapter` of its plugin. `programs` holds the programs, `generate` makes
random ones, `shrink` makes failing ones small.
"""

import os

from basedsl import location
from basedsl.conformance.adapter import Adapter
from basedsl.conformance.cases import Buf, Case, program, program_of, refused

location.mark_user(os.path.join(os.path.dirname(__file__), "programs"))
location.mark_user(os.path.join(os.path.dirname(__file__), "objects.py"))

__all__ = ["Adapter", "Buf", "Case", "program", "program_of", "refused"]
