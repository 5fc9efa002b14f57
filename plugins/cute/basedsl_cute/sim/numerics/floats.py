"""Floats: conversions, comparisons and functions, rounded as PTX rounds them."""

from __future__ import annotations

import math
from typing import Any

import ml_dtypes
import numpy as np

from basedsl_cute.sim.numerics.lanes import Array

_INT_OF_SIZE = {n: np.dtype(f"i{n}") for n in (1, 2, 4, 8)}


def _bits(x: Array) -> Array:
    return x.view(_INT_OF_SIZE[x.dtype.itemsize])


def _ties(a: Array, b: Array, picked: Array, both_bits: Any) -> Array:
    if not (picked == 0).any():  # only zeros are equal with different bits
        return picked
    out = np.where(a == b, both_bits(_bits(a), _bits(b)).view(a.dtype), picked)
    return out if out.ndim else out[()]


def maximum(a: Array, b: Array) -> Array:
    """The larger operand, NaN if either is NaN; -0 < +0."""
    return _ties(a, b, np.maximum(a, b), np.bitwise_and)


def minimum(a: Array, b: Array) -> Array:
    """The smaller operand, NaN if either is NaN; -0 < +0."""
    return _ties(a, b, np.minimum(a, b), np.bitwise_or)


def maxnum(a: Array, b: Array) -> Array:
    """The larger operand, the other if one is NaN; -0 < +0 (PTX ISA, max)."""
    return _ties(a, b, np.fmax(a, b), np.bitwise_and)


def minnum(a: Array, b: Array) -> Array:
    """The smaller operand, the other if one is NaN; -0 < +0 (PTX ISA, min)."""
    return _ties(a, b, np.fmin(a, b), np.bitwise_or)


def to_odd_f32(x: Array) -> Array:
    """Round float64 to float32, to odd: rounding once more then gives what rounding once does."""
    near = x.astype(np.float32)
    back = near.astype(np.float64)
    inexact = np.isfinite(x) & (back != x) & ((near.view(np.int32) & 1) == 0)
    # From an even neighbour step toward x: one unit away from zero or toward it.
    away = np.abs(x) > np.abs(back)
    stepped = (near.view(np.int32) + np.where(away, 1, -1).astype(np.int32)).view(np.float32)
    out = np.where(inexact, stepped, near)
    return out if out.ndim else out[()]


def convert(x: Array, dtype: Any) -> Array:
    """Convert between float types, rounded once to nearest even."""
    if x.dtype == np.float64 and np.dtype(dtype).itemsize <= 2 and dtype is not np.float16:
        x = to_odd_f32(x)
    return x.astype(dtype)


def convert_saturated(x: Array, dtype: Any) -> Array:
    """Convert to a float of 8 bits or fewer: overflow and infinity give the largest finite value,
    and so does NaN where the format has none (PTX ISA, cvt with .satfinite).
    """
    x = x.astype(np.float32) if x.dtype.itemsize < 8 else to_odd_f32(x)
    info: Any = ml_dtypes.finfo(dtype)  # type: ignore[no-untyped-call]
    top = np.float32(info.max)
    least = np.float32(info.smallest_normal) if dtype is ml_dtypes.float8_e8m0fnu else -top
    no_nan = np.dtype(dtype) in _WITHOUT_NAN
    clipped = np.where(np.isnan(x), top if no_nan else x, np.clip(x, least, top))
    return clipped.astype(np.float32)[()].astype(dtype)


_WITHOUT_NAN = {
    np.dtype(t) for t in (ml_dtypes.float6_e2m3fn, ml_dtypes.float6_e3m2fn, ml_dtypes.float4_e2m1fn)
}


def to_tf32(x: Array) -> Array:
    """Round float32 to 10 mantissa bits, to nearest even."""
    bits = x.view(np.uint32)
    u = np.uint32
    rounded = (bits + u(0xFFF) + ((bits >> u(13)) & u(1))) & u(0xFFFFE000)
    out = np.where(np.isfinite(x), rounded.view(np.float32), x)
    return out if out.ndim else out[()]


def float_to_int(x: Array, dtype: Any, low: int, high: int) -> Array:
    """Convert toward zero to integers from `low` to `high`, saturating; NaN gives 0 (PTX ISA,
    cvt.rzi; it says so of 32 bits and fewer).
    """
    wide = x.astype(np.float64) if x.dtype.itemsize < 8 else x
    t = np.trunc(wide)
    limit = np.dtype(dtype)
    inside = (t >= low) & (t <= high) if high < 2**53 else (t >= low) & (t < float(high + 1))
    exact = np.where(inside, t, 0.0).astype(np.uint64 if high >= 2**63 else np.int64)
    out = np.where(t > 0, limit.type(high), limit.type(low)) if limit.kind == "i" else None
    if out is None:
        out = np.where(t > 0, np.uint64(high), np.uint64(low))
    out = np.where(inside, exact.astype(limit), out.astype(limit))
    out = np.where(np.isnan(wide), limit.type(0), out)
    return out if out.ndim else out[()]


