"""Rules of atomics. Ordering and scope change nothing: all stores are seen at once."""

from __future__ import annotations

from basedsl_cute.sim.errors import MissingRuleError
from basedsl_cute.sim.machine import atomics
from basedsl_cute.sim.rules.memory import access_of, interrupt
from basedsl_cute.sim.translate.emitter import PythonEmitter
from basedsl_cute.sim.translate.records import Op
from basedsl_cute.sim.translate.rule_table import never, rule


@rule("llvm.atomicrmw", uniform=never, volatile=True)
def _atomicrmw(e: PythonEmitter, op: Op) -> None:
    pointer, value = op.operands
    (result,) = op.results
    operation = op.integer("bin_op")
    if operation not in atomics.COMBINE:
        raise MissingRuleError(op.site, f"operation {operation}")
    what = e.const(access_of(e, op, pointer, value.type, "atomic update"), "atomic")
    e.globals["atomics"] = atomics
    interrupt(e)
    used = result in e.uniformity.used
    e.let(
        result,
        f"atomics.atomic_update(g, {what}, {operation}, {e.lanes(pointer)}, {e.lanes(value)}, "
        f"{e.mask}, {used})",
    )


@rule("llvm.cmpxchg", uniform=never, volatile=True)
def _cmpxchg(e: PythonEmitter, op: Op) -> None:
    pointer, compare, new = op.operands
    what = e.const(access_of(e, op, pointer, compare.type, "atomic exchange"), "atomic")
    e.globals["atomics"] = atomics
    interrupt(e)
    e.let(
        op.results[0],
        f"atomics.compare_and_swap(g, {what}, {e.lanes(pointer)}, {e.lanes(compare)}, "
        f"{e.lanes(new)}, {e.mask})",
    )
