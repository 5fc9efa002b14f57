"""Predicates on numeric classes, for host code."""

from __future__ import annotations

from typing import Any

from basedsl import Float, Numeric


def is_fp8_dtype(dtype: Any) -> bool:
    """True if `dtype` is the numeric class of an 8-bit float; False for anything else."""
    known = isinstance(dtype, type) and issubclass(dtype, Numeric)
    return known and issubclass(dtype, Float) and dtype.width == 8
