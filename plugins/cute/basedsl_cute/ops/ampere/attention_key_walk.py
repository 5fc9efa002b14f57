"""A thread's walk over tiles of keys, by mma.sync, in one of two orders.

In turn: the scores of a tile are multiplied, become weights, and these are multiplied with values
before the next tile. Ahead: while a tile's scores become weights, the scores of the next one are
multiplied, and while the weights are multiplied with values, the largest of these scores are found.
So a warp has products to issue beside whatever the softmax waits for. Keys and values have two
stages in shared memory each then, and one barrier a tile says both that one is free and that the
other one is full.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import basedsl_cute as cute
from basedsl_cute import arch
from basedsl_cute.ops.flash.softmax import LazySoftmax, as_operand, as_rows, scale_rows

PADDED = 8 * 8 + 8  # elements from a block of 8 x 8 to the next one


@dataclass
class KeyWalk:
    """A walk over tiles of (queries, keys), from the last keys to the first that the queries see.

    `readers` and `fragments` are those of queries, keys and values. `copies` are functions that
    copy tile `number` of keys, and of values, into a stage, `before` one that finds the tile of
    keys at or ahead of a number, at least `low` - 1. `score` is one that changes a tile's products
    into scores, and calls a function without arguments where it has changed any. `sums` is the
    accumulator of results, `totals` sums weights by products, or is None.
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
    def in_turn(self, number, low, first_copies: cute.Constexpr):
        """Attend to tiles from `number` down to `low`, if any. The copies of queries are begun."""
        copy_k, copy_v = self.copies
        if number >= low:
            first_copies[0](number, 0)
        arch.cp_async_commit_group()
        while number >= low:
            self.await_copies()
            copy_v(number, 0)
            arch.cp_async_commit_group()
            scores = self.accumulator()
            self.multiply_scores(scores, 0)
            self.await_copies()
            own = number
            number = self.before(number - 1, low)
            if number >= low:
                copy_k(number, 0)
            arch.cp_async_commit_group()
            self.score(scores, own, lambda: None)
            weights = cute.make_rmem_tensor(scores.layout, self.dtype)
            if cute.const_expr(isinstance(self.softmax, LazySoftmax)):
                self.softmax.raise_bases(self.largest_of(scores))
                self.multiply_values(weights, 0, scores)
            else:
                by_row = as_rows(scores)
                scales, exponents = self.softmax.rise(by_row)
                scale_rows(as_rows(self.sums), scales)
                self.softmax.weigh(by_row, exponents)
                weights.store(scores.load().to(self.dtype))
                self.multiply_values(weights, 0)
        arch.cp_async_wait_group(0)

    @cute.jit
    def ahead(self, number, low, first_copies: cute.Constexpr):
        """Attend to tiles from `number` down to `low`, if any. The copies of queries are begun."""
        copy_k, copy_v = first_copies
        if number >= low:
            scores, others = self.accumulator(), self.accumulator()
            copy_k(number, 0)
            arch.cp_async_commit_group()
            after = self.before(number - 1, low)
            copy_v(number, 0)
            copy_k(cute.max(after, low), 1)
            arch.cp_async_commit_group()
            self.await_copies(1)
            self.multiply_scores(scores, 0)
            self.score(scores, number, lambda: None)
            self.softmax.raise_bases(self.largest_of(scores))
            stage = cute.Int32(0)
            while after >= low:
                # Two tiles a turn, so that the scores of either have registers of their own.
                after = self.turn(scores, others, after, low, 0)
                if after >= low:
                    after = self.turn(others, scores, after, low, 1)
                else:
                    scores.store(others.load())
                    stage = cute.Int32(1)
            self.await_copies()
            weights = cute.make_rmem_tensor(scores.layout, self.dtype)
            self.multiply_values(weights, stage, scores)
        arch.cp_async_wait_group(0)

    @cute.jit
    def turn(self, scores, others, after, low, stage: cute.Constexpr):
        """Attend to a tile with its scores, whose values are in `stage`, and make `others` the
        scores of tile `after`. Return the tile before that.
        """
        copy_k, copy_v = self.copies
        self.await_copies()
        beyond = self.before(after - 1, low)
        copy_v(after, 1 - stage)
        copy_k(cute.max(beyond, low), stage)  # once too often, rather than by a branch
        arch.cp_async_commit_group()
        weights = cute.make_rmem_tensor(scores.layout, self.dtype)
        self.multiply_scores_beside(others, 1 - stage, scores, weights)
        largest = self.multiply_values_beside(weights, stage, others)
        # Not before: ptxas mixes nothing that stands on two sides of a branch.
        self.score(others, after, lambda: self.store_largest(others, largest))
        self.softmax.raise_bases(largest)
        return beyond

    def await_copies(self, but=0):
        """Wait until all groups of copies but the last `but` are there, those of all threads, and
        all threads have read what they were to read before.
        """
        arch.cp_async_wait_group(but)
        arch.sync_threads()

    def accumulator(self):
        """Registers for the scores of a tile."""
        return self.mma.make_fragment_C(self.mma.partition_shape_C(self.tile))

    @property
    def pieces(self):
        """The number of parts of a tile's scores that are made into weights one by one."""
        m, n = self.tile
        return m * n // (cute.size(self.mma) * 4)

    def multiply_scores(self, scores, stage):
        """Multiply queries with the keys in `stage`."""
        scores.fill(0.0)
        for step in range(self.steps_of_scores):
            self.load_for_scores(step, stage)
            self.add_scores(scores, step)

    def multiply_scores_beside(self, scores, stage, others, weights):
        """Multiply queries with the keys in `stage`, and make `others` into weights meanwhile."""
        scores.fill(0.0)
        steps, pieces = self.steps_of_scores, self.pieces
        self.load_for_scores(0, stage)
        for step in range(steps):
            if step + 1 < steps:
                self.load_for_scores(step + 1, stage)
            self.add_scores(scores, step)
            self.weigh(others, weights, step * pieces // steps, (step + 1) * pieces // steps)
            # An empty instruction, but ptxas takes no load across it, and so keeps to this order:
            # else it loads so much ahead that it spills.
            arch.sync_warp()

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

    def multiply_values_beside(self, weights, stage, others):
        """Multiply weights with the values in `stage`. Return the largest of `others` that the
        thread has of each row, which are found meanwhile.
        """
        *_, read_v = self.readers
        *_, rv = self.fragments
        operand, loads = as_operand(weights), cute.size(rv, mode=[1]) // 2
        turns = [(step, load) for step in range(cute.size(rv, mode=[2])) for load in range(loads)]
        largest = self.no_largest()
        for i, (step, load) in enumerate(turns):
            read_v.load(step, stage, load)
            for n in (2 * load, 2 * load + 1):
                for m in range(cute.size(operand, mode=[1])):
                    own = self.sums[None, m, n]
                    cute.gemm(self.mma, own, operand[None, m, step], rv[None, n, step], own)
            if self.totals is not None and load == loads - 1:
                self.totals.add(operand[None, None, step])
            first, end = (at * self.pieces // len(turns) for at in (i, i + 1))
            self.find_largest(others, largest, first, end)
            if load % 2:
                arch.sync_warp()  # see `multiply_scores_beside`
        return largest

    @property
    def steps_of_scores(self):
        return cute.size(self.fragments[0], mode=[2])

    def load_for_scores(self, step, stage):
        """Load fragments of 16 columns of queries and of the keys in `stage`."""
        read_q, read_k, _ = self.readers
        read_q.load(step, 0)
        read_k.load(step, stage)

    def add_scores(self, scores, step):
        """Add products of 16 columns of queries and keys."""
        rq, rk, _ = self.fragments
        cute.gemm(self.mma, scores, rq[None, None, step], rk[None, None, step], scores)

    def weigh(self, scores, weights, first, end):
        """Make pieces `first` to before `end` of scores, four numbers each, into weights."""
        exponents = self.softmax.exponents()
        blocks = cute.size(scores, mode=[1])
        for i in range(first, end):
            column, m = divmod(i, blocks)
            part = piece(scores, m, column)
            own = exponents[2 * m : 2 * m + 2]
            is_summed = self.totals is None
            self.softmax.weigh(as_rows(part), own, is_summed=is_summed, first=2 * m)
            piece(weights, m, column).store(part.load().to(self.dtype))

    def no_largest(self):
        """A number for each of the thread's rows, below all."""
        largest = cute.make_rmem_tensor((cute.size(self.softmax.total),), cute.Float32)
        largest.fill(-cute.Float32.inf)
        return largest

    def largest_of(self, scores):
        """The largest of the scores that the thread has of each row."""
        largest, by_row = self.no_largest(), as_rows(scores)
        for r in range(cute.size(largest)):
            largest[r] = by_row[r, None].load().reduce(cute.ReductionOp.MAX, largest[r], 0)
        return largest

    def store_largest(self, scores, largest):
        """Find the largest scores anew."""
        largest.store(self.largest_of(scores).load())

    def find_largest(self, scores, largest, first, end):
        """Let the largest scores of rows be those of pieces `first` to before `end`, too."""
        blocks = cute.size(scores, mode=[1])
        for i in range(first, end):
            column, m = divmod(i, blocks)
            rows = as_rows(piece(scores, m, column))
            for r in range(2):
                at = 2 * m + r
                largest[at] = rows[r, None].load().reduce(cute.ReductionOp.MAX, largest[at], 0)


def padded_layout(rows, columns, stages, by_column=False):
    """The layout in shared memory of tiles (rows, columns, stages) of 16-bit elements, or with
    `by_column` (columns, rows, stages): blocks of 8 x 8, each 128 consecutive bytes, which ldmatrix
    reads from all banks, and 16 bytes between them, so that a row is written to all banks, too.
    Unlike a swizzle, it has each fragment at a constant distance from the first one.
    """
    row = (8, rows // 8), (8, PADDED * (columns // 8))
    column = (8, columns // 8), (1, PADDED)
    first, second = (column, row) if by_column else (row, column)
    whole = stages, PADDED * (rows // 8) * (columns // 8)
    shape, stride = zip(first, second, whole, strict=True)
    return cute.make_layout(shape, stride=stride)


def piece(acc, m, column):
    """The four numbers of a thread in the 16 rows number `m` and the 8 columns number `column`."""
    shape, (value, step_m, step_n) = acc.layout.shape[0], acc.layout.stride
    layout = cute.make_layout((shape, 1, 1), stride=(value, step_m, step_n))
    return cute.make_tensor(acc.iterator + m * step_m + column * step_n, layout)


def sixteen_keys(acc, block):
    """Columns 16 `block` to 16 `block` + 15 of an accumulator, or of its weights."""
    layout = acc.layout
    shape = (*layout.shape[:2], 2)
    start = acc.iterator + 2 * block * layout.stride[2]
    return cute.make_tensor(start, cute.make_layout(shape, stride=layout.stride))
