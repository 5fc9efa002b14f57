"""Rows of a matrix in registers: the threads that share a row, their vectors, and sums over it.

A row is in the registers of a warp, of a block or, where it is long and the target has clusters, of
the blocks of a cluster. To combine numbers over a row, each warp writes its own to the shared
memory of all the row's blocks, and after one barrier each warp reduces all of them in one order.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import basedsl_cute as cute
from basedsl import ArrayRecord, DSLTypeError, from_dlpack
from basedsl_cute import arch
from basedsl_cute.dsl.machine import current_target
from basedsl_cute.hardware.requirements import CLUSTERS
from basedsl_cute.hardware.targets import PORTABLE_CLUSTER
from basedsl_cute.ops.array_libraries import ArrayLibrary

MOST_COLUMNS = 262144
"""Elements of a row: a cluster of 8 blocks of 1,024 threads, with 32 elements each. On targets
without clusters, or in kernels that keep several numbers of each element, part of a row of this
length is in local memory.
"""

_BLOCK = 128  # threads of a block, unless a row takes more
_VECTORS = 4  # of 16 bytes that a thread loads of a row, before more threads share it
_MOST_THREADS = 1024
_ALONE = 16384  # elements of the longest row that one block has, where there are clusters
_SHARE = 8192  # elements of a row that a block of a cluster has, before there are more blocks


@dataclass(frozen=True)
class RowPlan:
    """A block has `rows` rows of `columns` elements of `dtype`, each of them in the registers of
    `threads` threads, in vectors of `vector` elements; or the `cluster` blocks of a cluster share
    one row. Accesses to global memory have up to `access` bytes.
    """

    dtype: Any
    columns: int
    vector: int
    threads: int
    rows: int
    cluster: int = 1
    access: int = 16

    @property
    def block(self) -> int:
        """The threads of a block."""
        return self.threads * self.rows

    @property
    def vectors(self) -> int:
        """The vectors of a row."""
        return self.columns // self.vector

    @property
    def sharing(self) -> int:
        """The threads that share a row, of all its blocks."""
        return self.threads * self.cluster

    @property
    def warps(self) -> int:
        """The warps that share a row, of all its blocks."""
        return self.sharing // arch.WARP_SIZE

    @property
    def chunks(self) -> int:
        """The vectors of a thread."""
        return -(-self.vectors // self.sharing)

    def grid(self, rows: Any) -> Any:
        """The blocks of a grid that has each of `rows` rows once."""
        return cute.ceil_div(rows, self.rows) * self.cluster

    @property
    def cluster_shape(self) -> tuple[int, int, int] | None:
        """The `cluster` of a launch."""
        return (self.cluster, 1, 1) if self.cluster > 1 else None


def is_long(columns: int) -> bool:
    """Return True for rows that several blocks share, where the target has clusters."""
    return columns > _ALONE


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
    vector, access = _widest_vector(columns, dtype, places)
    cluster = 1
    if is_long(columns) and CLUSTERS.is_met_by(current_target()):
        while cluster < PORTABLE_CLUSTER and columns > cluster * _SHARE:
            cluster *= 2
    threads = arch.WARP_SIZE
    while threads < _MOST_THREADS and columns > threads * cluster * _VECTORS * min(
        vector, 128 // dtype.width
    ):
        threads *= 2
    if arch.WARP_SIZE < threads < _BLOCK:
        threads = _BLOCK
    rows = max(1, _BLOCK // threads) if cluster == 1 else 1
    return RowPlan(dtype, columns, vector, threads, rows, cluster, access)


def _widest_vector(columns: int, dtype: Any, places: list[tuple[int, int]]) -> tuple[int, int]:
    """Return the elements of a vector and the bytes of an access: the widest that the target has,
    where a warp's vectors fit into a row and all of the `places`, (address, bytes of an element),
    are aligned so; else up to 16 bytes.
    """
    access = current_target().global_access_bytes
    vector = 8 * access // dtype.width
    misplaced = any(at % min(access, vector * size) for at, size in places)
    if columns % vector or columns < arch.WARP_SIZE * vector or misplaced:
        access, vector = 16, 128 // dtype.width
    while columns % vector or any(at % min(16, vector * size) for at, size in places):
        vector //= 2
    return vector, access


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
    Float32, and the array begins at a multiple of an element.
    """
    record = ArrayRecord.of(x, name)
    kind = from_dlpack(*record.dtype)
    if kind not in (cute.Float16, cute.BFloat16, cute.Float32):
        raise DSLTypeError(
            f"{operation}: {name} is of {kind.__name__}",
            hint="Float16, BFloat16 or Float32",
        )
    apart = record.address % (kind.width // 8)
    if apart:
        raise DSLTypeError(
            f"{operation}: {name} starts {apart} bytes after a multiple of its elements",
            hint="copy it: numpy.array(x)",
        )
    return kind


# In kernels --------------------------------------------------------------------------------------


def this_row(plan: RowPlan) -> Any:
    """Return the number of this thread's row, counted over the blocks of the grid."""
    if plan.cluster > 1:
        return arch.block_idx()[0] // plan.cluster
    return arch.block_idx()[0] * plan.rows + arch.thread_idx()[0] // plan.threads


def lane_of_row(plan: RowPlan) -> Any:
    """Return the number of this thread among those that share its row."""
    if plan.cluster > 1:
        return arch.block_idx_in_cluster() * plan.threads + arch.thread_idx()[0]
    return arch.thread_idx()[0] % plan.threads


def registers(plan: RowPlan, dtype: Any = cute.Float32) -> Any:
    """Return registers for this thread's part of a row."""
    return cute.make_rmem_tensor((plan.vector, plan.chunks), dtype)


def vectors_of(x: Any, row: Any, plan: RowPlan) -> Any:
    """Return the vectors of a row, a tensor (elements of a vector, vectors)."""
    size = x.element_type.width // 8
    address = x.iterator.toint() + cute.Int64(row) * (plan.columns * size)
    align = min(plan.vector * size, plan.access)
    pointer = cute.make_ptr(x.element_type, address, "gmem", assumed_align=align)
    return cute.make_tensor(pointer, cute.make_layout((plan.vector, plan.vectors)))


def _copy(source: Any, target: Any, plan: RowPlan) -> None:
    """Copy a vector between global memory and registers."""
    bits = source.element_type.width * plan.vector
    if plan.access == 16 or bits < 256:
        cute.autovec_copy(source, target)
        return
    atom = cute.make_copy_atom(
        cute.nvgpu.CopyUniversalOp(), source.element_type, num_bits_per_copy=256
    )
    parts = (256 // source.element_type.width,)
    cute.copy(atom, cute.logical_divide(source, parts), cute.logical_divide(target, parts))


@cute.jit
def load_row(x: Any, row: Any, plan: cute.Constexpr, beyond: cute.Constexpr = 0.0):
    """Return this thread's part of a row of `x` in Float32; beyond the end of a row it is
    `beyond`.
    """
    source, lane = vectors_of(x, row, plan), lane_of_row(plan)
    fragment = registers(plan, x.element_type)
    fragment.fill(beyond)
    for c in cute.range_constexpr(plan.chunks):
        if cute.const_expr((c + 1) * plan.sharing <= plan.vectors):
            _copy(source[None, c * plan.sharing + lane], fragment[None, c], plan)
        else:
            if c * plan.sharing + lane < plan.vectors:
                _copy(source[None, c * plan.sharing + lane], fragment[None, c], plan)
    return fragment.load().to(cute.Float32)


@cute.jit
def store_row(values: Any, x: Any, row: Any, plan: cute.Constexpr):
    """Store this thread's part of a row of `x`, converted to its elements."""
    target, lane = vectors_of(x, row, plan), lane_of_row(plan)
    fragment = registers(plan, x.element_type)
    fragment.store(values.to(x.element_type))
    for c in cute.range_constexpr(plan.chunks):
        if cute.const_expr((c + 1) * plan.sharing <= plan.vectors):
            _copy(fragment[None, c], target[None, c * plan.sharing + lane], plan)
        else:
            if c * plan.sharing + lane < plan.vectors:
                _copy(fragment[None, c], target[None, c * plan.sharing + lane], plan)


def only_columns(values: Any, plan: RowPlan) -> Any:
    """Return a part of a row with 0 beyond the end of the row."""
    if plan.vectors % plan.sharing == 0:
        return values
    fragment = registers(plan)
    fragment.store(values)
    zero_beyond_end(fragment, plan)
    return fragment.load()


@cute.jit
def zero_beyond_end(fragment: Any, plan: cute.Constexpr):
    """Write 0 into the last vector of registers where it is beyond the end of the row."""
    c = plan.chunks - 1
    if c * plan.sharing + lane_of_row(plan) >= plan.vectors:
        for i in cute.range_constexpr(plan.vector):
            fragment[i, c] = 0.0


def row_slots(count: int, plan: RowPlan) -> Any:
    """Return shared memory in which the warps of a row exchange `count` numbers, twice, for turns.

    All threads of the block must call it, and rather after their first loads: the blocks of a
    cluster wait until all of them run.
    """
    slots = arch.alloc_smem(cute.Float32, 2 * count * plan.warps)
    if plan.cluster > 1:
        arch.cluster_arrive_relaxed()
        arch.cluster_wait()
    return cute.make_tensor(slots, cute.make_layout((plan.warps, count, 2)))


@cute.jit
def exchange(numbers: Any, slots: Any, plan: cute.Constexpr, turn: Any, neutral: cute.Constexpr):
    """Return the `numbers`, of which each warp has its own, of all warps of the row: this lane's
    part of each, a list, that a reduction over its elements and the lanes of a warp combines.
    Lanes without a number get that of `neutral`.

    All threads of the row's blocks must call it, with a `turn` that is odd at every other call.
    """
    lane, turn = arch.lane_idx(), turn % 2
    if cute.const_expr(plan.cluster > 1):
        place = arch.block_idx_in_cluster() * (plan.threads // arch.WARP_SIZE) + arch.warp_idx()
        if lane < plan.cluster:
            there = cute.make_tensor(arch.map_dsmem_ptr(slots.iterator, lane), slots.layout)
            for n in cute.range_constexpr(len(numbers)):
                there[place, n, turn] = numbers[n]
        arch.cluster_arrive()
        arch.cluster_wait()
    else:
        if lane == 0:
            for n in cute.range_constexpr(len(numbers)):
                slots[arch.warp_idx(), n, turn] = numbers[n]
        arch.sync_threads()
    found = []
    for n in cute.range_constexpr(len(numbers)):
        parts = []
        for first in cute.range_constexpr(0, plan.warps, arch.WARP_SIZE):
            number = cute.Float32(neutral[n])
            if first + lane < plan.warps:
                number = slots[first + lane, n, turn]
            parts.append(number)
        found.append(parts)
    return tuple(found)


@cute.jit
def row_totals(totals: Any, slots: Any, plan: cute.Constexpr, turn: Any):
    """Return the sums over the row of numbers of which each warp has its own; see `exchange`."""
    if cute.const_expr(plan.warps == 1):
        return tuple(totals)
    parts = exchange(totals, slots, plan, turn, (0.0,) * len(totals))
    return tuple(arch.warp_reduction_sum(sum(each[1:], each[0])) for each in parts)


def row_sums(values: Any, slots: Any, plan: RowPlan, turn: Any = 0) -> Any:
    """Return the sums of vectors over the row: of this thread's elements and its row's threads.

    All threads of the block must call it, with a `turn` that is odd at every other call.
    """
    totals = [arch.warp_reduction_sum(v.reduce(cute.ReductionOp.ADD, 0.0, 0)) for v in values]
    return row_totals(totals, slots, plan, turn)
