"""Shared libraries that are needed in a moment, mapped beside what runs now.

Mapping those of MLIR and of LLVM takes as long as a small compilation and leaves the interpreter
free. The thread calls `dlopen` and nothing else: with more Python in it the two would wait for each
other's turns, and both be slower.
"""

from __future__ import annotations

import ctypes
import threading
from collections.abc import Sequence
from pathlib import Path

_begun: set[Path] = set()


def begin(libraries: Sequence[tuple[Path, int]]) -> None:
    """Have libraries mapped with dlopen's mode for each; those begun before are left out."""
    new = [(path, mode) for path, mode in libraries if path not in _begun]
    _begun.update(path for path, _ in new)
    if new:
        threading.Thread(target=_load, args=(new,), name="basedsl-preload", daemon=True).start()


def _load(libraries: Sequence[tuple[Path, int]]) -> None:
    for path, mode in libraries:
        try:
            ctypes.CDLL(str(path), mode=mode)
        except OSError:  # met again, and reported, where it is needed
            return
