"""What may only be asked for in a kernel."""

from __future__ import annotations

from basedsl.errors import DSLError
from basedsl.metastage import Trace, require


def in_kernel(what: str) -> Trace:
    """The running trace, which must be tracing a kernel."""
    trace = require(what)
    if trace.function_kind != "kernel":
        raise DSLError(
            f"{what} has a meaning only on the GPU; '{trace.function_name}' runs on the host",
            hint="call it in a @kernel function, or in a function that a kernel calls",
        )
    return trace
