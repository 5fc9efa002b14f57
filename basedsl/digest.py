"""Text that identifies a value in every process, or None for a value that has none.

The text covers the value alone: `staleness` follows the objects and functions that it refers to,
and adds the text of each. A library's class may identify its objects by a method
`__dsl_digest__`, which returns text; objects of other library classes keep code off the disk.
"""

from __future__ import annotations

import enum
import functools
import hashlib
import linecache
import operator
import os
import sys
import types
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from basedsl.location import file_of_module, is_internal
from basedsl.numeric import Numeric
from basedsl.pytree import is_made_dynamically

#: By the id of a code object, which is kept: the object, its digest, and its last line. A
#: compilation asks twice. (Code objects that compare as equal may be of different files.)
_codes: dict[int, tuple[types.CodeType, bytes, int]] = {}
_MOST_CODES = 1024


def of_code(code: types.CodeType) -> str:
    """Return a digest of a whole code object, positions included: errors report them."""
    found = _codes.get(id(code))
    if found is None:
        digest = hashlib.sha256()
        _add_code(digest, code)
        last = max((line for *_, line in code.co_lines() if line), default=code.co_firstlineno)
        if len(_codes) >= _MOST_CODES:
            _codes.clear()
        found = _codes[id(code)] = code, digest.digest(), last
    _, own, last = found
    return hashlib.sha256(own + _source(code, last).encode()).hexdigest()


def _add_code(digest: Any, code: types.CodeType) -> None:
    fields = (
        code.co_code,
        code.co_names,
        code.co_varnames,
        code.co_freevars,
        code.co_cellvars,
        code.co_flags,
        code.co_argcount,
        code.co_posonlyargcount,
        code.co_kwonlyargcount,
        code.co_filename,
        code.co_firstlineno,
        code.co_linetable,
        code.co_exceptiontable,
        code.co_qualname,
    )
    digest.update(repr(fields).encode())
    for constant in code.co_consts:
        if isinstance(constant, types.CodeType):
            _add_code(digest, constant)
        else:
            digest.update((of_value(constant) or repr(constant)).encode())


def _source(code: types.CodeType, last: int) -> str:
    # The pre-stage reads the file: an edit since the import must not be taken for this code.
    linecache.checkcache(code.co_filename)
    lines = linecache.getlines(code.co_filename)
    return "".join(lines[code.co_firstlineno - 1 : last])


def of_value(value: Any) -> str | None:
    """Return text that is equal for equal values in every process; None if a value has none."""
    if isinstance(value, enum.Enum):
        return f"{of_class(type(value))}.{value.name}"
    if isinstance(value, float):
        return f"{type(value).__name__}:{value.hex()}"
    if type(value) in (int, str, bytes, bool, complex, type(None), type(...), range, slice):
        return f"{type(value).__name__}:{value!r}"
    if isinstance(value, tuple | frozenset):
        items = [of_value(item) for item in value]
        if None in items:
            return None
        texts = [str(item) for item in items]
        if isinstance(value, frozenset):
            texts.sort()
        return f"{of_class(type(value))}({', '.join(texts)})"
    if isinstance(value, type):
        return of_class(value)
    if isinstance(value, types.ModuleType):
        return f"module {value.__name__} {stamp(value.__name__)}"
    if isinstance(value, types.FunctionType):
        return f"function {value.__module__}.{value.__qualname__} {stamp(value.__module__)}"
    if isinstance(value, types.BuiltinFunctionType):
        owner = value.__self__
        named = owner is None or isinstance(owner, types.ModuleType)
        return f"built-in {value.__module__}.{value.__qualname__}" if named else None
    if isinstance(value, np.dtype):
        return f"dtype {value.str} {value.descr if value.names else ''}"
    if isinstance(value, np.generic):
        return f"{value.dtype.str}:{value.tobytes().hex()}"
    if isinstance(value, np.ufunc):
        return f"ufunc {value.__name__}"
    if isinstance(value, Numeric) and not value.is_dynamic:
        inner = of_value(value.value)
        return None if inner is None else f"{of_class(type(value))}({inner})"
    own = getattr(type(value), "__dsl_digest__", None)
    return None if own is None else f"{of_class(type(value))} {own(value)}"


