"""Parts of callables, descriptors and iterators that lead to the user's own code and objects."""

from __future__ import annotations

import dataclasses
import functools
import types
from typing import Any

from basedsl.metastage.iterators import is_iterator, reduced


def inner_parts(value: Any) -> list[tuple[str, Any]]:
    """The parts of callables and descriptors that lead to user code."""
    if isinstance(value, staticmethod | classmethod):
        return [("function", value.__func__)]
    if isinstance(value, functools.partial):
        return [("function", value.func), ("args", value.args), ("keywords", value.keywords)]
    if isinstance(value, types.MethodType):
        return [("function", value.__func__), ("self", value.__self__)]
    if isinstance(value, types.BuiltinFunctionType | types.MethodWrapperType):
        owner = value.__self__
        return [] if isinstance(owner, types.ModuleType | type | None) else [("self", owner)]
    if isinstance(value, functools.cached_property):
        return [("function", value.func)]
    if isinstance(value, types.GenericAlias):
        return [("origin", value.__origin__), ("args", value.__args__)]
    if type(value).__module__ == "dataclasses":
        return _dataclass_part(value)
    found = []
    for name in ("__wrapped__", "__self__"):
        try:
            found.append((name, object.__getattribute__(value, name)))
        except AttributeError:
            continue
    if len(found) == 2 or (found and found[0][0] == "__wrapped__"):
        return found
    return []


def _dataclass_part(value: Any) -> list[tuple[str, Any]]:
    """Return the named parts of a `dataclasses` object in a class: a Field, or its parameters."""
    if not isinstance(value, dataclasses.Field):
        return [("content", repr(value))]
    missing = dataclasses.MISSING
    named = {"name": value.name, "type": value.type, "metadata": tuple(value.metadata.items())}
    if value.default is not missing:
        named["default"] = value.default
    if value.default_factory is not missing:
        named["factory"] = value.default_factory
    return list(named.items())


def iterator_parts(iterator: Any) -> list[Any]:
    """Return what an iterator calls and reads when it is advanced: a generator's variables and the
    functions and iterators of `map`, `filter`, `itertools` and the like.
    """
    if isinstance(iterator, types.GeneratorType):
        frame = iterator.gi_frame
        held = [] if frame is None else list(frame.f_locals.values())
        return [*held, iterator.gi_yieldfrom]
    parts: list[Any] = []
    for part in reduced(iterator):
        parts += part if type(part) is tuple else (part,)
    return [part for part in parts if callable(part) or is_iterator(part)]
