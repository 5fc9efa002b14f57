"""The values of a traced function that depend on some of its arguments.

What loads a number at `k + 1` depends on `k` as much as what loads one at `k`: dependence is handed
on by all operations, the operands of branches and loops, and by what is yielded from them.
"""

from __future__ import annotations

from collections.abc import Iterable
from types import SimpleNamespace
from typing import Any

import basedsl_cute as cute

# What ends a region, or stops a program, but keeps nothing that another operation may find.
_HARMLESS = frozenset(("scf.yield", "scf.condition", "scf.reduce", "cf.assert"))


def dependents(roots: Iterable[Any]) -> set[Any] | None:
    """Return the values that depend on one of `roots`, values that nothing else than the trace
    uses; None if one is written into memory, where any load may find it.
    """
    found: set[Any] = set()
    waiting = list(roots)
    while waiting:
        value = waiting.pop()
        if value in found:
            continue
        found.add(value)
        for use in value.uses:
            op = use.owner.operation
            if not len(op.results) and not len(op.regions) and op.name not in _HARMLESS:
                return None
            waiting += op.results
            for region in op.regions:
                for block in region.blocks:
                    waiting += block.arguments
            if op.name in _HARMLESS and op.name != "cf.assert":
                # What a region ends with are the results of the operation that it belongs to, and
                # what a loop begins its next round with.
                outer = op.parent.operation
                waiting += outer.results
                for region in outer.regions:
                    for block in region.blocks:
                        waiting += block.arguments
    return found


def enclosing(value: Any) -> list[Any]:
    """The blocks whose values can be used where the operation that makes `value` is."""
    op = maker(value)
    blocks = [op.block]
    while not op.name.endswith(".func"):
        op = op.parent.operation
        blocks.append(op.block)
    return blocks


def is_in(value: Any, blocks: list[Any]) -> bool:
    """True for a value of one of some blocks, or an argument of it."""
    op = maker(value)
    return (value.owner if op is _NOTHING else op.block) in blocks


class Knowledge:
    """The knowledge of a traced function's values, each found once by the `_made` of a subclass,
    from that of others. Those that are not `varying` do not depend on what is asked about.
    """

    def __init__(
        self,
        known: dict[Any, Any],
        varying: set[Any],
        blocks: list[Any],
        arrays: dict[Any, Any],
        ranges: Any,
    ) -> None:
        self.known = known
        self.varying = varying
        self.arrays = arrays  # pointers of captured arrays, with what is known of these
        self.ranges = ranges  # `ops.flash.ranges.Ranges`
        self.again: dict[Any, Any] = {}  # values of branches that were computed here
        self.blocks = blocks  # those whose values can be used from here: not those of branches

    def of(self, value: Any) -> Any:
        """The knowledge of a value."""
        if value not in self.known:
            self.known[value] = self._made(value)
        return self.known[value]

    def fixed(self, value: Any) -> Any:
        """A value that does not vary, to be used from here; else None.

        One of a branch is computed again, whether the branch is taken or not, if it is made by
        arithmetic and from captured arrays: of these nothing is read outside.
        """
        if value in self.varying:
            return None
        if is_in(value, self.blocks):
            return value
        if value not in self.again:
            self.again[value] = self._computed_again(value)
        return self.again[value]

    def _computed_again(self, value: Any) -> Any:
        op = maker(value)
        if op is _NOTHING or len(op.regions):
            return None
        is_load = op.name == "cute.load" and op.operands[0] in self.arrays
        if not is_load and not _is_arithmetic(op):
            return None
        operands = [self.fixed(operand) for operand in op.operands]
        if None in [operand if operand is None else () for operand in operands]:
            return None
        if is_load:
            tensor, _ = self.arrays[op.operands[0]]
            kind = cute.Int64 if str(operands[1].type) == "i64" else cute.Int32
            return _read_inside(tensor, kind(operands[1])).ir_value()
        made = op.clone()
        for i, operand in enumerate(operands):
            made.operands[i] = operand
        return made.results[0]

    def of_branches(self, op: Any, place: int, conditions: tuple[Any, Any]) -> list[Any]:
        """The knowledge of result `place` of an scf.if by each branch, in which its condition is
        the one of `conditions`.
        """
        found = []
        for region, condition in zip(op.regions, conditions, strict=True):
            known = {**self.known, op.operands[0]: condition}
            *_, end = region.blocks[0].operations
            inner = type(self)(known, self.varying, self.blocks, self.arrays, self.ranges)
            found.append(inner.of(end.operation.operands[place]))
        return found

    def _made(self, value: Any) -> Any:
        raise NotImplementedError


@cute.jit
def _read_inside(x, place):
    """The element `place` of a tensor in memory, or 0 for none."""
    size = cute.cosize(x.layout)
    found: cute.Numeric = x.element_type(0)
    if place >= 0 and place < size:
        found = cute.make_tensor(x.iterator, cute.make_layout(size))[cute.Int32(place)]
    return found


def by_pointer(arrays: Iterable[tuple[Any, Any]]) -> dict[Any, Any]:
    """Captured tensors and what is known of each, by their pointers."""
    return {x.iterator.ir_value(): (x, known) for x, known in arrays}


def is_plain(roots: Iterable[Any]) -> bool:
    """True if nothing but arithmetic that is defined for all numbers depends on `roots`."""
    found = dependents(roots)
    if found is None:
        return False
    return all(_is_arithmetic(use.owner.operation) for value in found for use in value.uses)


def is_difference(a: Any, b: Any) -> bool:
    """True if two values are only used for their difference."""
    uses = [use.owner.operation for value in (a, b) for use in value.uses]
    pairs = [tuple(op.operands) for op in uses if op.name == "arith.subi"]
    return len(pairs) == len(uses) and all(pair in ((a, b), (b, a)) for pair in pairs)


def _is_arithmetic(op: Any) -> bool:
    dialect, _, name = op.name.partition(".")
    if op.name == "scf.if":
        # What a branch does need not depend on what chooses it.
        inner = [x for region in op.regions for block in region.blocks for x in block.operations]
        return all(_is_arithmetic(x.operation) for x in inner)
    if op.name == "cf.assert":
        return False
    if name in _PARTIAL:
        return bool(constant(op.operands[1]))
    return op.name in _HARMLESS or dialect in ("arith", "math")


# Integers that may be divided by zero, or shifted too far.
_PARTIAL = frozenset(
    ("divsi", "divui", "remsi", "remui", "ceildivsi", "floordivsi", "shli", "shrsi", "shrui")
)


def constant(value: Any) -> int | None:
    """The number that a value is, if it is a constant."""
    op = maker(value)
    return int(op.attributes["value"].value) if op.name == "arith.constant" else None


def rounded_down(op: Any) -> tuple[Any, int] | None:
    """The dividend and the divisor, a positive constant, if an arith.xori is the end of `//`."""
    quotient, sign = op.operands
    divided, shift = maker(quotient), maker(sign)
    if (divided.name, shift.name) != ("arith.divsi", "arith.shrsi"):
        return None
    first, divisor = maker(divided.operands[0]), constant(divided.operands[1])
    dividend, by = shift.operands
    if first.name != "arith.xori" or tuple(first.operands) != (dividend, sign) or not divisor:
        return None
    return (dividend, divisor) if divisor > 0 and constant(by) == sign.type.width - 1 else None


def maker(value: Any) -> Any:
    """The operation that made a value; one without a name for an argument of a block."""
    op = getattr(value.owner, "operation", value.owner)
    return op if hasattr(op, "name") else _NOTHING


_NOTHING = SimpleNamespace(name="", block=None)
