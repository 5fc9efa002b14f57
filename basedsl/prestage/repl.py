"""Source of functions that are in no file: those typed at the plain prompt of Python 3.11 and 3.12,
from readline's history, and those of `python -c`, from the process's own arguments.

Neither keeps its source for `linecache`. The history has it line by line, and a text is accepted
only if compiling it yields the very code object. Later Pythons and IPython go through linecache.
"""

from __future__ import annotations

import sys
from types import CodeType
from typing import Any

_LONGEST = 2000


def typed_source(code: CodeType, history: list[str] | None = None) -> str | None:
    """Return the text that defined `code`, its first line being line 1, or None."""
    if code.co_filename == "<string>":
        return _command(code)
    if code.co_filename != "<stdin>":
        return None
    lines = _history() if history is None else history
    lines = lines[-_LONGEST:]
    for start in range(len(lines) - 1, -1, -1):
        if not lines[start].strip() or lines[start][0].isspace():
            continue
        # A statement goes on while lines are indented, close a bracket or continue a header.
        for stop in range(start + 1, len(lines) + 1):
            text = "\n".join(lines[start:stop]) + "\n"
            compiled = _compile(text)
            if compiled is not None and contains(compiled, code):
                return text
            if stop - start > 1 and compiled is None and _complete(lines[start : stop - 1]):
                break
    return None


def _command(code: CodeType) -> str | None:
    """Return the argument of `python -c` that has `code`; None for the texts of others, such as
    those given to `exec`, whose file has the same name.
    """
    for text in sys.orig_argv[1:]:
        if code.co_name in text or code.co_name == "<lambda>":
            try:
                compiled = compile(text, "<string>", "exec", dont_inherit=True)
            except (SyntaxError, ValueError):
                continue
            if contains(compiled, code):
                return text
    return None


def _history() -> list[str]:
    # Importing readline where nothing did so yet would find an empty history.
    readline: Any = sys.modules.get("readline")
    if readline is None:
        return []
    count = readline.get_current_history_length()
    entries = [readline.get_history_item(i) for i in range(1, count + 1)]
    return [line for entry in entries if entry for line in entry.split("\n")]


def _compile(text: str) -> CodeType | None:
    try:
        return compile(text, "<stdin>", "single", dont_inherit=True)
    except (SyntaxError, ValueError):
        return None


def _complete(lines: list[str]) -> bool:
    return _compile("\n".join(lines) + "\n") is not None


def contains(outer: CodeType, code: CodeType) -> bool:
    """Return True if the code of a function is among the constants of `outer`, at any depth."""
    return any(
        same_code(const, code) or contains(const, code)
        for const in outer.co_consts
        if isinstance(const, CodeType)
    )


def same_code(a: CodeType, b: CodeType) -> bool:
    """Return True if two code objects do the same on the same lines, whatever their files."""
    return (
        a.co_name == b.co_name
        and a.co_firstlineno == b.co_firstlineno
        and a.co_code == b.co_code
        and a.co_names == b.co_names
        and a.co_varnames == b.co_varnames
        and a.co_freevars == b.co_freevars
        and a.co_cellvars == b.co_cellvars
        and len(a.co_consts) == len(b.co_consts)
        and all(
            same_code(x, y)
            if isinstance(x, CodeType) and isinstance(y, CodeType)
            else type(x) is type(y) and repr(x) == repr(y)
            for x, y in zip(a.co_consts, b.co_consts, strict=True)
        )
    )
