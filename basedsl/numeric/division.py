"""`//` and `%` as ops: the quotient is floored, the remainder has the divisor's sign.

Integer sequences never trap and never are undefined, whatever the operands: division by a power of
two is a shift and a mask, by other positive literals four ops. A divisor that is zero at run time
is an error where the emitter checks (`numeric.checks`); else the quotient is some number. The float
sequence is CPython's (Objects/floatobject.c, _float_div_mod); a zero divisor gives x / y as the
quotient.
"""

from __future__ import annotations

from typing import Any

from basedsl.numeric.checks import check_at_run_time, check_float
from basedsl.numeric.conversion import emit_conversion
from basedsl.numeric.kit import Kit, Value
from basedsl.numeric.protocols import NumericType

Type = NumericType

ZERO_DIVISOR = "integer division or modulo by zero"


def _is_power_of_two(n: int) -> bool:
    return n > 0 and n & (n - 1) == 0


def _check_divisor(kit: Kit, T: Type, y: Value) -> None:
    check_at_run_time(
        kit,
        lambda: kit.cmpi("ne", y, kit.constant(T, 0)),
        ZeroDivisionError,
        ZERO_DIVISOR,
    )


# Unsigned -------------------------------------------------------------------------------------


def unsigned_floor(kit: Kit, T: Type, R: Type, x: Any, y: Any) -> Value:
    """x // y."""
    t = kit.type_of(T)
    if isinstance(y, int) and _is_power_of_two(y):
        return kit.op("arith.shrui", t, x, kit.constant(T, y.bit_length() - 1))
    return kit.op("arith.divui", t, kit.value(T, x), _unsigned_divisor(kit, T, y))


def unsigned_modulo(kit: Kit, T: Type, R: Type, x: Any, y: Any) -> Value:
    """x % y."""
    t = kit.type_of(T)
    if isinstance(y, int) and _is_power_of_two(y):
        return kit.op("arith.andi", t, x, kit.constant(T, y - 1))
    return kit.op("arith.remui", t, kit.value(T, x), _unsigned_divisor(kit, T, y))


def _unsigned_divisor(kit: Kit, T: Type, y: Any) -> Value:
    if isinstance(y, int) and y:
        return kit.constant(T, y)
    y = kit.value(T, y)
    _check_divisor(kit, T, y)
    return kit.op("arith.maxui", kit.type_of(T), y, kit.constant(T, 1))


# Signed ---------------------------------------------------------------------------------------


def signed_floor(kit: Kit, T: Type, R: Type, x: Any, y: Any) -> Value:
    """x // y; the least integer divided by -1 wraps."""
    t = kit.type_of(T)
    if isinstance(y, int) and y:
        return _floor_by_literal(kit, T, x, y)
    a = kit.value(T, x)
    safe, minus_one = _signed_divisor(kit, T, y)
    quotient = kit.op("arith.divsi", t, a, safe)
    remainder = kit.op("arith.remsi", t, a, safe)
    adjust = _signs_differ(kit, T, remainder, safe)
    lower = kit.op("arith.subi", t, quotient, kit.constant(T, 1))
    floored = kit.select(adjust, lower, quotient)
    negated = kit.op("arith.subi", t, kit.constant(T, 0), a)
    return kit.select(minus_one, negated, floored)


def signed_modulo(kit: Kit, T: Type, R: Type, x: Any, y: Any) -> Value:
    """x % y."""
    t = kit.type_of(T)
    if isinstance(y, int) and y:
        return _modulo_by_literal(kit, T, x, y)
    a = kit.value(T, x)
    safe, _ = _signed_divisor(kit, T, y)  # anything % -1 is anything % 1: 0
    remainder = kit.op("arith.remsi", t, a, safe)
    adjust = _signs_differ(kit, T, remainder, safe)
    return kit.select(adjust, kit.op("arith.addi", t, remainder, safe), remainder)


def _signed_divisor(kit: Kit, T: Type, y: Value) -> tuple[Value, Value]:
    """Replace the divisors 0 and -1 by 1 (both trap on some hardware); return it and whether it was
    -1.
    """
    y = kit.value(T, y)
    _check_divisor(kit, T, y)
    one = kit.constant(T, 1)
    plus_one = kit.op("arith.addi", kit.type_of(T), y, one)
    special = kit.cmpi("ule", plus_one, one)
    minus_one = kit.cmpi("eq", y, kit.constant(T, -1))
    return kit.select(special, one, y), minus_one


def _signs_differ(kit: Kit, T: Type, remainder: Value, divisor: Value) -> Value:
    zero = kit.constant(T, 0)
    mixed = kit.op("arith.xori", kit.type_of(T), remainder, divisor)
    nonzero = kit.cmpi("ne", remainder, zero)
    return kit.op("arith.andi", kit.i1, nonzero, kit.cmpi("slt", mixed, zero))


def _floor_by_literal(kit: Kit, T: Type, x: Value, y: int) -> Value:
    t = kit.type_of(T)
    if y < 0:
        return _floor_by_negative(kit, T, x, y)
    if _is_power_of_two(y):
        return kit.op("arith.shrsi", t, x, kit.constant(T, y.bit_length() - 1))
    # For x < 0: floor(x / y) = ~(~x / y), and ~x >= 0. m is -1 then, else 0.
    m = kit.op("arith.shrsi", t, x, kit.constant(T, T.width - 1))
    magnitude = kit.op("arith.xori", t, x, m)
    quotient = kit.op("arith.divsi", t, magnitude, kit.constant(T, y))
    return kit.op("arith.xori", t, quotient, m)


