"""The programs, one file for each area. `CASES` of a module lists its programs."""

from __future__ import annotations

import importlib
import pkgutil

from basedsl.conformance.cases import Case


def all_cases() -> list[tuple[str, Case]]:
    """Return every program, by `area-name`."""
    found: list[tuple[str, Case]] = []
    for module in sorted(pkgutil.iter_modules(__path__), key=lambda m: m.name):
        cases = getattr(importlib.import_module(f"{__name__}.{module.name}"), "CASES", [])
        found += [(f"{module.name}-{case.name}", case) for case in cases]
    return found
