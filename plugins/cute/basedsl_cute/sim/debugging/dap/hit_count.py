"""Conditions on how often a breakpoint has been reached, in debugpy's form: `5`, `>= 5`, `% 5`."""

from __future__ import annotations

import operator
import re
from collections.abc import Callable

_OPERATORS: dict[str, Callable[[int, int], bool]] = {
    "": operator.eq,
    "==": operator.eq,
    ">": operator.gt,
    ">=": operator.ge,
    "<": operator.lt,
    "<=": operator.le,
    "%": lambda hits, number: hits % number == 0,
}


def hit_count(text: str) -> Callable[[int], bool]:
    """Return the condition on the number of hits, of which the first is 1. Raises ValueError."""
    found = re.fullmatch(r"\s*([<>=]=|[<>%]|)\s*(\d+)\s*", text)
    if found is None or found[1] not in _OPERATORS or (found[1] == "%" and int(found[2]) == 0):
        raise ValueError(f"a hit count is a number, or one after {' '.join(_OPERATORS)[1:]}")
    compare, number = _OPERATORS[found[1]], int(found[2])
    return lambda hits: compare(hits, number)
