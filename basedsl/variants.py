"""The in-memory cache of one function's compilations."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from typing import Any, Generic, Protocol, TypeVar

# The most compilations kept for one key. They differ in their guards; at most one set holds.
MOST_KEPT = 8


class Guarded(Protocol):
    """A compilation, valid while its guards hold."""

    @property
    def guards(self) -> Any: ...


V = TypeVar("V", bound=Guarded)


class Variants(Generic[V]):
    """The compilations of one function, by `BoundCall.key`.

    Hold `lock` from the look-up until the end of a compilation, so that threads do not compile the
    same variant twice.
    """

    def __init__(self) -> None:
        self.lock = threading.RLock()
        self.by_key: dict[Any, list[V]] = {}

    def find(self, key: Any) -> V | None:
        """Return the compilation for `key` whose guards hold; None if there is none."""
        for compiled in self.by_key.get(key, ()):
            if compiled.guards.holds():
                return compiled
        return None

    def keep(self, key: Any, compiled: V) -> V:
        """Add a compilation and return it; more than MOST_KEPT of one key drop the oldest."""
        known = self.by_key.setdefault(key, [])
        known.append(compiled)
        del known[:-MOST_KEPT]
        return compiled

    def __iter__(self) -> Iterator[V]:
        with self.lock:
            return iter([one for kept in self.by_key.values() for one in kept])

    def clear(self) -> None:
        """Drop all compilations."""
        with self.lock:
            self.by_key.clear()
