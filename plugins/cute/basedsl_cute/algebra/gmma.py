"""Shared-memory layouts that operands of wgmma and tcgen05.mma may have, as swizzled layouts.

The canonical layouts of the PTX ISA ("Shared Memory Matrix Layout" of wgmma, "Canonical layouts" of
tcgen05): blocks of 8 rows of 16, 32, 64 or 128 contiguous bytes, for tcgen05 also of 4 rows of 128
bytes whose chunks of 32 bytes are swizzled. They are given in elements; the hardware's swizzle acts
on byte addresses and is the same one with a base larger by log2(bytes).
"""

from __future__ import annotations

from .composed import ComposedLayout, Swizzle
from .errors import LayoutError
from .ignored_location import takes_location
from .layout import Layout
from .recast import recast_layout

_SWIZZLE_BITS = {"INTER": 0, "SW32": 1, "SW64": 2, "SW128": 3}

SMEM_ATOM_KINDS = tuple(f"{major}_{kind}" for major in ("MN", "K") for kind in _SWIZZLE_BITS)
"""Names of the canonical layouts of wgmma and tcgen05: major mode and swizzle width."""

SMEM_ATOM_32B = "MN_SW128_32B"
"""The canonical layout that only tcgen05 has: 128 bytes wide, in chunks of 32 bytes."""


@takes_location
def gmma_smem_swizzle(kind: str) -> Swizzle:
    """Return the byte-address swizzle of a canonical layout, ``S<3,4,3>`` for ``"K_SW128"``."""
    if kind == SMEM_ATOM_32B:
        return Swizzle(2, 5, 2)
    if kind not in SMEM_ATOM_KINDS:
        known = (*SMEM_ATOM_KINDS, SMEM_ATOM_32B)
        raise LayoutError(f"unknown shared-memory layout {kind!r}; one of {known}")
    return Swizzle(_SWIZZLE_BITS[kind.split("_")[1]], 4, 3)


@takes_location
def gmma_smem_atom(kind: str, bits: int) -> ComposedLayout:
    """Return the canonical layout ``kind`` in elements of ``bits``, to be tiled by `tile_to_shape`.

    Mode 0 is M or N, mode 1 is K. ``kind`` is one of `SMEM_ATOM_KINDS`, or
    `SMEM_ATOM_32B`.

    >>> print(gmma_smem_atom("K_SW128", 16))
    S<3,3,3> o 0 o (8,64):(64,1)
    """
    swizzle = gmma_smem_swizzle(kind)
    row_bits = 1024 if kind == SMEM_ATOM_32B else 128 << swizzle.bits
    if row_bits % bits:
        raise LayoutError(f"{kind} has rows of {row_bits} bits, which {bits} does not divide")
    row = row_bits // bits
    if kind.startswith("K"):
        outer = Layout((8, row), (row, 1))
    else:
        outer = Layout((row, 4 if kind == SMEM_ATOM_32B else 8), (1, row))
    if swizzle.bits:
        of_elements = recast_layout(bits, 8, swizzle)
        swizzle = Swizzle(of_elements.bits, of_elements.base, of_elements.shift, bits)
    return ComposedLayout(swizzle, 0, outer)
