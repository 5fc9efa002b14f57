"""XLA's foreign function interface: one handler for all operations, by its C structures.

XLA calls the handler with the addresses of the operation's buffers and, on a GPU, with its stream;
kernels are launched there, on that stream, and nothing goes through the host's memory. The
structures are those of `xla/ffi/api/c_api.h`, which jaxlib ships (`jax.ffi.include_dir()`).
"""

from __future__ import annotations

import ctypes
import functools
import importlib
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from basedsl import ArrayRecord
from basedsl_cute.device import driver

TARGET = "basedsl_cute_call"
_EXECUTE = 3
_METADATA = 1
_INTERNAL_ERROR = 13
_API_MAJOR, _API_MINOR = 0, 1

# XLA_FFI_DataType -> DLPack's (code, bits, lanes).
_TYPES = {
    1: (6, 8, 1), 2: (0, 8, 1), 3: (0, 16, 1), 4: (0, 32, 1), 5: (0, 64, 1), 6: (1, 8, 1),
    7: (1, 16, 1), 8: (1, 32, 1), 9: (1, 64, 1), 10: (2, 16, 1), 11: (2, 32, 1), 12: (2, 64, 1),
    16: (4, 16, 1), 19: (12, 8, 1), 20: (10, 8, 1), 23: (9, 8, 1), 28: (8, 8, 1), 33: (14, 8, 1),
}  # fmt: skip

_P = ctypes.c_void_p
_HEAD = (("struct_size", ctypes.c_size_t), ("extension_start", _P))


class _Extension(ctypes.Structure):
    _fields_ = (("struct_size", ctypes.c_size_t), ("type", ctypes.c_int), ("next", _P))


class _Version(ctypes.Structure):
    _fields_ = (*_HEAD, ("major", ctypes.c_int), ("minor", ctypes.c_int))


class _Metadata(ctypes.Structure):
    _fields_ = (
        ("struct_size", ctypes.c_size_t),
        ("version", _Version),
        ("traits", ctypes.c_uint32),
    )


class _MetadataExtension(ctypes.Structure):
    _fields_ = (("base", _Extension), ("metadata", ctypes.POINTER(_Metadata)))


class _Buffer(ctypes.Structure):
    _fields_ = (
        *_HEAD,
        ("dtype", ctypes.c_int),
        ("data", _P),
        ("rank", ctypes.c_int64),
        ("dims", ctypes.POINTER(ctypes.c_int64)),
    )


class _Buffers(ctypes.Structure):  # XLA_FFI_Args and XLA_FFI_Rets
    _fields_ = (
        *_HEAD,
        ("size", ctypes.c_int64),
        ("types", ctypes.POINTER(ctypes.c_int)),
        ("buffers", ctypes.POINTER(ctypes.POINTER(_Buffer))),
    )


class _Text(ctypes.Structure):  # XLA_FFI_ByteSpan
    _fields_ = (("ptr", _P), ("len", ctypes.c_size_t))


class _Attributes(ctypes.Structure):
    _fields_ = (
        *_HEAD,
        ("size", ctypes.c_int64),
        ("types", ctypes.POINTER(ctypes.c_int)),
        ("names", ctypes.POINTER(ctypes.POINTER(_Text))),
        ("values", ctypes.POINTER(_P)),
    )


class _Api(ctypes.Structure):
    _fields_ = (
        *_HEAD,
        ("version", _Version),
        ("internal", _P),
        ("error_create", _P),
        ("error_get_message", _P),
        ("error_destroy", _P),
        ("handler_register", _P),
        ("stream_get", _P),
        *((f"not_used_{n}", _P) for n in range(11)),
        ("run_id_get", _P),
        ("device_ordinal_get", _P),
    )


class _CallFrame(ctypes.Structure):  # XLA_FFI_CallFrame
    _fields_ = (
        *_HEAD,
        ("api", ctypes.POINTER(_Api)),
        ("context", _P),
        ("stage", ctypes.c_int),
        ("arguments", _Buffers),
        ("results", _Buffers),
        ("attributes", _Attributes),
    )


class _ErrorArguments(ctypes.Structure):
    _fields_ = (*_HEAD, ("message", ctypes.c_char_p), ("code", ctypes.c_int))


class _StreamArguments(ctypes.Structure):
    _fields_ = (*_HEAD, ("context", _P), ("stream", _P))


class _RunIdArguments(ctypes.Structure):
    _fields_ = (*_HEAD, ("context", _P), ("number", ctypes.c_int64))


class _OrdinalArguments(ctypes.Structure):
    _fields_ = (*_HEAD, ("context", _P), ("number", ctypes.c_int32))


_Handler = ctypes.CFUNCTYPE(_P, ctypes.POINTER(_CallFrame))
_OfApi = ctypes.CFUNCTYPE(_P, _P)


