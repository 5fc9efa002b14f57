"""Operations on layouts, applied to objects that carry a layout."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from typing import Any, TypeVar

F = TypeVar("F", bound=Callable[..., Any])


def is_view(x: Any) -> bool:
    """Return True if ``x`` carries a layout and can be rebuilt with another one."""
    return hasattr(x, "with_layout") and hasattr(x, "layout")


def relaid(x: Any, change: Callable[[Any], Any]) -> Any:
    """Return the view ``x`` with the layout ``change(x.layout)``.

    A view with a method ``relaid`` of its own does it itself.
    """
    own = getattr(x, "relaid", None)
    return x.with_layout(change(x.layout)) if own is None else own(change)


def on_views(operation: F) -> F:
    """Let ``operation(layout, ...)`` take a view or a composed layout as its first argument."""

    first = next(iter(inspect.signature(operation).parameters))

    @functools.wraps(operation)
    def wrapper(*args: Any, **kwargs: Any) -> Any:
        if not args and first in kwargs:
            args = (kwargs.pop(first),)
        x, rest = args[0], args[1:]
        if is_view(x):
            return relaid(x, lambda layout: wrapper(layout, *rest, **kwargs))
        if hasattr(x, "with_outer"):
            return x.with_outer(wrapper(x.outer, *rest, **kwargs))
        return operation(x, *rest, **kwargs)

    return wrapper  # type: ignore[return-value]
