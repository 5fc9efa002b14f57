"""The k largest or smallest elements of rows, in order, with their places.

A row stays in registers as keys (`order`). Where several warps share it, the k-th largest of the
largest elements of groups of threads is a bound: at least k elements reach it, and rarely many
more. Those go to shared memory, each to a place of its own, by sums over the threads before. There
each counts the elements that come before it, which is its place in the result. Where a row has one
warp, or many more elements reach the bound, a search finds the k-th largest element itself, and of
those equal to it the first ones are taken.
"""

from __future__ import annotations

import operator
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

import basedsl_cute as cute
from basedsl import DSLCallError, DSLTypeError
from basedsl_cute import arch
from basedsl_cute.algebra.explained_calls import explains_arguments
from basedsl_cute.ops.array_libraries import ArrayLibrary, library
from basedsl_cute.ops.flags import flag
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
from basedsl_cute.ops.plan_cache import PlanCache, asked_options, launch_plan

MOST = 1024
"""The largest k: all of them are compared with each other."""

_GROUPS = 2  # times k, at least: the groups of threads whose largest elements give the bound
_SPARE = 64  # elements that may reach the bound, beyond twice k


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
    k = operator.index(k) if isinstance(k, np.integer) else k
    if type(k) is not int:  # before plans are looked up: True and 1.0 are equal to 1
        raise DSLTypeError(f"topk: k is {k!r}", hint="an integer")
    largest = flag("topk", "largest", largest)
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
    outputs = None if found is None else tuple(map(lib.key, found))
    key = (lib.key(x), k, largest, outputs, asked_options())
    plan = _plans.get(key)
    if plan is None:
        plan = _plans.keep(key, _plan(lib, x, k, largest))
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
    rows, columns = extents_of("topk", "x", x)
    check_k(k, columns)
    row = row_plan(lib, "topk", columns, element_type("topk", "x", x), (x,))
    return _Plan(row, rows, lib.compact(x) is x, largest)


def check_k(k: int, columns: int) -> None:
    """Raise DSLCallError for a number of elements that rows do not have, or that is too large."""
    if not 1 <= k <= min(MOST, columns):
        raise DSLCallError(
            f"topk: k is {k}", hint=f"from 1 to {min(MOST, columns)}, for rows of {columns}"
        )


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
    """Return the sum of `count`, a Float32, over the row's threads before this one, and over all of
    them.
    """
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
        total = arch.warp_reduction_sum(sum(parts[1:], parts[0]))
    return before.to(cute.Int32), total.to(cute.Int32)


def _groups_of_a_warp(k: int, plan: RowPlan) -> int:
    """The groups of a warp's threads whose largest elements are compared; 0 where a row has too few
    threads for a bound.
    """
    groups = 1
    while groups < arch.WARP_SIZE and plan.warps * groups < _GROUPS * k:
        groups *= 2
    return groups if plan.warps > 1 and plan.warps * groups >= _GROUPS * k else 0


@cute.jit
def _bound(keys: Any, k: cute.Constexpr, groups: cute.Constexpr, slots: Any, plan: cute.Constexpr):
    """Return a key, from 1 on, that at least k elements of the row reach: the k-th largest of the
    largest elements of groups of threads, so many in each warp.
    """
    size = arch.WARP_SIZE // groups
    own = keys.reduce(cute.ReductionOp.MAX, cute.Uint32(0), 0)
    own = arch.warp_reduction(own, cute.max, threads_in_group=size)
    numbers = cute.TensorSSA.from_elements(
        tuple(arch.shuffle_sync(own, n * size) for n in range(groups))
    ).bitcast(cute.Float32)
    numbers = tuple(numbers[n] for n in range(groups))
    parts = exchange(numbers, slots, plan, 1, (0.0,) * groups)
    largest = tuple(part for each in parts for part in each)
    count = len(largest)
    largest = cute.TensorSSA.from_elements(largest).bitcast(cute.Uint32)
    least = cute.Uint32(0)
    step = cute.Uint32(1 << (key_bits(plan) - 1))
    while step > 0:
        reaching = cute.Int32(0)
        for n in cute.range_constexpr(count):
            reaching += arch.popc(arch.vote_ballot_sync(largest[n] >= least + step))
        if reaching >= k:
            least = least + step
        step = step >> 1
    return cute.max(least, cute.Uint32(1))


