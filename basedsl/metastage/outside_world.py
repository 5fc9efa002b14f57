"""Files, processes, sockets: what a traced function does outside of Python, as audit events tell.

Static code that opens a file does so while compiling, so its code is for one call. In captured
control flow, which is traced once however often it runs, it is an error. Python raises an audit
event (PEP 578) for each such operation, whatever library does it.
"""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Iterator
from types import FrameType
from typing import Any

from basedsl.errors import DSLError
from basedsl.location import internal_files, is_library, span_of_code
from basedsl.tracing import current_trace_or_none

_EVENTS = (
    *("open", "os.", "shutil.", "subprocess.", "socket.", "tempfile.", "mmap.", "sqlite3."),
    *("ftplib.", "http.", "imaplib.", "nntplib.", "poplib.", "smtplib.", "telnetlib.", "urllib."),
    *("builtins.input", "webbrowser.", "winreg.", "fcntl.", "signal.", "syslog.", "time.sleep"),
    *("glob.", "pathlib."),
)
# These read source files for messages, or import: the program has not asked for a file.
_READERS = ("linecache.py", "tokenize.py", "warnings.py", "traceback.py", "inspect.py")
_IMPORT = "<frozen importlib"

# Regions that run once.
_OUTERMOST = ("function", "kernel")

_installed: list[bool] = []
_watching = 0  # traces in all threads


@contextlib.contextmanager
def noticed() -> Iterator[None]:
    """Note in the running trace what the program does outside of Python in the block."""
    global _watching
    if not _installed:
        _installed.append(True)  # for good: Python takes no audit hook away
        sys.addaudithook(_on_event)
    _watching += 1
    try:
        yield
    finally:
        _watching -= 1


def _on_event(event: str, arguments: tuple[Any, ...]) -> None:
    if not _watching:
        return
    trace = current_trace_or_none()
    if trace is None or not event.startswith(_EVENTS):
        return
    frame = _user_frame(sys._getframe(1))
    if frame is None:
        return
    what = f"{event}({arguments[0]!r})" if arguments and isinstance(arguments[0], str) else event
    if trace.region.kind in _OUTERMOST:
        trace.outside_events.append(what)
        return
    raise DSLError(
        f"{what} is called inside staged control flow",
        span_of_code(frame.f_code, frame.f_lasti),
        notes=(("that would happen once, while compiling", None),),
        hint="do it outside of loops and branches that the run time decides",
    )


def _user_frame(frame: FrameType | None) -> FrameType | None:
    """Return the frame of the user's code that asked for it, directly or through a library."""
    while frame is not None:
        filename = frame.f_code.co_filename
        if filename.startswith(_IMPORT) or filename.endswith(_READERS):
            return None
        frozen = filename.startswith("<frozen ")
        if internal_files[filename] and not frozen:
            return None
        if not frozen and not is_library(filename):
            return frame
        frame = frame.f_back
    return None
