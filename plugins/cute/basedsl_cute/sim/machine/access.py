"""Records of loads and stores: what translating a kernel fixes about each of them.

They are part of the translated kernel and hold no state of a launch.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from basedsl_cute.sim.site import Site

BLOCK_SCOPE, GPU_SCOPE, SYSTEM_SCOPE = range(3)
"""Scopes of fences and ordered accesses; that of a cluster counts as the GPU's."""


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class RegisterArray:
    """A local array that is kept in registers: `size` bytes from the local address `base`, as
    elements of `itemsize` bytes. `multiplied` says that a wgmma reads or writes it.
    """

    base: int
    size: int
    itemsize: int
    multiplied: bool = False
    name: str = "a local array"


@dataclass(slots=True, eq=False, repr=False)
class MemoryAccess:
    """One load, store or atomic of a kernel: a scalar, or a vector of `shape`, of NumPy `dtype`.

    The address must be a multiple of `align` bytes. `space` is the pointer's address space as LLVM
    numbers them (0 generic, 1 global, 3 shared, 5 local, 7 shared memory of the cluster), `root`
    the number of the kernel argument that the pointer comes from, if that is known. `element` and
    `verb` are for error messages: "f32", "read". `boolean` marks an i1, which is a byte in memory.
    `register` is the local array that the pointer points into, if that is kept in registers.
    `strong` marks atomics and accesses with an order: `acquires` and `releases` say which, `scope`
    among which threads, `wide` that these are more than the block.
    `spreads` marks a read whose poison the generated code follows: it may read what nobody wrote.
    `steady` marks a read whose memory does not change while its value is used.
    `keeps` marks a read of what shares a byte with what is written next: it may be uninitialized.
    """

    dtype: Any
    shape: tuple[int, ...]
    align: int
    space: int
    root: int | None
    site: Site
    element: str
    verb: str = "read"
    boolean: bool = False
    register: RegisterArray | None = None
    keeps: bool = False
    steady: bool = False
    spreads: bool = False
    strong: bool = False
    acquires: bool = False
    releases: bool = False
    scope: int = 0
    count: int = field(init=False)  # elements
    nbytes: int = field(init=False)
    low_bits: int = field(init=False)  # of an address, that must be zero
    shift: int = field(init=False)  # from bytes to elements
    rows: Any = field(init=False)  # (count, 1), added to a lane's index: a vector's elements

    @property
    def wide(self) -> bool:
        """True if its scope is beyond the block."""
        return self.scope > BLOCK_SCOPE

    @property
    def reads(self) -> bool:
        """True if it reads memory, as atomics do."""
        return self.verb != "write"

    def __post_init__(self) -> None:
        self.count = math.prod(self.shape)
        self.nbytes = self.count * self.dtype.itemsize
        self.low_bits = self.align - 1
        self.shift = self.dtype.itemsize.bit_length() - 1
        self.rows = np.arange(self.count)[:, None] if self.shape else None
