"""The numeric classes, one for each format of `formats`, and how to find one: by name, by the dtype
of NumPy or DLPack.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from basedsl.errors import DSLTypeError
from basedsl.numeric.conversion import integer_limits
from basedsl.numeric.formats import FORMATS, Kind
from basedsl.numeric.kit import mlir_type as _mlir_type
from basedsl.numeric.number import TYPES, Float, Integer, Numeric, NumericMeta

__all__ = [
    "TYPES",
    "BFloat16",
    "Boolean",
    "Float4E2M1FN",
    "Float6E2M3FN",
    "Float6E3M2FN",
    "Float8E4M3",
    "Float8E4M3B11FNUZ",
    "Float8E4M3FN",
    "Float8E5M2",
    "Float8E8M0FNU",
    "Float16",
    "Float32",
    "Float64",
    "Int4",
    "Int8",
    "Int16",
    "Int32",
    "Int64",
    "Int128",
    "TFloat32",
    "Uint4",
    "Uint8",
    "Uint16",
    "Uint32",
    "Uint64",
    "Uint128",
    "dtype",
    "from_dlpack",
    "from_numpy_dtype",
    "mlir_type",
]


def _define(name: str, base: type[Numeric], doc: str) -> Any:
    row = FORMATS[name]
    integer = row.kind is not Kind.FLOAT
    body: dict[str, Any] = {
        "__slots__": (),
        "__module__": __name__,
        "name": name,
        "format": row,
        "kind": row.kind,
        "width": row.width,
        "storage_width": row.storage_width,
        "signed": row.kind in (Kind.SIGNED, Kind.FLOAT) and name != "Float8E8M0FNU",
        "zero": 0 if integer else 0.0,
        "numpy_dtype": row.numpy,
        "dlpack": (*row.dlpack, 1),
    }
    if integer:
        body["min"], body["max"] = integer_limits(row)
        doc += f" From {body['min']} to {body['max']}." if row.kind is not Kind.BOOLEAN else ""
    else:
        body["min"], body["max"] = -row.largest, row.largest
        body["inf"] = math.inf
        doc += f" The largest finite number is {row.largest:.6g}."
    body["__doc__"] = (
        f"{doc}\n\n`{name}(x)` converts `x`, a number of Python, NumPy or another format: see "
        "`basedsl.Numeric`.\nA Python number that does not fit raises DSLTypeError."
    )
    return NumericMeta(name, (base,), body)


if TYPE_CHECKING:

    class Boolean(Integer): ...

    class Int4(Integer): ...

    class Int8(Integer): ...

    class Int16(Integer): ...

    class Int32(Integer): ...

    class Int64(Integer): ...

    class Int128(Integer): ...

    class Uint4(Integer): ...

    class Uint8(Integer): ...

    class Uint16(Integer): ...

    class Uint32(Integer): ...

    class Uint64(Integer): ...

    class Uint128(Integer): ...

    class Float16(Float): ...

    class BFloat16(Float): ...

    class TFloat32(Float): ...

    class Float32(Float): ...

    class Float64(Float): ...

    class Float8E5M2(Float): ...

    class Float8E4M3FN(Float): ...

    class Float8E4M3(Float): ...

    class Float8E4M3B11FNUZ(Float): ...

    class Float8E8M0FNU(Float): ...

    class Float6E3M2FN(Float): ...

    class Float6E2M3FN(Float): ...

    class Float4E2M1FN(Float): ...
else:
    Boolean = _define("Boolean", Integer, "True or False; i1 in MLIR, a byte in memory.")
    Int4 = _define("Int4", Integer, "Signed 4-bit integer, for storage.")
    Int8 = _define("Int8", Integer, "Signed 8-bit integer.")
    Int16 = _define("Int16", Integer, "Signed 16-bit integer.")
    Int32 = _define("Int32", Integer, "Signed 32-bit integer.")
    Int64 = _define("Int64", Integer, "Signed 64-bit integer.")
    Int128 = _define("Int128", Integer, "Signed 128-bit integer.")
    Uint4 = _define("Uint4", Integer, "Unsigned 4-bit integer, for storage.")
    Uint8 = _define("Uint8", Integer, "Unsigned 8-bit integer.")
    Uint16 = _define("Uint16", Integer, "Unsigned 16-bit integer.")
    Uint32 = _define("Uint32", Integer, "Unsigned 32-bit integer.")
    Uint64 = _define("Uint64", Integer, "Unsigned 64-bit integer.")
    Uint128 = _define("Uint128", Integer, "Unsigned 128-bit integer.")
    Float16 = _define("Float16", Float, "IEEE 754 half precision.")
    BFloat16 = _define("BFloat16", Float, "The upper half of a Float32.")
    TFloat32 = _define("TFloat32", Float, "Float32 with a 10-bit fraction, for matrix units.")
    Float32 = _define("Float32", Float, "IEEE 754 single precision.")
    Float64 = _define("Float64", Float, "IEEE 754 double precision.")
    Float8E5M2 = _define("Float8E5M2", Float, "5 exponent, 2 fraction bits, with infinities.")
    Float8E4M3FN = _define("Float8E4M3FN", Float, "4 exponent, 3 fraction bits, no infinities.")
    Float8E4M3 = _define("Float8E4M3", Float, "4 exponent, 3 fraction bits, with infinities.")
    Float8E4M3B11FNUZ = _define("Float8E4M3B11FNUZ", Float, "E4M3 of bias 11, one zero, one NaN.")
    Float8E8M0FNU = _define("Float8E8M0FNU", Float, "A power of two: the scale of a block.")
    Float6E3M2FN = _define("Float6E3M2FN", Float, "3 exponent, 2 fraction bits, all finite.")
    Float6E2M3FN = _define("Float6E2M3FN", Float, "2 exponent, 3 fraction bits, all finite.")
    Float4E2M1FN = _define("Float4E2M1FN", Float, "2 exponent, 1 fraction bit, all finite.")

TYPES.update({name: globals()[name] for name in FORMATS})

_BY_NUMPY: dict[Any, type[Numeric]] = {
    T.numpy_dtype: T for T in TYPES.values() if T.numpy_dtype is not None and T is not TFloat32
}
_BY_DLPACK: dict[tuple[int, int], type[Numeric]] = {
    T.dlpack[:2]: T for T in TYPES.values() if T is not TFloat32
}


def mlir_type(T: type[Numeric], ir: Any) -> Any:
    """Return the MLIR type of `T` in the current context of the bindings whose `ir` is given."""
    return _mlir_type(T, ir)


def dtype(name: str) -> type[Numeric]:
    """Return the numeric class called `name`, for instance "Float16"; DSLTypeError if there is
    none.
    """
    try:
        return TYPES[name]
    except KeyError:
        raise DSLTypeError(
            f"no numeric type is called {name!r}", hint="one of " + ", ".join(TYPES)
        ) from None


def from_numpy_dtype(dtype: Any) -> type[Numeric]:
    """Return the numeric class of a NumPy (or ml_dtypes) dtype; DSLTypeError if there is none."""
    try:
        return _BY_NUMPY[np.dtype(dtype)]
    except (KeyError, TypeError):
        raise DSLTypeError(f"no numeric type has the NumPy dtype {dtype}") from None


def from_dlpack(code: int, bits: int, lanes: int = 1) -> type[Numeric]:
    """Return the numeric class of a DLPack data type (dlpack.h, version 1.1): its type code, its
    width in bits, and its lanes, of which there must be one. DSLTypeError if there is none.
    """
    found = _BY_DLPACK.get((code, bits)) if lanes == 1 else None
    if found is None:
        raise DSLTypeError(
            f"no numeric type has the DLPack type code {code} with {bits} bits and {lanes} lanes"
        )
    return found
