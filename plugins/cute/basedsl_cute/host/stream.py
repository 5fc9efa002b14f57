"""CUDA streams as arguments of @jit functions and of `launch(stream=...)`.

A stream of PyTorch, CuPy, cuda.bindings or cuda.core, and any object with `__cuda_stream__`, is
passed at run time. The simulator has only one stream.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from basedsl import ArgumentType, CParameter, DSLTypeError, Int64, Unpacker, is_dynamic
from basedsl_cute.arrays.placeholders import FakeStream
from basedsl_cute.arrays.unpack import as_bytes, slots_unpacker
from basedsl_cute.device.driver import stream_handle


class Stream:
    """A CUDA stream in compiled code, whose handle is known at run time. As the annotation of a
    parameter of a @jit function, it also takes a handle (CUstream) as an integer.
    `value` is the handle in the IR, of 64 bits.
    """

    __dsl_leaf__ = True

    def __init__(self, value: Any) -> None:
        self._value = value

    def ir_value(self) -> Any:
        return self._value

    def with_ir_value(self, value: Any) -> Stream:
        """Return the stream whose handle is the SSA `value`, of 64 bits."""
        return Stream(value)

    def leaf_type(self) -> str:
        return "stream"

    def undefined(self) -> Any:
        return Int64(0).ir_value()


@dataclass(frozen=True)
class StreamArgument(ArgumentType):
    """The argument type of a stream, passed as its CUstream."""

    storage = ("Q",)

    def ir_types(self, ir: Any) -> list[Any]:
        return [ir.IntegerType.get_signless(64)]

    def proxy(self, values: Sequence[Any]) -> Stream:
        return Stream(values[0])

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

    def __str__(self) -> str:
        return "Stream"


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
