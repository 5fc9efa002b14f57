"""Ranges of a mask's integers, known while it is traced: they tell which operations may wrap.

Integers of kernels wrap, as documented; bounds of tiles, and masks that are solved for a key, are
only right for numbers that do not. The range of an operation's result follows from those of its
operands (interval arithmetic); places, of batches, heads, queries and keys, are below 2^30, and
numbers that are loaded may be any of their type.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, NamedTuple

from basedsl_cute.ops.flash.dependence import constant, maker, rounded_down


class Range(NamedTuple):
    """The least and the largest number that an integer may be."""

    low: int
    high: int


_PLACES = Range(0, 2**30 - 1)


class Ranges:
    """The ranges of the integers that a mask's trace is made of; `places` are its arguments, in
    which a number of Python's needs no place.
    """

    def __init__(self, places: Iterable[Any]) -> None:
        dynamic = [x.ir_value() for x in places if hasattr(x, "ir_value")]
        self._known: dict[Any, Range] = dict.fromkeys(dynamic, _PLACES)

    def of(self, value: Any) -> Range:
        """The range of an integer."""
        if value not in self._known:
            every, found = _of_type(value.type), self._exact(value)
            fits = found is not None and every.low <= found.low and found.high <= every.high
            self._known[value] = found if found is not None and fits else every
        return self._known[value]

    def fits(self, op: Any) -> bool:
        """True if the result of an operation never leaves its type."""
        if op.name not in _RULES:
            return True
        every, found = _of_type(op.results[0].type), self._of_operands(op)
        if op.name == "arith.remsi" and every.low in [self.of(x).low for x in op.operands]:
            return False  # a number that has no magnitude
        return every.low <= found.low and found.high <= every.high

    def _exact(self, value: Any) -> Range | None:
        """The range of a result before it is cut to its type; None for any."""
        op = maker(value)
        if (number := constant(value)) is not None:
            return Range(number, number)
        if op.name == "scf.if":
            place = [result == value for result in op.results].index(True)
            ends = [[*region.blocks[0].operations][-1].operation for region in op.regions]
            return _union(*(self.of(end.operands[place]) for end in ends))
        if op.name == "arith.select":
            return _union(*(self.of(x) for x in [*op.operands][1:]))
        if op.name == "arith.xori" and (quotient := rounded_down(op)) is not None:
            low, high = self.of(quotient[0])
            return Range(low // quotient[1], high // quotient[1])
        if op.name == "arith.extui":
            low, high = self.of(op.operands[0])
            width = op.operands[0].type.width
            return Range(0, 2**width - 1) if low < 0 else Range(low, high)
        return self._of_operands(op) if op.name in _RULES else None

    def _of_operands(self, op: Any) -> Range:
        return _RULES[op.name](*(self.of(x) for x in op.operands))


def _of_type(kind: Any) -> Range:
    """All numbers of a type."""
    width = getattr(kind, "width", 64)
    return Range(0, 1) if width == 1 else Range(-(2 ** (width - 1)), 2 ** (width - 1) - 1)


def _union(*ranges: Range) -> Range:
    return Range(min(x.low for x in ranges), max(x.high for x in ranges))


def _magnitude(a: Range) -> Range:
    low = 0 if a.low <= 0 <= a.high else min(abs(a.low), abs(a.high))
    return Range(low, max(abs(a.low), abs(a.high)))


def _product(a: Range, b: Range) -> Range:
    ends = [x * y for x in a for y in b]
    return Range(min(ends), max(ends))


def _remainder(a: Range, b: Range) -> Range:
    most = min(_magnitude(a).high, max(_magnitude(b).high - 1, 0))
    return Range(-most if a.low < 0 else 0, most if a.high > 0 else 0)


_RULES: dict[str, Callable[..., Range]] = {
    "arith.addi": lambda a, b: Range(a.low + b.low, a.high + b.high),
    "arith.subi": lambda a, b: Range(a.low - b.high, a.high - b.low),
    "arith.muli": _product,
    "arith.maxsi": lambda a, b: Range(max(a.low, b.low), max(a.high, b.high)),
    "arith.minsi": lambda a, b: Range(min(a.low, b.low), min(a.high, b.high)),
    "arith.remsi": _remainder,
    "arith.extsi": lambda a: a,
    "math.absi": _magnitude,
}
