"""Checks that generated code makes of values: divisors, assertions, loop steps."""

from __future__ import annotations

from typing import Any

import numpy as np

from basedsl import spoken
from basedsl_cute.sim.errors import (
    ArithmeticTrapError,
    AssertionFailedError,
    CoordinateError,
    DeadlockError,
)
from basedsl_cute.sim.machine.reports import report
from basedsl_cute.sim.machine.state import Group, Mask
from basedsl_cute.sim.site import Site


def check_assert(g: Group, holds: Any, m: Mask, message: str, site: Site) -> None:
    """Raise AssertionFailedError for the first active lane in which `holds` is false; for the
    message of a ZeroDivisionError, ArithmeticTrapError.
    """
    failed = np.broadcast_to(~holds, (g.lanes,))
    if m is not None:
        failed = failed & m
    if failed.any():
        where = g.thread(int(failed.argmax()))
        name, _, rest = (message or "").partition(": ")
        if name == "ZeroDivisionError":
            hint = "divide only where the divisor is not zero: if n != 0"
            raise ArithmeticTrapError(rest, site, where, hint)
        if name == "AssertionError":
            message = rest
        message = spoken(message or "")
        text = f"assertion failed: {message}" if message else "assertion failed"
        hint = 'look at the values of this thread with cute.printf("{}", x) before it'
        raise AssertionFailedError(text, site, where, hint)


def check_coordinate(
    g: Group, holds: Any, coord: Any, extent: Any, m: Mask, message: str, site: Site
) -> None:
    """Report the first active lane in which a coordinate is not below its extent. `message` has the
    mode, and what is known of both while translating.
    """
    failed = np.broadcast_to(~holds, (g.lanes,))
    if m is not None:
        failed = failed & m
    if not failed.any():
        return
    lane = int(failed.argmax())
    _, mode, known, size = message.split(": ")
    known, size = known.removeprefix("coordinate "), size.removeprefix("extent ")
    if coord is not None:
        known = str(int(np.broadcast_to(coord, (g.lanes,))[lane]))
        size = str(int(np.broadcast_to(extent, (g.lanes,))[lane]))
    name = site.subscripted
    error = CoordinateError(
        f"out-of-bounds coordinate {known} of {mode}, whose extent is {size}",
        site,
        g.thread(lane),
        notes=() if name is None else ((f"the tensor is `{name}`", None),),
        hint="compare the coordinate with the extent before: if i < x.shape[mode]. Memory beyond "
        "it may be another row",
    )
    report(g.launch, "coordinates", error)


def bad_step(step: Any, site: Site) -> None:
    """Raise for a loop whose step is not positive in some lane."""
    number = int(np.min(step))
    raise ArithmeticTrapError(f"a loop's step is {number}: it must be at least 1", site)


def endless_loop(g: Group, m: Mask, site: Site) -> None:
    """Raise for a `while` loop that has taken more turns than the options allow."""
    lane = 0 if m is None else int(np.argmax(m))
    raise DeadlockError(
        f"a loop that does not end: it has gone round {g.max_steps} times",
        site,
        g.thread(lane),
        "if the loop is right but long, raise the option max_steps (CUTE_DSL_MAX_STEPS=10000000)",
    )


def infinite_loop(g: Group, m: Mask, site: Site) -> None:
    """Raise for a loop that nothing can end: it goes round, and changes nothing."""
    lane = 0 if m is None else int(np.argmax(m))
    raise DeadlockError(
        "infinite loop: the loop condition never changes",
        site,
        g.thread(lane),
        "a loop that waits for other threads reads with cute.arch.load(pointer, sem='acquire')",
    )
