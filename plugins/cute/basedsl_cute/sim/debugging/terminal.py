"""The debugger in the terminal: commands like those of pdb, for one thread of a kernel."""

from __future__ import annotations

import bdb
import cmd
import linecache
import sys
from typing import Any

import numpy as np

from basedsl_cute.sim.debugging.debugger import Breakpoint, DebuggerState, Stop
from basedsl_cute.sim.debugging.values import block_number

_ROWS, _COLUMNS = 16, 16  # of a tensor that is shown


class Terminal:
    """A front end on stdin and stdout, as they are when it stops."""

    def interact(self, state: DebuggerState, stop: Stop) -> str:
        """Show a stop, and obey commands until the kernel is to go on."""
        prompt = Prompt(state, stop)
        prompt.cmdloop()
        return prompt.action


class Prompt(cmd.Cmd):
    """The commands of one stop. `action` is what the kernel is to do after them."""

    prompt = "(kernel) "
    action = "continue"

    def __init__(self, state: DebuggerState, stop: Stop) -> None:
        super().__init__(stdin=sys.stdin, stdout=sys.stdout)
        self.use_rawinput = sys.stdin.isatty()
        self.state, self.stop = state, stop
        self._show_place()

    def _say(self, text: str) -> None:
        print(text, file=self.stdout)

    def _show_place(self) -> None:
        stop = self.stop
        thread = stop.g.thread(stop.lane)
        point = stop.point
        self._say(f"> {point.file}:{point.line}, {thread} ({stop.why})")
        self._say(f"-> {linecache.getline(point.file, point.line).strip()}")

    def emptyline(self) -> bool:
        return False

    def default(self, line: str) -> None:
        """Show the value of an expression."""
        if line == "EOF":
            raise AssertionError("do_EOF answers this")
        self.do_p(line)

    # Looking ---------------------------------------------------------------------------------

    def do_p(self, line: str) -> None:
        """p EXPRESSION: show its value, of this thread's variables, `thread` and `block`."""
        try:
            self._say(shown(self.stop.evaluate(line)))
        except Exception as error:
            self._say(f"*** {type(error).__name__}: {error}")

    do_print = do_p

    def do_vars(self, line: str) -> None:
        """vars: show all variables."""
        variables = self.stop.variables()
        for name in sorted(self.stop.point.known()):
            self._say(f"{name} = {shown(variables[name])}")

    def do_warp(self, line: str) -> None:
        """warp EXPRESSION: show its value in all lanes of this warp, side by side."""
        stop = self.stop
        shape = stop.g.shape
        first = int(shape.warp_start[stop.lane])
        here = set(stop.lanes)
        cells = []
        for lane in range(first, first + int(shape.warp_size[stop.lane])):
            if lane not in here:
                cells.append("-")
                continue
            try:
                cells.append(shown(stop.evaluate(line, lane)))
            except Exception as error:
                self._say(f"*** {type(error).__name__}: {error}")
                return
        width = max(map(len, cells)) + 1
        for start in range(0, len(cells), 8):
            row = "".join(f"{cell:>{width}}" for cell in cells[start : start + 8])
            self._say(f"lane {start:>2}: {row}")

    def do_list(self, line: str) -> None:
        """list: show the lines around this one."""
        point = self.stop.point
        for number in range(max(point.line - 5, 1), point.line + 6):
            text = linecache.getline(point.file, number)
            if text:
                mark = "->" if number == point.line else "  "
                self._say(f"{number:>4} {mark} {text.rstrip()}")

    do_l = do_list

    def do_where(self, line: str) -> None:
        """where: show where this thread is, and the lanes that are there too."""
        self._show_place()
        stop = self.stop
        self._say(f"{len(stop.lanes)} lanes of {stop.g.lanes} that run together are here")

    do_w = do_where

    # Where to stop ---------------------------------------------------------------------------

    def do_break(self, line: str) -> None:
        """break LINE [if CONDITION]: stop there, if the condition holds for a thread; without
        arguments, show all breakpoints.
        """
        place, _, condition = line.partition(" if ")
        if not place.strip():
            for one in self.state.breakpoints:
                self._say(f"line {one.line}" + (f" if {one.condition}" if one.condition else ""))
            return
        try:
            number = int(place)
        except ValueError:
            self._say(f"*** a line is a number, not {place!r}")
            return
        self.state.breakpoints.append(Breakpoint(number, condition.strip() or None))

    do_b = do_break

    def do_clear(self, line: str) -> None:
        """clear [LINE]: remove the breakpoints of a line, or all."""
        kept = [b for b in self.state.breakpoints if line.strip() and str(b.line) != line.strip()]
        self.state.breakpoints = kept

    def do_watch(self, line: str) -> None:
        """watch EXPRESSION: stop when its value changes in this thread."""
        try:
            self.state.watches[line] = repr(self.stop.evaluate(line))
        except Exception as error:
            self._say(f"*** {type(error).__name__}: {error}")

    def do_thread(self, line: str) -> None:
        """thread NUMBER: look at this thread of the block, and let steps follow it."""
        self._focus_or_show("thread", line)

    def do_block(self, line: str) -> None:
        """block NUMBER: look at this block, if it runs together with this one."""
        self._focus_or_show("block", line)

    def _focus_or_show(self, name: str, line: str) -> None:
        """Look at a thread or block by its number; `thread + 1` is an expression."""
        if not line.isdigit():
            self.do_p(f"{name} {line}")
            return
        stop = self.stop
        block, thread = block_number(stop.g, stop.lane), int(stop.g.shape.linear[stop.lane])
        self._focus((int(line), thread) if name == "block" else (block, int(line)))

    def _focus(self, wanted: tuple[int, int]) -> None:
        stop, shape = self.stop, self.stop.g.shape
        for lane in stop.lanes:
            if (block_number(stop.g, lane), int(shape.linear[lane])) == wanted:
                stop.lane = lane
                self.state.focus = wanted
                self._show_place()
                return
        self.state.focus = wanted
        self._say("that thread is not at this line: steps follow it from where it comes next")

    # Going on --------------------------------------------------------------------------------

    def do_step(self, line: str) -> bool:
        """step: go to the next line of this thread, also in a function that is called."""
        self.action = "step"
        return True

    do_s = do_step

    def do_next(self, line: str) -> bool:
        """next: go to the next line of this thread in this function."""
        self.action = "next"
        return True

    do_n = do_next

    def do_continue(self, line: str) -> bool:
        """continue: go on to the next breakpoint."""
        self.action = "continue"
        return True

    do_c = do_cont = do_continue

    def do_detach(self, line: str) -> bool:
        """detach: go on to the end of the launch without a stop. The end of the input does so."""
        self.action = "detach"
        return True

    do_EOF = do_detach

    def do_quit(self, line: str) -> bool:
        """quit: end the program with bdb.BdbQuit."""
        raise bdb.BdbQuit

    do_q = do_quit


def shown(value: Any) -> str:
    """A value as text: a tensor as a table, of its first rows and columns where it is large."""
    if isinstance(value, np.generic):
        value = value.item()
    if not isinstance(value, np.ndarray):
        return f"{value:.6g}" if isinstance(value, float) else repr(value)
    with np.printoptions(threshold=_ROWS * _COLUMNS, edgeitems=3, linewidth=100, precision=5):
        return f"{value.dtype} {value.shape}\n{value}"
