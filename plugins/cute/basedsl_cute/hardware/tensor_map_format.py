"""Tensor maps as compiled host code sees them: the encoders that it calls, and cuda.h's numbers.

Host code calls symbols that have the signatures of the driver's functions (CUDA driver API, "Tensor
Map Object Management"): `ENCODE_SYMBOL` that of `cuTensorMapEncodeTiled`,

    i32 (ptr map, i32 type, i32 rank, i64 address, ptr extents, ptr strides, ptr box,
         ptr element_strides, i32 interleave, i32 swizzle, i32 l2_promotion, i32 fill)

and `ENCODE_IM2COL_SYMBOL` that of `cuTensorMapEncodeIm2col`:

    i32 (ptr map, i32 type, i32 rank, i64 address, ptr extents, ptr strides, ptr lower_corner,
         ptr upper_corner, i32 channels, i32 pixels, ptr element_strides, i32 interleave,
         i32 swizzle, i32 l2_promotion, i32 fill)
"""

from __future__ import annotations

ENCODE_SYMBOL = "basedsl_encode_tensor_map"
ENCODE_IM2COL_SYMBOL = "basedsl_encode_tensor_map_im2col"
# By symbol: the driver's function, and the types of its arguments.
ENCODERS = {
    ENCODE_SYMBOL: (
        "cuTensorMapEncodeTiled",
        "ptr i32 i32 i64 ptr ptr ptr ptr i32 i32 i32 i32",
    ),
    ENCODE_IM2COL_SYMBOL: (
        "cuTensorMapEncodeIm2col",
        "ptr i32 i32 i64 ptr ptr ptr ptr i32 i32 ptr i32 i32 i32 i32",
    ),
}
BYTES, ALIGNMENT = 128, 64

# cuda.h: CUtensorMapDataType, by the names of the DSL's element types. Narrow floats travel as
# bytes, 8-bit integers too.
DATA_TYPES = {
    "Uint8": 0, "Int8": 0, "Boolean": 0, "Uint16": 1, "Int16": 1, "Uint32": 2, "Int32": 3,
    "Uint64": 4, "Int64": 5, "Float16": 6, "Float32": 7, "Float64": 8, "BFloat16": 9,
    "TFloat32": 7, "Float8E4M3FN": 0, "Float8E5M2": 0, "Float8E4M3": 0, "Float8E8M0FNU": 0,
    "Float4E2M1FN": 13, "Int4": 13, "Uint4": 13,
}  # fmt: skip
# Elements of 4 and 6 bits that take a byte each in shared memory, by their bits: 16 of them lie
# packed at the beginning of 16 bytes (CU_TENSOR_MAP_DATA_TYPE_16U4_ALIGN16B, 16U6_ALIGN16B).
UNPACKED_TYPES = {4: 14, 6: 15}
# Of the types from 13 on: elements, bytes that they take in global and in shared memory.
NARROW_UNITS = {13: (2, 1, 1), 14: (16, 8, 16), 15: (16, 12, 16)}
TYPE_BYTES = (1, 2, 4, 4, 8, 8, 2, 4, 8, 2, 4, 4, 4)
TYPE_NAMES = (
    "Uint8", "Uint16", "Uint32", "Int32", "Uint64", "Int64", "Float16", "Float32", "Float64",
    "BFloat16", "Float32", "TFloat32", "TFloat32",
)  # fmt: skip

# PTX ISA, "cp.reduce.async.bulk.tensor": the element types of each reduction.
_ORDERED = ("Uint32", "Int32", "Uint64", "Int64", "Float16", "BFloat16")
_BITS = ("Uint32", "Int32", "Uint64", "Int64")
REDUCIBLE = {
    "add": ("Uint32", "Int32", "Uint64", "Float16", "BFloat16", "Float32"),
    "min": _ORDERED, "max": _ORDERED, "inc": ("Uint32",), "dec": ("Uint32",),
    "and": _BITS, "or": _BITS, "xor": _BITS,
}  # fmt: skip

# CUtensorMapSwizzle. The last permutes chunks of 32 bytes within 128, the others chunks of 16.
SWIZZLE_NONE, SWIZZLE_32B, SWIZZLE_64B, SWIZZLE_128B, SWIZZLE_128B_ATOM_32B = range(5)
SWIZZLE_BYTES = (16, 32, 64, 128, 128)
# The permutation of byte addresses of each, as (bits, base, shift).
SWIZZLE_BITS = ((0, 4, 3), (1, 4, 3), (2, 4, 3), (3, 4, 3), (2, 5, 2))
L2_PROMOTIONS = {0: 0, 64: 1, 128: 2, 256: 3}  # bytes -> CUtensorMapL2promotion
MAX_RANK, MAX_BOX = 5, 256
MAX_PIXELS = 1024  # of an im2col copy (cuTensorMapEncodeIm2col, pixelsPerColumn)
# PTX ISA 5.5.4.1, "im2col mode": bits of a corner of the bounding box, signed, and of an offset,
# unsigned, by the number of spatial modes.
CORNER_BITS = {1: 16, 2: 8, 3: 5}
