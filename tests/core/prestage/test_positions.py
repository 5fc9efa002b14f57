"""Rewritten code stands where the user's code stands: files, lines, columns, tracebacks."""

# The programs below are odd on purpose.
# ruff: noqa: F841, E701
from __future__ import annotations

import ast
import traceback
from types import CodeType, FunctionType
from typing import Any

import pytest
from python_runtime import PythonRuntime

from basedsl.prestage import stage_function


def all_code(code: CodeType) -> list[CodeType]:
    found = [code]
    for const in code.co_consts:
        if isinstance(const, CodeType):
            found += all_code(const)
    return found


class Sample:
    class Inner:
        def method(self, xs, n):
            """A method two levels deep."""
            total = 0
            for x in xs:
                if x > n and x != 7:
                    while total < x:
                        total += 1 if x else 2
                        if total == 100:
                            return total
                elif x < 0:
                    continue
                try:
                    total += xs[x % 2]
                except IndexError as error:
                    raise ValueError("é", total) from error
            else:
                assert total, "message"
            return total


def fails_inside(n):
    def inner(k):
        for i in range(k):
            if i > 1:
                "é"
                y = i + [].missing
        return i

    return inner(n)


def frame_of(fn: FunctionType, *args: Any) -> traceback.FrameSummary:
    with pytest.raises(Exception) as caught:
        fn(*args)
    frames = [f for f in traceback.extract_tb(caught.value.__traceback__) if f.filename == __file__]
    return frames[-1]


def test_every_instruction_lies_inside_the_function() -> None:
    fn = Sample.Inner.method
    code = fn.__code__
    last = max(line for *_, line in code.co_lines() if line)
    new = stage_function(fn).bind(PythonRuntime()).__code__
    lines = (code.co_firstlineno, last)
    seen = set()
    with open(__file__, encoding="utf8") as file:
        text = [line.encode() for line in file]
    for part in all_code(new):
        assert part.co_filename == __file__
        for line, end_line, col, end_col in part.co_positions():
            if line is None:
                continue
            seen.add(line)
            assert lines[0] <= line <= (end_line or 0) <= lines[1]
            assert col is not None and end_col is not None
            assert col <= len(text[line - 1])
            assert end_col <= len(text[end_line - 1])
            if (line, col) != (end_line, end_col) and col:
                # Columns fall on the user's tokens, not into white space.
                assert text[line - 1][col : col + 1].strip()
    original = {line for part in all_code(code) for *_, line in part.co_lines() if line}
    gone = {text[line - 1].strip() for line in original - seen}
    assert gone <= {b"continue", b"def method(self, xs, n):"}


def test_every_node_has_a_place() -> None:
    tree = stage_function(Sample.Inner.method)._rewriting.tree
    for node in ast.walk(tree):
        if isinstance(node, ast.expr | ast.stmt | ast.arg | ast.keyword):
            assert node.lineno >= 1
            assert node.end_lineno is not None and node.end_lineno >= node.lineno
            assert node.end_col_offset is not None


@pytest.mark.parametrize("fn", [fails_inside], ids=["nested"])
def test_an_exception_in_a_loop_in_a_nested_function(fn: FunctionType) -> None:
    expected = frame_of(fn, 5)
    found = frame_of(stage_function(fn).bind(PythonRuntime()), 5)
    assert expected.line is not None and "[].missing" in expected.line
    for attribute in ("filename", "lineno", "end_lineno", "colno", "end_colno", "line"):
        assert getattr(found, attribute) == getattr(expected, attribute), attribute


def test_an_exception_in_a_method() -> None:
    fn = Sample.Inner.method
    new = stage_function(fn).bind(PythonRuntime())
    for args in ((None, ["a"], 1), (None, [1, 5, None], 0), (None, 5, 0)):
        expected, found = frame_of(fn, *args), frame_of(new, *args)
        assert (found.lineno, found.line) == (expected.lineno, expected.line)


def test_callbacks_are_called_from_the_header_of_their_construct() -> None:
    import sys

    places: list[tuple[str, int, str]] = []

    class Runtime(PythonRuntime):
        def for_(self, iterable, body, names, undef_ok, exits):  # type: ignore[no-untyped-def]
            frame = sys._getframe(1)
            positions = list(frame.f_code.co_positions())[frame.f_lasti // 2]
            with open(__file__, "rb") as file:
                row = file.read().splitlines()[positions[0] - 1]  # type: ignore[operator]
            places.append(row[positions[2] : positions[3]].decode())  # type: ignore
            super().for_(iterable, body, names, undef_ok, exits)

    def f(n):
        for i in range(
            n): n += i  # fmt: skip
        for j in range(n): n -= j  # fmt: skip
        return n

    stage_function(f).bind(Runtime())(2)
    assert places[1] == "for j in range(n)"
