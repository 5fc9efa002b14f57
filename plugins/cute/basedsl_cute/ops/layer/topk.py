"""The k largest or smallest elements of rows, in order, with their places.

A row stays in registers as keys (`order`). A search finds the k-th; the elements beyond it and, of
those equal to it, the first ones, go to shared memory, each to a place of its own, by sums over the
threads before. There each counts the elements that come before it, which is its place in the
result.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import basedsl_cute as cute
from basedsl import DSLCallError, DSLTypeError
from basedsl_cute import arch
from basedsl_cute.algebra.explained_calls import explains_arguments
from basedsl_cute.ops.array_libraries import ArrayLibrary, library
from basedsl_cute.ops.jax_arrays import is_jax
from basedsl_cute.ops.layer.order import key_bits, keys_of, sum_where, threshold, within_row
from basedsl_cute.ops.layer.rows import (
    RowPlan,
    element_type,
    exchange,
    extents_of,
    lane_of_row,
    load_row,
    registers,
    row_plan,
    row_slots,
    row_totals,
    this_row,
)
from basedsl_cute.ops.plan_cache import PlanCache, asked_target, launch_plan

MOST = 1024
"""The largest k: all of them are compared with each other."""


class TopK(NamedTuple):
    """The elements and their places in their rows, Int64."""

    values: Any
    indices: Any


@explains_arguments
def topk(x: Any, k: int, *, largest: bool = True) -> TopK:
    """Find the `k` largest elements of each row, the largest first, or the smallest.

    `x` is an array (..., N) of PyTorch, CuPy, JAX or NumPy, of Float16, BFloat16 or Float32; `k` is
    at most 1,024 and N. Of equal elements those with smaller indices come first. NaN is larger than
    infinity, and 0 and -0 are equal.

    Returns `values` and `indices`, arrays (..., k), the latter of Int64 (JAX: its default
    integers); PyTorch and JAX compute the gradient of the values. Raises DSLTypeError for
    other types and extents, DSLCallError for another `k`.

    >>> import numpy as np
    >>> from basedsl_cute.ops import topk
    >>> values, indices = topk(np.array([[3, 9, 1, 9]], np.float32), 3)
    >>> print(values, indices)
    [[9. 9. 3.]] [[1 3 0]]
    """
    if is_jax(x):
        from basedsl_cute.ops.layer.jax_layer import jax_topk  # it imports JAX

        return TopK(*jax_topk(x, k, largest))
    lib = library(x, "topk")
    if lib.records(x):
        from basedsl_cute.ops.layer.torch_topk import torch_topk  # it imports PyTorch

        return TopK(*torch_topk(x, k, largest))
    return topk_into(None, x, k, largest)


def topk_into(found: TopK | None, x: Any, k: int, largest: bool) -> TopK:
    """Write the top k to the arrays of `found`, or to new ones, and return them; indices may have
    any integers.
    """
    lib = library(x, "topk")
    kind = None if found is None else found.indices.dtype
    key = (lib.key(x), k, bool(largest), kind, asked_target())
    plan = _plans.get(key)
    if plan is None:
        plan = _plans.keep(key, _plan(lib, x, k, bool(largest)))
    if not plan.is_direct:
        x = lib.compact(x)
    shape = (*x.shape[:-1], k)
    if found is None:
        found = TopK(lib.empty(shape, x.dtype, x), lib.empty(shape, lib.dtype(cute.Int64), x))
    if plan.rows:
        static = k, plan.largest, plan.row
        launch_plan(plan, _launch, (x, *found, plan.rows), static, lib.stream(x))
    return found


@dataclass
class _Plan:
    """The way to compute the top k of arrays of one kind."""

    row: RowPlan
    rows: int
    is_direct: bool  # arrays are taken as they are, not copied first
    largest: bool
    compiled: Any = None


_plans: PlanCache[_Plan] = PlanCache()


def _plan(lib: ArrayLibrary, x: Any, k: int, largest: bool) -> _Plan:
    """The plan of a call; an error for arguments that do not fit together."""
    if type(k) is not int:
        raise DSLTypeError(f"topk: k is {k!r}", hint="an integer")
    rows, columns = extents_of("topk", "x", x)
    if not 1 <= k <= min(MOST, columns):
        raise DSLCallError(
            f"topk: k is {k}", hint=f"from 1 to {min(MOST, columns)}, for rows of {columns}"
        )
    row = row_plan(lib, "topk", columns, element_type("topk", "x", x), (x,))
    return _Plan(row, rows, lib.compact(x) is x, largest)


# Kernels -----------------------------------------------------------------------------------------


@cute.jit
def _backwards(plan: cute.Constexpr):
    """Return the places of this thread's elements counted from the row's end, from 1 on; 0 or less,
    as Uint32 0, beyond the end.
    """
    fragment, lane = registers(plan, cute.Uint32), lane_of_row(plan)
    for c in cute.range_constexpr(plan.chunks):
        first = (c * plan.sharing + lane) * plan.vector
        for i in cute.range_constexpr(plan.vector):
            fragment[i, c] = cute.max(plan.columns - first - i, 0).to(cute.Uint32)
    return fragment.load()


@cute.jit
def _place_of_thread(count: Any, slots: Any, plan: cute.Constexpr, turn: Any):
    """Return the sum of `count`, a Float32, over the row's threads before this one."""
    lane = arch.lane_idx()
    before = count
    for step in cute.range_constexpr(5):
        other = arch.shuffle_sync_up(before, 1 << step)
        before = before + cute.where(lane >= 1 << step, other, 0.0)
    total = arch.shuffle_sync(before, arch.WARP_SIZE - 1)
    before = before - count
    if cute.const_expr(plan.warps > 1):
        (parts,) = exchange((total,), slots, plan, turn, (0.0,))
        own = lane_of_row(plan) // arch.WARP_SIZE
        earlier = cute.Float32(0.0)
        for n in cute.range_constexpr(len(parts)):
            earlier += cute.where(n * arch.WARP_SIZE + lane < own, parts[n], 0.0)
        before = before + arch.warp_reduction_sum(earlier)
    return before.to(cute.Int32)


