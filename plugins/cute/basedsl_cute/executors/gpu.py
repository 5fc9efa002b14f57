"""Executor that launches on the GPU, and copies arrays in host memory there and back.

A kernel cannot reach a NumPy array. A call that gets one copies its bytes to the device before and
back after, and waits; arrays that overlap share one copy, as they share memory on the host.
"""

from __future__ import annotations

import pickle
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

from basedsl import (
    FAILED_ASSERTIONS,
    ArgumentType,
    Invoker,
    NativeEntryPoint,
    NativeInvoker,
    Results,
    Stages,
    native_invoker,
)
from basedsl_cute.device import driver
from basedsl_cute.device.gpu_launcher import encoder, gpu_launcher
from basedsl_cute.executors.arguments import raise_failure, tensors
from basedsl_cute.hardware.tensor_map_format import ENCODE_SYMBOL


def gpu_executor(
    stages: Stages, symbol: str, arguments: Sequence[ArgumentType], results: Results, target: str
) -> Callable[[Sequence[Any]], Any]:
    """Make a callable on packed arguments. Its first call loads the machine code, and raises
    DSLRuntimeError, naming `target`, where there is no driver: compiling needs none.
    """

    def load_native() -> NativeInvoker:
        driver.require(f"target {target}")
        driver.ensure_context()
        table = pickle.loads(stages.binary("launches"))
        image = stages.data("cubin" if "cubin" in stages else "ptx")
        symbols = None
        if table.kernels:
            symbols = gpu_launcher(image, table)
        elif ENCODE_SYMBOL.encode() in stages.binary("object"):
            symbols = encoder()
        native = native_invoker(
            stages.binary("object"),
            symbol,
            arguments,
            results,
            symbols,
            raise_failure=raise_failure,
        )
        # A failed launch ends as a failed assertion, so their counter counts it. The symbols own
        # the loaded kernels.
        keep = (*native.native.keep, symbols)
        counted = native.native.on_failure is not None
        failed = FAILED_ASSERTIONS if counted else native.native.failed
        native.native = replace(native.native, failed=failed, keep=keep)
        return native

    # Without kernels the host's code works on the host's memory.
    launches = bool(pickle.loads(stages.binary("launches")).kernels)
    on_host = launches and any(tensor.device == "cpu" for _, tensor in tensors(arguments))
    calls = _Launches(load_native)
    return _WithCopies(calls, arguments) if on_host else calls


class _Launches(Invoker):
    """Host code whose kernels get no array in host memory. Once it is loaded, `native` is the entry
    point for calls without Python.
    """

    native: NativeEntryPoint | None = None

    def __init__(self, load: Callable[[], NativeInvoker]) -> None:
        self._load = load
        self._loaded: NativeInvoker | None = None

    def __call__(self, packed: Sequence[Any]) -> Any:
        loaded = self.loaded()
        driver.ensure_context()
        return loaded(packed)

    def loaded(self) -> NativeInvoker:
        """Load the host code with its kernels, the first time."""
        if self._loaded is None:
            self._loaded = self._load()
            self.native = self._loaded.native
        return self._loaded


class _WithCopies(Invoker):
    """Host code whose kernels get arrays in host memory: each call copies them."""

    def __init__(self, call: _Launches, arguments: Sequence[ArgumentType]) -> None:
        self._call = call
        self._tensors = [(at, one) for at, one in tensors(arguments) if one.device == "cpu"]

    def __call__(self, packed: Sequence[Any]) -> Any:
        self._call.loaded()
        driver.ensure_context()
        copies = _Copies()
        moved = list(packed)
        for at, tensor in self._tensors:
            copies.add_tensor(at, tensor, packed[at : at + len(tensor.storage)])
        try:
            copies.to_device(moved)
            result = self._call(moved)
            driver.synchronize()
            copies.to_host()
        finally:
            copies.free()
        return result


class _Copies:
    """The host memory that one call needs on the device, as ranges of bytes that do not overlap."""

    def __init__(self) -> None:
        self.places: list[tuple[int, int, int, int]] = []  # place in packed, address, low, high
        self.ranges: list[list[Any]] = []  # low, high, writable
        self.buffers: list[tuple[int, int, int, bool]] = []  # device address, low, size, writable

    def add_tensor(self, at: int, tensor: Any, packed: Sequence[Any]) -> None:
        """Add the memory of a tensor, whose values begin at index `at` of the arguments."""
        low, high = tensor.byte_range(packed)
        self.places.append((at, packed[0], low, high))
        if low == high:
            return
        joined = [low, high, tensor.writable]
        apart = []
        for one in self.ranges:
            if one[1] <= joined[0] or joined[1] <= one[0]:
                apart.append(one)
            else:
                joined = [min(one[0], low), max(one[1], high), one[2] or joined[2]]
                low, high = joined[0], joined[1]
        self.ranges = [*apart, joined]

    def to_device(self, packed: list[Any]) -> None:
        """Copy the ranges to the device, and set the addresses in `packed` to the copies."""
        for low, high, writable in self.ranges:
            size = high - low
            buffer = driver.allocate(size + low % 256)
            # The same alignment as on the host, which the code was compiled for.
            address = buffer + low % 256
            self.buffers.append((buffer, low, size, writable))
            driver.copy_to_device(address, low, size)
            for at, start, first, last in self.places:
                if low <= first and last <= high and first != last:
                    packed[at] = address + (start - low)

    def to_host(self) -> None:
        """Copy the ranges that kernels may write back."""
        for buffer, low, size, writable in self.buffers:
            if writable:
                driver.copy_to_host(low, buffer + low % 256, size)

    def free(self) -> None:
        """Free the copies."""
        for buffer, *_ in self.buffers:
            driver.free(buffer)
