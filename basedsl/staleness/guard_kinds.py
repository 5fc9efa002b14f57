"""Guards: one recorded value each, an exact check of it, and a quick one for native code.

`holds()` compares what is there now with the record, by value. `native_conditions()` are sufficient
conditions that native code checks in nanoseconds (rows of `native_call.conditions`), or None where
only Python can look. When a row fails, `holds()` decides, and records what it found, so that the
rows are right again.
"""

from __future__ import annotations

import builtins
import types
from collections import OrderedDict
from collections.abc import Callable
from operator import is_
from typing import Any, Protocol

from basedsl.native_call import object_layout
from basedsl.native_call.conditions import (
    DICT_OF,
    HALF,
    ITEM,
    LIST_ITEM,
    LIST_SIZE,
    SIZE,
    WORD,
    Row,
)

MISSING: Any = type("Missing", (), {"__repr__": lambda self: "missing"})()

PLAIN = (int, float, complex, str, bytes, bool, type(None))


class Guard(Protocol):
    """One thing that tracing read, with the value that it had."""

    @property
    def recorded(self) -> Any: ...

    def holds(self) -> bool:
        """Return True if the value is still the recorded one."""

    def now(self) -> Any:
        """The value now, in the form of `recorded`."""

    def native_conditions(self) -> list[Row] | None:
        """Sufficient conditions for `holds`; None if native code cannot check them."""


def same(a: Any, b: Any) -> bool:
    """Return True if code that was traced with `a` is valid for `b`: the same object, or equal
    plain values of the same class.
    """
    if a is b:
        return True
    if type(a) is not type(b):
        return False
    if isinstance(a, float):
        return bool(a.hex() == b.hex())
    if isinstance(a, complex):
        return same(a.real, b.real) and same(a.imag, b.imag)
    if isinstance(a, PLAIN):
        return bool(a == b)
    if type(a) is tuple:
        return len(a) == len(b) and all(map(same, a, b))
    if type(a) is frozenset:
        return {x: type(x) for x in a} == {x: type(x) for x in b}
    if type(a) is types.MethodType:
        return a.__func__ is b.__func__ and a.__self__ is b.__self__
    return False


def unchanged(a: Any, b: Any) -> bool:
    """Return True if two values of `Guard.now` are of one state: the same items in one order."""
    if type(a) is list:
        return len(a) == len(b) and (all(map(is_, a, b)) or all(map(same, a, b)))
    if type(a) is dict:
        if all(map(is_, a, b)) and all(map(is_, a.values(), b.values())):
            return len(a) == len(b)
        return same(tuple(a.items()), tuple(b.items()))
    return same(a, b)


def _address(value: Any) -> int:
    return 0 if value is MISSING else id(value)


class ItemGuard:
    """An item of a namespace: a global, a module's attribute; MISSING if there was none."""

    def __init__(self, table: dict[str, Any], key: str) -> None:
        self.table, self.key = table, key
        self.recorded = table.get(key, MISSING)

    def now(self) -> Any:
        return self.table.get(self.key, MISSING)

    def holds(self) -> bool:
        now = self.now()
        if not same(self.recorded, now):
            return False
        self.recorded = now
        return True

    def native_conditions(self) -> list[Row] | None:
        return [(ITEM, id(self.table), id(self.key), _address(self.recorded))]


class FieldGuard:
    """A field of a function or the content of a cell, at an offset if that is known."""

    def __init__(self, owner: Any, read: Callable[[Any], Any], offset: int | None) -> None:
        self.owner, self.read, self.offset = owner, read, offset
        self.recorded = read(owner)

    def now(self) -> Any:
        return self.read(self.owner)

    def holds(self) -> bool:
        now = self.now()
        if not same(self.recorded, now):
            return False
        self.recorded = now
        return True

    def native_conditions(self) -> list[Row] | None:
        if self.offset is None:
            return None
        # An absent value is a null pointer, or None itself; `word` tells which.
        found = object_layout.word(id(self.owner) + self.offset)
        if found not in (0, id(self.recorded)):
            return None
        return [(WORD, id(self.owner) + self.offset, 0, found)]


class DictGuard:
    """All items of a dict, and their order."""

    def __init__(self, table: dict[Any, Any], offset: int | None = None) -> None:
        ordered = isinstance(table, OrderedDict)  # its order is its own affair
        self.table, self.offset = table, None if ordered else offset
        self._items: Callable[[Any], Any] = OrderedDict.items if ordered else dict.items
        self.recorded = self.now()

    def now(self) -> list[tuple[Any, Any]]:
        return list(self._items(self.table))

    def holds(self) -> bool:
        now = self.now()
        if len(now) != len(self.recorded):
            return False
        pairs = zip(now, self.recorded, strict=True)
        if not all(same(k, j) and same(v, w) for (k, v), (j, w) in pairs):
            return False
        self.recorded = now
        return True

    def native_conditions(self) -> list[Row] | None:
        if self.offset is None:
            return None
        at = id(self.table) + self.offset
        return [(WORD, at, 0, object_layout.word(at))]


