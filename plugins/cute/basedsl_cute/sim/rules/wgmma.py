"""Rules of warpgroup matrix instructions."""

from __future__ import annotations

from basedsl_cute.dialect.warpgroup import WGMMA_TYPES
from basedsl_cute.sim.machine import wgmma, wgmma_queue
from basedsl_cute.sim.rules.memory import access_of
from basedsl_cute.sim.translate.attributes import parse_ints
from basedsl_cute.sim.translate.emitter import PythonEmitter
from basedsl_cute.sim.translate.records import Op
from basedsl_cute.sim.translate.rule_table import nvidia_rule
from basedsl_cute.sim.translate.types import IntType, PtrType, VectorType, parse_type

# The types that elements of A are read from registers as, by their bits.
_HELD = {bits: IntType(bits) for bits in (8, 16, 32)}


@nvidia_rule("cute.ptx_wgmma", sync="warp")
def _wgmma(e: PythonEmitter, op: Op) -> None:
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
    record = wgmma.WgmmaInstruction(
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
    e.line(f"wgmma.mma_async(g, {what}, {operands}, {accumulate}, {e.mask})")


@nvidia_rule("nvvm.wgmma.fence.aligned")
def _fence(e: PythonEmitter, op: Op) -> None:
    e.globals["wgmma_queue"] = wgmma_queue
    e.line("wgmma_queue.fence_wgmma(g)")


@nvidia_rule("nvvm.wgmma.commit.group.sync.aligned")
def _commit(e: PythonEmitter, op: Op) -> None:
    e.globals["wgmma_queue"] = wgmma_queue
    e.line("wgmma_queue.commit_wgmma(g)")


@nvidia_rule("nvvm.wgmma.wait.group.sync.aligned")
def _wait(e: PythonEmitter, op: Op) -> None:
    e.globals["wgmma_queue"] = wgmma_queue
    e.line(f"wgmma_queue.wait_wgmma(g, {op.integer('group')})")
