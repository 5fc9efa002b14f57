"""`cute.where`: choosing without branching."""

from __future__ import annotations

from typing import Any

from basedsl.errors import DSLTypeError
from basedsl.numeric import Boolean, select


def where(condition: Any, x: Any, y: Any) -> Any:
    """`x` where `condition` holds, else `y`; both are computed. The type is their promotion."""
    if not isinstance(condition, bool | Boolean):
        raise DSLTypeError(
            f"where() takes a Boolean condition, got {type(condition).__name__}",
            hint="compare first: where(x > 0, ...)",
        )
    return select(condition, x, y)
