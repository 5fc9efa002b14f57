"""Maps shared libraries that are needed soon, in a thread beside what runs now.

Mapping those of MLIR and of LLVM takes as long as a small compilation. A thread calls C's `dlopen`
for them and nothing else: `ctypes.CDLL` would keep the interpreter waiting, and with more Python in
the thread the two would wait for each other's turns.

A fork and the end of the interpreter wait for that thread: a half-mapped library is no use to a
child, and none may be mapped while others are taken down.
"""

from __future__ import annotations

import atexit
import contextlib
import ctypes
import os
import threading
from collections.abc import Sequence
from pathlib import Path

_begun: set[Path] = set()
_threads: list[threading.Thread] = []


def begin(libraries: Sequence[tuple[Path, int]]) -> None:
    """Start mapping libraries, each with its mode for dlopen; those begun before are left out."""
    new = [(os.fsencode(path), mode) for path, mode in libraries if path not in _begun]
    _begun.update(path for path, _ in libraries)
    open_library = (
        getattr(ctypes.CDLL(None), "dlopen", None) if new and os.name == "posix" else None
    )
    if open_library is None:
        return
    open_library.restype = ctypes.c_void_p
    open_library.argtypes = (ctypes.c_char_p, ctypes.c_int)

    def load() -> None:
        for path, mode in new:  # a failure is reported where the library is needed
            open_library(path, mode)

    thread = threading.Thread(target=load, name="basedsl-preload", daemon=True)
    _threads.append(thread)
    with contextlib.suppress(RuntimeError):  # no threads begin at the end of the interpreter
        thread.start()


def is_busy() -> bool:
    """Return True while libraries are being mapped."""
    return any(thread.is_alive() for thread in _threads)


def wait() -> None:
    """Return when all libraries that were begun are mapped."""
    for thread in tuple(_threads):
        if thread.is_alive():
            thread.join()
        with contextlib.suppress(ValueError):  # another waiting thread was first
            _threads.remove(thread)


atexit.register(wait)
if hasattr(os, "register_at_fork"):
    os.register_at_fork(before=wait)
