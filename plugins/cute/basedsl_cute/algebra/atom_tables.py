"""Thread-value layouts of the hardware's matrix and copy instructions."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Any

from .errors import LayoutError
from .ignored_location import takes_location
from .layout import Layout, make_layout
from .recast import recast_layout

TYPE_BITS = {
    "U1": 1, "S4": 4, "U4": 4, "E2M1": 4, "E3M2": 6, "E2M3": 6, "S8": 8, "U8": 8, "E4M3": 8,
    "E5M2": 8, "F16": 16, "BF16": 16, "TF32": 32, "F32": 32, "S32": 32, "F64": 64, "C64": 128,
    "GC64": 128,
}  # fmt: skip
"""Width of the element types in instruction names; C64 is a complex number of two F64."""

_CPP_BITS = {
    "float": 32, "double": 64, "half_t": 16, "bfloat16_t": 16, "tfloat32_t": 32, "uint1b_t": 1,
    "int4b_t": 4, "uint4b_t": 4, "float_e4m3_t": 8, "float_e5m2_t": 8, "float_e2m1_t": 4,
}  # fmt: skip


@dataclass(frozen=True)
class MmaAtomLayout:
    """The layouts of a matrix instruction: D(M,N) = A(M,K) B(N,K) + C(M,N).

    ``thr_id`` maps the instruction's logical threads to lanes. Each ``tv_layout_X`` maps (thread,
    value) to the column-major index of that operand's tile. ``types`` are the names of the
    element types of D, A and B.
    """

    shape_mnk: tuple[int, int, int]
    thr_id: Layout
    tv_layout_A: Layout
    tv_layout_B: Layout
    tv_layout_C: Layout
    name: str = field(default="", compare=False)
    types: tuple[str, ...] = field(default=(), compare=False)


@dataclass(frozen=True)
class CopyAtomLayout:
    """The layouts of a copy instruction, in bits or, after `in_elements`, in elements.

    The source and destination layouts map (thread, value) to a common numbering; ``ref`` is the
    side whose values are what a tiled copy distributes. ``tmem`` is, of a copy to or from tensor
    memory, value bit -> bit of tensor memory (`tmem_copy`), also in elements.
    """

    thr_id: Layout
    layout_src_tv: Layout
    layout_dst_tv: Layout
    layout_ref_tv: Layout
    name: str = field(default="", compare=False)
    tmem: Layout | None = None

    def in_elements(self, bits: int) -> CopyAtomLayout:
        """Return the same instruction counted in elements of ``bits``."""
        return CopyAtomLayout(
            self.thr_id,
            recast_layout(bits, 1, self.layout_src_tv),
            recast_layout(bits, 1, self.layout_dst_tv),
            recast_layout(bits, 1, self.layout_ref_tv),
            self.name,
            self.tmem,
        )


def _layout(thr: Any, val: Any) -> Layout:
    """Return a TV layout from (shape, stride) of the threads and of the values."""
    return Layout((thr[0], val[0]), (thr[1], val[1]))


def value_modes(*modes: tuple[int, int]) -> tuple[Any, Any]:
    """Value modes (extent, stride) without those of extent 1; a single one is no tuple."""
    kept = [mode for mode in modes if mode[0] != 1]
    if not kept:
        return 1, 0
    if len(kept) == 1:
        return kept[0]
    return tuple(s for s, _ in kept), tuple(d for _, d in kept)


def _warp_operand(rows: int, k: int, bits: int) -> Layout:
    """Return operand A (8 or 16 rows) or B (8) of a warp-level mma.

    Four threads share a row. Each holds a 32-bit register (or one 64-bit element) of neighbouring
    elements along K, then the row 8 below if there is one, then the same again along K.
    """
    packed = max(32 // bits, 1)
    values = value_modes((packed, rows), (rows // 8, 8), (k // (4 * packed), 4 * packed * rows))
    if bits == 4 and not isinstance(values[0], tuple):
        values = ((values[0],), (values[1],))  # as the headers nest it
    return _layout(((4, 8), (packed * rows, 1)), values)


def _warp_accumulator(rows: int) -> Layout:
    """Return the layout of C: four threads share a row of 8, two neighbours each; then 8 below."""
    return _layout(((4, 8), (2 * rows, 1)), value_modes((2, rows), (rows // 8, 8)))


@takes_location
def warp_mma(shape_mnk: tuple[int, int, int], bits: int) -> MmaAtomLayout:
    """Return a warp-level ``mma.sync`` (sm_75 and later) of A and B elements of ``bits``.

    >>> print(warp_mma((16, 8, 16), 16).tv_layout_A)
    ((4,8),(2,2,2)):((32,1),(16,8,128))
    """
    m, n, k = shape_mnk
    if m not in (8, 16) or n != 8 or k % (4 * max(32 // bits, 1)):
        raise LayoutError(f"no warp-level mma of shape {shape_mnk} on {bits}-bit elements")
    return MmaAtomLayout(
        shape_mnk,
        make_layout(32),
        _warp_operand(m, k, bits),
        _warp_operand(n, k, bits),
        _warp_accumulator(m),
    )


@takes_location
def warpgroup_mma(n: int, k: int, a_in_registers: bool = False) -> MmaAtomLayout:
    """Return a ``wgmma`` of shape (64, n, k): 4 warps, each with 16 rows of C.

    Operands in shared memory are seen whole by every thread. A in registers is laid out like C;
    ``k`` covers 256 bits of an operand row, which gives the element width.
    """
    if n % 8 or not 8 <= n <= 256 or k not in (8, 16, 32):
        raise LayoutError(f"no wgmma of shape (64, {n}, {k})")
    packed = k // 8
    threads = (4, 8, 4)
    if a_in_registers:
        values = value_modes((packed, 64), (2, 8), (2, 64 * 4 * packed))
        a = _layout((threads, (64 * packed, 1, 16)), values)
    else:
        a = Layout((128, (64, k)), (0, (1, 64)))
    c = _layout((threads, (128, 1, 16)), ((2, 2, n // 8), (64, 8, 512)))
    b = Layout((128, (n, k)), (0, (1, n)))
    return MmaAtomLayout((64, n, k), make_layout(128), a, b, c)


def _volta(a_major: str, b_major: str, accumulator: str) -> MmaAtomLayout:
    """sm_70's 8x8x4 mma of one quad pair: lanes 0-3 and 16-19."""
    row = Layout((8, 4), (1, 8))
    column = Layout(((4, 2), 4), ((8, 4), 1))
    narrow = Layout((8, 8), (1, 8))
    wide = Layout(((2, 2, 2), (2, 2, 2)), ((1, 16, 4), (8, 2, 32)))
    return MmaAtomLayout(
        (8, 8, 4),
        Layout((4, 2), (1, 16)),
        row if a_major == "T" else column,
        row if b_major == "N" else column,
        narrow if accumulator == "F16" else wide,
    )


