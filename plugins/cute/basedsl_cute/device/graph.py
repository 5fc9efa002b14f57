"""CUDA graphs of work that a stream is given, as much of them as timing takes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from basedsl_cute.device import driver


class Graph:
    """Captured work, to be launched as a whole. A context manager that frees it."""

    def __init__(self, executable: Any) -> None:
        self._executable = executable

    @classmethod
    def capture(cls, stream: Any, work: Callable[[], None]) -> Graph:
        """What `work` gives to `stream`, which is not the default stream. Nothing runs."""
        handle = driver.stream_handle(stream)
        mode = driver.require().CUstreamCaptureMode.CU_STREAM_CAPTURE_MODE_THREAD_LOCAL
        driver.call("cuStreamBeginCapture", handle, mode)
        try:
            work()
        finally:
            graph = driver.call("cuStreamEndCapture", handle)
        executable = driver.call("cuGraphInstantiate", graph, 0)
        driver.call("cuGraphDestroy", graph)
        return cls(executable)

    def launch(self, stream: Any) -> None:
        """Give the work to `stream`."""
        driver.call("cuGraphLaunch", self._executable, driver.stream_handle(stream))

    def __enter__(self) -> Graph:
        return self

    def __exit__(self, *error: Any) -> None:
        driver.synchronize()
        driver.call("cuGraphExecDestroy", self._executable)
