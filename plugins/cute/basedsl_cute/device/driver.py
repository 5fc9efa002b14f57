"""The part of the CUDA driver API that running kernels needs, through `cuda.bindings.driver`.

Importing the bindings takes about 0.06 s, so the first use of a GPU imports them; on a machine
without a driver nothing does, and asking for a GPU raises a `DSLRuntimeError` that says so.

Contexts are the primary ones, which PyTorch, CuPy and the CUDA runtime share.

ctypes is left with the question whether the driver's library is there, and elsewhere with records
and callbacks in memory that native host code shares (`gpu_launcher`, `launch_checks`, `tensor_map`,
`lowering.host.launch_abi`): these are no calls of the driver. `cuda.core` has devices, code,
streams, events and graphs as objects too; it is not used, because importing it takes 0.11 s more
(1.2.2; the bindings take 0.05 s), and native host code needs handles and addresses in any case.
"""

from __future__ import annotations

import contextlib
import ctypes
import functools
import sys
import threading
from dataclasses import dataclass
from typing import Any

from basedsl import DSLRuntimeError, DSLTypeError, logger, with_article

_LIBRARY = "nvcuda.dll" if sys.platform == "win32" else "libcuda.so.1"
INSTALL = "pip install 'basedsl-cute[cuda]'"
_log = logger("cute.driver")
MINIMUM_VERSION = 12000  # cuLibraryLoadData

SUCCESS = 0

# cuda.h, CUfunction_attribute. Numbers, because exported code contains them without a driver.
MAX_DYNAMIC_SMEM, SMEM_CARVEOUT, NON_PORTABLE_CLUSTER = 8, 9, 14

_FUNCTION_ATTRIBUTES = {
    "max_threads": "CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK",
    "static_smem": "CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES",
    "local_bytes": "CU_FUNC_ATTRIBUTE_LOCAL_SIZE_BYTES",
    "registers": "CU_FUNC_ATTRIBUTE_NUM_REGS",
}


class DSLCudaRuntimeError(DSLRuntimeError):
    """A call of the CUDA driver, or work on the GPU, failed.

    `error_code` is the CUresult, `error_name` its name in cuda.h.
    """

    def __init__(self, message: str, error_code: int, error_name: str = "", **more: Any) -> None:
        super().__init__(message, **more)
        self.error_code = error_code
        self.error_name = error_name


class CudaDriverDependencyError(DSLRuntimeError):
    """There is no GPU driver on this machine, and a call needs one."""


# Calls -------------------------------------------------------------------------------------------


@functools.cache
def has_library() -> bool:
    """True if the driver's library is on this machine."""
    try:
        # By ctypes: a machine without a driver need not import the bindings.
        ctypes.CDLL(_LIBRARY)
    except OSError:
        return False
    return True


@functools.cache
def _bindings() -> Any:
    """`cuda.bindings.driver`; None without it, or without the driver's library."""
    if not has_library():
        return None
    try:
        from cuda.bindings import driver
    except ImportError:
        _log.warning("cuda.bindings is not installed, so no GPU is used: %s", INSTALL)
        return None
    return driver


def _missing() -> tuple[str, str]:
    """Return the words for what a machine lacks, and for what to do."""
    if has_library():
        return "cuda.bindings, which is not installed", INSTALL
    library = _LIBRARY.partition(".")[0]
    return f"a GPU driver, and {library} was not found", "install NVIDIA's driver"


@functools.cache
def _initialised() -> int | None:
    """The result of cuInit, or None without a driver."""
    bindings = _bindings()
    return None if bindings is None else int(_ask(bindings, "cuInit", 0)[0])


def has_bindings() -> bool:
    """True if there are the driver's library and `cuda.bindings`."""
    return _bindings() is not None


def is_available() -> bool:
    """True if there is a driver and at least one device."""
    return _initialised() == SUCCESS and device_count() > 0


