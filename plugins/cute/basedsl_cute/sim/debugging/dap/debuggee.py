"""The process that runs the program, with a session of the debugger in it.

Started by the adapter: `python -m basedsl_cute.sim.debugging.dap.debuggee DESCRIPTOR`.
"""

from __future__ import annotations

import os
import socket
import sys
import types
from pathlib import Path

from basedsl_cute.host.debug_points import Watched
from basedsl_cute.sim.debugging import debugger
from basedsl_cute.sim.debugging.dap.session import Session

_PACKAGE = str(Path(__file__).parents[3]) + os.sep


def main() -> int:
    """Run the program that `launch` names; return its exit status."""
    connection = socket.socket(fileno=int(sys.argv[1]))
    connection.set_inheritable(False)
    session = Session(connection.makefile("rb"), connection.makefile("wb"), debugger.state)
    launch = session.wait_for_launch()
    if launch.get("noDebug"):
        os.environ["PYTHONBREAKPOINT"] = "0"
    else:
        every = not launch.get("justMyCode", True)
        Watched.chosen = lambda file: every or not file.startswith(_PACKAGE)
        debugger.state.front = session
        if launch.get("stopOnEntry"):
            debugger.state.pausing = "entry"
    session.wait_for_configuration()
    return _run_debuggee(launch["program"], launch.get("args", []))


def _run_debuggee(program: str, arguments: list[str]) -> int:
    """Run a file as Python does, with a traceback of the program's own frames."""
    sys.argv = [program, *arguments]
    sys.path[0] = os.path.dirname(program)
    module = sys.modules["__main__"] = types.ModuleType("__main__")
    module.__file__ = program
    try:
        exec(compile(Path(program).read_bytes(), program, "exec"), module.__dict__)
    except Exception as error:
        below = error.__traceback__.tb_next if error.__traceback__ else None
        sys.excepthook(type(error), error.with_traceback(below), below)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
