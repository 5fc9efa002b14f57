"""The resources that compiled code takes: records by function, as text and as a table."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Generic, Protocol, TypeVar


class Record(Protocol):
    """The resources of one function: `figures` are what a table shows, by their names."""

    def figures(self) -> dict[str, str]: ...


R = TypeVar("R", bound=Record)


class Resources(Mapping[str, R], Generic[R]):
    """The resources of the functions of one compilation: `records`, by the functions' names."""

    def __init__(self, records: Mapping[str, R]) -> None:
        self._records = dict(records)

    def __getitem__(self, name: str) -> R:
        return self._records[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._records)

    def __len__(self) -> int:
        return len(self._records)

    def __repr__(self) -> str:
        return f"Resources({self._records!r})"

    def __str__(self) -> str:
        lines = []
        for name, record in self._records.items():
            lines.append(f"{name}: " + ", ".join(f"{v} {k}" for k, v in record.figures().items()))
        return "\n".join(lines)

    def to_html(self) -> str:
        """Return a table with a row for each function; "" without any."""
        if not self._records:
            return ""
        heads = list(dict.fromkeys(k for record in self.values() for k in record.figures()))
        rows = [
            "".join(f"<td>{escape_html(record.figures().get(head, ''))}</td>" for head in heads)
            for record in self.values()
        ]
        top = "".join(f"<th>{escape_html(head)}</th>" for head in heads)
        body = "".join(
            f"<tr><th>{escape_html(name)}</th>{row}</tr>"
            for name, row in zip(self, rows, strict=True)
        )
        return f"<table><tr><th></th>{top}</tr>{body}</table>"


@dataclass(frozen=True)
class HostResources:
    """The resources of code for the CPU: bytes of machine code."""

    code: int

    def figures(self) -> dict[str, str]:
        return {"bytes of code": str(self.code)}


def details(title: str, text: str) -> str:
    """Return HTML that shows `text` when somebody opens its title."""
    shown = f"<pre>{escape_html(text)}</pre>"
    return f"<details><summary>{escape_html(title)}</summary>{shown}</details>"


def escape_html(text: str) -> str:
    """Return a text as HTML shows it."""
    from html import escape  # only notebooks ask

    return escape(text)
