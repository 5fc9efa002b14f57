"""The classes of Python's numbers that the numeric types stand for: int, float and bool.

A type that Python's numbers become (Boolean and the DSL's defaults) has two names in a user's
function, its own and Python's, and comparing the two is an error.
"""

from __future__ import annotations

import sys
from typing import Any

import numpy as np

from basedsl.errors import DSLError, DSLTypeError
from basedsl.location import asks_as_library
from basedsl.numeric.formats import Kind
from basedsl.tracing import trace as tracing

_own_only = False


def show_own_classes() -> None:
    """Let users see dynamic numbers as the DSL's classes only, from now on: `isinstance(n, int)` is
    False, `type(n)` the number's own type. Programs for other DSLs tell dynamic numbers from
    Python's by that.
    """
    global _own_only
    _own_only = True


def own_classes_only() -> bool:
    """Return True after `show_own_classes`."""
    return _own_only


class Numbers(type):
    """The equality of numeric classes: DSLTypeError where a user compares one with the Python class
    that it stands for, or with an element type of NumPy or PyTorch, which it never is.
    """

    def __eq__(cls, other: object) -> bool:
        if cls is other:
            return True
        if isinstance(other, type) and is_ambiguous(cls, other):
            if not asks_as_library(sys._getframe(1)):
                raise ambiguous(cls, other)
        if _is_array_dtype(other) and not asks_as_library(sys._getframe(1)):
            name = getattr(other, "__name__", None) or str(other)
            raise DSLTypeError(
                f"{cls.__name__} is compared with {name}, the type of another library",
                hint=f"compare with {cls.__name__} itself",
            )
        return NotImplemented

    __hash__ = type.__hash__


def _is_array_dtype(x: Any) -> bool:
    if isinstance(x, np.dtype) or (isinstance(x, type) and issubclass(x, np.generic)):
        return True
    return type(x).__name__ == "dtype" and type(x).__module__ == "torch"


def python_class(T: Any) -> type:
    """Return the class of the Python numbers that a numeric type stands for."""
    if T.kind is Kind.BOOLEAN:
        return bool
    return float if T.kind is Kind.FLOAT else int


def type_of(x: Any) -> type:
    """Return `type(x)` as a user's function means it: of a number of one of the DSL's default
    types, which Python's numbers become, the Python class; of any other number, its own type.
    """
    T = type(x)
    if isinstance(T, Numbers) and is_ambiguous(T, python_class(T)):
        return python_class(T)
    return T


def is_ambiguous(a: type, b: type) -> bool:
    """Return True for a default type of the running trace and the Python class that it stands
    for.
    """
    if _own_only:
        return False
    if not isinstance(a, Numbers):
        a, b = b, a
    if b not in _PYTHON_CLASSES or not isinstance(a, Numbers):
        return False
    T: Any = a
    trace = tracing.current_trace_or_none()
    if trace is None or (b is not bool and T not in (trace.default_int, trace.default_float)):
        return False
    return getattr(T, "kind", None) is not None and b is python_class(T)


def ambiguous(a: type, b: type) -> DSLError:
    """Return the error for comparing a numeric type with the Python class that it stands for."""
    own, python = (a, b) if isinstance(a, Numbers) else (b, a)
    return DSLTypeError(
        f"{own.__name__} is compared with {python.__name__}, which type(x) gives for both",
        hint=f"x.dtype is {own.__name__} asks for the type of a number, isinstance(x, "
        f"{python.__name__}) for its kind",
    )


_PYTHON_CLASSES: frozenset[type] = frozenset((bool, int, float))
