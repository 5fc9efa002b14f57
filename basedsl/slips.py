"""Hints below errors that Python itself raises in a user's code while it is traced.

A misspelt name, an attribute that an object does not have, a call with other arguments than a
function takes: Python says what is wrong, and a note says where, and what to write instead.
"""

from __future__ import annotations

import builtins
import re
import sys
from collections.abc import Callable, Iterable
from types import FrameType, TracebackType
from typing import TYPE_CHECKING, Any

from basedsl.location import Span, is_internal_frame, is_library, is_rewritten, span_of_code

if TYPE_CHECKING:
    import ast

_CALL = re.compile(r"([\w.<>]+)\(\) (takes|got|missing)\b")

# What Python says of a number of run time, what is written there, and what to write instead.
_OF_NUMBERS = (
    ("'bool' object is not callable", ".is_integer(", "write x == math.floor(x)"),
    (
        "is not JSON serializable",
        "",
        "a number of run time has no digits while compiling: return it, and make the text where "
        "the function is called",
    ),
)

#: The Python errors that get a hint. The classes themselves: subclasses are programs' own.
_LEAST_OF_A_NAME = 4  # letters of which a name is taken for the beginning of another
EXPLAINED = (AttributeError, IndexError, NameError, TypeError)


def closest_name(name: str, known: Iterable[str]) -> str | None:
    """Return the name among `known` that `name` is most likely a misspelling of, or None.

    Case and underscores count less than other letters.

    >>> closest_name("MakeLayout", ["make_layout", "make_tensor"])
    'make_layout'
    >>> closest_name("lenght", ["length", "width"])
    'length'
    >>> closest_name("ACCUM", ["ACCUMULATE", "NEGATE_A"])
    'ACCUMULATE'
    """
    from difflib import get_close_matches  # imported by errors alone

    names = list(known)
    folded = {_fold(one): one for one in reversed(names)}
    if _fold(name) in folded:
        return folded[_fold(name)]
    if near := get_close_matches(name, names, 1, 0.75):
        return near[0]
    longer = [one for one in names if _fold(one).startswith(_fold(name))]
    return longer[0] if len(name) >= _LEAST_OF_A_NAME and len(longer) == 1 else None


def _fold(name: str) -> str:
    """Return a name without what people remember differently: case and underscores."""
    return name.replace("_", "").lower()


def explain(error: Exception, hint_of: Callable[[Exception, str], str | None]) -> str | None:
    """Add notes to a Python error of tracing: the user's line, and what to write instead.

    `hint_of(error, source)` is asked first for the hint; `source` is the text of the expression.
    Without a hint the error stays as it is. Returns the hint.
    """
    if type(error) not in EXPLAINED or getattr(error, "__dsl_explained__", False):
        return None
    entry = _last_user_entry(error.__traceback__)
    if entry is None:
        return None
    frame = entry.tb_frame
    span = span_of_code(frame.f_code, entry.tb_lasti)
    # Of a name that is missing, what is written after it says what is meant: `tl.load(x)`.
    source = span.source_line[span.col :] if type(error) is NameError else _text(span)
    hint = hint_of(error, source) or _hint(error, frame, source)
    if hint is None:
        return None
    error.__dsl_explained__ = True  # type: ignore[attr-defined]
    error.add_note(f"{span.excerpt()}\nhint: {hint}")
    return hint


def _last_user_entry(tb: TracebackType | None) -> TracebackType | None:
    found = in_library = None
    while tb is not None:
        if is_library(tb.tb_frame.f_code.co_filename):
            in_library = tb
        elif not is_internal_frame(tb.tb_frame):
            found = tb
        tb = tb.tb_next
    return found or in_library


def _text(span: Span) -> str:
    """Return the source under a span of one line; of a longer one, the rest of the first."""
    end = span.end_col if span.end_line == span.line else None
    return span.source_line[span.col : end]


def _hint(error: Exception, frame: FrameType, source: str) -> str | None:
    if isinstance(error, NameError):
        near = _did_you_mean(error.name, _visible(frame))
        return f"import {error.name}" if error.name in sys.stdlib_module_names else near
    if isinstance(error, AttributeError) and error.obj is not None:
        public = [name for name in dir(error.obj) if not name.startswith("_")]
        return _did_you_mean(error.name, public)
    for words, written, instead in _OF_NUMBERS:
        if words in str(error) and written in source:
            return instead
    if isinstance(error, TypeError) and (found := _CALL.match(str(error))):
        return _signature_hint(found[1].rpartition(".")[2], frame, source)
    return None


def _did_you_mean(name: str | None, known: Iterable[str]) -> str | None:
    near = None if name is None else closest_name(name, known)
    return None if near is None else f"did you mean {near}?"


def _visible(frame: FrameType) -> set[str]:
    """Return the names that code of the user at `frame` can read."""
    found = {*frame.f_globals, *vars(builtins)}
    # Blocks of rewritten code are functions inside the user's.
    current: FrameType | None = frame
    while current is not None:
        if current.f_code.co_filename == frame.f_code.co_filename:
            code = current.f_code
            found.update(code.co_varnames, code.co_cellvars, code.co_freevars)
            if not is_rewritten(code):
                break
        current = current.f_back
    return {name for name in found if not name.startswith("__")}


def _signature_hint(name: str, frame: FrameType, source: str) -> str | None:
    """Return the signature of the function that a call in `source` names `name`."""
    import ast

    try:
        tree = ast.parse(source.strip(), mode="eval")
    except SyntaxError:
        return None
    scope = {**frame.f_globals, **frame.f_locals}
    for node in ast.walk(tree):
        if isinstance(node, ast.Call):
            function = _resolved(node.func, scope)
            named = getattr(function, "__name__", None) == name
            if function is None or not (named or isinstance(function, type)):
                continue
            try:
                return f"it is {ast.unparse(node.func)}{_parameters(function)}"
            except (TypeError, ValueError):
                return None
    return None


def called_library(frame: FrameType) -> str | None:
    """Return the function of NumPy that the running call of `frame` names, as it is written."""
    import ast

    try:
        tree = ast.parse(_text(span_of_code(frame.f_code, frame.f_lasti)).strip(), mode="eval")
    except SyntaxError:
        return None
    if not isinstance(tree.body, ast.Call):
        return None
    function = _resolved(tree.body.func, {**frame.f_globals, **frame.f_locals})
    module = getattr(function, "__module__", None) or ""
    return ast.unparse(tree.body.func) if module.startswith("numpy") else None


def _parameters(function: Any) -> str:
    import inspect

    signature = inspect.signature(function)
    plain = [
        one.replace(annotation=inspect.Parameter.empty)
        for one in signature.parameters.values()
        if one.name not in ("loc", "ip") and one.kind is not inspect.Parameter.VAR_KEYWORD
    ]
    return str(signature.replace(parameters=plain, return_annotation=inspect.Signature.empty))


def _resolved(node: ast.expr, scope: dict[str, Any]) -> Any:
    """Return the value of a dotted name, or None; nothing is called."""
    import ast

    if isinstance(node, ast.Name):
        return scope.get(node.id)
    if isinstance(node, ast.Attribute):
        owner = _resolved(node.value, scope)
        return None if owner is None else getattr(owner, node.attr, None)
    return None
