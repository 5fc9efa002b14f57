"""Places in the user's source: spans, the nearest user frame, the text with a caret.

Nothing here knows MLIR. A *user frame* is a Python frame whose file is not part of basedsl or of a
plugin; plugins mark their own folder with `mark_internal`.
"""

from __future__ import annotations

import contextlib
import functools
import linecache
import os
import re
import sys
import time
import unicodedata
from collections.abc import Iterator
from dataclasses import dataclass, field
from types import CodeType, FrameType
from typing import Any

_internal_prefixes: list[str] = []
_user_prefixes: list[str] = []
STARTED = time.time()  # a file saved later need not be the text of the code that runs
_STDLIB = os.path.join(os.path.dirname(os.path.abspath(os.__file__)), "")
_PASS_ON = frozenset((contextlib.__file__, functools.__file__))

# A longer span is shortened to its first line.
_MOST_LINES = 4


def mark_internal(path: str) -> None:
    """Treat the file `path`, or every file below that folder, as library code, which users' errors
    do not show. Packages of languages need no call.
    """
    path = os.path.abspath(path)
    _internal_prefixes.append(path if path.endswith(".py") else os.path.join(path, ""))
    internal_files.clear()


def mark_user(path: str) -> None:
    """Treat a file, or every file below a folder, as users' code, though a library ships it."""
    path = os.path.abspath(path)
    _user_prefixes.append(path if path.endswith(".py") else os.path.join(path, ""))
    internal_files.clear()


_names_in_utf8: dict[str, str] = {}


def utf8_name(filename: str) -> str:
    """Return the name of a file as UTF-8 can have it: bytes that are no UTF-8 as `\\xff`."""
    text = filename.encode("utf-8", "surrogateescape").decode("utf-8", "backslashreplace")
    _names_in_utf8[text] = filename
    return text


def name_of_utf8(text: str) -> str:
    """Return the name of the file of which `utf8_name` made `text`."""
    return _names_in_utf8.get(text, text)


class _Files(dict[str, bool]):
    def __missing__(self, filename: str) -> bool:
        path = os.path.abspath(filename)
        known = self[filename] = (
            filename.startswith("<frozen ")
            or filename in _PASS_ON
            or (
                path.startswith(tuple(_internal_prefixes))
                and not path.startswith(tuple(_user_prefixes))
            )
        )
        return known


#: `is_internal` by file name, for callers that ask for every frame of a stack.
internal_files = _Files()


def is_internal(filename: str) -> bool:
    """Return True for files of basedsl, of plugins marked internal, of the import machinery, and of
    the standard library's modules that only pass calls on.
    """
    return internal_files[filename]


def file_of_module(module: Any) -> str:
    """Return the file of a module, "" for none. A `__getattr__` of the module is not asked."""
    found = getattr(module, "__dict__", {}).get("__file__")
    return found if isinstance(found, str) else ""


def is_internal_frame(frame: FrameType) -> bool:
    """Return True for a frame of library code (`is_internal`), and for methods that `dataclasses`
    generated: they have no source to show.
    """
    code = frame.f_code
    if code.co_filename == "<string>" and code.co_name.startswith("__"):
        return True
    return is_internal(code.co_filename)


def asks_as_library(frame: FrameType | None) -> bool:
    """Return True if the question for an object's class, which `frame` asks, is the library's.

    Abstract base classes ask in the name of their caller.
    """
    while frame is not None and frame.f_code.co_filename.startswith("<frozen "):
        frame = frame.f_back
    if frame is None:
        return True
    filename = frame.f_code.co_filename
    return internal_files[filename] and filename not in _PASS_ON


def is_rewritten(code: CodeType) -> bool:
    """Return True for code made by the pre-stage: its control flow is captured."""
    return "__dsl__" in code.co_consts


def is_library(filename: str) -> bool:
    """Return True for files of installed packages and of Python's own library."""
    return "-packages" in filename or filename.startswith(_STDLIB)


