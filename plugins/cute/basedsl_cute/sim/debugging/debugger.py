"""Decisions of the debugger: at which debug point it stops, and for which thread.

There is one state for a process, since there is one terminal. Lanes run in lock step, so that all
lanes of a warp are at a point together, and those of other warps are where they were last.
"""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from typing import Any, Protocol

import numpy as np

from basedsl_cute.sim.debugging.point import DebugPoint
from basedsl_cute.sim.debugging.values import ThreadVariables, block_number
from basedsl_cute.sim.machine.state import Group, Mask, SimLaunch


@dataclass
class Breakpoint:
    """A line where to stop, in `file` or in any, if `condition` holds for a thread."""

    line: int
    condition: str | None = None
    file: str | None = None


@dataclass
class Stop:
    """A stop: the point, the lanes there and their values, and the lane that is looked at."""

    g: Group
    point: DebugPoint
    operands: tuple[Any, ...]
    mask: Mask
    lane: int
    why: str

    def variables(self, lane: int | None = None) -> ThreadVariables:
        """The variables of a lane, by default of the one that is looked at."""
        return ThreadVariables(
            self.g, self.point, self.operands, self.lane if lane is None else lane
        )

    @property
    def lanes(self) -> list[int]:
        """The lanes that are at this point."""
        return (
            list(range(self.g.lanes)) if self.mask is None else np.flatnonzero(self.mask).tolist()
        )

    def evaluate(self, expression: str, lane: int | None = None) -> Any:
        """The value of a Python expression of the variables. Raises what it raises."""
        return eval(expression, {"np": np}, self.variables(lane))


class FrontEnd(Protocol):
    """A front end: it shows a stop, and returns what to do: "step", "next", "continue", "detach".

    It may change the state's breakpoints, watches and focus.
    """

    def interact(self, state: State, stop: Stop) -> str: ...


@dataclass
class State:
    """The wishes of the user. `focus` is the block and the thread that steps follow, None
    until there is one.
    """

    front: FrontEnd | None = None
    breakpoints: list[Breakpoint] = field(default_factory=list)
    watches: dict[str, str] = field(default_factory=dict)  # expressions, with their last values
    mode: str = "continue"
    depth: int = 0
    focus: tuple[int, int] | None = None
    launch: SimLaunch | None = None


state = State()


def reach(g: Group, point: DebugPoint, operands: tuple[Any, ...], m: Mask) -> None:
    """Note that the lanes in `m` are at a debug point, and stop there if that is asked for. Raises
    what the front end raises.
    """
    if state.mode == "detach" and state.launch is g.launch:
        return
    if os.environ.get("PYTHONBREAKPOINT") == "0":
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
    if lane is not None and state.mode in ("step", "next"):
        if not point.stops and (state.mode == "step" or point.depth <= state.depth):
            stop.lane, stop.why = lane, state.mode
    if lane is not None and _changed(stop, lane):
        return
    for one in state.breakpoints:
        if one.line == point.line and not point.stops and one.file in (None, point.file):
            found = _first(stop, one.condition, lane)
            if found is not None:
                stop.lane, stop.why = found, f"breakpoint at line {one.line}"
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