def _floor_by_negative(kit: Kit, T: Type, x: Value, y: int) -> Value:
    t = kit.type_of(T)
    if y == -1:
        return kit.op("arith.subi", t, kit.constant(T, 0), x)
    divisor = kit.constant(T, y)
    quotient = kit.op("arith.divsi", t, x, divisor)
    remainder = kit.op("arith.remsi", t, x, divisor)
    adjust = kit.cmpi("sgt", remainder, kit.constant(T, 0))
    lower = kit.op("arith.subi", t, quotient, kit.constant(T, 1))
    return kit.select(adjust, lower, quotient)


def _modulo_by_literal(kit: Kit, T: Type, x: Value, y: int) -> Value:
    t = kit.type_of(T)
    if _is_power_of_two(y):
        return kit.op("arith.andi", t, x, kit.constant(T, y - 1))
    if y == -1:
        return kit.constant(T, 0)
    divisor = kit.constant(T, y)
    remainder = kit.op("arith.remsi", t, x, divisor)
    wrong = kit.cmpi("slt" if y > 0 else "sgt", remainder, kit.constant(T, 0))
    return kit.select(wrong, kit.op("arith.addi", t, remainder, divisor), remainder)


# Floats ---------------------------------------------------------------------------------------


def true_quotient(kit: Kit, T: Type, R: Type, x: Any, y: Any) -> Value:
    """x / y."""
    a, b = kit.value(T, x), kit.value(T, y)
    _check_float_divisor(kit, T, y, b, "float division by zero")
    return kit.op("arith.divf", kit.type_of(T), a, b)


def _check_float_divisor(kit: Kit, T: Type, y: Any, b: Value, message: str) -> None:
    if y is b or y == 0.0:  # unless it is known and is not zero
        check_float(
            kit, lambda: kit.cmpf("une", b, kit.constant(T, 0.0)), ZeroDivisionError, message
        )


def float_floor(kit: Kit, T: Type, R: Type, x: Any, y: Any) -> Value:
    """x // y."""
    return float_divmod(kit, T, x, y)[0]


def float_modulo(kit: Kit, T: Type, R: Type, x: Any, y: Any) -> Value:
    """x % y."""
    F, a, b = _widened(kit, T, x, y)
    remainder, needs = _float_remainder(kit, F, a, b)
    return emit_conversion(kit, F, T, _float_modulo(kit, F, b, remainder, needs))


def float_divmod(kit: Kit, T: Type, x: Any, y: Any) -> tuple[Value, Value]:
    """x // y and x % y."""
    F, a, b = _widened(kit, T, x, y)
    t = kit.type_of(F)
    zero, one = kit.constant(F, 0.0), kit.constant(F, 1.0)
    remainder, needs = _float_remainder(kit, F, a, b)
    div = kit.op("arith.divf", t, kit.op("arith.subf", t, a, remainder), b)
    div = kit.select(needs, kit.op("arith.subf", t, div, one), div)
    floor = kit.op("math.floor", t, div)
    gap = kit.op("arith.subf", t, div, floor)
    upward = kit.cmpf("ogt", gap, kit.constant(F, 0.5))
    floor = kit.select(upward, kit.op("arith.addf", t, floor, one), floor)
    ratio = kit.op("arith.divf", t, a, b)
    signed_zero = kit.op("math.copysign", t, zero, ratio)
    quotient = kit.select(kit.cmpf("une", div, zero), floor, signed_zero)
    quotient = kit.select(kit.cmpf("oeq", b, zero), ratio, quotient)
    modulo = _float_modulo(kit, F, b, remainder, needs)
    return emit_conversion(kit, F, T, quotient), emit_conversion(kit, F, T, modulo)


def _widened(kit: Kit, T: Type, x: Any, y: Any) -> tuple[Type, Value, Value]:
    F = T if T.width >= 32 else T.float32()
    a, b = kit.value(T, x), kit.value(T, y)
    _check_float_divisor(kit, T, y, b, "float floor division or modulo by zero")
    return F, emit_conversion(kit, T, F, a), emit_conversion(kit, T, F, b)


def _float_remainder(kit: Kit, F: Type, a: Value, b: Value) -> tuple[Value, Value]:
    """Emit C's fmod, and the i1 that says whether the result must move to the divisor's sign."""
    zero = kit.constant(F, 0.0)
    remainder = kit.op("arith.remf", kit.type_of(F), a, b)
    below = kit.cmpf("olt", remainder, zero)
    differ = kit.op("arith.xori", kit.i1, below, kit.cmpf("olt", b, zero))
    nonzero = kit.cmpf("une", remainder, zero)
    return remainder, kit.op("arith.andi", kit.i1, nonzero, differ)


def _float_modulo(kit: Kit, F: Type, b: Value, remainder: Value, needs: Value) -> Value:
    t = kit.type_of(F)
    zero = kit.constant(F, 0.0)
    moved = kit.select(needs, kit.op("arith.addf", t, remainder, b), remainder)
    signed_zero = kit.op("math.copysign", t, zero, b)
    return kit.select(kit.cmpf("une", remainder, zero), moved, signed_zero)
