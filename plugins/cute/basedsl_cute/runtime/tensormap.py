"""Tensor maps: the 128 bytes that tell the TMA unit about a tensor in global memory and its boxes.

Host code calls the symbol `ENCODE_SYMBOL`, which has the signature of the driver's
`cuTensorMapEncodeTiled` (CUDA driver API, "Tensor Map Object Management"):

    i32 (ptr map, i32 type, i32 rank, i64 address, ptr extents, ptr strides, ptr box,
         ptr element_strides, i32 interleave, i32 swizzle, i32 l2_promotion, i32 fill)

For the GPU it is that function. For the simulator it is `simulated_encoder()`, which makes the
driver's checks and writes a `TensorMapRecord`: what the driver writes is known to NVIDIA only.
"""

from __future__ import annotations

import ctypes
import functools
from dataclasses import dataclass
from typing import Any

ENCODE_SYMBOL = "basedsl_encode_tensor_map"
BYTES, ALIGNMENT = 128, 64

# cuda.h: CUtensorMapDataType, by the names of the DSL's element types. Narrow floats travel as
# bytes, 8-bit integers too.
DATA_TYPES = {
    "Uint8": 0, "Int8": 0, "Boolean": 0, "Uint16": 1, "Int16": 1, "Uint32": 2, "Int32": 3,
    "Uint64": 4, "Int64": 5, "Float16": 6, "Float32": 7, "Float64": 8, "BFloat16": 9,
    "TFloat32": 7, "Float8E4M3FN": 0, "Float8E5M2": 0, "Float8E4M3": 0,
}  # fmt: skip
_TYPE_BYTES = (1, 2, 4, 4, 8, 8, 2, 4, 8, 2, 4, 4, 4)

SWIZZLE_NONE, SWIZZLE_32B, SWIZZLE_64B, SWIZZLE_128B = range(4)  # CUtensorMapSwizzle
SWIZZLE_BYTES = (16, 32, 64, 128)
L2_PROMOTION_256B = 3  # CUtensorMapL2promotion
MAX_RANK, MAX_BOX = 5, 256

_INVALID_VALUE = 1  # CUDA_ERROR_INVALID_VALUE
_MAGIC = 0x5344_4D41_5354_4D31


class TensorMapRecord(ctypes.Structure):
    """The simulator's tensor map, in the same 128 bytes. Extents are elements, strides bytes."""

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
    )


assert ctypes.sizeof(TensorMapRecord) <= BYTES


@dataclass(frozen=True)
class TensorMap:
    """A tensor map as Python values; mode 0 is contiguous. `strides` has every mode, in bytes."""

    address: int
    itemsize: int
    extents: tuple[int, ...]
    strides: tuple[int, ...]
    box: tuple[int, ...]
    element_strides: tuple[int, ...]
    swizzle: int

    @property
    def rank(self) -> int:
        return len(self.extents)


@functools.lru_cache(maxsize=64)
def decode(data: bytes) -> TensorMap | None:
    """The simulator's tensor map in `data`, or None if these bytes are none."""
    record = TensorMapRecord.from_buffer_copy(data)
    if record.magic != _MAGIC:
        return None
    rank, itemsize = record.rank, _TYPE_BYTES[record.type]
    return TensorMap(
        record.address,
        itemsize,
        tuple(record.extents[:rank]),
        (itemsize, *record.strides[: rank - 1]),
        tuple(record.box[:rank]),
        tuple(record.element_strides[:rank]),
        record.swizzle,
    )


_EncodeType = ctypes.CFUNCTYPE(
    ctypes.c_int32,
    ctypes.c_void_p,
    ctypes.c_int32,
    ctypes.c_uint32,
    ctypes.c_uint64,
    ctypes.POINTER(ctypes.c_uint64),
    ctypes.POINTER(ctypes.c_uint64),
    ctypes.POINTER(ctypes.c_uint32),
    ctypes.POINTER(ctypes.c_uint32),
    ctypes.c_int32,
    ctypes.c_int32,
    ctypes.c_int32,
    ctypes.c_int32,
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
    if not 0 <= type_ < len(_TYPE_BYTES) or not 1 <= rank <= MAX_RANK or out % ALIGNMENT:
        return _INVALID_VALUE
    itemsize = _TYPE_BYTES[type_]
    good = address % 16 == 0 and interleave == 0 and 0 <= swizzle <= SWIZZLE_128B
    good = good and all(0 < extents[i] <= 1 << 32 for i in range(rank))
    good = good and all(strides[i] % 16 == 0 and strides[i] < 1 << 40 for i in range(rank - 1))
    good = good and all(0 < box[i] <= MAX_BOX for i in range(rank))
    good = good and all(0 < element_strides[i] <= 8 for i in range(rank))
    row = box[0] * itemsize
    good = good and row % 16 == 0
    good = good and (swizzle == SWIZZLE_NONE or row <= SWIZZLE_BYTES[swizzle])
    if not good:
        return _INVALID_VALUE
    record = TensorMapRecord(magic=_MAGIC, address=address, rank=rank, type=type_)
    record.swizzle, record.fill = swizzle, fill
    for i in range(rank):
        record.extents[i] = extents[i]
        record.box[i] = box[i]
        record.element_strides[i] = element_strides[i]
    for i in range(rank - 1):
        record.strides[i] = strides[i]
    ctypes.memset(out, 0, BYTES)
    ctypes.memmove(out, ctypes.addressof(record), ctypes.sizeof(record))
    return 0


_callback = _EncodeType(_encode)


def simulated_encoder() -> int:
    """The address of the simulator's encoder."""
    return ctypes.cast(_callback, ctypes.c_void_p).value or 0


def driver_encoder() -> int:
    """The address of the driver's encoder."""
    from basedsl_cute.runtime import driver

    return driver.address_of("cuTensorMapEncodeTiled")
