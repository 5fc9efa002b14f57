"""Tensor maps: the 128 bytes that describe a tensor in global memory and its boxes to the TMA unit.

Host code calls an encoder (`hardware.tensor_map_format`). For a GPU it is the driver's function;
for the simulator, one of `simulated_encoders()` makes the driver's checks and writes a
`TensorMapRecord`, since the driver's own format is not published.
"""

from __future__ import annotations

import ctypes
import functools
from typing import Any, NamedTuple

from basedsl_cute.hardware.tensor_map_format import (
    ALIGNMENT,
    BYTES,
    CORNER_BITS,
    ENCODE_IM2COL_SYMBOL,
    ENCODE_SYMBOL,
    ENCODERS,
    MAX_BOX,
    MAX_PIXELS,
    MAX_RANK,
    NARROW_UNITS,
    SWIZZLE_128B_ATOM_32B,
    SWIZZLE_BYTES,
    SWIZZLE_NONE,
    TYPE_BYTES,
    UNPACKED_TYPES,
)

_INVALID_VALUE = 1  # CUDA_ERROR_INVALID_VALUE
_MAGIC = 0x5344_4D41_5354_4D31


class TensorMapRecord(ctypes.Structure):
    """The simulator's format of the 128 bytes. Extents count elements, strides bytes."""

    _fields_ = (
        ("magic", ctypes.c_uint64),
        ("address", ctypes.c_uint64),
        ("extents", ctypes.c_uint32 * MAX_RANK),
        ("box", ctypes.c_uint16 * MAX_RANK),
        ("element_strides", ctypes.c_uint8 * MAX_RANK),
        ("rank", ctypes.c_uint8),
        ("strides", ctypes.c_uint64 * (MAX_RANK - 1)),
        ("type", ctypes.c_uint8),
        ("swizzle", ctypes.c_uint8),
        ("fill", ctypes.c_uint8),
        ("is_im2col", ctypes.c_uint8),
        ("lower", ctypes.c_int16 * (MAX_RANK - 2)),
        ("upper", ctypes.c_int16 * (MAX_RANK - 2)),
    )


assert ctypes.sizeof(TensorMapRecord) <= BYTES


class PixelBox(NamedTuple):
    """The bounding box of an im2col copy in the spatial modes, the fastest first.

    First positions go from `lower` to the extent - 1 + `upper`; `offsets`, those of a position in
    the filter, move what is read.
    """

    lower: tuple[int, ...]
    upper: tuple[int, ...]
    offsets: tuple[int, ...] = ()


class TensorMap(NamedTuple):
    """A decoded tensor map. Mode 0 is contiguous and counts items, in extents and in the box;
    `strides` are those of all modes, in bytes. That of an im2col copy has a box of channels and
    pixels, and where these begin in `pixels`.
    """

    address: int
    data_type: int  # CUtensorMapDataType
    extents: tuple[int, ...]
    strides: tuple[int, ...]
    box: tuple[int, ...]
    element_strides: tuple[int, ...]
    swizzle: int
    pixels: PixelBox | None = None

    @property
    def itemsize(self) -> int:
        """Bytes of an item in global memory: an element, or as many as share bytes (`packing`)."""
        return _item_bytes(self.data_type)

    @property
    def packing(self) -> int:
        """Elements of an item; coordinates of the contiguous mode count elements."""
        return NARROW_UNITS.get(self.data_type, (1, 0, 0))[0]

    @property
    def shared_itemsize(self) -> int:
        """Bytes that an item takes in shared memory."""
        found = NARROW_UNITS.get(self.data_type)
        return self.itemsize if found is None else found[2]

    @property
    def rank(self) -> int:
        return len(self.extents)


def _item_bytes(data_type: int) -> int:
    found = NARROW_UNITS.get(data_type)
    return TYPE_BYTES[data_type] if found is None else found[1]


