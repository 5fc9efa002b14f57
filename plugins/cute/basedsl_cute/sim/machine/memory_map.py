"""Addresses of a kernel's variables: shared memory, constants, each thread's local memory."""

from __future__ import annotations

from typing import Any

import numpy as np

from basedsl_cute.sim.machine.access import RegisterArray
from basedsl_cute.sim.machine.memory import LOCAL_BASE, SHARED_BASE, Memory, Segment


class MemoryMap:
    """Addresses and sizes of a kernel's variables, in bytes. `assign_addresses` makes one.

    Shared variables come first, the static ones before the dynamic array. `local` and `registers`
    are by the number of the SSA value that an alloca defines: its address in every thread, and the
    register array that it is kept as, if it is.
    """

    def __init__(self) -> None:
        self.addresses: dict[str, int] = {}  # of shared variables
        self.variables: list[tuple[int, str, int]] = []  # address, name for messages, size
        self.static_size = 0
        self.dynamic_base = SHARED_BASE
        self.slack = 0  # bytes that only the simulator's placement of variables takes
        self.local: dict[int, int] = {}
        self.registers: dict[int, RegisterArray] = {}
        self.local_names: list[tuple[int, str, int]] = []  # address, name for messages, size
        self.local_size = 0  # bytes of local memory that are not registers, at least
        self.local_end = LOCAL_BASE
        self.data: dict[str, Any] = {}  # bytes of each variable in global or constant memory
        self.aligns: dict[str, int] = {}
        self.writable: frozenset[str] = frozenset()

    def __getstate__(self) -> dict[str, Any]:
        state = vars(self).copy()
        return {**state, "data": {name: raw.tobytes() for name, raw in self.data.items()}}

    def __setstate__(self, state: dict[str, Any]) -> None:
        vars(self).update(state)
        self.data = {}
        for name, content in state["data"].items():
            raw = self.data[name] = aligned_zeros(len(content), self.aligns[name])
            raw[:] = np.frombuffer(content, np.uint8)

    def shared_size(self, dynamic: int) -> int:
        """Bytes of shared memory that a block needs, with `dynamic` bytes of dynamic memory."""
        if dynamic:
            return self.dynamic_base - SHARED_BASE + dynamic - self.slack
        return self.static_size

    def shared_span(self, dynamic: int) -> int:
        """Bytes from the first to behind the last byte that a block may use."""
        size = self.shared_size(dynamic)
        return size and size + self.slack

    def variable_at(self, address: int, dynamic: int) -> tuple[str, int, int]:
        """Name, address and size of the shared variable at or before `address`."""
        found = ("shared memory", SHARED_BASE, self.shared_span(dynamic))
        for at, name, size in self.variables:
            if at <= address:
                found = (name, at, size or self.dynamic_base + dynamic - at)
        return found

    def local_at(self, address: int) -> tuple[str, int, int]:
        """Name, address and size of the local array at or before `address`."""
        found = ("local memory", LOCAL_BASE, self.local_size)
        for at, name, size in self.local_names:
            if at <= address:
                found = (name, at, size)
        return found

    def differs_by_process(self, name: str) -> bool:
        """True for a variable in host memory, whose address is another one in each process."""
        return name in self.data

    def address_of(self, name: str) -> int:
        """The address of a variable: a host address, or one in shared memory."""
        if name in self.addresses:
            return self.addresses[name]
        return int(self.data[name].ctypes.data)

    def add_variables(self, memory: Memory) -> None:
        """Let a launch touch the variables that lie in global or constant memory."""
        for name, raw in self.data.items():
            memory.insert(Segment(int(raw.ctypes.data), raw, name, name in self.writable))


def aligned_zeros(size: int, align: int) -> Any:
    """`size` zero bytes, `(size,)`, from a multiple of `align` bytes and of 16."""
    align = max(align, 16)
    store = np.zeros(size + align, np.uint8)
    skip = -int(store.ctypes.data) % align
    return store[skip : skip + size]
