"""`is`, `type` and `id` of numbers known at run time only.

Python has one True and one False, so `is` of two Booleans compares them. Which ints and floats are
the same object is the interpreter's own affair, except that those of different classes never are.
"""

from __future__ import annotations

import builtins
import sys
from typing import Any

from basedsl.errors import DSLTypeError, with_article
from basedsl.location import asks_as_library
from basedsl.metastage.chosen_member import ChosenMember, is_same_member
from basedsl.numeric import Numeric, ambiguous, is_ambiguous, is_dynamic, python_class, type_of


def is_same(a: Any, b: Any) -> Any:
    """Return the condition of `a is b`: a bool, or a dynamic Boolean."""
    if a is b:
        return True
    if isinstance(a, Numeric) or isinstance(b, Numeric):
        return _is_same_number(a, b)
    if type(a) is ChosenMember or type(b) is ChosenMember:
        return is_same_member(a, b)
    if isinstance(a, type) and isinstance(b, type) and is_ambiguous(a, b):
        raise ambiguous(a, b)
    return False


def _is_same_number(a: Any, b: Any) -> Any:
    A, B = _number_class(a), _number_class(b)
    if A is not B:
        return False
    if A is bool:
        same = a == b
        return same if is_dynamic(same) else bool(same)
    number = a if isinstance(a, Numeric) else b
    raise DSLTypeError(
        f"`is` asks if two numbers are one object; {with_article(type(number))} is a value",
        hint="write == to compare the numbers",
    )


def _number_class(x: Any) -> type | None:
    if isinstance(x, Numeric):
        return python_class(type(x))
    return type(x) if type(x) in (bool, int, float) else None


def type_(*args: Any, **kwargs: Any) -> Any:
    """Python's `type` in traced code."""
    if len(args) != 1 or kwargs or asks_as_library(sys._getframe(1)):
        return builtins.type(*args, **kwargs)
    (x,) = args
    return x._dsl_class if builtins.type(x) is ChosenMember else type_of(x)


def id_(x: Any) -> int:
    """Python's `id` in traced code; DSLTypeError for a dynamic number, which is no object."""
    if is_dynamic(x):
        raise DSLTypeError(
            f"id() of {with_article(type(x))}, which is a value and no object",
            hint="compare the numbers with ==",
        )
    return builtins.id(x)


class Singleton:
    """A pattern that equals one bool only, and asks for the truth of a dynamic Boolean."""

    def __init__(self, value: bool) -> None:
        self.value = value

    def __eq__(self, other: object) -> bool:
        return bool(is_same(other, self.value))

    __hash__ = None  # type: ignore[assignment]
