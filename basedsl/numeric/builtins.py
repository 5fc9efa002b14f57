"""Python's builtins and math functions for dynamic values: one table from function to function.

A function of the table calls the original unless a numeric value is among its arguments. Builtins
that call a method of their argument (abs, divmod, pow, round, sum, math.floor, math.ceil,
math.trunc, math.prod) need no row: the classes have the methods.
"""

from __future__ import annotations

import builtins
import functools
import math
import operator
from collections.abc import Callable, Iterable
from typing import Any

import numpy as np

from basedsl.errors import DSLError, DSLTypeError
from basedsl.numeric import mathematics, rounding
from basedsl.numeric.number import Numeric, is_dynamic
from basedsl.numeric.promotion import defaults
from basedsl.numeric.selection import maximum, minimum, select
from basedsl.numeric.types import Boolean
from basedsl.tracing import trace as tracing

Function = Callable[..., Any]


# Conversions ----------------------------------------------------------------------------------


def int_(*args: Any, **kwargs: Any) -> Any:
    """`int(x)`: the DSL's default int, which holds differences of bytes; a wider one stays."""
    if len(args) != 1 or kwargs or not is_dynamic(args[0]):
        return builtins.int(*args, **kwargs)
    whole, T = rounding.trunc(args[0]), defaults().int
    return whole.to(T) if whole.width < T.width else whole


def float_(*args: Any) -> Any:
    """`float(x)`: a float stays itself, an integer becomes the DSL's default float."""
    if len(args) != 1 or not is_dynamic(args[0]):
        return builtins.float(*args)
    (x,) = args
    return x if x.is_float and x.format.arithmetic else x.to(defaults().float)


def bool_(*args: Any) -> Any:
    """`bool(x)`: True for everything but zero."""
    if len(args) != 1 or not is_dynamic(args[0]):
        return builtins.bool(*args)
    return args[0].to(Boolean)


# Over several values --------------------------------------------------------------------------


def max_(*args: Any, key: Function | None = None, **kwargs: Any) -> Any:
    """`max(...)` of arguments or one iterable, compared by `key`; numbers promote to one type."""
    return _extreme(builtins.max, args, key, kwargs)


def min_(*args: Any, key: Function | None = None, **kwargs: Any) -> Any:
    """`min(...)` of arguments or one iterable, compared by `key`; numbers promote to one type."""
    return _extreme(builtins.min, args, key, kwargs)


def _extreme(original: Any, args: Any, key: Function | None, kwargs: Any) -> Any:
    if len(args) == 1 and isinstance(args[0], Iterable):
        items = list(args[0])
        args = (items,)
    else:
        items = list(args)
    keys = items if key is None else [key(x) for x in items]
    if not any(isinstance(k, Numeric) for k in keys):
        return original(*args, key=key, **kwargs)
    if key is not None or any(_compares_itself(x) for x in items):
        return _extreme_by_key(original, items, keys)
    pick = maximum if original is builtins.max else minimum
    result = items[0]
    for x in items[1:]:
        result = pick(result, x)
    return result


def _compares_itself(x: Any) -> bool:
    """True for an int or float of a class with an order of its own."""
    if not isinstance(x, (builtins.int, builtins.float)) or isinstance(x, np.generic):
        return False
    of, base = type(x), builtins.int if isinstance(x, builtins.int) else builtins.float
    return (of.__lt__, of.__gt__) != (base.__lt__, base.__gt__)


def _extreme_by_key(original: Any, items: list[Any], keys: list[Any]) -> Any:
    better = operator.gt if original is builtins.max else operator.lt
    best, best_key = items[0], keys[0]
    for x, k in zip(items[1:], keys[1:], strict=True):
        wins = better(k, best_key)
        best = select(wins, x, best)
        best_key = select(wins, k, best_key)
    return best


def any_(items: Iterable[Any]) -> Any:
    """`any(items)` over a sequence of known length; stops at a value known to be true."""
    result: Any = False
    later: _LaterArguments | None = None
    for x in items:
        if later is not None:
            later.check()
        truth = bool_(x)
        if truth is True:
            return True
        if truth is not False:
            result = truth if result is False else result | truth
            later = later or _LaterArguments("any")
    return result


def all_(items: Iterable[Any]) -> Any:
    """`all(items)` over a sequence of known length; stops at a value known to be false."""
    result: Any = True
    later: _LaterArguments | None = None
    for x in items:
        if later is not None:
            later.check()
        truth = bool_(x)
        if truth is False:
            return False
        if truth is not True:
            result = truth if result is True else result & truth
            later = later or _LaterArguments("all")
    return result


class _LaterArguments:
    """The items after one of run time, which Python may not compute: they must have no effect."""

    def __init__(self, function: str) -> None:
        self._function = function
        trace = tracing.current_trace_or_none()
        self._outside = None if trace is None else trace.outside
        self._marks = None if self._outside is None else self._outside.mark(())

    def check(self) -> None:
        """Raise a DSLError if one of them has changed what outlives the call."""
        path = None if self._outside is None else self._outside.changed_since(self._marks)
        if path is not None:
            raise DSLError(
                f"'{path}' is changed by a later item of {self._function}()",
                notes=(("Python stops at the first item that decides", None),),
                hint="write a loop, `or` or `and`",
            )


# The table ------------------------------------------------------------------------------------


def _for_numerics(original: Function, function: Function) -> Function:
    """Return a function that calls `function` if a numeric value is among the arguments, else
    `original`.
    """

    @functools.wraps(original)
    def choose(*args: Any, **kwargs: Any) -> Any:
        if _has_numeric(args):
            return function(*args, **kwargs)
        return original(*args, **kwargs)

    return choose


def _has_numeric(args: Any) -> bool:
    return builtins.any(
        isinstance(x, Numeric) or (isinstance(x, (list, tuple)) and _has_numeric(x)) for x in args
    )


def _refuse(original: Function) -> Function:
    name = f"math.{original.__name__}"

    def refuse(*args: Any, **kwargs: Any) -> Any:
        if builtins.any(is_dynamic(x) for x in args):
            raise DSLTypeError(
                f"{name} cannot be computed of a value that is known only at run time",
                hint="the math functions that can: " + ", ".join(_COMPUTED),
            )
        return original(*args, **kwargs)

    return refuse


_BY_METHOD = (math.floor, math.ceil, math.trunc, math.prod)
_MATH = mathematics.functions()
_COMPUTED = sorted(f.__name__ for f in (*_MATH, *_BY_METHOD))

_REPLACEMENTS: dict[Any, Function] = {
    builtins.int: int_,
    builtins.float: float_,
    builtins.bool: bool_,
    builtins.max: max_,
    builtins.min: min_,
    builtins.any: any_,
    builtins.all: all_,
    **{f: _for_numerics(f, function) for f, function in _MATH.items()},
    **{
        f: _refuse(f)
        for f in vars(math).values()
        if callable(f) and f not in _MATH and f not in _BY_METHOD and not isinstance(f, type)
    },
}


def resolve(f: Any) -> Any:
    """Return the version of the callable `f` for traced code, which takes dynamic values, or `f`
    itself.

        resolve(math.sin)(x)            # emits math.sin if `x` is dynamic
    """
    try:
        return _REPLACEMENTS.get(f, f)
    except TypeError:  # not hashable
        return f
