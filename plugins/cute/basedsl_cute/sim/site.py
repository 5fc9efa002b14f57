"""Sites: the places in the user's program that operations of a kernel come from."""

from __future__ import annotations

import ast
from typing import NamedTuple

from basedsl import Span, called_from


class Site(NamedTuple):
    """The origin of an operation: its name, the user's line, and the lines that inlined it."""

    op: str
    span: Span | None
    callers: tuple[Span, ...] = ()

    @property
    def line(self) -> str:
        """File and line as text."""
        return str(self.span) if self.span else "an unknown line"

    @property
    def notes(self) -> tuple[tuple[str, Span | None], ...]:
        """Notes of an error here: the calls that inlined the operation."""
        return tuple((called_from(span), span) for span in self.callers)

    @property
    def subscripted(self) -> str | None:
        """The tensor of the subscript that the operation comes from, as the source has it."""
        if self.span is None:
            return None
        text = self.span.source_line
        try:
            tree = ast.parse(text.strip())
        except SyntaxError:
            return None
        begin = self.span.col - (len(text) - len(text.lstrip()))
        found = [
            node
            for node in ast.walk(tree)
            if isinstance(node, ast.Subscript) and node.col_offset <= begin < _end(node)
        ]
        if not found:
            found = [node for node in ast.walk(tree) if isinstance(node, ast.Subscript)]
        if len({ast.unparse(node.value) for node in found}) != 1:
            return None
        return ast.unparse(found[0].value)

    def argument(self, position: int) -> str | None:
        """The positional argument of the call that the operation comes from, such as `acc` of
        `cute.gemm(mma, acc, a, b, acc)`, as the source has it; None where the line does not say.
        """
        if self.span is None:
            return None
        try:
            tree = ast.parse(self.span.source_line.strip())
        except SyntaxError:
            return None
        calls = [node for node in ast.walk(tree) if isinstance(node, ast.Call)]
        if not calls or len(calls[0].args) <= position:
            return None
        return ast.unparse(calls[0].args[position])


def _end(node: ast.expr) -> int:
    return node.end_col_offset or 0