@cute.kernel
def topk_kernel(
    x: cute.Tensor,
    values: cute.Tensor,
    indices: cute.Tensor,
    rows: cute.Int32,
    k: cute.Constexpr,
    largest: cute.Constexpr,
    plan: cute.Constexpr,
):
    """Write the first k elements of each row of `x` in order, and their places."""
    row = this_row(plan)
    inside = row < rows
    row = cute.min(row, rows - 1)  # of a last block: it must take part in the exchanges
    keys = keys_of(load_row(x, row, plan), plan)
    slots = row_slots(3, plan)
    listed = arch.alloc_smem(cute.Uint32, 2 * k * plan.rows)
    part = arch.thread_idx()[0] // plan.threads
    listed = cute.make_tensor(listed, cute.make_layout((k, 2, plan.rows)))[None, None, part]
    last = 2 ** key_bits(plan) - 1
    if cute.const_expr(not largest):
        keys = keys ^ cute.Uint32(last)
    keys = within_row(keys, plan)
    limit, turn = cute.Float32(k), cute.Int32(0)
    least, turn = threshold(keys, 1.0, cute.Uint32(1), cute.Uint32(last), limit, slots, plan, turn)
    sums = (sum_where(keys > least, 1.0), sum_where(keys == least, 1.0))
    above, equal = row_totals(sums, slots, plan, turn)
    turn += 1
    places = _backwards(plan)
    first = cute.Uint32(1)
    if above + equal > limit:
        alike = cute.where(keys == least, places, cute.Uint32(0))
        first, turn = threshold(
            alike, 1.0, first, cute.Uint32(plan.columns), limit - above, slots, plan, turn
        )
    chosen = (keys > least) | ((keys == least) & (places >= first))

    count = cute.where(chosen, 1.0, 0.0).reduce(cute.ReductionOp.ADD, 0.0, 0)
    at = _place_of_thread(count, slots, plan, turn)
    there = listed
    if cute.const_expr(plan.cluster > 1):
        there = cute.make_tensor(arch.map_dsmem_ptr(listed.iterator, 0), listed.layout)
    for c in cute.range_constexpr(plan.chunks):
        for i in cute.range_constexpr(plan.vector):
            if chosen[i, c]:
                there[at, 0] = keys[i, c]
                there[at, 1] = places[i, c]
                at += 1
    if cute.const_expr(plan.cluster > 1):
        arch.cluster_arrive()
        arch.cluster_wait()
    else:
        arch.sync_threads()
    if inside and (plan.cluster == 1 or arch.block_idx_in_cluster() == 0):
        for n in range(arch.thread_idx()[0] % plan.threads, k, plan.threads):
            key, place = listed[n, 0], listed[n, 1]
            rank = cute.Int32(0)
            for other in range(k):
                is_before = listed[other, 0] > key or (
                    listed[other, 0] == key and listed[other, 1] > place
                )
                rank += is_before.to(cute.Int32)
            index = cute.Int32(plan.columns) - place.to(cute.Int32)
            values[row, rank] = x[row, index]
            indices[row, rank] = index.to(indices.element_type)


@cute.jit
def _launch(
    x: cute.Tensor,
    values: cute.Tensor,
    indices: cute.Tensor,
    rows: cute.Int32,
    k: cute.Constexpr,
    largest: cute.Constexpr,
    plan: cute.Constexpr,
    stream: cute.Int64,
):
    topk_kernel(
        _matrix(x, rows, plan.columns),
        _matrix(values, rows, k),
        _matrix(indices, rows, k),
        rows,
        k,
        largest,
        plan,
    ).launch(
        grid=plan.grid(rows),
        block=plan.block,
        cluster=plan.cluster_shape,
        stream=cute.Stream(stream.ir_value()),
    )


def _matrix(x: Any, rows: Any, columns: int) -> Any:
    """A compact array as a matrix of its rows."""
    return cute.make_tensor(x.iterator, cute.make_layout((rows, columns), stride=(columns, 1)))
