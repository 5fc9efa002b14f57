"""Strides that are coordinates: scaled basis vectors, ratios, and sums of coordinates.

``E(1)`` is the unit vector of mode 1; a layout with basis strides maps coordinates to coordinates.
"""

from __future__ import annotations

import math
from typing import Any

from . import dynamic
from .errors import LayoutError
from .frozen import Frozen
from .ignored_location import takes_location


class Ratio(Frozen):
    """A positive rational number, ``numerator / denominator``, that is no integer, kept in lowest
    terms.

    `make_ratio` returns an int where the quotient is one.
    """

    __slots__ = ("denominator", "numerator")

    numerator: int
    denominator: int

    def __init__(self, numerator: int, denominator: int):
        if denominator <= 0 or numerator <= 0:
            raise LayoutError(f"Ratio needs positive integers, got {numerator}/{denominator}")
        common = math.gcd(numerator, denominator)
        self._set(numerator=numerator // common, denominator=denominator // common)

    def __reduce__(self) -> Any:
        return (Ratio, (self.numerator, self.denominator))

    def reduced(self) -> Ratio:
        """Return the same number in lowest terms, which it always is."""
        return self

    def to(self, dtype: type) -> Any:
        """Return the number as ``dtype``: a ``float``, or an ``int``, rounded down."""
        if dtype is int:
            return self.numerator // self.denominator
        return dtype(self.numerator / self.denominator)

    def __mul__(self, other: int | Ratio) -> int | Ratio:
        if isinstance(other, Ratio):
            return make_ratio(
                self.numerator * other.numerator, self.denominator * other.denominator
            )
        if dynamic.is_static_int(other):
            return 0 if other == 0 else make_ratio(self.numerator * other, self.denominator)
        return NotImplemented

    __rmul__ = __mul__

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Ratio) and (self.numerator, self.denominator) == (
            other.numerator,
            other.denominator,
        )

    def __hash__(self) -> int:
        return hash((Ratio, self.numerator, self.denominator))

    def __str__(self) -> str:
        return f"{self.numerator}/{self.denominator}"

    __repr__ = __str__


def make_ratio(numerator: int, denominator: int) -> int | Ratio:
    """Return ``numerator / denominator`` as an int if it is one, else as a `Ratio`."""
    ratio = Ratio(numerator, denominator)
    return ratio.numerator if ratio.denominator == 1 else ratio


class ScaledBasis(Frozen):
    """``value`` times the unit vector of the mode reached by the path ``mode``.

    Prints the value and then the path from the innermost index outwards: ``ScaledBasis(1, (1, 0))``
    is one step in sub-mode 0 of mode 1 and prints ``1@0@1``.

    >>> print(ScaledBasis(3, 1), E(1, 0) * 4)
    3@1 4@0@1
    """

    __slots__ = ("mode", "value")

    value: Any
    mode: tuple[int, ...]
    is_scaled_basis = True

    def __init__(self, value: Any, mode: int | tuple[int, ...] | list[int]):
        self._set(value=value, mode=(mode,) if isinstance(mode, int) else tuple(mode))

    def __reduce__(self) -> Any:
        return (ScaledBasis, (self.value, self.mode))

    def is_static(self) -> bool:
        """Return True if the value is known while compiling."""
        return not dynamic.is_dynamic_int(self.value)

    def __mul__(self, other: Any) -> ScaledBasis:
        if isinstance(other, ScaledBasis | tuple):
            return NotImplemented
        return ScaledBasis(_scale_value(self.value, other), self.mode)

    __rmul__ = __mul__

    def __neg__(self) -> ScaledBasis:
        return ScaledBasis(-self.value, self.mode)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, ScaledBasis) and self.structural_key() == other.structural_key()

    def __hash__(self) -> int:
        return hash(self.structural_key())

    def structural_key(self) -> Any:
        """Return a key that is equal for equal basis vectors."""
        value = self.value if isinstance(self.value, Ratio) else dynamic.leaf_key(self.value)
        return ("basis", value, self.mode)

    def __str__(self) -> str:
        return "@".join([str(self.value), *(str(i) for i in reversed(self.mode))])

    def __repr__(self) -> str:
        return f"ScaledBasis({self.value!r}, {self.mode!r})"


@takes_location
def E(*mode: Any) -> Any:
    """Return the unit basis vector of a mode: ``E(1)``, ``E(1, 0)``, ``E([1, 0])``; ``E()`` is 1.

    >>> print(E(1), E(1, 0), 3 * E(0))
    1@1 1@0@1 3@0
    """
    path: Any = tuple(mode[0]) if len(mode) == 1 and isinstance(mode[0], tuple | list) else mode
    for i in path:
        if not dynamic.is_static_int(i) or i < 0:
            raise LayoutError(f"E{mode}: modes are counted from 0, and {i!r} is none of them")
    return ScaledBasis(1, path) if path else 1


def _scale_value(value: Any, factor: Any) -> Any:
    if isinstance(value, Ratio) or isinstance(factor, Ratio):
        return value * factor
    return dynamic.mul(value, factor)


def scale(factor: Any, stride: Any) -> Any:
    """Return ``factor * stride`` where the stride may be a basis vector (kept for factor 0 too)."""
    if isinstance(stride, ScaledBasis):
        return ScaledBasis(_scale_value(stride.value, factor), stride.mode)
    return dynamic.mul(factor, stride)


def as_coordinate(x: Any) -> Any:
    """Return a basis vector as the coordinate tuple it stands for: ``3@1`` is ``(0, 3)``."""
    if not isinstance(x, ScaledBasis):
        return x
    result = x.value
    for index in reversed(x.mode):
        result = (0,) * index + (result,)
    return result


@takes_location
def add(a: Any, b: Any) -> Any:
    """Return the sum of two offsets: integers, or coordinates added mode by mode (the shorter one
    padded).

    Raises LayoutError for the sum of a coordinate and an integer other than 0.
    """
    if type(a) is int and type(b) is int:
        return a + b
    a, b = as_coordinate(a), as_coordinate(b)
    if isinstance(a, tuple) and isinstance(b, tuple):
        if len(a) < len(b):
            a, b = b, a
        return tuple(add(x, y) for x, y in zip(a, b, strict=False)) + a[len(b) :]
    if isinstance(a, tuple) or isinstance(b, tuple):
        integer, coordinate = (b, a) if isinstance(a, tuple) else (a, b)
        if not dynamic.is_zero(integer):
            raise LayoutError(f"cannot add the integer {integer} to the coordinate {coordinate}")
        return coordinate
    return dynamic.add(a, b)
