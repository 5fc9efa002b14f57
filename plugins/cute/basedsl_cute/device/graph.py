"""CUDA graphs: capture and launch of a stream's work, for timing."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from basedsl_cute.device import driver


class Graph:
    """An instantiated CUDA graph; as a context manager, it is freed at the end of the block."""

    def __init__(self, executable: Any) -> None:
        self._executable = executable

    @classmethod
    def capture(cls, stream: Any, work: Callable[[], None]) -> Graph:
        """Capture what `work()` enqueues on `stream`, not the default stream; nothing runs."""
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
        """Enqueue the graph on `stream`."""
        driver.call("cuGraphLaunch", self._executable, driver.stream_handle(stream))

    def __enter__(self) -> Graph:
        return self

    def __exit__(self, *error: Any) -> None:
        driver.synchronize()
        driver.call("cuGraphExecDestroy", self._executable)
