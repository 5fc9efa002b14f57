"""Contents of the standard library's mutable objects: deques, views of dicts, weak references,
variables of threads and contexts, queues, texts, random numbers, iterators.
"""

from __future__ import annotations

import collections
import contextvars
import io
import queue
import random
import threading
import types
import weakref
from collections.abc import Callable
from typing import Any

from basedsl.metastage.iterators import is_iterator, position
from basedsl.staleness.guard_kinds import MISSING

_READERS: tuple[tuple[Any, Callable[[Any], Any]], ...] = (
    (collections.deque, tuple),
    (types.MappingProxyType, lambda view: tuple(view.items())),
    (collections.ChainMap, lambda chain: tuple(chain.maps)),
    ((collections.UserDict, collections.UserList, collections.UserString), lambda it: (it.data,)),
    (weakref.ref, lambda reference: (reference(),)),
    (contextvars.ContextVar, lambda variable: (variable.get(MISSING),)),
    (threading.local, lambda local: tuple(sorted(vars(local).items()))),
    (random.SystemRandom, lambda source: ()),  # it has no state
    (random.Random, lambda source: (source.getstate(),)),
    ((io.StringIO, io.BytesIO), lambda text: (text.getvalue(), text.tell())),
    (queue.Queue, lambda waiting: tuple(waiting.queue)),
    (queue.SimpleQueue, lambda waiting: (waiting.qsize(),)),
)


def contents_reader(value: Any) -> Callable[[], Any] | None:
    """A function that returns the contents of `value` as a tuple; None for other classes."""
    for kinds, read in _READERS:
        if isinstance(value, kinds):
            return lambda: read(value)
    if is_iterator(value):
        return lambda: (position(value),)
    # NumPy's sources of random numbers
    if type(value).__module__.startswith("numpy.random."):
        bits = getattr(value, "bit_generator", None) or getattr(value, "_bit_generator", value)
        if isinstance(getattr(bits, "state", None), dict):
            return lambda: (repr(bits.state),)
    # PyTorch counts the changes of a tensor in place.
    if hasattr(type(value), "_version") and hasattr(type(value), "data_ptr"):
        return lambda: (value._version, value.data_ptr())
    return None
