"""Values as variables of the protocol: a line of text, with children for those that have parts."""

from __future__ import annotations

from typing import Any

import numpy as np

from basedsl_cute.sim.debugging.dap.messages import Message
from basedsl_cute.sim.debugging.values import Text

_MOST_SHOWN = 16  # elements of an array in its line


class ShownValues:
    """The values with parts that an editor has been told of, by number. They hold for one stop."""

    def __init__(self) -> None:
        self._parts: list[list[tuple[str, Any]]] = []

    def hold(self, parts: list[tuple[str, Any]]) -> int:
        """Return the number under which an editor asks for named values; 0 for none of them."""
        if not parts:
            return 0
        self._parts.append(parts)
        return len(self._parts)

    def variable(self, name: str, value: Any) -> Message:
        """Describe a value."""
        parts = _parts(value)
        shown = {"name": name, "value": text(value), "type": _type(value)}
        count = {"indexedVariables": len(parts)} if isinstance(value, np.ndarray | list) else {}
        return {**shown, "variablesReference": self.hold(parts), **count}

    def variables(self, number: int, start: int = 0, count: int = 0) -> list[Message]:
        """Describe `count` values from `start` of those held as `number`, all for 0. Raises
        IndexError for what is not held.
        """
        if number < 1:
            raise IndexError(number)
        parts = self._parts[number - 1]
        return [self.variable(*part) for part in parts[start : start + count if count else None]]


def text(value: Any) -> str:
    """A value in one line."""
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, np.ndarray):
        shown = np.array2string(value, threshold=_MOST_SHOWN, edgeitems=2, precision=5)
        return f"{value.dtype} {value.shape} {' '.join(shown.split())}"
    return f"{value:.6g}" if isinstance(value, float) else repr(value)


def _type(value: Any) -> str:
    if isinstance(value, np.ndarray | np.generic):
        return str(value.dtype)
    return "" if isinstance(value, Text) else type(value).__name__


def _parts(value: Any) -> list[tuple[str, Any]]:
    if isinstance(value, list | tuple) or (isinstance(value, np.ndarray) and value.ndim):
        return [(f"[{i}]", part) for i, part in enumerate(value)]
    if isinstance(value, dict):
        return [(repr(key), part) for key, part in value.items()]
    return []
