"""The softmax of 8 bits on Hopper whose bases follow the largest scores only from afar.

Where no row of a warp has a score above its base, a thread knows that from its own scores: no
maxima are exchanged, no sums are scaled.
"""

from __future__ import annotations

import basedsl_cute as cute
from basedsl_cute import arch
from basedsl_cute.ops.flash.softmax import (
    LARGEST_NARROW_BASE,
    LazySoftmax,
    compare_negative,
    factor_and_base,
    largest_by_bits,
)

MOST_SLACK = 8.0


class NarrowLazySoftmax(LazySoftmax):
    """A lazy softmax for weights of 8 bits, which are at most two to the power of `offset`.

    Bases are raised to so much above the largest score as an exponent that it takes some tiles
    until one is above them: of `slack`, steps (first key, exponent), the first few keys have more
    than those behind, since the largest score of a row's first keys is soon exceeded, and what few
    keys lose by weights that become zero is little. Where a step begins bases are found anew.
    `scales` are what the rows' sums are scaled by, and `has_risen` says if they are other than 1 in
    the warp, after `rise`, which is for each tile of `keys` keys.
    """

    def __init__(self, rows, factor, slack, keys, offset):
        self.scales = cute.make_rmem_tensor((rows,), cute.Float32)
        self.has_risen = cute.Boolean(False)
        # Steps begin with whole tiles, in the order of their numbers.
        self.steps = {-(-first // keys): exponent for first, exponent in slack}
        self.tile = cute.Int32(0)
        super().__init__(rows, factor, None, [])
        self.offset, self.largest_base = offset, LARGEST_NARROW_BASE

    def begin(self):
        """Begin other rows; see `OnlineSoftmax.begin`."""
        super().begin()
        self.largest.fill(self.lowest())
        self.tile = cute.Int32(0)

    def rise(self, scores):
        """Let bases follow the scores of a tile; return what sums are scaled by, and each row's
        factor of scores and base (see `OnlineSoftmax.rise`).
        """
        rows = range(cute.size(self.bases))
        before = [self.largest[r] for r in rows]
        largest_by_bits(scores, self.largest, before)
        bits = cute.recast_tensor(self.largest, cute.Int32)
        is_needed, least = cute.Boolean(False), cute.Int32(0)
        for r in rows:
            above = self.largest[r] * self.factors[r] - self.bases[r]
            # Of NaN, too, which becomes the base: not all kinds of weights have it.
            is_needed = is_needed | (above > 0.0) | (above != above)
            least = cute.min(least, bits[r])
        # Bits of negative scores do not tell the largest.
        is_needed = is_needed | (least < 0)
        for first in self.steps:
            if first:
                is_needed = is_needed | (self.tile == first)
        self.has_risen = arch.vote_any_sync(is_needed)
        self.scales.fill(1.0)
        self.find_bases(scores, before, self.has_risen)
        self.tile = self.tile + 1
        exponents = [(self.factors[r], self.bases[r] - self.offset) for r in rows]
        return [self.scales[r] for r in rows], exponents

    @cute.jit
    def find_bases(self, scores, before, is_needed):
        """Find the bases of rows anew, if it `is_needed`: above the largest scores so far, which
        were those of `before` ahead of this tile.
        """
        if is_needed:
            found = [self.largest[r] for r in range(cute.size(self.bases))]
            compare_negative(scores, self.largest, before)
            slack = cute.Float32(0.0)
            for first, exponent in self.steps.items():
                slack = cute.where(self.tile >= first, cute.Float32(exponent), slack)
            for r in cute.range_constexpr(cute.size(self.bases)):
                largest = largest_or_nan(self.largest[r], found[r])
                largest = arch.warp_reduction(largest, largest_or_nan, threads_in_group=4)
                factor, base = factor_and_base(largest, self.factor, self.largest_base)
                base = base + slack
                # Of rows that saw nothing two lowest bases may differ by what they are rounded by.
                change = self.bases[r] - base
                change = cute.where(change > MOST_SLACK, MOST_SLACK, change)
                self.scales[r] = cute.math.exp2(change, fastmath=True)
                self.total[r] = self.total[r] * self.scales[r]
                self.largest[r], self.factors[r], self.bases[r] = largest, factor, base


def largest_or_nan(a, b):
    """The larger of two numbers, or NaN if one is."""
    return cute.where((a > b) | (a != a), a, b)
