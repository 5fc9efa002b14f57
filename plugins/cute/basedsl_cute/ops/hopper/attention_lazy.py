"""The softmax of 8 bits on Hopper whose bases follow the largest scores only from afar.

Where no row of a warp has a score far above its base, a thread knows that from its own scores: no
maxima are exchanged, no sums are scaled.
"""

from __future__ import annotations

import math

import basedsl_cute as cute
from basedsl_cute import arch
from basedsl_cute.ops.flash.softmax import (
    LARGEST_NARROW_BASE,
    LazySoftmax,
    compare_negative,
    largest_by_bits,
)

# The largest weight is at most 448, that is two to the power of 8.8, of which a rounded base takes
# a half.
MOST_EXPONENT = 8.3


class NarrowLazySoftmax(LazySoftmax):
    """A lazy softmax for weights of 8 bits: `scales` are what the rows' sums are scaled by, and
    `has_risen` says if they are other than 1 in the warp, after `rise`.
    """

    def __init__(self, rows, factor, slack):
        super().__init__(rows, factor, slack, [])
        self.offset = math.floor(MOST_EXPONENT - slack)
        self.largest_base = LARGEST_NARROW_BASE
        self.scales = cute.make_rmem_tensor((rows,), cute.Float32)
        self.has_risen = cute.Boolean(False)

    def rise(self, scores):
        """Let bases follow the scores of a tile; return what sums are scaled by, and each row's
        factor of scores and base (see `OnlineSoftmax.rise`).
        """
        rows = range(cute.size(self.bases))
        found = cute.make_rmem_tensor((len(rows),), cute.Float32)
        largest_by_bits(scores, found, [scores[r, 0] for r in rows])
        bits = cute.recast_tensor(found, cute.Int32)
        above, least = -cute.Float32.inf, cute.Int32(0)
        for r in rows:
            above = arch.fmax(above, found[r] * self.factors[r] - self.bases[r])
            least = cute.min(least, bits[r])
        # Bits of negative scores do not tell the largest.
        self.has_risen = arch.vote_any_sync((above > self.slack) | (least < 0))
        self.scales.fill(1.0)
        self.raise_where_needed(scores, found, self.has_risen)
        exponents = [(self.factors[r], self.bases[r] - self.offset) for r in rows]
        return [self.scales[r] for r in rows], exponents

    @cute.jit
    def raise_where_needed(self, scores, found, is_needed):
        """Raise the bases of rows whose largest score is above theirs, if it `is_needed`; `found`
        are a thread's largest ones by their bits.
        """
        if is_needed:
            rows = cute.size(self.bases)
            compare_negative(scores, found, [-cute.Float32.inf] * rows)
            for r in cute.range_constexpr(rows):
                self.scales[r] = self.raise_base(r, found[r])
