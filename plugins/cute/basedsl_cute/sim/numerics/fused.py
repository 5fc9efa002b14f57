"""Fused products and sums, a*b + c rounded once."""

from __future__ import annotations

import functools
import math

import numpy as np

from basedsl_cute.sim.numerics.floats import TINY, convert, sum_to_odd
from basedsl_cute.sim.numerics.lanes import Array

_HALFWAY = np.int64(1 << 28)
_BELOW = np.int64((1 << 29) - 1)
_I64 = np.dtype(np.int64)


def fma_f32(a: Array, b: Array, c: Array) -> Array:
    """Compute a*b + c in float32, rounded once. The product is exact in float64; only a sum that
    lies halfway between two float32, or below the normal ones, needs the slower, exact way.
    """
    product = a.astype(np.float64) * b
    s = product + c
    if ((s.view(_I64) & _BELOW) == _HALFWAY).any() or (np.abs(s) < TINY).any():
        s = sum_to_odd(product, c.astype(np.float64))
    return s.astype(np.float32)


def _split(a: Array) -> tuple[Array, Array]:
    big = a * 134217729.0
    high = big - (big - a)
    return high, a - high


def fma_f64(a: Array, b: Array, c: Array) -> Array:
    """Compute a*b + c in float64, rounded once (Boldo and Melquiond 2008; where a step of theirs
    may overflow or underflow, with exact fractions).
    """
    plain = a * b + c
    uh = a * b
    ah, al = _split(a)
    bh, bl = _split(b)
    ul = ((ah * bh - uh) + ah * bl + al * bh) + al * bl
    th = c + ul
    t = th - c
    tl = (c - (th - t)) + (ul - t)
    vh = uh + th
    w = vh - uh
    vl = (uh - (vh - w)) + (th - w)
    out = vh + sum_to_odd(tl, vl)
    size = np.abs(uh)
    largest = np.maximum(np.maximum(size, np.abs(a)), np.maximum(np.abs(b), np.abs(c)))
    extreme = (largest > _LARGE) | ((size < _SMALL) & (a != 0) & (b != 0))
    extreme &= np.isfinite(a) & np.isfinite(b) & np.isfinite(c)
    out = np.where(np.isfinite(out), out, plain)
    if extreme.any():
        out = np.where(extreme, _exact_fma(a, b, c, extreme), out)
    return out if out.ndim else out[()]


_SMALL, _LARGE = 2.0**-900, 2.0**990


@functools.partial(np.vectorize, otypes=[np.float64])
def _exact_fma(a: float, b: float, c: float, wanted: bool) -> float:
    from fractions import Fraction  # slow to import, and few kernels need it

    total = Fraction(a) * Fraction(b) + Fraction(c) if wanted else 0
    try:
        return float(total) if total else a * b + c  # which has the sign of a zero
    except OverflowError:
        return math.inf if total > 0 else -math.inf


def fma(a: Array, b: Array, c: Array) -> Array:
    """Compute a*b + c in the type of the operands, rounded once."""
    if a.dtype == np.float32:
        return fma_f32(a, b, c)
    if a.dtype == np.float64:
        return fma_f64(a, b, c)
    wide = sum_to_odd(np.multiply(a.astype(np.float64), b.astype(np.float64)), c.astype(np.float64))
    return convert(wide, a.dtype.type)
