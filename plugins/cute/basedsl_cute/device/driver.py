"""The CUDA driver API, as much of it as running kernels takes.

The library is called through ctypes: importing cuda.bindings takes 0.16 s, this nothing, and host
code needs the addresses of its functions anyway. On a machine without a driver this module
imports; asking it for anything raises a `DSLRuntimeError` that says so.

Contexts are the primary ones, which PyTorch, CuPy and the CUDA runtime share.
"""

from __future__ import annotations

import contextlib
import ctypes
import functools
import sys
import threading
from dataclasses import dataclass
from typing import Any

from basedsl.errors import DSLRuntimeError, DSLTypeError, with_article

_LIBRARY_NAMES = {"win32": ("nvcuda.dll",)}.get(sys.platform, ("libcuda.so.1", "libcuda.so"))
MINIMUM_VERSION = 12000  # cuLibraryLoadData

SUCCESS = 0

# cuda.h: CUdevice_attribute
_MAX_THREADS_PER_BLOCK, _MAX_BLOCK_DIM_X, _MAX_GRID_DIM_X = 1, 2, 5
_MULTIPROCESSOR_COUNT, _CAPABILITY_MAJOR, _CAPABILITY_MINOR = 16, 75, 76
_MAX_SMEM_PER_BLOCK_OPTIN, _MAX_SMEM_PER_SM, _L2_CACHE_SIZE = 97, 81, 38

# cuda.h: CUfunction_attribute
MAX_DYNAMIC_SMEM, SMEM_CARVEOUT, NON_PORTABLE_CLUSTER = 8, 9, 14
_FUNCTION_ATTRIBUTES = {
    "max_threads": 0,
    "static_smem": 1,
    "local_bytes": 3,
    "registers": 4,
}

# cuda.h: CUjit_option
_JIT_ERROR_LOG_BUFFER, _JIT_ERROR_LOG_BUFFER_SIZE = 5, 6


class DSLCudaRuntimeError(DSLRuntimeError):
    """The CUDA driver refused. `error_code` is its CUresult, `error_name` that code's name."""

    def __init__(self, message: str, error_code: int, error_name: str = "", **more: Any) -> None:
        super().__init__(message, **more)
        self.error_code = error_code
        self.error_name = error_name


@functools.cache
def _library() -> ctypes.CDLL | None:
    for name in _LIBRARY_NAMES:
        try:
            return ctypes.CDLL(name)
        except OSError:
            continue
    return None


@functools.cache
def _initialised() -> int | None:
    """The result of cuInit, or None without a driver."""
    library = _library()
    return None if library is None else int(library.cuInit(0))


def is_available() -> bool:
    """True with a driver and at least one device."""
    if _initialised() != SUCCESS:
        return False
    return device_count() > 0


def require() -> ctypes.CDLL:
    """The driver library, initialised; DSLRuntimeError where there is none that works."""
    result = _initialised()
    library = _library()
    if library is None or result is None:
        raise DSLRuntimeError(
            "asking for a GPU target with no driver: libcuda is not on this machine",
            hint="install NVIDIA's driver, or set CUTE_DSL_ARCH=sim to run on the simulator",
        )
    if result != SUCCESS:
        raise _error(library, "cuInit", result)
    return library


def call(name: str, *arguments: Any) -> None:
    """Call a driver function; DSLCudaRuntimeError unless it succeeds."""
    library = require()
    result = getattr(library, name)(*arguments)
    if result != SUCCESS:
        raise _error(library, name, result)


def describe_error(code: int) -> tuple[str, str]:
    """The name of a CUresult and what it means."""
    library = _library()
    return ("", f"error {code}") if library is None else _describe(library, code)


def _describe(library: ctypes.CDLL, code: int) -> tuple[str, str]:
    texts = []
    for function in (library.cuGetErrorName, library.cuGetErrorString):
        text = ctypes.c_char_p()
        function(code, ctypes.byref(text))
        texts.append((text.value or f"error {code}".encode()).decode())
    return texts[0], texts[1]


