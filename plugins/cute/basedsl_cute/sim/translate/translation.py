"""From a kernel's record to Python: how wide it can run, and its source at one width."""

from __future__ import annotations

from basedsl_cute.sim.launch import Width
from basedsl_cute.sim.translate.emitter import Emitter
from basedsl_cute.sim.translate.memory_map import Layout
from basedsl_cute.sim.translate.parameter import Parameter
from basedsl_cute.sim.translate.placement import place
from basedsl_cute.sim.translate.records import KernelRecord
from basedsl_cute.sim.translate.rule_table import load_rules
from basedsl_cute.sim.translate.specialization import Variant
from basedsl_cute.sim.translate.types import (
    IntType,
    PtrType,
    Type,
    VectorType,
    aggregate_fields,
    dtype_of,
    is_aggregate,
)
from basedsl_cute.sim.translate.uniformity import Variance, lockstep_is_safe


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


def parameters(record: KernelRecord) -> tuple[Parameter, ...]:
    """The kernel's parameters."""
    return tuple(_parameter(arg.type) for arg in record.body.args)


def _parameter(type_: Type) -> Parameter:
    text = str(type_)
    if is_aggregate(type_):
        return Parameter(text, fields=tuple(map(_parameter, aggregate_fields(type_))))
    dtype = dtype_of(type_)
    if isinstance(type_, VectorType):
        return Parameter(text, dtype, shape=type_.shape)
    width = type_.width if isinstance(type_, IntType) else 0
    return Parameter(text, dtype, width=width, is_pointer=isinstance(type_, PtrType))


__all__ = ["parameters", "place", "translate_at", "widest"]