@dataclass(frozen=True, slots=True)
class Span:
    """A stretch of source in the file `filename`, from `line` and `col` to `end_line` and
    `end_col`, if these are known: 1-based lines, 0-based columns in characters, end exclusive.
    `callers` are the calls that led there, innermost first, where that is known.
    """

    filename: str
    line: int
    col: int = 0
    end_line: int | None = None
    end_col: int | None = None
    callers: tuple[Span, ...] = field(default=(), compare=False)

    def __str__(self) -> str:
        cell = _cell(self.filename)
        if cell is not None:
            return f"cell [{cell}], line {self.line}"
        return f"{self.filename}:{self.line}"

    @property
    def source_line(self) -> str:
        """The first line of the span without its line break, or "" if the source is not at hand."""
        return linecache.getline(self.filename, self.line).rstrip("\n")

    def excerpt(self) -> str:
        """Return `file:line`, the source line, and carets under the span; of a span over a few
        lines, each line with its carets.
        """
        head = f"  --> {self}"
        last = self.end_line or self.line
        if last - self.line >= _MOST_LINES or self.end_col is None:
            last = self.line
        lines = [linecache.getline(self.filename, n).rstrip() for n in range(self.line, last + 1)]
        if not lines[0].strip():
            return head
        gutter = len(str(last))
        shown = [head, f"{'':{gutter}} |"]
        for number, text in enumerate(lines, self.line):
            start = self.col if number == self.line else len(text) - len(text.lstrip())
            end = len(text)
            if number == self.end_line and self.end_col is not None:
                end = min(self.end_col, end)
            shown.append(f"{number:{gutter}} | {text}".rstrip())
            if text:
                shown.append(f"{'':{gutter}} | {_carets(text, start, end)}")
        return "\n".join(shown)


def _cell(filename: str) -> str | None:
    """Return the number of the notebook's cell that IPython compiles as the file `filename`."""
    ipython = sys.modules.get("IPython")
    shell = None if ipython is None else ipython.get_ipython()
    if shell is None:
        return None
    # "Cell", "In[4]" for a cell; None for other files.
    named = shell.compile.format_code_name(filename)
    found = None if named is None else re.fullmatch(r"In\s?\[(\d+)\]", named[1])
    return None if found is None else found[1]


def _carets(text: str, start: int, end: int) -> str:
    start = min(start, max(end - 1, 0))
    indent = "".join(c if c == "\t" else " " * _columns(c) for c in text[:start])
    return indent + "^" * max(sum(map(_columns, text[start:end])), 1)


def _columns(c: str) -> int:
    """Return how many columns of a terminal a character takes."""
    if unicodedata.combining(c):
        return 0
    return 2 if unicodedata.east_asian_width(c) in "WF" else 1


