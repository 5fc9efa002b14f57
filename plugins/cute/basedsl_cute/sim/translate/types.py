"""Types of MLIR as plain Python values: parsed from their text, with sizes and NumPy dtypes.

The lanes hold a scalar as an array `(lanes,)` and a vector as `(n, ..., lanes)`; a value that is
the same in all lanes is a NumPy scalar, or `(n, ..., 1)` for vectors, so that broadcasting works.
Structs and LLVM arrays are tuples of such values.
"""

from __future__ import annotations

import functools
import re
from dataclasses import dataclass
from typing import Any

import ml_dtypes
import numpy as np

_FLOAT_DTYPES: dict[str, Any] = {
    "f16": np.float16,
    "bf16": ml_dtypes.bfloat16,
    "f32": np.float32,
    "tf32": np.float32,
    "f64": np.float64,
    "f8E4M3FN": ml_dtypes.float8_e4m3fn,
    "f8E5M2": ml_dtypes.float8_e5m2,
    "f8E4M3": ml_dtypes.float8_e4m3,
    "f8E3M4": ml_dtypes.float8_e3m4,
    "f8E4M3FNUZ": ml_dtypes.float8_e4m3fnuz,
    "f8E5M2FNUZ": ml_dtypes.float8_e5m2fnuz,
    "f8E4M3B11FNUZ": ml_dtypes.float8_e4m3b11fnuz,
    "f8E8M0FNU": ml_dtypes.float8_e8m0fnu,
    "f6E2M3FN": ml_dtypes.float6_e2m3fn,
    "f6E3M2FN": ml_dtypes.float6_e3m2fn,
    "f4E2M1FN": ml_dtypes.float4_e2m1fn,
}
_FLOAT_BITS = {"f16": 16, "bf16": 16, "f32": 32, "tf32": 32, "f64": 64}


class Type:
    """A type of a value in a kernel. `size` and `align` are in bytes."""

    size: int
    align: int


@dataclass(frozen=True)
class IntType(Type):
    """`iN`, or `index` (as 64 bits). Lanes hold it sign-extended in the next NumPy width."""

    width: int
    index: bool = False

    @property
    def container(self) -> int:
        """Bits of the integer that holds a value."""
        return next((w for w in (8, 16, 32, 64) if w >= self.width), 128)

    @property
    def size(self) -> int:  # type: ignore[override]
        return self.container // 8

    @property
    def align(self) -> int:  # type: ignore[override]
        return self.size

    @property
    def native(self) -> bool:
        """True when NumPy arithmetic wraps at this width by itself."""
        return self.width in (8, 16, 32, 64)

    def __str__(self) -> str:
        return "index" if self.index else f"i{self.width}"


@dataclass(frozen=True)
class FloatType(Type):
    """A float of MLIR's name, `f32` or `f8E4M3FN`."""

    name: str

    @property
    def bits(self) -> int:
        """Bits in memory: 8 for narrower floats, 32 for tf32."""
        return _FLOAT_BITS.get(self.name, 8)

    @property
    def size(self) -> int:  # type: ignore[override]
        return self.bits // 8

    @property
    def align(self) -> int:  # type: ignore[override]
        return self.size

    def __str__(self) -> str:
        return self.name


@dataclass(frozen=True)
class PtrType(Type):
    """`!llvm.ptr<space>`: 0 generic, 1 global, 3 shared, 4 constant, 5 local."""

    space: int = 0
    size = 8
    align = 8

    def __str__(self) -> str:
        return f"!llvm.ptr<{self.space}>" if self.space else "!llvm.ptr"


@dataclass(frozen=True)
class VectorType(Type):
    """A vector of fixed `shape`."""

    shape: tuple[int, ...]
    element: Type

    @property
    def count(self) -> int:
        """The number of elements."""
        n = 1
        for extent in self.shape:
            n *= extent
        return n

    @property
    def size(self) -> int:  # type: ignore[override]
        return self.count * self.element.size

    @property
    def align(self) -> int:  # type: ignore[override]
        return 1 << max(self.size - 1, 0).bit_length()

    def __str__(self) -> str:
        return f"vector<{'x'.join(map(str, self.shape))}x{self.element}>"


@dataclass(frozen=True)
class ArrayType(Type):
    """`!llvm.array<count x element>`."""

    count: int
    element: Type

    @property
    def size(self) -> int:  # type: ignore[override]
        return self.count * round_up(self.element.size, self.element.align)

    @property
    def align(self) -> int:  # type: ignore[override]
        return self.element.align

    def __str__(self) -> str:
        return f"!llvm.array<{self.count} x {self.element}>"


