"""From a kernel's record to Python: how wide it can run, and its source at one width."""

from __future__ import annotations

from basedsl_cute.sim.emitter import Emitter
from basedsl_cute.sim.launch import Width
from basedsl_cute.sim.layout import Layout
from basedsl_cute.sim.records import KernelRecord
from basedsl_cute.sim.rules import load_rules
from basedsl_cute.sim.uniform import Variance, lockstep_is_safe
from basedsl_cute.sim.variant import Variant


def widest(record: KernelRecord) -> Width:
    """The most lanes that can run together with the same results as single threads."""
    load_rules()
    if lockstep_is_safe(Variance(record, many_blocks=True)):
        return "grid"
    if lockstep_is_safe(Variance(record, many_blocks=False)):
        return "block"
    return "warp"


def translate_at(record: KernelRecord, width: Width, layout: Layout) -> Variant:
    """The generated function for `width`; MissingRuleError for an operation without a rule."""
    load_rules()
    variance = Variance(record, many_blocks=width == "grid")
    emitter = Emitter(record, variance, width == "warp", layout)
    emitter.body(record.body)
    return Variant.of_source(
        record.name, width, emitter.source(), emitter.globals, emitter.variables, layout
    )
