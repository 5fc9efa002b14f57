"""Affine values: integers of lanes that are a sum of multiples of the lanes' coordinates.

Most indices and addresses are: `block * 256 + thread`. Held as coefficients they cost nothing for
each lane, and memory at such addresses is a slice.
"""

from __future__ import annotations

import functools
import math
import operator
from typing import Any

import numpy as np

Extents = tuple[int, ...]


_KEPT = 16  # arrays of a grid, results of a value
_OF_FEW = 128  # results of a value that few lanes have
_FEW = 1024


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
    """The coordinates of lanes, the last one fastest: `extents` of blocks, threads and parts of
    these.
    """

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
    """The value `base + sum(coefficients[i] * coordinate i)` of each lane, of an integer `dtype`,
    with the least value `low` and the greatest one `high`.

    Arithmetic that would wrap, and what is no such sum, gives arrays: what `dense` gives. Results
    are kept with their first operand, as loops ask for the same ones.
    """

    __slots__ = ("_dense", "_made", "base", "coefficients", "dtype", "grid", "high", "low")
    __array_ufunc__ = None  # NumPy's numbers leave arithmetic to this class

    def __init__(
        self,
        grid: LaneGrid,
        base: int,
        coefficients: Extents,
        dtype: Any,
        ends: tuple[int, int] | None = None,
    ) -> None:
        self.grid = grid
        self.base = base
        self.coefficients = coefficients
        self.dtype = dtype
        self._dense: Any = None
        self._made: Recent | None = None
        self.low, self.high = ends or reach(grid.extents, base, coefficients)

    @property
    def dense(self) -> Any:
        """The value of each lane, `(lanes,)`."""
        if self._dense is None:
            with np.errstate(over="ignore"):  # parts may wrap where their sum does not
                base = np.int64(self.base).astype(self.dtype)
                self._dense = self.grid.sum_of(self.coefficients, self.dtype) + base
        return self._dense

    def _kept(self, key: Any, make: Any, *args: Any) -> Any:
        made = self._made
        if made is None:
            made = self._made = Recent(_OF_FEW if self.grid.lanes <= _FEW else _KEPT)
        found = made.get(key)
        if found is None:
            found = made[key] = make(*args)
        return found

    def astype(self, dtype: Any) -> Any:
        """The value as another integer type."""
        return self._kept(dtype, self._converted, dtype)

    def _converted(self, dtype: Any) -> Any:
        dtype = np.dtype(dtype)
        found = self._scaled(1, 0, dtype)
        return found if found is not None else self.dense.astype(dtype)

    def _scaled(self, factor: int, more: int, dtype: Any) -> Affine | None:
        """The value times `factor`, plus `more`; None where that does not fit."""
        ends = self.low * factor + more, self.high * factor + more
        if factor < 0:
            ends = ends[1], ends[0]
        parts = self.coefficients
        if factor != 1:
            parts = tuple([part * factor for part in parts])
        return _fitting(self.grid, self.base * factor + more, parts, dtype, ends)

    def _combined(self, other: Affine, sign: int) -> Any:
        pairs = zip(self.coefficients, other.coefficients, strict=True)
        parts = tuple([a + sign * b for a, b in pairs])
        base = self.base + sign * other.base
        found = _fitting(self.grid, base, parts, self.dtype, reach(self.grid.extents, base, parts))
        if found is None:
            found = self.dense + other.dense if sign > 0 else self.dense - other.dense
        return found

    def _plus(self, number: Any) -> Any:
        found = self._scaled(1, int(number), _result(self.dtype, number))
        return found if found is not None else self.dense + number

    def __add__(self, other: Any) -> Any:
        if type(other) is Affine:
            return self._kept(("+", other), self._combined, other, 1)
        if is_number(other):
            return self._kept(("+", type(other), other), self._plus, other)
        return self.dense + other

    __radd__ = __add__

    def __sub__(self, other: Any) -> Any:
        if type(other) is Affine:
            return self._kept(("-", other), self._combined, other, -1)
        if is_number(other):
            found = self._scaled(1, -int(other), _result(self.dtype, other))
            return found if found is not None else self.dense - other
        return self.dense - other

    def __rsub__(self, other: Any) -> Any:
        if is_number(other):
            found = self._scaled(-1, int(other), _result(self.dtype, other))
            return found if found is not None else other - self.dense
        return other - self.dense

    def _times(self, number: Any) -> Any:
        found = self._scaled(int(number), 0, _result(self.dtype, number))
        return found if found is not None else self.dense * number

    def __mul__(self, other: Any) -> Any:
        if is_number(other):
            return self._kept(("*", type(other), other), self._times, other)
        return self.dense * dense(other)

    __rmul__ = __mul__

    def divided(self, divisor: int) -> tuple[Affine, Affine] | None:
        """The quotient, rounded down, and the remainder; None where they are no such sums."""
        if divisor <= 0:
            return None
        return self._kept(("/", divisor), self._divided, divisor) or None

    def _divided(self, divisor: int) -> Any:
        zero = (0,) * len(self.coefficients)
        whole, rest = list(zero), list(zero)
        for i, part in enumerate(self.coefficients):
            if part % divisor:
                rest[i] = part
            else:
                whole[i] = part // divisor
        base, more = divmod(self.base, divisor)
        remainder = Affine(self.grid, more, tuple(rest), self.dtype)
        if remainder.low < 0 or remainder.high >= divisor:
            return ()
        return Affine(self.grid, base, tuple(whole), self.dtype), remainder

    def __and__(self, other: Any) -> Any:
        if is_number(other):
            found = self.divided(int(other) + 1) if int(other) & int(other) + 1 == 0 else None
            if found is not None:
                return found[1]
        return self.dense & dense(other)

    __rand__ = __and__

    def __lshift__(self, other: Any) -> Any:
        if is_number(other) and 0 <= int(other) < 8 * self.dtype.itemsize - 1:
            return self * self.dtype.type(1 << int(other))
        return self.dense << dense(other)

    def __rlshift__(self, other: Any) -> Any:
        return other << self.dense

    def __rshift__(self, other: Any) -> Any:
        if is_number(other) and 0 <= int(other) < 8 * self.dtype.itemsize - 1:
            found = self.divided(1 << int(other))
            if found is not None:
                return found[0]
        return self.dense >> dense(other)

    def __rrshift__(self, other: Any) -> Any:
        return other >> self.dense

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

    def is_injective(self, parts: Extents, size: int) -> bool:
        """True if no two lanes meet that have `size` bytes each, `parts` apart along the axes."""
        return _is_injective(parts, self.grid.extents, size)


