"""Rules of tensor memory and of tcgen05's instructions, of one block and of two."""

from __future__ import annotations

from typing import Any

from basedsl_cute.sim.errors import MissingRuleError
from basedsl_cute.sim.machine import (
    tcgen05,
    tcgen05_cp,
    tensor_memory,
    tensor_queue,
    tensor_races,
)
from basedsl_cute.sim.rules.memory import access_of
from basedsl_cute.sim.translate.attributes import parse_ints
from basedsl_cute.sim.translate.emitter import PythonEmitter
from basedsl_cute.sim.translate.records import Op, Value
from basedsl_cute.sim.translate.rule_table import never, nvidia_rule
from basedsl_cute.sim.translate.types import IntType, PtrType


def _blocks(op: Op, attribute: str = "group") -> int:
    """The number of blocks of the instruction's group."""
    return 2 if op.word(attribute, "cta_1") == "cta_2" else 1


@nvidia_rule("nvvm.tcgen05.alloc", sync="warp")
def _alloc(e: PythonEmitter, op: Op) -> None:
    e.globals["tensor_memory"] = tensor_memory
    holder, count = op.operands
    write = e.const(access_of(e, op, holder, IntType(32), "write", 4), "write")
    where = f"{write}, {e.lanes(holder)}, {e.lanes(count)}, {e.mask}"
    e.wait(f"tensor_memory.allocate(g, {_blocks(op)}, {where})")


@nvidia_rule("nvvm.tcgen05.dealloc", sync="warp")
def _dealloc(e: PythonEmitter, op: Op) -> None:
    e.globals["tensor_memory"] = tensor_memory
    address, count = (e.lanes(value) for value in op.operands)
    e.line(f"tensor_memory.free(g, {_blocks(op)}, {address}, {count}, {e.mask}, {e.at()})")


@nvidia_rule("nvvm.tcgen05.relinquish_alloc_permit", sync="warp")
def _relinquish(e: PythonEmitter, op: Op) -> None:
    e.globals["tensor_memory"] = tensor_memory
    e.line(f"tensor_memory.relinquish(g, {_blocks(op)}, {e.mask}, {e.at()})")


def _copy(e: PythonEmitter, op: Op) -> str:
    e.globals["tensor_memory"] = tensor_memory
    copy = tensor_memory.TmemCopy(
        op.string("shape"),
        op.integer("repeat"),
        "packed" in op.attributes,
        tuple(parse_ints(op.attributes["steps"])),
        op.site,
        op.string("reduction") if "reduction" in op.attributes else "",
        op.string("kind") if "kind" in op.attributes else "",
    )
    return e.const(copy, "tmem_copy")


@nvidia_rule("cute.tmem_load", uniform=never, sync="warp")
def _load_tmem(e: PythonEmitter, op: Op) -> None:
    address = e.lanes(op.operands[0])
    e.let(op.results[0], f"tensor_memory.load(g, {_copy(e, op)}, {address}, {e.mask})")


@nvidia_rule("cute.tmem_store", sync="warp")
def _store_tmem(e: PythonEmitter, op: Op) -> None:
    address, values = (e.lanes(value) for value in op.operands)
    e.line(f"tensor_memory.store(g, {_copy(e, op)}, {address}, {values}, {e.mask})")


@nvidia_rule("nvvm.tcgen05.wait", sync="warp")
def _wait(e: PythonEmitter, op: Op) -> None:
    if op.word("kind") == "store":
        e.globals["tensor_memory"] = tensor_memory
        e.line(f"tensor_memory.wait_for_stores(g, {e.mask}, {e.at()})")


@nvidia_rule("nvvm.tcgen05.fence")
def _fence(e: PythonEmitter, op: Op) -> None:
    """Order for the race check only: the simulator does all that the fence orders in program
    order.
    """
    if op.word("kind") == "after":
        e.globals["tensor_races"] = tensor_races
        e.line("tensor_races.fence(g)")