def span_of_code(code: CodeType, instruction: int) -> Span:
    """Return the span of the instruction at byte offset `instruction` of `code`."""
    line, end_line, col, end_col = _positions_of(code)[instruction // 2]
    if line is None:
        return Span(code.co_filename, code.co_firstlineno)
    col, end_col = _in_characters(code.co_filename, line, col, end_line, end_col)
    return Span(code.co_filename, line, col, end_line, end_col)


def start_of_code(code: CodeType, instruction: int) -> tuple[int, int]:
    """Return line and column of the instruction at byte offset `instruction` of `code`, as
    `span_of_code` has them: most locations need no more.
    """
    line, _, col, _ = _positions_of(code)[instruction // 2]
    if line is None:
        return code.co_firstlineno, 0
    filename = code.co_filename
    if not col:
        return line, 0
    kept, is_ascii = _ascii.get(filename, _UNKNOWN_TEXT)
    if kept is not linecache.cache.get(filename):
        is_ascii = all(map(str.isascii, linecache.getlines(filename)))
        _ascii[filename] = linecache.cache.get(filename), is_ascii
    return line, col if is_ascii else _characters(filename, line, col)


#: By file, its entry in `linecache`, and if the text is ASCII alone: there bytes are characters.
_ascii: dict[str, tuple[Any, bool]] = {}
_UNKNOWN_TEXT = (object(), False)
_Positions = list[tuple[int | None, int | None, int | None, int | None]]
_KEPT_CODES = 64
_positions: dict[int, tuple[CodeType, _Positions]] = {}


def _positions_of(code: CodeType) -> _Positions:
    """Return the table of a code object, decoded once: code walks through it instruction by
    instruction.

    By identity, as hashing a code object costs as much as its length.
    """
    known = _positions.get(id(code))
    if known is None:
        if len(_positions) >= _KEPT_CODES:
            _positions.clear()
        known = _positions[id(code)] = code, list(code.co_positions())
    return known[1]


def _in_characters(
    filename: str, line: int, col: int | None, end_line: int | None, end_col: int | None
) -> tuple[int, int | None]:
    # Code objects count columns in UTF-8 bytes; people count characters.
    if col is None:
        return 0, None
    start = _characters(filename, line, col)
    if end_col is None or end_line is None:
        return start, end_col
    return start, _characters(filename, end_line, end_col)


def _characters(filename: str, line: int, nbytes: int) -> int:
    lines = linecache.getlines(filename)
    text = lines[line - 1] if 0 < line <= len(lines) else ""
    if text.isascii():
        return nbytes
    return len(text.encode()[:nbytes].decode(errors="ignore"))


def in_bytes(span: Span) -> tuple[int, int, int]:
    """Return first column, last line and last column in bytes, as code objects and trees count
    them.
    """
    last = span.end_line or span.line
    text = linecache.getline(span.filename, last).rstrip()
    if span.end_col is not None:
        text = text[: span.end_col]
    return len(span.source_line[: span.col].encode()), last, len(text.encode())


def enclosing_function(span: Span) -> str | None:
    """Return the name of the function that the line is in, judged by the indentation above it."""
    line, text = span.line, span.source_line
    indent = len(text) - len(text.lstrip())
    while line > 1 and indent:
        line -= 1
        text = linecache.getline(span.filename, line)
        here = len(text) - len(text.lstrip())
        if text.strip() and here < indent:
            indent = here
            if found := re.match(r"(?:async )?def (\w+)", text.lstrip()):
                return found[1]
    return None


_ASSIGNMENT = re.compile(r"\s*(\w+)\s*(?::[^=]+)?=(?!=)")


def assigned_name() -> str | None:
    """The variable that the user's running line assigns to, if it begins with an assignment."""
    frame = user_frame(sys._getframe(1))
    if frame is None:
        return None
    found = _ASSIGNMENT.match(linecache.getline(frame.f_code.co_filename, frame.f_lineno))
    return None if found is None else found[1]


def called_from(span: Span) -> str:
    """Return the text of a note at the call that `span` is the place of."""
    name = enclosing_function(span)
    return "called from here" if name is None else f"called from {name}()"


def lines_of_code(code: CodeType) -> tuple[int, int]:
    """Return the first and the last line of a function, those of functions inside it included."""
    first = last = code.co_firstlineno
    for _, _, line in code.co_lines():
        last = max(last, line or 0)
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            last = max(last, lines_of_code(constant)[1])
    return first, last


def span_of_frame(frame: FrameType) -> Span:
    """Return the span that `frame` is executing now."""
    if frame.f_lasti < 0:
        return Span(frame.f_code.co_filename, frame.f_lineno)
    return span_of_code(frame.f_code, frame.f_lasti)


@functools.cache
def _wraps_calls(filename: str) -> bool:
    """Return True for frames that PyTorch and JAX put between a program and what it calls."""
    path = filename.replace(os.sep, "/")
    return "/torch/_dynamo/" in path or "/jax/_src/" in path


def user_frames(start: FrameType | None = None) -> Iterator[FrameType]:
    """Yield user frames from the innermost outward."""
    frame = sys._getframe(1) if start is None else start
    current: FrameType | None = frame
    while current is not None:
        if not is_internal_frame(current) and not _wraps_calls(current.f_code.co_filename):
            yield current
        current = current.f_back


def user_frame(start: FrameType | None = None) -> FrameType | None:
    """Return the innermost user frame, or None when library code was called by nobody."""
    return next(user_frames(sys._getframe(1) if start is None else start), None)


def user_span(start: FrameType | None = None) -> Span | None:
    """Return the span of the innermost user frame, from the frame `start` (by default, the
    caller's) outwards; None without one.
    """
    frame = user_frame(sys._getframe(1) if start is None else start)
    return None if frame is None else span_of_frame(frame)


def span_of_function(fn: object) -> Span | None:
    """Return the place where the Python function `fn` is defined, or None for other callables."""
    code = getattr(fn, "__code__", None)
    return None if code is None else span_of_definition(code)


def span_of_return(fn: Any) -> Span | None:
    """Return the first `return` with a value in the Python function `fn`; without one, or without
    the source, its definition.
    """
    import ast
    import inspect
    import textwrap

    try:
        lines, first = inspect.getsourcelines(fn)
        tree = ast.parse(textwrap.dedent("".join(lines)))
    except (OSError, SyntaxError, TypeError):
        return span_of_function(fn)
    indent = len(lines[0]) - len(lines[0].lstrip())
    found = [x for x in ast.walk(tree) if isinstance(x, ast.Return) and x.value is not None]
    if not found:
        return span_of_function(fn)
    node = min(found, key=lambda x: x.lineno)
    line, end = first + node.lineno - 1, first + (node.end_lineno or node.lineno) - 1
    code = fn.__code__
    return Span(
        code.co_filename, line, node.col_offset + indent, end, (node.end_col_offset or 0) + indent
    )


def span_of_definition(code: CodeType) -> Span:
    """Return the line with the `def` of a function; code objects begin at its first decorator."""
    for line in range(code.co_firstlineno, lines_of_code(code)[1] + 1):
        text = linecache.getline(code.co_filename, line)
        if text.lstrip().startswith(("def ", "async def ")):
            start = len(text) - len(text.lstrip())
            return Span(code.co_filename, line, start, line, len(text.rstrip().rstrip(":")))
    return Span(code.co_filename, code.co_firstlineno)


mark_internal(os.path.dirname(__file__))
