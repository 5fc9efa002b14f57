"""Arithmetic on vectors: while `lanes(n)` is entered, numeric values hold `vector<n x T>`.

Everything that numerics do (operators, conversions, selection, math functions) then works on all
lanes at once and by the same rules. Python's run-time errors are not checked on vectors, and what
needs a loop (an integer power with a dynamic exponent) has to be done lane by lane.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from basedsl.numeric.kit import Kit, Value, kit_of
from basedsl.tracing import Trace
from basedsl.tracing import trace as tracing

if TYPE_CHECKING:
    from basedsl.numeric.types import Numeric


class LaneKit(Kit):
    """A kit whose types are vectors and whose constants are splats."""

    __slots__ = ("lanes", "scalar")

    def __init__(self, trace: Trace, lanes: int) -> None:
        super().__init__(trace)
        self.lanes = lanes
        self.scalar = kit_of(trace)
        self.i1 = self._vector(self.scalar.i1)

    @property
    def checks(self) -> bool:
        return False

    @property
    def float_checks(self) -> bool:
        return False

    def _vector(self, element: Any) -> Any:
        return self.ir.VectorType.get([self.lanes], element)

    def type_of(self, T: type[Numeric]) -> Any:
        found = self._types.get(T)
        if found is None:
            found = self._types[T] = self._vector(self.scalar.type_of(T))
        return found

    def constant_i1(self, value: bool) -> Value:
        attribute = self.ir.IntegerAttr.get(self.scalar.i1, -1 if value else 0)
        return self._splat(self.i1, attribute)

    def constant(self, T: type[Numeric], value: Any) -> Value:
        element = self.scalar._attribute(T, self.scalar.type_of(T), value)
        return self._splat(self.type_of(T), element)

    def _splat(self, type_: Any, element: Any) -> Value:
        attribute = self.ir.DenseElementsAttr.get_splat(type_, element)
        return self.create(
            "arith.constant", results=[type_], attributes={"value": attribute}, loc=self.loc
        ).result


@contextlib.contextmanager
def lanes(n: int) -> Iterator[LaneKit]:
    """Until left, numeric values that are made and operated on are vectors of `n` elements."""
    trace = tracing.require("arithmetic on vectors")
    scalar = kit_of(trace)
    if isinstance(scalar, LaneKit):
        raise ValueError("lanes do not nest")
    kit = trace.lane_kits.get(n)
    if kit is None:
        kit = trace.lane_kits[n] = LaneKit(trace, n)
    trace.kit = kit
    try:
        yield kit
    finally:
        trace.kit = scalar