def of_class(cls: type) -> str:
    """Return a class as text: its name, and the stamp of its module."""
    module = module_of(cls) or "builtins"
    return f"class {module}.{cls.__qualname__} {stamp(module)}"


def module_of(cls: type) -> str | None:
    """Return the name of the module that defines a class. Its metaclass may say something else as
    its `__module__`; a class with a property of that name is taken for its first method's.
    """
    name = _MODULE.__get__(cls)
    if isinstance(name, str):
        return "__main__" if is_made_dynamically(cls) else name
    methods = (x for x in vars(cls).values() if isinstance(x, types.FunctionType))
    if isinstance(name, property):
        methods = (x for x in (name.fget, *methods) if isinstance(x, types.FunctionType))
    return next((x.__module__ for x in methods), None)


@functools.cache
def stamp(module: str) -> str:
    """Return the modification time (ns) and size (bytes) of a library module's file; "" for the
    user's own modules, whose functions and classes are followed instead.
    """
    return module_stamp(module) if is_library(module) else ""


def module_stamp(module: str) -> str:
    """Return the modification time (ns) and size (bytes) of a module's file; "" for a built-in
    one.
    """
    return file_stamp(file_of_module(sys.modules.get(module)) or None)


def file_stamp(path: str | None) -> str:
    """Return the modification time (ns) and size (bytes) of a file; "" if there is none."""
    try:
        found = os.stat(path) if path else None
    except OSError:
        return ""
    return "" if found is None else _stamp_of(found)


def _stamp_of(found: os.stat_result) -> str:
    return f"{found.st_mtime_ns}:{found.st_size}"


@functools.cache
def package_stamp(package: str) -> str:
    """Return a digest of the names, times and sizes of a package's files."""
    found = sys.modules.get(package.partition(".")[0])
    digest = hashlib.sha256()
    for folder in sorted(getattr(found, "__path__", ())):
        for line in _stamps(folder):
            digest.update(line.encode(errors="surrogateescape"))
    return digest.hexdigest()


_NAME = operator.attrgetter("name")


def _stamps(folder: str) -> Iterator[str]:
    """Yield a line for each file of code below `folder`."""
    with os.scandir(folder) as listing:
        entries = sorted(listing, key=_NAME)
    for entry in entries:
        if entry.name.endswith((".py", ".ll", ".so")):
            yield f"{entry.name} {_stamp_of(entry.stat())}\n"
        elif entry.name != "__pycache__" and entry.is_dir(follow_symlinks=False):
            yield from _stamps(entry.path)


# `type`'s own descriptor: a metaclass may have another of that name.
_MODULE = vars(type)["__module__"]
_library: dict[str, bool] = {}


def is_library(name: str | None) -> bool:
    """Return True for a module of the standard library or of an installed package."""
    if not name or not isinstance(name, str):
        return True
    known = _library.get(name)
    if known is None:
        known = _is_library_now(name)
        if name in sys.modules:
            _library[name] = known
    return known


def _is_library_now(name: str) -> bool:
    if name == "__main__":
        return False
    if name.partition(".")[0] in sys.stdlib_module_names:
        return True
    filename = file_of_module(sys.modules.get(name)) or None
    if filename is None:
        return False
    if is_internal(filename) or "site-packages" in filename or "dist-packages" in filename:
        return True
    package = getattr(sys.modules.get(name.partition(".")[0]), "__file__", None)
    return package is not None and _is_installed(package)


@functools.cache
def _is_installed(filename: str) -> bool:
    """Return True for the file of a top-level module that `pip install --target` has put into a
    folder of the user's: a distribution there lists it.
    """
    path = Path(filename)
    folder = path.parents[1 if path.name == "__init__.py" else 0]
    line = f"\n{path.relative_to(folder).as_posix()},"
    lists = folder.glob("*.dist-info/RECORD")
    return any(line in f"\n{one.read_text('utf-8', 'replace')}" for one in lists)
