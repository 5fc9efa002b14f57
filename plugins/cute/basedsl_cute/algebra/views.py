"""How operations on layouts apply to things that carry a layout.

A *view* is any object with an attribute ``layout`` and a method ``with_layout(new_layout)``, for
example a tensor. Operations that only rearrange a layout accept views and return views. On a
composed layout they act on its outer part, which is the one that holds the domain.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from typing import Any, TypeVar

F = TypeVar("F", bound=Callable[..., Any])


def is_view(x: Any) -> bool:
    """True if ``x`` carries a layout and can be rebuilt with another one."""
    return hasattr(x, "with_layout") and hasattr(x, "layout")


def on_views(operation: F) -> F:
    """Let ``operation(layout, ...)`` take a view or a composed layout as its first argument."""

    first = next(iter(inspect.signature(operation).parameters))

    @functools.wraps(operation)
    def wrapper(*args: Any, **kwargs: Any) -> Any:
        if not args and first in kwargs:
            args = (kwargs.pop(first),)
        x, rest = args[0], args[1:]
        if is_view(x):
            return x.with_layout(wrapper(x.layout, *rest, **kwargs))
        if hasattr(x, "with_outer"):
            return x.with_outer(wrapper(x.outer, *rest, **kwargs))
        return operation(x, *rest, **kwargs)

    return wrapper  # type: ignore[return-value]
