"""Rules of tensor memory and of tcgen05's instructions, of one block."""

from __future__ import annotations

from basedsl_cute.sim.errors import MissingRuleError
from basedsl_cute.sim.machine import tcgen05, tensor_memory
from basedsl_cute.sim.rules.memory import access_of
from basedsl_cute.sim.translate.attributes import parse_ints
from basedsl_cute.sim.translate.emitter import PythonEmitter
from basedsl_cute.sim.translate.records import Op
from basedsl_cute.sim.translate.rule_table import never, rule
from basedsl_cute.sim.translate.types import IntType, PtrType


def _of_one_block(op: Op, attribute: str = "group") -> None:
    if op.word(attribute, "cta_1") != "cta_1":
        raise MissingRuleError(op.site, "over two blocks")


@rule("nvvm.tcgen05.alloc", sync="warp")
def _alloc(e: PythonEmitter, op: Op) -> None:
    _of_one_block(op)
    e.globals["tensor_memory"] = tensor_memory
    holder, count = op.operands
    write = e.const(access_of(e, op, holder, IntType(32), "write", 4), "write")
    e.wait(f"tensor_memory.allocate(g, {write}, {e.lanes(holder)}, {e.lanes(count)}, {e.mask})")


@rule("nvvm.tcgen05.dealloc", sync="warp")
def _dealloc(e: PythonEmitter, op: Op) -> None:
    _of_one_block(op)
    e.globals["tensor_memory"] = tensor_memory
    address, count = (e.lanes(value) for value in op.operands)
    e.line(f"tensor_memory.free(g, {address}, {count}, {e.mask}, {e.at()})")


@rule("nvvm.tcgen05.relinquish_alloc_permit", sync="warp")
def _relinquish(e: PythonEmitter, op: Op) -> None:
    _of_one_block(op)
    e.globals["tensor_memory"] = tensor_memory
    e.line(f"tensor_memory.relinquish(g, {e.mask}, {e.at()})")


def _copy(e: PythonEmitter, op: Op) -> str:
    e.globals["tensor_memory"] = tensor_memory
    copy = tensor_memory.TmemCopy(
        op.string("shape"),
        op.integer("repeat"),
        "packed" in op.attributes,
        tuple(parse_ints(op.attributes["steps"])),
        op.site,
    )
    return e.const(copy, "tmem_copy")


@rule("cute.tmem_load", uniform=never, sync="warp")
def _load(e: PythonEmitter, op: Op) -> None:
    address = e.lanes(op.operands[0])
    e.let(op.results[0], f"tensor_memory.load(g, {_copy(e, op)}, {address}, {e.mask})")


@rule("cute.tmem_store", sync="warp")
def _store(e: PythonEmitter, op: Op) -> None:
    address, values = (e.lanes(value) for value in op.operands)
    e.line(f"tensor_memory.store(g, {_copy(e, op)}, {address}, {values}, {e.mask})")


@rule("nvvm.tcgen05.wait", sync="warp")
def _wait(e: PythonEmitter, op: Op) -> None:
    if op.word("kind") == "store":
        e.globals["tensor_memory"] = tensor_memory
        e.line(f"tensor_memory.wait_for_stores(g, {e.mask}, {e.at()})")


@rule("nvvm.tcgen05.fence")
def _fence(e: PythonEmitter, op: Op) -> None:
    """Emit nothing: the simulator does in program order all that the fence orders."""


@rule("nvvm.tcgen05.mma", sync="warp")
def _mma(e: PythonEmitter, op: Op) -> None:
    _of_one_block(op, "ctaGroup")
    e.globals["tcgen05"] = tcgen05
    d, a, b, number, accumulate, scale, lanes = op.segments()
    if scale or lanes or "aShift" in op.attributes:
        raise MissingRuleError(op.site, "with a scale of D, disabled lanes or a shift")
    places = ", ".join(e.lanes(part[0]) for part in (d, a, b, number, accumulate))
    in_tmem = isinstance(a[0].type, PtrType)
    kind = op.word("kind")
    e.line(f"tcgen05.mma(g, {kind!r}, {in_tmem}, {places}, {e.mask}, {e.at()})")


@rule("nvvm.tcgen05.commit", sync="warp")
def _commit(e: PythonEmitter, op: Op) -> None:
    _of_one_block(op)
    if len(op.operands) > 1:
        raise MissingRuleError(op.site, "to several blocks")
    e.globals["tcgen05"] = tcgen05
    e.line(f"tcgen05.commit(g, {e.lanes(op.operands[0])}, {e.mask}, {e.at()})")
