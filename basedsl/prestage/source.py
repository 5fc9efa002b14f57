"""Finds the syntax tree of a function object, with the user's line and column on every node.

The outermost statement around the function is parsed with empty lines for what is before it, so
nothing is dedented and no position has to be corrected; where that is not found by looking at the
lines, the whole file (notebook cell, `exec` text known to linecache). Functions are found by name
and first line, lambdas by the exact positions their code object carries. Functions typed at a
prompt are left to `repl`.
"""

from __future__ import annotations
import __future__

import ast
import linecache
import os
import threading
from collections import OrderedDict
from types import CodeType, FunctionType
from typing import Any, NamedTuple

from basedsl.errors import DSLSyntaxError
from basedsl.location import STARTED, Span, span_of_definition
from basedsl.prestage import repl
from basedsl.prestage.nodes import CHILD_FIELDS, FunctionNode, clone, identifiers, walk

AnyFunction = ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda

FUTURE_FLAGS = 0
for _name in __future__.all_feature_names:
    FUTURE_FLAGS |= getattr(__future__, _name).compiler_flag

_Position = tuple[int, int]

_KEPT_FILES = 32
_files: OrderedDict[tuple[str, int], _File] = OrderedDict()
_lock = threading.Lock()


class FunctionSource(NamedTuple):
    """A function's own copy of its syntax tree, and its place in the file."""

    filename: str
    node: FunctionNode
    #: The innermost class around the function in the source, which mangles private names.
    class_name: str | None


class _Entry(NamedTuple):
    node: AnyFunction
    class_name: str | None


class _File(NamedTuple):
    lines: list[str]
    entries: dict[tuple[str, int], list[_Entry]]


def find_source(fn: FunctionType) -> FunctionSource:
    """Return the tree of `fn`; without a source, a `DSLSyntaxError` that says what to do."""
    code = fn.__code__
    linecache.checkcache(code.co_filename)
    lines = linecache.getlines(code.co_filename, fn.__globals__)
    if lines:
        entry = _in_statement(code, lines) or _in_file(code, lines)
        if entry is None or _edited(code, lines):
            raise _stale(code)
    else:
        text = repl.typed_source(code)
        if text is None:
            raise _missing(code)
        tree = ast.parse(text, code.co_filename)
        entry = _select(code, _index(tree).get((code.co_name, code.co_firstlineno), []))
        if entry is None:
            raise _missing(code)
    if isinstance(entry.node, ast.AsyncFunctionDef):
        raise DSLSyntaxError(
            f"async function {code.co_name!r} cannot be compiled",
            _span(code),
            "write a plain 'def'",
        )
    return FunctionSource(code.co_filename, clone(entry.node), entry.class_name)


# First characters of lines that begin no statement of a module; "" is that of an empty text.
_CONTINUES = frozenset(("", " ", "\t", "\f", "\n", "\r", "#", ")", "]", "}", '"', "'"))


def _in_statement(code: CodeType, lines: list[str]) -> _Entry | None:
    """Return the function of `code` in the statement that its first line is in, judged by the first
    characters of lines; None if what looks like that statement is none, or has no such function.
    """
    first = min(code.co_firstlineno, len(lines)) - 1
    while first > 0 and lines[first][:1] in _CONTINUES:
        first -= 1
    last = first
    while last < len(lines) and lines[last][:1] in _CONTINUES | {"@"}:  # decorators
        last += 1
    last += 1
    while last < len(lines) and lines[last][:1] in _CONTINUES:
        last += 1
    try:
        found = _parsed(code.co_filename, first, lines[first:last])
    except SyntaxError:
        return None
    return _select(code, found.get((code.co_name, code.co_firstlineno), []))


def _in_file(code: CodeType, lines: list[str]) -> _Entry | None:
    """Return the function of `code` in its whole file."""
    try:
        found = _parsed(code.co_filename, 0, lines)
    except SyntaxError as error:
        raise DSLSyntaxError(
            f"the source of {code.co_filename} does not parse (was it edited since the import?): "
            f"{error.msg}",
            Span(code.co_filename, error.lineno or 1),
        ) from None
    return _select(code, found.get((code.co_name, code.co_firstlineno), []))


def _parsed(filename: str, before: int, lines: list[str]) -> dict[tuple[str, int], list[_Entry]]:
    """Return the functions in `lines` of a file, `before` of which come first. Raises SyntaxError
    for lines that are not whole statements.
    """
    with _lock:
        known = _files.get((filename, before))
        if known is None or known.lines != lines:
            tree = ast.parse("\n" * before + "".join(lines), filename)
            known = _files[filename, before] = _File(list(lines), _index(tree))
            while len(_files) > _KEPT_FILES:
                _files.popitem(last=False)
        _files.move_to_end((filename, before))
        return known.entries


