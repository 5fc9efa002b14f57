"""The MLIR type of tensors in memory, `!cute.memref`, as plain Python records.

    !cute.memref<f32, "gmem align<16>", "(?,1024):(1024,1)">

Element type, where it lives and how its first element is aligned (the element's own size unless
written), layout in CuTe's notation (a swizzle is part of it: "S<3,4,3> o 0 o (64,64):(64,1)").
Dynamic extents are `?` or `?{div=4}`.

A tensor is ONE SSA value of this type: the address of its first element. The type fixes the static
part of the layout; dynamic shapes and strides are ordinary i32/i64 values beside it, which the
front end passes as kernel arguments of their own. So address arithmetic is visible `arith`, and
a load takes a linear element offset. Building MLIR types is in `dialect.definition`.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

from basedsl import DSLTypeError


@dataclass(frozen=True)
class Space:
    """A memory space. `address_space` is LLVM's number for NVPTX (NVPTX Usage, "Address Spaces").

    Registers are stack slots to LLVM (its generic space), which it promotes to real registers.
    """

    name: str
    address_space: int
    meaning: str


SPACES = {
    space.name: space
    for space in (
        Space("generic", 0, "any memory; a slower instruction finds out which"),
        Space("gmem", 1, "global memory"),
        Space("smem", 3, "shared memory of the thread's own block"),
        Space("cmem", 4, "constant memory"),
        Space("rmem", 0, "registers of one thread"),
        Space("tmem", 6, "tensor memory (sm_100 and later)"),
        Space("dsmem", 7, "shared memory of any block in the cluster"),
    )
}

_SPACE_TEXT = re.compile(r"(\w+)(?: align<(\d+)>)?")


@dataclass(frozen=True)
class MemRef:
    """The parts of a `!cute.memref` type. `align` (bytes) is None where only the element's size is
    known.
    """

    element: Any  # ir.Type
    space: str
    layout: str
    align: int | None = None

    @property
    def address_space(self) -> int:
        return SPACES[self.space].address_space

    @property
    def element_bits(self) -> int:
        """Bits of one element in memory (a boolean takes a byte)."""
        return memory_bits(self.element)

    @property
    def alignment(self) -> int:
        """Bytes by which the first element is known to be aligned."""
        return self.align if self.align is not None else max(1, self.element_bits // 8)

    def __str__(self) -> str:
        text = space_text(self.space, self.align)
        return f'!cute.memref<{self.element}, "{text}", "{self.layout}">'


def space_text(space: str, align: int | None) -> str:
    """Write a memory space with its alignment: `gmem`, `gmem align<16>`. Raises DSLTypeError for an
    unknown space, or an alignment that is not a power of two.
    """
    if space not in SPACES:
        raise DSLTypeError(f"{space!r} is no memory space; there are {', '.join(SPACES)}")
    if align is None:
        return space
    if align < 1 or align & (align - 1):
        raise DSLTypeError(f"an alignment is a power of two of bytes, not {align}")
    return f"{space} align<{align}>"


def read_space(text: str) -> tuple[str, int | None]:
    """Parse a memory space with its alignment, as `space_text` writes it."""
    match = _SPACE_TEXT.fullmatch(text)
    if match is None:
        raise DSLTypeError(f"{text!r} is no memory space; write 'gmem' or 'gmem align<16>'")
    name, align = match[1], None if match[2] is None else int(match[2])
    space_text(name, align)
    return name, align


# Types whose size the bindings do not tell.
_NAMED_BITS = {"i1": 8, "tf32": 32}


def memory_bits(element: Any) -> int:
    """Return the bits that one element takes in memory. i1 takes a byte, tf32 a 32-bit word."""
    named = _NAMED_BITS.get(str(element))
    if named is not None:
        return named
    width = getattr(element, "width", None)
    if width is None:
        raise DSLTypeError(f"{element} cannot be an element of a tensor: it has no bit width")
    return int(width)
