"""The compilations of one function that this process has."""

from __future__ import annotations

import threading
from typing import Any, Generic, Protocol, TypeVar

# How many compilations for the same key are kept, of which at most one holds.
MOST_KEPT = 8


class Guarded(Protocol):
    """A compilation, valid while its guards hold."""

    @property
    def guards(self) -> Any: ...


V = TypeVar("V", bound=Guarded)


class Variants(Generic[V]):
    """The compilations of one function, by the key of the calls that they are for.

    Hold `lock` from the look-up until the end of a compilation, so that threads do not compile the
    same variant twice.
    """

    def __init__(self) -> None:
        self.lock = threading.RLock()
        self.by_key: dict[Any, list[V]] = {}

    def find(self, key: Any) -> V | None:
        """The compilation for `key` whose guards hold."""
        for compiled in self.by_key.get(key, ()):
            if compiled.guards.holds():
                return compiled
        return None

    def keep(self, key: Any, compiled: V) -> V:
        """Remember a compilation, and forget the oldest of many for the same key."""
        known = self.by_key.setdefault(key, [])
        known.append(compiled)
        del known[:-MOST_KEPT]
        return compiled

    def clear(self) -> None:
        """Forget all compilations."""
        with self.lock:
            self.by_key.clear()
