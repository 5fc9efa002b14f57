"""`cute.cuda`: contexts, streams and error checks for programs that use no array framework.

On the simulator the work of a stream has always finished, and its check for races takes launches
on different streams as running at the same time, until something waits for them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from basedsl_cute.device import driver
from basedsl_cute.device.driver import DSLCudaRuntimeError
from basedsl_cute.dsl.machine import current_target
from basedsl_cute.hardware.unsupported import unsupported_names

if not TYPE_CHECKING:  # a type checker reports names that do not exist
    __getattr__ = unsupported_names("basedsl_cute.cuda")


class StreamHandle(int):
    """The handle of a CUstream, in place of cuda-python's class where that is not installed."""

    def __cuda_stream__(self) -> tuple[int, int]:
        return 0, int(self)


def initialize_cuda_context(device_id: int = 0) -> None:
    """Make the primary context of device `device_id` current in this thread.

    Does nothing on the simulator. Raises DSLRuntimeError without a driver.
    """
    if current_target().is_gpu:
        driver.set_device(device_id)


def as_custream(handle: int) -> Any:
    """A stream handle as `CUstream` of cuda-python, or as `StreamHandle` where that is missing."""
    try:
        from cuda.bindings import driver as bindings
    except ImportError:
        return StreamHandle(handle)
    return bindings.CUstream(handle)


def default_stream() -> Any:
    """The default stream of the current context, as an argument of `@jit` functions."""
    return as_custream(0)


def stream_sync(stream: Any) -> None:
    """Wait until all work of `stream` has finished.

    `stream` is None (the default stream), a stream of cuda-python, PyTorch or CuPy, or a handle.
    Raises DSLCudaRuntimeError if work of the stream failed.
    """
    if current_target().is_gpu:
        driver.ensure_context()
        driver.call("cuStreamSynchronize", driver.stream_handle(stream))
    else:
        _simulated_order().synchronise(driver.stream_handle(stream))


def wait_stream(stream: Any, other: Any) -> None:
    """Let later work of `stream` wait until the work that `other` has now has finished; host code
    goes on.

    Both are None (the default stream), a stream of cuda-python, PyTorch or CuPy, or a handle.
    """
    handles = driver.stream_handle(stream), driver.stream_handle(other)
    if current_target().is_gpu:
        driver.ensure_context()
        event = driver.DriverEvent()
        event.record(handles[1])
        driver.call("cuStreamWaitEvent", handles[0], event.handle, 0)
        event.destroy()
    else:
        _simulated_order().wait(*handles)


def _simulated_order() -> Any:
    from basedsl_cute.sim.machine.stream_order import ORDER  # programs for GPUs do without

    return ORDER


def load_cubin_module_data(cubin: bytes) -> driver.Library:
    """Load `cubin`, the bytes of machine code, which stays loaded as long as the result. Raises
    DSLCudaRuntimeError.
    """
    return driver.Library(cubin)


def checkCudaErrors(result: Any) -> Any:
    """Check the result of a function of cuda-python, and return its values.

    `result` is the tuple that the function returned, error code first. Returns None, the one value,
    or a tuple of several. Raises DSLCudaRuntimeError for a failure.

    >>> from basedsl_cute import cuda
    >>> cuda.checkCudaErrors((0, 12040))
    12040
    """
    code, *values = result
    number = int(code)
    if number:
        name, meaning = driver.describe_error(number)
        own = getattr(code, "name", "")  # of other libraries of cuda-python, with other numbers
        if own and own != name:
            name, meaning = own, f"error {number} of {type(code).__name__}"
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
    "load_cubin_module_data",
    "stream_sync",
    "wait_stream",
]
