"""Detection of undecorated code that reads the text of a dynamic number, which has no digits yet.

An f-string of an undecorated helper, `str([n])`, `"%s" % n` and the `__repr__` of an object give
plain texts, which show the value as `?`. Such a text is good for people: it may become a message of
an exception or be printed. What else is done with it is read from the source, from the expression
that makes it on, through assignments and returns; Python would see digits there, so it is an error.

In decorated code the text is marked (`DynamicText`), and says itself that Python code asks for its
contents. There the source tells where it goes to code in C or of a library, which asks nobody.
"""

from __future__ import annotations

import ast
import builtins
import functools
import io
import linecache
import os
from types import CodeType, FrameType, FunctionType
from typing import Any

from basedsl.errors import DSLTypeError
from basedsl.location import is_internal_frame, is_library, is_rewritten, span_of_frame
from basedsl.numeric.text_readers import Names, judge, value_of
from basedsl.tracing import current_trace_or_none

_PEOPLE, _RETURNED, _USED = range(3)
_MAKERS = frozenset({"str", "repr", "format", "ascii"})
_METHODS = frozenset(
    "capitalize casefold center expandtabs format join ljust lower lstrip replace rjust rstrip "
    "strip swapcase title translate upper zfill substitute safe_substitute".split()
)
_MARKING = _MAKERS | {"format", "join", "format_map"}  # of decorated code: they mark what they make
_TELLING = frozenset(
    "print printf debug info warning warn error exception critical log fail skip exit".split()
)
_DEBUGGERS = frozenset({"pdb.py", "bdb.py", "code.py", "pydevd.py"})
_COMPREHENSIONS = frozenset({"<genexpr>", "<listcomp>", "<setcomp>", "<dictcomp>"})
_SCOPES = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda, ast.Module, ast.ClassDef)


def check_text(frame: FrameType | None, is_part: bool = False) -> None:
    """Raise a DSLTypeError if the text of a dynamic value that `frame` makes is used for more than
    messages. The text of a value itself is marked in decorated code (`DynamicText`), not there that
    of what it `is_part` of.
    """
    trace = current_trace_or_none()
    if trace is None:
        return
    followed = is_part
    while frame is not None:
        code = frame.f_code
        if code.co_filename == "<string>" or _passes_on(code):
            if os.path.basename(code.co_filename) in _DEBUGGERS:
                return
            followed, frame = True, frame.f_back
            continue
        if is_internal_frame(frame):
            return
        decorated = is_rewritten(code)
        if decorated and not followed:
            _check_marked(frame, trace)
        found = _use_in(frame, decorated and not followed)
        if found == _PEOPLE:
            return
        if found == _USED or decorated:
            raise trace.refuse(_refusal("used here", frame))
        while code.co_name in _COMPREHENSIONS and frame.f_back is not None:
            frame = frame.f_back
            code = frame.f_code if not _passes_on(frame.f_code) else code
        followed, frame = True, frame.f_back


def _refusal(what: str, frame: FrameType) -> DSLTypeError:
    return DSLTypeError(
        f"a text that shows a value of run time is {what}",
        span_of_frame(frame),
        notes=(("it is made while compiling, with ? for the value", None),),
        hint="use the number itself: texts are for messages",
    )


def _check_marked(frame: FrameType, trace: Any) -> None:
    """Raise a DSLTypeError if the text that decorated code makes goes to code that reads it."""
    step: FrameType | None = frame
    while step is not None:
        source, node = _node_of(step)
        if source is None or node is None:
            return
        names = Names.of_frame(step)
        found = step is frame and source.shown_to(node, names)
        found = found or source.reader(node, names, frozenset())
        if isinstance(found, str):
            raise trace.refuse(_refusal(f"given to '{found}', which reads it", frame))
        if not found:
            return
        step = source.caller(node, step)


def told(frame: FrameType) -> bool:
    """Return True if what runs in a frame of the program shows its arguments to people."""
    source, node = _node_of(frame)
    while source is not None and node is not None:
        if isinstance(node, ast.Raise) or (
            isinstance(node, ast.Call) and source.tells(node, frame)
        ):
            return True
        node = source.parents.get(node)
    return False


