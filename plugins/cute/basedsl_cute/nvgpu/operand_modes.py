"""What there is to choose about wgmma's operands: source, major mode, layout in shared memory."""

from __future__ import annotations

import enum
from typing import Any

from basedsl_cute import algebra
from basedsl_cute.algebra.ignored_location import takes_location


class OperandMajorMode(enum.StrEnum):
    """Which mode of an operand is contiguous."""

    K = "k"
    MN = "mn"


class OperandSource(enum.StrEnum):
    """Where an operand is read from."""

    SMEM = "smem"
    RMEM = "rmem"


class Field(enum.StrEnum):
    """What can be set on a tiled MMA: ACCUMULATE at run time too, NEGATE_A and NEGATE_B (of floats:
    the instruction multiplies -A or -B) only when it is compiled.
    """

    ACCUMULATE = "accumulate"
    NEGATE_A = "negate_a"
    NEGATE_B = "negate_b"


class SmemLayoutAtomKind(enum.StrEnum):
    """The canonical layouts of operands in shared memory: major mode and width of the swizzle."""

    K_SW128 = "K_SW128"
    K_SW64 = "K_SW64"
    K_SW32 = "K_SW32"
    K_INTER = "K_INTER"
    MN_SW128 = "MN_SW128"
    MN_SW64 = "MN_SW64"
    MN_SW32 = "MN_SW32"
    MN_INTER = "MN_INTER"


@takes_location
def make_smem_layout_atom(kind: Any, dtype: Any) -> Any:
    """The canonical layout `kind` in elements of `dtype`, to be tiled by `tile_to_shape`."""
    return algebra.gmma_smem_atom(str(SmemLayoutAtomKind(kind)), dtype.width)