def require(target: str = "a GPU target") -> Any:
    """The module `cuda.bindings.driver`, after cuInit.

    Raises CudaDriverDependencyError without a driver; `target` names what needs it.
    """
    result = _initialised()
    if result is None:
        without, todo = _missing()
        raise CudaDriverDependencyError(
            f"{target} needs {without}",
            hint=f"{todo}, or set CUTE_DSL_ARCH=sim to run on the simulator",
        )
    if result != SUCCESS:
        raise _error("cuInit", result)
    return _bindings()


def call(name: str, *arguments: Any) -> Any:
    """Call a function of `cuda.bindings.driver` and return its value, or the tuple of its values.
    Raises DSLCudaRuntimeError unless it succeeds.
    """
    result, *values = _ask(require(), name, *arguments)
    if result != SUCCESS:
        raise _error(name, int(result))
    return values[0] if len(values) == 1 else tuple(values)


def _ask(bindings: Any, name: str, *arguments: Any) -> Any:
    try:
        return getattr(bindings, name)(*arguments)
    except (RuntimeError, KeyError, ValueError) as error:
        # The bindings' errors for a function that the driver lacks, or a result unknown to them.
        raise DSLRuntimeError(
            f"cuda-bindings does not fit the driver, in {name}: {error}",
            hint="install a cuda-bindings of the driver's CUDA version, or update the driver",
        ) from error


def describe_error(code: int) -> tuple[str, str]:
    """The name of a CUresult and its description."""
    bindings = _bindings()
    if bindings is None:
        return f"error {code}", f"error {code}"
    try:
        result = bindings.CUresult(code)
    except ValueError:  # the driver is newer than the bindings
        return f"error {code}", f"error {code}"
    _, meaning = bindings.cuGetErrorString(result)
    return result.name, (meaning or f"error {code}".encode()).decode()


def _error(what: str, code: int) -> DSLCudaRuntimeError:
    name, meaning = describe_error(code)
    return DSLCudaRuntimeError(f"{what}: {name}, {meaning}", code, name)


def address_of(name: str) -> int:
    """The address of a driver function for native code, which calls it as CUDA 12.0 declares it.

    `name` has no version suffix. Raises DSLRuntimeError where the driver has no such function.
    """
    bindings = require()
    flags = int(bindings.CUdriverProcAddress_flags.CU_GET_PROC_ADDRESS_DEFAULT)
    wanted = (name.encode(), MINIMUM_VERSION, flags)
    result, address, _ = _ask(bindings, "cuGetProcAddress", *wanted)
    if result != SUCCESS or not address:
        raise DSLRuntimeError(f"the driver has no {name}", hint="update NVIDIA's driver")
    return int(address)


# Devices and contexts ----------------------------------------------------------------------------


@dataclass(frozen=True)
class Device:
    """The properties of a device; sizes are in bytes."""

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
    """The CUDA version of the driver, as 1000 * major + 10 * minor."""
    return int(call("cuDriverGetVersion"))


def device_count() -> int:
    """The number of devices."""
    return int(call("cuDeviceGetCount"))


@functools.cache
def device(number: int = 0) -> Device:
    """The properties of device `number`."""
    handle = call("cuDeviceGet", number)
    attributes = require().CUdevice_attribute

    def attribute(name: str) -> int:
        which = getattr(attributes, f"CU_DEVICE_ATTRIBUTE_{name}")
        return int(call("cuDeviceGetAttribute", which, handle))

    def three(name: str) -> tuple[int, int, int]:
        return attribute(f"{name}_X"), attribute(f"{name}_Y"), attribute(f"{name}_Z")

    return Device(
        number=number,
        name=call("cuDeviceGetName", 256, handle).partition(b"\0")[0].decode(),
        capability=(
            attribute("COMPUTE_CAPABILITY_MAJOR"),
            attribute("COMPUTE_CAPABILITY_MINOR"),
        ),
        multiprocessors=attribute("MULTIPROCESSOR_COUNT"),
        max_threads_per_block=attribute("MAX_THREADS_PER_BLOCK"),
        max_block=three("MAX_BLOCK_DIM"),
        max_grid=three("MAX_GRID_DIM"),
        smem_per_block=attribute("MAX_SHARED_MEMORY_PER_BLOCK_OPTIN"),
        smem_per_multiprocessor=attribute("MAX_SHARED_MEMORY_PER_MULTIPROCESSOR"),
        l2_cache=attribute("L2_CACHE_SIZE"),
    )


