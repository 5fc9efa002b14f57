"""The calling convention: who may call what, as one table."""

from __future__ import annotations

from typing import Any

from basedsl.errors import DSLCallError
from basedsl.location import span_of_function

RUN = "compile, or take from the cache, and run"
INLINE = "inline while compiling"
LAUNCH = "launch through the driver or runtime"
ERROR = "error"

# (caller, callee) -> what happens. A plain Python callee is inlined without asking anybody.
CONVENTION: dict[tuple[str, str], str] = {
    ("python", "jit"): RUN,
    ("python", "kernel"): ERROR,
    ("jit", "jit"): INLINE,
    ("jit", "kernel"): LAUNCH,
    ("kernel", "jit"): INLINE,
    ("kernel", "kernel"): ERROR,
}

_WHY = {
    "python": "launch it from a @jit function: kernel(...).launch(grid=..., block=...)",
    "kernel": "a kernel cannot launch a kernel: make the callee a @jit function, which is inlined",
}


def decide(caller: str, caller_name: str, callee: str, fn: Any) -> str:
    """Return the action for a call: RUN, INLINE or LAUNCH.

    `caller` is "python", "jit" or "kernel", `callee` "jit" or "kernel", `fn` the called Python
    function. Raises DSLCallError, naming both functions, where the convention forbids the call.
    """
    action = CONVENTION[caller, callee]
    if action is ERROR:
        who = "Python" if caller == "python" else f"the @{caller} function '{caller_name}'"
        raise DSLCallError(
            f"{who} calls the @{callee} function '{fn.__qualname__}', which is not allowed",
            notes=((f"'{fn.__qualname__}' is defined here", span_of_function(fn)),),
            hint=_WHY[caller],
        )
    return action
