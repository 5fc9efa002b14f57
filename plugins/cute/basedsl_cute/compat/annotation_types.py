"""Types for annotations that `cute` and `cute.typing` both have: numbers, tensors, layouts, tuples.

An integer in a tuple argument of a `@jit` function is a dynamic Int32, whichever of these
annotates it.
"""

from __future__ import annotations

from typing import TypeAlias

from basedsl import (
    BFloat16,
    Boolean,
    Constexpr,
    Float,
    Float4E2M1FN,
    Float6E2M3FN,
    Float6E3M2FN,
    Float8E4M3,
    Float8E4M3B11FNUZ,
    Float8E4M3FN,
    Float8E5M2,
    Float8E8M0FNU,
    Float16,
    Float32,
    Float64,
    Int4,
    Int8,
    Int16,
    Int32,
    Int64,
    Int128,
    Integer,
    Numeric,
    TFloat32,
    Uint4,
    Uint8,
    Uint16,
    Uint32,
    Uint64,
    Uint128,
)
from basedsl_cute.algebra import ComposedLayout, Layout, ScaledBasis, Swizzle
from basedsl_cute.arrays.placeholders import SymInt
from basedsl_cute.hardware.address_space import AddressSpace
from basedsl_cute.tensors.pointer import Pointer
from basedsl_cute.tensors.tensor import Tensor

Int: TypeAlias = int | Integer
IntTuple: TypeAlias = int | Integer | tuple["IntTuple", ...]
Shape: TypeAlias = IntTuple
Stride: TypeAlias = int | Integer | ScaledBasis | tuple["Stride", ...]
Coord: TypeAlias = int | Integer | tuple["Coord", ...] | None
Tile: TypeAlias = int | Layout | tuple["Tile", ...] | None
Tiler: TypeAlias = Tile

__all__ = [
    "AddressSpace",
    "BFloat16",
    "Boolean",
    "ComposedLayout",
    "Constexpr",
    "Coord",
    "Float",
    "Float4E2M1FN",
    "Float6E2M3FN",
    "Float6E3M2FN",
    "Float8E4M3",
    "Float8E4M3B11FNUZ",
    "Float8E4M3FN",
    "Float8E5M2",
    "Float8E8M0FNU",
    "Float16",
    "Float32",
    "Float64",
    "Int",
    "Int4",
    "Int8",
    "Int16",
    "Int32",
    "Int64",
    "Int128",
    "IntTuple",
    "Integer",
    "Layout",
    "Numeric",
    "Pointer",
    "Shape",
    "Stride",
    "Swizzle",
    "SymInt",
    "TFloat32",
    "Tensor",
    "Tile",
    "Tiler",
    "Uint4",
    "Uint8",
    "Uint16",
    "Uint32",
    "Uint64",
    "Uint128",
]
