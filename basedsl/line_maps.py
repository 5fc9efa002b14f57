"""Line maps: the Python lines that each line of a stage's text comes from.

A `Lined` text is the text for people, and for each of its lines the places it comes from, innermost
first: pairs of a file and a 1-based line.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:  # calls of code that is on the disk do not import it
    import ast

Place = tuple[str, int]


class Lined(NamedTuple):
    """A text, and the places that each of its lines comes from."""

    text: str
    places: list[tuple[Place, ...]]

    @classmethod
    def unknown(cls, text: str) -> Lined:
        """Return a text whose lines come from nowhere that is known."""
        return cls(text, [()] * len(text.splitlines()))


def joined(parts: Sequence[Lined]) -> Lined:
    """Return texts below one another, an empty line between two."""
    lines: list[str] = []
    places: list[tuple[Place, ...]] = []
    for part in parts:
        if lines:
            lines.append("")
            places.append(())
        lines += part.text.splitlines()
        places += part.places
    return Lined("\n".join(lines) + "\n", places)


_ALIAS = re.compile(r"^(#loc\d*) = (.*)$")
_PLACE = re.compile(r'"([^"\n]+)":(\d+):\d+')
_REFERENCE = re.compile(r"#loc\d*\b")
_DEFINITION = re.compile(r"^#\w+ = ")


def of_mlir(text: str) -> Lined:
    """Read a module printed with locations; the text is the one without them."""
    aliases: dict[str, str] = {}
    kept = []
    for line in text.splitlines():
        alias = _ALIAS.match(line)
        if alias is not None:
            aliases[alias[1]] = alias[2]
        elif not _DEFINITION.match(line):
            kept.append(line)
    lines, places = [], []
    for line in kept:
        plain, locations = _without_locations(line)
        lines.append(plain)
        found = [place for location in locations for place in _places(location, aliases)]
        places.append(tuple(dict.fromkeys(found)))
    return Lined("\n".join(lines) + "\n", places)


def _without_locations(line: str) -> tuple[str, list[str]]:
    """Take each `loc(...)` out of a line; its brackets may nest."""
    found, start = [], line.find(" loc(")
    while start >= 0:
        depth, end = 0, start + 4
        while end < len(line):
            depth += {"(": 1, ")": -1}.get(line[end], 0)
            end += 1
            if depth == 0:
                break
        found.append(line[start + 5 : end - 1])
        line = line[:start] + line[end:]
        start = line.find(" loc(", start)
    return line, found


def _places(location: str, aliases: dict[str, str], depth: int = 0) -> list[Place]:
    found = [(file, int(line)) for file, line in _PLACE.findall(location)]
    if depth < 8:
        for name in _REFERENCE.findall(location):
            found += _places(aliases.get(name, ""), aliases, depth + 1)
    return found


def of_rewritten(text: str, tree: ast.AST, file: str) -> Lined:
    """Map rewritten Python to the lines of the file: `tree` is what `text` was written from, and
    its nodes have the user's lines.
    """
    import ast

    places: list[dict[Place, None]] = [{} for _ in text.splitlines()]
    stack: list[tuple[ast.AST, ast.AST]] = [(ast.parse(text).body[0], tree)]
    while stack:
        shown, original = stack.pop()
        if type(shown) is not type(original):
            continue
        line = getattr(original, "lineno", None)
        if line is not None and hasattr(shown, "lineno") and isinstance(shown, ast.stmt | ast.expr):
            places[shown.lineno - 1][file, line] = None
        theirs, ours = list(ast.iter_child_nodes(shown)), list(ast.iter_child_nodes(original))
        if isinstance(original, ast.FunctionDef):  # shown without its decorators
            ours = [one for one in ours if one not in original.decorator_list]
            theirs = [one for one in theirs if one not in getattr(shown, "decorator_list", ())]
        if len(theirs) == len(ours):
            stack += zip(theirs, ours, strict=True)
    return Lined(text, [tuple(one) for one in places])
