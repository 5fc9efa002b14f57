"""The base class of the value types here: objects that never change, so that they may be hashed."""

from __future__ import annotations

from typing import Any


class Frozen:
    """A class whose attributes are set once, by `_set` in the constructor."""

    __slots__ = ()

    def _set(self, **values: Any) -> None:
        for name, value in values.items():
            object.__setattr__(self, name, value)

    def __setattr__(self, name: str, value: Any) -> None:
        raise AttributeError(f"{type(self).__name__} is immutable; cannot set {name!r}")

    def __delattr__(self, name: str) -> None:
        raise AttributeError(f"{type(self).__name__} is immutable; cannot delete {name!r}")