@dataclass(frozen=True)
class Invocation:
    """One execution of an operation: its buffers, its stream (None on the CPU), its attributes; the
    number of its `device`, and that of the run, the same on all devices, are asked for.
    """

    inputs: list[ArrayRecord]
    outputs: list[ArrayRecord]
    stream: int | None
    attributes: dict[str, str]
    device: Callable[[], int]
    run_id: Callable[[], int]


Run = Callable[[Invocation], None]


@functools.cache
def register(run: Run) -> None:
    """Tell JAX about the handler, which calls `run` for each execution, on the CPU and on GPUs."""
    jax = importlib.import_module("jax")
    for platform, device in (("cpu", ArrayRecord.CPU), ("CUDA", ArrayRecord.CUDA)):
        handler = _handler(run, device)
        _kept.append(handler)
        pointer = ctypes.cast(handler, _P).value
        assert pointer is not None
        jax.ffi.register_ffi_target(
            TARGET, jax.ffi.pycapsule(ctypes.cast(handler, _P)), platform=platform
        )


_kept: list[Any] = []  # XLA calls the handlers as long as the process runs


def _handler(run: Run, device: int) -> Any:
    def handle(pointer: Any) -> int | None:
        frame = pointer.contents
        if frame.extension_start and _answer_metadata(frame.extension_start):
            return None
        if frame.stage != _EXECUTE:
            return None
        try:
            run(_invocation(frame, device))
        except BaseException as error:
            return _error(frame.api.contents, f"{type(error).__name__}: {error}")
        return None

    return _Handler(handle)


def _answer_metadata(address: int) -> bool:
    """Answer XLA's question for the version, which it asks when the handler is registered."""
    base = _Extension.from_address(address)
    if base.type != _METADATA:
        return False
    metadata = _MetadataExtension.from_address(address).metadata.contents
    metadata.version.major, metadata.version.minor = _API_MAJOR, _API_MINOR
    metadata.traits = 0
    return True


def _invocation(frame: _CallFrame, device: int) -> Invocation:
    stream = None if device == ArrayRecord.CPU else _stream(frame)
    # XLA makes the context of the operation's device the current one.
    place = device, 0 if stream is None else driver.current_device()
    return Invocation(
        _records(frame.arguments, place, readonly=True),
        _records(frame.results, place, readonly=False),
        stream,
        _texts(frame.attributes),
        functools.partial(_number, frame, "device_ordinal_get", _OrdinalArguments),
        functools.partial(_number, frame, "run_id_get", _RunIdArguments),
    )


def _records(buffers: _Buffers, device: tuple[int, int], readonly: bool) -> list[ArrayRecord]:
    found = []
    for i in range(buffers.size):
        one = buffers.buffers[i].contents
        shape = tuple(one.dims[: one.rank])
        strides, step = [], 1
        for extent in reversed(shape):
            strides.append(step)
            step *= max(extent, 1)
        kind = _TYPES.get(one.dtype)
        if kind is None:
            raise TypeError(f"elements of XLA's type {one.dtype} have no counterpart in a tensor")
        found.append(
            ArrayRecord(one.data or 0, kind, shape, tuple(reversed(strides)), device, readonly)
        )
    return found


def _texts(attributes: _Attributes) -> dict[str, str]:
    found = {}
    for i in range(attributes.size):
        name = attributes.names[i].contents
        value = _Text.from_address(attributes.values[i])
        found[_read(name)] = _read(value)
    return found


def _read(text: _Text) -> str:
    return ctypes.string_at(text.ptr, text.len).decode() if text.len else ""


def _stream(frame: _CallFrame) -> int:
    asked = _StreamArguments(ctypes.sizeof(_StreamArguments), None, frame.context, None)
    failure = _OfApi(frame.api.contents.stream_get)(ctypes.addressof(asked))
    if failure:
        raise RuntimeError("XLA gave no stream")
    return asked.stream or 0


def _number(frame: _CallFrame, name: str, kind: Any) -> int:
    api = frame.api.contents
    is_there = api.struct_size >= getattr(_Api, name).offset + ctypes.sizeof(_P)
    asked = kind(ctypes.sizeof(kind), None, frame.context, 0)
    if not is_there or _OfApi(getattr(api, name))(ctypes.addressof(asked)):
        raise RuntimeError("this JAX does not tell devices apart; it takes JAX 0.8 or later")
    return int(asked.number)


def _error(api: _Api, message: str) -> int | None:
    asked = _ErrorArguments(ctypes.sizeof(_ErrorArguments), None, message.encode(), _INTERNAL_ERROR)
    made: int | None = _OfApi(api.error_create)(ctypes.addressof(asked))
    return made
