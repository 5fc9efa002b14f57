"""Errors of Python's integer arithmetic that only show at run time, as assertions.

A divisor that is zero, a negative shift count or a negative exponent of an integer stops the
program as in Python, through the emitter's `assert_`; the message begins with the exception's name.
An emitter with a false `checks` leaves them out, and every operation is defined without.
"""

from __future__ import annotations

from collections.abc import Callable

from basedsl.numeric.kit import Kit, Value


def check(kit: Kit, holds: Callable[[], Value], error: type[Exception], message: str) -> None:
    """Stop the program with `error(message)` unless the i1 that `holds` emits is true."""
    if not kit.checks:
        return
    kit.trace.emitter.assert_(holds(), f"{error.__name__}: {message}", kit.loc)
