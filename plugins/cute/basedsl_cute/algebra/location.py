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
