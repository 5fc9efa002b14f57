"""RMSNorm and LayerNorm of rows, forward and backward, also of a sum with a residual.

With the row z = x + residual of N elements, centred = z - mean(z) for LayerNorm and z for RMSNorm:

    r = 1 / sqrt(mean(centred^2) + eps)     n = centred * r     y = n * weight + bias
    g = dy * weight     dz = r * (g - n * mean(g * n) - mean(g)) + d(z)     mean(g): LayerNorm alone
    dweight = sum over rows of dy * n       dbias = sum over rows of dy

A row stays in registers from its load to the result. Gradients of weight and bias are summed by
each block over its rows, then over the blocks, always in the same order.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import basedsl_cute as cute
from basedsl import ArrayRecord, DSLTypeError
from basedsl_cute import arch
from basedsl_cute.algebra.explained_calls import explains_arguments
from basedsl_cute.dsl.hardware_info import HardwareInfo
from basedsl_cute.ops.array_libraries import ArrayLibrary, known_libraries, library
from basedsl_cute.ops.jax_arrays import is_jax
from basedsl_cute.ops.layer import long_norm_gradient
from basedsl_cute.ops.layer.rows import (
    RowPlan,
    element_type,
    extents_of,
    is_long,
    load_row,
    only_columns,
    registers,
    row_plan,
    row_slots,
    row_sums,
    store_row,
    this_row,
)
from basedsl_cute.ops.plan_cache import PlanCache, asked_options, launch_plan


@explains_arguments
def rms_norm(x: Any, weight: Any = None, *, residual: Any = None, eps: float = 1e-6) -> Any:
    """Normalise rows by the root of their mean square: z / sqrt(mean(z^2) + eps) * weight, where z
    is x + residual.

    `x` and `residual` are arrays (..., N) of PyTorch, CuPy, JAX or NumPy, of Float16, BFloat16 or
    Float32, `weight` one of (N,) of any of these types. Sums are Float32.

    Returns an array like `x`; with a residual also z, which the next residual is. PyTorch and JAX
    compute gradients of all of them. Raises DSLTypeError for other types and extents.

    >>> import numpy as np
    >>> from basedsl_cute.ops import rms_norm
    >>> rms_norm(np.ones((1, 2), np.float32), np.array([2, 3], np.float32), eps=0.0)
    array([[2., 3.]], dtype=float32)
    """
    return _norm("rms_norm", x, weight, None, residual, eps)


@explains_arguments
def layer_norm(
    x: Any, weight: Any = None, bias: Any = None, *, residual: Any = None, eps: float = 1e-5
) -> Any:
    """Normalise rows by mean and variance: (z - mean(z)) / sqrt(var(z) + eps) * weight + bias,
    where z is x + residual.

    `x` and `residual` are arrays (..., N) of PyTorch, CuPy, JAX or NumPy, of Float16, BFloat16 or
    Float32, `weight` and `bias` of (N,) and any of these types. Sums are Float32, and the variance
    is that of N elements.

    Returns an array like `x`; with a residual also z, which the next residual is. PyTorch and JAX
    compute gradients of all of them. Raises DSLTypeError for other types and extents.

    >>> import numpy as np
    >>> from basedsl_cute.ops import layer_norm
    >>> layer_norm(np.array([[3, 5]], np.float32), eps=0.0)
    array([[-1.,  1.]], dtype=float32)
    """
    return _norm("layer_norm", x, weight, bias, residual, eps)


class NormGradients(NamedTuple):
    """Gradients of a norm: by z (x and the residual have the same), weight and bias."""

    x: Any
    weight: Any
    bias: Any


def norm_backward(
    operation: str,
    grad: Any,
    z: Any,
    weight: Any,
    bias: Any,
    eps: float,
    grad_z: Any = None,
    out: Any = None,
) -> NormGradients:
    """Return the gradients of `operation`, "rms_norm" or "layer_norm", from `grad`, that of its
    result, and `grad_z`, that of the sum with the residual.

    Gradients are like the arrays that they belong to, None where there is none; that of z is
    written to `out`, if it is given.
    """
    lib = library(z, operation)
    key = (
        operation,
        None if bias is None else bias.dtype,
        asked_options(),
        lib.key(grad),
        lib.key(z),
        None if weight is None else lib.key(weight),
        None if grad_z is None else lib.key(grad_z),
        None if out is None else lib.key(out),
    )
    plan = _plans.get(key)
    if plan is None:
        made = _backward_plan(lib, operation, grad, z, weight, bias, grad_z, out)
        plan = _plans.keep(key, made)
    if not plan.is_direct:
        given = (grad, z, weight, grad_z)
        grad, z, weight, grad_z = (None if x is None else lib.compact(x) for x in given)
    columns = (plan.row.columns,)
    if out is None:
        out = lib.empty(z.shape, z.dtype, z)
    of_weight = None if weight is None else lib.empty(columns, weight.dtype, z)
    of_bias = None if bias is None else lib.empty(columns, bias.dtype, z)
    parts = None
    if plan.parts is not None:
        parts = lib.empty(plan.parts, plan.f32, z)
    numbers = None
    if plan.has_numbers:
        numbers = lib.empty((plan.rows, long_norm_gradient.ROW_NUMBERS), plan.f32, z)
    arrays = (grad, z, weight, grad_z, out, parts, numbers, of_weight, of_bias)
    given = (*arrays, plan.rows, plan.blocks, eps)
    launch_plan(plan, _launch_backward, given, plan.static, lib.stream(z))
    return NormGradients(out, of_weight, of_bias)


def _backward_plan(
    lib: ArrayLibrary,
    operation: str,
    grad: Any,
    z: Any,
    weight: Any,
    bias: Any,
    grad_z: Any,
    out: Any,
) -> _NormPlan:
    rows, columns = extents_of(operation, "z", z)
    arrays = (z, grad, weight, grad_z, out)
    row = row_plan(lib, operation, columns, element_type(operation, "z", z), arrays)
    record = ArrayRecord.of(z)
    device = HardwareInfo(record.device[1] if record.is_on_gpu else None)
    processors = device.get_device_multiprocessor_count()
    by_columns = is_long(columns)
    if by_columns:
        row = replace(row, rows=1, cluster=1)
        blocks = long_norm_gradient.groups_of_rows(rows, row.vectors, processors)
    else:
        blocks = max(min(-(-rows // row.rows), 2 * processors), 1)
    sums = (weight is not None) + (bias is not None)
    given = (grad, z, weight, grad_z)
    static = (operation == "layer_norm", row)
    parts = (sums, blocks * row.rows, columns) if sums else None
    f32 = lib.dtype(cute.Float32)
    return _NormPlan(row, rows, _are_compact(lib, given), static, blocks, parts, f32, by_columns)


@dataclass
class _NormPlan:
    """The way to compute a norm of arrays of one kind: the same extents, strides, types and
    alignment.
    """

    row: RowPlan
    rows: int
    is_direct: bool  # arrays are taken as they are, not copied first
    static: tuple[Any, ...]  # of the launch
    blocks: int = 0
    parts: tuple[int, int, int] | None = None  # the shape of sums of blocks, for vectors' gradients
    f32: Any = None  # the elements of `parts`
    has_numbers: bool = False  # of each row, between two kernels of the gradients of long rows
    compiled: Any = None


_plans: PlanCache[_NormPlan] = PlanCache()


def _are_compact(lib: ArrayLibrary, arrays: tuple[Any, ...]) -> bool:
    return all(x is None or lib.compact(x) is x for x in arrays)


def _norm(operation: str, x: Any, weight: Any, bias: Any, residual: Any, eps: float) -> Any:
    if is_jax(x):
        from basedsl_cute.ops.layer.jax_layer import jax_norm  # it imports JAX

        return jax_norm(operation, x, weight, bias, residual, eps)
    lib = library(x, operation)
    if type(eps) is not float:
        eps = _number(operation, eps)
    if lib.is_autocasting():
        from basedsl_cute.ops.torch_autocast import widened  # it imports PyTorch

        x, residual = widened(operation, x, residual)
    if lib.records(x, weight, bias, residual):
        from basedsl_cute.ops.layer.torch_norm import torch_norm  # it imports PyTorch

        return torch_norm(operation, x, weight, bias, residual, eps)
    return norm_into(None, operation, x, weight, bias, residual, eps)


def _number(operation: str, eps: Any) -> float:
    """The float that `eps` is; DSLTypeError for what is no number, or learned."""
    is_learned = getattr(eps, "requires_grad", False)
    try:
        return float("none" if isinstance(eps, str | bool) or is_learned else eps)
    except (TypeError, ValueError, OverflowError):
        raise DSLTypeError(
            f"{operation}: eps={eps!r}", hint="pass a number, such as 1e-6"
        ) from None


def norm_into(
    out: Any, operation: str, x: Any, weight: Any, bias: Any, residual: Any, eps: float
) -> Any:
    """Write the norm, and with a residual z, to the arrays `out`, or to new ones, and return
    them as `rms_norm` does.
    """
    lib = library(x, operation)
    given = (x, residual, weight, bias)
    for name, other in zip(("x", "residual", "weight", "bias"), given, strict=True):
        if other is None or known_libraries.get(type(other)) is lib:
            continue
        if library(other, f"{operation} ({name})") is not lib:
            raise DSLTypeError(
                f"{operation}: {name} is of another library than x",
                hint="pass arrays of one library",
            )
    keys = [None if other is None else lib.key(other) for other in given]
    key = (operation, asked_options(), *keys, *map(lib.key, out or ()))
    plan = _plans.get(key)
    if plan is None:
        plan = _plans.keep(key, _forward_plan(lib, operation, x, weight, bias, residual, out or ()))
    if not plan.is_direct:
        x, residual, weight, bias = (
            None if other is None else lib.compact(other) for other in given
        )
    if out is None:
        out = [lib.empty(x.shape, x.dtype, x) for _ in range(1 if residual is None else 2)]
    y, z = (*out, None)[:2]
    if plan.rows:
        given = (x, residual, weight, bias, y, z, plan.rows, eps)
        launch_plan(plan, _launch, given, plan.static, lib.stream(x))
    return y if z is None else (y, z)


def _forward_plan(
    lib: ArrayLibrary, operation: str, x: Any, weight: Any, bias: Any, residual: Any, out: Any
) -> _NormPlan:
    _check_arrays(operation, x, weight, bias, residual)
    rows, columns = extents_of(operation, "x", x)
    given = (x, residual, weight, bias)
    row = row_plan(lib, operation, columns, element_type(operation, "x", x), (*given, *out))
    return _NormPlan(row, rows, _are_compact(lib, given), (operation == "layer_norm", row))


def _check_arrays(operation: str, x: Any, weight: Any, bias: Any, residual: Any) -> None:
    """Raise DSLTypeError for arrays that do not fit together."""
    given = {"x": x, "weight": weight, "bias": bias, "residual": residual}
    for name, other in given.items():
        if other is None:
            continue
        element_type(operation, name, other)
        wanted = tuple(x.shape) if name in ("x", "residual") else tuple(x.shape[-1:])
        if tuple(other.shape) != wanted:
            raise DSLTypeError(f"{operation}: {name} is {tuple(other.shape)}, not {wanted}")
    if residual is not None and residual.dtype != x.dtype:
        raise DSLTypeError(f"{operation}: residual is of {residual.dtype}, and x of {x.dtype}")


# Kernels -----------------------------------------------------------------------------------------


@cute.jit
def _normal(z: Any, slots: Any, eps: Any, is_centred: cute.Constexpr, plan: cute.Constexpr):
    """The row's centred elements and 1 / sqrt(mean(centred^2) + eps)."""
    if cute.const_expr(is_centred):
        (total,) = row_sums((z,), slots, plan, 1)
        z = only_columns(z - total * (1 / plan.columns), plan)
    (squares,) = row_sums((z * z,), slots, plan, 0)
    return z, cute.math.rsqrt(squares * (1 / plan.columns) + eps)


