"""Rules of loads and stores through pointers."""

from __future__ import annotations

import numpy as np

from basedsl_cute.dialect.attributes import KEEPS
from basedsl_cute.sim.errors import MissingRuleError
from basedsl_cute.sim.machine import load_store, registers
from basedsl_cute.sim.machine.access import BLOCK_SCOPE, GPU_SCOPE, SYSTEM_SCOPE, MemoryAccess
from basedsl_cute.sim.machine.memory import LOCAL_BASE
from basedsl_cute.sim.machine.schedule import pause
from basedsl_cute.sim.translate.emitter import PythonEmitter
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
from basedsl_cute.sim.translate.uniformity import UniformityAnalysis

WIDEST = 16
"""Bytes of the widest access of a thread; longer vectors take several (PTX ISA, ld: .v4.b32)."""


# LLVM's orderings that acquire, and those that release, by number.
_ACQUIRE, _RELEASE = (4, 6, 7), (5, 6, 7)


def access_of(
    e: PythonEmitter, op: Op, pointer: Value, type_: Type, verb: str, align: int = 0
) -> MemoryAccess:
    """The access that `op` makes at `pointer`: of a value of `type_`, aligned to `align` bytes or,
    by default, as its type is. Raises MissingRuleError for a type that memory cannot hold.
    """
    element = element_type(type_)
    if is_aggregate(type_):
        raise MissingRuleError(op.site, f"of a whole {type_}")
    if isinstance(element, IntType) and not element.native and element.width != 1:
        raise MissingRuleError(op.site, f"of {type_}")
    boolean = isinstance(element, IntType) and element.width == 1
    shape = type_.shape if isinstance(type_, VectorType) else ()
    if boolean and shape:
        raise MissingRuleError(op.site, f"of {type_}, whose elements are packed")
    root = e.uniformity.root(pointer)
    assert isinstance(pointer.type, PtrType)
    register = None
    if root is not None and root.local is not None:
        register = e.memory_map.registers.get(root.local.number)
    order = op.integer("ordering", 0) or op.integer("success_ordering", 0)
    return MemoryAccess(
        dtype=np.dtype(np.uint8) if boolean else dtype_of(element),
        shape=shape,
        align=min(align or type_.align, WIDEST),
        space=5 if root is not None and root.local is not None else pointer.type.space,
        root=root.arg if root is not None else None,
        site=op.site,
        element=str(element),
        verb=verb,
        boolean=boolean,
        register=register,
        keeps=KEEPS in op.attributes,
        strong=order > 1 or "volatile_" in op.attributes,
        acquires=order in _ACQUIRE,
        releases=order in _RELEASE,
        scope=scope_of(op.attributes.get("syncscope", "")),
    )


def scope_of(name: str) -> int:
    """The scope that LLVM calls `name`: "" is the system (NVPTX memory model)."""
    return {"": SYSTEM_SCOPE, "block": BLOCK_SCOPE}.get(name.strip('"'), GPU_SCOPE)


def interrupt(e: PythonEmitter) -> None:
    """Write a place where a warp may be interrupted, if the schedule is a shuffled one."""
    if e.coroutine:
        e.globals["pause"] = pause
        e.line(f"if g.launch.chance and g.launch.chance.random() < 0.5: yield pause({e.at()})")


def _ordered(op: Op) -> bool:
    return op.integer("ordering", 0) != 0 or "volatile_" in op.attributes


def _uniform_load(uniformity: UniformityAnalysis, op: Op) -> bool:
    pointer = op.operands[0]
    return pointer not in uniformity.varying and uniformity.same_memory(pointer)


def _place(e: PythonEmitter, pointer: Value) -> str:
    if pointer in e.affine:
        return e.raw(pointer)
    if e.varying(pointer) or e.coroutine:
        return e.lanes(pointer)
    return f"g.everywhere({e.ref(pointer)})"


def _known_rows(e: PythonEmitter, access: MemoryAccess, pointer: Value) -> tuple[int, int] | None:
    """The rows of a register array that an access is known to touch, where no other check minds."""
    address = e.constant(pointer)
    assert access.register is not None
    if address is None or access.register.multiplied:
        return None
    return registers.known_rows(access.register, int(address), access.nbytes)


