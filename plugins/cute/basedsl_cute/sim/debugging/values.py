"""Variables of a thread at a debug point: numbers as Python's, tensors as NumPy arrays."""

from __future__ import annotations

import itertools
from typing import Any

import ml_dtypes
import numpy as np

from basedsl_cute.sim.machine.memory import (
    LOCAL_WINDOW,
    SHARED_WINDOW,
)
from basedsl_cute.sim.machine.state import Group

MOST_ELEMENTS = 1 << 16  # of a tensor that is read whole

_OTHERS = {
    "BFloat16": ml_dtypes.bfloat16,
    "Float8E4M3FN": ml_dtypes.float8_e4m3fn,
    "Float8E5M2": ml_dtypes.float8_e5m2,
    "Boolean": np.bool_,
    "TFloat32": np.float32,
}


def dtype_named(name: str) -> Any:
    """The NumPy type of elements of a numeric class, by the class's name."""
    if name in _OTHERS:
        return np.dtype(_OTHERS[name])
    return np.dtype(name.lower())


class ThreadVariables(dict[str, Any]):
    """The variables of one lane at a debug point, each read when it is asked for."""

    def __init__(
        self, g: Group, records: dict[str, Any], operands: tuple[Any, ...], lane: int
    ) -> None:
        super().__init__()
        self._g, self._records, self._operands, self._lane = g, records, operands, lane

    def __missing__(self, name: str) -> Any:
        if name in self._records:
            self[name] = value = self._read(self._records[name])
            return value
        if name == "thread":
            return int(self._g.shape.linear[self._lane])
        if name == "block":
            return block_number(self._g, self._lane)
        raise KeyError(name)

    def _read(self, record: Any) -> Any:
        if not isinstance(record, dict):
            return record
        match record["kind"]:
            case "number":
                return _number(self._operand(record["operand"]), record["type"])
            case "tensor":
                return self._tensor(record)
            case "list":
                return [self._read(part) for part in record["parts"]]
        return Text(record["text"])

    def _operand(self, number: int) -> Any:
        value = self._operands[number]
        return value if np.ndim(value) == 0 else value[..., self._lane]

    def _tensor(self, record: Any) -> Any:
        shape, stride = (self._extents(record[name]) for name in ("shape", "stride"))
        dtype = dtype_named(record["dtype"])
        offsets = _offsets(shape, stride)
        if offsets.size > MOST_ELEMENTS:
            return Text(f"a tensor of {record['dtype']}, {offsets.shape}: too large to be read")
        base = int(self._operand(record["operand"]))
        out = np.zeros(offsets.shape, dtype)
        for place in np.ndindex(*offsets.shape):
            at = base + int(offsets[place]) * dtype.itemsize
            data = read_bytes(self._g, at, dtype.itemsize, self._lane, record["space"])
            if data is None:
                return Text(f"a tensor of {record['dtype']} at {at:#x}, beyond what may be read")
            out[place] = np.frombuffer(data.tobytes(), dtype)[0]
        return out

    def _extents(self, record: Any) -> Any:
        if isinstance(record, list):
            return tuple(self._extents(part) for part in record)
        return int(self._read(record)) if isinstance(record, dict) else record


class Text(str):
    """A value that is known as text only; it prints without quotes."""

    __slots__ = ()

    def __repr__(self) -> str:
        return str(self)


def _number(value: Any, kind: str) -> Any:
    if kind == "Boolean":
        return bool(value)
    if kind.startswith("Uint"):
        return int(value) & ((1 << int(kind.removeprefix("Uint"))) - 1)
    return value.item() if hasattr(value, "item") else value


def _offsets(shape: Any, stride: Any) -> Any:
    """The offset of each element, with an axis for each top-level mode."""
    shape = shape if isinstance(shape, tuple) else (shape,)
    stride = stride if isinstance(stride, tuple) else (stride,)
    axes = [np.array(_mode(n, d), np.int64) for n, d in zip(shape, stride, strict=True)]
    total: Any = np.zeros((1,) * len(axes), np.int64)
    for number, axis in enumerate(axes):
        total = total + axis.reshape([-1 if i == number else 1 for i in range(len(axes))])
    return total


def _mode(shape: Any, stride: Any) -> list[int]:
    """The offsets of one mode, its first part fastest."""
    if not isinstance(shape, tuple):
        return [i * stride for i in range(shape)]
    parts = [_mode(n, d) for n, d in zip(shape, stride, strict=True)]
    return [sum(place) for place in (p[::-1] for p in itertools.product(*parts[::-1]))]


def block_number(g: Group, lane: int) -> int:
    """The linear number of the block that a lane belongs to."""
    return int(g.block.linear + g.shape.block_number[lane])


def read_bytes(g: Group, at: int, size: int, lane: int, space: str) -> Any:
    """The bytes at an address that a lane has, past all checks; None outside of every memory."""
    segment = None
    if at >= LOCAL_WINDOW or "rmem" in space:
        segment = g.local
    elif "smem" in space or at >= SHARED_WINDOW:
        at, segment = at - SHARED_WINDOW if at >= SHARED_WINDOW else at, g.shared
    else:
        segment = g.memory.find(at)
    if segment is None or not segment.base <= at <= segment.end - size:
        return None
    start = at - segment.base
    copies = g.copy_offset(segment) if segment.stride else None
    if copies is not None:
        start += int(copies[lane])
    return segment.raw[start : start + size]
