"""Positions of iterators, to notice that a staged construct advances one made outside of it.

Advancing would happen once, while compiling, however often the construct runs; and an iterator
cannot be set back, to trace the other side of a branch or a loop body once more.
"""

from __future__ import annotations

import warnings
from types import GeneratorType
from typing import Any

_SIMPLE = (int, str, range, type(None))


def is_iterator(value: Any) -> bool:
    """Return True for an iterator that is not an ordinary object of the program, and of which
    Python tells the position. Others, as `csv.reader` makes, are objects that nobody can read.
    """
    cls: Any = type(value)
    return (
        hasattr(cls, "__next__")
        and (cls is GeneratorType or cls.__reduce__ is not object.__reduce__)
        and not hasattr(value, "__dict__")
    )


def position(iterator: Any, depth: int = 4) -> Any:
    """Return a value that stays equal as long as `iterator` is not advanced."""
    if depth == 0:
        return None
    if isinstance(iterator, GeneratorType):
        frame = iterator.gi_frame
        if frame is None:
            return "ended"
        held = tuple((k, _mark(v, depth)) for k, v in frame.f_locals.items())
        return frame.f_lasti, held, _mark(iterator.gi_yieldfrom, depth)
    parts = reduced(iterator)
    return tuple(_mark(part, depth) for part in parts) if parts else None


def reduced(iterator: Any) -> tuple[Any, ...]:
    """Return the arguments and the state of which pickling would make an iterator; () for a file
    or an iterator of a library, which may be anywhere.
    """
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # itertools' are deprecated from Python 3.12
        try:
            parts = iterator.__reduce__()
        except TypeError:
            return ()
    return tuple(parts[1:]) if isinstance(parts, tuple) else ()


def _mark(value: Any, depth: int) -> Any:
    if is_iterator(value):
        return position(value, depth - 1)
    if isinstance(value, tuple):
        return tuple(_mark(part, depth) for part in value)
    if isinstance(value, list):  # a dict's iterator reduces to a new list of the remaining items
        return len(value)
    return value if isinstance(value, _SIMPLE) else id(value)
