"""Assignment of addresses to a kernel's variables, when the kernel is translated."""

from __future__ import annotations

import itertools
import math
import os
from typing import Any

import numpy as np

from basedsl_cute.sim.errors import MissingRuleError
from basedsl_cute.sim.machine.access import RegisterArray
from basedsl_cute.sim.machine.memory import LOCAL_BASE, SHARED_BASE
from basedsl_cute.sim.machine.memory_map import MemoryMap, aligned_zeros
from basedsl_cute.sim.translate.attributes import parse_bytes, parse_dense, parse_int, parse_scalar
from basedsl_cute.sim.translate.records import Global, KernelRecord, Op
from basedsl_cute.sim.translate.register_uses import Use, register_uses
from basedsl_cute.sim.translate.source_names import variable_name
from basedsl_cute.sim.translate.types import (
    ArrayType,
    Type,
    VectorType,
    dtype_of,
    parse_type,
    round_up,
)


def assign_addresses(kernel: KernelRecord, placement: int = 0) -> MemoryMap:
    """The memory map of a kernel: shared variables in their order, each aligned, the dynamic array
    last; local arrays one after another. Raises MissingRuleError for an array of unknown size.

    From `placement` 1 on no shared variable is aligned better than it asks for, so that a kernel
    that needs more fails; larger numbers also change the order. What that takes of shared memory
    does not count: `shared_size` is that of placement 0.
    """
    memory_map = MemoryMap()
    shared = [v for v in kernel.globals.values() if v.space == 3]
    static = [v for v in shared if v.type.size]
    dynamic = [v for v in shared if not v.type.size]
    last = math.lcm(*(v.align for v in dynamic), 16)
    plain = SHARED_BASE
    for variable in static:
        plain = round_up(plain, variable.align) + variable.type.size
    memory_map.static_size = plain - SHARED_BASE
    first = max(placement - 1, 0) % max(len(static), 1)
    at = SHARED_BASE
    for variable in static[first:] + static[:first]:
        at = _place(at, variable.align, placement)
        _place_shared(memory_map, variable, at, kernel.name)
        at += variable.type.size
    end, at = at, _place(at, last, placement) if dynamic else round_up(at, last)
    for variable in dynamic:
        _place_shared(memory_map, variable, at, kernel.name)
    memory_map.dynamic_base = at
    memory_map.slack = max(0, end - plain, at - round_up(plain, last))
    memory_map.variables.sort(key=lambda variable: variable[0])
    uses = register_uses(kernel)
    for op in kernel.walk():
        if op.name == "llvm.alloca":
            _allocate_local(memory_map, op, uses.get(op.results[0]))
    others = [v for v in kernel.globals.values() if v.space != 3 and v.type.size]
    memory_map.data = {v.name: _initial(v) for v in others}
    memory_map.aligns = {v.name: v.align for v in others}
    memory_map.writable = frozenset(v.name for v in others if not v.constant)
    return memory_map


def _place(at: int, align: int, placement: int) -> int:
    at = round_up(at, align)
    by_luck = placement > 0 and at % (2 * align) == 0
    return at + align if by_luck else at


def _place_shared(memory_map: MemoryMap, variable: Global, at: int, kernel: str) -> None:
    memory_map.addresses[variable.name] = at
    size = variable.type.size
    name = _shown(variable, kernel)
    offsets = [offset for _, offset in variable.fields]
    one_by_one = offsets and all(a < b for a, b in itertools.pairwise(offsets))
    fields = variable.fields if one_by_one else (("", 0),)
    ends = [*(offset for _, offset in fields[1:]), size]
    for (field, offset), end in zip(fields, ends, strict=True):
        part = f"{name}.{field}" if field and size else field or name
        memory_map.variables.append((at + offset, part, max(end - offset, 0)))


def _shown(variable: Global, kernel: str) -> str:
    """The name of a variable as the user knows it: lowering puts the kernel's name around it."""
    name = variable.name.removeprefix(f"{kernel}_").rpartition("_")[0]
    if not variable.name.startswith(f"{kernel}_"):
        return variable.name
    if name != "smem":
        return name
    span = variable.site.span
    if span is None:
        return "shared memory"
    written = variable_name(variable.site)
    if written is not None:
        return written
    return f"shared memory allocated at {os.path.basename(span.filename)}:{span.line}"


def _allocate_local(memory_map: MemoryMap, op: Op, use: Use | None) -> None:
    count = op.operands[0].defining
    if count is None or "value" not in count.attributes:
        raise MissingRuleError(op.site, "of a size that is not constant")
    element = parse_type(op.attributes["elem_type"])
    align = max(op.integer("alignment", 0), element.align, 1)
    at = round_up(memory_map.local_end, align)
    memory_map.local[op.results[0].number] = at
    size = round_up(element.size, element.align) * parse_int(count.attributes["value"])
    memory_map.local_end = at + size
    name = variable_name(op.site) or "a local array"
    memory_map.local_names.append((at, name, size))
    if use is not None:
        array = RegisterArray(at, size, use.itemsize, use.multiplied, name)
        memory_map.registers[op.results[0].number] = array
    else:
        memory_map.local_size = memory_map.local_end - LOCAL_BASE


def _initial(variable: Global) -> Any:
    """The bytes of a variable before the launch, uint8."""
    raw = aligned_zeros(variable.type.size, variable.align)
    init = variable.init
    if init is None:
        return raw
    if init.startswith('"'):
        data = np.frombuffer(parse_bytes(init), np.uint8)
        raw[: data.size] = data
        return raw
    shape, element = _flat(variable.type)
    if init.startswith("dense<"):
        values = parse_dense(init, shape, element)
    elif not shape:
        values = parse_scalar(init.rsplit(" : ", 1)[0], element)
    else:
        raise MissingRuleError(variable.site, f"initial value {init[:60]}")
    raw[:] = np.ascontiguousarray(values).view(np.uint8).reshape(-1)
    return raw


def _flat(type_: Type) -> tuple[tuple[int, ...], Type]:
    """The extents of nested arrays and vectors, and the type of an element."""
    shape: tuple[int, ...] = ()
    while isinstance(type_, ArrayType):
        shape += (type_.count,)
        type_ = type_.element
    if isinstance(type_, VectorType):
        return shape + type_.shape, type_.element
    dtype_of(type_)
    return shape, type_
