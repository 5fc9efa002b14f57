"""Layouts of operands in tensor memory, the 128 lanes x 512 columns of 32 bits of a Blackwell SM.

An address is ``lane << 16 | column`` (PTX ISA, "Tensor Memory Addressing"). A layout
counts elements: with ``bits`` of each, ``32 // bits`` of them share a column, and a lane is
`lane_stride`. Which (row, column) of a matrix lies where is fixed by the instruction (PTX ISA,
"Data Path Layout Organization"); the tiling of several instructions over free lanes
and columns is that of CuTe's C++ header `mma_traits_sm100.hpp`.
"""

from __future__ import annotations

import enum
from dataclasses import dataclass
from typing import Any

from .compose import composition
from .errors import LayoutError
from .ignored_location import takes_location
from .int_tuple import flatten_to_tuple, product, transform_leaf, tuple_rank
from .layout import Layout, make_layout
from .products import tiled_product

TMEM_LANES, TMEM_COLUMN_BITS = 128, 32
_LANE_SHIFT, _ADDRESS = 16, 0xFFFFFFFF
QUARTER = 32  # lanes, those that one warp reaches
_VIRTUAL_COLUMNS = 16384


class TmemAllocation(enum.StrEnum):
    """The sharing of tensor memory by instructions that fill only a part of the lanes.

    INTERLEAVED: the next tile of 64 rows takes the lanes that one leaves free. NON_INTERLEAVED: it
    takes other columns, as A and C of one instruction have to. DUPLICATED: 64 rows of A lie in both
    halves of the lanes. SCALES_4X1 and SCALES_2X2: scale factors, for accumulators of 128 lanes
    and of two halves.
    """

    INTERLEAVED = "Interleaved"
    NON_INTERLEAVED = "NonInterleaved"
    DUPLICATED = "Duplicated"
    SCALES_4X1 = "ScaleFactorDuplicated4by1"
    SCALES_2X2 = "ScaleFactorDuplicated2by2"


@takes_location
def lane_stride(bits: int) -> int:
    """Return the distance of two lanes, in elements of ``bits``; with 1, in bits."""
    return (1 << _LANE_SHIFT) * TMEM_COLUMN_BITS // bits


