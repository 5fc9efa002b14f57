"""The softmax of rows that come tile by tile, and how accumulators of mma.sync and wgmma lie.

The algorithm is that of FlashAttention (Dao and others, arXiv 2205.14135): with each tile the
largest score and the sum of a row are updated, and what was summed so far is scaled.
"""

from __future__ import annotations

import enum
from typing import Any

import basedsl_cute as cute
from basedsl_cute import arch
from basedsl_cute.ops.flash.variant import LN_2

# 2^x for x from -1/2 to 1/2, with a relative error of 0.0017 (minimax, by Lawson's iteration).
POWER = (1.00044336, 0.70345016, 0.23842812)
# A Float32 of at most 2^22 plus this is rounded to an integer, in the low bits, plus 127.
ROUND = 1.5 * 2**23 + 127
LEAST = -100.0
# The base of a row's exponents is rounded, so that the largest weight may be two to the power of
# plus or minus half the distance of Float32 numbers of that size: of those below, at most 2^4 times
# and 2^0.5 times what it should be. Weights of 16 bits have room for that, and those of 8 bits.
LARGEST_BASE, LARGEST_NARROW_BASE = 2.0**27, 2.0**24
LOWEST = -(2.0**127)  # scores below, or below it when scaled, are as if hidden


class Powers(enum.Enum):
    """The ways in which exponents become powers of two: by the unit for exponentials, by
    multiplications (`powers`), or with the conversion to 8 bits by two straight lines in half
    precision or by one (`ops.flash.half_powers`).
    """

    UNIT = enum.auto()
    PRODUCTS = enum.auto()
    HALVES = enum.auto()
    LINE = enum.auto()

    @property
    def converts(self) -> bool:
        """True if powers are made with the conversion."""
        return self in (Powers.HALVES, Powers.LINE)


def as_rows(acc):
    """The accumulator ((2, 2, N/8), M, N) of a thread as a matrix of its rows and columns."""
    (columns, rows, *more), m, n = acc.layout.shape
    (step_columns, step_rows, *step_more), step_m, step_n = acc.layout.stride
    return cute.make_tensor(
        acc.iterator,
        cute.make_layout(
            ((rows, m), (columns, *more, n)),
            stride=((step_rows, step_m), (step_columns, *step_more, step_n)),
        ),
    )


def as_operand(acc):
    """The converted accumulator of a product by mma.sync as the operand A of the next one."""
    divided = cute.logical_divide(acc.layout, (None, None, 2))
    (v, m, (two, n)), (step_v, step_m, (step_two, step_n)) = divided.shape, divided.stride
    return cute.make_tensor(
        acc.iterator,
        cute.make_layout(((v, two), m, n), stride=((step_v, step_two), step_m, step_n)),
    )


def as_wgmma_operand(acc):
    """The converted accumulator of a product by wgmma as the operand A of the next one."""
    divided = cute.logical_divide(acc.layout, ((None, None, 2), None, None))
    ((a, b, (two, blocks)), m, n), ((da, db, (d2, dn)), dm, step_n) = divided.shape, divided.stride
    return cute.make_tensor(
        acc.iterator,
        cute.make_layout(((a, b, two), m, (blocks, n)), stride=((da, db, d2), dm, (dn, step_n))),
    )


def narrow_weights(scores, dtype):
    """The accumulator `scores` in the order of converted weights of 8 bits, their registers, and
    these as the operand A of the next product by wgmma.

    A thread has pairs of consecutive columns of an accumulator, but four consecutive ones of the
    operand: of each 16 keys, number 4 t + i of the operand is key 2 t + i % 2 + 8 (i // 2). The
    values have the same order (`ops.flash.turn`).
    """
    (columns, rows, blocks), m, _ = scores.layout.shape
    halves = blocks // 4
    ordered = cute.make_layout((columns, 2, rows, 2, halves), stride=(1, 4, 2, 8, 16))
    made = cute.make_rmem_tensor((cute.size(scores),), dtype)
    layout = cute.make_layout(((4, rows, 2), m, halves), stride=((1, 4, 8), 0, 16))
    operand = cute.make_tensor(made.iterator, layout)
    return cute.make_tensor(scores.iterator, ordered), made, operand


def blocks_of(acc, first, last):
    """Blocks `first` to before `last`, of eight columns each, of an accumulator of wgmma."""
    (columns, rows, _), m, n = acc.layout.shape
    stride = acc.layout.stride
    layout = cute.make_layout(((columns, rows, last - first), m, n), stride=stride)
    return cute.make_tensor(acc.iterator + first * stride[0][2], layout)