def reach(extents: Extents, base: int, coefficients: Extents) -> tuple[int, int]:
    """The least and the greatest sum of `base` and multiples of coordinates."""
    low = high = base
    for extent, coefficient in zip(extents, coefficients, strict=True):
        if coefficient > 0:
            high += coefficient * (extent - 1)
        elif coefficient:
            low += coefficient * (extent - 1)
    return low, high


@functools.lru_cache(maxsize=1024)
def _is_injective(parts: Extents, extents: Extents, size: int) -> bool:
    end = size
    pairs = zip(map(abs, parts), extents, strict=True)
    for part, extent in sorted(pair for pair in pairs if pair[1] > 1):
        if part < end:
            return False
        end = part * (extent - 1) + end
    return True


def is_number(value: Any) -> bool:
    """True for an integer that all lanes share."""
    return isinstance(value, int | np.integer)


def _result(dtype: Any, other: Any) -> Any:
    if type(other) is int or other.dtype.itemsize <= dtype.itemsize:
        return dtype
    return other.dtype


def _fitting(
    grid: LaneGrid, base: int, parts: Extents, dtype: Any, ends: tuple[int, int]
) -> Affine | None:
    bound = 1 << (8 * dtype.itemsize - 1)
    return Affine(grid, base, parts, dtype, ends) if -bound <= ends[0] and ends[1] < bound else None


def dense(value: Any) -> Any:
    """A value of lanes as an array or a number."""
    return value.dense if type(value) is Affine else value


# Operations of generated code on what may be held as coefficients or not -------------------------


def _unsigned(x: Any) -> Any:
    return x.view(f"u{x.dtype.itemsize}")


def _signed(x: Any) -> Any:
    return x.view(f"i{x.dtype.itemsize}")


def zero_extended(a: Any, dtype: Any) -> Any:
    """An integer as a wider one, with zeros above; coefficients that are nowhere negative stay."""
    if type(a) is Affine and a.low >= 0:
        return a.astype(dtype)
    return _unsigned(dense(a)).astype(dtype)


def shift_right(a: Any, b: Any) -> Any:
    """The logical shift; of coefficients that are nowhere negative by a number, coefficients."""
    if type(a) is Affine and a.low >= 0 and is_number(b):
        return a >> b
    return _signed(_unsigned(dense(a)) >> _unsigned(dense(b)))


def held_quotient(a: Any, b: Any, remainder: bool) -> Affine | None:
    """The quotient or remainder, of integers with or without a sign, of coefficients that are
    nowhere negative by a number; None where that is no such sum.
    """
    if type(a) is not Affine or a.low < 0 or not is_number(b):
        return None
    found = a.divided(int(b))
    return None if found is None else found[remainder]


def _without_sign(number: Any) -> Any:
    return int(number) % (1 << 8 * number.dtype.itemsize)


def as_unsigned(a: Any, b: Any) -> tuple[Any, Any]:
    """Two values to be compared as unsigned integers: of coefficients that are nowhere negative and
    a number, the coefficients stay.
    """
    if type(a) is Affine and a.low >= 0 and is_number(b):
        return a, _without_sign(b)
    if type(b) is Affine and b.low >= 0 and is_number(a):
        return _without_sign(a), b
    return _unsigned(dense(a)), _unsigned(dense(b))
