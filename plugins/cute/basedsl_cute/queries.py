"""Asking tensors what layouts are asked: `size`, `shape`."""

from __future__ import annotations

from typing import Any

from basedsl_cute import algebra
from basedsl_cute.tensor import Tensor


def _layout(x: Any) -> Any:
    return x.layout if isinstance(x, Tensor) else x


def size(x: Any, mode: Any = None) -> Any:
    """The number of elements of a tensor, layout, or shape, or of one (nested) mode of it."""
    return algebra.size(_layout(x)) if mode is None else algebra.size(_layout(x), mode)


def shape(x: Any, mode: Any = None) -> Any:
    """The shape of a tensor or layout, or of one (nested) mode of it."""
    return algebra.shape(_layout(x)) if mode is None else algebra.shape(_layout(x), mode)
