"""Raises Python's recursion limit while a deeply nested program is rewritten and traced.

A branch in a branch, an operand of an operand, take several Python calls each. They take no C stack
(from Python 3.11 on), so the limit can be higher than its default, which protects that. It is one
for all threads; the first to come raises it, the last to go puts it back.
"""

from __future__ import annotations

import contextlib
import sys
import threading
from collections.abc import Iterator

LIMIT = 4000

_lock = threading.Lock()
_inside = 0
_before = 0


@contextlib.contextmanager
def deeper() -> Iterator[None]:
    """Allow at least `LIMIT` nested calls inside the `with`."""
    global _inside, _before
    with _lock:
        if _inside == 0:
            _before = sys.getrecursionlimit()
            sys.setrecursionlimit(max(_before, LIMIT))
        _inside += 1
    try:
        yield
    finally:
        with _lock:
            _inside -= 1
            # Another limit is the program's, which has set it meanwhile.
            if _inside == 0 and sys.getrecursionlimit() == max(_before, LIMIT):
                with contextlib.suppress(RecursionError):  # the caller is deeper than that already
                    sys.setrecursionlimit(_before)


@contextlib.contextmanager
def room(calls: int = 500) -> Iterator[None]:
    """Allow that many more nested calls inside the `with`, for code that must not stop halfway."""
    _grow(calls)  # raises where not even this call is allowed
    try:
        yield
    finally:
        with _lock:
            sys.setrecursionlimit(sys.getrecursionlimit() - calls)


def _grow(calls: int) -> None:
    with _lock:
        sys.setrecursionlimit(sys.getrecursionlimit() + calls)
