"""Sums and products of float32 rounded in a direction: "rz" toward zero, "rm" down, "rp" up (PTX
ISA, "Floating-Point Rounding Modifiers").
"""

from __future__ import annotations

import numpy as np

from basedsl_cute.sim.numerics.floats import sum_to_odd
from basedsl_cute.sim.numerics.lanes import Array


def toward(x: Array, mode: str) -> Array:
    """Round float64, exact or rounded to odd, to float32 in the direction `mode`."""
    near = x.astype(np.float32)
    back = near.astype(np.float64)
    too_high, too_low = back > x, back < x
    if mode == "rz":
        too_high, too_low = too_high & (x > 0), too_low & (x < 0)
    down, up = (np.nextafter(near, np.float32(end)) for end in (-np.inf, np.inf))
    out = np.where(too_high & (mode != "rp"), down, near)
    return np.where(too_low & (mode != "rm"), up, out)


def add(a: Array, b: Array, mode: str) -> Array:
    """Compute a + b."""
    return _sum(a.astype(np.float64), b.astype(np.float64), mode)


def multiply(a: Array, b: Array, mode: str) -> Array:
    """Compute a * b."""
    return toward(a.astype(np.float64) * b, mode)  # exact in float64


def fma(a: Array, b: Array, c: Array, mode: str) -> Array:
    """Compute a * b + c, rounded once."""
    return _sum(a.astype(np.float64) * b, c.astype(np.float64), mode)


def _sum(a: Array, b: Array, mode: str) -> Array:
    out = toward(sum_to_odd(a, b), mode)
    if mode != "rm":
        return out
    # A sum that is zero is -0 then, unless both are +0.
    negative = (out == 0) & (np.signbit(a) | np.signbit(b))
    return np.where(negative & (a + b == 0), np.float32(-0.0), out)
