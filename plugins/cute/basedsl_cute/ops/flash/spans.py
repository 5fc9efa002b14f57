"""The keys that a mask shows a query, where they are a span: all from one to before another.

Most masks compare keys with what a query allows: `k <= q`, `q - k < 20 and k < lengths[batch]`.
Such a mask is solved for the key, so that a score costs the comparison of its column with the ends
of its row's span, and not the mask. It is traced for a query, and its operations are walked with a
multiple of the key and a rest for each integer, and a span for each condition. Of masks with
anything else that depends on the key nothing is concluded.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, NamedTuple

import basedsl_cute as cute
from basedsl import logical_not
from basedsl_cute.ops.flash.dependence import (
    Knowledge,
    by_pointer,
    constant,
    dependents,
    enclosing,
    rounded_down,
)
from basedsl_cute.ops.flash.ranges import Ranges


class Linear(NamedTuple):
    """The number `factor` times the key, plus `rest`, an Int64. One that is `wide` was made from 64
    bits, and cut: it may be compared, but no more.
    """

    factor: int
    rest: Any
    wide: bool = False


class Quotient(NamedTuple):
    """The number (key + `rest`) // `divisor`."""

    rest: Any
    divisor: int


class Magnitude(NamedTuple):
    """The magnitude of a `Linear`."""

    of: Linear


class Fixed(NamedTuple):
    """A condition that does not depend on the key, a bool or a Boolean."""

    condition: Any


class Span(NamedTuple):
    """The keys from `low` to before `high`, Int64s, or None for no bound."""

    low: Any
    high: Any


# Beyond all keys, and all sums and products of numbers of 32 bits.
_FAR = 2**62


def span_of(
    mask: Callable[..., Any],
    batch: Any,
    head: Any,
    query: Any,
    key: Any,
    arrays: Iterable[tuple[Any, Any]] = (),
) -> Span | None:
    """Return the keys for which `mask(batch, head, query, k)` is true, or None where it is not
    known that they are a span. The mask is traced for `key`, one of those that there are. `arrays`
    are captured tensors, as those of `ops.flash.bounds.truth_of`.
    """
    # A sum with a zero that is computed: a value of its own, which nothing else uses.
    own = key + cute.arch.thread_idx()[0] * 0
    result = mask(batch, head, query, own)
    if isinstance(result, bool):
        return _as_span(Fixed(result))
    if not isinstance(result, cute.Boolean):
        return None
    root = own.ir_value()
    varying = dependents([root])
    if varying is None:
        return None
    ranges = Ranges((batch, head, query, own))
    known = {root: Linear(1, cute.Int64(0))}
    spans = _Spans(known, varying, enclosing(root), by_pointer(arrays), ranges)
    found = spans.of(result.ir_value())
    return _as_span(found) if _is_condition(found) else None


class _Spans(Knowledge):
    """The knowledge of values: a `Linear`, `Quotient` or `Magnitude` of a number, a `Span` or
    `Fixed` of a condition, or None. Those that are not `varying` do not depend on the key.
    """

    def _made(self, value: Any) -> Any:
        op = getattr(value.owner, "operation", value.owner)
        name, kind = getattr(op, "name", ""), str(value.type)
        if name == "arith.constant" and kind in ("i1", "i32", "i64"):
            number = int(op.attributes["value"].value)
            if kind == "i1":
                return Fixed(bool(number))
            return Linear(0, cute.Int64(number)) if abs(number) < 2**32 else None
        if (fixed := self.fixed(value)) is not None:
            return _fixed(fixed, kind)
        if name == "scf.if":
            return self._branched(op, [result == value for result in op.results].index(True))
        if name == "arith.xori" and (quotient := rounded_down(op)) is not None:
            return _divided(self.of(quotient[0]), quotient[1])
        if name == "arith.shrsi" and (by := constant(op.operands[1])) is not None:
            return _divided(self.of(op.operands[0]), 1 << by)
        if name not in _RULES or not self.ranges.fits(op):
            return None
        operands = [self.of(operand) for operand in op.operands]
        if None in [operand if operand is None else () for operand in operands]:
            return None
        if name == "arith.cmpi":
            return _compared(int(op.attributes["predicate"].value), *operands)
        return _RULES[name](*operands)

    def _branched(self, op: Any, place: int) -> Any:
        chosen = self.of(op.operands[0])
        if chosen is None:
            return None
        return _choice(chosen, *self.of_branches(op, place, (Fixed(True), Fixed(False))))