def _array(e: PythonEmitter, access: MemoryAccess, what: str) -> tuple[str, str]:
    """Variables with the rows of a register array as an access takes them, and which are clean."""
    e.globals["registers"] = registers
    assert access.register is not None
    array = access.register.base - LOCAL_BASE
    rows = e.held(f"R{array}{access.dtype.name}", f"registers.register_rows(g, {what})")
    return rows, e.held(f"C{array}", f"registers.clean_rows(g, {what})")


def register_array(e: PythonEmitter, op: Op) -> tuple[MemoryAccess, str, str]:
    """The access of a load or store of registers, and the variables that hold their array and which
    of its rows are clean.
    """
    value = (op.results or op.operands)[0]
    access = access_of(e, op, op.operands[-1], value.type, "read" if op.results else "write")
    return (access, *_array(e, access, e.const(access, "read")))


def _load_rows(
    e: PythonEmitter, op: Op, access: MemoryAccess, what: str, first: int, end: int
) -> None:
    (result,) = op.results
    rows, clean = _array(e, access, what)
    got = f"{rows}[{first}:{end}]" if access.shape else f"{rows}[{first}]"
    if op not in e.steady:
        got += ".copy()"
    e.let(result, f"{got}.reshape({(*access.shape, -1)})" if len(access.shape) > 1 else got)
    if result in e.poison.may:
        dirty = f"{clean}.find(0, {first}, {end}) >= 0" if access.shape else f"not {clean}[{first}]"
        poison = f"registers.unwritten(g, {what}, {first}, {e.mask}) if {dirty} else None"
        e.line(f"{e.poison.name(result)} = {poison}")


def _store_rows(
    e: PythonEmitter, access: MemoryAccess, what: str, value: str, first: int, end: int
) -> None:
    rows, clean = _array(e, access, what)
    if not access.shape:
        e.line(f"{rows}[{first}] = {value}")
        e.line(f"{clean}[{first}] = 1")
        return
    if len(access.shape) > 1:
        value = f"{value}.reshape({access.count}, -1)"
    e.line(f"{rows}[{first}:{end}] = {value}")
    e.line(f"{clean}[{first}:{end}] = {bytes([1] * access.count)!r}")


@rule("llvm.load", uniform=_uniform_load, volatile=_ordered)
def _load_value(e: PythonEmitter, op: Op) -> None:
    (pointer,), (result,) = op.operands, op.results
    access = access_of(e, op, pointer, result.type, "read", op.integer("alignment", 0))
    access.spreads = result in e.poison.may
    access.steady = op in e.steady
    what = e.const(access, "read")
    if access.strong:
        interrupt(e)
    if access.register is not None:
        rows = _known_rows(e, access, pointer)
        if rows is not None:
            _load_rows(e, op, access, what, *rows)
            return
        e.globals["load_register"] = registers.load_register
        e.let(result, f"load_register(g, {what}, {e.ref(pointer)}, {e.mask})")
        e.poison.take(result)
        return
    e.globals["load_memory"] = load_store.load_memory
    e.globals["load_uniform"] = load_store.load_uniform
    if e.varying(result):
        e.let(result, f"load_memory(g, {what}, {_place(e, pointer)}, {e.mask})")
    else:
        e.let(result, f"load_uniform(g, {what}, {e.ref(pointer)}, {e.mask})")
    e.poison.take(result)


@rule("llvm.store")
def _store_value(e: PythonEmitter, op: Op) -> None:
    value, pointer = op.operands
    access = access_of(e, op, pointer, value.type, "write", op.integer("alignment", 0))
    what = e.const(access, "write")
    if access.strong:
        interrupt(e)
    e.poison.use([pointer], "is the address of this write")
    if access.register is not None:
        rows = _known_rows(e, access, pointer)
        if rows is not None and e.mask == "None":
            _store_rows(e, access, what, e.ref(value), *rows)
        else:
            e.globals["store_register"] = registers.store_register
            e.line(f"store_register(g, {what}, {e.ref(pointer)}, {e.ref(value)}, {e.mask})")
        place, spoil = e.ref(pointer), registers.spoil_register
    else:
        e.globals["store_memory"] = load_store.store_memory
        e.line(f"store_memory(g, {what}, {_place(e, pointer)}, {e.ref(value)}, {e.mask})")
        place, spoil = e.lanes(pointer), load_store.spoil_memory
    for mark in e.poison.names(value):
        e.globals[spoil.__name__] = spoil
        e.line(f"if {mark} is not None: {spoil.__name__}(g, {what}, {place}, {mark}, {e.mask})")
