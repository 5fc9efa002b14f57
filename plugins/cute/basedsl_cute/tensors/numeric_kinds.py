"""Questions about numeric classes that host code asks."""

from __future__ import annotations

from typing import Any

from basedsl.numeric import Float, Numeric


def is_fp8_dtype(dtype: Any) -> bool:
    """Whether a numeric class is an 8-bit float."""
    known = isinstance(dtype, type) and issubclass(dtype, Numeric)
    return known and issubclass(dtype, Float) and dtype.width == 8
