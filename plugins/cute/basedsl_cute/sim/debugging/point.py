"""Debug points: lines of a kernel where it may stop, with the variables that are known there."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any, NamedTuple

from basedsl_cute.sim.site import Site


class Function(NamedTuple):
    """A function of a kernel that is being called, at a line. `variables` has the records of its
    variables by name, as `host.debug_points` writes them.
    """

    name: str
    line: int
    variables: dict[str, Any]


@dataclass(frozen=True, slots=True, eq=False)
class DebugPoint:
    """One place: `stops` marks a `breakpoint()`, the others are lines that steps stop at.
    `functions` are those that are called there, innermost first, and `variables` what the
    innermost one and its callers know.
    """

    stops: bool
    file: str
    functions: tuple[Function, ...]
    variables: dict[str, Any]
    site: Site

    @property
    def line(self) -> int:
        """The line, of the innermost function."""
        return self.functions[0].line

    @property
    def depth(self) -> int:
        """The number of functions that are called."""
        return len(self.functions)

    @staticmethod
    def parse(text: str, site: Site) -> DebugPoint:
        """Read the attribute of an operation."""
        found = json.loads(text)
        functions = tuple(Function(**one) for one in found["functions"])
        variables: dict[str, Any] = {}
        for one in reversed(functions):
            variables |= one.variables
        return DebugPoint(found["stops"], found["file"], functions, variables, site)
