"""Operands of `tcgen05.mma`: shapes, blocks, and descriptors of shared memory.

The "threads" of these instructions are the blocks of a CTA group, which halve M of A and C, and N
of B. An operand in shared memory is described by 64 bits (PTX ISA, "Shared memory
descriptor"); which layouts they can describe is in "Canonical layouts" there and in CuTe's C++
header `mma_traits_sm100.hpp`.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Any

from .atom_tables import CopyAtomLayout, MmaAtomLayout
from .compose import with_shape
from .composed import ComposedLayout, Swizzle
from .division import logical_divide, tiled_divide
from .errors import LayoutError
from .ignored_location import takes_location
from .int_tuple import is_static, product_each, tuple_rank
from .layout import Layout, make_layout, size
from .modes import flatten
from .products import tile_to_shape
from .recast import recast_layout
from .tmem import TMEM_COLUMN_BITS, TmemAllocation, TmemFragment


@takes_location
def tcgen05_mma(shape_mnk: tuple[int, int, int], blocks: int = 1) -> MmaAtomLayout:
    """Return the thread-value layouts of ``tcgen05.mma`` of this shape over 1 or 2 ``blocks``.

    >>> print(tcgen05_mma((256, 128, 16), 2).tv_layout_A)
    (2,(128,16)):(128,(1,256))
    """
    m, n, k = shape_mnk
    if blocks not in (1, 2) or m % blocks or n % blocks:
        raise LayoutError(f"no tcgen05.mma of shape {shape_mnk} over {blocks} blocks")

    def halves(rows: int, columns: int) -> Layout:
        own = rows // blocks
        return Layout((blocks, (own, columns)), (own if blocks > 1 else 0, (1, rows)))

    return MmaAtomLayout(shape_mnk, make_layout(blocks), halves(m, k), halves(n, k), halves(m, n))


@takes_location
def accumulator_fragment(bits: int, blocks: int = 1, a_in_tmem: bool = False) -> TmemFragment:
    """Return the fragment of an accumulator of ``bits``, which takes whole columns."""
    apart = a_in_tmem and blocks == 1
    mode = TmemAllocation.NON_INTERLEAVED if apart else TmemAllocation.INTERLEAVED
    return TmemFragment(bits, TMEM_COLUMN_BITS, blocks, mode)


@takes_location
def tmem_operand_fragment(bits: int, blocks: int = 1) -> TmemFragment:
    """Return the fragment of operand A in tensor memory, with elements of ``bits`` packed."""
    mode = TmemAllocation.NON_INTERLEAVED if blocks == 1 else TmemAllocation.DUPLICATED
    return TmemFragment(bits, bits, blocks, mode)


@takes_location
def tile_to_mma_shape(atom: Any, mma_tile_shape: Any, order: Any = None) -> Any:
    """Tile the canonical layout ``atom`` over ((MN, K), rest_MN, rest_K, ...) of one MMA's operand.

    ``order`` says in which order the modes (MN, K, ...) of the whole are tiled, by default the
    first is fastest. Mode 0 of the result is one instruction's operand.

    >>> from basedsl_cute.algebra import gmma_smem_atom
    >>> print(tile_to_mma_shape(gmma_smem_atom("K_SW128", 16), ((128, 16), 1, 4)))
    S<3,3,3> o 0 o ((128,16),1,4):((64,1),0,16)
    """
    if tuple_rank(mma_tile_shape) < 3 or tuple_rank(mma_tile_shape[0]) != 2:
        raise LayoutError(f"an MMA's tile is ((MN, K), rest_MN, rest_K, ...), not {mma_tile_shape}")
    (mn, k), rest_mn, rest_k, *more = mma_tile_shape
    whole = ((mn, rest_mn), (k, rest_k), *more)
    return tiled_divide(tile_to_shape(atom, whole, order), product_each(mma_tile_shape[0]))


# The descriptor's swizzling mode (bits 61-63) by (bits, base, shift) of the byte swizzle.
_MODES = {(3, 4, 3): 2, (2, 4, 3): 4, (1, 4, 3): 6, (2, 5, 2): 1}
_VERSION = 1  # bits 46-47: constant 0b001


@dataclass(frozen=True)
class OperandDescriptor:
    """The fields of tcgen05's shared-memory descriptor but its address.

    ``leading`` and ``stride`` are the offsets in units of 16 bytes; ``mode`` is the swizzling mode:
    0 none, 1 128 bytes in chunks of 32, 2 128, 4 64, 6 32 bytes.
    """

    leading: int
    stride: int
    mode: int
    version: int = field(default=_VERSION)

    @property
    def constant_bits(self) -> int:
        """The 64 bits for the start address 0."""
        return (
            self.leading << 16
            | self.stride << 32
            | self.version << 46
            | self.mode << 61
        )  # fmt: skip

    def bits_at(self, address: int) -> int:
        """The 64 bits for an operand that starts at the byte ``address`` of shared memory."""
        return self.constant_bits | ((address >> 4) & 0x3FFF)


def _mode_of(swizzle: Swizzle) -> int:
    if swizzle.bits == 0:
        return 0
    key = (swizzle.bits, swizzle.base, swizzle.shift)
    if key not in _MODES:
        raise LayoutError(f"tcgen05 knows no operand swizzled by {swizzle}")
    return _MODES[key]


@takes_location
def operand_descriptor(
    layout: Layout, swizzle: Swizzle, is_k_major: bool, bits: int
) -> OperandDescriptor:
    """Return the descriptor of ``layout``, the (MN, K) of one instruction, in elements of ``bits``.

    ``swizzle`` is that of byte addresses. Raises LayoutError unless the layout is canonical.
    """
    if tuple_rank(layout.shape) != 2 or not is_static(layout.shape) or not layout.is_static:
        raise LayoutError(f"an operand's layout is a static (MN, K), not {layout}")
    mode = _mode_of(swizzle)
    units = recast_layout(128, bits, layout)
    width = {0: 1, 6: 2, 4: 4}.get(mode, 8)
    if is_k_major:
        leading, stride = _k_major(units, mode, width)
    else:
        leading, stride = _mn_major(units, mode, width)
    if any(d >= 1 << 14 for d in (leading, stride)):
        raise LayoutError(f"{layout} has offsets beyond the descriptor's 14 bits of 16 bytes")
    return OperandDescriptor(leading, stride, mode)


def _canonical(units: Layout, extents: tuple[int, int]) -> tuple[Any, Any]:
    """Return the strides ((inner, outer), (inner, outer)) of ``units`` divided by ``extents``."""
    divided = logical_divide(units, (make_layout(extents[0]), make_layout(extents[1])))
    for mode in divided.stride:
        if not (isinstance(mode, tuple) and all(isinstance(d, int) for d in mode)):
            raise LayoutError(f"{units} (in 16 bytes) is no canonical operand layout")
    rows, columns = divided.stride
    return rows, columns


def _k_major(units: Layout, mode: int, width: int) -> tuple[int, int]:
    if mode == 1:
        raise LayoutError("the swizzle of chunks of 32 bytes is for MN-major operands only")
    if size(units, 0) % 8:
        raise LayoutError(f"a K-major operand has a multiple of 8 rows, not {size(units, 0)}")
    (row, group), (chunk, _) = _canonical(units, (8, 2))
    if row != width or (mode and chunk != 1):
        raise LayoutError(f"{units} (in 16 bytes) is no canonical K-major operand")
    return chunk, group


def _mn_major(units: Layout, mode: int, width: int) -> tuple[int, int]:
    rows = 4 if mode == 1 else 8
    (chunk, across), (row, group) = _canonical(units, (width, rows))
    if row != width or (mode and chunk != 1):
        raise LayoutError(f"{units} (in 16 bytes) is no canonical MN-major operand")
    return (across, group) if mode else (group, across)


@takes_location
def descriptor_layout(layout: Any, bits: int) -> Layout:
    """Return the layout of descriptors, in units of 16 bytes, of ((MN, K), rest...).

    Mode 0 is one descriptor; the others step through the operand by adding to its address.
    """
    outer = layout.outer if isinstance(layout, ComposedLayout) else layout
    units = recast_layout(128, bits, outer)
    return Layout((1, *units.shape[1:]), (0, *units.stride[1:]))


@takes_location
def widest_smem_atom(is_k_major: bool, bits: int, extents: tuple[int, int]) -> str:
    """Return the canonical layout with the widest swizzle for a tile of ``extents`` (MN, K).

    MN-major operands of 32 bits have only `SMEM_ATOM_32B`. Raises LayoutError unless both extents
    are multiples of 8, and the contiguous one is a multiple of 16 bytes.
    """
    if any(n % 8 for n in extents):
        raise LayoutError(f"an operand's tile has multiples of 8 rows and columns, not {extents}")
    along = extents[1 if is_k_major else 0] * bits
    if not is_k_major and bits == 32:
        if along % 1024:
            raise LayoutError(f"{extents[0]} MN-major elements of 32 bits are no 128-byte rows")
        return "MN_SW128_32B"
    width = math.gcd(along, 1024)
    name = {1024: "SW128", 512: "SW64", 256: "SW32", 128: "INTER"}.get(width)
    if name is None:
        raise LayoutError(f"{along} contiguous bits are no multiple of 16 bytes")
    return f"{'K' if is_k_major else 'MN'}_{name}"


@takes_location
def cp_descriptors(
    atom: CopyAtomLayout, source: Layout, bits: int
) -> tuple[OperandDescriptor, Layout]:
    """Return the descriptor of one ``tcgen05.cp`` and the layout of those of a partition.

    ``source`` is what `CopyTiling.partition` gives of shared memory: ((values of one instruction,
    1), rest...). The layout counts units of 16 bytes; the instruction reads whole rows of 16 bytes
    in the order of its lanes (K-major, no swizzle). Raises LayoutError for other orders.
    """
    if atom.tmem is None:
        raise LayoutError(f"the copy {atom.name} does not touch tensor memory")
    rows, row_bits = atom.tmem.shape[:2]
    values = flatten(source[0, 0])
    block = with_shape(values, (rows, row_bits // bits))
    steps = recast_layout(128, bits, source)
    return operand_descriptor(block, Swizzle(0, 4, 3), True, bits), steps
