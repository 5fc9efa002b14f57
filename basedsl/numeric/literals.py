"""Python and NumPy numbers as numeric values."""

from __future__ import annotations

from typing import Any

import numpy as np

from basedsl.errors import DSLTypeError, with_article
from basedsl.numeric.number import Numeric
from basedsl.numeric.promotion import defaults
from basedsl.numeric.types import Boolean, from_numpy_dtype


def as_numeric(x: Any, like: Any = None) -> Numeric:
    """Return `x` as a numeric value.

    A bool becomes a Boolean, an int or float a weak number of the DSL's default type, a NumPy
    scalar a number of its dtype's type; a numeric value stays itself. With `like`, a type or a
    numeric value, a Python int or float becomes a weak number of that type. Emits nothing. Raises
    DSLTypeError if `x` is no number or does not fit.
    """
    if isinstance(x, Numeric):
        return x
    kind = type(x)
    if kind is bool:
        return Boolean._known(x)
    if kind is int or kind is float:
        if like is not None:
            target: type[Numeric] = like if isinstance(like, type) else type(like)
            if not (kind is float and target.is_integer):
                return target.concrete(x, weak=True)
        now = defaults()
        return (now.int if kind is int else now.float).concrete(x, weak=True)
    if isinstance(x, np.generic):
        return from_numpy_dtype(x.dtype).concrete(x)
    if isinstance(x, (int, float)):  # a subclass, IntEnum for instance
        return as_numeric(int(x) if isinstance(x, int) else float(x), like)
    if hasattr(type(x), "__dsl_number__"):  # the chosen member of an IntEnum
        return as_numeric(x.__dsl_number__(), like)
    if hasattr(type(x), "__getitem__") and not isinstance(x, str):
        what = with_article(type(x))
        raise DSLTypeError(f"{what} is not a number", hint="take an element of it: x[i]")
    raise DSLTypeError(f"{x!r} of type {type(x).__name__} is not a number")


def is_numeric_literal(x: Any) -> bool:
    """Return True for the objects that `as_numeric` takes besides numeric values."""
    return isinstance(x, (bool, int, float, np.generic))