def capability_or_none() -> tuple[int, int] | None:
    """The compute capability of the current device, or None without a GPU."""
    if not is_available():
        return None
    return device(current_device()).capability


def current_device() -> int:
    """The device of this thread's current context; 0 if there is no context yet."""
    return int(call("cuCtxGetDevice")) if _current_context() else 0


def _current_context() -> int:
    return int(call("cuCtxGetCurrent"))


@functools.cache
def _primary_context(number: int) -> int:
    # Retained for the life of the process.
    return int(call("cuDevicePrimaryCtxRetain", call("cuDeviceGet", number)))


_thread = threading.local()


def ensure_context() -> None:
    """Make sure that this thread has a current context: one that another library made current, or
    the primary context of device 0.
    """
    if not getattr(_thread, "has_context", False):
        give_context()
        _thread.has_context = True


def give_context() -> bool:
    """Make the primary context of device 0 current, if no context is; True if it was needed."""
    if _current_context():
        return False
    set_device(0)
    return True


def set_device(number: int) -> None:
    """Make the primary context of a device current in this thread."""
    call("cuCtxSetCurrent", _primary_context(number))
    _thread.has_context = True


def synchronize() -> None:
    """Wait until all work in the current context has finished."""
    ensure_context()
    call("cuCtxSynchronize")


# Code --------------------------------------------------------------------------------------------


class Library:
    """Loaded machine code or PTX. Its kernels work in every context, until it is unloaded."""

    def __init__(self, image: bytes | str) -> None:
        if driver_version() < MINIMUM_VERSION:
            raise DSLRuntimeError(
                f"the driver knows CUDA {driver_version() / 1000:.1f}; 12.0 is needed",
                hint="update NVIDIA's driver",
            )
        ensure_context()
        data = image.encode() + b"\0" if isinstance(image, str) else image
        # Kept alive: with lazy loading the driver compiles PTX at the first use of a kernel.
        self._log = bytearray(8192)
        of = require().CUjit_option
        options = [of.CU_JIT_ERROR_LOG_BUFFER, of.CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES]
        values = [self._log, len(self._log)]
        loaded = self._load("cuLibraryLoadData", data, options, values, len(options), [], [], 0)
        self.handle = int(loaded)

    def kernel(self, name: str) -> Kernel:
        """The kernel called `name`."""
        handle = self._load("cuLibraryGetKernel", self.handle, name.encode())
        return Kernel(name, int(handle), self)

    def _load(self, name: str, *arguments: Any) -> Any:
        """Call a function; its error quotes the log of the driver's compiler."""
        try:
            return call(name, *arguments)
        except DSLCudaRuntimeError as error:
            error.message = f"loading a kernel: {error.message}"
            said = self._log.partition(b"\0")[0].decode(errors="replace").strip()
            if said:
                error.message += f"\n{said}"
            raise

    def unload(self) -> None:
        """Unload the code; its kernels must not be used any more."""
        if self.handle:
            handle, self.handle = self.handle, 0
            call("cuLibraryUnload", handle)


