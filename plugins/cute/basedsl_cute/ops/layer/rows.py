"""Rows of a matrix in registers: the threads that share a row, their vectors, and sums over it."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import basedsl_cute as cute
from basedsl import ArrayRecord, DSLTypeError, from_dlpack
from basedsl_cute import arch
from basedsl_cute.ops.array_libraries import ArrayLibrary
from basedsl_cute.ops.block_sums import block_sums

MOST_COLUMNS = 131072
"""Elements of a row: 1,024 threads with 128 registers each."""

_BLOCK = 128  # threads of a block, unless a row takes more
_VECTORS = 4  # of 16 bytes that a thread loads of a row, before more threads share it
_MOST_THREADS = 1024


@dataclass(frozen=True)
class RowPlan:
    """A block has `rows` rows of `columns` elements of `dtype`, each of them in the registers of
    `threads` threads, in vectors of `vector` elements.
    """

    dtype: Any
    columns: int
    vector: int
    threads: int
    rows: int

    @property
    def block(self) -> int:
        """The threads of a block."""
        return self.threads * self.rows

    @property
    def vectors(self) -> int:
        """The vectors of a row."""
        return self.columns // self.vector

    @property
    def chunks(self) -> int:
        """The vectors of a thread."""
        return -(-self.vectors // self.threads)


def row_plan(
    lib: ArrayLibrary, operation: str, columns: int, dtype: Any, arrays: tuple[Any, ...]
) -> RowPlan:
    """Return the plan for rows of `columns` elements of `dtype`, and for the row-major `arrays`
    that kernels read or write with it; those that are None are left out.

    Raises DSLTypeError, naming the operation, for rows that do not fit into the registers of a
    block.
    """
    if columns > MOST_COLUMNS:
        raise DSLTypeError(
            f"{operation}: a row has {columns} elements; {MOST_COLUMNS} are the most"
        )
    places = [(lib.address(x), x.dtype.itemsize) for x in arrays if x is not None]
    vector = 128 // dtype.width
    while columns % vector or any(at % min(16, vector * size) for at, size in places):
        vector //= 2
    threads = arch.WARP_SIZE
    while threads < _MOST_THREADS and columns > threads * _VECTORS * vector:
        threads *= 2
    if arch.WARP_SIZE < threads < _BLOCK:
        threads = _BLOCK
    return RowPlan(dtype, columns, vector, threads, max(1, _BLOCK // threads))


def extents_of(operation: str, name: str, x: Any) -> tuple[int, int]:
    """Return the rows and columns of an array (..., columns).

    Raises DSLTypeError, naming both, for an array without modes or without columns.
    """
    shape = ArrayRecord.of(x, name).shape
    if not shape or not shape[-1]:
        raise DSLTypeError(f"{operation}: {name} is {tuple(shape)}, and has no rows of elements")
    return math.prod(shape[:-1]), shape[-1]


def element_type(operation: str, name: str, x: Any) -> Any:
    """Return the element type of an array; DSLTypeError unless it is Float16, BFloat16 or
    Float32.
    """
    kind = from_dlpack(*ArrayRecord.of(x, name).dtype)
    if kind not in (cute.Float16, cute.BFloat16, cute.Float32):
        raise DSLTypeError(
            f"{operation}: {name} is of {kind.__name__}",
            hint="Float16, BFloat16 or Float32",
        )
    return kind


# In kernels --------------------------------------------------------------------------------------


def this_row(plan: RowPlan) -> Any:
    """Return the number of this thread's row, counted over the blocks of the grid."""
    return arch.block_idx()[0] * plan.rows + arch.thread_idx()[0] // plan.threads


def registers(plan: RowPlan, dtype: Any = cute.Float32) -> Any:
    """Return registers for this thread's part of a row."""
    return cute.make_rmem_tensor((plan.vector, plan.chunks), dtype)


def _vectors_of(x: Any, row: Any, plan: RowPlan) -> Any:
    """The vectors of a row, a tensor (elements of a vector, vectors)."""
    size = x.element_type.width // 8
    address = x.iterator.toint() + cute.Int64(row) * (plan.columns * size)
    align = min(plan.vector * size, 16)
    pointer = cute.make_ptr(x.element_type, address, "gmem", assumed_align=align)
    return cute.make_tensor(pointer, cute.make_layout((plan.vector, plan.vectors)))


@cute.jit
def load_row(x: Any, row: Any, plan: cute.Constexpr):
    """Return this thread's part of a row of `x` in Float32; beyond the end of a row it is 0."""
    source, lane = _vectors_of(x, row, plan), arch.thread_idx()[0] % plan.threads
    fragment = registers(plan, x.element_type)
    fragment.fill(0)
    for c in cute.range_constexpr(plan.chunks):
        if cute.const_expr((c + 1) * plan.threads <= plan.vectors):
            cute.autovec_copy(source[None, c * plan.threads + lane], fragment[None, c])
        else:
            if c * plan.threads + lane < plan.vectors:
                cute.autovec_copy(source[None, c * plan.threads + lane], fragment[None, c])
    return fragment.load().to(cute.Float32)


@cute.jit
def store_row(values: Any, x: Any, row: Any, plan: cute.Constexpr):
    """Store this thread's part of a row of `x`, converted to its elements."""
    target, lane = _vectors_of(x, row, plan), arch.thread_idx()[0] % plan.threads
    fragment = registers(plan, x.element_type)
    fragment.store(values.to(x.element_type))
    for c in cute.range_constexpr(plan.chunks):
        if cute.const_expr((c + 1) * plan.threads <= plan.vectors):
            cute.autovec_copy(fragment[None, c], target[None, c * plan.threads + lane])
        else:
            if c * plan.threads + lane < plan.vectors:
                cute.autovec_copy(fragment[None, c], target[None, c * plan.threads + lane])


def only_columns(values: Any, plan: RowPlan) -> Any:
    """Return a part of a row with 0 beyond the end of the row."""
    if plan.vectors % plan.threads == 0:
        return values
    fragment = registers(plan)
    fragment.store(values)
    zero_beyond_end(fragment, plan)
    return fragment.load()


@cute.jit
def zero_beyond_end(fragment: Any, plan: cute.Constexpr):
    """Write 0 into the last vector of registers where it is beyond the end of the row."""
    c = plan.chunks - 1
    if c * plan.threads + arch.thread_idx()[0] % plan.threads >= plan.vectors:
        for i in cute.range_constexpr(plan.vector):
            fragment[i, c] = 0.0


def sum_buffer(count: int, plan: RowPlan) -> Any:
    """Return shared memory for `row_sums` of `count` numbers."""
    warps = max(plan.block // arch.WARP_SIZE, 1)
    words = arch.alloc_smem(cute.Float32, count * warps)
    return cute.make_tensor(words, cute.make_layout((warps, count)))


@cute.jit
def row_sums(values: Any, buffer: Any, plan: cute.Constexpr):
    """Return the sums of vectors over the row: of this thread's elements and its row's threads.

    All threads of the block must call it.
    """
    totals = [arch.warp_reduction_sum(v.reduce(cute.ReductionOp.ADD, 0.0, 0)) for v in values]
    if cute.const_expr(plan.threads > arch.WARP_SIZE):
        return block_sums(totals, buffer, plan.threads // arch.WARP_SIZE)
    return tuple(totals)