@dataclass(frozen=True)
class LLVMStructType(Type):
    """`!llvm.struct<(...)>`; a `packed` one has no padding."""

    fields: tuple[Type, ...]
    packed: bool = False

    @functools.cached_property
    def offsets(self) -> tuple[int, ...]:
        """The byte offset of each field."""
        offsets, at = [], 0
        for field in self.fields:
            at = at if self.packed else round_up(at, field.align)
            offsets.append(at)
            at += field.size
        return tuple(offsets)

    @property
    def align(self) -> int:  # type: ignore[override]
        return 1 if self.packed else max((f.align for f in self.fields), default=1)

    @property
    def size(self) -> int:  # type: ignore[override]
        if not self.fields:
            return 0
        return round_up(self.offsets[-1] + self.fields[-1].size, self.align)

    def __str__(self) -> str:
        packed = "packed " if self.packed else ""
        return f"!llvm.struct<{packed}({', '.join(map(str, self.fields))})>"


@dataclass(frozen=True)
class OpaqueType(Type):
    """A type that the simulator does not model; rules raise MissingRuleError for it."""

    text: str
    size = 0
    align = 1

    def __str__(self) -> str:
        return self.text


def round_up(value: int, multiple: int) -> int:
    """The least multiple that is not below `value`."""
    return -(-value // multiple) * multiple


def element_type(type_: Type) -> Type:
    """The element type of a vector, else the type itself."""
    return type_.element if isinstance(type_, VectorType) else type_


def aggregate_fields(type_: Type) -> tuple[Type, ...]:
    """The types of the direct members of a struct or array. Raises TypeError for another type."""
    if isinstance(type_, LLVMStructType):
        return type_.fields
    if isinstance(type_, ArrayType):
        return (type_.element,) * type_.count
    raise TypeError(f"{type_} is no aggregate")


def is_aggregate(type_: Type) -> bool:
    """True for structs, arrays and types that are not modelled."""
    return not isinstance(type_, IntType | FloatType | PtrType | VectorType)


@functools.cache
def dtype_of(type_: Type) -> np.dtype[Any]:
    """The NumPy dtype of one lane of `type_`, for a vector that of its elements. Raises TypeError
    for a type that lanes cannot hold.
    """
    type_ = element_type(type_)
    if isinstance(type_, IntType):
        if type_.width == 1:
            return np.dtype(np.bool_)
        if type_.width <= 64:
            return np.dtype(f"i{type_.size}")
    if isinstance(type_, FloatType):
        dtype: np.dtype[Any] = np.dtype(_FLOAT_DTYPES[type_.name])
        return dtype
    if isinstance(type_, PtrType):
        return np.dtype(np.int64)
    raise TypeError(f"the simulator holds no values of type {type_}")


class _Parser:
    def __init__(self, text: str) -> None:
        self.text = text
        self.at = 0

    def take(self, pattern: str) -> str | None:
        match = re.compile(r"\s*" + pattern).match(self.text, self.at)
        if match is None:
            return None
        self.at = match.end()
        return match.group(1) if match.groups() else match.group().strip()

    def type(self) -> Type:
        if self.take(r"index\b"):
            return IntType(64, index=True)
        if (width := self.take(r"[su]?i(\d+)\b")) is not None:
            return IntType(int(width))
        if self.take(r"vector<"):
            return self._vector()
        if self.take(r"(?:!llvm\.)?ptr\b"):
            space = self.take(r"<(\d+)>")
            return PtrType(int(space or 0))
        if self.take(r"(?:!llvm\.)?array<"):
            count = int(self.take(r"(\d+)\s*x") or 0)
            element = self.type()
            self.take(">")
            return ArrayType(count, element)
        if self.take(r"(?:!llvm\.)?struct<"):
            self.take(r'"[^"]*",')
            packed = self.take("packed") is not None
            self.take(r"\(")
            fields = []
            while self.take(r"\)") is None:
                fields.append(self.type())
                self.take(",")
            self.take(">")
            return LLVMStructType(tuple(fields), packed)
        name = self.take(r"(t?b?f\d+\w*)")
        if name in _FLOAT_DTYPES:
            return FloatType(name)
        raise ValueError

    def _vector(self) -> Type:
        shape = []
        while (extent := self.take(r"\[?(\d+)\]?\s*x")) is not None:
            shape.append(int(extent))
        element = self.type()
        self.take(">")
        return VectorType(tuple(shape), element)


@functools.cache
def parse_type(text: str) -> Type:
    """The type printed as `text`; OpaqueType for what the simulator does not model."""
    parser = _Parser(text)
    try:
        type_ = parser.type()
    except (ValueError, KeyError):
        return OpaqueType(text)
    return type_ if parser.take(r"$") is not None else OpaqueType(text)
