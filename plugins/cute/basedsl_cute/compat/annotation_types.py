"""Types for annotations that `cute` and `cute.typing` both have: tensors, layouts, tuples.

An integer in a tuple argument of a `@jit` function is a dynamic Int32, whichever of these
annotates it.
"""

from __future__ import annotations

from typing import TypeAlias

from basedsl import Constexpr, Integer
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
    "ComposedLayout",
    "Constexpr",
    "Coord",
    "Int",
    "IntTuple",
    "Layout",
    "Pointer",
    "Shape",
    "Stride",
    "Swizzle",
    "SymInt",
    "Tensor",
    "Tile",
    "Tiler",
]