TINY = 2.0**-126  # the least normal float32


def sum_to_odd(a: Array, b: Array) -> Array:
    """Compute a + b in float64, rounded to odd."""
    s = a + b
    v = s - a
    error = (a - (s - v)) + (b - v)
    bits = s.view(np.int64)
    fix = np.isfinite(s) & (error != 0) & ((bits & 1) == 0)
    step = np.where((error > 0) == (s > 0), 1, -1)
    out = np.where(fix, (bits + step).view(np.float64), s)
    return out if out.ndim else out[()]


def in_f32(function: Any, *args: Array) -> Array:
    """Compute `function` of floats narrower than 32 bits in float32, and round the result back."""
    dtype = args[0].dtype
    if dtype in (np.float32, np.float64):
        return function(*args)
    return convert(function(*(arg.astype(np.float32) for arg in args)), dtype.type)


def int_to_narrow(x: Array, dtype: Any) -> Array:
    """Convert integers to a float narrower than 32 bits, rounded once."""
    wide = x.astype(np.float64)
    if x.dtype.itemsize == 8:  # float64 rounds: make it sticky first
        low = x - (x & x.dtype.type(0x7FF))
        sticky = ((x & x.dtype.type(0x7FF)) != 0).astype(np.float64)
        big = np.abs(wide) >= 2.0**53
        wide = np.where(big, low.astype(np.float64) + sticky * 1024.0, wide)
        wide = wide if wide.ndim else wide[()]
    return convert(wide, dtype)


_erf = np.frompyfunc(math.erf, 1, 1)
_erfc = np.frompyfunc(math.erfc, 1, 1)


def erf(x: Array) -> Array:
    """The error function, computed in float64."""
    return np.asarray(_erf(x.astype(np.float64)), np.float64).astype(x.dtype)[()]


def erfc(x: Array) -> Array:
    """The complementary error function, computed in float64."""
    return np.asarray(_erfc(x.astype(np.float64)), np.float64).astype(x.dtype)[()]


def exp10(x: Array) -> Array:
    """10 to the power `x`."""
    return np.power(x.dtype.type(10), x)


def rsqrt(x: Array) -> Array:
    """The reciprocal of the square root, computed in float64."""
    wide = 1.0 / np.sqrt(x.astype(np.float64))
    return wide.astype(x.dtype)


def round_away(x: Array) -> Array:
    """Round to the nearest integer, halves away from zero; keeps the sign of zero."""
    whole = np.trunc(x)
    up = np.abs(x - whole) >= 0.5
    return np.copysign(np.abs(whole) + up.astype(x.dtype), x)


def float_power(base: Array, exponent: Array) -> Array:
    """`base` to an integer power."""
    return np.power(base, exponent.astype(base.dtype))


def absolute(x: Array) -> Array:
    """The absolute value: clears the sign bit, of NaN too."""
    bits = _bits(x)
    return (bits & bits.dtype.type(np.iinfo(bits.dtype).max)).view(x.dtype)


def copysign(x: Array, sign: Array) -> Array:
    """`x` with the sign bit of `sign`, of NaN too."""
    low = _bits(x).dtype.type(np.iinfo(_bits(x).dtype).max)
    return ((_bits(x) & low) | (_bits(sign) & ~low)).view(x.dtype)


def is_normal(x: Array) -> Array:
    """True for finite numbers that are neither zero nor subnormal."""
    return np.isfinite(x) & (np.abs(x) >= ml_dtypes.finfo(x.dtype).tiny)  # type: ignore[no-untyped-call]


def to_tf32_away(x: Array) -> Array:
    """Round float32 to 10 mantissa bits, halves away from zero (PTX ISA, cvt.rna.tf32.f32)."""
    rounded = ((x.view(np.uint32) + np.uint32(0x1000)) & np.uint32(0xFFFFE000)).view(np.float32)
    out = np.where(np.isfinite(x), rounded, x)
    return out if out.ndim else out[()]


def flush(x: Array) -> Array:
    """Flush float32 subnormals to zero of the same sign (PTX ISA, .ftz); other types stay."""
    if x.dtype != np.float32:
        return x
    out: Any = np.where(np.abs(x) < np.float32(TINY), np.copysign(np.float32(0), x), x)
    return out if out.ndim else out[()]


def clamp_unit(x: Array) -> Array:
    """Clamp to [0, 1], NaN to 0 (PTX ISA, .sat)."""
    out = np.where(x > 0, np.minimum(x, x.dtype.type(1)), x.dtype.type(0))
    return out if out.ndim else out[()]
