"""Arithmetic of generated code: pure functions on NumPy scalars and arrays, exact to the bit.

Integers are signless and held as signed arrays; unsigned operations view them. NumPy's
floating-point warnings are off, and lanes that are masked out may hold anything.
"""

from __future__ import annotations

import functools
import math
from typing import Any

import ml_dtypes
import numpy as np

Array = Any  # a NumPy array, or a NumPy scalar for a uniform value
Mask = Any  # None: every lane; an array of booleans; False: no lane

_UNSIGNED = {np.dtype(f"i{n}"): np.dtype(f"u{n}") for n in (1, 2, 4, 8)}
_SIGNED = {unsigned: signed for signed, unsigned in _UNSIGNED.items()}
_INT_OF_SIZE = {n: np.dtype(f"i{n}") for n in (1, 2, 4, 8)}


# Lanes and masks -------------------------------------------------------------------------------


def spread(x: Array, lanes: int) -> Array:
    """A uniform scalar as one entry per lane."""
    return np.full(lanes, x, x.dtype)


def spread_vector(x: Array, lanes: int) -> Array:
    """A uniform vector `(n, 1)` as `(n, lanes)`; not to be written into."""
    return np.broadcast_to(x, (*x.shape[:-1], lanes))


def spread_tuple(x: Any, lanes: int) -> Any:
    """The members of a tuple with one entry per lane, whether uniform or not."""
    if isinstance(x, tuple):
        return tuple(spread_tuple(item, lanes) for item in x)
    if np.ndim(x) == 0:
        return spread(x, lanes)
    return spread_vector(x, lanes) if x.shape[-1] == 1 else x


def select(c: Array, a: Any, b: Any) -> Any:
    """`a` where `c` holds, `b` elsewhere; of tuples, member by member."""
    if isinstance(a, tuple):
        return tuple(select(c, x, y) for x, y in zip(a, b, strict=True))
    return np.where(c, a, b)


def split(m: Mask, c: Array, lanes: int) -> tuple[Mask, Mask]:
    """The masks of the two sides of a branch on `c` taken by the lanes in `m`."""
    if m is None:
        n = np.count_nonzero(c)
        if n == lanes:
            return None, False
        return (c, ~c) if n else (False, None)
    then = m & c
    n = np.count_nonzero(then)
    if n == 0:
        return False, m
    other = m & ~c
    return then, (other if other.any() else False)


def narrow(m: Mask, c: Array, lanes: int) -> Mask:
    """The lanes of `m` where `c` holds."""
    if m is not None:
        c = m & c
    n = np.count_nonzero(c)
    return c if 0 < n < lanes else (None if n else False)


def keep(m: Mask, new: Any, old: Any) -> Any:
    """`new` in the lanes of `m`, `old` elsewhere; `old` is None before the first time."""
    return new if m is None or old is None else select(m, new, old)


def some(x: Array, m: Mask) -> bool:
    """True if `x` holds in any active lane."""
    if m is not None:
        x = x & m
    return bool(np.any(x))


