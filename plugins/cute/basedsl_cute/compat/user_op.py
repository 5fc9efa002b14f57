"""`dsl_user_op`: a decorator for helpers that emit operations at the line of their caller."""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Callable
from typing import Any

from basedsl import current_trace_or_none


def dsl_user_op(fn: Callable[..., Any]) -> Callable[..., Any]:
    """Decorate the helper `fn`, which has keyword parameters `loc=None, ip=None`, to get the call's
    location.

    While a function is being compiled, `loc` is the MLIR location of the call, unless it is given.
    `type(x)` of a number of run time is its class, such as Float32: such helpers choose by it.
    """
    with contextlib.suppress(AttributeError):  # not of every callable
        fn.__knows_numbers__ = True  # type: ignore[attr-defined]

    @functools.wraps(fn)
    def call(*args: Any, **kwargs: Any) -> Any:
        trace = current_trace_or_none()
        if trace is not None and kwargs.get("loc") is None:
            kwargs["loc"] = trace.loc()
        return fn(*args, **kwargs)

    return call