@cute.kernel
def norm_kernel(
    x: cute.Tensor,
    residual,  # tensors or None, from here
    weight,
    bias,
    y: cute.Tensor,
    z,
    rows: cute.Int32,
    eps: cute.Float32,
    is_centred: cute.Constexpr,
    plan: cute.Constexpr,
):
    """Write the norm of rows of `x`, or of `x + residual`, which goes to `z`, to `y`."""
    row = this_row(plan)
    inside = row < rows
    row = cute.min(row, rows - 1)  # of a last block: it must take part in the sums
    value = load_row(x, row, plan)
    slots = row_slots(1, plan)
    if cute.const_expr(residual is not None):
        value = value + load_row(residual, row, plan)
        value = value.to(z.element_type).to(cute.Float32)  # what the gradient will see
        if inside:
            store_row(value, z, row, plan)
    value, factor = _normal(value, slots, eps, is_centred, plan)
    value = value * factor
    if cute.const_expr(weight is not None):
        value = value * load_row(weight, 0, plan)
    if cute.const_expr(bias is not None):
        value = value + load_row(bias, 0, plan)
    if inside:
        store_row(value, y, row, plan)


@cute.kernel
def norm_backward_kernel(
    grad: cute.Tensor,
    z: cute.Tensor,
    weight,  # tensors or None, from here
    grad_z,
    out: cute.Tensor,
    parts,
    rows: cute.Int32,
    eps: cute.Float32,
    is_centred: cute.Constexpr,
    has_bias: cute.Constexpr,
    plan: cute.Constexpr,
):
    """Write the gradient of rows of `z` to `out`, and to `parts` those of weight and bias, summed
    over the rows of a block's threads.
    """
    first = this_row(plan)
    steps = arch.grid_dim()[0] * plan.rows
    slots = row_slots(3, plan)
    of_weight, of_bias = registers(plan), registers(plan)
    of_weight.fill(0.0)
    of_bias.fill(0.0)
    if cute.const_expr(weight is not None):
        scale = load_row(weight, 0, plan)
    for turn in range(cute.ceil_div(rows, steps)):
        row = first + turn * steps
        inside = row < rows
        row = cute.min(row, rows - 1)
        value = load_row(z, row, plan)
        dy = load_row(grad, row, plan)
        if not inside:
            dy = cute.zeros_like(dy)
        if cute.const_expr(is_centred):
            (total,) = row_sums((value,), slots, plan, 1)
            value = only_columns(value - total * (1 / plan.columns), plan)
        slope = dy
        if cute.const_expr(weight is not None):
            slope = dy * scale
        sums = (value * value, slope * value, slope)
        squares, along, mean = row_sums(sums, slots, plan, 0 if is_centred else turn)
        factor = cute.math.rsqrt(squares * (1 / plan.columns) + eps)
        normal = value * factor
        result = slope - normal * (along * factor * (1 / plan.columns))
        if cute.const_expr(is_centred):
            result = result - mean * (1 / plan.columns)
        result = result * factor
        if cute.const_expr(grad_z is not None):
            result = result + load_row(grad_z, row, plan)
        if inside:
            store_row(result, out, row, plan)
        of_weight.store(of_weight.load() + dy * normal)
        of_bias.store(of_bias.load() + dy)
    place = 0
    if cute.const_expr(weight is not None):
        store_row(of_weight.load(), parts, first, plan)
        place = steps
    if cute.const_expr(has_bias):
        store_row(of_bias.load(), parts, first + place, plan)


