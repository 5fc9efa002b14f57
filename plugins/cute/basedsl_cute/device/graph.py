"""CUDA graphs of work that a stream is given, as much of them as timing takes."""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from typing import Any

from basedsl_cute.device import driver

_THREAD_LOCAL = 1  # cuda.h: CUstreamCaptureMode


class Graph:
    """Captured work, to be launched as a whole. A context manager that frees it."""

    def __init__(self, executable: int) -> None:
        self._executable = executable

    @classmethod
    def capture(cls, stream: Any, work: Callable[[], None]) -> Graph:
        """What `work` gives to `stream`, which is not the default stream. Nothing runs."""
        handle = ctypes.c_void_p(driver.stream_handle(stream))
        graph, executable = ctypes.c_void_p(), ctypes.c_void_p()
        driver.call("cuStreamBeginCapture_v2", handle, _THREAD_LOCAL)
        try:
            work()
        finally:
            driver.call("cuStreamEndCapture", handle, ctypes.byref(graph))
        driver.call(
            "cuGraphInstantiateWithFlags", ctypes.byref(executable), graph, ctypes.c_uint64(0)
        )
        driver.call("cuGraphDestroy", graph)
        return cls(executable.value or 0)

    def launch(self, stream: Any) -> None:
        """Give the work to `stream`."""
        handle = ctypes.c_void_p(driver.stream_handle(stream))
        driver.call("cuGraphLaunch", ctypes.c_void_p(self._executable), handle)

    def __enter__(self) -> Graph:
        return self

    def __exit__(self, *error: Any) -> None:
        driver.synchronize()
        driver.call("cuGraphExecDestroy", ctypes.c_void_p(self._executable))
