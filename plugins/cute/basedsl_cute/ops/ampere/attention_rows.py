"""Copies of rows of queries, keys and values into shared memory by cp.async."""

from __future__ import annotations

import basedsl_cute as cute
from basedsl import DSLTypeError
from basedsl_cute.nvgpu import cpasync
from basedsl_cute.ops.ampere.gemm import contiguous_copy, copies_divide, lanes_of_a_line
from basedsl_cute.utils import hopper_helpers as sm90

VECTOR = 8  # elements of 16 bits that one access moves
ROW, COLUMN = sm90.LayoutEnum.ROW_MAJOR, sm90.LayoutEnum.COL_MAJOR


def check_copies(threads, tiles):
    """Raise DSLTypeError for a tile (rows, extent of heads) of `tiles` that `threads` cannot copy:
    heads without a layout in shared memory, a tile that the threads' vectors do not divide.
    """
    for rows, extent in tiles:
        if extent % 32:
            raise DSLTypeError(
                f"heads of {extent} elements do not fit this kernel",
                hint="their extents must be multiples of 32",
            )
        if not copies_divide(extent, rows, 16, VECTOR, threads):
            lanes = lanes_of_a_line(extent, rows, 16, VECTOR, threads)
            at_a_time = f"{threads // lanes} rows of {lanes * VECTOR} elements"
            raise DSLTypeError(
                f"{threads} threads cannot copy {rows} rows of {extent} elements",
                hint=f"they copy {at_a_time} at a time: take another tile",
            )


class RowCopier:
    """A thread's copies of rows of a tensor (rows, columns) into a tile by cp.async.

    `by_column` says that the tile is (columns, rows). What lies outside becomes zero.
    """

    def __init__(self, staged, cfg, thread, by_column=False):
        self.staged, self.by_column = staged, by_column
        shape = cute.size(staged, mode=[0]), cute.size(staged, mode=[1])
        op = cpasync.CopyG2SOp(cpasync.LoadCacheMode.GLOBAL, zero_fill=True)
        self.atom = cute.make_copy_atom(op, staged.element_type, num_bits_per_copy=128)
        layouts = contiguous_copy(
            COLUMN if by_column else ROW, shape, staged.element_type, VECTOR, cfg.threads
        )
        own = cute.make_tiled_copy_tv(self.atom, *layouts).get_slice(thread)
        self.coords = own.partition_S(cute.make_identity_tensor(shape))
        self.steps = cute.make_tensor((0, 0), self.coords.layout)  # from the first vector
        self.target = own.partition_D(staged)
        across, along = (2, 1) if by_column else (1, 2)
        self.rows = cute.size(self.target, mode=[across])
        self.columns = cute.size(self.target, mode=[along])

    def copy(self, row_of, stage=0):
        """Copy the tile into a stage; `row_of` returns the vector of a row of the tile, and if it
        is inside.
        """
        for i in range(self.rows):
            source, inside = row_of(self.place(self.coords, i, 0)[0])
            for j in range(self.columns):
                column = self.place(self.coords, i, j)[1]
                vector = cute.local_tile(source, (VECTOR,), (column // VECTOR,))
                self.copy_vector(vector, inside, i, j, stage)

    def copy_rows(self, x, first, end, stage=0):
        """Copy rows `first` to before `end` of a matrix into a stage, as many as the tile has.
        Their addresses are steps from that of the thread's first vector, where `copy` makes each
        from a row's number.
        """
        stride = x.stride[0]
        row, column = self.place(self.coords, 0, 0)
        # What all threads share is added first, in registers that they share.
        start = x.iterator + first * stride
        for i in range(self.rows):
            step = self.place(self.steps, i, 0)[0]
            inside = first + row < end - step
            own = start + step * stride + (row * stride + column)
            for j in range(self.columns):
                vector = (own + self.place(self.steps, i, j)[1]).align(2 * VECTOR)
                vector = cute.make_tensor(vector, cute.make_layout(VECTOR))
                self.copy_vector(vector, inside, i, j, stage)

    def place(self, coords, i, j):
        """The row and the column of the `j`-th vector of the thread's `i`-th row."""
        if self.by_column:
            column, row = coords[0, j, i]
        else:
            row, column = coords[0, i, j]
        return row, column

    def copy_vector(self, vector, inside, i, j, stage):
        """Copy a vector to its place in a stage, or zeros if it is not `inside`."""
        at = (j, i) if self.by_column else (i, j)
        cute.copy_atom_call(self.atom, vector, self.target[(None, *at, stage)], pred=inside)


class KeyRows:
    """Rows of the keys or values of one sequence and head, through a table of pages if any.

    `x` is (rows, columns, heads, batches), or with `table` (rows of a page, columns, heads, pages).
    """

    def __init__(self, x, head, batch, sequence, table):
        self.x, self.head, self.table = x, head, table
        self.batch, self.sequence = batch, sequence

    def __call__(self, key):
        inside = key < self.sequence.keys
        key = cute.where(inside, key, 0)
        if self.table is None:
            row = self.x[self.sequence.first_key + key, None, self.head, self.batch]
        else:
            size = self.x.shape[0]
            page = self.table[self.batch, key // size]
            row = self.x[key % size, None, self.head, page]
        return row, inside

    def copy(self, copier, first, stage):
        """Copy the tile of the keys from `first` on into a stage, with few instructions if there is
        no table.
        """
        if self.table is None:
            x, begin = self.x[None, None, self.head, self.batch], self.sequence.first_key
            copier.copy_rows(x, begin + first, begin + self.sequence.keys, stage)
        else:
            copier.copy(lambda row: self(first + row), stage)


class QueryRows:
    """Queries of a sequence as rows, those of `packed` heads from `head` on in turns.

    `q` is (rows, columns, heads, batches), in which the sequence has the batch `own`; row 0 is row
    `first` of the sequence.
    """

    def __init__(self, q, first, head, packed, sequence, own):
        self.q, self.first, self.head, self.packed = q, first, head, packed
        self.sequence, self.own = sequence, own

    def __call__(self, row):
        inside = self.first + row < self.sequence.queries * self.packed
        at = cute.where(inside, self.first + row, 0)
        query = self.sequence.first_query + at // self.packed
        return self.q[query, None, self.head + at % self.packed, self.own], inside
