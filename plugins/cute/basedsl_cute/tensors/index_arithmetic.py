"""Arithmetic of the layout algebra on traced integers. Coordinates are not negative, so `//` and
`%` become one unsigned operation (a shift or mask for powers of two), not a floor sequence.
"""

from __future__ import annotations

from typing import Any

from basedsl import TYPES, Int32, Int64, Integer, Numeric, current_trace, is_dynamic, minimum
from basedsl_cute.algebra import dynamic


def _unsigned(x: Any, width: int) -> Any:
    kind = TYPES[f"Uint{width}"]
    return x.to(kind) if isinstance(x, Numeric) else kind.concrete(x)


def _width(a: Any, b: Any) -> int:
    widths = [x.width for x in (a, b) if isinstance(x, Numeric)]
    literals = [x for x in (a, b) if not isinstance(x, Numeric)]
    return max([32, *widths, *(64 for n in literals if not -(2**31) <= n < 2**31)])


def _divided(op: str, a: Any, b: Any) -> Any:
    width = _width(a, b)
    signed: Any = Int32 if width == 32 else Int64
    x, y = _unsigned(a, width), _unsigned(b, width)
    if is_dynamic(y):
        # Divisors are extents. At 0 there are no coordinates, so any result is right, but no trap.
        trace = current_trace("arithmetic on coordinates")
        least = type(y).concrete(1).ir_value()
        divisor = trace.emit_op("arith.maxui", least.type, y.ir_value(), least)
        return signed.from_value(trace.emit_op(op, least.type, x.ir_value(), divisor))
    return (x // y if op == "arith.divui" else x % y).to(signed)


def floordiv(a: Any, b: Any) -> Any:
    """The quotient `a // b` of integers that are not negative."""
    return _divided("arith.divui", a, b)


def mod(a: Any, b: Any) -> Any:
    """The remainder `a % b` of integers that are not negative."""
    return _divided("arith.remui", a, b)


def as_int(x: Any) -> Any:
    """A known integer as a Python int; anything else as it is."""
    return int(x.value) if isinstance(x, Integer) and not is_dynamic(x) else x


def install() -> None:
    """Register this arithmetic with the layout algebra, for all integer types."""
    for kind in TYPES.values():
        if kind.is_integer:
            dynamic.use_for(kind, dynamic.Arithmetic(floordiv, mod, minimum))


install()
