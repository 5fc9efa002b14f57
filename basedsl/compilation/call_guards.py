"""The guards of one call: what its compilation depends on besides the arguments' types; and what
tracing changed of that.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from basedsl.binding.arguments import static_parts
from basedsl.function import DSLFunction
from basedsl.location import is_internal
from basedsl.stages import BoundCall, Traced
from basedsl.staleness.effects import check_left_values, drop_new_dynamic_attributes, effects
from basedsl.staleness.guards import Guards
from basedsl.staleness.overlap import check_shared_objects


def guards_of(call: BoundCall, traced: Sequence[DSLFunction] = ()) -> Guards:
    """Collect guards for the called function, the functions traced into it, and the static parts
    of the arguments. The library's own functions need none: they change with its version only.
    """
    parts = [
        (parameter.name, part)
        for parameter, argument in zip(
            call.function.signature.parameters, call.arguments, strict=True
        )
        for part in static_parts(argument)
    ]
    return Guards.collect(
        [call.function.fn, *_users(traced)],
        [part for _, part in parts],
        [name for name, _ in parts],
    )


def guards_and_effects(
    call: BoundCall, traced: Traced, before: Guards
) -> tuple[Guards, tuple[str, ...]]:
    """Return the guards of a traced call, and the names of what outlives it and was changed by
    tracing. `before` are its guards from before the trace. Raises DSLError if a dynamic value is
    left in what outlives the call.
    """
    drop_new_dynamic_attributes(before)
    after = guards_of(call)
    is_whole = after.covers(_users(traced.functions))  # as mostly: collecting takes a while
    for function in traced.functions:
        after.meets(function)
    check_shared_objects(call.function.fn, call.values, call.arguments, before)
    found = effects(before, after)
    traced_codes = [one.fn.__code__ for one in (call.function, *traced.functions)]
    check_left_values(found, before, traced_codes)
    return after if is_whole else guards_of(call, traced.functions), tuple(found)


def _users(functions: Sequence[DSLFunction]) -> list[Any]:
    """Return the Python functions of those that are the program's, not the library's."""
    return [one.fn for one in functions if not is_internal(one.fn.__code__.co_filename)]
