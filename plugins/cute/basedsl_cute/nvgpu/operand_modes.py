"""Choices about wgmma's operands: source, major mode, layout in shared memory."""

from __future__ import annotations

import enum
from typing import Any

from basedsl import Numeric
from basedsl_cute import algebra
from basedsl_cute.algebra.ignored_location import takes_location


class OperandMajorMode(enum.StrEnum):
    """The mode of an operand that is contiguous: K, or the other one (M of A, N of B)."""

    K = "k"
    MN = "mn"


class OperandSource(enum.StrEnum):
    """The memory from which an operand is read: shared memory or registers."""

    SMEM = "smem"
    RMEM = "rmem"


class Field(enum.StrEnum):
    """A field of a tiled MMA, set by `mma.set(field, value)`.

    ACCUMULATE (add to D) may be set at run time; NEGATE_A and NEGATE_B (multiply -A or -B, of
    floats) only when the kernel is compiled.
    """

    ACCUMULATE = "accumulate"
    NEGATE_A = "negate_a"
    NEGATE_B = "negate_b"


class SmemLayoutAtomKind(enum.StrEnum):
    """The canonical layouts of operands in shared memory: major mode and width of the swizzle in
    bytes.

    INTER has no swizzle.
    """

    K_SW128 = "K_SW128"
    K_SW64 = "K_SW64"
    K_SW32 = "K_SW32"
    K_INTER = "K_INTER"
    MN_SW128 = "MN_SW128"
    MN_SW64 = "MN_SW64"
    MN_SW32 = "MN_SW32"
    MN_INTER = "MN_INTER"


@takes_location
def make_smem_layout_atom(kind: SmemLayoutAtomKind | str, dtype: type[Numeric]) -> Any:
    """Return the canonical layout `kind` in elements of `dtype`, for `cute.tile_to_shape` to
    repeat.

    >>> print(cute.nvgpu.warpgroup.make_smem_layout_atom("K_SW128", cute.Float16))
    S<3,3,3> o 0 o (8,64):(64,1)
    """
    return algebra.gmma_smem_atom(str(SmemLayoutAtomKind(kind)), dtype.width)
