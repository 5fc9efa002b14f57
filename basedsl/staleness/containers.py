"""Contents of the standard library's mutable objects: deques, views of dicts, weak references,
variables of threads and contexts, queues, texts, random numbers, iterators.
"""

from __future__ import annotations

import collections
import contextvars
import io
import random
import sys
import threading
import types
import weakref
from collections.abc import Callable, Iterator
from typing import Any

from basedsl.loaded_classes import loaded_classes
from basedsl.metastage.iterators import is_iterator, position
from basedsl.staleness.guard_kinds import MISSING
from basedsl.staleness.readers import cell_content

_READERS: tuple[tuple[Any, Callable[[Any], Any]], ...] = (
    (collections.deque, tuple),
    (types.MappingProxyType, lambda view: tuple(view.items())),
    (collections.ChainMap, lambda chain: tuple(chain.maps)),
    ((collections.UserDict, collections.UserList, collections.UserString), lambda it: (it.data,)),
    (weakref.ref, lambda reference: (reference(),)),
    (contextvars.ContextVar, lambda variable: (variable.get(MISSING),)),
    (threading.local, lambda local: tuple(sorted(vars(local).items()))),
    (types.CellType, lambda cell: (cell_content(cell),)),
    (random.SystemRandom, lambda source: ()),  # it has no state
    (random.Random, lambda source: (source.getstate(),)),
    ((io.StringIO, io.BytesIO), lambda text: (text.getvalue(), text.tell())),
    (io.IOBase, lambda file: _position_of_file(file)),
    (type(threading.Lock()), lambda lock: (lock.locked(),)),
    (type(threading.RLock()), lambda lock: (repr(lock),)),  # which says how often it is held
)
_READERS_BY_NAME: tuple[tuple[str, Callable[[Any], Any]], ...] = (
    ("logging.Logger", lambda logger: _state_of_logger(logger)),
    ("queue.Queue", lambda waiting: tuple(waiting.queue)),
    ("_queue.SimpleQueue", lambda waiting: (waiting.qsize(),)),
)


def _loaded_readers() -> Iterator[tuple[Any, Callable[[Any], Any]]]:
    for name, read in _READERS_BY_NAME:
        yield loaded_classes(name), read


def _state_of_logger(logger: Any) -> tuple[Any, ...]:
    """Return what decides which messages a logger writes; its handlers by their ids."""
    levels = logger.level, logger.getEffectiveLevel(), logger.manager.disable
    return *levels, logger.disabled, logger.propagate, *map(id, logger.handlers + logger.filters)


def _position_of_file(file: Any) -> tuple[Any, ...]:
    """Return where a file is read or written; the same for what a program prints to."""
    printed_to = sys.stdout, sys.stderr, sys.__stdout__, sys.__stderr__
    if file.closed or any(file is one for one in printed_to):
        return (file.closed,)
    try:
        return (False, file.tell())
    except OSError:
        return (False,)


def contents_reader(value: Any) -> Callable[[], Any] | None:
    """A function that returns the contents of `value` as a tuple; None for other classes."""
    for kinds, read in (*_READERS, *_loaded_readers()):
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