@dataclass(frozen=True)
class Kernel:
    """A kernel of a loaded library. `handle` can be launched in any context."""

    name: str
    handle: int
    library: Library

    def attribute(self, name: str, number: int | None = None) -> int:
        """The attribute `registers`, `local_bytes`, `static_smem` or `max_threads` on a device."""
        which = getattr(require().CUfunction_attribute, _FUNCTION_ATTRIBUTES[name])
        return int(call("cuKernelGetAttribute", which, self.handle, _handle(number)))

    def set_attribute(self, which: int, value: int, number: int | None = None) -> None:
        """Set a CUfunction_attribute on a device (the current one by default)."""
        attribute = require().CUfunction_attribute(which)
        call("cuKernelSetAttribute", attribute, value, self.handle, _handle(number))

    def active_clusters(self, blocks: int, threads: int, dynamic_smem: int = 0) -> int:
        """The number of clusters of `blocks` blocks, each of `threads`, that run at once."""
        bindings = require()
        attribute, config = bindings.CUlaunchAttribute(), bindings.CUlaunchConfig()
        attribute.id = bindings.CUlaunchAttributeID.CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION
        cluster = attribute.value.clusterDim
        cluster.x, cluster.y, cluster.z = blocks, 1, 1
        multiprocessors = device(current_device()).multiprocessors
        config.gridDimX, config.gridDimY, config.gridDimZ = blocks, multiprocessors, 1
        config.blockDimX, config.blockDimY, config.blockDimZ = threads, 1, 1
        config.sharedMemBytes = dynamic_smem
        config.attrs, config.numAttrs = [attribute], 1
        return int(call("cuOccupancyMaxActiveClusters", self.function(), config))

    def active_blocks(self, threads: int, dynamic_smem: int = 0) -> int:
        """The number of blocks of `threads` threads that one SM runs at a time."""
        name = "cuOccupancyMaxActiveBlocksPerMultiprocessor"
        return int(call(name, self.function(), threads, dynamic_smem))

    def function(self) -> Any:
        """The CUfunction in the current context."""
        return call("cuKernelGetFunction", self.handle)


def _handle(number: int | None) -> Any:
    """The CUdevice of a device, by default of the current one."""
    return call("cuDeviceGet", current_device() if number is None else number)


# Streams, events, memory -------------------------------------------------------------------------


def stream_handle(stream: Any) -> int:
    """The CUstream of a stream, as an integer.

    `stream` is None (the default stream), an integer, a stream of cuda.bindings, cuda.core, PyTorch
    or CuPy, or any object with `__cuda_stream__`; else DSLTypeError.
    """
    if stream is None:
        return 0
    if isinstance(stream, int) and not isinstance(stream, bool):
        return stream
    protocol = getattr(stream, "__cuda_stream__", None)
    if protocol is not None:
        version, handle = protocol() if callable(protocol) else protocol
        if version != 0:
            raise DSLTypeError(
                f"{type(stream).__name__} has version {version} of __cuda_stream__; 0 is supported"
            )
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


class CudaStream:
    """A new stream that does not block on the default stream; `handle` is its CUstream."""

    def __init__(self) -> None:
        ensure_context()
        self.handle = int(call("cuStreamCreate", require().CUstream_flags.CU_STREAM_NON_BLOCKING))

    def __cuda_stream__(self) -> tuple[int, int]:
        return 0, self.handle

    def synchronize(self) -> None:
        """Wait until all work of the stream has finished."""
        call("cuStreamSynchronize", self.handle)

    def destroy(self) -> None:
        if self.handle:
            handle, self.handle = self.handle, 0
            call("cuStreamDestroy", handle)


class DriverEvent:
    """A point in the work of a stream, with the time at which it is reached."""

    def __init__(self) -> None:
        ensure_context()
        self.handle = int(call("cuEventCreate", require().CUevent_flags.CU_EVENT_DEFAULT))

    def record(self, stream: Any = None) -> None:
        """Put the event behind the work that `stream` has now."""
        call("cuEventRecord", self.handle, stream_handle(stream))

    def synchronize(self) -> None:
        """Wait until the event is reached."""
        call("cuEventSynchronize", self.handle)

    def milliseconds_since(self, start: DriverEvent) -> float:
        """The time between two reached events, in milliseconds."""
        return float(call("cuEventElapsedTime", start.handle, self.handle))

    def destroy(self) -> None:
        if self.handle:
            handle, self.handle = self.handle, 0
            call("cuEventDestroy", handle)


def allocate(size: int) -> int:
    """Allocate `size` bytes of device memory; returns the address."""
    ensure_context()
    return int(call("cuMemAlloc", size))


def free(address: int) -> None:
    """Free device memory of `allocate`."""
    call("cuMemFree", address)


def copy_to_device(target: int, source: int, size: int) -> None:
    """Copy `size` bytes from a host address to a device address."""
    call("cuMemcpyHtoD", target, source, size)


def copy_to_host(target: int, source: int, size: int) -> None:
    """Copy `size` bytes from a device address to a host address."""
    call("cuMemcpyDtoH", target, source, size)
