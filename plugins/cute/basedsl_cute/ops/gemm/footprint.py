"""The memory of an array's elements, and the question whether that of two arrays has common bytes:
from extents, strides and addresses, without reading it.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from basedsl import ArrayRecord, DSLTypeError


def check_elements_apart(out: ArrayRecord) -> None:
    """Raise DSLTypeError for an array to be written of which two elements share memory."""
    end = 1
    for stride, extent in sorted(zip(map(abs, out.strides), out.shape, strict=True)):
        if extent > 1 and stride < end:
            raise DSLTypeError(
                f"out of {out.shape} with strides {out.strides} has elements that share memory",
                hint="pass another array, or none",
            )
        end += (extent - 1) * stride


@dataclass(frozen=True)
class Footprint:
    """The extents and strides of an array, in elements, and the bytes of an element."""

    shape: tuple[int, ...]
    strides: tuple[int, ...]
    size: int

    @cached_property
    def bounds(self) -> tuple[int, int]:
        """The bytes from the first element to the lowest one, and to the end of the highest."""
        if 0 in self.shape:
            return 0, 0
        steps = [(n - 1) * d * self.size for n, d in zip(self.shape, self.strides, strict=True)]
        return sum(min(step, 0) for step in steps), sum(max(step, 0) for step in steps) + self.size

    def shares(self, address: int, other: Footprint, its: int) -> bool:
        """True if elements have bytes in common, of this array at `address` and of another one."""
        low, high = self.bounds
        its_low, its_high = other.bounds
        if address + high <= its + its_low or its + its_high <= address + low:
            return False
        return bool(np.shares_memory(self._at(address), other._at(its)))

    def is_same(self, other: Footprint) -> bool:
        """True if elements of the same coordinates are at the same distances."""
        return self.size == other.size and self._modes() == other._modes()

    def _modes(self) -> list[tuple[int, int]]:
        return [mode for mode in zip(self.shape, self.strides, strict=True) if mode[0] != 1]

    def _at(self, address: int) -> Any:
        """An array of NumPy with this footprint, which nothing must read."""
        return np.asarray(_Memory(self, address))


class _Memory:
    def __init__(self, footprint: Footprint, address: int) -> None:
        self.__array_interface__ = {
            "shape": footprint.shape,
            "strides": tuple(d * footprint.size for d in footprint.strides),
            "typestr": f"|V{footprint.size}",
            "data": (address, True),
            "version": 3,
        }