def _error(library: ctypes.CDLL, what: str, code: int) -> DSLCudaRuntimeError:
    name, meaning = _describe(library, code)
    return DSLCudaRuntimeError(f"{what}: {name}, {meaning}", code, name)


def address_of(name: str) -> int:
    """The address of a driver function, for native code."""
    return ctypes.cast(getattr(require(), name), ctypes.c_void_p).value or 0


# Devices and contexts ----------------------------------------------------------------------------


@dataclass(frozen=True)
class Device:
    """A device's properties; sizes are bytes."""

    number: int
    name: str
    capability: tuple[int, int]
    multiprocessors: int
    max_threads_per_block: int
    max_block: tuple[int, int, int]
    max_grid: tuple[int, int, int]
    smem_per_block: int
    smem_per_multiprocessor: int
    l2_cache: int


def driver_version() -> int:
    """The CUDA version that the driver knows, as 1000 * major + 10 * minor."""
    version = ctypes.c_int()
    call("cuDriverGetVersion", ctypes.byref(version))
    return version.value


def device_count() -> int:
    """How many devices there are."""
    count = ctypes.c_int()
    call("cuDeviceGetCount", ctypes.byref(count))
    return count.value


@functools.cache
def device(number: int = 0) -> Device:
    """The properties of device `number`."""
    handle = _device_handle(number)

    def attribute(which: int) -> int:
        value = ctypes.c_int()
        call("cuDeviceGetAttribute", ctypes.byref(value), which, handle)
        return value.value

    def three(first: int) -> tuple[int, int, int]:
        return attribute(first), attribute(first + 1), attribute(first + 2)

    name = ctypes.create_string_buffer(256)
    call("cuDeviceGetName", name, 256, handle)
    return Device(
        number=number,
        name=name.value.decode(),
        capability=(attribute(_CAPABILITY_MAJOR), attribute(_CAPABILITY_MINOR)),
        multiprocessors=attribute(_MULTIPROCESSOR_COUNT),
        max_threads_per_block=attribute(_MAX_THREADS_PER_BLOCK),
        max_block=three(_MAX_BLOCK_DIM_X),
        max_grid=three(_MAX_GRID_DIM_X),
        smem_per_block=attribute(_MAX_SMEM_PER_BLOCK_OPTIN),
        smem_per_multiprocessor=attribute(_MAX_SMEM_PER_SM),
        l2_cache=attribute(_L2_CACHE_SIZE),
    )


def _device_handle(number: int) -> int:
    handle = ctypes.c_int()
    call("cuDeviceGet", ctypes.byref(handle), number)
    return handle.value


def capability_or_none() -> tuple[int, int] | None:
    """The compute capability of the current device, or None without a GPU."""
    if not is_available():
        return None
    return device(current_device()).capability


def current_device() -> int:
    """The device of the thread's current context; 0 if it has none yet."""
    if not _current_context():
        return 0
    number = ctypes.c_int()
    call("cuCtxGetDevice", ctypes.byref(number))
    return number.value


def _current_context() -> int:
    context = ctypes.c_void_p()
    call("cuCtxGetCurrent", ctypes.byref(context))
    return context.value or 0


@functools.cache
def _primary_context(number: int) -> int:
    # Retained for the life of the process.
    context = ctypes.c_void_p()
    call("cuDevicePrimaryCtxRetain", ctypes.byref(context), _device_handle(number))
    return context.value or 0


_thread = threading.local()


def ensure_context() -> None:
    """Make sure that this thread has a current context: its own if another library has made one
    current, else the primary one of device 0.
    """
    if getattr(_thread, "has_context", False):
        return
    if not _current_context():
        call("cuCtxSetCurrent", ctypes.c_void_p(_primary_context(0)))
    _thread.has_context = True


def give_context() -> bool:
    """Give this thread a context if it has none now; False if it has."""
    if _current_context():
        return False
    call("cuCtxSetCurrent", ctypes.c_void_p(_primary_context(0)))
    _thread.has_context = True
    return True


