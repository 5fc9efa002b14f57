"""Where something is in the user's source: spans, the nearest user frame, the text with a caret.

Nothing here knows MLIR. A *user frame* is a Python frame whose file is not part of basedsl or of a
plugin; plugins mark their own folder with `mark_internal`.
"""

from __future__ import annotations

import linecache
import os
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from types import CodeType, FrameType

_internal_prefixes: list[str] = []
_is_internal_file: dict[str, bool] = {}


def mark_internal(folder: str) -> None:
    """Count every file below `folder` as library code, hidden from users' error messages."""
    _internal_prefixes.append(os.path.join(os.path.abspath(folder), ""))
    _is_internal_file.clear()


def is_internal(filename: str) -> bool:
    """True for files of basedsl, of plugins marked internal, and of the import machinery."""
    known = _is_internal_file.get(filename)
    if known is None:
        known = filename.startswith("<frozen ") or os.path.abspath(filename).startswith(
            tuple(_internal_prefixes)
        )
        _is_internal_file[filename] = known
    return known


@dataclass(frozen=True, slots=True)
class Span:
    """A stretch of source: 1-based lines, 0-based columns in characters, end exclusive."""

    filename: str
    line: int
    col: int = 0
    end_line: int | None = None
    end_col: int | None = None

    def __str__(self) -> str:
        return f"{self.filename}:{self.line}"

    @property
    def source_line(self) -> str:
        """The first line of the span without its line break, or "" if the source is not at hand."""
        return linecache.getline(self.filename, self.line).rstrip("\n")

    def excerpt(self) -> str:
        """`file:line`, the source line, and carets under the span."""
        text = self.source_line
        head = f"  --> {self.filename}:{self.line}"
        if not text.strip():
            return head
        end = len(text.rstrip())
        if self.end_line == self.line and self.end_col is not None:
            end = min(self.end_col, end)
        col = min(self.col, max(end - 1, 0))
        gutter = str(self.line)
        blank = " " * len(gutter)
        indent = "".join(c if c == "\t" else " " for c in text[:col])
        carets = "^" * max(end - col, 1)
        return f"{head}\n{blank} |\n{gutter} | {text}\n{blank} | {indent}{carets}"


def span_of_code(code: CodeType, instruction: int) -> Span:
    """The span of the instruction at byte offset `instruction` of `code`."""
    index = instruction // 2
    for i, (line, end_line, col, end_col) in enumerate(code.co_positions()):
        if i == index:
            if line is None:
                break
            col, end_col = _in_characters(code.co_filename, line, col, end_line, end_col)
            return Span(code.co_filename, line, col, end_line, end_col)
    return Span(code.co_filename, code.co_firstlineno)


def _in_characters(
    filename: str, line: int, col: int | None, end_line: int | None, end_col: int | None
) -> tuple[int, int | None]:
    # Code objects count columns in UTF-8 bytes; people count characters.
    if col is None:
        return 0, None
    text = linecache.getline(filename, line)
    if text.isascii():
        return col, end_col
    raw = text.encode()
    start = len(raw[:col].decode(errors="ignore"))
    if end_col is None or end_line != line:
        return start, end_col
    return start, len(raw[:end_col].decode(errors="ignore"))


def span_of_frame(frame: FrameType) -> Span:
    """The span that `frame` is executing now."""
    if frame.f_lasti < 0:
        return Span(frame.f_code.co_filename, frame.f_lineno)
    return span_of_code(frame.f_code, frame.f_lasti)


def user_frames(start: FrameType | None = None) -> Iterator[FrameType]:
    """User frames from the innermost outward."""
    frame = sys._getframe(1) if start is None else start
    current: FrameType | None = frame
    while current is not None:
        if not is_internal(current.f_code.co_filename):
            yield current
        current = current.f_back


def user_frame(start: FrameType | None = None) -> FrameType | None:
    """The innermost user frame, or None when library code was called by nobody."""
    return next(user_frames(sys._getframe(1) if start is None else start), None)


def user_span(start: FrameType | None = None) -> Span | None:
    """The span of the innermost user frame."""
    frame = user_frame(sys._getframe(1) if start is None else start)
    return None if frame is None else span_of_frame(frame)


def span_of_function(fn: object) -> Span | None:
    """Where a Python function is defined, or None for other callables."""
    code = getattr(fn, "__code__", None)
    return None if code is None else Span(code.co_filename, code.co_firstlineno)


mark_internal(os.path.dirname(__file__))
