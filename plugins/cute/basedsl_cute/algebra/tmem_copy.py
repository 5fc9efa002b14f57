"""Copies to and from tensor memory: `tcgen05.ld`, `tcgen05.st` and `tcgen05.cp`.

Which lane and column each thread's registers hold follows the figures of the PTX ISA,
"Access restrictions" and "tcgen05.cp". Layouts of atoms are in bits; a value of the memory side
is the bit ``atom.tmem(i)`` of tensor memory, where one lane is `lane_stride(1)`.
"""

from __future__ import annotations

import re
from dataclasses import replace

from .atom_tables import CopyAtomLayout, thread_copy, value_modes
from .compose import coalesce, composition, filter
from .errors import LayoutError
from .ignored_location import takes_location
from .int_tuple import product, product_each
from .inverse import left_inverse
from .layout import Layout, concatenate, make_layout, size
from .recast import upcast
from .tmem import QUARTER, TMEM_COLUMN_BITS, lane_stride
from .tv_copy import CopyTiling, make_cotiled_copy

TMEM_SHAPES = {"32x32b": 128, "16x256b": 32, "16x128b": 64, "16x64b": 128, "16x32bx2": 128}
"""Shapes of tcgen05.ld and st (lanes x bits), with the most repetitions of each."""

_WARPS = 4


