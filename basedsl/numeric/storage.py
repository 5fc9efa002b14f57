"""Numbers as stored in memory: from the result of `struct` back to Python numbers."""

from __future__ import annotations

from typing import Any

import numpy as np

from basedsl.numeric.formats import Kind
from basedsl.numeric.number import Numeric


def from_storage(T: type[Numeric], raw: Any) -> bool | int | float:
    """Return the Python number of a `T` read from memory.

    `raw` is a number as `struct` unpacks it; for a float without a code of `struct`, its bits as an
    int; for a 128-bit integer, its 16 little-endian bytes.
    """
    if T.kind is Kind.BOOLEAN:
        return bool(raw)
    if T.kind is Kind.FLOAT:
        if isinstance(raw, int):
            bits = np.uint16 if T.storage_width == 16 else np.uint8
            return float(np.asarray(raw, dtype=bits).view(T.numpy_dtype))
        return float(raw)
    if isinstance(raw, bytes):
        return int.from_bytes(raw, "little", signed=T.signed)
    return int(raw)
