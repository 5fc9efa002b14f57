"""Exceptions that compiled code raises: their text in the IR, and the exception for a text.

In the IR an exception is a text, `ValueError: message`; one that is no builtin is written
`module:qualified.name: message`, so that another process can find it again.
"""

from __future__ import annotations

import builtins
import copy
import functools
import importlib
import re
from typing import Any

from basedsl.errors import DSLRuntimeError
from basedsl.location import Span

# The function that compiled code calls with the numbers for `{0}` and `{1}` in the text of the
# exception that follows.
VALUES_SYMBOL = "basedsl_assertion_values"

_TEXT = re.compile(r"(?P<name>[A-Za-z_][\w.]*(:[\w.<>]+)?)(: (?P<message>.*))?", re.DOTALL)
_raised: dict[str, BaseException] = {}  # by text, for classes that cannot be imported


def text_of(error: BaseException | type[BaseException], keep: bool) -> str:
    """Return the text for an exception in the IR; `keep` if its arguments are static."""
    cls = error if isinstance(error, type) else type(error)
    builtin = getattr(builtins, cls.__name__, None) is cls
    text = cls.__name__ if builtin else f"{cls.__module__}:{cls.__qualname__}"
    if isinstance(error, BaseException) and str(error):
        message = error.args[0] if isinstance(error, KeyError) else error
        text += f": {message}"
    if not builtin and (keep or isinstance(error, type)):
        _raised[text] = error() if isinstance(error, type) else error
    return text


def error_of(text: str, span: Span | None) -> BaseException | None:
    """Return the exception that a text stands for; None if it does not name one.

    A builtin comes back mixed with `DSLRuntimeError`, which shows the place; another class as
    itself, with the place as a note.
    """
    match = _TEXT.fullmatch(text)
    if match is None:
        return None
    name, message = match["name"], match["message"] or ""
    if ":" not in name:
        mixed = _mixed(name)
        if mixed is not None:
            return mixed(message or name, span)  # type: ignore[no-any-return]
    error = _own(text, name, message)
    if error is not None and span is not None:
        error.add_note(span.excerpt())
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
        return lambda message, span: cls(message)


def _own(text: str, name: str, message: str) -> BaseException | None:
    known = _raised.get(text)
    if known is not None:
        return copy.copy(known)
    cls = getattr(builtins, name, None) if ":" not in name else _imported(*name.split(":", 1))
    if not (isinstance(cls, type) and issubclass(cls, BaseException)):
        return None
    try:
        return cls(message) if message else cls()
    except TypeError:  # its arguments are not just a message
        error = cls.__new__(cls)
        error.args = (message,)
        return error


def _imported(module: str, path: str) -> Any:
    try:
        found: Any = importlib.import_module(module)
        for part in path.split("."):
            found = getattr(found, part)
    except (ImportError, AttributeError):
        return None
    return found
