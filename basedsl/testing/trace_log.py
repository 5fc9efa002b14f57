"""A record of what tracing saw, which does not make a function trace again."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any


class TraceLog:
    """The values that traced functions have appended, in order.

    A function that appends to a list of its surroundings is traced in every call, as Python would
    append in every call. Appending here is no effect: tests see how often a function was traced,
    and with what.
    """

    __dsl_leaf__ = True
    __slots__ = ("_values",)

    def __init__(self) -> None:
        self._values: list[Any] = []

    def __call__(self, value: Any = None) -> Any:
        """Append a value, and return it."""
        self._values.append(value)
        return value

    append = __call__

    def extend(self, values: Any) -> None:
        """Append several values."""
        self._values.extend(values)

    def clear(self) -> None:
        """Forget all values."""
        self._values.clear()

    def __getitem__(self, index: Any) -> Any:
        return self._values[index]

    def __iter__(self) -> Iterator[Any]:
        return iter(self._values)

    def __len__(self) -> int:
        return len(self._values)

    def __eq__(self, other: object) -> bool:
        return self._values == other

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        return f"TraceLog({self._values!r})"
