"""`cute.jax.testing`: random JAX arrays for tests."""

from __future__ import annotations

import importlib
from collections.abc import Sequence
from typing import Any


def create_tensor(
    shape: Sequence[int], dtype: Any, key: Any, *, minval: int = -2, maxval: int = 3
) -> Any:
    """Make a JAX array of random whole numbers n, `minval` <= n < `maxval`.

    `dtype` is a numeric class or a JAX dtype, `key` a key of `jax.random`.
    """
    jax = importlib.import_module("jax")
    kind = getattr(dtype, "numpy_dtype", dtype)
    return jax.random.randint(key, tuple(shape), minval, maxval).astype(kind)
