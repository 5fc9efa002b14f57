"""Which architectures have an instruction: errors at the Python line, before ptxas would refuse."""

from __future__ import annotations

from typing import Any

from basedsl.errors import DSLTypeError
from basedsl.objectstage import span_of_location
from basedsl_cute.hardware.targets import target_of


def require_capability(
    target: str, since: tuple[int, int], what: str, location: Any, is_specific: bool = False
) -> None:
    """DSLTypeError unless `target` is the simulator or of this compute capability or later, and
    with `is_specific` a variant "a" or "f".
    """
    found = target_of(target)
    lacks = found.capability < since or (is_specific and found.name[-1] not in "af")
    if found.is_gpu and lacks:
        first = f"sm_{since[0]}{since[1]}" + ("a" if is_specific else "")
        raise DSLTypeError(
            f"{found.name} has no {what}: {first} is the first that has",
            span=span_of_location(location),
        )


def require_architecture(target: str, name: str, what: str, location: Any) -> None:
    """DSLTypeError unless `target` is the simulator or exactly the architecture `name`."""
    found = target_of(target)
    if found.is_gpu and found.name != name:
        raise DSLTypeError(
            f"{found.name} has no {what}: only {name} has it",
            span=span_of_location(location),
        )
