"""Callees that read a text that they are given: what is written in C, and installed libraries.

A text that shows a dynamic value as `?` knows when Python code asks for its contents. Code in C
reads the characters, and libraries pass them on to such code.
"""

from __future__ import annotations

import ast
import builtins
import collections
import inspect
import sys
from types import BuiltinMethodType, FrameType, FunctionType, MethodType, ModuleType
from typing import Any, NamedTuple

from basedsl.location import is_internal, is_library

# They hold, hash or compare what they are given, and the text knows of the last two.
_HOLDING = frozenset(
    "append appendleft insert extend add setdefault get pop update remove discard count index "
    "fromkeys put send".split()
)
_SAFE: tuple[Any, ...] = (
    *(list, tuple, dict, set, frozenset, collections.deque, type, bool, int, float, len),
    *(isinstance, issubclass, callable, id, hash, iter, zip, enumerate, reversed, sorted),
)
_CONTAINERS = (list, tuple, dict, set, frozenset, collections.deque)


class Names(NamedTuple):
    """The values of names, where a piece of code stands."""

    local: dict[str, Any]
    outer: dict[str, Any]

    @classmethod
    def of_frame(cls, frame: FrameType) -> Names:
        """Return the names of a frame, and of those frames of its file that it stands in: branches
        and loops are functions of their own.
        """
        local: dict[str, Any] = {}
        step: FrameType | None = frame
        for _ in range(40):
            if step is None:
                break
            if step.f_code.co_filename == frame.f_code.co_filename:
                local = {**step.f_locals, **local}
            step = step.f_back
        return cls(local, frame.f_globals)

    @classmethod
    def of_function(cls, function: FunctionType) -> Names:
        """Return the names that a function finds outside of itself."""
        return cls(dict(inspect.getclosurevars(function).nonlocals), function.__globals__)


_MISSING = object()


def value_of(node: ast.expr, names: Names) -> Any:
    """Return what a name or a dotted name stands for, without running code; None if unknown."""
    found = _find(node, names)
    return None if found is _MISSING else found


def _find(node: ast.expr, names: Names) -> Any:
    match node:
        case ast.Name(id=name):
            for scope in (names.local, names.outer, vars(builtins)):
                if name in scope:
                    return scope[name]
        case ast.Attribute(value=base, attr=name):
            holder = _find(base, names)
            if isinstance(holder, ModuleType):
                return vars(holder).get(name, _MISSING)
            if holder is not _MISSING:
                found = inspect.getattr_static(holder, name, _MISSING)
                return found.__func__ if isinstance(found, staticmethod | classmethod) else found
        case ast.Constant(value=str()) | ast.JoinedStr():
            return ""
    return _MISSING


class Reader(NamedTuple):
    """A function of the program that takes the text, and the parameter that it becomes."""

    function: FunctionType
    parameter: str


def judge(call: ast.Call, argument: ast.AST, names: Names) -> Reader | bool:
    """Return True if a call gives `argument` to something that reads texts, False if it does not,
    and the function and parameter where its source must tell.
    """
    callee = value_of(call.func, names)
    if isinstance(call.func, ast.Attribute):
        holder = value_of(call.func.value, names)
        # What the lists and dicts of the program hold is asked for later.
        if call.func.attr in _HOLDING and (holder is None or isinstance(holder, _CONTAINERS)):
            return False
        if holder in (sys.stdout, sys.stderr):
            return False
    if callee is None:
        return True
    if any(callee is safe for safe in _SAFE):
        return False
    if isinstance(callee, type):
        return _class(callee, call, argument)
    skip = 0
    if isinstance(callee, MethodType):
        callee, skip = callee.__func__, 1
    elif isinstance(call.func, ast.Attribute) and not isinstance(
        value_of(call.func.value, names), ModuleType | type
    ):
        skip = 1
    own = getattr(callee, "fn", None)
    if isinstance(own, FunctionType):  # a decorated function
        callee = own
    if not isinstance(callee, FunctionType | BuiltinMethodType):
        method = inspect.getattr_static(type(callee), "__call__", None)
        if isinstance(method, FunctionType):
            callee, skip = method, 1
    return _function(callee, call, argument, skip)


def _class(cls: type, call: ast.Call, argument: ast.AST) -> Reader | bool:
    if issubclass(cls, BaseException):
        return False
    meta = inspect.getattr_static(type(cls), "__call__", None)
    if isinstance(meta, FunctionType):
        return _function(meta, call, argument, 1)
    new = inspect.getattr_static(cls, "__new__", None)
    new = new.__func__ if isinstance(new, staticmethod) else new
    if new is not object.__new__:
        return _function(new, call, argument, 1)
    init = inspect.getattr_static(cls, "__init__", None)
    return isinstance(init, FunctionType) and _function(init, call, argument, 1)


def _function(callee: Any, call: ast.Call, argument: ast.AST, skip: int) -> Reader | bool:
    if not isinstance(callee, FunctionType):
        return not _is_ours(type(callee)) or isinstance(callee, BuiltinMethodType)
    filename = callee.__code__.co_filename
    if filename == "<string>" or is_internal(filename):
        return False  # of a dataclass, a NamedTuple; the DSL's own
    if is_library(filename):
        return True
    code = callee.__code__
    parameters = code.co_varnames[: code.co_argcount + code.co_kwonlyargcount]
    if isinstance(argument, ast.keyword):
        if argument.arg in parameters:
            return Reader(callee, argument.arg)
    elif argument in call.args and not any(isinstance(a, ast.Starred) for a in call.args):
        place = call.args.index(argument) + skip
        if place < code.co_argcount:
            return Reader(callee, code.co_varnames[place])
    return False


def _is_ours(cls: type) -> bool:
    return cls.__module__.partition(".")[0].startswith("basedsl")
