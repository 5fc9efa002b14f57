"""Translation of a kernel's record to Python: how many lanes run in lock step, and the source."""

from __future__ import annotations

from basedsl_cute.sim.machine.memory_map import MemoryMap
from basedsl_cute.sim.machine_model import Machine
from basedsl_cute.sim.observe import Observer
from basedsl_cute.sim.options import LockstepWidth
from basedsl_cute.sim.translate.emitter import PythonEmitter
from basedsl_cute.sim.translate.parameter import KernelParameter
from basedsl_cute.sim.translate.records import KernelRecord
from basedsl_cute.sim.translate.rule_table import SimRules
from basedsl_cute.sim.translate.specialization import Specialization
from basedsl_cute.sim.translate.types import (
    IntType,
    PtrType,
    Type,
    VectorType,
    aggregate_fields,
    dtype_of,
    is_aggregate,
)
from basedsl_cute.sim.translate.uniformity import UniformityAnalysis, lockstep_is_safe


def widest_lockstep(record: KernelRecord, rules: SimRules) -> LockstepWidth:
    """The most lanes that can run in lock step with the results of running warps apart. Raises
    MissingRuleError.
    """
    if lockstep_is_safe(UniformityAnalysis(record, True, rules)):
        return "grid"
    if lockstep_is_safe(UniformityAnalysis(record, False, rules)):
        return "block"
    return "warp"


def specialize(
    record: KernelRecord,
    width: LockstepWidth,
    memory_map: MemoryMap,
    machine: Machine,
    observer: Observer | None = None,
) -> Specialization:
    """Translate a kernel of `machine` for `width`, with the lines that `observer` adds. Raises
    MissingRuleError for an operation without a rule.
    """
    rules = machine.rules(record)
    uniformity = UniformityAnalysis(record, width == "grid", rules)
    if observer is not None:
        observer.translating(record)
    coroutine = width == "warp"
    emitter = PythonEmitter(record, uniformity, coroutine, memory_map, rules, machine, observer)
    emitter.body(record.body)
    name = width if observer is None else f"{width} observed"
    return Specialization.of_source(
        record.name, name, emitter.source(), emitter.globals, emitter.variables, memory_map
    )


def kernel_parameters(record: KernelRecord) -> tuple[KernelParameter, ...]:
    """The parameters of a kernel, in order."""
    return tuple(_parameter(arg.type) for arg in record.body.args)


def _parameter(type_: Type) -> KernelParameter:
    text = str(type_)
    if is_aggregate(type_):
        return KernelParameter(text, fields=tuple(map(_parameter, aggregate_fields(type_))))
    dtype = dtype_of(type_)
    if isinstance(type_, VectorType):
        return KernelParameter(text, dtype, shape=type_.shape)
    width = type_.width if isinstance(type_, IntType) else 0
    return KernelParameter(text, dtype, width=width, is_pointer=isinstance(type_, PtrType))