def gather_columns(values, lane):
    """Exchange the 16-bit elements of a row among the four threads that share it, in place.

    A thread comes with pairs of columns, of each block of eight its own; it leaves with blocks of
    eight columns: number i of its vectors of eight is block 4 i + lane % 4.
    """
    words = cute.recast_tensor(values, cute.Int32)
    for step in (1, 2):
        is_upper = lane & step != 0
        for first in range(0, cute.size(words), 4):
            for i in (first, first + 3 - step):
                low, high = words[i], words[i + step]
                other = arch.shuffle_sync_bfly(cute.where(is_upper, low, high), step)
                words[i] = cute.where(is_upper, other, low)
                words[i + step] = cute.where(is_upper, high, other)


def scale_rows(sums, scales):
    """Multiply each of a thread's rows by its number."""
    for r, scale in enumerate(scales):
        sums[r, None].store(sums[r, None].load() * scale)


def powers(exponents):
    """Two to the powers of a vector of Float32, by multiplications and additions, with an error of
    a 500th: a 30th of what rounding to Float8E4M3FN adds. Less than -100 is -100.
    """
    kept: Any = cute.make_rmem_tensor(exponents.shape, cute.Float32)
    exponents = cute.where(exponents < LEAST, LEAST, exponents)
    kept.store(exponents + ROUND)
    rest = exponents - (kept.load() - ROUND)
    steps: Any = cute.recast_tensor(kept, cute.Int32)
    steps.store(steps.load() << 23)
    return (POWER[0] + rest * (POWER[1] + rest * POWER[2])) * kept.load()


def power_of_two_from(x):
    """The smallest power of two that is at least a positive Float32, but at most 2^126."""
    bits = cute.TensorSSA.from_elements([x]).bitcast(cute.Int32)[0]
    power = cute.min((bits + 0x007FFFFF) & 0x7F800000, 0x7E800000)
    return cute.TensorSSA.from_elements([power]).bitcast(cute.Float32)[0]


def factor_and_base(largest, factor, largest_base):
    """The factor of a row's scores, which makes them exponents of two, and their base, so that the
    exponent of the largest is about zero.

    Of a base above `largest_base`, whose rounding tells, the factor becomes a power of two: then
    the exponent of the largest score is exactly zero. Two scores of that size that differ do so by
    an exponent of 8 (of 8 bits, 1) or more, and a larger factor only takes them further apart.
    """
    is_large = cute.math.absf(largest * factor) > largest_base
    factor = cute.where(is_large, power_of_two_from(factor), factor)
    return factor, largest * factor