def _node_of(frame: FrameType) -> tuple[_Source | None, Any]:
    code = frame.f_code
    source = _source(tuple(linecache.getlines(code.co_filename)))
    positions = list(code.co_positions())[frame.f_lasti // 2]
    return source, None if source is None else source.node_at(positions)


def _passes_on(code: CodeType) -> bool:
    return is_library(code.co_filename)


def _use_in(frame: FrameType, is_marked: bool) -> int:
    """Return what the code of a frame does with the text of the instruction that runs."""
    code = frame.f_code
    if code.co_argcount and isinstance(frame.f_locals.get(code.co_varnames[0]), BaseException):
        return _PEOPLE  # an exception makes its message
    source, node = _node_of(frame)
    if source is None or node is None:
        return _PEOPLE if is_marked else _USED
    if is_marked and not (isinstance(node, ast.BinOp) and isinstance(node.op, ast.Mod)):
        return _PEOPLE
    if isinstance(node, ast.Call) and source.tells(node, frame):
        return _PEOPLE
    return source.use(node, frame, frozenset())


class _Source:
    """The syntax tree of a file."""

    def __init__(self, tree: ast.Module) -> None:
        self.parents: dict[ast.AST, ast.AST] = {}
        for node in ast.walk(tree):
            for child in ast.iter_child_nodes(node):
                self.parents[child] = node

    def node_at(self, positions: tuple[Any, ...]) -> ast.expr | None:
        """Return the smallest expression around an instruction's place."""
        line, end_line, col, end_col = positions
        if None in positions:
            return None
        best: tuple[Any, ast.expr] | None = None
        for node in self.parents:
            if not isinstance(node, ast.expr):
                continue
            start, end = (node.lineno, node.col_offset), (node.end_lineno, node.end_col_offset)
            if start <= (line, col) and (end_line, end_col) <= end:
                size = (end[0] - start[0], end[1] - start[1])  # type: ignore[operator]
                if best is None or size <= best[0]:
                    best = size, node
        return None if best is None else best[1]

    def use(self, node: ast.AST, frame: FrameType, names: frozenset[str]) -> int:
        """Return what is done with the value of an expression; `names` are being followed."""
        while True:
            child, parent = node, self.parents.get(node)
            match parent:
                case ast.Expr() | ast.Raise():
                    return _PEOPLE
                case ast.Assert():
                    return _PEOPLE if child is parent.msg else _USED
                case ast.Return() | ast.Lambda():
                    return _RETURNED
                case ast.keyword() | ast.Starred() | ast.FormattedValue() | ast.JoinedStr():
                    node = parent
                case ast.BinOp(op=ast.Add() | ast.Mod()) | ast.Tuple() | ast.List():
                    node = parent
                case ast.IfExp() if child is not parent.test:
                    node = parent
                case ast.GeneratorExp() | ast.ListComp() if child is parent.elt:
                    node = parent
                case ast.Attribute() if parent.attr in _METHODS and self._calls(parent):
                    node = self.parents[parent]
                case ast.Call() if child is not parent.func:
                    if self.tells(parent, frame):
                        return _PEOPLE
                    if _name(parent.func) not in (_MAKERS | _METHODS):
                        return _USED
                    node = parent
                case (
                    ast.Assign(targets=[ast.Name(id=name)])
                    | ast.AnnAssign(target=ast.Name(id=name))
                    | ast.AugAssign(target=ast.Name(id=name))
                ):
                    return self._uses_of(name, parent, frame, names)
                case _:
                    return _USED

    def reader(self, node: ast.AST, scope: Names, seen: frozenset[Any]) -> str | bool:
        """Return what reads the text of an expression of decorated code; True if the function
        returns the text, else False.
        """
        while True:
            child, parent = node, self.parents.get(node)
            match parent:
                case ast.FormattedValue(format_spec=ast.JoinedStr(values=parts)) if (
                    child is parent.format_spec
                    and any(isinstance(part, ast.FormattedValue) for part in parts)
                ):
                    return "format"
                case (
                    ast.keyword()
                    | ast.Starred()
                    | ast.FormattedValue()
                    | ast.JoinedStr()
                    | ast.Tuple()
                    | ast.List()
                    | ast.Dict()
                    | ast.BinOp(op=ast.Add() | ast.Mod() | ast.Mult())
                    | ast.IfExp()
                    | ast.BoolOp()
                    | ast.GeneratorExp()
                    | ast.ListComp()
                ):
                    node = parent
                case ast.Attribute() if parent.attr in _METHODS and self._calls(parent):
                    node = self.parents[parent]
                case ast.Call() if child is not parent.func:
                    name = _name(parent.func)
                    if name in _TELLING or name.endswith(("Error", "Exception", "Warning")):
                        return False
                    if name in _MARKING:
                        node = parent
                        continue
                    found = judge(parent, child, scope)
                    if isinstance(found, bool):
                        return ast.unparse(parent.func)[:40] if found else False
                    return _parameter_reader(*found, seen)
                case ast.NamedExpr(target=ast.Name(id=name)):
                    read = self._reader_of(name, parent, scope, seen)
                    if isinstance(read, str):
                        return read
                    node = parent
                case (
                    ast.Assign(targets=[ast.Name(id=name)])
                    | ast.AnnAssign(target=ast.Name(id=name))
                    | ast.AugAssign(target=ast.Name(id=name))
                ):
                    return self._reader_of(name, parent, scope, seen)
                case ast.Return():
                    return True
                case _:
                    return False

    def shown_to(self, node: ast.expr, names: Names) -> str | bool:
        """Return the name of a callee in C that makes the text of one of its arguments."""
        if not isinstance(node, ast.Call) or _name(node.func) in (_MARKING | _METHODS | _TELLING):
            return False
        callee = value_of(node.func, names)
        if isinstance(callee, type | FunctionType) or judge(node, node, names) is not True:
            return False
        return ast.unparse(node.func)[:40]

    def _reader_of(self, name: str, at: ast.AST, scope: Names, seen: frozenset[Any]) -> str | bool:
        if name in seen:
            return False
        found = [self.reader(read, scope, seen | {name}) for read in self._reads(name, at)]
        return next((one for one in found if isinstance(one, str)), any(found))

    def caller(self, node: ast.AST, frame: FrameType) -> FrameType | None:
        """Return the frame that called the function around `node`, if its code is decorated. The
        branches and loops of the function are functions of their own.
        """
        function = self._scope(node)
        lines = range(function.lineno, (function.end_lineno or 0) + 1)  # type: ignore[attr-defined]
        step: FrameType | None = frame
        while step is not None and (
            is_internal_frame(step)
            or (step.f_code.co_filename == frame.f_code.co_filename and step.f_lineno in lines)
        ):
            step = step.f_back
        return step if step is not None and is_rewritten(step.f_code) else None

    def parameter(self, function: FunctionType) -> ast.AST | None:
        """Return the first statement of a function's source; None if it is not here."""
        for node in self.parents:
            if isinstance(node, ast.FunctionDef) and node.name == function.__name__:
                first = min([node.lineno, *(one.lineno for one in node.decorator_list)])
                if first == function.__code__.co_firstlineno:
                    return node.body[0]
        return None

    def _scope(self, node: ast.AST) -> ast.AST:
        while not isinstance(node, _SCOPES):
            node = self.parents[node]
        return node

    def _reads(self, name: str, at: ast.AST) -> list[ast.Name]:
        return [
            node
            for node in ast.walk(self._scope(at))
            if isinstance(node, ast.Name) and node.id == name and isinstance(node.ctx, ast.Load)
        ]

    def _uses_of(self, name: str, at: ast.AST, frame: FrameType, names: frozenset[str]) -> int:
        if name in names:
            return _PEOPLE
        reads = self._reads(name, at)
        return max((self.use(read, frame, names | {name}) for read in reads), default=_PEOPLE)

    def _calls(self, function: ast.AST) -> bool:
        call = self.parents.get(function)
        return isinstance(call, ast.Call) and call.func is function

    def tells(self, call: ast.Call, frame: FrameType) -> bool:
        """Return True for a call that shows its arguments to people, or makes an exception."""
        name = _name(call.func)
        if any(
            one.arg == "file"
            and isinstance(value_of(one.value, Names.of_frame(frame)), io.StringIO)
            for one in call.keywords
        ):
            return False
        if name in _TELLING or name.endswith(("Error", "Exception", "Warning")):
            return True
        for scope in (frame.f_locals, frame.f_globals, vars(builtins)):
            if isinstance(call.func, ast.Name) and name in scope:
                found = scope[name]
                return isinstance(found, type) and issubclass(found, BaseException)
        return False


def _parameter_reader(function: FunctionType, name: str, seen: frozenset[Any]) -> str | bool:
    """Return what reads the text that becomes a function's parameter, in the function's source."""
    filename = function.__code__.co_filename
    source = _source(tuple(linecache.getlines(filename)))
    first = None if source is None else source.parameter(function)
    if source is None or first is None or (function, name) in seen:
        return False
    scope = Names.of_function(function)
    known = frozenset(one for one in seen if not isinstance(one, str)) | {(function, name)}
    read = source._reader_of(name, first, scope, known)
    return read if isinstance(read, str) else False


def _name(function: ast.expr) -> str:
    if isinstance(function, ast.Attribute):
        return function.attr
    return function.id if isinstance(function, ast.Name) else ""


@functools.lru_cache(maxsize=64)
def _source(lines: tuple[str, ...]) -> _Source | None:
    try:
        return _Source(ast.parse("".join(lines))) if lines else None
    except SyntaxError:
        return None
