"""Bounds of a mask's traced expressions over a whole tile: ranges of queries and keys.

A mask is traced once for the first query and key of a tile, and its operations are walked with an
interval for each integer and two Booleans, may be true and may be false, for each condition
(interval arithmetic, Moore 1966). Known are sums, differences, products, the larger and smaller of
two, magnitudes, shifts, quotients by constants, remainders, comparisons, `and`, `or`, `not`,
choices and `if`. Of anything else that depends on the place, such as a number loaded for each key,
nothing is concluded: the tile is visited, and its scores are masked one by one.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from typing import Any, NamedTuple

import basedsl_cute as cute
from basedsl import logical_not
from basedsl_cute.ops.flash.dependence import (
    Knowledge,
    by_pointer,
    constant,
    dependents,
    enclosing,
    maker,
    rounded_down,
)
from basedsl_cute.ops.flash.extremes import extremes_between
from basedsl_cute.ops.flash.ranges import Ranges


class Interval(NamedTuple):
    """The least and the largest number that an integer may be. If it is not `known`, a dynamic
    Boolean where loaded numbers are among what it depends on, nothing is concluded from them.
    """

    low: Any
    high: Any
    known: Any = True


class Truth(NamedTuple):
    """A condition that may be true, and may be false, somewhere in the tile."""

    true: Any
    false: Any


_UNKNOWN = Truth(True, True)


def truth_of(
    mask: Callable[..., Any], batch: Any, *ranges: Any, arrays: Iterable[tuple[Any, Any]] = ()
) -> Truth:
    """Return if `mask(batch, head, q, k)` may be true, and false, for heads, queries and keys in
    three ranges (first, last) of dynamic Int32s. `arrays` are captured tensors, each with its
    extremes (`ops.flash.extremes`), or None.
    """
    # Sums with a zero that is computed: values of their own, which nothing else uses.
    zero = cute.arch.thread_idx()[0] * 0
    head, q, k = (cute.Int32(ends[0]) + zero for ends in ranges)
    result = mask(batch, head, q, k)
    if cute.is_static(result):
        return Truth(bool(result), not bool(result))
    known = {x.ir_value(): Interval(*ends) for x, ends in zip((head, q, k), ranges, strict=True)}
    varying = dependents(known)
    if varying is None:
        return _UNKNOWN
    ranges = Ranges((batch, head, q, k))
    bounds = _Bounds(known, varying, enclosing(k.ir_value()), by_pointer(arrays), ranges)
    found = bounds.of(result.ir_value())
    return found if isinstance(found, Truth) else _UNKNOWN


class _Bounds(Knowledge):
    """Bounds of values, from those of some; None for a number of which nothing is known. Those that
    are not `varying` are the same in the whole tile.
    """

    def _made(self, value: Any) -> Any:
        found = self._found(value)
        return _UNKNOWN if found is None and str(value.type) == "i1" else found

    def _found(self, value: Any) -> Any:
        op = getattr(value.owner, "operation", value.owner)
        name = getattr(op, "name", "")
        if name == "arith.constant":
            return _point(value.type, op.attributes["value"].value)
        if (fixed := self.fixed(value)) is not None:
            return _value(fixed)
        if name == "cute.load":
            return self._loaded(op)
        if name == "scf.if":
            return self._branched(op, [result == value for result in op.results].index(True))
        if name == "arith.xori" and (quotient := rounded_down(op)) is not None:
            dividend, divisor = quotient
            ends = self.of(dividend)
            if ends is None:
                return None
            return Interval(ends.low // divisor, ends.high // divisor, ends.known)
        if name in _RULES:
            operands = [self.of(operand) for operand in op.operands]
            if name == "arith.cmpi":
                found = _compared(int(op.attributes["predicate"].value), *operands)
                return _as_known(operands, found)
            if name in _OF_NUMBERS and not all(isinstance(x, Interval) for x in operands):
                return None
            if None not in operands:
                found = _RULES[name](*operands)
                return _as_known(operands, found, self._stays_within(op, operands))
        return None

    def _stays_within(self, op: Any, operands: Sequence[Any]) -> Any:
        """If the operands are so small that an operation's result stays within its type, or True
        where it does for all numbers: what wraps is not between what its ends wrap to.
        """
        if op.name not in _MAY_WRAP or self.ranges.fits(op):
            return True
        most = 2 ** (op.results[0].type.width - 1) - 1
        if op.name != "arith.muli":
            return _and(*(_is_within(x, most // len(operands)) for x in operands))
        a, b = (max(*map(abs, self.ranges.of(x)), 1) for x in op.operands)
        small = min(a, b)
        if all(constant(x) is None for x in op.operands):
            small = min(small, math.isqrt(most))
        limits = (small, most // small) if a < b else (most // small, small)
        return _and(*map(_is_within, operands, limits))

    def _loaded(self, op: Any) -> Any:
        base, place = op.operands
        ends = self.of(place)
        while maker(base).name == "cute.view" and len(maker(base).operands) == 2:
            base, place = maker(base).operands
            start = self.of(place)
            if not isinstance(ends, Interval) or not isinstance(start, Interval):
                return None
            within = _and(_is_within(ends, _FAR), _is_within(start, _FAR))
            ends = _as_known((ends, start), _sum(ends, start), within)
        _, found = self.arrays.get(base, (None, None))
        if found is None or not isinstance(ends, Interval):
            return None
        least, most, known = extremes_between(found, ends.low, ends.high)
        known = _and(ends.known, known)
        if str(op.results[0].type) == "i1":
            return _unless_unknown(known, Truth(most != 0, least == 0))
        return Interval(least, most, known)

    def _branched(self, op: Any, place: int) -> Any:
        truth = self.of(op.operands[0])
        ends = self.of_branches(op, place, (Truth(True, False), Truth(False, True)))
        return None if None in ends else _as_known(ends, _either(truth, *ends))


def _point(kind: Any, number: Any) -> Any:
    if str(kind) == "i1":
        return Truth(bool(number), not number)
    return Interval(*[_WIDTHS[str(kind)](int(number))] * 2) if str(kind) in _WIDTHS else None


def _value(value: Any) -> Any:
    """The bounds of a value that is the same in the whole tile."""
    if str(value.type) == "i1":
        truth = cute.Boolean(value)
        return Truth(truth, _not(truth))
    kind = _WIDTHS.get(str(value.type))
    return None if kind is None else Interval(*[kind(value)] * 2)


_WIDTHS = {"i32": cute.Int32, "i64": cute.Int64}


def _not(x: Any) -> Any:
    return not x if isinstance(x, bool) else logical_not(x)


def _and(*truths: Any) -> Any:
    result: Any = True
    for truth in truths:
        if truth is False:
            return False
        if truth is not True:
            result = truth if result is True else result & truth
    return result


def _or(a: Any, b: Any) -> Any:
    if True in (a is True, b is True):
        return True
    if a is False or b is False:
        return b if a is False else a
    return a | b


def _as_known(operands: Sequence[Any], found: Any, within: Any = True) -> Any:
    """The bounds that a rule found, if those of its operands are known, and it stays `within`."""
    known = _and(within, *(x.known for x in operands if isinstance(x, Interval)))
    if known is True or found is None:
        return found
    if isinstance(found, Truth):
        return _unless_unknown(known, found)
    return Interval(found.low, found.high, known)


def _is_within(x: Interval, most: int) -> Any:
    return _and(x.low >= -most, x.high <= most)


def _unless_unknown(known: Any, found: Truth) -> Truth:
    return Truth(_or(found.true, _not(known)), _or(found.false, _not(known)))


def _either(truth: Truth, then: Any, other: Any) -> Any:
    """The bounds of a choice."""
    if isinstance(then, Truth):
        return Truth(
            _or(_and(truth.true, then.true), _and(truth.false, other.true)),
            _or(_and(truth.true, then.false), _and(truth.false, other.false)),
        )
    # A value that is never chosen does not count.
    first, second = (
        Interval(_choice(may, one.low, two.low), _choice(may, one.high, two.high))
        for may, one, two in ((truth.true, then, other), (truth.false, other, then))
    )
    return Interval(cute.min(first.low, second.low), cute.max(first.high, second.high))


def _choice(condition: Any, then: Any, other: Any) -> Any:
    if isinstance(condition, bool):
        return then if condition else other
    return cute.where(condition, then, other)


def _product(a: Interval, b: Interval) -> Interval:
    ends = [x * y for x in a[:2] for y in b[:2]]
    return Interval(_least(ends), _most(ends))


def _shifted(a: Interval, b: Interval) -> Interval:
    ends = [x >> y for x in a[:2] for y in b[:2]]
    return Interval(_least(ends), _most(ends))


def _magnitude(a: Interval) -> Interval:
    low = cute.max(cute.max(a.low, -a.high), 0)
    return Interval(low, cute.max(-a.low, a.high))


def _least(ends: list[Any]) -> Any:
    result = ends[0]
    for end in ends[1:]:
        result = cute.min(result, end)
    return result


def _most(ends: list[Any]) -> Any:
    result = ends[0]
    for end in ends[1:]:
        result = cute.max(result, end)
    return result


def _remainder(a: Interval, b: Interval) -> Interval:
    # Of the sign of the dividend (arith.remsi), and smaller than both.
    size = cute.max(abs(b.low), abs(b.high)) - 1
    low = cute.where(a.low < 0, -cute.min(size, -a.low), 0)
    high = cute.where(a.high > 0, cute.min(size, a.high), 0)
    return Interval(low, high)


def _exclusive(a: Truth, b: Truth) -> Truth:
    return Truth(
        _or(_and(a.true, b.false), _and(a.false, b.true)),
        _or(_and(a.true, b.true), _and(a.false, b.false)),
    )


def _conjunction(a: Any, b: Any) -> Any:
    if not isinstance(a, Truth):
        return None
    return Truth(_and(a.true, b.true), _or(a.false, b.false))


def _disjunction(a: Any, b: Any) -> Any:
    if not isinstance(a, Truth):
        return None
    return Truth(_or(a.true, b.true), _and(a.false, b.false))


def _compared(predicate: int, a: Any, b: Any) -> Truth | None:
    """The bounds of arith.cmpi, of whose predicates the signed ones and equality are known."""
    if not isinstance(a, Interval) or not isinstance(b, Interval):
        return None
    less = Truth(a.low < b.high, a.high >= b.low)
    most = Truth(a.low <= b.high, a.high > b.low)
    same = Truth(
        (a.low <= b.high) & (b.low <= a.high),
        _not((a.low == a.high) & (b.low == b.high) & (a.low == b.low)),
    )
    table = {0: same, 1: same[::-1], 2: less, 3: most, 4: most[::-1], 5: less[::-1]}
    found = table.get(predicate)
    return None if found is None else Truth(*found)


def _sum(a: Interval, b: Interval) -> Interval:
    return Interval(a.low + b.low, a.high + b.high)


_FAR = 2**30 - 1  # of a place in memory
# Operations whose results may leave their type, or that need magnitudes, which may.
_MAY_WRAP = frozenset(("arith.addi", "arith.subi", "arith.muli", "arith.remsi", "math.absi"))
_OF_NUMBERS: dict[str, Callable[..., Any]] = {
    "arith.addi": _sum,
    "arith.subi": lambda a, b: Interval(a.low - b.high, a.high - b.low),
    "arith.muli": _product,
    "arith.maxsi": lambda a, b: Interval(cute.max(a.low, b.low), cute.max(a.high, b.high)),
    "arith.minsi": lambda a, b: Interval(cute.min(a.low, b.low), cute.min(a.high, b.high)),
    "arith.shrsi": _shifted,
    "arith.remsi": _remainder,
    "arith.extsi": lambda a: Interval(cute.Int64(a.low), cute.Int64(a.high)),
    "math.absi": _magnitude,
}
_RULES: dict[str, Callable[..., Any]] = {
    **_OF_NUMBERS,
    "arith.cmpi": lambda a, b: None,
    "arith.select": lambda c, a, b: _either(c, a, b) if isinstance(c, Truth) else None,
    "arith.xori": lambda a, b: _exclusive(a, b) if isinstance(a, Truth) else None,
    "arith.andi": _conjunction,
    "arith.ori": _disjunction,
}
