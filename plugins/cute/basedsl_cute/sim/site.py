"""Where an operation of a kernel comes from: what errors of the simulator are told at."""

from __future__ import annotations

from typing import NamedTuple

from basedsl.location import Span, called_from


class Site(NamedTuple):
    """Where an operation comes from: its name, the user's line, and the lines that inlined it."""

    op: str
    span: Span | None
    callers: tuple[Span, ...] = ()

    @property
    def line(self) -> str:
        return str(self.span) if self.span else "an unknown line"

    @property
    def notes(self) -> tuple[tuple[str, Span | None], ...]:
        return tuple((called_from(span), span) for span in self.callers)
