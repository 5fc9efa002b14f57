"""Rules of warpgroup matrix instructions."""

from __future__ import annotations

from basedsl_cute.dialect.warpgroup import WGMMA_TYPES
from basedsl_cute.sim.machine import wgmma
from basedsl_cute.sim.rules.memory import access_of
from basedsl_cute.sim.translate.attributes import parse_ints
from basedsl_cute.sim.translate.emitter import Emitter
from basedsl_cute.sim.translate.records import Op
from basedsl_cute.sim.translate.rule_table import rule
from basedsl_cute.sim.translate.types import IntType, PtrType, VectorType, parse_type

# By the bits of an element, as what it is read from registers.
_HELD = {bits: IntType(bits) for bits in (8, 16, 32)}


@rule("cute.wgmma", sync="warp")
def _wgmma(e: Emitter, op: Op) -> None:
    e.globals["wgmma"] = wgmma
    acc, a, b, *flag = op.operands
    n = op.integer("n")
    kinds = op.string("a_type"), op.string("b_type")
    k = WGMMA_TYPES[kinds[0]].k
    steps = parse_ints(op.attributes["a_steps"]), parse_ints(op.attributes["b_steps"])
    fragment = VectorType((n // 2,), parse_type(op.string("d_type")))
    registers = None
    if isinstance(a.type, PtrType):
        held = VectorType((max(steps[0]) + k // 2,), _HELD[256 // k])
        registers = access_of(e, op, a, held, "read", 4)
    record = wgmma.Wgmma(
        n,
        k,
        kinds,
        (op.string("a_major"), op.string("b_major")),
        ("negate_a" in op.attributes, "negate_b" in op.attributes),
        (tuple(steps[0]), tuple(steps[1])),
        access_of(e, op, acc, fragment, "read", 4),
        registers,
        op.site,
    )
    what = e.const(record, "wgmma_op")
    operands = ", ".join(e.ref(v) for v in (acc, a, b))
    accumulate = e.ref(flag[0]) if flag else "True"
    e.line(f"wgmma.run(g, {what}, {operands}, {accumulate}, {e.mask})")


@rule("nvvm.wgmma.fence.aligned")
def _fence(e: Emitter, op: Op) -> None:
    e.line("g.products.fence()")


@rule("nvvm.wgmma.commit.group.sync.aligned")
def _commit(e: Emitter, op: Op) -> None:
    e.line("g.products.commit()")


@rule("nvvm.wgmma.wait.group.sync.aligned")
def _wait(e: Emitter, op: Op) -> None:
    e.line(f"g.products.wait(g, {op.integer('group')})")
