"""Memrefs that a compiled function returns, as NumPy arrays."""

from __future__ import annotations

import ctypes
import weakref
from typing import Any

import numpy as np

from basedsl.numeric import Numeric


def memref_array(dtype: type[Numeric], fields: tuple[int, ...], *, owned: bool = True) -> Any:
    """Return the NumPy array of a memref with elements of the numeric type `dtype`. `fields` are
    its C values: the allocated and the aligned pointer, the offset, the sizes and the strides, the
    last three in elements.

    With `owned`, `memref.alloc` made it in the function that returned it: its memory is freed when
    the array and all views of it are gone. Else the memory is somebody else's, and the array is
    valid as long as it is.
    """
    allocated, aligned, offset = fields[:3]
    rank = (len(fields) - 3) // 2
    sizes, strides = fields[3 : 3 + rank], fields[3 + rank :]
    kind = np.dtype(dtype.numpy_dtype)
    extent = 1 + sum((n - 1) * step for n, step in zip(sizes, strides, strict=True))
    count = max(extent, 0) if all(sizes) else 0
    memory = (ctypes.c_char * (count * kind.itemsize)).from_address(
        aligned + offset * kind.itemsize
    )
    if owned:
        weakref.finalize(memory, _free, allocated)
    flat = np.frombuffer(memory, dtype=kind)
    steps = [step * kind.itemsize for step in strides]
    return np.lib.stride_tricks.as_strided(flat, sizes, steps)


def _free(address: int) -> None:
    libc: Any = ctypes.CDLL(None)
    libc.free(ctypes.c_void_p(address))
