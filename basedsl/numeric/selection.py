"""Choosing between numeric values: select, maximum, minimum."""

from __future__ import annotations

from typing import Any

from basedsl.numeric.engine import apply
from basedsl.numeric.formats import Kind
from basedsl.numeric.kit import kit_of
from basedsl.numeric.number import Numeric, check_literal
from basedsl.numeric.operators import GT, LT
from basedsl.numeric.promotion import Tie, Type, common_type, defaults, operand_type
from basedsl.numeric.types import Boolean
from basedsl.tracing import trace as tracing

_LARGER = {Kind.SIGNED: "arith.maxsi", Kind.UNSIGNED: "arith.maxui", Kind.BOOLEAN: "arith.ori"}
_SMALLER = {Kind.SIGNED: "arith.minsi", Kind.UNSIGNED: "arith.minui", Kind.BOOLEAN: "arith.andi"}


def in_common_type(*operands: Any) -> list[Numeric]:
    """Convert numbers to the one type they promote to; weak if all of them are."""
    now = defaults()
    T, tie = operand_type(operands[0], now)
    for x in operands[1:]:
        U, other = operand_type(x, now)
        T, tie = common_type(T, tie, U, other, now), min(tie, other)
    if tie is Tie.STRONG:
        return [in_type(x, T) for x in operands]
    return [_weakly(x, T) for x in operands]


def in_type(x: Any, T: Type) -> Numeric:
    """Return a number as a `T`; a Python number has to fit."""
    if isinstance(x, Numeric) and not (x.weak and x.region is None):
        return x if type(x) is T and not x.weak else x.to(T)
    return T._known(check_literal(T, x))


def _weakly(x: Any, T: Type) -> Numeric:
    number = in_type(x, T)
    if number.region is None:
        return T._known(number.value, weak=True)
    return T.from_value(number.ir_value(), weak=True)


def select(condition: Any, a: Any, b: Any) -> Numeric:
    """Return `a` where `condition` holds, else `b`; both are computed, and promote to one type.

    `condition` is a bool or a Boolean. Emits arith.select if it is dynamic.
    """
    x, y = in_common_type(a, b)
    if not isinstance(condition, Numeric) or condition.region is None:
        return x if condition else y
    kit = kit_of(tracing.current_trace("a choice by a dynamic condition"))
    values = [condition.to(Boolean).ir_value(), x.ir_value(), y.ir_value()]
    kit.begin()
    return type(x).from_value(kit.op("arith.select", kit.type_of(type(x)), *values), x.weak)


def maximum(a: Any, b: Any) -> Numeric:
    """Return `max(a, b)`: the first unless the second is larger (a NaN in second place loses)."""
    return _extreme(a, b, _LARGER, max)


def minimum(a: Any, b: Any) -> Numeric:
    """Return `min(a, b)`: the first unless the second is smaller (a NaN in second place loses)."""
    return _extreme(a, b, _SMALLER, min)


def _extreme(a: Any, b: Any, ops: dict[Kind, str], function: Any) -> Numeric:
    x, y = in_common_type(a, b)
    T = type(x)
    if x.region is None and y.region is None:
        return T._known(function(x.value, y.value), x.weak)
    if T.is_float:
        return select(apply(GT if function is max else LT, y, x), y, x)
    kit = kit_of(tracing.current_trace("a choice between dynamic values"))
    values = [x.ir_value(), y.ir_value()]
    kit.begin()
    return T.from_value(kit.op(ops[T.kind], kit.type_of(T), *values), x.weak)
