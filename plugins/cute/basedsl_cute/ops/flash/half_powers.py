"""Weights of 8 bits as powers of two of exponents in half precision, without exponentials.

The bits of a positive half, as an integer, are 1,024 times the logarithm of its number, on straight
lines between powers of two: an exponent times 1,024 as bits is its power, at most 6 % too large.
Where that of one exponent is most off, that of another one, half a step away, is exact: the sum of
both is off by 0.55 % (root mean square), a fifth of what rounding to Float8E4M3FN adds. Two weights
take six instructions, of which four are not the arithmetic unit's for integers and conversions,
where two exponentials take as long as sixteen.

One line alone is 2 % off, which adds a fifth to the error of Float8E4M3FN: for a part of the
weights, it takes a third of the instructions away.
"""

from __future__ import annotations

from typing import Any

import basedsl_cute as cute
from basedsl_cute import arch

STEPS = 64  # of an exponent: as integers below 2^11, which halves next to zero have as their bits
UNIT = 2.0**-24  # the smallest half
# Zero stands for 2^LEAST, the smallest normal half. An exponent of zero has ZERO steps: 14 less the
# one that the sum doubles by, and less what straight lines are too large by.
LEAST, ZERO = -14, 826
LINE_ZERO = 892  # the same of one line, which no sum doubles
# About 2^-1/2. With ZERO, the mean error is nothing, and that of Float8E4M3FN the least (tried).
ROOT = 0.7421875


def half_words(number: float) -> int:
    """The bits of two halves that are both `number`."""
    import numpy as np

    return int(np.float16(number).view(np.uint16)) * 0x10001


def steps_of(exponents: Any, zero: int) -> Any:
    """Whole steps from LEAST on of two exponents, halves; zero has `zero` of them."""
    # `.sat` makes zeros of what is below, and of NaN.
    text = "fma.rn.sat.f16x2 $0, $1, $2, $3;"
    given = [exponents, half_words(STEPS * UNIT), half_words(zero * UNIT)]
    return arch.inline_ptx(text, given, cute.Int32)


def powers_in_halves(exponents: Any) -> Any:
    """Two to the powers of two exponents, as the bits of two halves, from those of two halves.

    Exponents below -13, -inf and NaN become 2^-13, which is zero as a Float8E4M3FN; the largest may
    be 17.
    """
    # A step is 1024 / STEPS of a half's bits, of which 2^LEAST has 1 << 10. As text, since LLVM
    # would add to the shifted steps twice, which takes an instruction more.
    text = (
        f"{{ .reg .b32 p, q; mad.lo.u32 p, $1, {1024 // STEPS}, {0x10001 << 10}; "
        f"add.u32 q, p, {0x10001 << 9}; fma.rn.f16x2 $0, q, $2, p; }}"
    )
    return arch.inline_ptx(text, [steps_of(exponents, ZERO), half_words(ROOT)], cute.Int32)


def powers_by_a_line(exponents: Any) -> Any:
    """Two to the powers of two exponents as `powers_in_halves`, by one straight line: at most 6 %
    off. Exponents below -14 become 2^-14.
    """
    text = f"mad.lo.u32 $0, $1, {1024 // STEPS}, {0x10001 << 10};"
    return arch.inline_ptx(text, [steps_of(exponents, LINE_ZERO)], cute.Int32)


def narrow_in_halves(exponents: Any, weights: Any, powers: Any = powers_in_halves) -> None:
    """Store two to the powers of a vector of Float32 into `weights` of Float8E4M3FN, as many, in
    registers, by `powers` of two halves.
    """
    halves: Any = cute.make_rmem_tensor((cute.size(weights),), cute.Float16)
    halves.store(exponents.to(cute.Float16).reshape(halves.shape))
    words, made = cute.recast_tensor(halves, cute.Int32), cute.recast_tensor(weights, cute.Int32)
    text = (
        "{ .reg .b16 low, high; cvt.rn.satfinite.e4m3x2.f16x2 low, $1; "
        "cvt.rn.satfinite.e4m3x2.f16x2 high, $2; mov.b32 $0, {low, high}; }"
    )
    for i in range(cute.size(made)):
        two = [powers(words[2 * i + k]) for k in range(2)]
        made[i] = arch.inline_ptx(text, two, cute.Int32)