class ListGuard:
    """All items of a list."""

    def __init__(self, items: list[Any]) -> None:
        self.items = items
        self.recorded = list.copy(items)

    def now(self) -> list[Any]:
        return list.copy(self.items)

    def holds(self) -> bool:
        now = self.now()
        if len(now) != len(self.recorded) or not all(map(same, now, self.recorded)):
            return False
        self.recorded = now
        return True

    def native_conditions(self) -> list[Row] | None:
        at = id(self.items)
        rows: list[Row] = [(LIST_SIZE, at, 0, len(self.recorded))]
        return rows + [(LIST_ITEM, at, i, id(item)) for i, item in enumerate(self.recorded)]


class AttributesGuard:
    """The class of an object and everything in its `__dict__`."""

    def __init__(self, obj: Any) -> None:
        self.obj, self.cls = obj, type(obj)
        self.recorded: dict[str, Any] = self.now()

    def now(self) -> dict[str, Any]:
        return {**self.obj.__dict__, "__class__": type(self.obj)}

    def holds(self) -> bool:
        now = self.now()
        if now.keys() != self.recorded.keys():
            return False
        if not all(same(now[name], value) for name, value in self.recorded.items()):
            return False
        self.recorded = now
        return True

    def native_conditions(self) -> list[Row] | None:
        table = self.obj.__dict__
        if type(table) is not dict or "__dict__" in vars(self.cls).get("__slots__", ()):
            return None
        rows: list[Row] = [
            (WORD, id(self.obj) + object_layout.WORD, 0, id(self.cls)),
            (DICT_OF, id(self.obj), 0, id(table)),
        ]
        offset = object_layout.attributes_version_offset()
        if offset is not None:
            return [*rows, (WORD, id(table) + offset, 0, object_layout.word(id(table) + offset))]
        rows.append((SIZE, id(table), 0, len(table)))
        items = ((k, v) for k, v in self.recorded.items() if k != "__class__")
        return rows + [(ITEM, id(table), id(k), id(v)) for k, v in items]


# What no program means by an attribute; Python itself makes some of these late: `copyreg`, which
# `copy` and `pickle` ask, `__slotnames__`.
_NOISE = frozenset(
    "__dict__ __weakref__ __doc__ __module__ __abstractmethods__ _abc_impl __static_attributes__ "
    "__firstlineno__ __slotnames__".split()
)


class ClassGuard:
    """The bases of a class and all its attributes."""

    def __init__(self, cls: type) -> None:
        self.cls = cls
        self.version = object_layout.type_version(cls)
        self.recorded = self.now()

    def now(self) -> dict[str, Any]:
        found = {k: v for k, v in vars(self.cls).items() if k not in _NOISE}
        if found.get("__annotations__") == {}:  # made by the first who asks
            del found["__annotations__"]
        found["__bases__"] = self.cls.__bases__
        return found

    def holds(self) -> bool:
        self.version = object_layout.type_version(self.cls)
        now = self.now()
        if now.keys() != self.recorded.keys():
            return False
        if not all(same(now[name], value) for name, value in self.recorded.items()):
            return False
        self.recorded = now
        return True

    def native_conditions(self) -> list[Row] | None:
        at = object_layout.type_version_offset()
        if at is None or self.version == 0:
            return None
        return [(HALF, id(self.cls) + at, 0, self.version)]


class PythonGuard:
    """Anything else, by a function that reads it: slots, sets, buffers."""

    def __init__(self, read: Callable[[], Any]) -> None:
        self.read = read
        self.recorded = read()

    def now(self) -> Any:
        return self.read()

    def holds(self) -> bool:
        now = self.now()
        if not same(self.recorded, now):
            return False
        self.recorded = now
        return True

    def native_conditions(self) -> list[Row] | None:
        return None


class ClassOfGuard:
    """The class of an object, where it is guarded alone: a module, an object with slots."""

    def __init__(self, obj: Any) -> None:
        self.obj, self.recorded = obj, type(obj)

    def now(self) -> type:
        return type(self.obj)

    def holds(self) -> bool:
        return type(self.obj) is self.recorded

    def native_conditions(self) -> list[Row] | None:
        return [(WORD, id(self.obj) + object_layout.WORD, 0, id(self.recorded))]


class TextsGuard(PythonGuard):
    """The names and documentation of a function or class. A change by the traced code is noticed;
    native code does not look for others.
    """

    def native_conditions(self) -> list[Row]:
        return []


class BuiltinsGuard:
    """The built-in functions that code names: none may be replaced."""

    def __init__(self) -> None:
        self.recorded: dict[str, Any] = {}

    def now(self) -> dict[str, Any]:
        return {name: vars(builtins).get(name, MISSING) for name in self.recorded}

    def holds(self) -> bool:
        return all(vars(builtins).get(name) is v for name, v in self.recorded.items())

    def native_conditions(self) -> list[Row] | None:
        table, offset = vars(builtins), object_layout.dict_version_offset()
        if offset is not None:
            return [(WORD, id(table) + offset, 0, object_layout.word(id(table) + offset))]
        return [(ITEM, id(table), id(name), id(v)) for name, v in self.recorded.items()]
