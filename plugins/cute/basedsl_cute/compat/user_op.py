"""`dsl_user_op`: a helper that emits operations at its caller's line."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from basedsl.tracing import current


def dsl_user_op(fn: Callable[..., Any]) -> Callable[..., Any]:
    """Decorator of helpers with keyword-only `loc=None, ip=None`: where a function is being
    compiled, `loc` is the location of the call unless given.
    """

    @functools.wraps(fn)
    def call(*args: Any, **kwargs: Any) -> Any:
        trace = current()
        if trace is not None and kwargs.get("loc") is None:
            kwargs["loc"] = trace.loc()
        return fn(*args, **kwargs)

    return call
