"""`loc=` and `ip=`: what programs written for CuTe's DSL may pass to any operation.

They name an MLIR location and an insertion point. Layouts are computed while tracing and are no
operations, so both mean nothing here, and are taken everywhere.
"""

from __future__ import annotations

import functools
import types
from collections.abc import Callable
from typing import Any


def taking_location(function: Callable[..., Any]) -> Callable[..., Any]:
    """``function`` with the keyword arguments ``loc`` and ``ip``, which are ignored."""

    @functools.wraps(function)
    def call(*args: Any, loc: Any = None, ip: Any = None, **kwargs: Any) -> Any:
        return function(*args, **kwargs)

    return call


def take_location_everywhere(names: dict[str, Any], public: list[str]) -> None:
    """Replace the public functions of a module's ``names`` by such that take ``loc`` and ``ip``."""
    for name in public:
        found = names[name]
        if isinstance(found, types.FunctionType) and "loc" not in (found.__kwdefaults__ or ()):
            names[name] = taking_location(found)


def methods_take_location(*classes: type) -> None:
    """Have the public methods of classes take ``loc`` and ``ip``, those of their bases too."""
    for cls in {base: None for one in classes for base in one.__mro__}:
        if cls.__module__.partition(".")[0] != __name__.partition(".")[0]:
            continue
        for name, found in list(vars(cls).items()):
            if name.startswith("_"):
                continue
            inner = found.__func__ if isinstance(found, classmethod | staticmethod) else found
            if not isinstance(inner, types.FunctionType) or "loc" in (inner.__kwdefaults__ or ()):
                continue
            made: Any = taking_location(inner)
            if isinstance(found, classmethod | staticmethod):
                made = type(found)(made)
            setattr(cls, name, made)
