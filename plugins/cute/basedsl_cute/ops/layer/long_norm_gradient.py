"""The gradients of norms of long rows, by two kernels.

A row that several blocks share would have them wait for each other at every row. Instead, one block
sums up each row first (`row_sums_kernel`), and then blocks that have some columns of many rows each
(`column_kernel`) compute the gradients: of z from the row's sums, and of weight and bias by adding
up their columns.

With x the centred row of z, s = dy * weight, and f = 1 / sqrt(mean(x^2) + eps):

    dz = f * (s - mean(s) - x * f^2 * mean(s * x))        without mean(s) where rows are not centred
"""

from __future__ import annotations

from typing import Any

import basedsl_cute as cute
from basedsl_cute import arch
from basedsl_cute.ops.block_sums import block_sums
from basedsl_cute.ops.layer.rows import vectors_of

ROW_THREADS = 512
COLUMN_THREADS = 256
ROW_NUMBERS = 4
"""Numbers of a row, in Float32: its mean, f, f * mean(s * x), and mean(s)."""


def groups_of_rows(rows: int, vectors: int, processors: int) -> int:
    """Return the groups of rows, of which each block has one: four blocks for a multiprocessor."""
    strips = -(-vectors // COLUMN_THREADS)
    return max(1, min(rows, 4 * processors // strips))


@cute.jit
def _values(x: Any, row: Any, place: Any, plan: cute.Constexpr):
    """Return vector number `place` of a row, in Float32."""
    fragment = cute.make_rmem_tensor((plan.vector,), x.element_type)
    cute.autovec_copy(vectors_of(x, row, plan)[None, place], fragment)
    return fragment.load().to(cute.Float32)


def _total(values: Any) -> Any:
    return values.reduce(cute.ReductionOp.ADD, 0.0, 0)


@cute.kernel
def row_sums_kernel(
    grad: cute.Tensor,
    z: cute.Tensor,
    weight,  # a tensor or None
    numbers: cute.Tensor,
    eps: cute.Float32,
    is_centred: cute.Constexpr,
    plan: cute.Constexpr,
):
    """Write the numbers of a row to `numbers` (rows, 4)."""
    row, thread = arch.block_idx()[0], arch.thread_idx()[0]
    warps = ROW_THREADS // arch.WARP_SIZE
    shared = arch.alloc_smem(cute.Float32, 3 * warps)
    shared = cute.make_tensor(shared, cute.make_layout((warps, 3)))
    mean = cute.Float32(0.0)
    if cute.const_expr(is_centred):
        for n in cute.range(thread, plan.vectors, ROW_THREADS, unroll=4):
            mean += _total(_values(z, row, n, plan))
        (mean,) = block_sums((arch.warp_reduction_sum(mean),), shared, warps)
        mean = mean * (1 / plan.columns)
    squares, along, slopes = cute.Float32(0.0), cute.Float32(0.0), cute.Float32(0.0)
    for n in cute.range(thread, plan.vectors, ROW_THREADS, unroll=4):
        value = _values(z, row, n, plan) - mean
        slope = _values(grad, row, n, plan)
        if cute.const_expr(weight is not None):
            slope = slope * _values(weight, 0, n, plan)
        squares += _total(value * value)
        along += _total(slope * value)
        slopes += _total(slope)
    sums = tuple(arch.warp_reduction_sum(x) for x in (squares, along, slopes))
    squares, along, slopes = block_sums(sums, shared, warps)
    factor = cute.math.rsqrt(squares * (1 / plan.columns) + eps)
    if thread == 0:
        numbers[row, 0] = mean
        numbers[row, 1] = factor
        numbers[row, 2] = along * factor * (1 / plan.columns)
        numbers[row, 3] = slopes * (1 / plan.columns)


@cute.kernel
def column_kernel(
    grad: cute.Tensor,
    z: cute.Tensor,
    weight,  # tensors or None, from here
    grad_z,
    out: cute.Tensor,
    parts,
    numbers: cute.Tensor,
    rows: cute.Int32,
    is_centred: cute.Constexpr,
    has_bias: cute.Constexpr,
    plan: cute.Constexpr,
):
    """Write the gradients of some columns of a group of rows to `out`, and to `parts` those of
    weight and bias, summed over the group.
    """
    place = arch.block_idx()[0] * COLUMN_THREADS + arch.thread_idx()[0]
    group, groups = arch.block_idx()[1], arch.grid_dim()[1]
    first, last = group * rows // groups, (group + 1) * rows // groups
    of_weight, of_bias, scale = (
        cute.make_rmem_tensor((plan.vector,), cute.Float32) for _ in range(3)
    )
    of_weight.fill(0.0)
    of_bias.fill(0.0)
    scale.fill(1.0)
    if place < plan.vectors:
        if cute.const_expr(weight is not None):
            scale.store(_values(weight, 0, place, plan))
        for row in cute.range(first, last, unroll=4):
            factor = numbers[row, 1]
            dy = _values(grad, row, place, plan)
            normal = (_values(z, row, place, plan) - numbers[row, 0]) * factor
            result = dy * scale.load() - normal * numbers[row, 2]
            if cute.const_expr(is_centred):
                result = result - numbers[row, 3]
            result = result * factor
            if cute.const_expr(grad_z is not None):
                result = result + _values(grad_z, row, place, plan)
            _store(result, out, row, place, plan)
            of_weight.store(of_weight.load() + dy * normal)
            of_bias.store(of_bias.load() + dy)
        if cute.const_expr(weight is not None):
            _store(of_weight.load(), parts, group, place, plan)
        if cute.const_expr(has_bias):
            after = groups if weight is not None else 0
            _store(of_bias.load(), parts, after + group, place, plan)


@cute.jit
def _store(values: Any, x: Any, row: Any, place: Any, plan: cute.Constexpr):
    """Write vector number `place` of a row, converted to the elements of `x`."""
    fragment = cute.make_rmem_tensor((plan.vector,), x.element_type)
    fragment.store(values.to(x.element_type))
    cute.autovec_copy(fragment, vectors_of(x, row, plan)[None, place])


@cute.jit
def launch(
    grad: cute.Tensor,
    z: cute.Tensor,
    weight: cute.Tensor | None,
    grad_z: cute.Tensor | None,
    out: cute.Tensor,
    parts: cute.Tensor | None,
    numbers: cute.Tensor,
    rows: cute.Int32,
    groups: cute.Int32,
    eps: cute.Float32,
    is_centred: cute.Constexpr,
    has_bias: cute.Constexpr,
    plan: cute.Constexpr,
    on: cute.Constexpr,
):
    """Launch both kernels; the parameters are those of `norm_backward`'s launch."""
    if rows > 0:
        row_sums_kernel(grad, z, weight, numbers, eps, is_centred, plan).launch(
            grid=rows, block=ROW_THREADS, stream=on
        )
    column_kernel(
        grad, z, weight, grad_z, out, parts, numbers, rows, is_centred, has_bias, plan
    ).launch(
        grid=(cute.ceil_div(plan.vectors, COLUMN_THREADS), groups, 1),
        block=COLUMN_THREADS,
        stream=on,
    )
