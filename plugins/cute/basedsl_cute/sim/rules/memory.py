"""Rules of loads and stores, and of bulk zeroing and copying through pointers."""

from __future__ import annotations

import numpy as np

from basedsl_cute.dialect.attributes import KEEPS
from basedsl_cute.sim.errors import MissingRuleError
from basedsl_cute.sim.machine import access as memory_access
from basedsl_cute.sim.machine import registers
from basedsl_cute.sim.machine.access import Access
from basedsl_cute.sim.translate.emitter import Emitter
from basedsl_cute.sim.translate.records import Op, Value
from basedsl_cute.sim.translate.rule_table import rule
from basedsl_cute.sim.translate.types import (
    IntType,
    PtrType,
    Type,
    VectorType,
    dtype_of,
    element_type,
    is_aggregate,
)
from basedsl_cute.sim.translate.uniformity import Variance

WIDEST = 16
"""Bytes of the widest access of a thread: longer vectors go in pieces (PTX ISA, ld: .v4.b32)."""


def access_of(e: Emitter, op: Op, pointer: Value, type_: Type, verb: str, align: int = 0) -> Access:
    """What `op` does at `pointer`: a value of `type_`, aligned as the op says or as its type is."""
    element = element_type(type_)
    if is_aggregate(type_):
        raise MissingRuleError(op.site, f"of a whole {type_}")
    if isinstance(element, IntType) and not element.native and element.width != 1:
        raise MissingRuleError(op.site, f"of {type_}")
    boolean = isinstance(element, IntType) and element.width == 1
    shape = type_.shape if isinstance(type_, VectorType) else ()
    if boolean and shape:
        raise MissingRuleError(op.site, f"of {type_}, whose elements are packed")
    root = e.variance.root(pointer)
    assert isinstance(pointer.type, PtrType)
    return Access(
        dtype=np.dtype(np.uint8) if boolean else dtype_of(element),
        shape=shape,
        align=min(align or type_.align, WIDEST),
        space=5 if root is not None and root.local is not None else pointer.type.space,
        root=root.arg if root is not None else None,
        site=op.site,
        element=str(element),
        verb=verb,
        boolean=boolean,
        register=e.layout.registers.get(root.local) if root and root.local else None,
        keeps=KEEPS in op.attributes,
    )


def _ordered(op: Op) -> bool:
    return op.integer("ordering", 0) != 0 or "volatile_" in op.attributes


def _uniform_load(variance: Variance, op: Op) -> bool:
    pointer = op.operands[0]
    return pointer not in variance.varying and variance.same_memory(pointer)


@rule("llvm.load", uniform=_uniform_load, volatile=_ordered)
def _load(e: Emitter, op: Op) -> None:
    (pointer,), (result,) = op.operands, op.results
    access = access_of(e, op, pointer, result.type, "read", op.integer("alignment", 0))
    what = e.const(access, "read")
    if access.register is not None:
        e.globals["load_register"] = registers.load_register
        e.let(result, f"load_register(g, {what}, {e.ref(pointer)}, {e.mask})")
        return
    e.globals["load"], e.globals["load_uniform"] = memory_access.load, memory_access.load_uniform
    if e.varying(result):
        e.let(result, f"load(g, {what}, {e.lanes(pointer)}, {e.mask})")
    else:
        e.let(result, f"load_uniform(g, {what}, {e.ref(pointer)}, {e.mask})")


@rule("llvm.store")
def _store(e: Emitter, op: Op) -> None:
    value, pointer = op.operands
    access = access_of(e, op, pointer, value.type, "write", op.integer("alignment", 0))
    what = e.const(access, "write")
    if access.register is not None:
        e.globals["store_register"] = registers.store_register
        e.line(f"store_register(g, {what}, {e.ref(pointer)}, {e.ref(value)}, {e.mask})")
        return
    e.globals["store"] = memory_access.store
    e.line(f"store(g, {what}, {e.lanes(pointer)}, {e.ref(value)}, {e.mask})")