def largest_by_bits(scores, found, before):
    """Find the largest of a thread's own scores of each row and of a number `before`, by their bits
    as signed integers, of which Hopper compares three at a time, where it has two numbers. It is
    the largest unless it is negative.
    """
    bits = cute.recast_tensor(found, cute.Int32)
    for r, largest in enumerate(before):
        own = cute.recast_tensor(scores[r, None], cute.Int32)
        # Two chains, each of which takes two numbers at a time.
        tops = [cute.TensorSSA.from_elements([largest]).bitcast(cute.Int32)[0], own[0]]
        for i in range(1, cute.size(own)):
            tops[i // 2 % 2] = cute.max(tops[i // 2 % 2], own[i])
        bits[r] = cute.max(tops[0], tops[1])


@cute.jit
def compare_negative(scores, found, before):
    """Find the largest of a thread's own scores again, as numbers, if any thread of the warp has
    found a negative one by its bits: of those the least has the largest bits.
    """
    bits = cute.recast_tensor(found, cute.Int32)
    least = cute.Int32(0)
    for r in cute.range_constexpr(len(before)):
        least = cute.min(least, bits[r])
    if arch.vote_any_sync(least < 0):
        for r in cute.range_constexpr(len(before)):
            found[r] = scores[r, None].load().reduce(cute.ReductionOp.MAX, before[r], 0)


def largest_of_rows(scores, largest):
    """The largest of each row's scores and its largest so far, of all threads that share it."""
    return [
        arch.warp_reduction_max(
            scores[r, None].load().reduce(cute.ReductionOp.MAX, largest[r], 0), threads_in_group=4
        )
        for r in range(cute.size(largest))
    ]


def distance(x, base):
    """x - base, which is 0 where they are equal: contracted with the product that made `x`, the
    difference would be what the product was rounded by. Of infinities it is not a number.
    """
    return cute.where(x == base, x * 0.0, x - base)


class OnlineSoftmax:
    """The largest score and the sum of weights of each of a thread's rows.

    Four neighbouring threads share a row. `factor` makes scores into exponents of two. Weights are
    multiplied by two to the power of `offset`, for types of few exponents. The largest scores are
    found `by_bits` (`largest_by_bits`), or as numbers.
    """

    def __init__(self, rows, factor, offset=0, by_bits=False):
        self.factor, self.offset, self.by_bits = factor, offset, by_bits
        self.largest_base = LARGEST_NARROW_BASE if offset else LARGEST_BASE
        self.largest = cute.make_rmem_tensor((rows,), cute.Float32)
        self.total = cute.make_rmem_tensor((rows,), cute.Float32)
        self.begin()

    def begin(self):
        """Begin other rows."""
        self.largest.fill(self.lowest())
        self.total.fill(0.0)

    def lowest(self):
        """The largest score of rows that saw nothing. It is finite, and so is its base: the weight
        of a hidden score is exp2(-inf) then, not NaN.
        """
        above = power_of_two_from(self.factor)
        return LOWEST * arch.fmin(1.0, arch.rcp_approx(above))

    def update(self, scores, is_summed=True):
        """Make a tile's scores into weights; return what each row's sum of values is scaled by."""
        scales, exponents = self.rise(scores)
        self.weigh(scores, exponents, is_summed=is_summed)
        return scales

    def _largest(self, scores):
        """The largest of each row's scores and its largest so far, of all threads that share it."""
        if not self.by_bits:
            return largest_of_rows(scores, self.largest)
        rows = range(cute.size(self.largest))
        found = cute.make_rmem_tensor((len(rows),), cute.Float32)
        before = [self.largest[r] for r in rows]
        largest_by_bits(scores, found, before)
        compare_negative(scores, found, before)
        return [arch.warp_reduction_max(found[r], threads_in_group=4) for r in rows]

    def rise(self, scores):
        """Let the largest scores be those of a tile, too; return what each row's sums are scaled
        by, which that of weights is already, and for the exponents of its weights the factor of
        scores and the base.
        """
        scales, exponents = [], []
        for r, largest in enumerate(self._largest(scores)):
            factor, base = factor_and_base(largest, self.factor, self.largest_base)
            scale = cute.math.exp2((self.largest[r] - largest) * factor, fastmath=True)
            self.total[r] = self.total[r] * scale
            self.largest[r] = largest
            scales.append(scale)
            exponents.append((factor, base - self.offset if self.offset else base))
        return scales, exponents

    def weigh(self, scores, exponents, kind=Powers.UNIT, is_summed=True, first=0):
        """Make scores, all of a tile or some columns, into weights, and add them to the sums unless
        `is_summed` is False. `exponents` has each row's factor and base, of rows from `first` on.
        Of those to be made with the conversion, exponents are all that is found here.
        """
        for r, (factor, base) in enumerate(exponents):
            exponents = scores[r, None].load() * factor - base
            if kind.converts:
                scores[r, None].store(exponents)
                continue
            if kind is Powers.PRODUCTS:
                weights = powers(exponents)
            else:
                weights = cute.math.exp2(exponents, fastmath=True)
            if is_summed:
                total = self.total[first + r]
                self.total[first + r] = weights.reduce(cute.ReductionOp.ADD, total, 0)
            scores[r, None].store(weights)

    def join(self, row, others):
        """Let a row be that of several softmaxes, of each the largest score and the sum of weights;
        return what their sums of values are scaled by.
        """
        largest = others[0][0]
        for other, _ in others[1:]:
            largest = arch.fmax(largest, other)
        factor, _ = factor_and_base(largest, self.factor, self.largest_base)
        scales = [cute.math.exp2((one - largest) * factor, fastmath=True) for one, _ in others]
        total = cute.Float32(0.0)
        for scale, (_, own) in zip(scales, others, strict=True):
            total = total + own * scale
        self.largest[row], self.total[row] = largest, total
        return scales

    def largest_so_far(self, row):
        """The number that `join` compares softmaxes of a row by: its largest score."""
        return self.largest[row]

    def largest_exponent(self, row):
        """The exponent of a row's largest score, without a base."""
        return self.largest[row] * self.factor

    def finish(self, row, sink=None):
        """Return what a row's values are multiplied by at the end, and the logarithm of its sum.

        `sink` is a score without a value. A row that saw nothing gets 0 and -inf.
        """
        total = arch.warp_reduction_sum(self.total[row], threads_in_group=4)
        largest = self.largest_exponent(row)
        scale = cute.Float32(1.0)
        if sink is not None:
            top = cute.arch.fmax(largest, sink)
            base = cute.where(top == -cute.Float32.inf, 0.0, top)
            scale = cute.math.exp2(distance(largest, base), fastmath=True)
            below = distance(sink, base)
            below = below + self.offset if self.offset else below
            total = total * scale + cute.math.exp2(below, fastmath=True)
            largest = top
        if self.offset:
            largest = largest - self.offset
        nothing = total == 0.0
        inverse = cute.where(nothing, 0.0, scale * arch.rcp_approx(cute.where(nothing, 1.0, total)))
        log = cute.where(
            nothing,
            -cute.Float32.inf,
            (largest + cute.math.log2(cute.where(nothing, 1.0, total), fastmath=True)) * LN_2,
        )
        return inverse, log


class LazySoftmax(OnlineSoftmax):
    """An online softmax whose bases follow the largest scores only from afar.

    A row's base stays until a score is more than `slack` above it, as an exponent of two, so that
    sums are seldom scaled; weights are at most two to the power of it. `sums` are rows of all that
    is summed with weights, which `total` need not be: then it is set before `finish`.
    """

    def __init__(self, rows, factor, slack, sums):
        self.slack, self.sums = slack, sums
        self.factors = cute.make_rmem_tensor((rows,), cute.Float32)
        self.bases = cute.make_rmem_tensor((rows,), cute.Float32)
        super().__init__(rows, factor)

    def begin(self):
        """Begin other rows; see `OnlineSoftmax.begin`."""
        self.factors.fill(self.factor)
        self.bases.fill(LOWEST)
        self.total.fill(0.0)

    def exponents(self):
        """Each row's factor of scores and base."""
        return [(self.factors[r], self.bases[r]) for r in range(cute.size(self.bases))]

    def raise_base(self, row, own):
        """Let a row's base follow its largest score, of which a thread has `own`, if that is above;
        return what its sums are scaled by.
        """
        largest = arch.warp_reduction_max(own, threads_in_group=4)
        rises = largest * self.factors[row] - self.bases[row] > 0.0
        factor, base = factor_and_base(largest, self.factor, self.largest_base)
        base = cute.where(rises, base, self.bases[row])
        scale = cute.math.exp2(self.bases[row] - base, fastmath=True)
        self.factors[row] = cute.where(rises, factor, self.factors[row])
        self.bases[row] = base
        self.total[row] = self.total[row] * scale
        return scale

    @cute.jit
    def raise_bases(self, own):
        """Let the bases follow the largest scores of a tile, and scale sums, if a row of the warp
        has one far above. `own` has those of each row that the thread has: scores of other threads
        are not asked for before.
        """
        rows = cute.size(self.bases)
        above = -cute.Float32.inf
        for r in range(rows):
            above = arch.fmax(above, own[r] * self.factors[r] - self.bases[r])
        if arch.vote_any_sync(above > self.slack):
            for r in range(rows):
                scale = self.raise_base(r, own[r])
                for sums in self.sums:
                    sums[r, None].store(sums[r, None].load() * scale)

    def largest_so_far(self, row):
        """The number that `join` compares softmaxes of a row by: its base's exponent."""
        return self.largest_exponent(row)

    def join(self, row, others):
        """Let a row be that of several softmaxes, see `OnlineSoftmax.join`."""
        base = others[0][0]
        for other, _ in others[1:]:
            base = arch.fmax(base, other)
        scales = [cute.math.exp2(one - base, fastmath=True) for one, _ in others]
        total = cute.Float32(0.0)
        for scale, (_, own) in zip(scales, others, strict=True):
            total = total + own * scale
        self.factors[row], self.bases[row], self.total[row] = self.factor, base, total
        return scales

    def largest_exponent(self, row):
        """The exponent of a row's base, without the power of two in place of the factor."""
        factor, base = self.factors[row], self.bases[row]
        of_power = base * arch.rcp_approx(factor) * self.factor
        return cute.where(factor == self.factor, base, of_power)
