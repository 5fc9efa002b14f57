"""Conversion between number formats: of Python numbers, and as ops. Both give the same bits.

| from, to          | meaning                                                                     |
|-------------------|-----------------------------------------------------------------------------|
| integer, integer  | sign- or zero-extended by the source's sign; narrowing wraps                |
| float, integer    | truncated toward zero; out of range saturates; NaN gives 0                  |
| integer, float    | rounded to nearest even                                                     |
| float, float      | rounded to nearest even; Float8 and smaller saturate to the largest finite  |
| anything, Boolean | is it unequal to zero (NaN is)                                              |
| Boolean, anything | 0 or 1                                                                      |

Float16 and BFloat16 integers, BFloat16 from Float64, and every storage float go through Float32, as
hardware does. Lowering of `arith.truncf` to a storage float is the target's, with saturation.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from basedsl.numeric.formats import FORMATS, Kind, NumberFormat, round_float, wrap_integer
from basedsl.numeric.kit import Kit, Value
from basedsl.numeric.protocols import NumericType

Number = int | float

# Floats that meet integers and wide floats only through Float32.
_THROUGH_FLOAT32 = frozenset(row.name for row in FORMATS.values() if row.kind is Kind.FLOAT) - {
    "Float32",
    "Float64",
}


# Python numbers -------------------------------------------------------------------------------


def convert_number(value: Number, target: NumberFormat) -> Number:
    """Convert `value`, a number of any format, to the format `target` by the rules above."""
    if target.kind is Kind.BOOLEAN:
        return bool(value)
    if target.kind is Kind.FLOAT:
        return _number_to_float(value, target)
    if isinstance(value, float):
        return _saturate(value, target)
    return wrap_integer(int(value), target.width, target.kind is Kind.SIGNED)


def _number_to_float(value: Number, target: NumberFormat) -> float:
    if isinstance(value, float):
        return round_float(value, target)
    if target.name == "Float64":
        return float(value)
    return round_float(int_to_float32(int(value)), target)


def int_to_float32(value: int) -> float:
    """Round `value` once to Float32; beyond its range to infinity."""
    excess = abs(value).bit_length() - 50
    single = FORMATS["Float32"]
    if excess <= 0:
        return round_float(float(value), single)
    # Keep 50 bits and the information that something was cut: enough to round 24 bits once.
    sticky = (abs(value) >> excess) | (abs(value) & ((1 << excess) - 1) != 0)
    try:
        rounded = math.ldexp(round_float(float(sticky), single), excess)
    except OverflowError:
        rounded = math.inf
    return round_float(math.copysign(rounded, value), single)


def integer_limits(target: NumberFormat) -> tuple[int, int]:
    """Return the least and the largest value of an integer format."""
    if target.kind is Kind.SIGNED:
        return -(1 << (target.width - 1)), (1 << (target.width - 1)) - 1
    return 0, (1 << target.width) - 1


def _saturate(value: float, target: NumberFormat) -> int:
    if math.isnan(value):
        return 0
    least, largest = integer_limits(target)
    if math.isinf(value):
        return largest if value > 0 else least
    return min(max(math.trunc(value), least), largest)


# Ops ------------------------------------------------------------------------------------------


def emit_conversion(kit: Kit, source: NumericType, target: NumericType, value: Value) -> Value:
    """Emit ops that convert `value` from type `source` to type `target`; return the new value."""
    if source is target:
        return value
    return _RULES[_group(source.kind), _group(target.kind)](kit, source, target, value)


def _group(kind: Kind) -> Kind:
    return Kind.SIGNED if kind is Kind.UNSIGNED else kind


def _int_to_int(kit: Kit, source: NumericType, target: NumericType, value: Value) -> Value:
    if source.width == target.width:
        return value
    if source.width > target.width:
        return kit.op("arith.trunci", kit.type_of(target), value)
    extend = "arith.extsi" if source.kind is Kind.SIGNED else "arith.extui"
    return kit.op(extend, kit.type_of(target), value)


def _int_to_boolean(kit: Kit, source: NumericType, target: NumericType, value: Value) -> Value:
    return kit.cmpi("ne", value, kit.constant(source, 0))


def _float_to_boolean(kit: Kit, source: NumericType, target: NumericType, value: Value) -> Value:
    if not source.format.arithmetic:
        value, source = _to_float32(kit, source, value), source.float32()
    return kit.cmpf("une", value, kit.constant(source, 0.0))


def _int_to_float(kit: Kit, source: NumericType, target: NumericType, value: Value) -> Value:
    direct = target.float32() if target.name in _THROUGH_FLOAT32 else target
    convert = "arith.sitofp" if source.kind is Kind.SIGNED else "arith.uitofp"
    return emit_conversion(kit, direct, target, kit.op(convert, kit.type_of(direct), value))


def _float_to_int(kit: Kit, source: NumericType, target: NumericType, value: Value) -> Value:
    if source.name in _THROUGH_FLOAT32:
        value, source = _to_float32(kit, source, value), source.float32()
    signed = target.kind is Kind.SIGNED
    convert = "arith.fptosi" if signed else "arith.fptoui"
    if kit.saturating_conversions:
        return kit.op(convert, kit.type_of(target), value)
    return _float_to_int_saturating(kit, source, target, value, convert)


def _float_to_int_saturating(
    kit: Kit, source: NumericType, target: NumericType, value: Value, convert: str
) -> Value:
    # arith.fptosi is poison out of range, so it is given 0 there (and for NaN) instead.
    least, largest = integer_limits(target.format)
    signed = least < 0
    above = convert_number(largest + 1, source.format)
    high = kit.constant(source, above)
    low = kit.constant(source, float(least) if signed else -1.0)
    at_least = kit.cmpf("oge" if signed else "ogt", value, low)
    inside = kit.op("arith.andi", kit.i1, at_least, kit.cmpf("olt", value, high))
    safe = kit.select(inside, value, kit.constant(source, 0.0))
    result = kit.op(convert, kit.type_of(target), safe)
    too_large = kit.cmpf("oge", value, high)
    result = kit.select(too_large, kit.constant(target, largest), result)
    if signed:
        too_small = kit.cmpf("olt", value, low)
        result = kit.select(too_small, kit.constant(target, least), result)
    return result


def _float_to_float(kit: Kit, source: NumericType, target: NumericType, value: Value) -> Value:
    single = source.float32()
    if source is single:
        name = "arith.extf" if target.name == "Float64" else "arith.truncf"
        return kit.op(name, kit.type_of(target), value)
    if target is single:
        return _to_float32(kit, source, value)
    if (source.name, target.name) == ("Float16", "Float64"):
        return kit.op("arith.extf", kit.type_of(target), value)
    if (source.name, target.name) == ("Float64", "Float16"):
        return kit.op("arith.truncf", kit.type_of(target), value)
    return _float_to_float(kit, single, target, _to_float32(kit, source, value))


def _to_float32(kit: Kit, source: NumericType, value: Value) -> Value:
    name = "arith.truncf" if source.name == "Float64" else "arith.extf"
    return kit.op(name, kit.type_of(source.float32()), value)


_Rule = Callable[[Kit, Any, Any, Value], Value]
_RULES: dict[tuple[Kind, Kind], _Rule] = {
    (Kind.BOOLEAN, Kind.SIGNED): _int_to_int,
    (Kind.BOOLEAN, Kind.FLOAT): _int_to_float,
    (Kind.SIGNED, Kind.BOOLEAN): _int_to_boolean,
    (Kind.SIGNED, Kind.SIGNED): _int_to_int,
    (Kind.SIGNED, Kind.FLOAT): _int_to_float,
    (Kind.FLOAT, Kind.BOOLEAN): _float_to_boolean,
    (Kind.FLOAT, Kind.SIGNED): _float_to_int,
    (Kind.FLOAT, Kind.FLOAT): _float_to_float,
}
