"""Softmax of rows, forward and backward.

    y = exp(x - max(x)) / sum(exp(x - max(x)))      dx = y * (dy - sum(dy * y))

A row stays in registers from its load to the result. Each warp takes its own largest element first;
one exchange then gives all warps of the row the largest and the sum of all.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import basedsl_cute as cute
from basedsl import DSLTypeError
from basedsl_cute import arch
from basedsl_cute.algebra.explained_calls import explains_arguments
from basedsl_cute.ops.array_libraries import ArrayLibrary, library
from basedsl_cute.ops.jax_arrays import is_jax
from basedsl_cute.ops.layer.rows import (
    RowPlan,
    element_type,
    exchange,
    extents_of,
    load_row,
    row_plan,
    row_slots,
    row_sums,
    store_row,
    this_row,
)
from basedsl_cute.ops.plan_cache import PlanCache, asked_options, launch_plan

_INFINITY = float("inf")


@explains_arguments
def softmax(x: Any) -> Any:
    """Compute the softmax of each row: exp(x - max(x)) / sum(exp(x - max(x))).

    `x` is an array (..., N) of PyTorch, CuPy, JAX or NumPy, of Float16, BFloat16 or Float32. Sums
    are Float32. A row with a NaN, with an infinite element or of elements that are all -inf is NaN.

    Returns an array like `x`; PyTorch and JAX compute its gradient. Raises DSLTypeError for other
    types and extents.

    >>> import numpy as np
    >>> from basedsl_cute.ops import softmax
    >>> softmax(np.log(np.array([[1, 3]], np.float32)))
    array([[0.25, 0.75]], dtype=float32)
    """
    if is_jax(x):
        from basedsl_cute.ops.layer.jax_layer import jax_softmax  # it imports JAX

        return jax_softmax(x)
    lib = library(x, "softmax")
    if lib.is_autocasting():
        from basedsl_cute.ops.torch_autocast import widened  # it imports PyTorch

        x, _ = widened("softmax.int", x)
    if lib.records(x):
        from basedsl_cute.ops.layer.torch_softmax import torch_softmax  # it imports PyTorch

        return torch_softmax(x)
    return softmax_into(None, x)


def softmax_into(out: Any, x: Any) -> Any:
    """Write the softmax to `out`, an array like `x`, or a new one, and return it."""
    return _call(library(x, "softmax"), _launch, (x,), out)


def softmax_backward(grad: Any, y: Any, out: Any = None) -> Any:
    """Return the gradient of a softmax from `grad`, that of its result, and the result `y`; `out`
    is the array to write, by default a new one.
    """
    lib = library(y, "softmax")
    if tuple(grad.shape) != tuple(y.shape) or grad.dtype != y.dtype:
        raise DSLTypeError(
            f"softmax: its gradient is {grad.dtype} of {tuple(grad.shape)}, and it is {y.dtype} of "
            f"{tuple(y.shape)}"
        )
    return _call(lib, _launch_backward, (y, grad), out)


@dataclass
class _Plan:
    """The way to compute a softmax of arrays of one kind."""

    row: RowPlan
    rows: int
    is_direct: bool  # arrays are taken as they are, not copied first
    compiled: Any = None


_plans: PlanCache[_Plan] = PlanCache()


def _call(lib: ArrayLibrary, launch: Any, given: tuple[Any, ...], out: Any) -> Any:
    """`out`, or a new array like the first of the given ones, which `launch` fills."""
    given_out = None if out is None else lib.key(out)
    key = (launch, asked_options(), *map(lib.key, given), given_out)
    plan = _plans.get(key)
    if plan is None:
        rows, columns = extents_of("softmax", "x", given[0])
        kind = element_type("softmax", "x", given[0])
        row = row_plan(lib, "softmax", columns, kind, (*given, out))
        is_direct = all(lib.compact(x) is x for x in given)
        plan = _plans.keep(key, _Plan(row, rows, is_direct))
    if not plan.is_direct:
        given = tuple(map(lib.compact, given))
    if out is None:
        out = lib.empty(given[0].shape, given[0].dtype, given[0])
    if plan.rows:
        launch_plan(plan, launch, (*given, out, plan.rows), (plan.row,), lib.stream(out))
    return out


# Kernels -----------------------------------------------------------------------------------------


def finite(largest: Any) -> Any:
    """Return `largest`, or 0 for -inf, of which no other -inf can be taken."""
    return cute.where(largest == -_INFINITY, 0.0, largest)


@cute.jit
def exponentials(values: Any, slots: Any, plan: cute.Constexpr, turn: Any, scale: Any = 1.0):
    """Return the exponentials of `scale` times this thread's part of a row less the largest element
    of its warp; this largest, that of the row, and the row's sum of exponentials by the latter.

    All threads of the row's blocks must call it, see `exchange`.
    """
    own = values.reduce(cute.ReductionOp.MAX, -cute.Float32.inf, 0)
    own = arch.warp_reduction_max(own)
    found = cute.math.exp((values - finite(own)) * scale)
    total = arch.warp_reduction_sum(found.reduce(cute.ReductionOp.ADD, 0.0, 0))
    largest = own
    if cute.const_expr(plan.warps > 1):
        tops, sums = exchange((own, total), slots, plan, turn, (-_INFINITY, 0.0))
        largest = tops[0]
        for top in tops[1:]:
            largest = arch.fmax(largest, top)
        largest = arch.warp_reduction_max(largest)
        base = finite(largest)
        total = cute.Float32(0.0)
        for top, each in zip(tops, sums, strict=True):
            total += each * cute.math.exp((top - base) * scale)
        total = arch.warp_reduction_sum(total)
    return found, own, largest, total


@cute.kernel
def softmax_kernel(x: cute.Tensor, y: cute.Tensor, rows: cute.Int32, plan: cute.Constexpr):
    """Write the softmax of rows of `x` to `y`."""
    row = this_row(plan)
    inside = row < rows
    row = cute.min(row, rows - 1)  # of a last block: it must take part in the sums
    values = load_row(x, row, plan, -_INFINITY)
    slots = row_slots(2, plan)
    found, own, largest, total = exponentials(values, slots, plan, 0)
    factor = cute.math.exp(own - largest) / total
    if inside:
        store_row(found * factor, y, row, plan)


@cute.kernel
def softmax_backward_kernel(
    y: cute.Tensor, grad: cute.Tensor, out: cute.Tensor, rows: cute.Int32, plan: cute.Constexpr
):
    """Write the gradients of rows to `out`, from results `y` and their gradients."""
    row = this_row(plan)
    inside = row < rows
    row = cute.min(row, rows - 1)
    value, slope = load_row(y, row, plan), load_row(grad, row, plan)
    slots = row_slots(1, plan)
    (along,) = row_sums((value * slope,), slots, plan)
    if inside:
        store_row(value * (slope - along), out, row, plan)


@cute.jit
def _launch(
    x: cute.Tensor,
    y: cute.Tensor,
    rows: cute.Int32,
    plan: cute.Constexpr,
    stream: cute.Int64,
):
    softmax_kernel(x, y, rows, plan).launch(
        grid=plan.grid(rows),
        block=plan.block,
        cluster=plan.cluster_shape,
        stream=cute.Stream(stream.ir_value()),
    )


@cute.jit
def _launch_backward(
    y: cute.Tensor,
    grad: cute.Tensor,
    out: cute.Tensor,
    rows: cute.Int32,
    plan: cute.Constexpr,
    stream: cute.Int64,
):
    softmax_backward_kernel(y, grad, out, rows, plan).launch(
        grid=plan.grid(rows),
        block=plan.block,
        cluster=plan.cluster_shape,
        stream=cute.Stream(stream.ir_value()),
    )
