"""Contraction: `a * b + c` of floats as one operation, which rounds once.

It happens while tracing, and only where the emitter asks for it (`Kit.contracts`), so every target
of a trace computes the same bits. A product that other operations use as well stays for them.
"""

from __future__ import annotations

from basedsl.numeric.kit import Kit, Value

SUMS = ("arith.addf", "arith.subf")


def fused(kit: Kit, name: str, a: Value, b: Value) -> Value | None:
    """Emit `a + b` or `a - b` (`name` is one of `SUMS`) as a math.fma if a summand is a product;
    None if neither is. Of two products the left one is fused.
    """
    negative = name == "arith.subf"
    factors = _factors(a)
    if factors is not None:
        return kit.op("math.fma", a.type, *factors, _negated(kit, b) if negative else b)
    factors = _factors(b)
    if factors is None:
        return None
    x, y = factors
    return kit.op("math.fma", b.type, _negated(kit, x) if negative else x, y, a)


def _factors(value: Value) -> tuple[Value, Value] | None:
    owner = value.owner
    if getattr(owner, "name", None) != "arith.mulf":  # blocks own their arguments
        return None
    x, y = owner.operands
    return x, y


def _negated(kit: Kit, value: Value) -> Value:
    return kit.op("arith.negf", value.type, value)
