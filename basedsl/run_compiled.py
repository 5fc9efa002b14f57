"""The run of a compiled function for one call from Python."""

from __future__ import annotations

from typing import Any

from basedsl.compiled import Compiled
from basedsl.errors import DSLError
from basedsl.location import span_of_function
from basedsl.stages import BoundCall
from basedsl.staleness.overlap import Overlap, arrays_of


def run_compiled(compiled: Compiled, call: BoundCall, is_new: bool) -> Any:
    """Run the code for a call and return its result. From the second call of a variant on (`is_new`
    is False) native code makes the calls after it, where it can.

    Raises DSLError if the call changes an array that the code knows as a global or closure variable
    too, and what the code raises.
    """
    run = _run_once if compiled.effects else _run_code
    if compiled.guards.arrays and arrays_of(call.values):
        overlap = Overlap(compiled.guards, call.values)
        if not overlap.is_empty:
            result = run(compiled, call)
            overlap.check(call.function.fn)
            return result
    if not is_new and not compiled.effects:
        call.function.call_natively(compiled.native_variant(call.values))
    return run(compiled, call)


def _run_code(compiled: Compiled, call: BoundCall) -> Any:
    return compiled.run(call.values)


def _run_once(compiled: Compiled, call: BoundCall) -> Any:
    """Run code that changed something while it was traced. An exception of the run may come before
    the change in Python: then nothing is certain.
    """
    try:
        return compiled.run(call.values)
    except Exception as error:  # whatever the run raises
        function = call.function
        changed = [path for path in compiled.effects if path not in compiled.guards.volatile]
        if not changed:
            raise
        raised = type(error).__name__.removeprefix("DSL")
        raise DSLError(
            f"'{function.fn.__qualname__}' changes '{changed[0]}' while compiling, then "
            f"raises {raised}",
            span_of_function(function.fn),
            notes=((f"the exception: {error}", None),),
            hint="return what changes, and change it where the function is called",
        ) from error
