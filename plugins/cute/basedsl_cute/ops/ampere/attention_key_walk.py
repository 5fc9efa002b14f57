"""A thread's walk over tiles of keys, by mma.sync: the scores of a tile are multiplied while its
values arrive, become weights, and these are multiplied with values while the next keys arrive.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import basedsl_cute as cute
from basedsl_cute import arch
from basedsl_cute.ops.flash.softmax import LazySoftmax, as_operand, as_rows, scale_rows


@dataclass
class KeyWalk:
    """A walk over tiles of (queries, keys), from the last keys to the first that the queries see.

    `readers` and `fragments` are those of queries, keys and values. `copies` are functions that
    copy tile `number` of keys, and of values, into a stage, `before` one that finds the tile of
    keys at or ahead of a number, at least `low` - 1, `score` one that changes a tile's products
    into scores. `sums` is the accumulator of results, `totals` sums weights by products, or is
    None.
    """

    mma: Any
    tile: tuple[int, int]
    dtype: Any
    readers: tuple
    fragments: tuple
    copies: tuple
    before: Any
    score: Any
    softmax: Any
    sums: Any
    totals: Any

    @cute.jit
    def run(self, number, low, first_copies: cute.Constexpr):
        """Attend to tiles from `number` down to `low`, if any. The copies of queries are begun, and
        `first_copies` copy the first tile.
        """
        copy_k, copy_v = self.copies
        if number >= low:
            first_copies[0](number, 0)
        arch.cp_async_commit_group()
        while number >= low:
            self.await_copies()
            copy_v(number, 0)
            arch.cp_async_commit_group()
            scores = self.multiply_scores(0)
            self.await_copies()
            own = number
            number = self.before(number - 1, low)
            if number >= low:
                copy_k(number, 0)
            arch.cp_async_commit_group()
            self.score(scores, own, lambda: None)
            self.add_values(scores, self.largest_of(scores), 0)
        arch.cp_async_wait_group(0)

    def await_copies(self):
        """Wait until all copies are there, those of all threads, and all threads have read what
        they were to read before.
        """
        arch.cp_async_wait_group(0)
        arch.sync_threads()

    def multiply_scores(self, stage):
        """Multiply queries with the keys in `stage`."""
        rq, rk, _ = self.fragments
        read_q, read_k, _ = self.readers
        scores = self.mma.make_fragment_C(self.mma.partition_shape_C(self.tile))
        scores.fill(0.0)
        for step in range(cute.size(rq, mode=[2])):
            read_q.load(step, 0)
            read_k.load(step, stage)
            cute.gemm(self.mma, scores, rq[None, None, step], rk[None, None, step], scores)
        return scores

    @cute.jit
    def add_values(self, scores, largest, stage):
        """Make scores, with the largest of each row, into weights, and add what these make of the
        values in `stage`.
        """
        weights = cute.make_rmem_tensor(scores.layout, self.dtype)
        if cute.const_expr(isinstance(self.softmax, LazySoftmax)):
            self.softmax.raise_bases(largest)
            self.multiply_values(weights, stage, scores)
        else:
            by_row = as_rows(scores)
            scales, exponents = self.softmax.rise(by_row)
            scale_rows(as_rows(self.sums), scales)
            self.softmax.weigh(by_row, exponents)
            weights.store(scores.load().to(self.dtype))
            self.multiply_values(weights, stage)

    def multiply_values(self, weights, stage, scores=None):
        """Multiply weights with the values in `stage`. They are made of `scores` meanwhile, if
        given.
        """
        *_, read_v = self.readers
        *_, rv = self.fragments
        operand, steps = as_operand(weights), cute.size(rv, mode=[2])
        for step in range(steps):
            read_v.load(step, stage)
            if scores is not None:
                part = sixteen_keys(scores, step)
                exponents = self.softmax.exponents()
                self.softmax.weigh(as_rows(part), exponents, is_summed=self.totals is None)
                sixteen_keys(weights, step).store(part.load().to(self.dtype))
            own = operand[None, None, step]
            cute.gemm(self.mma, self.sums, own, rv[None, None, step], self.sums)
            if self.totals is not None:
                self.totals.add(own)

    def largest_of(self, scores):
        """The largest of the scores that the thread has of each row, if the softmax asks for it."""
        if not isinstance(self.softmax, LazySoftmax):
            return None
        by_row = as_rows(scores)
        largest = cute.make_rmem_tensor((cute.size(by_row, mode=[0]),), cute.Float32)
        for r in range(cute.size(largest)):
            row = by_row[r, None].load()
            largest[r] = row.reduce(cute.ReductionOp.MAX, -cute.Float32.inf, 0)
        return largest


def sixteen_keys(acc, block):
    """Columns 16 `block` to 16 `block` + 15 of an accumulator, or of its weights."""
    layout = acc.layout
    shape = (*layout.shape[:2], 2)
    start = acc.iterator + 2 * block * layout.stride[2]
    return cute.make_tensor(start, cute.make_layout(shape, stride=layout.stride))