def _as_span(found: Span | Fixed) -> Span:
    """The keys for which a condition is true."""
    if isinstance(found, Span):
        return found
    return Span(None, _where(found.condition, cute.Int64(_FAR), cute.Int64(0)))


def _fixed(value: Any, kind: str) -> Any:
    """The knowledge of a value that does not depend on the key."""
    if kind == "i1":
        return Fixed(cute.Boolean(value))
    if kind == "i32":
        return Linear(0, cute.Int64(cute.Int32(value)))
    if kind == "i64":
        return Linear(0, cute.max(cute.min(cute.Int64(value), _FAR), -_FAR), True)
    return None


# Conditions ---------------------------------------------------------------------------------------


def _where(condition: Any, then: Any, other: Any) -> Any:
    if isinstance(condition, bool):
        return then if condition else other
    return cute.where(condition, then, other)


def _is_condition(*found: Any) -> bool:
    return all(isinstance(x, Span | Fixed) for x in found)


def _is(found: Any, condition: bool) -> bool:
    """True for a condition that is known to be one of True and False."""
    return isinstance(found, Fixed) and found.condition is condition


def _ends(found: Any) -> tuple[Any, Any]:
    """The ends of the span of a condition."""
    low, high = _as_span(found)
    return (cute.Int64(0) if low is None else low, cute.Int64(_FAR) if high is None else high)


def _both(a: Any, b: Any) -> Any:
    """The keys of two conditions."""
    if not _is_condition(a, b):
        return None
    for x, y in ((a, b), (b, a)):
        if _is(x, True) or _is(y, False):
            return y
    if isinstance(a, Fixed) and isinstance(b, Fixed):
        return Fixed(a.condition & b.condition)
    a, b = _as_span(a), _as_span(b)
    low, high = (
        x if y is None else y if x is None else larger(x, y)
        for x, y, larger in ((a.low, b.low, cute.max), (a.high, b.high, cute.min))
    )
    return Span(low, high)


def _any(a: Any, b: Any) -> Any:
    """The keys of one condition or the other, if they are known to be a span."""
    if not _is_condition(a, b):
        return None
    for x, y in ((a, b), (b, a)):
        if _is(x, False) or _is(y, True):
            return y
        if isinstance(x, Fixed):
            return _choice(x, Fixed(True), y)
    if a.low is None and b.low is None:
        return Span(None, cute.max(a.high, b.high))
    if a.high is None and b.high is None:
        return Span(cute.min(a.low, b.low), None)
    return None


def _not(a: Any) -> Any:
    """The keys for which a condition is false, if they are known to be a span."""
    if isinstance(a, Fixed):
        return Fixed(not a.condition if isinstance(a.condition, bool) else logical_not(a.condition))
    if not isinstance(a, Span):
        return None
    if a.low is None:
        return Span(a.high, None)
    return Span(None, a.low) if a.high is None else None


def _choice(chosen: Any, then: Any, other: Any) -> Any:
    """The knowledge of a choice between two values."""
    if isinstance(then, Linear) and isinstance(other, Linear) and isinstance(chosen, Fixed):
        if then.factor != other.factor:
            return None
        wide = then.wide or other.wide
        return Linear(then.factor, _where(chosen.condition, then.rest, other.rest), wide)
    if not _is_condition(chosen, then, other):
        return None
    if _is(other, False):
        return _both(chosen, then)
    if isinstance(chosen, Fixed):
        if isinstance(chosen.condition, bool):
            return then if chosen.condition else other
        return Span(
            *(
                _where(chosen.condition, x, y)
                for x, y in zip(_ends(then), _ends(other), strict=True)
            )
        )
    if _is(then, True):
        return _any(chosen, other)
    if _is(then, False):
        return _both(_not(chosen), other)
    return _any(_not(chosen), then) if _is(other, True) else None


