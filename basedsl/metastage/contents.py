"""Contents of objects that captured code cannot carry: arrays, objects of libraries, attributes of
subclasses of built-in classes.

A branch or loop body is traced a fixed number of times, whatever the run time does. It may read
such an object, but not change it. Whether it did is seen by comparing all that the object leads to
before and after. An object that cannot be read in this way (a lock, a file) is *opaque*: captured
code that names it is refused, for nobody could tell what a call of it did.
"""

from __future__ import annotations

import ctypes
import datetime
import enum
import functools
import logging
import operator
import pathlib
import random
import re
import sys
import types
import typing
import weakref
from collections import deque, namedtuple
from collections.abc import Callable
from typing import Any, TypeVar

import numpy as np

from basedsl.loaded_classes import loaded_classes
from basedsl.location import file_of_module, is_internal
from basedsl.metastage.iterators import is_iterator, position

_PLAIN = (int, float, complex, str, bytes, bool, type(None))
_IMMUTABLE = (
    *_PLAIN,
    *(type, types.ModuleType, types.CodeType, types.GenericAlias, types.UnionType),
    *(type(...), type(NotImplemented), enum.Enum, range, slice, np.dtype, np.generic, np.ufunc),
    *(re.Pattern, re.Match, pathlib.PurePath),
    *(datetime.date, datetime.time, datetime.timedelta, datetime.tzinfo, weakref.ref),
    *(operator.itemgetter, operator.attrgetter, operator.methodcaller, np.finfo, np.iinfo),
    *(types.WrapperDescriptorType, types.MethodDescriptorType),
    *(types.GetSetDescriptorType, types.MemberDescriptorType, types.ClassMethodDescriptorType),
    *(typing.TypeVar, functools._lru_cache_wrapper, type(vars(namedtuple("_", "x"))["x"])),
)
_IMMUTABLE_NAMES = ("decimal.Decimal", "fractions.Fraction", "uuid.UUID")
_VIEWS: tuple[Any, ...] = (type({}.keys()), type({}.values()), type({}.items()))
# Their effects leave nothing to compare.
_OPAQUE = (
    random.SystemRandom,
    logging.Logger,
    logging.LoggerAdapter,
    logging.Handler,
    ctypes._Pointer,
)
_MOST = 20000  # objects that one object may lead to; it counts as opaque if it leads to more

_OPAQUE_MARK = object()
#: The parts of an object that a `Contents` can be limited to.
ALL, ATTRIBUTES, STORAGE = "all", "attributes", "storage"


R = TypeVar("R")


def _by_class(function: Callable[[Any], R]) -> Callable[[Any], R]:
    """Decorator: remember the result for each class."""
    return functools.cache(function)


_BOUND = (types.BuiltinFunctionType, types.MethodWrapperType)
_FOLLOWED = (types.FunctionType, types.MethodType, types.CellType)


def _immutable() -> tuple[Any, ...]:
    return _IMMUTABLE + loaded_classes(*_IMMUTABLE_NAMES)


@_by_class
def _is_constant(cls: Any) -> bool:
    """Return True if objects of a class cannot change, or are the DSL's own affair."""
    if is_opaque_class(cls):  # ctypes names the module that first asked for a class of pointers
        return False
    if issubclass(cls, _immutable()):
        return cls.__dictoffset__ == 0 or issubclass(cls, (type, enum.Enum, types.ModuleType))
    return cls in _FOLLOWED or _is_dsl(cls)


@_by_class
def _is_dsl(cls: Any) -> bool:
    if hasattr(cls, "ir_value") or cls.__module__ == "typing":
        return True
    if cls.__module__.partition(".")[0] in sys.stdlib_module_names:
        return False
    return is_internal(file_of_module(sys.modules.get(cls.__module__)))


def may_change(leaf: Any) -> bool:
    """Return True for a leaf whose contents captured code could change. Iterators have their own
    check.
    """
    if isinstance(leaf, _BOUND):
        return not isinstance(leaf.__self__, types.ModuleType | type | None)
    return not _is_constant(type(leaf)) and not is_iterator(leaf)


def is_opaque_class(cls: Any) -> bool:
    """Return True for a class whose objects cannot be read, whatever they hold."""
    return issubclass(cls, _OPAQUE)


def has_attributes(place: Any) -> bool:
    """Return True for an object of a subclass of a built-in container with attributes."""
    return type(place) not in _CONTAINERS and (
        type(place).__dictoffset__ != 0 or bool(_slots(type(place)))
    )


@_by_class
def has_storage(cls: Any) -> bool:
    """Return True if objects of a class hold more than attributes: a base is written in C."""
    plain = object.__basicsize__ + 16  # with a dict and weak references
    return bool(cls.__itemsize__ or cls.__basicsize__ > plain + 8 * len(_slots(cls)))


_CONTAINERS = frozenset({tuple, list, dict, set, frozenset, deque, bytearray})