@takes_location
def tmem_columns(layout: Layout, bits: int) -> int:
    """Return the number of 32-bit columns, counted from 0, that elements of ``bits`` reach.

    >>> tmem_columns(Layout((128, 64), (65536, 1)), 32)
    64
    """
    modes = zip(flatten_to_tuple(layout.shape), flatten_to_tuple(layout.stride), strict=True)
    last: int = sum((s - 1) * (d % lane_stride(bits)) for s, d in modes)
    return -(-(last + 1) * bits // TMEM_COLUMN_BITS)


@takes_location
def tmem_address(base: int, offset: int, bits: int) -> int:
    """Return the address of the element ``offset`` elements of ``bits`` behind ``base``.

    The position within a column goes to the top bits of the address, where the instruction
    descriptor of a block-scaled MMA takes it from.

    >>> hex(tmem_address(0, 5, 8))
    '0x40000001'
    """
    shift = (TMEM_COLUMN_BITS // bits).bit_length() - 1
    inside = (offset & ((1 << shift) - 1)) << (32 - shift)
    return (base + (inside | (offset >> shift))) & _ADDRESS


def _virtual(bits: int, storage_bits: int) -> Layout:
    """(lane, column) of 128 x 16384 -> elements; columns hold ``storage_bits`` per element."""
    return Layout((TMEM_LANES, _VIRTUAL_COLUMNS), (lane_stride(bits), storage_bits // bits))


def _tiled(atom: Layout, rest: Any, step: int, bits: int, storage_bits: int) -> Layout:
    """Repeat ``atom`` (in lanes, then 128 x columns) over ``rest``, over free lanes first."""
    tiles = make_layout(rest)
    tiles = Layout(rest, transform_leaf(lambda d: d * step, tiles.stride))
    layout: Layout = composition(_virtual(bits, storage_bits), tiled_product(atom, tiles))
    return layout


def _mn(shape: Any) -> tuple[int, int, Any]:
    """Return M, N and the rest of ((M, N), rest...)."""
    if tuple_rank(shape) < 1 or tuple_rank(shape[0]) != 2:
        raise LayoutError(f"a fragment in tensor memory has a shape ((M, N), ...), not {shape}")
    return product(shape[0][0]), product(shape[0][1]), shape[1:]


@dataclass(frozen=True)
class TmemFragment:
    """The fragment of an MMA operand in tensor memory.

    ``bits`` are those of a value, ``storage_bits`` those that it takes up: an accumulator of 16
    bits has a whole column. ``blocks`` is the size of the CTA group.
    """

    bits: int
    storage_bits: int
    blocks: int = 1
    allocation: TmemAllocation = TmemAllocation.INTERLEAVED

    @takes_location
    def layout(self, shape: Any) -> Layout:
        """Return the layout of a partitioned operand ((M, N), rest...) of one block.

        M is 64 or 128, with two blocks also 32. Raises LayoutError for any other, and for an
        allocation that the instruction does not have.

        >>> print(TmemFragment(32, 32).layout(((64, 8), 1, 2)))
        (((16,4),8),1,2):(((65536,2097152),1),0,1048576)
        """
        m, n, rest = _mn(shape)
        allowed = (
            (TmemAllocation.INTERLEAVED, TmemAllocation.NON_INTERLEAVED)
            if self.blocks == 1
            else (TmemAllocation.INTERLEAVED, TmemAllocation.DUPLICATED)
        )
        if self.allocation not in allowed:
            raise LayoutError(
                f"an MMA of {self.blocks} block(s) has no {self.allocation} operand in tensor "
                "memory"
            )
        atom, step = _data_path(m, n, self.blocks, self.allocation)
        return _tiled(atom, rest, step, self.bits, self.storage_bits)


def _data_path(m: int, n: int, blocks: int, allocation: TmemAllocation) -> tuple[Layout, int]:
    """Return (row, column) -> lane + 128 column, and the step of further tiles."""
    if m == TMEM_LANES:
        return Layout((m, n), (1, m)), 1
    if blocks == 1 and m == 64:
        step = 1 if allocation is TmemAllocation.INTERLEAVED else 2
        return Layout(((16, 4), n), ((1, 32), 128)), step
    if blocks == 2 and allocation is TmemAllocation.DUPLICATED and m == 64:
        return Layout((128, n), (1, 128)), 1
    if blocks == 2 and allocation is TmemAllocation.INTERLEAVED and m in (32, 64):
        return _split(m, n), 1
    raise LayoutError(
        f"no MMA of {blocks} block(s) has {m} rows of a block in tensor memory ({allocation})"
    )


def _split(m: int, n: int) -> Layout:
    """Return the data path of fewer rows than lanes: the columns of N in 2 or 4 groups of lanes."""
    parts = TMEM_LANES // m
    if n % parts:
        raise LayoutError(f"N of {n} is not {parts} equal parts, one for each {m} lanes")
    return Layout((m, (n // parts, parts)), (1, (128, m)))


@takes_location
def tmem_fragment_ws(shape: Any, bits: int, storage_bits: int = TMEM_COLUMN_BITS) -> Layout:
    """Return the layout of the accumulator ((M, N), rest...) of ``tcgen05.mma.ws``.

    M is 32, 64 or 128 and N 64, 128 or 256; LayoutError for others.
    """
    m, n, rest = _mn(shape)
    if m not in (32, 64, 128) or n not in (64, 128, 256):
        raise LayoutError(f"no weight-stationary MMA has M of {m} and N of {n}")
    atom = Layout((m, n), (1, m)) if m == TMEM_LANES else _split(m, n)
    return _tiled(atom, rest, 1, bits, storage_bits)


@takes_location
def scale_fragment(
    shape: Any, side: str, allocation: TmemAllocation = TmemAllocation.SCALES_4X1, bits: int = 8
) -> Layout:
    """Return the layout of scale factors ((MN, (vector, factors)), rest...) in tensor memory.

    ``side`` is "SFA" or "SFB". 32 rows share a column of 4 factors; each quarter of the lanes has a
    copy. With `SCALES_2X2` the two halves of N of SFB lie in the two halves of the lanes.
    """
    mn, _, rest = _mn(shape)
    vector, factors = shape[0][1]
    in_warp, across = QUARTER, TMEM_LANES * 4
    steps = (0, TMEM_LANES)
    if side == "SFB" and allocation is TmemAllocation.SCALES_2X2:
        groups = mn // 2 // in_warp
        atom = Layout(
            (((in_warp, groups), 2, 2), (vector, factors)),
            (((1, across), 64, in_warp), steps),
        )
    else:
        atom = Layout(
            (((in_warp, mn // in_warp), 4), (vector, factors)),
            (((1, across), in_warp), steps),
        )
    return _tiled(atom, rest, 1, bits, bits)
