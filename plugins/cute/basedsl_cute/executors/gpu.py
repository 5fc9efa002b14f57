"""Host code whose launches go to the GPU. Arrays in host memory travel there and back.

A tensor of NumPy cannot be reached by a kernel. A call that gets one copies its bytes to the device
before and back after, and waits; arrays that overlap share one copy, as they do on the host.
"""

from __future__ import annotations

import pickle
from collections.abc import Callable, Sequence
from typing import Any

from basedsl.binding import ArgumentType
from basedsl.compiled import native_invoker
from basedsl.objectstage import Stages
from basedsl.results import Results
from basedsl_cute.executors.tensors import raise_failure, tensors
from basedsl_cute.runtime import driver
from basedsl_cute.runtime.launcher import gpu_launcher


def gpu_executor(
    stages: Stages, symbol: str, arguments: Sequence[ArgumentType], results: Results, settings: Any
) -> Callable[[Sequence[Any]], Any]:
    """A callable on packed arguments. The machine code is loaded on the first call.

    Raises DSLRuntimeError at that call where there is no driver: compiling needs none.
    """
    table = pickle.loads(stages.data("launches"))
    image = stages.data("cubin" if "cubin" in stages else "ptx")
    on_host = any(tensor.device == "cpu" for _, tensor in tensors(arguments))
    loaded: list[Callable[[Sequence[Any]], Any]] = []

    def load() -> Callable[[Sequence[Any]], Any]:
        driver.require()
        driver.ensure_context()
        symbols = gpu_launcher(image, table) if table.kernels else None
        native = native_invoker(
            stages.data("object"), symbol, arguments, results, symbols, raise_failure=raise_failure
        )
        native.symbols = symbols  # type: ignore[attr-defined]  # owns the loaded kernels
        loaded.append(native)
        return native

    def invoke(packed: Sequence[Any]) -> Any:
        native = loaded[0] if loaded else load()
        driver.ensure_context()
        return native(packed)

    def invoke_with_copies(packed: Sequence[Any]) -> Any:
        native = loaded[0] if loaded else load()
        driver.ensure_context()
        copies = _Copies()
        moved = list(packed)
        for at, tensor in tensors(arguments):
            if tensor.device == "cpu":
                copies.add(at, tensor, packed[at : at + len(tensor.formats)])
        try:
            copies.to_device(moved)
            result = native(moved)
            driver.synchronize()
            copies.to_host()
        finally:
            copies.free()
        return result

    return invoke_with_copies if on_host else invoke


class _Copies:
    """The host memory that one call needs on the device, as ranges that do not overlap."""

    def __init__(self) -> None:
        self.places: list[tuple[int, int, int, int]] = []  # place in packed, address, low, high
        self.ranges: list[list[Any]] = []  # low, high, writable
        self.buffers: list[tuple[int, int, int, bool]] = []  # device address, low, size, writable

    def add(self, at: int, tensor: Any, packed: Sequence[Any]) -> None:
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
        for buffer, low, size, writable in self.buffers:
            if writable:
                driver.copy_to_host(low, buffer + low % 256, size)

    def free(self) -> None:
        for buffer, *_ in self.buffers:
            driver.free(buffer)
