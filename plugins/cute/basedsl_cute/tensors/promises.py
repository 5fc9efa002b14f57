"""Promises of a program about its integers, checked where that costs nothing that counts."""

from __future__ import annotations

from typing import Any

from basedsl import Numeric, current_trace_or_none
from basedsl_cute import algebra
from basedsl_cute.algebra.ignored_location import takes_location


@takes_location
def assume(x: Any, divby: int) -> Any:
    """Return the integer ``x`` with the promise that ``divby`` divides it.

    A broken promise raises AssertionError on the simulator, in host code, and on a GPU with the
    compile option ``--enable-assertions``; else later results are undefined. Raises LayoutError for
    a static int that ``divby`` does not divide, and for a ``divby`` that is no positive int.

    >>> assume(16, 8)
    16
    """
    promised = algebra.assume(x, divby)
    trace = current_trace_or_none()
    if trace is not None and promised is not x and isinstance(x, Numeric):
        kept = x % divby == 0
        text = f"AssertionError: assume(..., divby={divby}): the number is no multiple of {divby}"
        trace.emitter.assert_(kept.ir_value(), text, trace.loc())
    return promised
