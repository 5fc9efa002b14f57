"""Arithmetic on vectors: inside `lanes(n)`, numeric values hold `vector<n x T>`.

Operators, conversions, selection and math functions then work on all lanes at once and by the same
rules. Python's run-time errors are not checked on vectors; a computation that needs a loop (an
integer power with a dynamic exponent) has to be done lane by lane.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any

from basedsl.numeric.kit import Kit, Value, kit_of
from basedsl.numeric.protocols import NumericType
from basedsl.tracing import Trace
from basedsl.tracing import trace as tracing


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
        """Always False: a check would need one condition for all lanes."""
        return False

    @property
    def float_checks(self) -> bool:
        """Always False: a check would need one condition for all lanes."""
        return False

    def _vector(self, element: Any) -> Any:
        return self.ir.VectorType.get([self.lanes], element)

    def type_of(self, T: NumericType) -> Any:
        """Return the vector type with elements of `T`."""
        found = self._types.get(T)
        if found is None:
            found = self._types[T] = self._vector(self.scalar.type_of(T))
        return found

    def constant_i1(self, value: bool) -> Value:
        """Emit a constant vector of i1."""
        attribute = self.ir.IntegerAttr.get(self.scalar.i1, -1 if value else 0)
        return self._splat(self.i1, attribute)

    def constant(self, T: NumericType, value: Any) -> Value:
        """Emit a constant vector with `value` in all lanes."""
        element = self.scalar._attribute(T, self.scalar.type_of(T), value)
        return self._splat(self.type_of(T), element)

    def _splat(self, type_: Any, element: Any) -> Value:
        attribute = self.ir.DenseElementsAttr.get_splat(type_, element)
        return self.create(
            "arith.constant", results=[type_], attributes={"value": attribute}, loc=self.loc
        ).result


@contextlib.contextmanager
def lanes(n: int) -> Iterator[LaneKit]:
    """Context manager in which numeric values that are made and operated on are vectors of `n`
    elements.

    Needs a running trace, and does not nest (ValueError).
    """
    trace = tracing.current_trace("arithmetic on vectors")
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
