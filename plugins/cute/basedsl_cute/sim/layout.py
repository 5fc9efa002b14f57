"""Where a kernel's variables lie: shared memory, constants, each thread's local memory."""

from __future__ import annotations

import itertools
import math
import os
from typing import Any

import numpy as np

from basedsl_cute.sim.attributes import parse_bytes, parse_dense, parse_int, parse_scalar
from basedsl_cute.sim.errors import MissingRuleError
from basedsl_cute.sim.memory import LOCAL_BASE, SHARED_BASE, Memory, Segment
from basedsl_cute.sim.records import Global, KernelRecord, Op, Value
from basedsl_cute.sim.registers import RegisterArray, element_sizes
from basedsl_cute.sim.types import ArrayType, Type, VectorType, dtype_of, parse_type, round_up


class Layout:
    """Addresses of shared variables, static first, then the dynamic array; sizes of the rest."""

    def __init__(self, kernel: KernelRecord) -> None:
        self.record: KernelRecord | None = kernel
        self._kernel = kernel.name
        self.addresses: dict[str, int] = {}
        self._variables: list[tuple[int, str, int]] = []
        at = SHARED_BASE
        shared = [v for v in kernel.globals.values() if v.space == 3]
        for variable in (v for v in shared if v.type.size):
            at = round_up(at, variable.align)
            self._place(variable, at)
            at += variable.type.size
        self.static_size = at - SHARED_BASE
        dynamic = [v for v in shared if not v.type.size]
        at = round_up(at, math.lcm(*(v.align for v in dynamic), 16))
        for variable in dynamic:
            self._place(variable, at)
        self.dynamic_base = at
        self.local: dict[Value, int] = {}  # the address of each alloca, in every thread
        self.registers: dict[Value, RegisterArray] = {}
        sizes = element_sizes(kernel)
        self.local_size = 0  # bytes of local memory that are not registers, at least
        self._local_used = 0
        for op in kernel.walk():
            if op.name == "llvm.alloca":
                self._allocate_local(op, sizes.get(op.results[0]))
        others = [v for v in kernel.globals.values() if v.space != 3 and v.type.size]
        self.data = {v.name: _initial(v) for v in others}
        self.aligns = {v.name: v.align for v in others}
        self.writable = frozenset(v.name for v in others if not v.constant)

    def __getstate__(self) -> dict[str, Any]:
        state = vars(self).copy()
        # Where each allocation of the record is: only translating asks for it.
        state.update(record=None, local={}, registers={})
        return {**state, "data": {name: raw.tobytes() for name, raw in self.data.items()}}

    def __setstate__(self, state: dict[str, Any]) -> None:
        vars(self).update(state)
        self.data = {}
        for name, content in state["data"].items():
            raw = self.data[name] = _room(len(content), self.aligns[name])
            raw[:] = np.frombuffer(content, np.uint8)

    def _place(self, variable: Global, at: int) -> None:
        self.addresses[variable.name] = at
        size = variable.type.size
        name = self._shown(variable)
        offsets = [offset for _, offset in variable.fields]
        one_by_one = offsets and all(a < b for a, b in itertools.pairwise(offsets))
        fields = variable.fields if one_by_one else (("", 0),)
        ends = [*(offset for _, offset in fields[1:]), size]
        for (field, offset), end in zip(fields, ends, strict=True):
            part = f"{name}.{field}" if field else name
            self._variables.append((at + offset, part, end - offset))

    def _shown(self, variable: Global) -> str:
        """A variable's name as the user knows it: lowering puts the kernel's around it."""
        name = variable.name.removeprefix(f"{self._kernel}_").rpartition("_")[0]
        if not variable.name.startswith(f"{self._kernel}_"):
            return variable.name
        if name != "smem":
            return name
        span = variable.site.span
        if span is None:
            return "shared memory"
        return f"shared memory allocated at {os.path.basename(span.filename)}:{span.line}"

    def _allocate_local(self, op: Op, itemsize: int | None) -> None:
        count = op.operands[0].defining
        if count is None or "value" not in count.attributes:
            raise MissingRuleError(op.site, "of a size that is not constant")
        element = parse_type(op.attributes["elem_type"])
        align = max(op.integer("alignment", 0), element.align, 1)
        at = round_up(LOCAL_BASE + self._local_used, align)
        self.local[op.results[0]] = at
        size = round_up(element.size, element.align) * parse_int(count.attributes["value"])
        self._local_used = at + size - LOCAL_BASE
        if itemsize is not None:
            self.registers[op.results[0]] = RegisterArray(at, size, itemsize)
        else:
            self.local_size = self._local_used

    def shared_size(self, dynamic: int) -> int:
        """Bytes of shared memory that a block needs."""
        if dynamic:
            return self.dynamic_base - SHARED_BASE + dynamic
        return self.static_size

    def variable(self, address: int, dynamic: int) -> tuple[str, int, int]:
        """Name, address and size of the shared variable at or before `address`."""
        found = ("shared memory", SHARED_BASE, self.shared_size(dynamic))
        for at, name, size in self._variables:
            if at <= address:
                found = (name, at, size or dynamic)
        return found

    def is_elsewhere(self, name: str) -> bool:
        """Whether a variable is at another address in each process."""
        return name in self.data

    def address(self, name: str) -> int:
        """The address of a variable in memory or shared memory."""
        if name in self.addresses:
            return self.addresses[name]
        return int(self.data[name].ctypes.data)

    def add_constants(self, memory: Memory) -> None:
        for name, raw in self.data.items():
            memory.insert(Segment(int(raw.ctypes.data), raw, name, name in self.writable))


def _room(size: int, align: int) -> Any:
    """Zeros at a 16-byte boundary, as the numbers in them expect, or a larger one."""
    align = max(align, 16)
    store = np.zeros(size + align, np.uint8)
    skip = -int(store.ctypes.data) % align
    return store[skip : skip + size]


def _initial(variable: Global) -> Any:
    """A variable's bytes."""
    raw = _room(variable.type.size, variable.align)
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
    shape: tuple[int, ...] = ()
    while isinstance(type_, ArrayType):
        shape += (type_.count,)
        type_ = type_.element
    if isinstance(type_, VectorType):
        return shape + type_.shape, type_.element
    dtype_of(type_)
    return shape, type_