def _form(e: PythonEmitter, op: Op, a: Value, **more: Any) -> str:
    e.globals["tcgen05"] = tcgen05
    form = tcgen05.MmaForm(
        op.word("kind"),
        _blocks(op, "ctaGroup"),
        isinstance(a.type, PtrType),
        op.site,
        shifts_a="aShift" in op.attributes,
        **more,
    )
    return e.const(form, "mma_form")


@nvidia_rule("nvvm.tcgen05.mma", sync="warp")
@nvidia_rule("nvvm.tcgen05.mma.sp", sync="warp")
def _mma(e: PythonEmitter, op: Op) -> None:
    d, a, b, number, accumulate, *sparse, scale, lanes = op.segments()
    exponent = 0
    if scale:
        constant = scale[0].defining
        assert constant is not None  # the instruction takes an immediate
        exponent = constant.integer("value")
    places = ", ".join(e.lanes(part[0]) for part in (d, a, b, number, accumulate))
    disabled = e.lanes(lanes[0]) if lanes else None
    form = _form(e, op, a[0], scale_d=exponent)
    metadata = e.lanes(sparse[0][0]) if sparse else None
    e.line(f"tcgen05.mma(g, {form}, {places}, {e.mask}, None, {disabled}, {metadata})")


@nvidia_rule("nvvm.tcgen05.mma.ws", sync="warp")
def _weight_stationary(e: PythonEmitter, op: Op) -> None:
    d, a, b, number, accumulate, *zeros = op.operands
    if zeros or isinstance(a.type, PtrType):
        raise MissingRuleError(op.site, "with zero columns, or A in tensor memory")
    e.globals["tcgen05"] = tcgen05
    form = tcgen05.MmaForm(op.word("kind"), 1, False, op.site, is_ws=True)
    places = ", ".join(e.lanes(x) for x in (d, a, b, number, accumulate))
    e.line(f"tcgen05.mma(g, {e.const(form, 'mma_form')}, {places}, {e.mask})")


SCALE_VECTORS = {"block16": 16, "block32": 32, "default": 32}


@nvidia_rule("nvvm.tcgen05.mma.block_scale", sync="warp")
@nvidia_rule("nvvm.tcgen05.mma.sp.block_scale", sync="warp")
def _scaled_mma(e: PythonEmitter, op: Op) -> None:
    d, a, b, number, accumulate, *sparse, sfa, sfb = op.operands
    scales = [sfa, sfb]
    places = ", ".join(e.lanes(x) for x in (d, a, b, number, accumulate))
    factors = ", ".join(e.lanes(x) for x in scales)
    form = _form(e, op, a, vector=SCALE_VECTORS[op.word("blockScale", "default")])
    metadata = e.lanes(sparse[0]) if sparse else None
    e.line(f"tcgen05.mma(g, {form}, {places}, {e.mask}, ({factors}), None, {metadata})")


@nvidia_rule("nvvm.tcgen05.cp", sync="warp")
def _cp(e: PythonEmitter, op: Op) -> None:
    e.globals["tcgen05_cp"] = tcgen05_cp
    form = tcgen05_cp.CpForm(
        op.word("shape").removeprefix("shape_"),
        op.word("multicast").replace("none", ""),
        op.word("srcFormat"),
        _blocks(op),
        op.site,
    )
    address, descriptor = (e.lanes(value) for value in op.operands)
    e.line(f"tcgen05_cp.copy(g, {e.const(form, 'cp_form')}, {address}, {descriptor}, {e.mask})")


@nvidia_rule("nvvm.tcgen05.shift", sync="warp")
def _shift(e: PythonEmitter, op: Op) -> None:
    e.globals["tcgen05_cp"] = tcgen05_cp
    address = e.lanes(op.operands[0])
    e.line(f"tcgen05_cp.shift(g, {_blocks(op)}, {address}, {e.mask}, {e.at()})")


@nvidia_rule("nvvm.tcgen05.commit", sync="warp")
def _commit(e: PythonEmitter, op: Op) -> None:
    e.globals["tensor_queue"] = tensor_queue
    masks = e.lanes(op.operands[1]) if len(op.operands) > 1 else None
    address = e.lanes(op.operands[0])
    e.line(f"tensor_queue.commit(g, {_blocks(op)}, {address}, {masks}, {e.mask}, {e.at()})")