def trips(lower: Array, upper: Array, step: Array) -> Array:
    """The number of turns of a loop with these bounds, int64 per lane."""
    span = np.subtract(upper, lower, dtype=np.int64)
    step = np.maximum(step, 1).astype(np.int64)
    return np.maximum(-(-span // step), 0)


# Integers --------------------------------------------------------------------------------------


def unsigned(x: Array) -> Array:
    """The same bits as unsigned integers."""
    return x.view(_UNSIGNED[x.dtype])


def signed(x: Array) -> Array:
    """The same bits as signed integers."""
    return x.view(_SIGNED[x.dtype])


def wrap(x: Array, width: int) -> Array:
    """Sign-extend the low `width` bits."""
    shift = x.dtype.type(x.dtype.itemsize * 8 - width)
    return (x << shift) >> shift


def low_bits(x: Array, width: int) -> Array:
    """The low `width` bits, zero-extended, as an unsigned array."""
    return unsigned(x) & unsigned(x).dtype.type((1 << width) - 1)


def div_trunc(a: Array, b: Array) -> Array:
    """The quotient, rounded toward zero."""
    return (a - np.fmod(a, b)) // b


def div_ceil(a: Array, b: Array) -> Array:
    """The quotient, rounded up, of what `//` rounds down."""
    q = a // b
    return q + (q * b != a).astype(q.dtype)


def mul_extended(a: Array, b: Array) -> tuple[Array, Array]:
    """The low and high halves of the product, signed or unsigned as the operands' dtype is."""
    dtype = a.dtype
    bits = dtype.itemsize * 8
    if bits < 64:
        wide = np.dtype(f"{dtype.kind}{dtype.itemsize * 2}")
        product = a.astype(wide) * b.astype(wide)
        return product.astype(dtype), (product >> wide.type(bits)).astype(dtype)
    low = a * b
    return low, _high_64(a, b)


def _high_64(a: Array, b: Array) -> Array:
    if a.dtype.kind == "i":
        high = signed(_high_64(unsigned(a), unsigned(b)))
        zero = np.int64(0)
        return high - np.where(a < 0, b, zero) - np.where(b < 0, a, zero)
    half, low_half = np.uint64(32), np.uint64(0xFFFFFFFF)
    a0, a1, b0, b1 = a & low_half, a >> half, b & low_half, b >> half
    middle = a1 * b0 + ((a0 * b0) >> half)
    second = a0 * b1 + (middle & low_half)
    return a1 * b1 + (middle >> half) + (second >> half)


def popcount(x: Array) -> Array:
    """The number of one bits, in the type of `x`."""
    v = unsigned(x).astype(np.uint64)
    u = np.uint64
    v = v - ((v >> u(1)) & u(0x5555555555555555))
    v = (v & u(0x3333333333333333)) + ((v >> u(2)) & u(0x3333333333333333))
    v = (v + (v >> u(4))) & u(0x0F0F0F0F0F0F0F0F)
    return ((v * u(0x0101010101010101)) >> u(56)).astype(x.dtype)


def leading_zeros(x: Array) -> Array:
    """The number of zero bits above the highest one bit."""
    v = unsigned(x)
    bits = v.dtype.itemsize * 8
    shift = 1
    while shift < bits:
        v = v | (v >> v.dtype.type(shift))
        shift *= 2
    return (x.dtype.type(bits) - popcount(signed(v))).astype(x.dtype)


def trailing_zeros(x: Array) -> Array:
    """The number of zero bits below the lowest one bit."""
    one = x.dtype.type(1)
    return popcount(~x & (x - one))


def reverse_bits(x: Array) -> Array:
    """The bits in reverse order."""
    v = unsigned(x)
    t = v.dtype.type
    bits = v.dtype.itemsize * 8
    every = (1 << bits) - 1
    step = bits // 2
    mask = every
    while step:
        mask ^= (mask << step) & every
        m = t(mask)
        v = ((v >> t(step)) & m) | ((v & m) << t(step))
        step //= 2
    return signed(v)


def int_power(base: Array, exponent: Array) -> Array:
    """`base ** exponent` with wraparound; a negative exponent gives the truncated reciprocal."""
    one = base.dtype.type(1)
    result = np.full(np.broadcast(base, exponent).shape, one, base.dtype)
    factor, left = base, np.maximum(exponent, 0)
    while np.any(left > 0):
        result = np.where(left & 1, result * factor, result)
        factor = factor * factor
        left = left >> 1
    parity = np.where(exponent & 1, base, one)
    reciprocal = np.where(base == 1, one, np.where(base == -1, parity, base.dtype.type(0)))
    result = np.where(exponent < 0, reciprocal, result)
    return result if result.ndim else result[()]


# Floats ----------------------------------------------------------------------------------------


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


_HALFWAY = np.int64(1 << 28)
_BELOW = np.int64((1 << 29) - 1)
_TINY = 2.0**-126
_I64 = np.dtype(np.int64)


def fma_f32(a: Array, b: Array, c: Array) -> Array:
    """Compute a*b + c in float32, rounded once. The product is exact in float64; only a sum that
    lies halfway between two float32, or below the normal ones, needs the slower, exact way.
    """
    product = a.astype(np.float64) * b
    s = product + c
    if ((s.view(_I64) & _BELOW) == _HALFWAY).any() or (np.abs(s) < _TINY).any():
        s = _sum_to_odd(product, c.astype(np.float64))
    return s.astype(np.float32)


def _sum_to_odd(a: Array, b: Array) -> Array:
    """Compute a + b in float64, rounded to odd."""
    s = a + b
    v = s - a
    error = (a - (s - v)) + (b - v)
    bits = s.view(np.int64)
    fix = np.isfinite(s) & (error != 0) & ((bits & 1) == 0)
    step = np.where((error > 0) == (s > 0), 1, -1)
    out = np.where(fix, (bits + step).view(np.float64), s)
    return out if out.ndim else out[()]


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
    out = vh + _sum_to_odd(tl, vl)
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
    wide = _sum_to_odd(
        np.multiply(a.astype(np.float64), b.astype(np.float64)), c.astype(np.float64)
    )
    return convert(wide, a.dtype.type)


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


def wrapped(number: int, dtype: Any) -> Array:
    """Convert a Python int to a NumPy integer of type `dtype`, modulo its width."""
    bits = np.dtype(dtype).itemsize * 8
    half = 1 << (bits - 1)
    return dtype((number + half) % (2 * half) - half)


def spread_any(x: Array, lanes: int) -> Array:
    """An array with one entry per lane, whether `x` has that or is uniform."""
    return np.broadcast_to(x, (lanes,))


def everybody(lanes: int) -> Array:
    """The mask of all lanes, as an array."""
    return np.ones(lanes, np.bool_)


def nobody(lanes: int) -> Array:
    """The mask of no lane, as an array."""
    return np.zeros(lanes, np.bool_)


# Shapes ----------------------------------------------------------------------------------------


def insert(container: Any, path: tuple[int, ...], value: Any) -> Any:
    """A tuple with the member at `path` replaced."""
    first, *rest = path
    if rest:
        value = insert(container[first], tuple(rest), value)
    return (*container[:first], value, *container[first + 1 :])


def bitcast(x: Array, old: Any, new: Any, old_count: int, new_count: int) -> Array:
    """The same bits as another type; a count of 0 means a scalar. Element 0 is the lowest."""
    if np.dtype(old).itemsize == np.dtype(new).itemsize and old_count == new_count:
        return x.view(new)
    if old is np.bool_ or new is np.bool_:
        return _bitcast_bits(x, old, new, old_count, new_count)
    uniform = old_count == 0 and np.ndim(x) == 0
    rows = np.atleast_1d(x) if old_count == 0 else x.reshape(old_count, -1).T
    got = np.ascontiguousarray(rows).reshape(rows.shape[0], -1).view(new)
    if new_count == 0:
        return got[0, 0] if uniform or (got.shape[0] == 1 and x.ndim == 2) else got[:, 0]
    return got.T


def halves_of_bytes(x: Array, count: int) -> Array:
    """Split `count` i8 into twice as many i4, sign-extended, the low half of each first."""
    x = x.reshape(count, -1)
    out = np.empty((2 * count, x.shape[1]), np.int8)
    out[0::2] = sign_of_bits(x & 15, 4)
    out[1::2] = x >> 4
    return out


def bytes_of_halves(x: Array, count: int) -> Array:
    """Join `count` i4 to half as many i8: the inverse of `halves_of_bytes`."""
    x = x.view(np.int8).reshape(count, -1)
    return (x[0::2] & 15) | (x[1::2] << 4)


def sign_of_bits(x: Array, width: int) -> Array:
    """Sign-extend numbers of `width` bits to int8."""
    top = np.int8(1 << (width - 1))
    return ((x ^ top) - top).astype(np.int8)


def _bitcast_bits(x: Array, old: Any, new: Any, old_count: int, new_count: int) -> Array:
    if old is np.bool_:
        weights = (np.uint64(1) << np.arange(old_count, dtype=np.uint64))[:, None]
        total = (x.astype(np.uint64) * weights).sum(axis=0, dtype=np.uint64)
        return total.astype(f"u{np.dtype(new).itemsize}").view(new)
    bits = np.arange(new_count, dtype=x.dtype)[:, None]
    return ((np.atleast_1d(x)[None] >> bits) & 1) != 0


def funnel_l(a: Array, b: Array, amount: Array) -> Array:
    """The high word of a:b shifted left by `amount` modulo the width."""
    bits = a.dtype.itemsize * 8
    n = unsigned(amount) & unsigned(amount).dtype.type(bits - 1)
    back = unsigned(a).dtype.type(bits) - n
    return signed((unsigned(a) << n) | (unsigned(b) >> back))


def funnel_r(a: Array, b: Array, amount: Array) -> Array:
    """The low word of a:b shifted right by `amount` modulo the width."""
    bits = a.dtype.itemsize * 8
    n = unsigned(amount) & unsigned(amount).dtype.type(bits - 1)
    back = unsigned(a).dtype.type(bits) - n
    return signed((unsigned(b) >> n) | (unsigned(a) << back))


# Functions NumPy lacks -------------------------------------------------------------------------

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


def permute_bytes(low: Array, high: Array, selector: Array) -> Array:
    """Pick bytes of a register pair (PTX ISA, prmt.b32): nibble i of the selector picks byte i; its
    top bit replicates the sign.
    """
    u = np.uint64
    pair = low.view(np.uint32).astype(u) | (high.view(np.uint32).astype(u) << u(32))
    out: Any = u(0)
    for i in range(4):
        nibble = (selector.view(np.uint32).astype(u) >> u(4 * i)) & u(15)
        byte = (pair >> ((nibble & u(7)) * u(8))) & u(255)
        byte = np.where(nibble & u(8), np.where(byte & u(128), u(255), u(0)), byte)
        out = out | (byte << u(8 * i))
    return np.asarray(out).astype(np.uint32).view(np.int32)[()]


def flush(x: Array) -> Array:
    """Flush float32 subnormals to zero of the same sign (PTX ISA, .ftz); other types stay."""
    if x.dtype != np.float32:
        return x
    out: Any = np.where(np.abs(x) < np.float32(_TINY), np.copysign(np.float32(0), x), x)
    return out if out.ndim else out[()]


def clamp_unit(x: Array) -> Array:
    """Clamp to [0, 1], NaN to 0 (PTX ISA, .sat)."""
    out = np.where(x > 0, np.minimum(x, x.dtype.type(1)), x.dtype.type(0))
    return out if out.ndim else out[()]
