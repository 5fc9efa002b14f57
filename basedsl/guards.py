"""What tracing read besides the arguments, so that stale code never runs.

A compiled function depends on the globals, closure cells and defaults of every function that was
traced into it, on the attributes of objects and modules these reach, and on the environment. All of
it is found from code objects: the names a function mentions, followed through what they hold.
`Guards.collect` records it when compiling; `holds()` compares at a call.
"""

from __future__ import annotations

import os
import sys
import types
from collections.abc import Callable, Iterable
from typing import Any

from basedsl.location import is_internal

_MISSING = object()
_PLAIN = (int, float, complex, str, bytes, bool, type(None))
Check = Callable[[], bool]


class Guards:
    """The recorded values, as checks that are cheap to run."""

    def __init__(self) -> None:
        self._checks: list[tuple[Callable[[], Any], Any]] = []
        self._seen: set[int] = set()
        self._kept: list[Any] = []

    def holds(self) -> bool:
        """Whether everything recorded is still what it was."""
        for read, recorded in self._checks:
            now = read()
            if now is not recorded and not _same(now, recorded):
                return False
        return True

    def add_functions(self, functions: Iterable[Any]) -> None:
        for function in functions:
            self._function(function)

    def add_environment(self, names: Iterable[str]) -> None:
        for name in names:
            self._checks.append((lambda name=name: os.environ.get(name), os.environ.get(name)))

    def add_object(self, obj: Any, names: Iterable[str]) -> None:
        """The attributes of `obj` among `names`."""
        self._attributes(obj, set(names))

    # Walking -----------------------------------------------------------------------------------

    def _first(self, obj: Any) -> bool:
        if id(obj) in self._seen:
            return False
        self._seen.add(id(obj))
        self._kept.append(obj)
        return True

    def _function(self, fn: Any) -> None:
        fn = getattr(fn, "__wrapped__", fn)
        if isinstance(fn, types.MethodType):
            fn = fn.__func__
        if not isinstance(fn, types.FunctionType) or not self._first(fn):
            return
        if is_internal(fn.__code__.co_filename):
            return
        names = set(_names(fn.__code__))
        self._checks.append((lambda: fn.__code__, fn.__code__))
        self._checks.append((lambda: fn.__defaults__, fn.__defaults__))
        self._checks.append((lambda: fn.__kwdefaults__, fn.__kwdefaults__))
        scope = fn.__globals__
        for name in names & scope.keys():
            self._checks.append((lambda n=name: scope.get(n, _MISSING), scope[name]))
            self._value(scope[name], names)
        for cell in fn.__closure__ or ():
            content = _content(cell)
            if content is not _MISSING:
                self._checks.append((lambda c=cell: _content(c), content))
                self._value(content, names)

    def _value(self, value: Any, names: set[str]) -> None:
        """Follow what a name holds: functions, classes, modules, objects by their attributes."""
        if isinstance(value, _PLAIN):
            return
        if isinstance(value, types.FunctionType | types.MethodType) or hasattr(
            value, "__wrapped__"
        ):
            self._function(value)
        elif isinstance(value, list | tuple):
            if isinstance(value, list) and self._first(value):
                self._checks.append((lambda: tuple(value), tuple(value)))
            for item in value:
                self._value(item, names)
        elif isinstance(value, dict):
            if self._first(value):
                self._checks.append((lambda: dict(value), dict(value)))
                for item in value.values():
                    self._value(item, names)
        else:
            self._attributes(value, names)

    def _attributes(self, obj: Any, names: set[str]) -> None:
        if isinstance(obj, types.ModuleType):
            if _is_library_module(obj):
                return
        elif isinstance(obj, type):
            if _is_library_name(obj.__module__):
                return
        elif _is_library_name(type(obj).__module__):
            return
        if not self._first(obj):
            return
        if isinstance(obj, types.ModuleType):
            wanted = names & vars(obj).keys()
        else:
            wanted = set(getattr(obj, "__dict__", ()))
            if isinstance(obj, type):
                wanted = {n for n in wanted if not (n.startswith("__") and n not in _CALLED)}
            elif not isinstance(obj, type):
                self._class(type(obj), names)
        for name in wanted:
            value = _attribute(obj, name)
            self._checks.append((lambda o=obj, n=name: _attribute(o, n), value))
            self._value(value, names)

    def _class(self, cls: type, names: set[str]) -> None:
        for base in cls.__mro__:
            self._attributes(base, names)


_CALLED = frozenset({"__init__", "__call__", "__enter__", "__exit__", "__getitem__", "__add__"})


def _names(code: types.CodeType) -> Iterable[str]:
    yield from code.co_names
    for constant in code.co_consts:
        if isinstance(constant, types.CodeType):
            yield from _names(constant)


def _content(cell: types.CellType) -> Any:
    try:
        return cell.cell_contents
    except ValueError:
        return _MISSING


def _attribute(obj: Any, name: str) -> Any:
    try:
        return vars(obj).get(name, _MISSING)
    except TypeError:
        return _MISSING


def _is_library_module(module: types.ModuleType) -> bool:
    filename = getattr(module, "__file__", None)
    return filename is None or is_internal(filename) or _is_library_name(module.__name__)


def _is_library_name(name: str | None) -> bool:
    if not name:
        return True
    if name == "__main__":
        return False
    if name.partition(".")[0] in sys.stdlib_module_names:
        return True
    module = sys.modules.get(name)
    filename = getattr(module, "__file__", None)
    if filename is None:
        return False
    return is_internal(filename) or "site-packages" in filename or "dist-packages" in filename


def _same(a: Any, b: Any) -> bool:
    if type(a) is not type(b):
        return False
    if isinstance(a, float):
        return a.hex() == b.hex()
    if isinstance(a, _PLAIN):
        return bool(a == b)
    if isinstance(a, tuple):
        return len(a) == len(b) and all(x is y or _same(x, y) for x, y in zip(a, b, strict=True))
    if isinstance(a, dict):
        return a.keys() == b.keys() and all(a[k] is b[k] or _same(a[k], b[k]) for k in a)
    return False
