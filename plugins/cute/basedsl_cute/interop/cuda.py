"""`cute.cuda`: the context and the streams of programs that use no framework.

On the simulator there is one stream, and it has always finished.
"""

from __future__ import annotations

from typing import Any

from basedsl_cute.device import driver
from basedsl_cute.device.driver import DSLCudaRuntimeError
from basedsl_cute.dsl.machine import current_target


class StreamHandle(int):
    """A CUstream where cuda-python is not installed."""

    def __cuda_stream__(self) -> tuple[int, int]:
        return 0, int(self)


def initialize_cuda_context(device_id: int = 0) -> None:
    """Make the primary context of a device current in this thread."""
    if current_target().is_gpu:
        driver.set_device(device_id)


def as_custream(handle: int) -> Any:
    """A CUstream of cuda-python if that is installed, else an object that is as good here."""
    try:
        from cuda.bindings import driver as bindings
    except ImportError:
        return StreamHandle(handle)
    return bindings.CUstream(handle)


def default_stream() -> Any:
    """The default stream of the context."""
    return as_custream(0)


def stream_sync(stream: Any) -> None:
    """Wait until all work given to `stream` has finished."""
    if current_target().is_gpu:
        driver.ensure_context()
        driver.call("cuStreamSynchronize", driver.stream_handle(stream))


def checkCudaErrors(result: Any) -> Any:
    """What a function of cuda-python returned besides its code; DSLCudaRuntimeError for a failure.

    `result` is its tuple, the code first.
    """
    code, *values = result
    number = int(code)
    if number:
        name, meaning = driver.describe_error(number)
        raise DSLCudaRuntimeError(f"{name}: {meaning}", number, name)
    if not values:
        return None
    return values[0] if len(values) == 1 else tuple(values)


__all__ = [
    "DSLCudaRuntimeError",
    "StreamHandle",
    "as_custream",
    "checkCudaErrors",
    "default_stream",
    "initialize_cuda_context",
    "stream_sync",
]