class Contents:
    """All that an object leads to, or one part of it, at one moment; `is_opaque` if the object
    cannot be read.
    """

    __slots__ = ("_found", "_seen", "is_opaque")

    def __init__(self, obj: Any, part: str = ALL) -> None:
        self._found: list[Any] = []
        self._seen: dict[int, Any] = {}
        if part == ALL:
            self._follow(obj)
        elif part == ATTRIBUTES:
            self._attributes(obj)
        elif not self._buffer(obj):
            self._reduced(obj, with_attributes=False)
        self.is_opaque = len(self._found) > _MOST or (
            len(self._found) == 2 and self._found[0] is _OPAQUE_MARK
        )

    @property
    def found(self) -> tuple[Any, ...]:
        """The classes, lengths, plain values and constants that were found, in order."""
        return tuple(self._found)

    def same_as(self, other: Contents) -> bool:
        """Return True if nothing has changed between two moments."""
        return len(self._found) == len(other._found) and all(map(_same, self._found, other._found))

    def _follow(self, obj: Any) -> None:
        cls = type(obj)
        if len(self._found) > _MOST:
            return
        if cls in _PLAIN or id(obj) in self._seen:
            self._found.append(obj)
            return
        self._seen[id(obj)] = obj
        if isinstance(obj, (*_BOUND, types.MethodType)):
            owner = getattr(obj, "__self__", None)
            self._found.append(obj)
            if not isinstance(owner, types.ModuleType | type | None):
                self._follow(owner)
        elif isinstance(obj, types.FunctionType):
            self._found.append(obj)
            for cell in obj.__closure__ or ():
                self._cell(cell)
        elif isinstance(obj, _OPAQUE):
            self._found += (_OPAQUE_MARK, obj)
        elif _is_constant(cls):
            self._found.append(obj)
        elif isinstance(obj, _immutable()):
            self._found.append(obj)
            self._attributes(obj)
        else:
            self._mutable(obj)

    def _mutable(self, obj: Any) -> None:
        start = len(self._found)
        self._found.append(type(obj))
        if isinstance(obj, tuple | list | deque):
            self._items(list(obj))
        elif isinstance(obj, dict):
            self._items([part for pair in dict.items(obj) for part in pair])
        elif isinstance(obj, set | frozenset):
            self._items(sorted(obj, key=id))
        elif isinstance(obj, types.MappingProxyType):
            self._items([part for pair in obj.items() for part in pair])
        elif isinstance(obj, _VIEWS):
            self._items(list(obj))
        elif is_iterator(obj):
            self._found.append(("at", position(obj)))
        elif hasattr(type(obj), "_version") and hasattr(type(obj), "data_ptr"):
            self._found += (obj._version, obj.data_ptr())
            return
        elif not self._buffer(obj) and not self._has_attributes(obj) and not self._reduced(obj):
            del self._found[start:]
            self._found += (_OPAQUE_MARK, obj)
            return
        self._attributes(obj)

    def _items(self, items: list[Any]) -> None:
        self._found.append(len(items))
        for item in items:
            self._follow(item)

    def _cell(self, cell: types.CellType) -> None:
        try:
            self._follow(cell.cell_contents)
        except ValueError:
            self._found.append(None)

    def _buffer(self, obj: Any) -> bool:
        if isinstance(obj, np.ndarray) and obj.dtype.hasobject:
            self._items(obj.ravel().tolist())
            return True
        try:
            view = memoryview(obj)
        except (TypeError, ValueError, BufferError):
            return False
        with view:
            self._found += (view.format, view.shape, view.tobytes())
        return True

    def _has_attributes(self, obj: Any) -> bool:
        """Return True if attributes are all that an object has, as of a class written in Python."""
        cls = type(obj)
        return not has_storage(cls) and (cls.__dictoffset__ != 0 or bool(_slots(cls)))

    def _attributes(self, obj: Any) -> None:
        table = getattr(obj, "__dict__", None)
        if type(table) is dict:
            self._items([part for pair in table.items() for part in pair])
        for slot in _slots(type(obj)):
            try:
                self._follow(slot.__get__(obj))
            except AttributeError:
                self._found.append(None)

    def _reduced(self, obj: Any, *, with_attributes: bool = True) -> bool:
        """Follow what pickling would take of an object of a library."""
        getattr(obj, "__dict__", None)  # a partial makes its dict when asked, and pickles it then
        try:
            parts = obj.__reduce_ex__(4)
        except Exception:  # user code may raise anything: then the object counts as opaque
            return False
        if not isinstance(parts, tuple):
            return False
        for part in parts[1:]:
            if with_attributes or type(part) is not dict:
                self._follow(list(part) if is_iterator(part) else part)
        return True


@_by_class
def _slots(cls: Any) -> tuple[Any, ...]:
    return tuple(
        slot
        for base in cls.__mro__
        if "__slots__" in vars(base)
        for slot in vars(base).values()
        if isinstance(slot, types.MemberDescriptorType)
    )


def _same(a: Any, b: Any) -> bool:
    if a is b:
        return True
    if type(a) is not type(b) or not isinstance(a, (*_PLAIN, tuple)):
        return False
    return a.hex() == b.hex() if isinstance(a, float) else bool(a == b)
