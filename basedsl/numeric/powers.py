"""`**` as ops: repeated multiplication for integers, `math.powf` for floats.

A negative integer exponent that is known makes the power a float before this module sees it. `-n`
is refused: what is meant is a float, whatever n is. An exponent that is negative at run time is an
error where the emitter checks (`numeric.checks`); else the power is the integer part of the
quotient (0, 1 or -1; 0 for a zero base).
"""

from __future__ import annotations

from typing import Any

from basedsl.errors import DSLTypeError
from basedsl.numeric.checks import check_at_run_time, check_float
from basedsl.numeric.conversion import emit_conversion
from basedsl.numeric.formats import Kind
from basedsl.numeric.kit import Kit, Value
from basedsl.numeric.protocols import NumericType
from basedsl.numeric.shifts import shift_in_zeros

Type = NumericType


def integer(kit: Kit, T: Type, E: Type, x: Any, exponent: Any) -> Any:
    """x ** exponent of integers."""
    if isinstance(exponent, int):
        return _known_exponent(kit, T, x, exponent)
    if T.kind is Kind.SIGNED:
        if _is_negated(exponent):
            raise DSLTypeError(
                "an integer to the power of `-n`, which is a float in Python if n is above 0",
                hint="write 2.0 ** -n for 2 ** -n: a power of a float",
            )
        check_at_run_time(
            kit,
            lambda: kit.cmpi("sge", exponent, kit.constant(T, 0)),
            ValueError,
            "a negative exponent makes the power of two integers a float; convert one first",
        )
    if x == 2 and isinstance(x, int):
        return shift_in_zeros(kit, "arith.shli", T, T, 1, exponent)
    return _loop(kit, T, kit.value(T, x), exponent)


def _is_negated(x: Value) -> bool:
    """True for the difference of zero and a number, which may be converted."""
    op = _maker(x)
    while getattr(op, "name", "") == "arith.extsi":
        op = _maker(op.operands[0])
    if getattr(op, "name", "") != "arith.subi":
        return False
    zero = _maker(op.operands[0])
    name = getattr(zero, "name", "")
    return name == "arith.constant" and str(zero.attributes["value"]).startswith("0 ")


def _maker(x: Value) -> Any:
    """The operation, or the block, that a value is of."""
    return getattr(x.owner, "operation", x.owner)


def _known_exponent(kit: Kit, T: Type, x: Value, exponent: int) -> Any:
    t = kit.type_of(T)
    power: Value = None
    square = x
    while exponent:
        if exponent & 1:
            power = square if power is None else kit.op("arith.muli", t, power, square)
        exponent >>= 1
        if exponent:
            square = kit.op("arith.muli", t, square, square)
    return 1 if power is None else power


def _loop(kit: Kit, T: Type, x: Value, exponent: Value) -> Value:
    """Square and multiply, as a loop of the DSL's emitter.

    For a negative exponent the bits are those of the exponent read as unsigned, and the result is
    replaced afterwards.
    """
    t = kit.type_of(T)
    loc = kit.loc
    one, zero = kit.constant(T, 1), kit.constant(T, 0)

    def test(carried: Any) -> tuple[Value, list[Value]]:
        kit.loc = loc
        return kit.cmpi("ne", carried[0], zero), list(carried)

    def body(carried: Any) -> list[Value]:
        kit.loc = loc
        left_over, square, power = carried
        odd = kit.cmpi("ne", kit.op("arith.andi", t, left_over, one), zero)
        product = kit.op("arith.muli", t, power, square)
        return [
            kit.op("arith.shrui", t, left_over, one),
            kit.op("arith.muli", t, square, square),
            kit.select(odd, product, power),
        ]

    power = kit.trace.emitter.while_([exponent, x, one], test, body, loc)[2]
    kit.loc = loc
    if T.kind is not Kind.SIGNED:
        return power
    return _with_negative_exponent(kit, T, x, exponent, power)


def _with_negative_exponent(kit: Kit, T: Type, x: Value, exponent: Value, power: Value) -> Value:
    # 1 ** -n is 1 and (-1) ** -n is (-1) ** n, which the loop has right: -n and n have one parity.
    t = kit.type_of(T)
    one, two = kit.constant(T, 1), kit.constant(T, 2)
    unit = kit.cmpi("ule", kit.op("arith.addi", t, x, one), two)
    vanishes = kit.select(unit, power, kit.constant(T, 0))
    negative = kit.cmpi("slt", exponent, kit.constant(T, 0))
    return kit.select(negative, vanishes, power)


def floating(kit: Kit, T: Type, E: Type, x: Any, y: Any) -> Value:
    """x ** y of floats; NaN where Python's result is complex."""
    t = kit.type_of(T)
    a = kit.value(T, x)
    if isinstance(y, float) and y == 2.0:
        square = kit.op("arith.mulf", t, a, a)
        _check_overflow(kit, T, square, a)
        return square
    F = T if T.width >= 32 else T.float32()
    base, exponent = (emit_conversion(kit, T, F, v) for v in (a, kit.value(T, y)))
    _check_power(kit, F, base, exponent)
    power = kit.op("math.powf", kit.type_of(F), base, exponent)
    _check_overflow(kit, F, power, base, exponent)
    return emit_conversion(kit, F, T, power)


def _check_overflow(kit: Kit, F: Type, power: Value, *operands: Value) -> None:
    if not kit.float_checks or not hasattr(F, "inf"):
        return
    t, infinity = kit.type_of(F), kit.constant(F, F.inf)

    def fits() -> Value:
        infinite = [kit.cmpf("oeq", kit.op("math.absf", t, v), infinity) for v in operands]
        found = kit.cmpf("one", kit.op("math.absf", t, power), infinity)
        for one in (kit.cmpf("uno", power, power), *infinite):
            found = kit.op("arith.ori", kit.i1, found, one)
        return found

    check_float(kit, fits, OverflowError, "(34, 'Numerical result out of range')")


def _check_power(kit: Kit, F: Type, base: Value, exponent: Value) -> None:
    if not kit.float_checks:
        return
    i1, zero = kit.i1, kit.constant(F, 0.0)

    def is_real() -> Value:
        whole = kit.op("math.floor", kit.type_of(F), exponent)
        integral = kit.cmpf("oeq", whole, exponent)
        return kit.op("arith.ori", i1, kit.cmpf("uge", base, zero), integral)

    def is_finite() -> Value:
        nonzero = kit.cmpf("une", base, zero)
        return kit.op("arith.ori", i1, nonzero, kit.cmpf("uge", exponent, zero))

    check_float(kit, is_real, ValueError, "a negative number to a fractional power is complex")
    check_float(kit, is_finite, ZeroDivisionError, "0.0 cannot be raised to a negative power")