def _index(tree: ast.AST) -> dict[tuple[str, int], list[_Entry]]:
    """Return all functions of a tree by code name and first line."""
    found: dict[tuple[str, int], list[_Entry]] = {}
    stack: list[tuple[ast.AST, str | None]] = [(tree, None)]
    while stack:
        node, class_name = stack.pop()
        if type(node) not in _SCOPES:  # as nearly all
            pass
        elif isinstance(node, ast.Lambda):
            found.setdefault(("<lambda>", node.lineno), []).append(_Entry(node, class_name))
        elif isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            line = node.decorator_list[0].lineno if node.decorator_list else node.lineno
            found.setdefault((node.name, line), []).append(_Entry(node, class_name))
        elif isinstance(node, ast.ClassDef):
            outside: list[ast.AST] = [*node.decorator_list, *node.bases, *node.keywords]
            stack += [(child, class_name) for child in outside]
            stack += [(child, node.name) for child in node.body]
            continue
        for field in CHILD_FIELDS[type(node)]:
            value: Any = getattr(node, field, None)
            if type(value) is list:
                stack += [(item, class_name) for item in value if type(item) not in _NO_NODES]
            elif type(value) not in _NO_NODES:
                stack.append((value, class_name))
    return found


_SCOPES = frozenset({ast.Lambda, ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef})
# What fields hold that has no function inside: nothing, text, a name, a constant.
_NO_NODES = frozenset({type(None), str, int, bool, ast.Name, ast.Constant})


def _select(code: CodeType, entries: list[_Entry]) -> _Entry | None:
    fitting = [entry for entry in entries if _fits(code, entry.node)]
    if code.co_name != "<lambda>" or len(fitting) < 2:
        return fitting[0] if fitting else None
    start, end = _code_extent(code)
    around = [
        entry
        for entry in fitting
        if start is not None and _extent(entry.node)[0] <= start and end <= _extent(entry.node)[1]
    ]
    if around:
        # Lambdas are disjoint or nested: the innermost one around the code is the one.
        return max(around, key=lambda entry: _extent(entry.node)[0])
    if len({ast.dump(entry.node) for entry in fitting}) == 1:
        return fitting[0]
    raise DSLSyntaxError(
        "several lambdas on this line, and Python keeps no column numbers to tell them apart",
        _span(code),
        "write each lambda on a line of its own",
    )


def _extent(node: AnyFunction) -> tuple[_Position, _Position]:
    """Return the first and last position of the body of a lambda."""
    assert isinstance(node, ast.Lambda)
    body = node.body
    return (body.lineno, body.col_offset), (body.end_lineno or 0, body.end_col_offset or 0)


def _code_extent(code: CodeType) -> tuple[_Position | None, _Position]:
    """Return the stretch of source that the instructions of a code object come from."""
    start: _Position | None = None
    end = (0, 0)
    for line, end_line, col, end_col in code.co_positions():
        if line is None or end_line is None or col is None or end_col is None:
            continue
        if (line, col) != (end_line, end_col):  # an empty place belongs to no expression
            start = (line, col) if start is None else min(start, (line, col))
            end = max(end, (end_line, end_col))
    return start, end


def _fits(code: CodeType, node: AnyFunction) -> bool:
    """Return True if a tree can be the source of a code object (it may have been edited since)."""
    args = node.args
    if (
        len(args.posonlyargs) + len(args.args) != code.co_argcount
        or len(args.kwonlyargs) != code.co_kwonlyargcount
    ):
        return False
    names = identifiers(walk(node))
    # Names with "@" or "." are invented (assertion rewriting, comprehensions); private ones
    # are mangled.
    return all(
        name in names
        for name in (*code.co_varnames, *code.co_cellvars)
        if name.isidentifier() and "__" not in name
    )


def _edited(code: CodeType, lines: list[str]) -> bool:
    """Return True if a file was saved since this process began, and is not the text of `code`."""
    try:
        if os.stat(code.co_filename).st_mtime < STARTED:
            return False
    except OSError:  # a notebook's cell, or text given to exec
        return False
    text = compile("".join(lines), code.co_filename, "exec", dont_inherit=True)
    return not repl.contains(text, code)


def _span(code: CodeType) -> Span:
    return span_of_definition(code)


def _stale(code: CodeType) -> DSLSyntaxError:
    return DSLSyntaxError(
        f"the file of {code.co_name!r} was changed after it was imported",
        _span(code),
        "reload the module or restart Python",
    )


def _missing(code: CodeType) -> DSLSyntaxError:
    return DSLSyntaxError(
        f"the source of {code.co_name!r} cannot be found (it was defined in {code.co_filename})",
        _span(code),
        "save it to a file, use IPython, Jupyter or the prompt of Python 3.13 or later, or pass "
        "preprocess=False to trace it as it is",
    )
