"""Errors that LLVM gives up on: caught, where it would end the process.

LLVM's back ends report what they cannot select by `report_fatal_error`, which does not return. The
work that may end so runs in a thread of its own, and LLVM's handler for such errors leaves that
thread where it is, asleep for good: nothing is unwound, and the caller goes on. What the thread was
working on must not be touched again.
"""

from __future__ import annotations

import ctypes
import functools
import sys
import threading
from collections.abc import Callable
from typing import Any, TypeVar

from basedsl.mlir.bindings import Bindings

R = TypeVar("R")

_Handler = ctypes.CFUNCTYPE(None, ctypes.c_char_p)


class LLVMGaveUp(Exception):
    """What LLVM said instead of going on."""


class _Running:
    """One call that may not come back."""

    def __init__(self, function: Callable[[], Any]) -> None:
        self.function = function
        self.done = threading.Event()
        self.result: Any = None
        self.error: BaseException | None = None

    def run(self) -> None:
        _work.now = self
        try:
            self.result = self.function()
        except BaseException as error:
            self.error = error
        self.done.set()

    def give_up(self, reason: str) -> None:
        self.error = LLVMGaveUp(reason)
        self.done.set()
        threading.Event().wait()


class _Work(threading.local):
    now: _Running | None = None


_work = _Work()


@_Handler  # type: ignore[untyped-decorator]
def _on_fatal_error(reason: bytes | None) -> None:
    text = (reason or b"").decode(errors="replace")
    running = _work.now
    if running is not None:
        running.give_up(text)
    print(f"LLVM ERROR: {text}", file=sys.stderr, flush=True)  # LLVM ends the process now


@functools.cache
def _installed(library: str) -> bool:
    try:
        install = ctypes.CDLL(library).LLVMInstallFatalErrorHandler
    except (OSError, AttributeError):
        return False
    install(_on_fatal_error)
    return True


def surviving(bindings: Bindings, function: Callable[[], R]) -> R:
    """What `function` returns or raises; LLVMGaveUp where LLVM would end the process. It runs in
    another thread; where LLVM's handler cannot be set, in this one.
    """
    library = bindings.c_library()
    if library is None or not _installed(str(library)):
        return function()
    running = _Running(function)
    threading.Thread(target=running.run, name="basedsl-llvm", daemon=True).start()
    interrupt: KeyboardInterrupt | None = None
    while not running.done.is_set():
        # The thread works on what the caller owns: nobody goes on before it has ended.
        try:
            running.done.wait()
        except KeyboardInterrupt as error:
            interrupt = error
    if interrupt is not None:
        raise interrupt
    if running.error is not None:
        raise running.error
    result: R = running.result
    return result