def set_device(number: int) -> None:
    """Make the primary context of a device current in this thread."""
    call("cuCtxSetCurrent", ctypes.c_void_p(_primary_context(number)))
    _thread.has_context = True


def synchronize() -> None:
    """Wait for everything that the current context has been given to do."""
    ensure_context()
    call("cuCtxSynchronize")


# Code --------------------------------------------------------------------------------------------


class Library:
    """Loaded machine code or PTX. Its kernels work in every context and go with it."""

    def __init__(self, image: bytes | str) -> None:
        if driver_version() < MINIMUM_VERSION:
            raise DSLRuntimeError(
                f"the driver knows CUDA {driver_version() / 1000:.1f}; 12.0 is needed",
                hint="update NVIDIA's driver",
            )
        ensure_context()
        data = image.encode() + b"\0" if isinstance(image, str) else image
        # Kept: where modules load lazily, the driver compiles PTX when a kernel is first asked for.
        self._log = log = ctypes.create_string_buffer(8192)
        options = (ctypes.c_int * 2)(_JIT_ERROR_LOG_BUFFER, _JIT_ERROR_LOG_BUFFER_SIZE)
        values = (ctypes.c_void_p * 2)(ctypes.addressof(log), len(log))
        handle = ctypes.c_void_p()
        library = require()
        result = library.cuLibraryLoadData(
            ctypes.byref(handle), data, options, values, 2, None, None, 0
        )
        self._check(result)
        self.handle = handle.value or 0
        self._unload = library.cuLibraryUnload

    def kernel(self, name: str) -> Kernel:
        """The kernel called `name`."""
        handle = ctypes.c_void_p()
        library = ctypes.c_void_p(self.handle)
        self._check(require().cuLibraryGetKernel(ctypes.byref(handle), library, name.encode()))
        return Kernel(name, handle.value or 0, self)

    def _check(self, result: int) -> None:
        if result == SUCCESS:
            return
        error = _error(require(), "loading a kernel", result)
        said = self._log.value.decode(errors="replace").strip()
        if said:
            error.message += f"\n{said}"
        raise error

    def unload(self) -> None:
        """Free the code; its kernels are gone."""
        if self.handle:
            handle, self.handle = self.handle, 0
            self._unload(ctypes.c_void_p(handle))


@dataclass(frozen=True)
class Kernel:
    """A kernel of a loaded library. `handle` can be launched in any context."""

    name: str
    handle: int
    library: Library

    def attribute(self, name: str, number: int | None = None) -> int:
        """`registers`, `local_bytes`, `static_smem` or `max_threads` on a device."""
        value = ctypes.c_int()
        where = _device_handle(current_device() if number is None else number)
        which = _FUNCTION_ATTRIBUTES[name]
        pointer = ctypes.c_void_p(self.handle)
        call("cuKernelGetAttribute", ctypes.byref(value), which, pointer, where)
        return value.value

    def set_attribute(self, which: int, value: int, number: int | None = None) -> None:
        """Set a CUfunction_attribute on a device (the current one by default)."""
        where = _device_handle(current_device() if number is None else number)
        call("cuKernelSetAttribute", which, value, ctypes.c_void_p(self.handle), where)

    def blocks_per_multiprocessor(self, threads: int, dynamic_smem: int = 0) -> int:
        """How many blocks of `threads` fit on a multiprocessor at once."""
        function = ctypes.c_void_p()
        call("cuKernelGetFunction", ctypes.byref(function), ctypes.c_void_p(self.handle))
        count = ctypes.c_int()
        call(
            "cuOccupancyMaxActiveBlocksPerMultiprocessor",
            ctypes.byref(count),
            function,
            threads,
            ctypes.c_size_t(dynamic_smem),
        )
        return count.value


# Streams, events, memory -------------------------------------------------------------------------