@functools.lru_cache(maxsize=64)
def decode(data: bytes) -> TensorMap | None:
    """Decode the simulator's format; None for other bytes."""
    record = TensorMapRecord.from_buffer_copy(data)
    if record.magic != _MAGIC:
        return None
    rank, itemsize = record.rank, _item_bytes(record.type)
    packing = NARROW_UNITS.get(record.type, (1, 0, 0))[0]
    modes, pixels = rank, None
    if record.is_im2col:
        modes = 2
        pixels = PixelBox(tuple(record.lower[: rank - 2]), tuple(record.upper[: rank - 2]))
    return TensorMap(
        record.address,
        record.type,
        (record.extents[0] // packing, *record.extents[1:rank]),
        (itemsize, *record.strides[: rank - 1]),
        (record.box[0] // packing, *record.box[1:modes]),
        tuple(record.element_strides[:rank]),
        record.swizzle,
        pixels,
    )


def _encode(
    out: int,
    type_: int,
    rank: int,
    address: int,
    extents: Any,
    strides: Any,
    box: Any,
    element_strides: Any,
    interleave: int,
    swizzle: int,
    promotion: int,
    fill: int,
) -> int:
    tensor = (type_, rank, address, extents, strides, element_strides, interleave, swizzle, fill)
    good = rank <= MAX_RANK and all(0 < box[i] <= MAX_BOX for i in range(rank))
    record = _record(out, tensor, box[0]) if good else None
    if record is None:
        return _INVALID_VALUE
    for i in range(rank):
        record.box[i] = box[i]
    return _write(out, record)


def _encode_im2col(
    out: int,
    type_: int,
    rank: int,
    address: int,
    extents: Any,
    strides: Any,
    lower: Any,
    upper: Any,
    channels: int,
    pixels: int,
    element_strides: Any,
    interleave: int,
    swizzle: int,
    promotion: int,
    fill: int,
) -> int:
    tensor = (type_, rank, address, extents, strides, element_strides, interleave, swizzle, fill)
    if not (3 <= rank <= MAX_RANK and 0 < channels <= MAX_BOX and 0 < pixels <= MAX_PIXELS):
        return _INVALID_VALUE
    spatial = rank - 2
    limit = 1 << CORNER_BITS[spatial] - 1
    corners = [*lower[:spatial], *upper[:spatial]]
    record = _record(out, tensor, channels)
    if record is None or not all(-limit <= corner < limit for corner in corners):
        return _INVALID_VALUE
    record.is_im2col = 1
    record.box[0], record.box[1] = channels, pixels
    for i in range(spatial):
        record.lower[i], record.upper[i] = lower[i], upper[i]
    return _write(out, record)


def _record(out: int, tensor: Any, row_elements: int) -> TensorMapRecord | None:
    """The record of a tensor, whose boxes have rows of `row_elements` elements; None where the
    driver refuses it.
    """
    type_, rank, address, extents, strides, element_strides, interleave, swizzle, fill = tensor
    known = 0 <= type_ < len(TYPE_BYTES) or type_ in NARROW_UNITS
    if not known or not 1 <= rank <= MAX_RANK or out % ALIGNMENT:
        return None
    packing, _, in_shared = NARROW_UNITS.get(type_, (1, 0, TYPE_BYTES[type_ % 13]))
    good = address % 16 == 0 and interleave == 0 and 0 <= swizzle <= SWIZZLE_128B_ATOM_32B
    good = good and all(0 < extents[i] <= 1 << 32 for i in range(rank))
    good = good and all(strides[i] % 16 == 0 and strides[i] < 1 << 40 for i in range(rank - 1))
    good = good and all(0 < element_strides[i] <= 8 for i in range(rank))
    if type_ in UNPACKED_TYPES.values():  # cuTensorMapEncodeTiled: whole 128 elements, 32 bytes
        good = good and extents[0] % 128 == 0 and address % 32 == 0
        good = good and all(strides[i] % 32 == 0 for i in range(rank - 1))
    good = good and extents[0] % packing == 0 and row_elements % packing == 0
    row = row_elements // packing * in_shared
    good = good and row % 16 == 0
    good = good and (swizzle == SWIZZLE_NONE or row <= SWIZZLE_BYTES[swizzle])
    if not good:
        return None
    record = TensorMapRecord(magic=_MAGIC, address=address, rank=rank, type=type_)
    record.swizzle, record.fill = swizzle, fill
    for i in range(rank):
        record.extents[i] = extents[i]
        record.element_strides[i] = element_strides[i]
    for i in range(rank - 1):
        record.strides[i] = strides[i]
    return record


def _write(out: int, record: TensorMapRecord) -> int:
    ctypes.memset(out, 0, BYTES)
    ctypes.memmove(out, ctypes.addressof(record), ctypes.sizeof(record))
    return 0


_CTYPES: dict[str, Any] = {"ptr": ctypes.c_void_p, "i32": ctypes.c_int32, "i64": ctypes.c_uint64}
_LISTS: dict[str, Any] = {
    "i64": ctypes.POINTER(ctypes.c_uint64),
    "i32": ctypes.POINTER(ctypes.c_int32),
}


def _callback(function: Any, kinds: str, lists: str) -> Any:
    """A C function of arguments of `kinds`, whose pointers behind the first are to `lists`."""
    first, *rest = kinds.split()
    arrays = iter(lists.split())
    types = [_LISTS[next(arrays)] if kind == "ptr" else _CTYPES[kind] for kind in rest]
    return ctypes.CFUNCTYPE(ctypes.c_int32, _CTYPES[first], *types)(function)


_CALLBACKS = {
    ENCODE_SYMBOL: _callback(_encode, ENCODERS[ENCODE_SYMBOL][1], "i64 i64 i32 i32"),
    ENCODE_IM2COL_SYMBOL: _callback(
        _encode_im2col, ENCODERS[ENCODE_IM2COL_SYMBOL][1], "i64 i64 i32 i32 i32"
    ),
}


def simulated_encoders() -> dict[str, int]:
    """The addresses of the simulator's encoders, by symbol."""
    return {
        name: ctypes.cast(callback, ctypes.c_void_p).value or 0
        for name, callback in _CALLBACKS.items()
    }


def driver_encoders() -> dict[str, int]:
    """The addresses of the driver's encoders, by symbol."""
    from basedsl_cute.device import driver

    return {name: driver.address_of(function) for name, (function, _) in ENCODERS.items()}
