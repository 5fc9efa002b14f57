"""Operands of tcgen05.mma: instruction descriptors, matrices in shared and tensor memory, element
types (PTX ISA, "Matrix descriptors", "Data path layout organization" and
"Scale factors").

A row of an operand is 32 bytes for one instruction, whatever its elements are; of B 64 bytes where
A is sparse. Of kinds f8f6f4 and
mxf8f6f4, 16 elements of 4 or 6 bits take 16 bytes in shared memory, packed at their beginning; in
tensor memory each has a byte, 4 bits from bit 2 on, 6 from bit 0 on. The kinds mxf4 and mxf4nvf4
pack two elements into a byte.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import ml_dtypes
import numpy as np

from basedsl_cute.hardware.targets import WARP_SIZE
from basedsl_cute.hardware.tensor_memory import (
    KINDS,
    LONG_K,
    TMEM_LANES,
    can_transpose,
    refused_shape,
    refused_ws_shape,
)
from basedsl_cute.sim.errors import SimulationError, UninitializedReadError
from basedsl_cute.sim.machine import tensor_owners, tensor_races
from basedsl_cute.sim.machine.operand_layout import check_layout
from basedsl_cute.sim.machine.state import Block, Group
from basedsl_cute.sim.machine.tensor_memory import check_allocated, lane_and_column
from basedsl_cute.sim.site import Site

_DTYPES: dict[str, Any] = {
    "f16": np.float16, "bf16": ml_dtypes.bfloat16, "tf32": np.float32, "s8": np.int8,
    "u8": np.uint8, "e4m3": ml_dtypes.float8_e4m3fn, "e5m2": ml_dtypes.float8_e5m2,
}  # fmt: skip
_NARROW: dict[str, Any] = {
    "e2m3": ml_dtypes.float6_e2m3fn, "e3m2": ml_dtypes.float6_e3m2fn,
    "e2m1": ml_dtypes.float4_e2m1fn,
}  # fmt: skip
_SCALES: dict[str, Any] = {"ue8m0": ml_dtypes.float8_e8m0fnu, "ue4m3": ml_dtypes.float8_e4m3fn}
_ACCUMULATORS = {0: np.float16, 1: np.float32, 2: np.int32}
# The descriptor's swizzling mode -> (bits, base, shift) of the byte swizzle, rows that it covers.
_SWIZZLES = {0: (0, 4, 3), 1: (2, 5, 2), 2: (3, 4, 3), 4: (2, 4, 3), 6: (1, 4, 3)}
_OF_TMA = (0, 6, 4, 2, 1)  # by the swizzle of a tensor map
_NAMES = {0: "none", 1: "128B_BASE32B", 2: "128B", 4: "64B", 6: "32B"}
ROW_BYTES = 32
ROW_COLUMNS = 8  # of 32 bits, in tensor memory


@dataclass(frozen=True)
class InstructionDescriptor:
    """The fields of an instruction descriptor of a kind over 1 or 2 `blocks`; pairs are for A and
    B. `scale` is the type of scale factors, of which each scales `vector` elements.
    """

    kind: str
    blocks: int
    m: int
    n: int
    k: int
    types: tuple[str, str]
    mn_major: tuple[bool, bool]
    negated: tuple[bool, bool]
    saturates: bool
    d: Any  # NumPy dtype
    scale: str | None = None
    vector: int = 0
    scale_ids: tuple[int, int] = (0, 0)
    is_ws: bool = False
    is_sparse: bool = False
    selector: int = 0  # of the column of metadata
    is_long: bool = False  # K = 96

    @property
    def rows(self) -> tuple[int, int]:
        """The rows of A and of B that a block has."""
        return self.m // self.blocks, self.n // self.blocks

    @property
    def row_bytes(self) -> tuple[int, int]:
        """The bytes of a row of A and of B."""
        if self.is_long:
            return LONG_K // 2, LONG_K // 2
        return ROW_BYTES, ROW_BYTES * (1 + self.is_sparse)

    @property
    def factors(self) -> int:
        """The scale factors of a row: a sparse A has one for `vector` of its elements, B for twice
        as many.
        """
        return self.k // self.vector // (1 + self.is_sparse)


@functools.lru_cache(maxsize=256)
def decode(
    kind: str, bits: int, blocks: int = 1, vector: int = 0, is_ws: bool = False
) -> InstructionDescriptor:
    """Read an instruction descriptor; `vector` elements share a scale factor, `is_ws` is
    tcgen05.mma.ws. Raises ValueError for one that the kind does not have.
    """
    known = KINDS[kind]
    names = {code: name for name, code in known.formats.items()}
    codes = bits >> 7 & 7, bits >> 10 & 7
    types = tuple(names.get(code, "") for code in codes)
    if any(name not in _DTYPES and name not in _NARROW for name in types):
        raise ValueError(f"there are no elements of format {codes[0]} and {codes[1]}")
    m, n = (bits >> 24 & 31) << 4, (bits >> 17 & 63) << 3
    is_long = known.is_block_scaled and bool(bits >> 31)
    if is_ws:
        refused = refused_ws_shape(kind, m, n)
    else:
        refused = refused_shape(kind, m, n, blocks, is_long=is_long)
    if refused is not None:
        raise ValueError(refused)
    is_sparse, selector = bool(bits >> 2 & 1), bits & 3
    if is_sparse:
        _check_sparse(kind, m, blocks, selector, is_ws)
    elif selector:
        raise ValueError(f"the sparsity selector is {selector} of a dense A")
    negated, mn_major = ((bool(bits >> at & 1), bool(bits >> at + 1 & 1)) for at in (13, 15))
    if any(mn_major[i] and not can_transpose(types[i]) for i in (0, 1)):
        raise ValueError(f"an operand of {' and '.join(types)} is MN-major")
    if is_long and is_sparse:
        raise ValueError(f"A is dense with K = {LONG_K}")
    k = LONG_K if is_long else known.k * (1 + is_sparse)
    common = (kind, blocks, m, n, k, (types[0], types[1]), mn_major, negated)
    sparse: dict[str, Any] = {"is_sparse": is_sparse, "selector": selector}
    if not known.is_block_scaled:
        if bits >> 30:
            raise ValueError("shifts of B are not simulated")
        saturates = bool(bits >> 3 & 1)
        if saturates and not known.can_saturate:
            raise ValueError("floats do not saturate")
        dtype = _ACCUMULATORS[bits >> 4 & 3]
        return InstructionDescriptor(*common, saturates, dtype, is_ws=is_ws, **sparse)
    scale = "ue8m0" if bits >> 23 & 1 else "ue4m3"
    if vector not in known.scales.get(scale, ()):
        raise ValueError(f"no factors of {scale} for {vector} elements each")
    ids = bits >> 29 & 3, bits >> 4 & 3
    return InstructionDescriptor(
        *common, False, np.float32, scale, vector, ids, is_long=is_long, **sparse
    )


def _check_sparse(kind: str, m: int, blocks: int, selector: int, is_ws: bool) -> None:
    """ValueError for a sparse A that is not simulated: the layouts of metadata of 64 rows a block
    are in figures of the PTX ISA only.
    """
    if is_ws or m // blocks != TMEM_LANES:
        raise ValueError(f"a sparse A is simulated with {TMEM_LANES} rows a block, without .ws")
    if selector and kind not in ("f16", "tf32"):
        raise ValueError(f"the sparsity selector of kind {kind} is 0, not {selector}")


# Accumulators -------------------------------------------------------------------------------------


@functools.cache
def accumulator_places(m: int, n: int, blocks: int, is_ws: bool) -> tuple[Any, Any]:
    """Lane and column, from the address on, of each element of a block's part of D, `(rows, n)`."""
    row, column = np.indices((m // blocks, n))
    if is_ws:  # the columns of D in as many groups of lanes as M leaves
        each = n * m // TMEM_LANES
        return row + m * (column // each), column % each
    if blocks == 2 and m == 128:
        return row + 64 * (column >= n // 2), column % (n // 2)
    if m // blocks == TMEM_LANES:
        return row, column
    return row // 16 * 32 + row % 16, column


# Elements -----------------------------------------------------------------------------------------


def wide(what: InstructionDescriptor, which: int, raw: Any, in_tmem: bool = False) -> Any:
    """An operand's elements, `(rows, k)`, of its bytes, `(rows, 32)`: float64, which holds them,
    their products and products with scale factors exactly.
    """
    kind = what.types[which]
    if kind in _NARROW:
        values = _NARROW_VALUES[kind][_codes(what, kind, raw, in_tmem)]
    else:
        values = np.ascontiguousarray(raw).view(_DTYPES[kind])
        if kind == "tf32":  # the hardware does not read the low 13 bits
            values = (values.view(np.uint32) & np.uint32(0xFFFFE000)).view(np.float32)
        values = values.astype(np.float64)
    return -values if what.negated[which] else values


def _codes(what: InstructionDescriptor, kind: str, raw: Any, in_tmem: bool) -> Any:
    """The bits of elements of 4 or 6 bits."""
    raw = np.ascontiguousarray(raw)
    if what.kind in ("mxf4", "mxf4nvf4"):
        return np.stack([raw & 15, raw >> 4], -1).reshape(len(raw), -1)
    if in_tmem:
        return raw >> 2 & 15 if kind == "e2m1" else raw & 63
    chunks = raw.reshape(len(raw), -1, 16)
    return unpack_codes(chunks, 4 if kind == "e2m1" else 6).reshape(len(raw), -1)


def unpack_codes(chunks: Any, bits: int) -> Any:
    """The 16 elements of `bits` that lie at the beginning of each 16 bytes, `(..., 16)`."""
    stream = np.unpackbits(chunks, axis=-1, bitorder="little")[..., : 16 * bits]
    weights = 1 << np.arange(bits, dtype=np.uint8)
    codes = (stream.reshape(*stream.shape[:-1], 16, bits) * weights).sum(-1)
    return codes.astype(np.uint8)


_NARROW_VALUES = {
    name: np.arange(64 if name != "e2m1" else 16, dtype=np.uint8).view(dtype).astype(np.float64)
    for name, dtype in _NARROW.items()
}


# Operands -----------------------------------------------------------------------------------------


def tmem_operand(
    g: Group, what: InstructionDescriptor, block: Block, address: int, site: Site
) -> Callable[[], Any]:
    """A in tensor memory of a block: a call that reads its bytes, `(rows, 32)`."""
    tmem = block.tensor_memory
    first_lane, first = lane_and_column(address)
    check_allocated(g, range(first, first + ROW_COLUMNS), "tcgen05.mma reads", site, block)
    columns = np.arange(first, first + ROW_COLUMNS)
    rows = np.arange(what.m // what.blocks)
    copies = [rows]
    if (what.blocks, what.m) == (1, 64):
        copies = [rows // 16 * 32 + rows % 16]
    elif (what.blocks, what.m) == (2, 128):
        copies = [rows, rows + 64]  # both halves of the lanes have the 64 rows
    places = [np.ix_(lanes + first_lane, columns) for lanes in copies]
    for lanes, across in places:
        tensor_races.begin_read(g, block, tensor_races.words_at(lanes, across), site)

    def read() -> Any:
        if not all(tmem.written[place].all() for place in places):
            raise UninitializedReadError(
                "operand A of a tcgen05.mma has tensor memory that nobody has written",
                site,
                hint="cute.arch.fence_view_async_tmem_store() waits for stores",
            )
        for place in places:
            # A sum of 32-bit floats may be an operand as it is.
            tensor_owners.read(g, block, place, "operand A", site, whole=what.kind == "tf32")
        found = [np.ascontiguousarray(tmem.words[place]).view(np.uint8) for place in places]
        if any((found[0] != other).any() for other in found[1:]):
            raise SimulationError(
                "operand A of a tcgen05.mma of 64 rows a block differs in the two halves of the "
                "lanes",
                site,
                hint="store it to lanes 0 to 63 and to 64 to 127",
            )
        return found[0]

    return read


def smem_operand(
    g: Group, what: InstructionDescriptor, block: Block, which: int, descriptor: int, site: Site
) -> tuple[Callable[[], Any], Any]:
    """An operand in a block's shared memory: a call that reads its bytes, `(rows, 32)`, and their
    offsets there.
    """
    kind = what.types[which]
    size = np.dtype(_DTYPES[kind]).itemsize if kind in _DTYPES else 1
    rows, number = what.rows[which], descriptor & 0xFFFF_FFFF_FFFF_FFFF
    letter, shared = "AB"[which], block.shared
    if number >> 46 & 3 != 1:
        raise SimulationError(
            f"the descriptor {number:#018x} of operand {letter} is none of tcgen05: bits 46 and 47 "
            "are 1",
            site,
        )
    if number >> 61 not in _SWIZZLES:
        raise SimulationError(
            f"the descriptor {number:#018x} of operand {letter} has the swizzle {number >> 61}, "
            "which there is not",
            site,
        )
    if what.is_long and number >> 61 != 2:
        raise SimulationError(
            f"operand {letter} of K = {LONG_K} has the swizzle {_NAMES[number >> 61]}: it takes "
            "128B",
            site,
        )
    k = what.row_bytes[which] // size
    offset = operand_addresses(number, not what.mn_major[which], rows, k, size) - shared.base
    if int(offset.min()) < 0 or int(offset.max()) + size > shared.size:
        raise SimulationError(
            f"operand {letter} of a tcgen05.mma reaches beyond the block's shared memory "
            f"(descriptor {number:#018x})",
            site,
        )
    index = offset // size
    unsigned = np.dtype(f"u{size}")

    def read() -> Any:
        _check_swizzle(block, number, letter, site)
        check_layout(block, offset, size, not what.mn_major[which], letter, site)
        if shared.written is not None:
            unwritten = shared.written_view(size)[index] != -1
            if kind in _NARROW and what.kind in ("f8f6f4", "mxf8f6f4"):
                # Nobody reads the rest of 16 bytes.
                unwritten = unwritten & _is_packed(kind, k * size)
            if unwritten.any():
                bad = int(offset[unwritten].min())
                name, start, _ = g.shared_variable(bad + shared.base)
                raise UninitializedReadError(
                    f"operand {letter} of a tcgen05.mma has shared memory that nobody has written",
                    site,
                    notes=((f"byte offset {bad + shared.base - start} of `{name}`", None),),
                    hint="wait for the copy that fills it",
                )
        return np.ascontiguousarray(shared.view(unsigned)[index]).view(np.uint8)

    return read, (offset[..., None] + np.arange(size)).reshape(-1, 1)


def _check_swizzle(block: Block, descriptor: int, letter: str, site: Site) -> None:
    """Raise SimulationError for an operand that TMA loaded in another swizzle than the descriptor
    says, and nobody has changed since.
    """
    start = ((descriptor & 0x3FFF) << 4) - block.shared.base
    given = descriptor >> 61
    for at, box in block.boxes.items():
        mode = _OF_TMA[box.swizzle]
        if mode == given or not at <= start < at + box.place.size:
            continue
        if (block.shared.raw[box.place] == box.data).all():
            raise SimulationError(
                f"operand {letter} of a tcgen05.mma has the swizzle {_NAMES[mode]} from TMA, and "
                f"{_NAMES[given]} in its descriptor",
                site,
                hint="make the fragment of the tensor that TMA loads: "
                f"tiled_mma.make_fragment_{letter}(s{letter})",
            )


def _is_packed(kind: str, row_bytes: int) -> Any:
    """True for the bytes of a row, `(1, bytes)`, that have elements of 4 or 6 bits."""
    return (np.arange(row_bytes) % 16 < (8 if kind == "e2m1" else 12))[None, :]


@functools.lru_cache(maxsize=1024)
def operand_addresses(descriptor: int, is_k: bool, rows: int, k: int, size: int) -> Any:
    """The shared address of each element of an operand, `(rows, k)`, as its descriptor says.

    A row of 48 bytes (K = 96) that reaches the end of its swizzle goes on at the leading
    dimension's offset, or with bit 52 its address.
    """
    start = (descriptor & 0x3FFF) << 4
    leading = (descriptor >> 16 & 0x3FFF) << 4
    stride = (descriptor >> 32 & 0x3FFF) << 4
    mode = descriptor >> 61
    bits, base, shift = _SWIZZLES[mode]
    width = 128 if mode == 1 else 16 << bits
    mn = np.arange(rows, dtype=np.int64)[:, None]
    kk = np.arange(k, dtype=np.int64)[None, :]
    if is_k:
        byte = kk * size
        linear = mn % 8 * width + mn // 8 * stride
        if k * size == LONG_K // 2:  # a row may go on in the next buffer
            inside = start % width
            at_once = 0 if descriptor >> 52 & 1 else start - inside
            following = at_once + leading + inside + byte - width
            byte = np.where(inside + byte < width, byte, following - start)
        linear = linear + (byte // 16 * leading + byte % 16 if mode == 0 else byte)
    else:
        byte, together = mn * size, 4 if mode == 1 else 8
        if mode == 0:
            linear = byte // 16 * stride + byte % 16 + kk // 8 * leading + kk % 8 * 16
        else:
            linear = byte % width + byte // width * leading
            linear = linear + kk % together * width + kk // together * stride
    address = start + linear
    return address ^ ((address >> base + shift & ((1 << bits) - 1)) << base)


# Scale factors ------------------------------------------------------------------------------------


def scale_factors(
    g: Group, what: InstructionDescriptor, block: Block, which: int, address: int, site: Site
) -> Callable[[], Any]:
    """The factors of A or B in a block's tensor memory: a call that reads them, float64 of shape
    `(rows, factors)`. All N rows of B have theirs in each block of a pair.

    Row r is in lane r % 32 of each quarter, column r / 32; factor j is the byte at the descriptor's
    id plus j. Those of K = 96 may go on in the columns behind the 4 of each 128 rows. In an MMA of
    128 rows over two blocks, each half of the lanes has those of the columns that it computes.
    """
    letter, tmem = "AB"[which], block.tensor_memory
    rows = what.rows[0] if which == 0 else what.n
    count, first_byte = what.factors, what.scale_ids[which]
    first_lane, first = lane_and_column(address & 0x3FFF_FFFF)
    what_for = f"the scale factors of {letter}"
    if first_lane:
        raise SimulationError(f"{what_for} begin at lane {first_lane}, not 0", site)
    step = {6: 2, 3: 1}.get(count, count)  # 6 and 3 of K = 96 go on in the next columns
    if first_byte % step or (not what.is_long and first_byte + count > 4):
        raise SimulationError(
            f"{what_for} have the id {first_byte}: {count} of them begin at a multiple of {step}",
            site,
            hint="the two highest bits of their address become the id",
        )
    halves = which == 1 and (what.blocks, what.m) == (2, 128)
    row = np.arange(rows)
    at = row % (rows // 2) if halves else row
    quarters = np.arange(4)[None, :]
    if halves:
        quarters = (row // (rows // 2) * 2)[:, None] + np.arange(2)[None, :]
    lanes = (at % WARP_SIZE)[:, None] + WARP_SIZE * quarters
    columns = (first + at // WARP_SIZE)[:, None] + 0 * lanes
    words = 1
    if first_byte + count > 4:
        words = 2
        together = -(-rows // TMEM_LANES) * TMEM_LANES // WARP_SIZE // (2 if halves else 1)
        lanes = np.concatenate([lanes, lanes], 1)
        columns = np.concatenate([columns, columns + together], 1)
    last = int(columns.max())
    check_allocated(g, range(first, last + 1), f"tcgen05.mma reads {what_for} in", site, block)
    tensor_races.begin_read(g, block, tensor_races.words_at(lanes, columns), site)
    assert what.scale is not None
    dtype = _SCALES[what.scale]

    def read() -> Any:
        if not tmem.written[lanes, columns].all():
            bad = np.argwhere(~tmem.written[lanes, columns])[0]
            raise UninitializedReadError(
                f"{what_for} in lane {int(lanes[tuple(bad)])}, column {int(columns[tuple(bad)])} "
                "of tensor memory were never written",
                site,
                hint="all four quarters of the lanes have a copy: tcgen05.cp of shape 4x32x128b",
            )
        tensor_owners.read(g, block, (lanes, columns), what_for, site)
        raw = np.ascontiguousarray(tmem.words[lanes, columns]).view(np.uint8)
        each = raw.reshape(rows, words, -1, 4).transpose(0, 2, 1, 3).reshape(rows, -1, 4 * words)
        each = each[:, :, first_byte : first_byte + count]
        if (each != each[:, :1]).any():
            bad = int(np.flatnonzero((each != each[:, :1]).any((1, 2)))[0])
            raise SimulationError(
                f"{what_for} of row {bad} differ in the quarters of the lanes",
                site,
                hint="each quarter has a copy of the factors: tcgen05.cp of shape 4x32x128b",
            )
        factors = np.ascontiguousarray(each[:, 0]).view(dtype).astype(np.float64)
        return np.abs(factors) if what.scale == "ue4m3" else factors

    return read