_SUM_WARPS = 8


@cute.kernel
def sum_parts_kernel(parts: cute.Tensor, totals: tuple):
    """Sum `parts` (sums, parts, columns) over their second mode into `totals`, a vector for each
    sum: each warp some of them, the first warp those of the warps.
    """
    warp, lane = arch.warp_idx(), arch.lane_idx()
    block, sums, _ = arch.block_idx()
    column = block * arch.WARP_SIZE + lane
    shared = arch.alloc_smem(cute.Float32, _SUM_WARPS * arch.WARP_SIZE)
    shared = cute.make_tensor(shared, cute.make_layout((arch.WARP_SIZE, _SUM_WARPS)))
    value = cute.Float32(0.0)
    if column < parts.shape[2]:
        for part in range(warp, parts.shape[1], _SUM_WARPS):
            value += parts[sums, part, column]
    shared[lane, warp] = value
    arch.sync_threads()
    if warp == 0 and column < parts.shape[2]:
        value = shared[lane, 0]
        for n in cute.range_constexpr(1, _SUM_WARPS):
            value += shared[lane, n]
        for n in cute.range_constexpr(len(totals)):
            if sums == n:
                totals[n][column] = value.to(totals[n].element_type)


@cute.jit
def _launch(
    x: cute.Tensor,
    residual: cute.Tensor | None,
    weight: cute.Tensor | None,
    bias: cute.Tensor | None,
    y: cute.Tensor,
    z: cute.Tensor | None,
    rows: cute.Int32,
    eps: cute.Float32,
    is_centred: cute.Constexpr,
    plan: cute.Constexpr,
    stream: cute.Int64,
):
    norm_kernel(x, residual, weight, bias, y, z, rows, eps, is_centred, plan).launch(
        grid=plan.grid(rows),
        block=plan.block,
        cluster=plan.cluster_shape,
        stream=cute.Stream(stream.ir_value()),
    )


