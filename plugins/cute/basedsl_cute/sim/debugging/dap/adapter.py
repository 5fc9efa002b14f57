"""The adapter: it starts the program at `launch`, and stands between it and the editor."""

from __future__ import annotations

import codecs
import os
import socket
import subprocess
import sys
import threading
from collections.abc import Sequence
from typing import Any, BinaryIO

from basedsl_cute.sim.debugging.dap.messages import (
    Message,
    ProtocolError,
    RequestError,
    Sender,
    read_message,
)

CAPABILITIES = {
    "supportsConfigurationDoneRequest": True,
    "supportsConditionalBreakpoints": True,
    "supportsHitConditionalBreakpoints": True,
    "supportsEvaluateForHovers": True,
    "supportsTerminateRequest": True,
}
_LAST_OUTPUT = 2.0  # seconds, where a process that the program has started keeps its output open


class Adapter:
    """One editor, which reads from `sink` and writes to `source`, with at most one program.

    `program` and its `arguments` are for a `launch` that names none.
    """

    def __init__(
        self,
        source: BinaryIO,
        sink: BinaryIO,
        program: str | None = None,
        arguments: Sequence[str] = (),
    ) -> None:
        self._source = source
        self._editor = Sender(sink)
        self._defaults = {"program": program, "args": list(arguments)} if program else {}
        self._process: subprocess.Popen[bytes] | None = None
        self._session: Sender | None = None  # None before the launch and after the end
        self._end: threading.Thread | None = None
        self._unanswered: dict[int, Message] = {}
        self._lock = threading.Lock()  # of the session and of what is unanswered

    def serve(self) -> int:
        """Obey the editor until it disconnects; return an exit status."""
        try:
            while (request := read_message(self._source)) is not None:
                if request.get("type") != "request":
                    continue
                try:
                    body = self._obey(request)
                except RequestError as error:
                    self._editor.fail(request, str(error))
                    continue
                if body is not None:
                    self._editor.respond(request, body)
                if request["command"] == "disconnect":
                    return 0
        except ProtocolError as error:
            print(f"not the Debug Adapter Protocol: {error}", file=sys.stderr)
            return 1
        finally:
            self._stop(kill=True)
        return 0

    def _obey(self, request: Message) -> Message | None:
        """Return the body of the answer, None where somebody else answers. Raises RequestError."""
        given = request.get("arguments") or {}
        match request.get("command"):
            case "initialize":
                if given.get("pathFormat", "path") != "path" or not given.get("linesStartAt1", 1):
                    raise RequestError("this adapter takes paths, and lines counted from 1")
                return dict(CAPABILITIES)
            case "launch":
                self._launch(request, self._defaults | given)
                return None
            case "attach":
                raise RequestError("this adapter launches programs: it attaches to none")
            case "disconnect" | "terminate" as command:
                self._stop(kill=command == "disconnect")
                return {}
        if not self._pass_on(request):
            raise RequestError("no program runs")
        return None

    def _pass_on(self, request: Message) -> bool:
        """Give a request to the session; False if there is none."""
        with self._lock:
            if self._session is None:
                return False
            self._unanswered[request["seq"]] = request
            self._session.send({**request, "number": request["seq"]})
        return True

    # The program -----------------------------------------------------------------------------

    def _launch(self, request: Message, given: Message) -> None:
        if self._process is not None:
            raise RequestError("a program has been launched already")
        wanted = _checked(given)
        here, there = socket.socketpair()
        with there:
            module = "basedsl_cute.sim.debugging.dap.debuggee"
            try:
                self._process = process = subprocess.Popen(
                    [*wanted["python"], "-m", module, str(there.fileno())],
                    cwd=wanted["cwd"],
                    env=wanted["env"],
                    stdin=subprocess.DEVNULL,
                    stdout=subprocess.PIPE,
                    stderr=subprocess.PIPE,
                    pass_fds=[there.fileno()],
                )
            except OSError as error:
                here.close()
                raise RequestError(f"{wanted['python'][0]}: {error.strerror}") from None
        self._session = Sender(here.makefile("wb"))
        self._pass_on({**request, "arguments": {**given, "program": wanted["program"]}})
        threads = [
            threading.Thread(target=self._pass_output, args=(process.stdout, "stdout")),
            threading.Thread(target=self._pass_output, args=(process.stderr, "stderr")),
            threading.Thread(target=self._pass_back, args=(here,)),
        ]
        self._end = threading.Thread(target=self._report_end, args=(process, threads))
        for one in [*threads, self._end]:
            one.daemon = True
            one.start()

    def _pass_output(self, stream: BinaryIO, category: str) -> None:
        decoder = codecs.getincrementaldecoder("utf-8")("replace")
        with stream:
            while data := stream.read1():  # type: ignore[attr-defined]
                self._editor.event("output", category=category, output=decoder.decode(data))

    def _pass_back(self, connection: socket.socket) -> None:
        """Give the editor what the session answers and tells."""
        with connection, connection.makefile("rb") as stream:
            while (message := read_message(stream)) is not None:
                if message["type"] == "response":
                    with self._lock:
                        self._unanswered.pop(message["request_seq"], None)
                self._editor.send(message)

    def _report_end(
        self, process: subprocess.Popen[bytes], threads: Sequence[threading.Thread]
    ) -> None:
        code = process.wait()
        for one in threads:
            one.join(_LAST_OUTPUT)
        with self._lock:
            self._session, left = None, list(self._unanswered.values())
        for request in left:
            self._editor.fail(request, f"the program's Python has ended, with status {code}")
        self._editor.event("exited", exitCode=code)
        self._editor.event("terminated")

    def _stop(self, kill: bool) -> None:
        """End the program, if it runs, and wait until the editor knows."""
        if self._process is None:
            return
        if self._process.poll() is None:
            (self._process.kill if kill else self._process.terminate)()
        if kill and self._end is not None:
            self._end.join()


def _checked(given: Message) -> dict[str, Any]:
    """The arguments of `launch`, named as debugpy does, say what to start. Raises RequestError."""
    program, cwd = given.get("program"), given.get("cwd") or os.getcwd()
    if not isinstance(program, str):
        raise RequestError("launch needs 'program', the path of a Python file")
    if not os.path.isdir(cwd):
        raise RequestError(f"cwd: there is no folder {cwd}")
    path = os.path.abspath(os.path.join(cwd, program))
    if not os.path.isfile(path):
        raise RequestError(f"program: there is no file {path}")
    if given.get("console", "internalConsole") != "internalConsole":
        raise RequestError("console: this adapter knows 'internalConsole' only")
    python, args, env = given.get("python"), given.get("args", []), given.get("env") or {}
    command = [python] if isinstance(python, str) else python or [sys.executable]
    for name, words in (("args", args), ("python", command)):
        if not isinstance(words, list) or not all(isinstance(one, str) for one in words):
            raise RequestError(f"{name}: a list of strings is needed, not {words!r}")
    if not isinstance(env, dict):
        raise RequestError(f"env: an object with names and values is needed, not {env!r}")
    own = {"CUTE_DSL_ARCH": "sim", "CUTE_DSL_CACHE": "0", "PYTHONUNBUFFERED": "1"}
    merged = {**os.environ, **own, **env}
    return {
        "program": path,
        "cwd": cwd,
        "python": command,
        "env": {name: str(value) for name, value in merged.items() if value is not None},
    }
