"""Features of an architecture that a lowered op needs: errors at its Python line."""

from __future__ import annotations

from typing import Any

from basedsl import span_of_location
from basedsl_cute.hardware.requirements import Requirement
from basedsl_cute.hardware.targets import Target, target_of


def require(requirement: Requirement | None, target: Target | str, op: Any) -> None:
    """Raise DSLTypeError at the Python line of `op` if `target` does not meet its requirement."""
    if requirement is None:
        return
    found = target_of(target) if isinstance(target, str) else target
    if not requirement.is_met_by(found):
        raise requirement.error(found, span_of_location(op.location))
