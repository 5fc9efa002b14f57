"""Parts that the kernels over rows share: how threads lie on rows, and reductions along a row.

A block holds `rows` rows at a time in registers, each spread over `threads` threads, so memory is
read once. Thread t of a row holds its vectors t, t + threads, t + 2 threads, and so on. In a
row-major matrix the threads of a row are neighbours; in a column-major one the rows are.
"""

import math
import operator

import basedsl_cute as cute

WARP = cute.arch.WARP_SIZE
COMBINE = {cute.ReductionOp.ADD: operator.add, cute.ReductionOp.MAX: cute.arch.fmax}
NEUTRAL = {cute.ReductionOp.ADD: 0.0, cute.ReductionOp.MAX: -math.inf}


class RowTiling:
    """The plan of a block for rows of `tensors`, which have one shape (M, N); all static.

    N may be dynamic if `columns` bounds it. `threads` of a row and `rows` of a block are powers of
    two, chosen if not given. `vectors` are tensors (N) that are read along.
    """

    def __init__(self, tensors, columns=None, threads=None, rows=None, vectors=()):
        extent = tensors[0].shape[1]
        if columns is None and not cute.is_static(extent):
            raise ValueError("the number of columns is dynamic: pass columns=, a bound for it")
        self.exact = cute.is_static(extent)
        self.columns = extent if self.exact else columns
        self.along_rows = all(x.leading_dim == 1 for x in tensors)
        self.vector = 1
        if self.along_rows:
            self.vector = cute.utils.common_vector((*tensors, *vectors), 1, whole=True)
        pieces = -(-self.columns // self.vector)
        if self.along_rows:  # about four vectors for a thread
            self.threads = threads or min(1024, _power_of_two(-(-pieces // 4)))
            self.rows = rows or max(1, 128 // self.threads)
        else:
            self.threads = threads or min(WARP, _power_of_two(-(-pieces // 8)))
            self.rows = rows or WARP
        self.chunks = -(-pieces // self.threads)

    @property
    def block(self):
        """Threads of a block."""
        return self.threads * self.rows

    @property
    def shape(self):
        """The shape of what a thread holds: (elements of a vector, vectors)."""
        return (self.vector, self.chunks)

    def atom(self, dtype):
        """Copies one vector of elements of `dtype`, several accesses of 16 bytes if it is wide."""
        bits = min(128, self.vector * dtype.width)
        return cute.make_copy_atom(cute.nvgpu.CopyUniversalOp(), dtype, num_bits_per_copy=bits)

    # In a kernel ---------------------------------------------------------------------------------

    def place(self):
        """This thread's row in the block, and its place in the row."""
        thread = cute.arch.thread_idx()[0]
        if self.along_rows:
            return (thread // self.threads if self.rows > 1 else 0), thread % self.threads
        return thread % self.rows, thread // self.rows

    def part(self, x, row, t):
        """The part of a row of (M, N) that a thread holds, or of a vector (N) if `row` is None."""
        stride = x.stride[-1]
        first = t * self.vector
        start = x[row, None] if row is not None else x
        layout = cute.make_layout(self.shape, stride=(stride, self.threads * self.vector * stride))
        return cute.make_tensor(start.iterator + first * stride, layout)

    def inside(self, columns, row_is, t):
        """A Boolean for each vector, whether it is in the matrix; None if all are. `row_is` says
        whether the row is (None: certainly).
        """
        step = self.threads * self.vector
        whole = self.exact and self.columns == self.chunks * step
        if row_is is None or cute.is_static(row_is):
            row_is = row_is is None or bool(row_is)
            if whole and row_is:
                return None
        inside = cute.make_rmem_tensor(self.chunks, cute.Boolean)
        for c in range(self.chunks):
            if self.exact and (c + 1) * step <= self.columns:
                inside[c] = row_is
            else:
                inside[c] = (t * self.vector + c * step < columns) & row_is
        return inside

    def row_is_inside(self, row, count, steps=1):
        """True if a row is one of `count`; None if that is certain. A block does `steps` times its
        rows.
        """
        each = self.rows * steps
        certain = each == 1 or (cute.is_static(count) and count % each == 0)
        return None if certain else row < count

    def load(self, x, row, t, inside, fill=0.0):
        """A row of (M, N), or of a vector (N), as Float32; `fill` beyond the matrix."""
        fragment = cute.make_rmem_tensor(self.shape, x.element_type)
        if inside is not None:
            fragment.fill(fill)
        self.copy(self.part(x, row, t), fragment, inside)
        return fragment.load().to(cute.Float32)

    def store(self, value, y, row, t, inside):
        """A row back to (M, N)."""
        fragment = cute.make_rmem_tensor(self.shape, y.element_type)
        fragment.store(value.to(y.element_type))
        self.copy(fragment, self.part(y, row, t), inside)

    def only(self, value, inside):
        """The elements inside the matrix, zero beyond."""
        if inside is None:
            return value
        each = inside.load().reshape((1, self.chunks)).broadcast_to(self.shape)
        return cute.where(each, value, 0.0)

    def copy(self, src, dst, inside):
        atom = self.atom(src.element_type)
        for c in range(self.chunks):
            if inside is None:
                cute.copy(atom, src[None, c], dst[None, c])
            else:
                one = cute.make_tensor(inside.iterator + c, cute.make_layout(1))
                cute.copy(atom, src[None, c], dst[None, c], pred=one)

    @property
    def slots(self):
        """The number of partial results of a row that go through shared memory."""
        if not self.along_rows:
            return self.threads
        return self.threads // WARP if self.threads > WARP else 1

    def partial_sums(self, buffers=1):
        """Shared memory for `reduce`: `buffers` pieces (slot, row). The same piece may be used
        again after another barrier.
        """
        order = (0, 1) if self.along_rows else (1, 0)
        layout = cute.make_ordered_layout((self.slots, self.rows, buffers), order=(*order, 2))
        memory = cute.utils.SmemAllocator().allocate_tensor(cute.Float32, layout)
        return Pieces(memory)

    def reduce(self, x, op, r, t, partial):
        """The elements of a vector, from all threads of a row, combined; every thread gets it."""
        combine, neutral = COMBINE[op], NEUTRAL[op]
        value = x.reduce(op, cute.Float32(neutral), 0)
        if self.along_rows:
            value = cute.arch.warp_reduction(value, combine, min(self.threads, WARP))
        if self.slots == 1:
            return value
        _publish(partial, value, t, r, self.along_rows)
        cute.arch.sync_threads()
        return partial[None, r].load().reduce(op, cute.Float32(neutral), 0)


class Pieces:
    """`pieces[i]` of shared memory, where `i` may be dynamic."""

    def __init__(self, memory):
        self.memory = memory

    def __getitem__(self, i):
        return self.memory[None, None, i]


@cute.jit
def _publish(partial, value, t, r, along_rows: cute.Constexpr):
    if cute.const_expr(along_rows):
        if t % WARP == 0:
            partial[t // WARP, r] = value
    else:
        partial[t, r] = value


def _power_of_two(n):
    return 1 << (n - 1).bit_length()


if __name__ == "__main__":
    import numpy as np

    for columns in (100, 1000, 8192):
        x = np.empty((64, columns), np.float16)
        tiling = RowTiling((cute.runtime.from_dlpack(x, assumed_align=16),))
        print(
            f"float16 rows of {columns}: {tiling.rows} in a block, {tiling.threads} threads each "
            f"with {tiling.chunks} vectors of {tiling.vector}"
        )
