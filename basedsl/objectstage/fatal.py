"""Catches LLVM's fatal errors, which would otherwise end the process.

LLVM's back ends report what they cannot select by `report_fatal_error`, which does not return. Work
that may end so runs in a thread of its own, and LLVM's handler for such errors parks that thread
for good: nothing is unwound, and the caller goes on. Objects that the thread was working on must
not be touched again. Each such error costs a thread and a pipe.
"""

from __future__ import annotations

import ctypes
import functools
import os
import sys
import threading
from collections.abc import Callable
from typing import Any, TypeVar

from basedsl.mlir.bindings import Bindings

R = TypeVar("R")

_MORE_THAN_A_PIPE_HOLDS = 1 << 21  # bytes; 64 KB is usual, and 1 MB the most without privileges
_Handler = ctypes.CFUNCTYPE(None, ctypes.c_char_p)


class LLVMFatalError(Exception):
    """A fatal error that LLVM reported; the message is LLVM's."""


class _Running:
    """One call that may never return. Its thread reports its end over a pipe."""

    def __init__(self, function: Callable[[], Any]) -> None:
        self.function = function
        self.result: Any = None
        self.error: BaseException | None = None
        self._ended, self._tell = os.pipe()

    def run(self) -> None:
        """Call the function, in its own thread, and report the end."""
        _work.now = self
        try:
            self.result = self.function()
        except BaseException as error:
            self.error = error
        os.write(self._tell, b".")  # a process forked meanwhile may keep the pipe open
        os.close(self._tell)

    def _park_thread(self, reason: str) -> None:
        """Called by LLVM instead of aborting; never returns. Reports the error over the pipe and
        parks this thread for ever by writing more than the pipe can hold: the thread must not
        return into LLVM, and must not take the GIL again, or interpreter shutdown would end it and
        the process with it.
        """
        self.error = LLVMFatalError(reason)
        os.write(self._tell, bytes(_MORE_THAN_A_PIPE_HOLDS))

    def wait(self) -> None:
        """Wait for the end of the call, or its fatal error."""
        os.read(self._ended, 1)

    def close(self) -> None:
        """Close the pipe, unless a parked thread still writes to it."""
        if not isinstance(self.error, LLVMFatalError):
            os.close(self._ended)


class _Work(threading.local):
    now: _Running | None = None


_work = _Work()


@_Handler  # type: ignore[untyped-decorator]
def _on_fatal_error(reason: bytes | None) -> None:
    text = (reason or b"").decode(errors="replace")
    running = _work.now
    if running is not None:
        running._park_thread(text)
    print(f"LLVM ERROR: {text}", file=sys.stderr, flush=True)  # LLVM ends the process after this


@functools.cache
def _installed(library: str) -> bool:
    try:
        install = ctypes.CDLL(library).LLVMInstallFatalErrorHandler
    except (OSError, AttributeError):
        return False
    install(_on_fatal_error)
    return True


def catching_fatal_errors(bindings: Bindings, function: Callable[[], R]) -> R:
    """Call `function` in another thread and return its result, or raise its exception;
    LLVMFatalError where LLVM would end the process. Where LLVM's handler cannot be set, the call
    runs in this thread. `bindings` are those whose LLVM the function calls: the handler is set in
    their C library.
    """
    library = bindings.c_library()
    if library is None or not _installed(str(library)):
        return function()
    running = _Running(function)
    threading.Thread(target=running.run, name="basedsl-llvm", daemon=True).start()
    interrupt: KeyboardInterrupt | None = None
    waits = True
    while waits:
        # The thread works on the caller's objects: even an interrupt waits for its end.
        try:
            running.wait()
            waits = False
        except KeyboardInterrupt as error:
            interrupt = error
    running.close()
    if interrupt is not None:
        raise interrupt
    if running.error is not None:
        raise running.error
    result: R = running.result
    return result
