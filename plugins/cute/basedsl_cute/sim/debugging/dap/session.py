"""The session in the program's process: breakpoints, and what an editor asks at a stop.

A thread of its own reads requests. The thread that runs the kernel waits in `interact` meanwhile,
so that values are read while nothing changes them.
"""

from __future__ import annotations

import itertools
import math
import os
import queue
import threading
from collections.abc import Callable
from pathlib import Path
from typing import BinaryIO

from basedsl_cute.sim.debugging.dap.hit_count import hit_count
from basedsl_cute.sim.debugging.dap.messages import Message, RequestError, Sender, read_message
from basedsl_cute.sim.debugging.dap.shown_values import ShownValues
from basedsl_cute.sim.debugging.dap.source_lines import SourceLines
from basedsl_cute.sim.debugging.debugger import Breakpoint, DebuggerState, Stop
from basedsl_cute.sim.debugging.terminal import shown
from basedsl_cute.sim.debugging.values import Text, block_number

_RUNNING = [{"id": 1, "name": "the program"}]  # an editor needs a thread, to pause it
_REASONS = {"step": "step", "next": "step", "out": "step", "pause": "pause", "entry": "entry"}


class Session:
    """A front end of the debugger: it tells an editor of stops, and lets the editor choose."""

    def __init__(self, source: BinaryIO, sink: BinaryIO, state: DebuggerState) -> None:
        self._source, self._sender, self._state = source, Sender(sink), state
        self._numbers = itertools.count(1)
        self._unverified: set[int] = set()
        self._configured = threading.Event()
        self._one_stop = threading.Lock()  # ranks run kernels in several threads
        self._stop: Stop | None = None
        self._stopped_thread = 0
        self._action = ""  # what the kernel is to do after the answer to a request
        self._actions: queue.SimpleQueue[str] = queue.SimpleQueue()
        self._values = ShownValues()
        self._frames: list[tuple[int, int]] = []  # lane and function of those told, by number
        self._answers: dict[str, Callable[[Message], Message]] = {
            "setBreakpoints": self._set_breakpoints,
            "setExceptionBreakpoints": lambda given: {},
            "configurationDone": self._configuration_done,
            "threads": self._threads,
            "stackTrace": self._stack_trace,
            "scopes": self._scopes,
            "variables": self._variables,
            "evaluate": self._evaluate,
            "pause": self._pause,
            "continue": lambda given: self._go_on("continue", given),
            "next": lambda given: self._go_on("next", given),
            "stepIn": lambda given: self._go_on("step", given),
            "stepOut": lambda given: self._go_on("out", given),
        }

    # Running ---------------------------------------------------------------------------------

    def wait_for_launch(self) -> Message:
        """Take `launch`, and return its arguments; requests are answered from then on."""
        request = read_message(self._source)
        if request is None:
            raise SystemExit(1)
        self._sender.respond({**request, "seq": request["number"]})
        self._sender.event("initialized")
        threading.Thread(target=self._serve, daemon=True, name="debugger").start()
        arguments: Message = request["arguments"]
        return arguments

    def wait_for_configuration(self) -> None:
        """Wait until the editor has set its breakpoints."""
        self._configured.wait()

    def _serve(self) -> None:
        while (request := read_message(self._source)) is not None:
            request["seq"] = request["number"]
            answer = self._answers.get(request["command"])
            try:
                if answer is None:
                    raise RequestError(f"this adapter has no request '{request['command']}'")
                body = answer(request.get("arguments") or {})
            except RequestError as error:
                self._sender.fail(request, str(error))
            except Exception as error:  # of an expression, or arguments of another shape
                self._sender.fail(request, f"{type(error).__name__}: {error}")
            else:
                self._sender.respond(request, body)
                self._let_go()
        os._exit(1)  # the adapter has gone, and nobody can end a stop

    def interact(self, state: DebuggerState, stop: Stop) -> str:
        """Tell the editor of a stop; return what the kernel is to do then."""
        with self._one_stop:
            self._values, self._frames = ShownValues(), []
            self._stop = stop
            hit = stop.breakpoint
            body: Message = {"reason": _REASONS.get(stop.why, "breakpoint")}
            if hit is not None:
                body["hitBreakpointIds"] = [hit.number]
                if hit.number in self._unverified:
                    self._unverified.discard(hit.number)
                    told = {"id": hit.number, "verified": True, "line": hit.line}
                    self._sender.event("breakpoint", reason="changed", breakpoint=told)
            self._sender.event(
                "stopped",
                **body,
                description=stop.why,
                threadId=_thread_id(stop, stop.lane),
                allThreadsStopped=True,
            )
            return self._actions.get()

    def _let_go(self) -> None:
        """Let the kernel go on, if the last request asked for it: after its answer."""
        if self._action:
            action, self._action = self._action, ""
            self._sender.event("continued", threadId=self._stopped_thread, allThreadsContinued=True)
            self._actions.put(action)

    # Requests --------------------------------------------------------------------------------

    def _configuration_done(self, given: Message) -> Message:
        self._configured.set()
        return {}

    def _set_breakpoints(self, given: Message) -> Message:
        path = given["source"].get("path")
        if path is None:
            raise RequestError("breakpoints are set in files")
        file = os.path.realpath(path)
        try:
            lines = SourceLines(Path(file).read_text())
        except (OSError, SyntaxError, ValueError) as error:
            raise RequestError(f"{file}: {error}") from None
        made: list[Breakpoint] = []
        answers: list[Message] = []
        for wanted in given.get("breakpoints", []):
            number = next(self._numbers)
            line, message = lines.place(wanted["line"])
            condition, count = wanted.get("condition"), wanted.get("hitCondition")
            answer: Message = {"id": number, "verified": message is None, "line": line}
            try:
                if condition:
                    compile(condition, "the condition", "eval")
                hits = hit_count(count) if count else None
            except (SyntaxError, ValueError) as error:
                message = f"the condition cannot be read: {error}"
                answers.append(answer | {"verified": False, "message": message})
                continue
            if message is not None:
                self._unverified.add(number)
                answer["message"] = message
            answers.append(answer)
            made.append(Breakpoint(line, condition or None, file, hits, number=number))
        others = [one for one in self._state.breakpoints if one.file != file]
        self._state.breakpoints = others + made
        return {"breakpoints": answers}

    def _threads(self, given: Message) -> Message:
        """The threads of the warp that has stopped."""
        stop = self._stop
        if stop is None:
            return {"threads": _RUNNING}
        here = set(stop.lanes)
        return {
            "threads": [
                {
                    "id": _thread_id(stop, lane),
                    "name": f"{stop.g.thread(lane)}" + ("" if lane in here else ", masked off"),
                }
                for lane in _warp(stop)
            ]
        }

    def _stack_trace(self, given: Message) -> Message:
        stop = self._stopped()
        lane = self._lane(given["threadId"])
        if lane not in stop.lanes:
            return {"stackFrames": [], "totalFrames": 0}
        file = os.path.realpath(stop.point.file)
        source = {"name": os.path.basename(file), "path": file}
        frames = []
        for number, function in enumerate(stop.point.functions):
            self._frames.append((lane, number))
            place = {"source": source, "line": function.line, "column": 1}
            frames.append({"id": len(self._frames), "name": function.name, **place})
        start, levels = given.get("startFrame") or 0, given.get("levels") or len(frames)
        return {"stackFrames": frames[start : start + levels], "totalFrames": len(frames)}

    def _scopes(self, given: Message) -> Message:
        """The variables of a function, and which thread it is."""
        stop = self._stopped()
        lane, number = self._frame(given["frameId"])
        values = stop.variables(lane, number)
        names = sorted(stop.point.functions[number].variables)
        known = self._values.hold([(name, values[name]) for name in names])
        thread, block = int(stop.g.shape.linear[lane]), block_number(stop.g, lane)
        place = [("thread", thread), ("block", block), ("place", Text(stop.g.thread(lane)))]
        where = self._values.hold(place)
        return {
            "scopes": [
                {
                    "name": "Locals",
                    "presentationHint": "locals",
                    "variablesReference": known,
                    "expensive": False,
                },
                {"name": "Thread", "variablesReference": where, "expensive": False},
            ]
        }

    def _variables(self, given: Message) -> Message:
        self._stopped()
        start, count = given.get("start") or 0, given.get("count") or 0
        try:
            found = self._values.variables(given["variablesReference"], start, count)
        except IndexError:
            raise RequestError("these variables were those of another stop") from None
        return {"variables": found}

    def _evaluate(self, given: Message) -> Message:
        stop = self._stopped()
        frame = given.get("frameId")
        lane, function = (stop.lane, 0) if frame is None else self._frame(frame)
        value = stop.evaluate(given["expression"], lane, function)
        described = self._values.variable("", value)
        line = described.pop("value")
        del described["name"]
        return {**described, "result": shown(value) if given.get("context") == "repl" else line}

    def _pause(self, given: Message) -> Message:
        if self._stop is None:
            self._state.pausing = "pause"
        return {}

    def _go_on(self, action: str, given: Message) -> Message:
        stop = self._stopped()
        self._stopped_thread = number = given.get("threadId") or _thread_id(stop, stop.lane)
        self._state.focus = divmod(number - 1, math.prod(stop.g.block_dim))
        self._stop, self._action = None, action
        return {"allThreadsContinued": True} if action == "continue" else {}

    # Parts of requests -----------------------------------------------------------------------

    def _stopped(self) -> Stop:
        if self._stop is None:
            raise RequestError("no kernel has stopped: the program runs")
        return self._stop

    def _lane(self, thread: int) -> int:
        stop = self._stopped()
        for lane in _warp(stop):
            if _thread_id(stop, lane) == thread:
                return lane
        raise RequestError(f"there is no thread {thread} in the warp that has stopped")

    def _frame(self, number: int) -> tuple[int, int]:
        if not 0 < number <= len(self._frames):
            raise RequestError("this frame was one of another stop")
        return self._frames[number - 1]


def _warp(stop: Stop) -> range:
    """The lanes of the warp that has stopped."""
    first = int(stop.g.shape.warp_start[stop.lane])
    return range(first, first + int(stop.g.shape.warp_size[stop.lane]))


def _thread_id(stop: Stop, lane: int) -> int:
    """The number of a thread in the grid, from 1."""
    threads = math.prod(stop.g.block_dim)
    return 1 + block_number(stop.g, lane) * threads + int(stop.g.shape.linear[lane])
