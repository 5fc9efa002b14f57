"""Placement of NumPy arrays as a GPU's allocator places them: each at a multiple of 256 bytes.

NumPy's own lie at multiples of 16 (CUDA Programming Guide, "Size and Alignment Requirement", has
the GPU's), which would show as sectors that no GPU touches. Views keep their offset in what they
are a view of, and what overlaps still does.
"""

from __future__ import annotations

from typing import Any

import numpy as np

ALIGNMENT = 256


class PlacedArrays:
    """Copies of NumPy arrays at aligned addresses; `copy_back` writes them to the originals."""

    def __init__(self) -> None:
        self._owners: dict[int, tuple[Any, int, Any]] = {}
        self._views: list[tuple[Any, Any]] = []

    def place(self, value: Any) -> Any:
        """The copy of a NumPy array; any other value as it is."""
        if type(value) is not np.ndarray or value.size == 0 or value.dtype.hasobject:
            return value
        owner = value
        while isinstance(owner.base, np.ndarray):
            owner = owner.base
        low, high = _bounds(owner)
        if id(owner) not in self._owners:
            room = np.empty(high - low + ALIGNMENT, np.uint8)
            shift = -room.ctypes.data % ALIGNMENT
            self._owners[id(owner)] = (owner, low, room[shift:])
        _, low, room = self._owners[id(owner)]
        start = value.ctypes.data - low
        made: Any = np.ndarray(value.shape, value.dtype, room, start, value.strides)
        made[...] = value
        made.flags.writeable = value.flags.writeable
        self._views.append((value, made))
        return made

    def copy_back(self) -> None:
        """Write the copies to the arrays that they were made of."""
        for value, made in self._views:
            if value.flags.writeable:
                value[...] = made


def _bounds(array: Any) -> tuple[int, int]:
    low = high = array.ctypes.data
    for extent, stride in zip(array.shape, array.strides, strict=True):
        step = (extent - 1) * stride
        low, high = low + min(step, 0), high + max(step, 0)
    return low, high + array.itemsize
