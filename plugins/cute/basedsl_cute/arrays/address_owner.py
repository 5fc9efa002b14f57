"""The array that owns the memory at an address, found among the callers' variables.

An address does not tell the size of the memory behind it. On the simulator it comes from an array
that a variable of the program still refers to, so the callers' variables are searched.
"""

from __future__ import annotations

import ctypes
import sys
from collections.abc import Iterator
from typing import Any

import numpy as np

Range = tuple[int, int]

_DEPTH = 3  # of lists in lists: for each problem of a group, its arrays and what they belong to
_LOWEST_HEAP = 1 << 20  # Linux maps no heap below; indices and counts are mostly smaller


def owner_of(address: int) -> Range | None:
    """The memory (first byte, one past the last) of the array that contains `address`, or None.

    Searched are the variables of all running functions, the elements of lists, tuples and dicts in
    them, and the attributes of objects in them.
    """
    for found in _arrays(sys._getframe(1)):
        if found[0] <= address < found[1]:
            return found
    return None


def owners_of(words: Any) -> list[Range]:
    """The memory of each array of the callers' variables that one of `words`, a NumPy array of
    64-bit integers, points into: what a kernel reaches that reads addresses from memory.
    """
    wanted = np.unique(words[words >= _LOWEST_HEAP])
    if not wanted.size:
        return []
    found: set[Range] = set()
    for low, high in _arrays(sys._getframe(1)):
        i = np.searchsorted(wanted, low)
        if i < wanted.size and wanted[i] < high:
            found.add((low, high))
    return sorted(found)


def _arrays(frame: Any) -> Iterator[Range]:
    """The memory of every array among the variables of `frame` and of its callers."""
    seen: dict[int, Any] = {}  # keeps scopes alive: a new one must not get the id of an old one
    while frame is not None:
        for scope in (frame.f_locals, frame.f_globals):
            for value in _with_parts(scope, seen):
                found = _extent(value)
                if found is not None:
                    yield found
        frame = frame.f_back


def _with_parts(scope: Any, seen: dict[int, Any]) -> Iterator[Any]:
    """The values of a scope, the attributes of each, and the elements of containers in them."""
    if id(scope) in seen:
        return
    seen[id(scope)] = scope
    for value in list(scope.values()):
        yield value
        if isinstance(value, list | tuple | dict):
            yield from _elements(value, _DEPTH)
        elif isinstance(getattr(value, "__dict__", None), dict):
            yield from list(vars(value).values())


def _elements(container: Any, depth: int) -> Iterator[Any]:
    """The elements of a list, tuple or dict, and those of such containers in it, `depth` deep."""
    for value in list(container.values() if isinstance(container, dict) else container):
        yield value
        if depth > 1 and isinstance(value, list | tuple | dict):
            yield from _elements(value, depth - 1)


def _extent(value: Any) -> Range | None:
    """The memory of a NumPy array, a tensor of PyTorch on the CPU or a ctypes array."""
    if isinstance(value, type):  # a class has the names of its objects' attributes
        return None
    module = type(value).__module__.partition(".")[0]
    if module == "numpy" and hasattr(value, "__array_interface__") and hasattr(value, "base"):
        while type(value.base) is type(value):
            value = value.base
        low = int(value.__array_interface__["data"][0])
        return low, low + int(value.nbytes)
    if module == "torch" and hasattr(value, "untyped_storage") and not value.is_cuda:
        storage = value.untyped_storage()
        return storage.data_ptr(), storage.data_ptr() + storage.nbytes()
    if isinstance(value, ctypes.Array):
        low = ctypes.addressof(value)
        return low, low + ctypes.sizeof(value)
    return None
