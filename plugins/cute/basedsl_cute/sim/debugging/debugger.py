"""Decisions of the debugger: at which debug point it stops, and for which thread.

There is one state for a process, since there is one user. Lanes run in lock step, so that all
lanes of a warp are at a point together, and those of other warps are where they were last.
"""

from __future__ import annotations

import functools
import os
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Protocol

import numpy as np

from basedsl_cute.sim.debugging.point import DebugPoint
from basedsl_cute.sim.debugging.values import ThreadVariables, block_number
from basedsl_cute.sim.machine.state import Group, Mask, SimLaunch


@dataclass
class Breakpoint:
    """A line where to stop, in `file` (its real path) or in any, if `condition` holds for a thread,
    and `hits_wanted` for how often that was so. A front end gives it a number.
    """

    line: int
    condition: str | None = None
    file: str | None = None
    hits_wanted: Callable[[int], bool] | None = None
    hits: int = 0
    number: int = 0

    def is_at(self, point: DebugPoint) -> bool:
        """True if it is the line of a debug point."""
        return self.line == point.line and (
            self.file is None or self.file == _real_path(point.file)
        )

    def counts(self) -> bool:
        """Count a hit; True if it is one to stop at."""
        self.hits += 1
        return self.hits_wanted is None or self.hits_wanted(self.hits)


@dataclass
class Stop:
    """A stop: the point, the lanes there and their values, the lane that is looked at, and why it
    is one, with the breakpoint if it is at one.
    """

    g: Group
    point: DebugPoint
    operands: tuple[Any, ...]
    mask: Mask
    lane: int
    why: str
    breakpoint: Breakpoint | None = None

    def variables(self, lane: int | None = None, function: int = 0) -> ThreadVariables:
        """The variables of a lane, by default of the one that is looked at, in one of the
        functions that are called there, by default the innermost.
        """
        records = self.point.known(function)
        return ThreadVariables(self.g, records, self.operands, self.lane if lane is None else lane)

    @property
    def lanes(self) -> list[int]:
        """The lanes that are at this point."""
        return (
            list(range(self.g.lanes)) if self.mask is None else np.flatnonzero(self.mask).tolist()
        )

    def evaluate(self, expression: str, lane: int | None = None, function: int = 0) -> Any:
        """The value of a Python expression of the variables. Raises what it raises."""
        return eval(expression, {"np": np}, self.variables(lane, function))


class FrontEnd(Protocol):
    """A front end: it shows a stop, and returns what to do: "step", "next", "out", "continue",
    "detach".

    It may change the state's breakpoints, watches and focus.
    """

    def interact(self, state: DebuggerState, stop: Stop) -> str: ...


@dataclass
class DebuggerState:
    """The wishes of the user. `focus` is the block and the thread that steps follow, None
    until there is one. `pausing` is why to stop at whatever point comes next, empty not to.
    """

    front: FrontEnd | None = None
    breakpoints: list[Breakpoint] = field(default_factory=list)
    watches: dict[str, str] = field(default_factory=dict)  # expressions, with their last values
    mode: str = "continue"
    depth: int = 0
    focus: tuple[int, int] | None = None
    launch: SimLaunch | None = None
    pausing: str = ""


state = DebuggerState()


def reach(g: Group, point: DebugPoint, operands: tuple[Any, ...], m: Mask) -> None:
    """Note that the lanes in `m` are at a debug point, and stop there if that is asked for. Raises
    what the front end raises.
    """
    if state.mode == "detach" and state.launch is g.launch:
        return
    if point.stops and os.environ.get("PYTHONBREAKPOINT") == "0":
        return
    if state.launch is not g.launch:  # a new launch, of which nothing is known yet
        state.launch = g.launch
        state.mode, state.focus, state.watches = "continue", None, {}
    stop = Stop(g, point, operands, m, -1, "")
    _choose(stop)
    if not stop.why:
        return
    state.focus = block_number(g, stop.lane), int(g.shape.linear[stop.lane])
    front = state.front
    if front is None:
        from basedsl_cute.sim.debugging.terminal import Terminal

        front = state.front = Terminal()
    state.mode = front.interact(state, stop)
    state.depth = point.depth


def _choose(stop: Stop) -> None:
    """Set the lane of a stop and why it is one, if it is."""
    lane = _focused(stop)
    point = stop.point
    deepest = {"step": point.depth, "next": state.depth, "out": state.depth - 1}
    if lane is not None and not point.stops and point.depth <= deepest.get(state.mode, 0):
        stop.lane, stop.why = lane, state.mode
    if state.pausing:
        stop.lane, stop.why = stop.lanes[0] if lane is None else lane, state.pausing
        state.pausing = ""
    if lane is not None and _changed(stop, lane):
        return
    for one in state.breakpoints:
        if not point.stops and one.is_at(point):
            found = _first(stop, one.condition, lane)
            if found is not None and one.counts():
                stop.lane, stop.why, stop.breakpoint = found, f"breakpoint at line {one.line}", one
                return
    if point.stops and state.mode != "detach":
        if state.focus is None:
            stop.lane, stop.why = stop.lanes[0], "breakpoint()"
        elif lane is not None:
            stop.lane, stop.why = lane, "breakpoint()"


def _focused(stop: Stop) -> int | None:
    """The lane of the thread that steps follow, if it is at this point."""
    if state.focus is None:
        return None
    block, thread = state.focus
    shape = stop.g.shape
    here = (shape.linear == thread) & (stop.g.block.linear + shape.block_number == block)
    if stop.mask is not None:
        here = here & stop.mask
    return int(here.argmax()) if here.any() else None


def _first(stop: Stop, condition: str | None, lane: int | None) -> int | None:
    """The first lane for which a condition holds; without one, the thread that is followed."""
    if condition is None:
        return lane if state.focus is not None else stop.lanes[0]
    for one in stop.lanes:
        try:
            if stop.evaluate(condition, one):
                return one
        except Exception:  # a name that is not known at this point
            return None
    return None


@functools.cache
def _real_path(path: str) -> str:
    return os.path.realpath(path)


def _changed(stop: Stop, lane: int) -> bool:
    """True, with the stop's reason set, if a watched expression has another value than before."""
    for expression, before in state.watches.items():
        try:
            now = repr(stop.evaluate(expression, lane))
        except Exception:  # a name that is not known at this point
            continue
        if now != before:
            state.watches[expression] = now
            if before:
                stop.lane, stop.why = lane, f"{expression} was {before}, is {now}"
                return True
    return False
