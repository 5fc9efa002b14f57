"""The softmax of rows that come tile by tile, and how accumulators of mma.sync and wgmma lie.

The algorithm is that of FlashAttention (Dao and others, arXiv 2205.14135): with each tile the
largest score and the sum of a row are updated, and what was summed so far is scaled.
"""

from __future__ import annotations

from typing import Any

import basedsl_cute as cute
from basedsl_cute import arch
from basedsl_cute.ops.flash.variant import LN_2

# 2^x for x from -1/2 to 1/2, with a relative error of 0.0017 (minimax, by Lawson's iteration).
POWER = (1.00044336, 0.70345016, 0.23842812)
# A Float32 of at most 2^22 plus this is rounded to an integer, in the low bits, plus 127.
ROUND = 1.5 * 2**23 + 127
LEAST = -100.0


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


def largest_of_rows(scores, largest):
    """The largest of each row's scores and its largest so far, of all threads that share it."""
    return [
        arch.warp_reduction_max(
            scores[r, None].load().reduce(cute.ReductionOp.MAX, largest[r], 0), threads_in_group=4
        )
        for r in range(cute.size(largest))
    ]


@cute.jit
def rise_by_much(softmax, scores, sums, slack: cute.Constexpr):
    """Let the base of rows follow the largest scores of a tile, and scale sums, if one of a warp's
    is more than `slack` above, as an exponent of two.
    """
    found = largest_of_rows(scores, softmax.largest)
    grows = cute.Boolean(False)
    for r, largest in enumerate(found):
        before = softmax.base_of(softmax.largest[r])
        is_first = softmax.largest[r] == -cute.Float32.inf
        grows = grows | (largest * softmax.factor > before + slack) | is_first
    if arch.vote_any_sync(grows):
        for r, largest in enumerate(found):
            base = softmax.base_of(largest)
            scale = cute.math.exp2(softmax.largest[r] * softmax.factor - base, fastmath=True)
            softmax.total[r] = softmax.total[r] * scale
            softmax.largest[r] = largest
            sums[r, None].store(sums[r, None].load() * scale)


class OnlineSoftmax:
    """The largest score and the sum of weights of each of a thread's rows.

    Four neighbouring threads share a row. `factor` makes scores into exponents of two. Weights are
    multiplied by two to the power of `offset`, for types of few exponents.
    """

    def __init__(self, rows, factor, offset=0):
        self.factor, self.offset = factor, offset
        self.largest = cute.make_rmem_tensor((rows,), cute.Float32)
        self.total = cute.make_rmem_tensor((rows,), cute.Float32)
        self.begin()

    def begin(self):
        """Begin other rows."""
        self.largest.fill(-cute.Float32.inf)
        self.total.fill(0.0)

    def update(self, scores):
        """Make a tile's scores into weights; return what each row's sum of values is scaled by."""
        scales, bases = self.rise(scores)
        self.weigh(scores, bases)
        return scales

    def rise(self, scores):
        """Let the largest scores be those of a tile, too; return what each row's sums are scaled
        by, which that of weights is already, and the bases of the exponents of its weights.
        """
        scales, bases = [], []
        for r, largest in enumerate(largest_of_rows(scores, self.largest)):
            base = self.base_of(largest)
            scale = cute.math.exp2(self.largest[r] * self.factor - base, fastmath=True)
            self.total[r] = self.total[r] * scale
            self.largest[r] = largest
            scales.append(scale)
            bases.append(base - self.offset if self.offset else base)
        return scales, bases

    def base_of(self, largest):
        """The base of a row's exponents. That of one that saw no key so far is zero: its weights
        are exp2(-inf), not NaN.
        """
        return cute.where(largest == -cute.Float32.inf, 0.0, largest) * self.factor

    def bases(self):
        """The bases of all rows' exponents."""
        found = [self.base_of(self.largest[r]) for r in range(cute.size(self.largest))]
        return [base - self.offset for base in found] if self.offset else found

    def weigh(self, scores, bases, computed=False):
        """Make scores, all of a tile or some columns, into weights, and add them to the sums.
        They are `computed` by multiplications, or by the unit for exponentials.
        """
        for r, base in enumerate(bases):
            exponents = scores[r, None].load() * self.factor - base
            if computed:
                weights = powers(exponents)
            else:
                weights = cute.math.exp2(exponents, fastmath=True)
            self.total[r] = weights.reduce(cute.ReductionOp.ADD, self.total[r], 0)
            scores[r, None].store(weights)

    def finish(self, row, sink=None):
        """Return what a row's values are multiplied by at the end, and the logarithm of its sum.

        `sink` is a score without a value. A row that saw nothing gets 0 and -inf.
        """
        total = arch.warp_reduction_sum(self.total[row], threads_in_group=4)
        largest = self.largest[row] * self.factor
        scale = cute.Float32(1.0)
        if sink is not None:
            top = cute.arch.fmax(largest, sink)
            base = cute.where(top == -cute.Float32.inf, 0.0, top)
            scale = cute.math.exp2(largest - base, fastmath=True)
            lifted = sink + self.offset if self.offset else sink
            total = total * scale + cute.math.exp2(lifted - base, fastmath=True)
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
