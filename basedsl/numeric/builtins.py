"""Python's builtins and math functions for dynamic values."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

_REPLACEMENTS: dict[Any, Callable[..., Any]] = {}


def resolve(f: Any) -> Any:
    """What to call instead of `f` in traced code: a function that takes dynamic values, or `f`."""
    try:
        return _REPLACEMENTS.get(f, f)
    except TypeError:  # not hashable
        return f
