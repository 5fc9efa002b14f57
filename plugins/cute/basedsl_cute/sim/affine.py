"""Affine values: integers of lanes that are a sum of multiples of the lanes' coordinates.

Most indices and addresses are: `block * 256 + thread`. Held as coefficients they cost nothing for
each lane, and memory at such addresses is a slice.
"""

from __future__ import annotations

import math
import operator
from typing import Any

import numpy as np

Extents = tuple[int, ...]


_KEPT = 16  # arrays of a grid


class Recent(dict[Any, Any]):
    """A dict that forgets all when it is full, for what is cheap to make again."""

    def __init__(self, most: int) -> None:
        super().__init__()
        self._most = most

    def __setitem__(self, key: Any, value: Any) -> None:
        if len(self) >= self._most:
            self.clear()
        super().__setitem__(key, value)


class LaneGrid:
    """The coordinates of lanes: blocks, and z, y, x of a thread; `extents` of each, x fastest."""

    def __init__(self, extents: Extents) -> None:
        self.extents = extents
        self.lanes = math.prod(extents)
        self.everybody = np.ones(self.lanes, np.bool_)
        self.nobody = np.zeros(self.lanes, np.bool_)
        for mask in (self.everybody, self.nobody):
            mask.flags.writeable = False
        self._indices: list[Any] = [None] * len(extents)
        self._sums: dict[Any, Any] = {}

    def index(self, axis: int) -> Any:
        """The coordinate along an axis, `(lanes,)` in int64."""
        found = self._indices[axis]
        if found is None:
            shape = [1] * len(self.extents)
            shape[axis] = self.extents[axis]
            line = np.arange(self.extents[axis], dtype=np.int64).reshape(shape)
            found = np.broadcast_to(line, self.extents).reshape(-1)
            self._indices[axis] = found
        return found

    def sum_of(self, coefficients: Extents, dtype: Any) -> Any:
        """The sum of multiples of the coordinates, `(lanes,)`; kept, as most recur."""
        found = self._sums.get((coefficients, dtype))
        if found is None:
            found = np.zeros(self.lanes, np.int64)
            for axis, coefficient in enumerate(coefficients):
                if coefficient and self.extents[axis] > 1:
                    found += self.index(axis) * coefficient
            found = found.astype(dtype, copy=False)
            if len(self._sums) == _KEPT:
                self._sums.clear()
            self._sums[coefficients, dtype] = found
        return found


class Affine:
    """The value `base + sum(coefficients[i] * coordinate i)` of each lane, of an integer `dtype`.

    Arithmetic that would wrap, and all but sums, differences and products with one number for all
    lanes, gives arrays: what `dense` gives.
    """

    __slots__ = ("_dense", "base", "coefficients", "dtype", "grid", "high", "low")
    __array_ufunc__ = None  # NumPy's numbers leave arithmetic to this class

    def __init__(self, grid: LaneGrid, base: int, coefficients: Extents, dtype: Any) -> None:
        self.grid = grid
        self.base = base
        self.coefficients = coefficients
        self.dtype = dtype
        self._dense: Any = None
        low = high = base
        for extent, coefficient in zip(grid.extents, coefficients, strict=True):
            if coefficient > 0:
                high += coefficient * (extent - 1)
            else:
                low += coefficient * (extent - 1)
        self.low, self.high = low, high

    @property
    def dense(self) -> Any:
        """The value of each lane, `(lanes,)`."""
        if self._dense is None:
            with np.errstate(over="ignore"):  # parts may wrap where their sum does not
                base = np.int64(self.base).astype(self.dtype)
                self._dense = self.grid.sum_of(self.coefficients, self.dtype) + base
        return self._dense

    def astype(self, dtype: Any) -> Any:
        """The value as another integer type."""
        return _fitting(self.grid, self.base, self.coefficients, dtype) or self.dense.astype(dtype)

    def _combined(self, other: Any, sign: int) -> Any:
        if type(other) is Affine:
            parts = tuple(
                a + sign * b for a, b in zip(self.coefficients, other.coefficients, strict=True)
            )
            return _fitting(self.grid, self.base + sign * other.base, parts, self.dtype)
        if is_number(other):
            base = self.base + sign * int(other)
            return _fitting(self.grid, base, self.coefficients, _result(self.dtype, other))
        return None

    def __add__(self, other: Any) -> Any:
        found = self._combined(other, 1)
        return found if found is not None else self.dense + dense(other)

    __radd__ = __add__

    def __sub__(self, other: Any) -> Any:
        found = self._combined(other, -1)
        return found if found is not None else self.dense - dense(other)

    def __rsub__(self, other: Any) -> Any:
        return self * -1 + other if is_number(other) else dense(other) - self.dense

    def __mul__(self, other: Any) -> Any:
        if is_number(other):
            factor = int(other)
            parts = tuple(part * factor for part in self.coefficients)
            dtype = _result(self.dtype, other)
            found = _fitting(self.grid, self.base * factor, parts, dtype)
            if found is not None:
                return found
        return self.dense * dense(other)

    __rmul__ = __mul__

    def _compared(self, other: Any, compare: Any) -> Any:
        if is_number(other):
            number = int(other)
            first, last = compare(self.low, number), compare(self.high, number)
            if first == last:
                return self.grid.everybody if first else self.grid.nobody
        return compare(self.dense, dense(other))

    def __lt__(self, other: Any) -> Any:
        return self._compared(other, operator.lt)

    def __le__(self, other: Any) -> Any:
        return self._compared(other, operator.le)

    def __gt__(self, other: Any) -> Any:
        return self._compared(other, operator.gt)

    def __ge__(self, other: Any) -> Any:
        return self._compared(other, operator.ge)

    def strides(self, more: int) -> Extents | None:
        """The distances in memory of an injective address, with `more` bytes between blocks; None
        where lanes may meet.
        """
        parts = (self.coefficients[0] + more, *self.coefficients[1:])
        reach = 1
        pairs = zip(map(abs, parts), self.grid.extents, strict=True)
        for part, extent in sorted(pair for pair in pairs if pair[1] > 1):
            if part < reach:
                return None
            reach = part * (extent - 1) + 1
        return parts

    def is_run(self, itemsize: int) -> bool:
        """True if each lane has the address after that of the lane before."""
        expected = itemsize
        pairs = zip(self.coefficients, self.grid.extents, strict=True)
        for part, extent in reversed(list(pairs)):
            if extent > 1 and part != expected:
                return False
            expected *= extent
        return True


def is_number(value: Any) -> bool:
    return isinstance(value, int | np.integer)


def _result(dtype: Any, other: Any) -> Any:
    if type(other) is int or other.dtype.itemsize <= dtype.itemsize:
        return dtype
    return other.dtype


def _fitting(grid: LaneGrid, base: int, parts: Extents, dtype: Any) -> Affine | None:
    found = Affine(grid, base, parts, dtype if type(dtype) is np.dtype else np.dtype(dtype))
    bound = 1 << (8 * found.dtype.itemsize - 1)
    return found if -bound <= found.low and found.high < bound else None


def dense(value: Any) -> Any:
    """A value of lanes as an array or a number."""
    return value.dense if type(value) is Affine else value
