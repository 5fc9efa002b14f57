"""Debug points: lines of a kernel where it may stop, with the variables that are known there."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

from basedsl_cute.sim.site import Site


@dataclass(frozen=True, slots=True, eq=False)
class DebugPoint:
    """One place: `stops` marks a `breakpoint()`, the others are lines that steps stop at.
    `variables` has the records of variables by name, as `host.debug_points` writes them.
    """

    stops: bool
    file: str
    line: int
    depth: int
    variables: dict[str, Any]
    site: Site

    @staticmethod
    def parse(text: str, site: Site) -> DebugPoint:
        """Read the attribute of an operation."""
        found = json.loads(text)
        return DebugPoint(
            found["stops"], found["file"], found["line"], found["depth"], found["variables"], site
        )
