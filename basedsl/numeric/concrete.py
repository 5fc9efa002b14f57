"""Operators on Python numbers of one format: the results of compiled code, computed now.

Integers are Python ints and wrap to the format; floats are computed in the format's precision by
NumPy. Operands are representable in `T`. Integer division by zero raises ZeroDivisionError as in
Python; float division by zero follows IEEE 754, as compiled code does.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable
from typing import Any

import numpy as np

from basedsl.numeric.formats import Kind, round_float, wrap_integer
from basedsl.numeric.protocols import NumericType

Number = int | float
Concrete = Callable[[Any, Any, Any], Any]


def _wrap(T: NumericType, value: int) -> int:
    return wrap_integer(value, T.width, T.kind is Kind.SIGNED)


def _in_float(T: NumericType, function: Callable[..., Any], *operands: Number) -> float:
    # Float16 and BFloat16 are computed in Float32 and rounded, which is exact rounding for
    # + - * / and sqrt (24 >= 2 * 11 + 2), and what hardware without half arithmetic does.
    scalar = np.float64 if T.width == 64 else np.float32
    with np.errstate(all="ignore"):
        result = function(*(scalar(x) for x in operands))
    return round_float(float(result), T.format)


def arithmetic(function: Callable[[Any, Any], Any]) -> Concrete:
    """`function` on integers of the format (wrapped), or on floats of the format (rounded)."""

    def compute(T: NumericType, x: Number, y: Number) -> Number:
        if T.kind is Kind.FLOAT:
            return _in_float(T, function, x, y)
        return _wrap(T, function(int(x), int(y)))

    return compute


def bitwise(function: Callable[[Any, Any], Any]) -> Concrete:
    """`function` on integers or Booleans of the format."""

    def compute(T: NumericType, x: int, y: int) -> int:
        return bool(function(x, y)) if T.kind is Kind.BOOLEAN else _wrap(T, function(x, y))

    return compute


def comparison(function: Callable[[Any, Any], bool]) -> Concrete:
    """`function` on numbers of one format."""
    return lambda T, x, y: bool(function(x, y))


def true_division(T: NumericType, x: float, y: float) -> float:
    """x / y in the float format `T`."""
    return _in_float(T, operator.truediv, x, y)


def floor_division(T: NumericType, x: Number, y: Number) -> Number:
    """The floor of x / y."""
    if T.kind is Kind.FLOAT:
        return _in_float(T, lambda a, b: float_divmod(a, b)[0], x, y)
    return _wrap(T, int(x) // int(y))


def modulo(T: NumericType, x: Number, y: Number) -> Number:
    """The remainder with the divisor's sign."""
    if T.kind is Kind.FLOAT:
        return _in_float(T, lambda a, b: float_divmod(a, b)[1], x, y)
    return _wrap(T, int(x) % int(y))


def float_divmod(x: Any, y: Any) -> tuple[Any, Any]:
    """Python's float divmod (CPython Objects/floatobject.c, _float_div_mod) on NumPy scalars.

    Division by zero gives x / y as the quotient.
    """
    one = x.dtype.type(1)
    mod = np.fmod(x, y)
    div = (x - mod) / y
    if mod != 0:
        if (y < 0) != (mod < 0):
            mod = mod + y
            div = div - one
    else:
        mod = np.copysign(x.dtype.type(0), y)
    if y == 0:
        return x / y, mod
    if div != 0:
        floor = np.floor(div)
        if div - floor > 0.5:
            floor = floor + one
    else:
        floor = np.copysign(x.dtype.type(0), x / y)
    return floor, mod


def power(T: NumericType, x: Number, y: Number) -> Number:
    """x ** y; integer exponents of integers are not negative here."""
    if T.kind is Kind.FLOAT:
        return _in_float(T, operator.mul, x, x) if y == 2 else _in_float(T, np.power, x, y)
    return _wrap(T, pow(int(x), int(y), 1 << T.width))


def shift_left(T: NumericType, x: int, count: int) -> int:
    """x << count; 0 when everything is shifted out."""
    if count < 0:
        raise ValueError("negative shift count")
    return _wrap(T, x << count) if count < T.width else 0


def shift_right(T: NumericType, x: int, count: int) -> int:
    """x >> count, filling with the sign."""
    if count < 0:
        raise ValueError("negative shift count")
    return x >> min(count, T.width)


def negative(T: NumericType, x: Number) -> Number:
    """-x."""
    return -x if T.kind is Kind.FLOAT else _wrap(T, -int(x))


def invert(T: NumericType, x: int) -> int:
    """~x."""
    return _wrap(T, ~x)


def absolute(T: NumericType, x: Number) -> Number:
    """|x|."""
    return math.fabs(x) if T.kind is Kind.FLOAT else _wrap(T, abs(int(x)))
