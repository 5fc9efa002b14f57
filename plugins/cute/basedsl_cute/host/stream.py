"""CUDA streams as arguments of @jit functions and of `launch(stream=...)`.

A stream of PyTorch, CuPy, cuda.bindings or cuda.core, and any object with `__cuda_stream__`, is
passed at run time. The simulator has only one stream.
"""

from __future__ import annotations

import sys
from dataclasses import dataclass
from typing import Any

from basedsl import CParameter, DSLTypeError, Int64, Unpacker, is_dynamic
from basedsl_cute.arrays.placeholders import FakeStream
from basedsl_cute.arrays.unpack import as_bytes, slots_unpacker
from basedsl_cute.device.driver import stream_handle
from basedsl_cute.host.cuda_handle import CudaHandle, HandleArgument


class Stream(CudaHandle):
    """A CUDA stream in compiled code, whose handle is known at run time. As the annotation of a
    parameter of a @jit function, it also takes a handle (CUstream) as an integer.
    `value` is the handle in the IR, of 64 bits.
    """

    noun = "stream"


@dataclass(frozen=True)
class StreamArgument(HandleArgument):
    """The argument type of a stream, passed as its CUstream."""

    traced = Stream

    def pack(self, value: Any) -> tuple[int]:
        return (stream_handle(value),)

    def c_parameters(self, name: str) -> list[CParameter]:
        """A CUstream."""
        return [CParameter(name, "CUstream", self.storage)]

    def unpacker(self) -> Unpacker | None:
        """Return the native form of `pack` for objects that are a stream under any annotation."""

        def pack(value: Any) -> bytes | None:
            return as_bytes(self.storage, self.pack(value)) if is_stream(value) else None

        return slots_unpacker(self.storage, pack)


@dataclass(frozen=True)
class EnvironmentStreamArgument(StreamArgument):
    """The argument type of the stream that is current in PyTorch when a compiled function is
    called; calls leave it out.
    """

    implicit = True

    def pack(self, value: Any) -> tuple[int]:
        torch = sys.modules.get("torch")
        if torch is None or not torch.cuda.is_available():
            return (0,)
        return (stream_handle(torch.cuda.current_stream()),)

    def unpacker(self) -> Unpacker | None:
        return None

    def __str__(self) -> str:
        return "Stream of the framework"


def stream_argument(value: Any) -> StreamArgument:
    """Return the argument type of a stream or of a placeholder of one."""
    implicit = isinstance(value, FakeStream) and value.implicit
    return EnvironmentStreamArgument() if implicit else StreamArgument()


def is_stream(value: Any) -> bool:
    """Return True for an object that is a stream under any annotation: of PyTorch, CuPy,
    cuda.bindings, cuda.core, or with `__cuda_stream__`.
    """
    kind = type(value)
    if hasattr(kind, "__cuda_stream__") or kind.__name__ in ("CUstream", "cudaStream_t"):
        return True
    return kind.__name__ in ("Stream", "ExternalStream") and (
        hasattr(kind, "cuda_stream") or hasattr(value, "ptr")
    )


def stream_value(stream: Any) -> Any:
    """Return the handle of a launch's stream as an i64 value; None for the default stream."""
    if stream is None:
        return None
    if isinstance(stream, Stream):
        return stream.ir_value()
    if is_dynamic(stream):
        raise DSLTypeError(
            f"a dynamic {type(stream).__name__} is no CUDA stream",
            hint="annotate the parameter that takes the stream: stream: cute.Stream",
        )
    return Int64(stream_handle(stream)).ir_value()
