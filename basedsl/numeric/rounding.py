"""round, floor, ceil and trunc. Whole results have the DSL's default int type.

A float outside of that type's range saturates (NaN gives 0), where Python returns a larger int or
raises, unless the emitter has float checks. Importing this module gives the numeric classes the
methods behind the builtins.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial
from typing import Any

from basedsl.errors import DSLTypeError, with_article
from basedsl.numeric.checks import check_float
from basedsl.numeric.conversion import emit_conversion
from basedsl.numeric.kit import Value, kit_of
from basedsl.numeric.number import Numeric
from basedsl.numeric.promotion import defaults, storage_only
from basedsl.numeric.selection import select
from basedsl.numeric.types import Boolean, Float32, Float64
from basedsl.tracing import trace as tracing

# Powers of ten up to these are exact in the type.
_EXACT_DIGITS: dict[type[Numeric], int] = {Float32: 10, Float64: 22}


def _whole(op: str, concrete: Callable[[float], float]) -> Callable[[Numeric], Numeric]:
    def function(x: Numeric) -> Numeric:
        if x.is_integer:
            return _as_int(x)
        T = defaults().int
        if x.region is None:
            return type(x)._known(concrete(x.value)).to(T)
        return _to_int(float_op(op, x))

    return function


def _to_int(x: Numeric) -> Numeric:
    """Convert a float to the default int, with Python's errors where the emitter checks floats."""
    T = defaults().int
    kit = kit_of(tracing.current_trace("rounding a dynamic value"))
    if x.region is not None and kit.float_checks:
        number = x.to(Float64) if T.width > 16 else x
        value, F = number.ir_value(), type(number)
        kit.begin()
        below = float(T.min - 1)
        lowest = ("ugt", below) if below < T.min else ("uge", float(T.min))
        check_float(kit, lambda: kit.cmpf("ord", value, value), ValueError, _NAN)
        for predicate, bound in (("ult", float(T.max + 1)), lowest):
            fits = kit.cmpf(predicate, value, kit.constant(F, bound))
            check_float(kit, partial(_itself, fits), OverflowError, f"{_LARGE} {T.__name__}")
    return x.to(T)


def _itself(value: Value) -> Value:
    return value


_NAN = "cannot convert float NaN to integer"
_LARGE = "cannot convert a float of this size to"


def _as_int(x: Numeric) -> Numeric:
    return x.to(defaults().int) if type(x) is Boolean else x


def float_op(op: str, *operands: Numeric) -> Numeric:
    """Emit the op `op` of floats; Float16 and BFloat16 are computed in Float32."""
    T = type(operands[0])
    if not T.format.arithmetic:
        raise storage_only(T)
    kit = kit_of(tracing.current_trace("rounding a dynamic value"))
    values = [x.ir_value() for x in operands]
    kit.begin()
    F = T if T.width >= 32 else Float32
    wide = [emit_conversion(kit, T, F, v) for v in values]
    return T.from_value(emit_conversion(kit, F, T, kit.op(op, kit.type_of(F), *wide)))


def _finite(function: Callable[[float], int]) -> Callable[[float], float]:
    return lambda x: float(function(x)) if math.isfinite(x) else x


floor = _whole("math.floor", _finite(math.floor))
ceil = _whole("math.ceil", _finite(math.ceil))


def trunc(x: Numeric) -> Numeric:
    """`math.trunc(x)`: conversions truncate."""
    if x.is_integer:
        return _as_int(x)
    return x.to(defaults().int) if x.region is None else _to_int(x)


_round_whole = _whole("math.roundeven", _finite(round))


def round_(x: Numeric, digits: Any = None) -> Numeric:
    """`round(x)`, a whole number, or `round(x, digits)`, of the type of x; ties go to even."""
    if digits is None:
        return _round_whole(x)
    if isinstance(digits, Numeric) and digits.region is not None:
        raise DSLTypeError("round() needs a number of digits that is known while compiling")
    places = int(digits)
    if x.is_integer:
        return _round_integer(_as_int(x), places)
    T = type(x)
    if x.region is None:
        return T.concrete(round(x.value, places) if math.isfinite(x.value) else x.value)
    F = T if T.width >= 32 else Float32
    if abs(places) > _EXACT_DIGITS[F]:
        raise DSLTypeError(
            f"round() of {with_article(T)} takes at most {_EXACT_DIGITS[F]} digits, not {places}"
        )
    return _round_float(x.to(F), 10.0 ** abs(places), places >= 0).to(T)


def _round_float(x: Numeric, scale: float, divide: bool) -> Numeric:
    """Round to multiples of 1 / scale, or of scale.

    The scaled number is itself rounded, which matters only if it then looks like a tie: the sign of
    the error, exact by fma, decides. Where the scaled number is this large, floats are further
    apart than the multiples, and x is its own rounding.
    """
    T = type(x)
    ten = T._known(scale)
    scaled = x * ten if divide else x / ten
    whole = float_op("math.roundeven", scaled)
    lost = (
        float_op("math.fma", x, ten, -scaled) if divide else float_op("math.fma", -scaled, ten, x)
    )
    gap = scaled - whole
    # A tie that was rounded up but the true number is below, or the other way round.
    whole = select((gap == -0.5) & (lost < 0.0), whole - 1.0, whole)
    whole = select((gap == 0.5) & (lost > 0.0), whole + 1.0, whole)
    rounded = whole / ten if divide else whole * ten
    rounded = float_op("math.copysign", rounded, x)
    limit = 2.0 ** (53 if T is Float64 else 24)
    return select(abs(scaled) < limit, rounded, x)


def _round_integer(x: Numeric, places: int) -> Numeric:
    if places >= 0:
        return x
    T = type(x)
    unit = 10**-places
    if x.region is None:
        rounded = round(int(x.value), places)
        return T.concrete(rounded)
    if unit > T.max // 2:
        raise DSLTypeError(f"round() of {with_article(T)} cannot take {places} digits")
    quotient, rest = divmod(x, unit)
    up = (rest * 2 > unit) | ((rest * 2 == unit) & (quotient % 2 == 1))
    return (quotient + select(up, T._known(1), T._known(0))) * unit  # type: ignore[no-any-return]


for _name, _method in {
    "__round__": round_, "__floor__": floor, "__ceil__": ceil, "__trunc__": trunc
}.items():  # fmt: skip
    setattr(Numeric, _name, _method)
