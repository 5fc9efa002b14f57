"""Number formats as data: one row a type, and rounding of Python numbers to a format.

Rows say how wide a format is, what MLIR, NumPy and DLPack call it, and whether it has arithmetic.
The classes users see are made from these rows in `types`; nothing here knows MLIR or a trace.
"""

from __future__ import annotations

import enum
import math
import struct
from dataclasses import dataclass
from typing import Any

import ml_dtypes
import numpy as np


class Kind(enum.Enum):
    """The meaning of a format's bits. MLIR integers are signless: the kind carries the sign."""

    BOOLEAN = "boolean"
    SIGNED = "signed"
    UNSIGNED = "unsigned"
    FLOAT = "float"


@dataclass(frozen=True, slots=True)
class NumberFormat:
    """One number format. `width` is in bits; `storage_width`, in bits, is that of an array element.

    `dlpack` is (type code, bits) of DLPack 1.1; `arithmetic` is False for storage formats, which
    can only be converted. `largest` is the largest finite value of a float.
    """

    name: str
    kind: Kind
    width: int
    mlir: str
    numpy: Any
    dlpack: tuple[int, int]
    arithmetic: bool = True
    storage_width: int = 0
    largest: float = 0.0
    saturates: bool = False


# DLPack type codes (dlpack.h, DLDataTypeCode, version 1.1).
_INT, _UINT, _FLOAT, _BFLOAT, _BOOL = 0, 1, 2, 4, 6


def _integers(prefix: str, kind: Kind, code: int, stem: str) -> list[NumberFormat]:
    rows = []
    for width in (4, 8, 16, 32, 64, 128):
        if width == 4:
            dtype = np.dtype(getattr(ml_dtypes, f"{stem}4"))
        else:
            dtype = None if width == 128 else np.dtype(f"{stem}{width}")
        rows.append(
            NumberFormat(
                f"{prefix}{width}",
                kind,
                width,
                f"i{width}",
                dtype,
                (code, width),
                arithmetic=width > 4,
                storage_width=width,
            )
        )
    return rows


def _small_float(name: str, width: int, dtype: str, code: int, largest: float) -> NumberFormat:
    mlir = "f" + name.removeprefix("Float")
    scalar = np.dtype(getattr(ml_dtypes, dtype))
    return NumberFormat(
        name,
        Kind.FLOAT,
        width,
        mlir,
        scalar,
        (code, width),
        arithmetic=False,
        storage_width=width,
        largest=largest,
        saturates=True,
    )


def _float(name: str, width: int, mlir: str, dtype: Any, code: int, largest: float) -> NumberFormat:
    return NumberFormat(
        name,
        Kind.FLOAT,
        width,
        mlir,
        np.dtype(dtype),
        (code, width),
        storage_width=width,
        largest=largest,
    )


FORMATS: dict[str, NumberFormat] = {
    row.name: row
    for row in (
        NumberFormat(
            "Boolean", Kind.BOOLEAN, 1, "i1", np.dtype(np.bool_), (_BOOL, 8), storage_width=8
        ),
        *_integers("Int", Kind.SIGNED, _INT, "int"),
        *_integers("Uint", Kind.UNSIGNED, _UINT, "uint"),
        _float("Float16", 16, "f16", np.float16, _FLOAT, 65504.0),
        _float("BFloat16", 16, "bf16", ml_dtypes.bfloat16, _BFLOAT, float.fromhex("0x1.fep127")),
        _float("Float32", 32, "f32", np.float32, _FLOAT, float.fromhex("0x1.fffffep127")),
        _float("Float64", 64, "f64", np.float64, _FLOAT, float.fromhex("0x1.fffffffffffffp1023")),
        # 19 significant bits in a 32-bit container (PTX ISA, "Alternate floating-point formats").
        NumberFormat(
            "TFloat32",
            Kind.FLOAT,
            32,
            "tf32",
            np.dtype(np.float32),
            (_FLOAT, 32),
            arithmetic=False,
            storage_width=32,
            largest=float.fromhex("0x1.ffcp127"),
        ),
        _small_float("Float8E5M2", 8, "float8_e5m2", 12, 57344.0),
        _small_float("Float8E4M3FN", 8, "float8_e4m3fn", 10, 448.0),
        _small_float("Float8E4M3", 8, "float8_e4m3", 8, 240.0),
        _small_float("Float8E4M3B11FNUZ", 8, "float8_e4m3b11fnuz", 9, 30.0),
        _small_float("Float8E8M0FNU", 8, "float8_e8m0fnu", 14, 2.0**127),
        _small_float("Float6E3M2FN", 6, "float6_e3m2fn", 16, 28.0),
        _small_float("Float6E2M3FN", 6, "float6_e2m3fn", 15, 7.5),
        _small_float("Float4E2M1FN", 4, "float4_e2m1fn", 17, 6.0),
    )
}


def wrap_integer(value: int, width: int, signed: bool) -> int:
    """Return `value` modulo 2**width, in the range of the format."""
    value &= (1 << width) - 1
    if signed and value >> (width - 1):
        value -= 1 << width
    return value


def round_float(value: float, row: NumberFormat) -> float:
    """Round `value` to the format, to nearest with ties to even; return a Python float.

    Storage formats that hardware converts to with saturation (`saturates`, PTX cvt.satfinite) clamp
    to the largest finite value, infinities included; the others overflow to infinity. BFloat16 and
    the storage formats round through Float32 first, as hardware does; TFloat32 too, and from there
    to nearest with halves away from zero (PTX cvt.rna.tf32.f32, the one conversion that every GPU
    with the format has).
    """
    if row.name == "Float64":
        return value
    if row.saturates:
        return _round_saturating(value, row)
    if row.name == "TFloat32":
        return _round_tf32(value)
    with np.errstate(all="ignore"):
        if row.name == "BFloat16":
            return float(row.numpy.type(np.float32(value)))
        return float(row.numpy.type(value))


def _round_saturating(value: float, row: NumberFormat) -> float:
    with np.errstate(all="ignore"):
        value = float(np.float32(value))
        if not math.isnan(value):
            least = -row.largest if row.name != "Float8E8M0FNU" else 2.0**-127
            value = min(max(value, least), row.largest)
        elif row.width < 8:
            value = row.largest  # no NaN in the format (PTX cvt: NaN converts to the largest value)
        return float(row.numpy.type(value))


def _round_tf32(value: float) -> float:
    with np.errstate(all="ignore"):
        single = float(np.float32(value))
    if not math.isfinite(single):
        return single
    (bits,) = struct.unpack("<I", struct.pack("<f", single))
    bits += 0x1000
    rounded: float
    (rounded,) = struct.unpack("<f", struct.pack("<I", bits & 0xFFFFE000))
    return rounded
