"""Resolves names where a function was defined: which callees are known, which tests are static.

Looks up names in the function's closure cells, globals and builtins, through modules only. Each
answer is recorded, so that a cached rewriting can be checked against another function object. The
caller decides whether a name is local.
"""

from __future__ import annotations

import ast
import builtins
import math
import operator
from collections.abc import Mapping
from types import CellType, FunctionType, ModuleType
from typing import Any, Literal

#: Objects (functions, classes) with this attribute set to True give values that are known while
#: tracing: `if` tests and iterables made by calling them stay plain Python.
STATIC_ATTRIBUTE = "__basedsl_static__"

Role = Literal["callback", "bool", "static", "super", "other"]

_CALLBACK = (
    "range len min max abs sum any all round divmod pow int float bool print enumerate zip "
    "reversed type id"
).split()
_ROLE_OF_BUILTIN: dict[int, Role] = {id(getattr(builtins, name)): "callback" for name in _CALLBACK}
for _name in ("isinstance", "issubclass", "hasattr", "callable"):
    _ROLE_OF_BUILTIN[id(getattr(builtins, _name))] = "bool"
_ROLE_OF_BUILTIN[id(super)] = "super"
for _function in (
    operator.is_, operator.is_not, operator.not_, operator.truth, operator.contains,
):  # fmt: skip
    _ROLE_OF_BUILTIN[id(_function)] = "callback"
_MATH_FUNCTIONS = {
    id(value) for name, value in vars(math).items() if name[0] != "_" and callable(value)
}

_ABSENT = object()


class Resolver:
    """Answers what a dotted name refers to at the time of rewriting."""

    def __init__(self, fn: FunctionType) -> None:
        cells = fn.__closure__ or ()
        self._cells: Mapping[str, CellType] = dict(zip(fn.__code__.co_freevars, cells, strict=True))
        self._globals = fn.__globals__
        found = fn.__globals__.get("__builtins__", builtins)
        self._builtins: Mapping[str, Any] = vars(found) if isinstance(found, ModuleType) else found
        self.answers: dict[str, Role] = {}

    def role(self, dotted: str) -> Role:
        """Return the role of a call of `dotted` (a name that is not local, with attributes)."""
        known = self.answers.get(dotted)
        if known is None:
            known = self.answers[dotted] = self._role(dotted)
        return known

    def agrees(self, answers: Mapping[str, Role]) -> bool:
        """Return True if names mean here what they meant when `answers` were recorded."""
        return all(self.role(dotted) == role for dotted, role in answers.items())

    def _role(self, dotted: str) -> Role:
        value = self._lookup(dotted)
        if id(value) in _ROLE_OF_BUILTIN:
            return _ROLE_OF_BUILTIN[id(value)]
        if id(value) in _MATH_FUNCTIONS:
            return "callback"
        if (
            isinstance(value, type | FunctionType)
            and vars(value).get(STATIC_ATTRIBUTE, False) is True
        ):
            return "static"
        return "other"

    def _lookup(self, dotted: str) -> object:
        first, *rest = dotted.split(".")
        value: object = _ABSENT
        if first in self._cells:
            try:
                value = self._cells[first].cell_contents
            except ValueError:
                return _ABSENT
        elif first in self._globals:
            value = self._globals[first]
        else:
            value = self._builtins.get(first, _ABSENT)
        for attribute in rest:
            # Attributes of other objects may run code; those of modules are plain dictionaries.
            if not isinstance(value, ModuleType):
                return _ABSENT
            value = vars(value).get(attribute, _ABSENT)
        return value


def dotted_name(node: ast.expr) -> tuple[ast.Name, str] | None:
    """Return the first name and the whole of `a.b.c`, or None for other expressions."""
    parts: list[str] = []
    while isinstance(node, ast.Attribute):
        parts.append(node.attr)
        node = node.value
    if not isinstance(node, ast.Name):
        return None
    parts.append(node.id)
    return node, ".".join(reversed(parts))