@takes_location
def thread_mma(k: int = 1) -> MmaAtomLayout:
    """Return a multiply-add (``k`` products) of one thread: shape (1, 1, k)."""
    one, row = make_layout((1, 1)), make_layout((1, k))
    return MmaAtomLayout((1, 1, k), make_layout(1), row, row, one)


_TYPES = "|".join(sorted(TYPE_BITS, key=len, reverse=True))
_WARP = re.compile(
    rf"SM(\d+)_(\d+)x(\d+)x(\d+)_({_TYPES})({_TYPES})({_TYPES})({_TYPES})_([TN])([TN])"
    r"(?:_SATURATE|_XORPOPC|_ANDPOPC)?"
)
_WARPGROUP = re.compile(
    rf"SM90(?:::GMMA::MMA)?_64x(\d+)x(\d+)_({_TYPES})({_TYPES})({_TYPES})_(SS|RS)"
    r"(?:_TN|<.*>)?(?:_SATURATE)?"
)
_BLACKWELL_WARP = re.compile(r"SM120(?:::BLOCKSCALED::SM120)?_16x8x(32|64)_TN(?:_VS)?(?:<.*>)?")
_THREAD = {"SM61_DP4A": 4, "SM61_DP2A": 2}


@takes_location
def mma_atom(name: str) -> MmaAtomLayout:
    """Return the instruction of that name, for example ``"SM80_16x8x16_F32F16F16F32_TN"``.

    Knows sm_61 dot products, sm_70 to sm_90 and sm_120 warp-level mma, sm_90 wgmma
    (``"SM90::GMMA::MMA_64x128x16_F32F16F16_SS<K,K>"``) and ``"UniversalFMA<float>"``. Raises
    LayoutError for any other name.
    """
    atom, types = _find_mma(name)
    return MmaAtomLayout(
        atom.shape_mnk,
        atom.thr_id,
        atom.tv_layout_A,
        atom.tv_layout_B,
        atom.tv_layout_C,
        name,
        types,
    )


