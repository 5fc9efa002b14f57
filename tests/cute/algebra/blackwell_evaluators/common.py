"""The table of evaluators, and what they share."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

from basedsl_cute import algebra as cute

Args = dict[str, Any]
EVALUATORS: dict[str, Callable[[Args], Any]] = {}

LAYOUT_TYPES = {
    0: "SWIZZLE_NONE", 1: "SWIZZLE_128B_BASE32B", 2: "SWIZZLE_128B", 4: "SWIZZLE_64B",
    6: "SWIZZLE_32B",
}  # fmt: skip


def op(*names: str) -> Callable[[Callable[[Args], Any]], Callable[[Args], Any]]:
    def register(f: Callable[[Args], Any]) -> Callable[[Args], Any]:
        for name in names:
            EVALUATORS[name] = f
        return f

    return register


def arguments(record: dict[str, Any]) -> Args:
    """The arguments, those in CuTe's notation parsed."""

    def read(value: Any) -> Any:
        if isinstance(value, str) and re.match(r"\(|\d+:", value):
            return cute.parse(value)
        return value

    return {key: read(value) for key, value in record["args"].items()}