def stream_handle(stream: Any) -> int:
    """The CUstream of what users call a stream: None (the default stream), an integer, a stream of
    cuda.bindings, cuda.core, PyTorch or CuPy, or anything with `__cuda_stream__`.
    """
    if stream is None:
        return 0
    if isinstance(stream, int) and not isinstance(stream, bool):
        return stream
    protocol = getattr(stream, "__cuda_stream__", None)
    if protocol is not None:
        version, handle = protocol() if callable(protocol) else protocol
        if version != 0:
            raise DSLTypeError(f"{type(stream).__name__} speaks __cuda_stream__ version {version}")
        return int(handle)
    for attribute in ("cuda_stream", "ptr"):  # PyTorch, CuPy
        handle = getattr(stream, attribute, None)
        if isinstance(handle, int):
            return handle
    if not isinstance(stream, bool | float | str | bytes):  # cuda.bindings has a CUstream as int()
        with contextlib.suppress(TypeError, ValueError):
            return int(stream)
    raise DSLTypeError(
        f"{with_article(type(stream))} is no CUDA stream",
        hint="pass a stream of PyTorch, CuPy or cuda.bindings, or its handle as an integer",
    )


class Stream:
    """A stream of its own; `handle` is its CUstream."""

    def __init__(self) -> None:
        ensure_context()
        handle = ctypes.c_void_p()
        call("cuStreamCreate", ctypes.byref(handle), 1)  # CU_STREAM_NON_BLOCKING
        self.handle = handle.value or 0

    def __cuda_stream__(self) -> tuple[int, int]:
        return 0, self.handle

    def synchronize(self) -> None:
        call("cuStreamSynchronize", ctypes.c_void_p(self.handle))

    def destroy(self) -> None:
        if self.handle:
            handle, self.handle = self.handle, 0
            call("cuStreamDestroy_v2", ctypes.c_void_p(handle))


class Event:
    """A point in a stream's work, with the time it was reached."""

    def __init__(self) -> None:
        ensure_context()
        handle = ctypes.c_void_p()
        call("cuEventCreate", ctypes.byref(handle), 0)
        self.handle = handle.value or 0

    def record(self, stream: Any = None) -> None:
        pointer = ctypes.c_void_p(self.handle)
        call("cuEventRecord", pointer, ctypes.c_void_p(stream_handle(stream)))

    def synchronize(self) -> None:
        call("cuEventSynchronize", ctypes.c_void_p(self.handle))

    def milliseconds_since(self, start: Event) -> float:
        """Time between two reached events, in milliseconds."""
        elapsed = ctypes.c_float()
        first, last = ctypes.c_void_p(start.handle), ctypes.c_void_p(self.handle)
        call("cuEventElapsedTime", ctypes.byref(elapsed), first, last)
        return elapsed.value

    def destroy(self) -> None:
        if self.handle:
            handle, self.handle = self.handle, 0
            call("cuEventDestroy_v2", ctypes.c_void_p(handle))


def allocate(size: int) -> int:
    """The address of `size` bytes of device memory."""
    ensure_context()
    address = ctypes.c_uint64()
    call("cuMemAlloc_v2", ctypes.byref(address), ctypes.c_size_t(size))
    return address.value


def free(address: int) -> None:
    """Give device memory back."""
    call("cuMemFree_v2", ctypes.c_uint64(address))


def copy_to_device(target: int, source: int, size: int) -> None:
    """Copy `size` bytes from a host address to a device address."""
    call("cuMemcpyHtoD_v2", ctypes.c_uint64(target), ctypes.c_void_p(source), ctypes.c_size_t(size))


def copy_to_host(target: int, source: int, size: int) -> None:
    """Copy `size` bytes from a device address to a host address."""
    call("cuMemcpyDtoH_v2", ctypes.c_void_p(target), ctypes.c_uint64(source), ctypes.c_size_t(size))


def copy_on_device(target: int, source: int, size: int, stream: Any = None) -> None:
    """Copy `size` bytes between device addresses, in stream order."""
    pointer = ctypes.c_void_p(stream_handle(stream))
    call(
        "cuMemcpyDtoDAsync_v2",
        ctypes.c_uint64(target),
        ctypes.c_uint64(source),
        ctypes.c_size_t(size),
        pointer,
    )
