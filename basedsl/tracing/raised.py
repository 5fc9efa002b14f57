"""Exceptions that compiled code raises: their text in the IR, and the exception for a text.

In the IR an exception is a text, `ValueError: message`. The name of one that is no builtin is
written `module:qualified.name`, so that another process can find it again; after the name of a
class that cannot be found so (made in a function, or by `exec`) comes that of its nearest base that
can (`module:f.<locals>.Error|ValueError`). Arguments and attributes that are more than the message
follow, between two separators, as a Python literal.
"""

from __future__ import annotations

import ast
import builtins
import functools
import importlib
import re
import sys
from typing import Any

from basedsl.errors import DSLRuntimeError
from basedsl.location import Span

# The function that compiled code calls with the numbers for `{0}` and `{1}` in the text of the
# exception that follows.
VALUES_SYMBOL = "basedsl_assertion_values"

_MARK = "\x1e"
_NAME = r"[A-Za-z_][\w.]*(:[\w.<>]+)?"
_TEXT = re.compile(
    rf"(?P<name>{_NAME})(\|(?P<base>{_NAME}))?({_MARK}(?P<state>[^{_MARK}]*){_MARK})?"
    r"(: (?P<message>.*))?",
    re.DOTALL,
)
# These keep parts of their arguments.
_KEEPING = (OSError, BaseExceptionGroup)
_classes: dict[str, type[BaseException]] = {}  # by name, those that cannot be imported


def text_of(error: BaseException, keep: bool) -> str:
    """Return the text for an exception in the IR; `keep` if its arguments are static."""
    cls = type(error)
    name = text = _name_of(cls)
    if not _is_importable(cls):
        _classes[name] = cls
        text += "|" + next(_name_of(base) for base in cls.__mro__ if _is_importable(base))
    message = str(error.args[0] if isinstance(error, KeyError) and error.args else error)
    if keep and (state := _state_of(error, message)):
        text += f"{_MARK}{state}{_MARK}"
    return f"{text}: {message}" if message else text


def spoken(text: str) -> str:
    """Return the text of an exception as Python prints it: the bare name, and the message."""
    match = _TEXT.fullmatch(text)
    if match is None or (":" not in match["name"] and match["state"] is None):
        return text
    name = re.split(r"[:.]", match["name"])[-1]
    return f"{name}: {match['message']}" if match["message"] else name


def error_of(text: str, span: Span | None, mixing: bool = True) -> BaseException | None:
    """Return the exception that a text stands for; None if it does not name one.

    A builtin comes back mixed with `DSLRuntimeError`, which shows the place, but without `mixing`;
    another class as itself, with the place as a note.
    """
    match = _TEXT.fullmatch(text)
    if match is None:
        return None
    name, message = match["name"], match["message"] or ""
    args, attributes = ast.literal_eval(match["state"] or "((), {})")
    if match["state"] is None and message:
        args = (message,)
    mixed = _mixed(name) if mixing and ":" not in name else None
    if match["state"] is not None and isinstance(mixed, type) and issubclass(mixed, _KEEPING):
        mixed = None
    if mixed is not None:
        error: BaseException = mixed(message or name, span)
        if match["state"] is not None:
            error.args = args
        return error
    found = _class_of(name, match["base"])
    if found is None:
        return None
    if issubclass(found, BaseExceptionGroup) and match["state"] is not None:
        what, parts = args
        args = (what, [error_of(part, None, mixing=False) for part in parts])
    error = _made(found, args)
    error.__dict__.update(attributes)
    if span is not None:
        error.add_note(span.excerpt())
    return error


def _name_of(cls: type) -> str:
    builtin = getattr(builtins, cls.__name__, None) is cls
    return cls.__name__ if builtin else f"{cls.__module__}:{cls.__qualname__}"


def _is_importable(cls: type) -> bool:
    """Return True if its module and name lead to the class: not if it was made in a function, in
    code run by `exec`, or in a module that was loaded again.
    """
    found: Any = sys.modules.get(cls.__module__)
    for name in cls.__qualname__.split("."):
        found = getattr(found, name, None)
    return found is cls


def _state_of(error: BaseException, message: str) -> str:
    """Return the arguments and attributes as a literal; "" if they are just the message, or no
    literal can be made of them.
    """
    if isinstance(error, BaseExceptionGroup):
        return _state_of_group(error)
    if error.args in ((), (message,)) and not error.__dict__:
        return ""
    state = repr((error.args, error.__dict__))
    try:
        same = ast.literal_eval(state) == (error.args, error.__dict__)
    except (ValueError, SyntaxError):
        return ""
    return state if same and _MARK not in state and "\x1f" not in state else ""


def _state_of_group(group: BaseExceptionGroup[Any]) -> str:
    """Return the message, the texts of the exceptions, and the attributes as a literal."""
    parts = [text_of(one, True) for one in group.exceptions]
    attributes = repr(group.__dict__)
    try:
        same = ast.literal_eval(attributes) == group.__dict__
    except (ValueError, SyntaxError):
        same = False
    return repr(((group.message, parts), group.__dict__ if same else {}))


def _made(cls: type[BaseException], args: tuple[Any, ...]) -> BaseException:
    """Return an exception with these arguments, which have been through `__init__` already."""
    try:
        error = cls.__new__(cls, *args)
    except TypeError:
        error = cls.__new__(cls)
    if issubclass(cls, OSError | StopIteration | SystemExit | ImportError):
        try:
            error.__init__(*args)  # type: ignore[misc]  # these keep parts of their arguments
        except TypeError:
            pass
    error.args = args
    return error


@functools.cache
def _mixed(name: str) -> Any:
    cls = getattr(builtins, name, None)
    if not (isinstance(cls, type) and issubclass(cls, Exception)):
        return None
    if issubclass(DSLRuntimeError, cls):
        return DSLRuntimeError
    try:
        return type(f"DSL{name}", (DSLRuntimeError, cls), {"__doc__": f"{name} in compiled code."})
    except TypeError:  # classes with a layout of their own: OSError, StopIteration, ...
        return None


def _class_of(name: str, base: str | None) -> type[BaseException] | None:
    known = _classes.get(name)
    if known is not None:
        return known
    if base is not None:
        parent = _class_of(base, None)
        module, path = name.split(":", 1)
        body = {"__module__": module, "__qualname__": path}
        if parent is not None:
            _classes[name] = type(path.rsplit(".", 1)[-1], (parent,), body)
        return _classes.get(name)
    found = _imported(*name.split(":", 1)) if ":" in name else getattr(builtins, name, None)
    return found if isinstance(found, type) and issubclass(found, BaseException) else None


def _imported(module: str, path: str) -> Any:
    try:
        found: Any = importlib.import_module(module)
        for part in path.split("."):
            found = getattr(found, part)
    except (ImportError, AttributeError):
        return None
    return found
