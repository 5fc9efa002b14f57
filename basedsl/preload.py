"""What the first compilation of a process loads, loaded beside it.

Mapping the libraries of MLIR and of llvmlite takes longer than most compilations, and leaves the
interpreter free: a thread does it while Python code is read and traced.
"""

from __future__ import annotations

import contextlib
import threading

from basedsl.mlir.bindings import preload_libraries
from basedsl.objectstage import native

_begun: set[str] = set()


def begin(bindings_package: str | None, dialects: tuple[str, ...]) -> None:
    """Have the libraries of these bindings and of the native back end loaded, once a process."""
    key = bindings_package or ""
    if key in _begun:
        return
    _begun.add(key)

    def load() -> None:
        # Whatever goes wrong goes wrong again, and is reported, where it is needed.
        with contextlib.suppress(Exception):
            preload_libraries(bindings_package, dialects)
        with contextlib.suppress(Exception):
            native.preload()

    threading.Thread(target=load, name="basedsl-preload").start()
