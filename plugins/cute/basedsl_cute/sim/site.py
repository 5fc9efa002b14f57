"""Sites: the places in the user's program that operations of a kernel come from."""

from __future__ import annotations

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
