"""`cute.jax.testing`: arrays to try functions on."""

from __future__ import annotations

import importlib
from collections.abc import Sequence
from typing import Any


def create_tensor(
    shape: Sequence[int], dtype: Any, key: Any, *, minval: int = -2, maxval: int = 3
) -> Any:
    """Random whole numbers from `minval` up to, not including, `maxval`, as an array of JAX."""
    jax = importlib.import_module("jax")
    kind = getattr(dtype, "numpy_dtype", dtype)
    return jax.random.randint(key, tuple(shape), minval, maxval).astype(kind)