def _exclusive(a: Any, b: Any) -> Any:
    """The keys for which one of two conditions is true, one of which is fixed."""
    if not _is_condition(a, b):
        return None
    if isinstance(b, Fixed):
        a, b = b, a
    return _choice(a, _not(b), b) if isinstance(a, Fixed) else None


# Numbers ------------------------------------------------------------------------------------------


def _sum(sign: int, a: Any, b: Any) -> Any:
    """The sum of two numbers, or their difference."""
    if not isinstance(a, Linear) or not isinstance(b, Linear) or a.wide or b.wide:
        return None
    rest = a.rest + b.rest if sign > 0 else a.rest - b.rest
    return Linear(a.factor + sign * b.factor, rest)


def _divided(number: Any, divisor: int) -> Any:
    """The quotient, rounded down."""
    if not isinstance(number, Linear) or number.factor != 1 or number.wide:
        return None
    return Quotient(number.rest, divisor)


_LESS, _MOST, _MORE, _LEAST, _SAME = 2, 3, 4, 5, 0  # predicates of arith.cmpi
_TURNED = {_LESS: _MORE, _MOST: _LEAST, _MORE: _LESS, _LEAST: _MOST, _SAME: _SAME}


def _compared(predicate: int, a: Any, b: Any) -> Any:
    """The keys for which a comparison of two numbers is true."""
    if predicate not in _TURNED:
        return None
    if isinstance(b, Quotient | Magnitude):
        a, b, predicate = b, a, _TURNED[predicate]
    if not isinstance(b, Linear):
        return None
    if isinstance(a, Linear):
        if a.wide and b.wide:
            return None
        factor, rest = a.factor - b.factor, b.rest - a.rest
        if factor == 0:
            return Fixed(_OF_FIXED[predicate](cute.Int64(0), rest))
        if abs(factor) != 1:
            return None
        # factor key ? rest
        return _beside(predicate, rest) if factor > 0 else _beside(_TURNED[predicate], -rest)
    if b.factor != 0 or b.wide:
        return None
    if isinstance(a, Magnitude):
        if predicate not in (_LESS, _MOST):
            return None
        return _both(
            _compared(predicate, a.of, b), _compared(_TURNED[predicate], a.of, Linear(0, -b.rest))
        )
    if isinstance(a, Quotient):
        first = b.rest * a.divisor - a.rest  # the first key whose quotient is that number
        behind = first + a.divisor
        return {
            _LESS: Span(None, first),
            _MOST: Span(None, behind),
            _MORE: Span(behind, None),
            _LEAST: Span(first, None),
            _SAME: Span(first, behind),
        }[predicate]
    return None


def _beside(predicate: int, number: Any) -> Span:
    """The keys that compare so with a number."""
    return {
        _LESS: Span(None, number),
        _MOST: Span(None, number + 1),
        _MORE: Span(number + 1, None),
        _LEAST: Span(number, None),
        _SAME: Span(number, number + 1),
    }[predicate]


_OF_FIXED: dict[int, Callable[[Any, Any], Any]] = {
    _LESS: lambda a, b: a < b,
    _MOST: lambda a, b: a <= b,
    _MORE: lambda a, b: a > b,
    _LEAST: lambda a, b: a >= b,
    _SAME: lambda a, b: a == b,
}
_RULES: dict[str, Callable[..., Any]] = {
    "arith.cmpi": lambda a, b: None,
    "arith.addi": lambda a, b: _sum(1, a, b),
    "arith.subi": lambda a, b: _sum(-1, a, b),
    "arith.extsi": lambda a: a if isinstance(a, Linear) else None,
    "math.absi": lambda a: Magnitude(a) if isinstance(a, Linear) and not a.wide else None,
    "arith.select": _choice,
    "arith.andi": _both,
    "arith.ori": _any,
    "arith.xori": _exclusive,
}
