"""`experimental.iket`: ranges of a kernel for a profiler, recorded as the events of `cute.trace`.

A range lasts from `range_push(name)` to the `range_pop()` that follows it, in one block of the
program's text: both in a loop's body, or both under an `if`. A `cute.record_events()` around the
call collects them; without it they emit nothing. The command-line profiler that CuTe's DSL has for
such ranges is not offered.
"""

from __future__ import annotations

import weakref
from typing import Any

from basedsl import DSLError, Trace
from basedsl_cute.arch.events import trace
from basedsl_cute.tensors.kernel_scope import in_kernel

# Of each compilation the open ranges: the name, the MLIR block it began in, and its event.
_open: weakref.WeakKeyDictionary[Trace, list[tuple[str, Any, trace]]] = weakref.WeakKeyDictionary()


def range_push(name: str, *, loc: Any = None, ip: Any = None) -> None:
    """Begin a range of this name, of at most 32 bytes in UTF-8, for each warp that comes here.

    Raises DSLTypeError for another name, DSLError outside of a kernel.
    """
    running, event = in_kernel("iket.range_push()"), trace(name)
    if running.options.trace_buffer:
        event.__enter__()
        block = running.ir.InsertionPoint.current.block
        _open.setdefault(running, []).append((name, block, event))


def range_pop(*, loc: Any = None, ip: Any = None) -> None:
    """End the range that began last.

    Raises DSLError outside of a kernel; and, where events are recorded, if none has begun, or if it
    began in another block, which other warps or fewer iterations may run.
    """
    running = in_kernel("iket.range_pop()")
    if not running.options.trace_buffer:
        return
    stack = _open.get(running)
    if not stack:
        raise DSLError("iket.range_pop() ends a range, and none has begun")
    name, block, event = stack.pop()
    if block != running.ir.InsertionPoint.current.block:
        raise DSLError(
            f"the range '{name}' began in another block than it ends in",
            hint="begin and end a range in the same body of a loop, or under the same `if`",
        )
    event.__exit__(None, None, None)
