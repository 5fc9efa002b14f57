"""Where a kernel's variables lie: shared memory, constants, each thread's local memory."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from basedsl_cute.sim.machine.memory import LOCAL_BASE, SHARED_BASE, Memory, Segment

if TYPE_CHECKING:
    from basedsl_cute.sim.machine.registers import RegisterArray
    from basedsl_cute.sim.translate.records import KernelRecord, Value


class Layout:
    """Addresses of shared variables, static first, then the dynamic array; sizes of the rest.
    `placement.place` makes one.
    """

    def __init__(self, record: KernelRecord) -> None:
        self.record: KernelRecord | None = record
        self.addresses: dict[str, int] = {}
        self.variables: list[tuple[int, str, int]] = []
        self.static_size = 0
        self.dynamic_base = SHARED_BASE
        self.local: dict[Value, int] = {}  # the address of each alloca, in every thread
        self.registers: dict[Value, RegisterArray] = {}
        self.local_size = 0  # bytes of local memory that are not registers, at least
        self.local_end = LOCAL_BASE
        self.data: dict[str, Any] = {}
        self.aligns: dict[str, int] = {}
        self.writable: frozenset[str] = frozenset()

    def __getstate__(self) -> dict[str, Any]:
        state = vars(self).copy()
        # Where each allocation of the record is: only translating asks for it.
        state.update(record=None, local={}, registers={})
        return {**state, "data": {name: raw.tobytes() for name, raw in self.data.items()}}

    def __setstate__(self, state: dict[str, Any]) -> None:
        vars(self).update(state)
        self.data = {}
        for name, content in state["data"].items():
            raw = self.data[name] = room(len(content), self.aligns[name])
            raw[:] = np.frombuffer(content, np.uint8)

    def shared_size(self, dynamic: int) -> int:
        """Bytes of shared memory that a block needs."""
        if dynamic:
            return self.dynamic_base - SHARED_BASE + dynamic
        return self.static_size

    def variable(self, address: int, dynamic: int) -> tuple[str, int, int]:
        """Name, address and size of the shared variable at or before `address`."""
        found = ("shared memory", SHARED_BASE, self.shared_size(dynamic))
        for at, name, size in self.variables:
            if at <= address:
                found = (name, at, size or self.dynamic_base + dynamic - at)
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


def room(size: int, align: int) -> Any:
    """Zeros at a 16-byte boundary, as the numbers in them expect, or a larger one."""
    align = max(align, 16)
    store = np.zeros(size + align, np.uint8)
    skip = -int(store.ctypes.data) % align
    return store[skip : skip + size]
