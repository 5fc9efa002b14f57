"""Integers and bits, which wrap as registers do."""

from __future__ import annotations

from typing import Any

import numpy as np

from basedsl_cute.sim.numerics.lanes import Array

_UNSIGNED = {np.dtype(f"i{n}"): np.dtype(f"u{n}") for n in (1, 2, 4, 8)}
_SIGNED = {unsigned: signed for signed, unsigned in _UNSIGNED.items()}


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


def wrapped(number: int, dtype: Any) -> Array:
    """Convert a Python int to a NumPy integer of type `dtype`, modulo its width."""
    bits = np.dtype(dtype).itemsize * 8
    half = 1 << (bits - 1)
    return dtype((number + half) % (2 * half) - half)


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


def _bitcast_bits(x: Array, old: Any, new: Any, old_count: int, new_count: int) -> Array:
    if old is np.bool_:
        weights = (np.uint64(1) << np.arange(old_count, dtype=np.uint64))[:, None]
        total = (x.astype(np.uint64) * weights).sum(axis=0, dtype=np.uint64)
        return total.astype(f"u{np.dtype(new).itemsize}").view(new)
    bits = np.arange(new_count, dtype=x.dtype)[:, None]
    return ((np.atleast_1d(x)[None] >> bits) & 1) != 0


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