@cute.jit
def _search(keys: Any, k: cute.Constexpr, slots: Any, plan: cute.Constexpr, turn: Any):
    """Return the k-th largest key, and the least place of those equal to it that are taken."""
    last = 2 ** key_bits(plan) - 1
    limit = cute.Float32(k)
    least, turn = threshold(keys, 1.0, cute.Uint32(1), cute.Uint32(last), limit, slots, plan, turn)
    sums = (sum_where(keys > least, 1.0), sum_where(keys == least, 1.0))
    above, equal = row_totals(sums, slots, plan, turn)
    turn += 1
    first = cute.Uint32(1)
    if above + equal > limit:
        alike = cute.where(keys == least, _backwards(plan), cute.Uint32(0))
        first, turn = threshold(
            alike, 1.0, first, cute.Uint32(plan.columns), limit - above, slots, plan, turn
        )
    return least, first, turn


@cute.jit
def _number_of(chosen: Any):
    """Return the elements of this thread that are chosen, a Float32."""
    return cute.where(chosen, 1.0, 0.0).reduce(cute.ReductionOp.ADD, 0.0, 0)


def _number_taken(keys: Any, least: Any, first: Any, plan: RowPlan) -> Any:
    """Return the elements of this thread beyond the `least` key, or equal to it and at places from
    `first` on.
    """
    return _number_of((keys > least) | ((keys == least) & (_backwards(plan) >= first)))


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
    groups = _groups_of_a_warp(k, plan)
    capacity = 2 * k + _SPARE if groups else k
    slots = row_slots(max(3, groups), plan)
    listed = arch.alloc_smem(cute.Uint32, 2 * capacity * plan.rows)
    part = arch.thread_idx()[0] // plan.threads
    listed = cute.make_tensor(listed, cute.make_layout((capacity, 2, plan.rows)))
    listed = listed[None, None, part]
    if cute.const_expr(not largest):
        keys = keys ^ cute.Uint32(2 ** key_bits(plan) - 1)
    keys = within_row(keys, plan)
    first, turn = cute.Uint32(1), cute.Int32(0)
    if cute.const_expr(groups > 0):
        least = _bound(keys, k, groups, slots, plan)
        at, total = _place_of_thread(_number_of(keys >= least), slots, plan, 0)
        turn += 1
        if total > capacity:
            least, first, turn = _search(keys, k, slots, plan, turn)
            taken = _number_taken(keys, least, first, plan)
            at, total = _place_of_thread(taken, slots, plan, turn)
    else:
        least, first, turn = _search(keys, k, slots, plan, turn)
        at, total = _place_of_thread(_number_taken(keys, least, first, plan), slots, plan, turn)
    there = listed
    if cute.const_expr(plan.cluster > 1):
        there = cute.make_tensor(arch.map_dsmem_ptr(listed.iterator, 0), listed.layout)
    first_of_thread = (lane_of_row(plan) * plan.vector).to(cute.Uint32)
    for c in cute.range_constexpr(plan.chunks):
        for i in cute.range_constexpr(plan.vector):
            key = keys[i, c]
            place = cute.Uint32(plan.columns - i) - first_of_thread - c * plan.sharing * plan.vector
            if key > least or (key == least and place >= first):
                there[at, 0] = key
                there[at, 1] = place
                at += 1
    if cute.const_expr(plan.cluster > 1):
        arch.cluster_arrive()
        arch.cluster_wait()
    else:
        arch.sync_threads()
    if inside and (plan.cluster == 1 or arch.block_idx_in_cluster() == 0):
        for n in range(arch.thread_idx()[0] % plan.threads, total, plan.threads):
            key, place = listed[n, 0], listed[n, 1]
            rank = cute.Int32(0)
            for other in range(total):
                is_before = listed[other, 0] > key or (
                    listed[other, 0] == key and listed[other, 1] > place
                )
                rank += is_before.to(cute.Int32)
            if rank < k:
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
