"""Contents of the standard library's mutable objects: deques, views of dicts, weak references,
variables of threads and contexts.
"""

from __future__ import annotations

import collections
import contextvars
import threading
import types
import weakref
from collections.abc import Callable
from typing import Any

from basedsl.staleness.guard_kinds import MISSING

_READERS: tuple[tuple[Any, Callable[[Any], Any]], ...] = (
    (collections.deque, tuple),
    (types.MappingProxyType, lambda view: tuple(view.items())),
    (collections.ChainMap, lambda chain: tuple(chain.maps)),
    ((collections.UserDict, collections.UserList, collections.UserString), lambda it: (it.data,)),
    (weakref.ref, lambda reference: (reference(),)),
    (contextvars.ContextVar, lambda variable: (variable.get(MISSING),)),
    (threading.local, lambda local: tuple(sorted(vars(local).items()))),
)


def contents_reader(value: Any) -> Callable[[], Any] | None:
    """A function that returns the contents of `value` as a tuple; None for other classes."""
    for kinds, read in _READERS:
        if isinstance(value, kinds):
            return lambda: read(value)
    # PyTorch counts the changes of a tensor in place.
    if hasattr(type(value), "_version") and hasattr(type(value), "data_ptr"):
        return lambda: (value._version, value.data_ptr())
    return None