def _find_mma(name: str) -> tuple[MmaAtomLayout, tuple[str, ...]]:
    if name in _THREAD:
        return thread_mma(_THREAD[name]), ("S32", "S8", "S8")
    if name.startswith("UniversalFMA"):
        return thread_mma(), ()
    match = _WARP.fullmatch(name)
    if match:
        d, a, b = match.group(5, 6, 7)
        if match[1] == "70":
            return _volta(match[9], match[10], d), (d, a, b)
        m, n, k = (int(match[i]) for i in (2, 3, 4))
        return warp_mma((m, n, k), max(TYPE_BITS[a], TYPE_BITS[b])), (d, a, b)
    match = _BLACKWELL_WARP.fullmatch(name)
    if match:
        k = int(match[1])
        return warp_mma((16, 8, k), 256 // k), ()
    match = _WARPGROUP.fullmatch(name)
    if match:
        n, k = int(match[1]), int(match[2])
        return warpgroup_mma(n, k, match[6] == "RS"), match.group(3, 4, 5)
    raise LayoutError(f"unknown mma instruction {name!r}")


@takes_location
def thread_copy(bits: int) -> CopyAtomLayout:
    """Return a load or store of ``bits`` by one thread: universal copies and cp.async."""
    one = Layout((1, bits), (0, 1))
    return CopyAtomLayout(make_layout(1), one, one, one)


@takes_location
def matrix_copy(matrices: int, transpose: bool = False, store: bool = False) -> CopyAtomLayout:
    """Return ``ldmatrix`` or ``stmatrix`` of 1, 2 or 4 matrices of 8x8 16-bit elements, in bits.

    In shared memory, thread i addresses row i % 8 (128 bits) of matrix i / 8; with fewer than 4
    matrices the upper threads repeat. In registers, four threads share a row, 32 bits each, or
    with ``transpose`` a column.
    """
    if matrices not in (1, 2, 4):
        raise LayoutError(f"ldmatrix and stmatrix move 1, 2 or 4 matrices, not {matrices}")
    rows = 8 * matrices
    thr = (32, 128) if matrices == 4 else ((rows, 32 // rows), (128, 0))
    memory = _layout(thr, (128, 1))
    if transpose:
        registers = _layout(((4, 8), (256, 16)), value_modes((16, 1), (2, 128), (matrices, 1024)))
    else:
        registers = _layout((32, 32), value_modes((32, 1), (matrices, 1024)))
    source, target = (registers, memory) if store else (memory, registers)
    return CopyAtomLayout(make_layout(32), source, target, registers)


@takes_location
def byte_matrix_copy(matrices: int, store: bool = False) -> CopyAtomLayout:
    """Return the transposing 8-bit ``ldmatrix`` (m16n16, 1 or 2 matrices) or ``stmatrix`` (m16n8,
    1, 2 or 4), sm_100 and later, in bits. Memory and registers as in `matrix_copy`.
    """
    if matrices not in ((1, 2, 4) if store else (1, 2)):
        raise LayoutError(f"no transposing 8-bit matrix copy of {matrices} matrices")
    repeats = matrices if store else 2 * matrices
    values = value_modes((8, 1), (2, 128), (2, 64), (repeats, 1024))
    registers = _layout(((4, 8), (256, 8)), values)
    if store:
        memory = matrix_copy(matrices).layout_src_tv
        return CopyAtomLayout(make_layout(32), registers, memory, registers)
    upper = 2048 if matrices == 2 else 0
    memory = _layout(((2, 2, 4, 2), (128, 1024, 256, upper)), (128, 1))
    return CopyAtomLayout(make_layout(32), memory, registers, registers)


_BYTE_MATRIX = re.compile(r"SM100_U8x(4|8|16)_(LDSM|STSM)_T")
_UNPACKING = re.compile(r"SM100_SU[46]_DU8x16_x([124])_LDSM_N")
_MATRIX = re.compile(r"SM(75|90)_U(16|32)x([1248])_(LDSM|STSM)_([NT])")
_ONE_THREAD = re.compile(
    r"(?:UniversalCopy|SM80_CP_ASYNC_CACHE(?:ALWAYS|GLOBAL)(?:_ZFILL)?)<(?:\w+::)*(\w+)(?:,.*)?>"
)
_AUTOVECTORIZING = {"AutoVectorizingCopy": 128, "DefaultCopy": 8}
_ASSUMED = re.compile(r"AutoVectorizingCopyWithAssumedAlignment<(\d+)>")
_SHUFFLES = {
    "SM75_U32x1_MOVM_T": (Layout((32, 32), (32, 1)), Layout((32, 32), (32, 1))),
    "SM50_Shuffle_U32_2x2Trans_XOR1": (
        Layout((32, 64), (64, 1)),
        Layout(((2, 16), (32, 2)), ((32, 128), (1, 64))),
    ),
    "SM50_Shuffle_U32_2x2Trans_XOR4": (
        Layout((32, 64), (64, 1)),
        Layout(((4, 2, 4), (32, 2)), ((64, 32, 512), (1, 256))),
    ),
}


def _bits_of_cpp_type(name: str) -> int:
    known = _CPP_BITS.get(name)
    sized = re.fullmatch(r"u?int(\d+)_t", name)
    if known is None and sized is None:
        raise LayoutError(f"unknown element type {name!r}")
    return known if known is not None else int(sized[1])  # type: ignore[index]


@takes_location
def copy_atom(name: str, bits: int | None = None) -> CopyAtomLayout:
    """Return the copy instruction of that name, in elements of ``bits`` (default: in bits).

    Knows ldmatrix (``"SM75_U32x4_LDSM_N"``) and stmatrix (``"SM90_U16x8_STSM_T"``) with their
    8-bit forms (``"SM100_U8x16_LDSM_T"``), cp.async
    (``"SM80_CP_ASYNC_CACHEGLOBAL<uint128_t>"``), ``"UniversalCopy<float>"`` and the register
    transposes. Raises LayoutError for any other name.

    >>> print(copy_atom("SM75_U32x4_LDSM_N", 16).layout_dst_tv)
    (32,(2,4)):(2,(1,64))
    """
    atom = _find_copy(name)
    atom = CopyAtomLayout(
        atom.thr_id, atom.layout_src_tv, atom.layout_dst_tv, atom.layout_ref_tv, name
    )
    return atom if bits is None else atom.in_elements(bits)


def _find_copy(name: str) -> CopyAtomLayout:
    match = _MATRIX.fullmatch(name)
    if match:
        transpose = match[5] == "T"
        matrices = int(match[3]) // (2 if transpose else 1)
        return matrix_copy(matrices, transpose, store=match[4] == "STSM")
    match = _BYTE_MATRIX.fullmatch(name)
    if match:
        store = match[2] == "STSM"
        return byte_matrix_copy(int(match[1]) // (4 if store else 8), store)
    match = _UNPACKING.fullmatch(name)
    if match:
        return matrix_copy(int(match[1]))
    match = _ONE_THREAD.fullmatch(name)
    if match:
        return thread_copy(_bits_of_cpp_type(match[1]))
    match = _ASSUMED.fullmatch(name)
    if match:
        return thread_copy(int(match[1]))
    if name in _AUTOVECTORIZING:
        return thread_copy(_AUTOVECTORIZING[name])
    if name in _SHUFFLES:
        source, target = _SHUFFLES[name]
        return CopyAtomLayout(make_layout(32), source, target, source)
    raise LayoutError(f"unknown copy instruction {name!r}")