@cute.jit
def _launch_backward(
    grad: cute.Tensor,
    z: cute.Tensor,
    weight: cute.Tensor | None,
    grad_z: cute.Tensor | None,
    out: cute.Tensor,
    parts: cute.Tensor | None,
    numbers: cute.Tensor | None,
    of_weight: cute.Tensor | None,
    of_bias: cute.Tensor | None,
    rows: cute.Int32,
    blocks: cute.Int32,
    eps: cute.Float32,
    is_centred: cute.Constexpr,
    plan: cute.Constexpr,
    stream: cute.Int64,
):
    on = cute.Stream(stream.ir_value())
    if cute.const_expr(numbers is not None):
        long_norm_gradient.launch(
            grad, z, weight, grad_z, out, parts, numbers, rows, blocks, eps,
            is_centred, of_bias is not None, plan, on,
        )  # fmt: skip
    else:
        norm_backward_kernel(
            grad, z, weight, grad_z, out, parts, rows, eps, is_centred, of_bias is not None, plan
        ).launch(grid=cute.max(blocks, 1), block=plan.block, stream=on)
    totals = tuple(x for x in (of_weight, of_bias) if x is not None)
    if cute.const_expr(parts is not None):
        sum_parts_kernel(parts, totals).launch(
            grid=(cute.ceil_div(cute.size(parts, mode=[2]), arch.WARP_SIZE), len(totals), 1),
            block=_SUM_WARPS * arch.WARP_SIZE,
            stream=on,
        )
