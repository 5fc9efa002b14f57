"""Errors of Python's arithmetic that only show at run time, as assertions.

Two traits of the trace's emitter switch them: `checks` (True if it says nothing) for integers:
a divisor that is zero, a negative shift count, a negative exponent; `float_checks` (False if it
says nothing) for floats: division by zero, arguments outside of a math function's domain, results
that overflow, floats that no int can hold. With a check the program stops as in Python, through the
emitter's `assert_`, with the exception's name before the message; without, every operation still is
defined.
"""

from __future__ import annotations

from collections.abc import Callable

from basedsl.numeric.kit import Kit, Value


def check_at_run_time(
    kit: Kit, holds: Callable[[], Value], error: type[Exception], message: str
) -> None:
    """Emit the check of an integer operation: `error(message)` unless the i1 that `holds` emits is
    true.
    """
    if kit.checks:
        kit.trace.emitter.assert_(holds(), f"{error.__name__}: {message}", kit.loc)


def check_float(kit: Kit, holds: Callable[[], Value], error: type[Exception], message: str) -> None:
    """Emit the check of a float operation; see `check_at_run_time`."""
    if kit.float_checks:
        kit.trace.emitter.assert_(holds(), f"{error.__name__}: {message}", kit.loc)
