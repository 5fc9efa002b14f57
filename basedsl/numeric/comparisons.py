"""Comparisons as ops. Numbers of any two types compare by their mathematical value."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from basedsl.numeric.conversion import convert_number, emit_conversion
from basedsl.numeric.formats import Kind
from basedsl.numeric.kit import Kit, Value
from basedsl.numeric.protocols import NumericType

Type = NumericType
Sequence = Callable[[Kit, Any, Any, Any, Any], Value]


def integer(predicate: str) -> Sequence:
    """Return the rule that emits arith.cmpi."""
    return lambda kit, L, R, x, y: kit.cmpi(predicate, kit.value(L, x), kit.value(R, y))


def floating(predicate: str) -> Sequence:
    """Return the rule that emits arith.cmpf; a comparison with NaN is False, except `!=`."""
    return lambda kit, L, R, x, y: kit.cmpf(predicate, kit.value(L, x), kit.value(R, y))


def mixed(name: str) -> Sequence:
    """Return the rule for a signed with an unsigned integer of the same width.

    Below zero the signed one is less than any unsigned one; else both compare as unsigned.
    """

    def emit(kit: Kit, L: Type, R: Type, x: Any, y: Any) -> Value:
        signed_left = L.kind is Kind.SIGNED
        a, b = kit.value(L, x), kit.value(R, y)
        signed, T = (a, L) if signed_left else (b, R)
        negative = kit.cmpi("slt", signed, kit.constant(T, 0))
        unsigned = kit.cmpi(name if name in ("eq", "ne") else f"u{name}", a, b)
        # With a negative operand: is the comparison true?
        if name == "ne" or ((name[0] == "l") == signed_left and name != "eq"):
            return kit.op("arith.ori", kit.i1, negative, unsigned)
        return kit.select(negative, kit.constant_i1(False), unsigned)

    return emit


def always(name: str, literal: int, T: Type, *, literal_left: bool) -> bool | None:
    """Return the constant result of comparing an integer of type `T` with a literal outside its
    range.

    None if the literal is in the range.
    """
    if T.min <= literal <= T.max:
        return None
    if name in ("eq", "ne"):
        return name == "ne"
    above = literal > T.max
    return above == ((name[0] == "l") != literal_left)


def mixed_types(A: Type, B: Type) -> tuple[Any, Any] | None:
    """The types to compare a signed and an unsigned integer in; None if promotion has one."""
    if {A.kind, B.kind} != {Kind.SIGNED, Kind.UNSIGNED}:
        return None
    signed, unsigned = (A, B) if A.kind is Kind.SIGNED else (B, A)
    if signed.width > unsigned.width:
        return None
    widened = signed.same_kind_of_width(unsigned.width)
    return (widened, unsigned) if A.kind is Kind.SIGNED else (unsigned, widened)


# An integer with a float ----------------------------------------------------------------------

MIRRORED = {"lt": "gt", "le": "ge", "gt": "lt", "ge": "le", "eq": "eq", "ne": "ne"}
_PRECISION = {16: 8, 32: 24, 64: 53}  # significant bits; of the two 16-bit floats, the fewer


def is_exact_in(T: Type, F: Type) -> bool:
    """Return True if the float type `F` holds every integer of type `T`."""
    return T.width - (T.kind is Kind.SIGNED) <= _PRECISION[F.width]


def integer_with_float(name: str) -> Sequence:
    """Return the rule for an integer with a float that does not hold all integers of its type.

    Rounding keeps order: where the rounded integer differs from the float, so does the integer, in
    the same direction. Where they are equal the float is whole, and is compared as an integer.
    """

    def emit(kit: Kit, L: Type, R: Type, x: Any, y: Any) -> Value:
        left = L.kind is not Kind.FLOAT
        T, F, n, f = (L, R, x, y) if left else (R, L, y, x)
        relation = name if left else MIRRORED[name]
        n, f = kit.value(T, n), kit.value(F, f)
        rounded = emit_conversion(kit, T, F, n)
        # 2 ** width is a float that rounding reaches and the integer type does not have.
        below_top = kit.cmpf("olt", f, kit.constant(F, float(int(T.max) + 1)))
        tie = kit.op("arith.andi", kit.i1, kit.cmpf("oeq", rounded, f), below_top)
        signed = T.kind is Kind.SIGNED
        whole = kit.op(
            "arith.fptosi" if signed else "arith.fptoui",
            kit.type_of(T),
            kit.select(tie, f, kit.constant(F, 0.0)),
        )
        if relation in ("eq", "ne"):
            exact = kit.cmpi(relation, n, whole)
            return kit.select(tie, exact, kit.constant_i1(relation == "ne"))
        exact = kit.cmpi(f"{'s' if signed else 'u'}{relation}", n, whole)
        return kit.select(tie, exact, kit.cmpf("ole" if relation[0] == "l" else "ogt", rounded, f))

    return emit


def with_float_literal(name: str, literal: float) -> bool | tuple[str, int]:
    """Return what comparing an integer with a float known while compiling amounts to: the answer,
    or the comparison and the integer to compare with.
    """
    if math.isnan(literal):
        return name == "ne"
    if math.isinf(literal):
        return name == "ne" or (name not in ("eq", "ne") and (name[0] == "l") == (literal > 0))
    if literal == math.floor(literal):
        return name, int(literal)
    if name in ("eq", "ne"):
        return name == "ne"
    return ("le" if name[0] == "l" else "gt"), math.floor(literal)


def with_large_literal(name: str, literal: int | float, F: Type) -> tuple[str, float] | None:
    """Return the comparison of a float of type `F`, and the float to compare it with, that mean
    the same as comparing it with a number that `F` does not hold: an int, or a float beyond its
    range. None if it holds it.

    No float is equal to the number: that is a comparison with NaN.
    """
    try:
        nearest = float(convert_number(literal, F.format))
    except OverflowError:
        nearest = math.inf if literal > 0 else -math.inf
    if nearest == literal:
        return None
    if name in ("eq", "ne"):
        return name, math.nan
    above = nearest > literal
    if name[0] == "l":
        return ("lt" if above else "le"), nearest
    return ("ge" if above else "gt"), nearest