@takes_location
def tmem_copy_atom(
    shape: str, repeat: int, store: bool = False, packed: bool = False
) -> CopyAtomLayout:
    """Return ``tcgen05.ld`` or, with ``store``, ``tcgen05.st`` of a warp, in bits.

    ``shape`` is one of `TMEM_SHAPES`, ``repeat`` the repetitions, a power of two. ``packed``: each
    column holds 16 bits, and a register two of them (``.pack::16b``, ``.unpack::16b``). Raises
    LayoutError for what there is not.
    """
    most = TMEM_SHAPES.get(shape)
    if most is None or repeat not in (1 << i for i in range(most.bit_length())):
        raise LayoutError(f"no tcgen05.ld or st of shape {shape} with {repeat} repetitions")
    lanes = int(shape.partition("x")[0])
    row = {"32x32b": 32, "16x256b": 256, "16x128b": 128}.get(shape, 64) * repeat
    registers = _registers(shape, repeat, row)
    memory = Layout((QUARTER, lanes * row), (0, 1))
    lane = lane_stride(1)
    if packed:
        tmem = Layout(((16, row // 16), lanes), ((1, TMEM_COLUMN_BITS), lane))
    else:
        tmem = Layout((row, lanes), (1, lane))
    source, target = (registers, memory) if store else (memory, registers)
    return CopyAtomLayout(make_layout(QUARTER), source, target, memory, tmem=tmem)


def _registers(shape: str, repeat: int, row: int) -> Layout:
    """Return (thread, register bit) -> bit of the memory side, whose rows are ``row`` bits."""
    if shape == "32x32b":
        return Layout((32, row), (row, 1))
    if shape == "16x32bx2":
        return Layout(((16, 2), row // 2), ((row, row // 2), 1))
    if shape == "16x64b":
        values = value_modes((32, 1), (repeat, 64))
        return Layout(((2, 2, 8), values[0]), ((8 * row, 32, row), values[1]))
    chunk = {"16x256b": 64, "16x128b": 32}[shape]
    values = value_modes((chunk, 1), (2, 8 * row), (repeat, 4 * chunk))
    return Layout(((4, 8), values[0]), ((chunk, row), values[1]))


# (shape, stride) of the bits of one instruction in tensor memory, strides of lanes in lanes: the
# lanes, the bits of a lane, and what is repeated elsewhere.
_CP_SHAPES = {
    "128x256b": ((128, 256), ("1L", 1)),
    "128x128b": ((128, 128), ("1L", 1)),
    "4x256b": ((128, 256), ("1L", 1)),
    "4x32x128b": ((32, 128, 4), ("1L", 1, "32L")),
    "2x64x128b_0213": ((64, 128, 2), ("1L", 1, "64L")),
    "2x64x128b_0123": ((32, 128, 2, 2), ("1L", 1, "64L", "32L")),
}


@takes_location
def tmem_cp_atom(shape: str, blocks: int = 1) -> CopyAtomLayout:
    """Return ``tcgen05.cp`` from shared to tensor memory, in bits; its "threads" are ``blocks``.

    Shapes: 128x256b, 128x128b, 4x256b (the last 4 lanes of each quarter), 4x32x128b (32 rows to all
    quarters), 2x64x128b_0213 and 2x64x128b_0123 (64 rows twice). LayoutError for others.
    """
    if shape not in _CP_SHAPES:
        raise LayoutError(f"no tcgen05.cp of shape {shape}; there are {', '.join(_CP_SHAPES)}")
    extents, strides = _CP_SHAPES[shape]
    lane = lane_stride(1)
    places = tuple(d if isinstance(d, int) else int(d[:-1]) * lane for d in strides)
    tmem = Layout(extents, places)
    whole = Layout((blocks, product(extents)), (0, 1))
    if shape == "4x256b":
        source = whole = Layout((blocks, (4, 256)), (0, (QUARTER, 128)))
    elif len(extents) == 2:
        source = whole
    else:
        rows, bits, *copies = extents
        repeated = (rows * bits, 0) if len(copies) == 2 else (0,)
        source = Layout((blocks, extents), (0, (1, rows, *repeated)))
    return CopyAtomLayout(make_layout(blocks), source, whole, whole, tmem=tmem)


_LD_ST = re.compile(r"SM100_TMEM_(LOAD|STORE)_(16|32)dp(\d+)b(\d+)x(_16b)?")
_CP = re.compile(r"SM100_UTCCP_(\w+?)_([12])cta")
_CP_NAMES = {
    "128dp256bit": "128x256b", "128dp128bit": "128x128b", "4dp256bit": "4x256b",
    "4x32dp128bit": "4x32x128b", "2x64dp128bitlw0213": "2x64x128b_0213",
    "2x64dp128bitlw0123": "2x64x128b_0123",
}  # fmt: skip


@takes_location
def blackwell_copy_atom(name: str) -> CopyAtomLayout:
    """Return the copy instruction of sm_100 that CuTe's C++ headers call ``name``, in bits.

    Knows tcgen05.ld and st (``"SM100_TMEM_LOAD_16dp256b4x_16b"``), tcgen05.cp
    (``"SM100_UTCCP_4x32dp128bit_1cta"``) and accesses of 256 bits to global memory
    (``"SM100_LOAD_256bit_CACHE_NOALLOCATION"``). Raises LayoutError for any other name.
    """
    match = _LD_ST.fullmatch(name)
    if match:
        shape = f"{match[2]}x{match[3]}b" + ("x2" if match.group(2, 3) == ("16", "32") else "")
        atom = tmem_copy_atom(shape, int(match[4]), match[1] == "STORE", match[5] is not None)
        return replace(atom, name=name)
    match = _CP.fullmatch(name)
    if match and match[1] in _CP_NAMES:
        return replace(tmem_cp_atom(_CP_NAMES[match[1]], int(match[2])), name=name)
    if re.fullmatch(r"SM100_(LOAD|STORE)_256bit_CACHE_NOALLOCATION", name):
        return replace(thread_copy(256), name=name)
    raise LayoutError(f"unknown copy instruction {name!r}")


def _positions(atom: CopyAtomLayout, bits: int) -> Layout:
    if atom.tmem is None:
        raise LayoutError(f"the copy {atom.name} does not touch tensor memory")
    layout: Layout = coalesce(upcast(atom.tmem, bits))
    return layout


@takes_location
def make_tmem_copy(atom: CopyAtomLayout, bits: int, tmem_layout: Layout) -> CopyTiling:
    """Return the tiled copy of a tile in tensor memory by four warps, each in its quarter of lanes.

    ``atom`` is tcgen05.ld or st in bits; ``tmem_layout`` maps (M, N) to elements of ``bits``.
    Raises LayoutError if the instruction's lanes and columns are not in the tile.

    >>> copy = make_tmem_copy(tmem_copy_atom("32x32b", 8), 32, Layout((128, 64), (65536, 1)))
    >>> print(copy.tiler_mn, copy.size)
    ((4,32):(32,1), 8:1) 128
    """
    threads = Layout((QUARTER, _WARPS), (0, QUARTER * lane_stride(bits)))
    tv = concatenate(threads, _positions(atom, bits))
    return make_cotiled_copy(atom.in_elements(bits), tv, tmem_layout)


@takes_location
def make_cp_copy(atom: CopyAtomLayout, bits: int, tmem_layout: Layout) -> CopyTiling:
    """Return the tiled copy of ``tcgen05.cp`` into a tile in tensor memory.

    Its "threads" are the blocks of the CTA group, which copy the same.
    """
    blocks = Layout(size(atom.thr_id), 0)
    tv = concatenate(blocks, _positions(atom, bits))
    return make_cotiled_copy(atom.in_elements(bits), tv, tmem_layout)


@takes_location
def tmem_warp_partition(bits: int, tmem_layout: Layout) -> tuple[tuple[Layout, ...], Layout]:
    """Return (tiler, warp -> tile) of the four warps' quarters of a tile in tensor memory.

    A tensor divided by the tiler has the first element of each warp's part in its tile.
    """
    warps = Layout(_WARPS, QUARTER * lane_stride(bits))
    inverse = concatenate(left_inverse(tmem_layout), Layout(1, 0))
    coordinates = composition(inverse, warps)
    extents = product_each(tmem_layout.shape)
    tiler = []
    for mode in range(len(extents)):
        unit = tuple(int(i == mode) for i in range(len(extents)))
        tiler.append(filter(composition(Layout(extents, unit), coordinates)))
    tile = composition(make_layout(extents), tuple(tiler))
    return tuple(tiler), composition(left_inverse(tile), coordinates)


@takes_location
def widest_repeat(shape: str, bits: int) -> int:
    """Return the most repetitions of a `TMEM_SHAPES` whose columns divide a row of ``bits``; 0 if
    not even one does. ``bits`` are those of the values.
    """
    each = {"32x32b": 32, "16x256b": 256, "16x128b": 128}.get(shape, 64)
    counts = (1 << i for i in reversed(range(TMEM_SHAPES[shape].bit_length())))
    return next((n for n in counts if bits % (n * each) == 0), 0)
