"""Shared-memory layouts that wgmma operands may have, as swizzled layouts.

The canonical layouts of the PTX ISA ("Shared Memory Matrix Layout" of wgmma, and its swizzling
modes): blocks of 8 rows of 16, 32, 64 or 128 contiguous bytes. They are given in elements; the
hardware's swizzle acts on byte addresses and is the same one with a base larger by log2(bytes).
"""

from __future__ import annotations

from .composed import ComposedLayout, Swizzle
from .errors import LayoutError
from .ignored_location import takes_location
from .layout import Layout
from .recast import recast_layout

_SWIZZLE_BITS = {"INTER": 0, "SW32": 1, "SW64": 2, "SW128": 3}

SMEM_ATOM_KINDS = tuple(f"{major}_{kind}" for major in ("MN", "K") for kind in _SWIZZLE_BITS)
"""Names of the canonical layouts: major mode and swizzle width."""


@takes_location
def gmma_smem_swizzle(kind: str) -> Swizzle:
    """Return the byte-address swizzle of a canonical layout, ``S<3,4,3>`` for ``"K_SW128"``."""
    if kind not in SMEM_ATOM_KINDS:
        raise LayoutError(f"unknown shared-memory layout {kind!r}; one of {SMEM_ATOM_KINDS}")
    return Swizzle(_SWIZZLE_BITS[kind.split("_")[1]], 4, 3)


@takes_location
def gmma_smem_atom(kind: str, bits: int) -> ComposedLayout:
    """Return the canonical layout ``kind`` in elements of ``bits``, to be tiled by `tile_to_shape`.

    Mode 0 is M or N, mode 1 is K. ``kind`` is one of `SMEM_ATOM_KINDS`.

    >>> print(gmma_smem_atom("K_SW128", 16))
    S<3,3,3> o 0 o (8,64):(64,1)
    """
    swizzle = gmma_smem_swizzle(kind)
    row_bits = 128 << swizzle.bits
    if row_bits % bits:
        raise LayoutError(f"{kind} has rows of {row_bits} bits, which {bits} does not divide")
    row = row_bits // bits
    if kind.startswith("K"):
        outer = Layout((8, row), (row, 1))
    else:
        outer = Layout((row, 8), (1, row))
    if swizzle.bits:
        of_elements = recast_layout(bits, 8, swizzle)
        swizzle = Swizzle(of_elements.bits, of_elements.base, of_elements.shift, bits)
    return ComposedLayout(swizzle, 0, outer)
