"""Choices about tcgen05's instructions: blocks, operands, repetitions, packing."""

from __future__ import annotations

import enum
from typing import Any

from basedsl import Numeric
from basedsl_cute import algebra
from basedsl_cute.algebra.ignored_location import takes_location


class CtaGroup(enum.IntEnum):
    """The blocks that an instruction works on: one, or a pair of a cluster."""

    ONE = 1
    TWO = 2


class OperandSource(enum.StrEnum):
    """The memory from which operand A is read: shared or tensor memory."""

    SMEM = "smem"
    TMEM = "tmem"


class Field(enum.StrEnum):
    """A field of a tiled MMA, set by `mma.set(field, value)`.

    ACCUMULATE (add to D) may be set at run time, and so may SFA and SFB, pointers to the scale
    factors of one instruction; NEGATE_A and NEGATE_B (multiply -A or -B, of floats) only when the
    kernel is compiled.
    """

    ACCUMULATE = "accumulate"
    NEGATE_A = "negate_a"
    NEGATE_B = "negate_b"
    SFA = "sfa"
    SFB = "sfb"


class Repetition(enum.IntEnum):
    """The number of times that a load or store of tensor memory repeats its shape in the
    columns.
    """

    x1 = 1
    x2 = 2
    x4 = 4
    x8 = 8
    x16 = 16
    x32 = 32
    x64 = 64
    x128 = 128


class Pack(enum.Enum):
    """The packing of columns by a load: a register for each, or one for 16 bits of two."""

    NONE = False
    PACK_16b_IN_32b = True


class Unpack(enum.Enum):
    """The unpacking of registers by a store: a column for each, or one for each 16 bits."""

    NONE = False
    UNPACK_32b_IN_16b = True


class TmemLoadRedOp(enum.Enum):
    """The reduction of what a thread loads from tensor memory; of absolute values for the last
    two.
    """

    MAX = "max"
    MIN = "min"
    MAXABS = "max.abs"
    MINABS = "min.abs"


class SmemLayoutAtomKind(enum.StrEnum):
    """The canonical layouts of operands in shared memory: major mode and width of the swizzle in
    bytes.

    INTER has no swizzle; MN_SW128_32B swizzles chunks of 32 bytes, for MN-major operands of 32
    bits.
    """

    K_SW128 = "K_SW128"
    K_SW64 = "K_SW64"
    K_SW32 = "K_SW32"
    K_INTER = "K_INTER"
    MN_SW128 = "MN_SW128"
    MN_SW64 = "MN_SW64"
    MN_SW32 = "MN_SW32"
    MN_INTER = "MN_INTER"
    MN_SW128_32B = "MN_SW128_32B"


@takes_location
def make_smem_layout_atom(kind: SmemLayoutAtomKind | str, dtype: type[Numeric]) -> Any:
    """Return the canonical layout `kind` in elements of `dtype`, for `tile_to_mma_shape` to repeat.

    >>> print(cute.nvgpu.tcgen05.make_smem_layout_atom("K_SW128", cute.Float16))
    S<3,3,3> o 0 o (8,64):(64,1)
    """
    return algebra.gmma_smem_atom(str(SmemLayoutAtomKind(kind)), dtype.width)


@takes_location
def tile_to_mma_shape(atom: Any, mma_tile_shape: Any, order: Any = None) -> Any:
    """Return the layout `atom` repeated over `mma_tile_shape`, ((MN, K), MMA_MN, MMA_K, ...) of an
    MMA's operand: extents in elements of one instruction, then numbers of instructions.

    `order` says in which order the modes MN, K and the further ones are tiled. Raises LayoutError
    for a shape that the atom does not divide.
    """
    return algebra.tile_to_mma_shape(atom, mma_tile_shape, order)
