"""The truth of a value, static or dynamic, as `if`, `while`, `and` and `not` ask for it."""

from __future__ import annotations

from types import FunctionType
from typing import Any

from basedsl.errors import DSLTypeError, with_article
from basedsl.numeric import Boolean, Numeric, is_dynamic, logical_not, python_class
from basedsl.tracing import Trace, current_trace_or_none


def asked(value: Any) -> Any:
    """Return what the truth of `value` depends on: `value`, or the dynamic answer of its class.

    Python itself refuses an answer of `__bool__` or `__len__` that is no bool or int.
    """
    if isinstance(value, bool | Numeric) or value is None:
        return value
    method = getattr(type(value), "__bool__", None)
    if isinstance(method, FunctionType):
        answer = method(value)
        if is_dynamic(answer) and not isinstance(answer, Boolean):
            kind = python_class(type(answer)).__name__
            raise TypeError(f"__bool__ should return bool, returned {kind}")
        if not isinstance(answer, bool | Boolean):
            raise TypeError(f"__bool__ should return bool, returned {type(answer).__name__}")
        return answer if is_dynamic(answer) else bool(answer)
    if method is None and isinstance(getattr(type(value), "__len__", None), FunctionType):
        return length(value) != 0
    return value


def length(obj: Any) -> Any:
    """Return `len(obj)`, also where the class's `__len__` gives a dynamic integer."""
    method = getattr(type(obj), "__dsl_len__", None)
    if method is not None:
        return method(obj)
    method = getattr(type(obj), "__len__", None)
    if not isinstance(method, FunctionType):
        return len(obj)
    answer = method(obj)
    if not is_dynamic(answer):
        return len(obj) if not isinstance(answer, int) or answer < 0 else answer
    if not answer.is_integer:
        kind = python_class(type(answer)).__name__
        raise TypeError(f"'{kind}' object cannot be interpreted as an integer")
    trace = current_trace_or_none()
    assert trace is not None
    trace.emitter.assert_(
        (answer >= 0).ir_value(), "ValueError: __len__() should return >= 0", trace.loc()
    )
    return +answer


def staged(value: Any) -> Trace | None:
    """Return the trace if `value` is a dynamic condition in it, else None."""
    return current_trace_or_none() if is_dynamic(value) else None


def truth(value: Any) -> Any:
    """Return `bool(value)` as a bool or a dynamic Boolean."""
    value = asked(value)
    if not is_dynamic(value):
        return bool(value)
    if isinstance(value, Boolean):
        return value
    if isinstance(value, Numeric):
        return value != 0
    method = getattr(type(value), "__dsl_bool__", None)
    if method is None:
        raise DSLTypeError(
            f"{with_article(type(value))} has no truth value",
            hint="compare it, or reduce it to one Boolean",
        )
    return method(value)


def negation(value: Any) -> Any:
    """Return `not value` as a bool or a dynamic Boolean."""
    value = asked(value)
    return not value if staged(value) is None else logical_not(truth(value))


def i1(value: Any) -> Any:
    """Return the truth of a dynamic value as an SSA value of type i1."""
    return truth(value).ir_value()
