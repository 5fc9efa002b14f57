"""Lines of a file where a breakpoint can stop: those of its kernels."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import NamedTuple

NOT_A_KERNEL = "no kernel has this line: breakpoints here stop in kernels, on the simulator"
PERHAPS = "not in a kernel: it stops here when a kernel of this file calls the function"


class SourcePlace(NamedTuple):
    """The line where a breakpoint stops; `message` says why it may not, None if a kernel has it."""

    line: int
    message: str | None


class SourceLines:
    """The lines of Python text. Raises SyntaxError."""

    def __init__(self, text: str) -> None:
        self._kernels: list[tuple[range, set[int]]] = []
        self._functions: set[int] = set()
        for node in ast.walk(ast.parse(text)):
            if not isinstance(node, ast.FunctionDef):
                continue
            lines = set(_lines(node))
            if any(map(_is_kernel, node.decorator_list)):
                first = min([node.lineno, *(one.lineno for one in node.decorator_list)])
                self._kernels.append((range(first, (node.end_lineno or first) + 1), lines))
            self._functions |= lines

    def place(self, line: int) -> SourcePlace:
        """Return where a breakpoint wanted at `line` stops: in a kernel, at the next line that runs
        something.
        """
        for extent, lines in self._kernels:
            later = [one for one in lines if one >= line]
            if line in extent and later:
                return SourcePlace(min(later), None)
        return SourcePlace(line, PERHAPS if line in self._functions else NOT_A_KERNEL)


def _is_kernel(decorator: ast.expr) -> bool:
    if isinstance(decorator, ast.Call):
        decorator = decorator.func
    name = decorator.attr if isinstance(decorator, ast.Attribute) else None
    return (decorator.id if isinstance(decorator, ast.Name) else name) == "kernel"


def _lines(function: ast.FunctionDef) -> Iterator[int]:
    """The lines of a function's body that run something."""
    body = function.body
    if ast.get_docstring(function, clean=False) is not None:
        body = body[1:]
    for statement in body:
        for node in ast.walk(statement):
            if isinstance(node, ast.stmt | ast.expr):
                if not isinstance(node, ast.Global | ast.Nonlocal):
                    yield node.lineno
