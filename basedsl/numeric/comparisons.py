"""Comparisons as ops. Integers of any two types compare by their mathematical value."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

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
