"""`matmul` of PyTorch tensors: an operation that `torch.compile` and autograd know.

With z = alpha * a @ b + bias and y = activation(z) + residual, and dx for the gradient by x:

    dz = dy * activation'(z)        the product once more, with the derivative as its epilogue
    da = alpha * dz @ b^T           db = alpha * a^T @ dz
    dbias = sum of dz               dresidual = dy              dalpha = sum of (dz @ b^T) * a

z is computed again rather than kept: it is as large as y, and layers keep their inputs anyway. This
module imports PyTorch; `matmul` imports it when it gets tensors of PyTorch.
"""

from __future__ import annotations

from typing import Any

import torch

from basedsl import DSLTypeError
from basedsl_cute.ops.array_libraries import library
from basedsl_cute.ops.gemm.epilogue import ActivationGradient
from basedsl_cute.ops.gemm.matmul import matmul
from basedsl_cute.ops.gemm.tuning import TUNE
from basedsl_cute.ops.torch_operation import TorchOperation

_SCHEMA = (
    "(Tensor a, Tensor b, Tensor? bias, Tensor? residual, Tensor? alpha, float? factor, "
    "str? activation, ScalarType dtype, bool tf32, bool tune) -> Tensor"
)
_SLOPE_SCHEMA = (
    "(Tensor a, Tensor b, Tensor? bias, Tensor grad, Tensor? alpha, float? factor, "
    "str activation, bool tf32, bool tune) -> Tensor"
)


def torch_matmul(
    a: Any,
    b: Any,
    bias: Any,
    residual: Any,
    alpha: Any,
    activation: str | None,
    out_dtype: Any,
    tf32: bool,
    tune: bool = False,
) -> Any:
    """Return the product with gradients; the arguments are those of `matmul`, and `tune` says that
    its `config` is "tune", which the products of the backward pass have then too.

    Raises DSLTypeError for 8-bit floats that require a gradient, which would need scales.
    """
    if a.dtype.itemsize == 1 and (a.requires_grad or b.requires_grad):
        raise DSLTypeError(
            f"matmul computes no gradients of {a.dtype}", hint="call it under torch.no_grad()"
        )
    tensor, number = (alpha, None) if isinstance(alpha, torch.Tensor) else (None, alpha)
    number = None if number is None else float(number)
    dtype = _result_dtype(a, out_dtype)
    return _operation(a, b, bias, residual, tensor, number, activation, dtype, tf32, tune)


def _result_dtype(a: Any, asked: Any) -> Any:
    """PyTorch's dtype of the result: `asked`, a dtype or a numeric class, or the default for a."""
    if asked is None:
        if a.dtype.itemsize > 1:
            return a.dtype
        return torch.float32 if a.dtype.is_floating_point else torch.int32
    return asked if isinstance(asked, torch.dtype) else library(a).dtype(asked)


def _product(
    a: Any,
    b: Any,
    bias: Any,
    residual: Any,
    alpha: Any,
    factor: Any,
    activation: Any,
    dtype: Any,
    tf32: bool,
    tune: bool,
) -> Any:
    return matmul(
        a,
        b,
        bias=bias,
        residual=residual,
        alpha=factor if alpha is None else alpha,
        activation=activation,
        out_dtype=dtype,
        tf32=tf32,
        config=TUNE if tune else None,
    )


def _slope(
    a: Any,
    b: Any,
    bias: Any,
    grad: Any,
    alpha: Any,
    factor: Any,
    activation: Any,
    tf32: bool,
    tune: bool,
) -> Any:
    """dz, in the type of `a`."""
    by = factor if alpha is None else alpha
    epilogue = ActivationGradient(activation, by is not None, bias is not None)
    operands = tuple(x for x in (by, bias, grad) if x is not None)
    return matmul(
        a,
        b,
        epilogue=epilogue,
        operands=operands,
        out_dtype=a.dtype,
        tf32=tf32,
        config=TUNE if tune else None,
    )


def _fake(a: Any, b: Any, *options: Any) -> Any:
    """A result without elements."""
    batch = torch.broadcast_shapes(a.shape[:-2], b.shape[:-2])
    columns = b.shape[-1:] if b.dim() > 1 else ()
    return a.new_empty((*batch, *a.shape[-2:-1], *columns), dtype=options[-3])


def _setup(ctx: Any, inputs: Any, output: Any) -> None:
    a, b, bias, residual, alpha, *options = inputs
    ctx.save_for_backward(a, b, bias, alpha)
    ctx.residual = None if residual is None else (residual.shape, residual.dtype)
    ctx.options = options


def _backward(ctx: Any, grad: Any) -> Any:
    a, b, bias, alpha = ctx.saved_tensors
    factor, activation, _, *how = ctx.options
    wants_a, wants_b, wants_bias, wants_residual, wants_alpha, *_ = ctx.needs_input_grad
    slope = grad
    if activation is not None:
        slope = _slope_operation(a, b, bias, grad, alpha, factor, activation, *how)
    of_a = of_b = of_bias = of_residual = of_alpha = None
    if wants_bias:
        of_bias = slope.sum_to_size(bias.shape).to(bias.dtype)
    if wants_residual:
        shape, dtype = ctx.residual
        of_residual = grad.sum_to_size(shape).to(dtype)
    # Vectors as the matrices that they stand for, batches with one b as one long matrix.
    rows, columns = a if a.dim() > 1 else a[None], b if b.dim() > 1 else b[:, None]
    batch = torch.broadcast_shapes(rows.shape[:-2], columns.shape[:-2])
    slope = slope.to(a.dtype).reshape(*batch, rows.shape[-2], columns.shape[-1])
    if columns.dim() == 2:
        rows, slope = rows.flatten(0, -2), slope.flatten(0, -2)
    if wants_a:
        of_a = _summed(slope, columns.mT, rows, alpha, factor, *how).reshape(a.shape)
    if wants_b:
        of_b = _summed(rows.mT, slope, columns, alpha, factor, *how).reshape(b.shape)
    if wants_alpha:
        wide = rows.to(_dtype_of_sums(rows))
        by_alpha = _summed(slope, columns.mT, wide, None, None, *how) * rows
        of_alpha = by_alpha.sum().reshape(alpha.shape).to(alpha.dtype)
    return (of_a, of_b, of_bias, of_residual, of_alpha, *[None] * 5)


def _summed(x: Any, y: Any, like: Any, alpha: Any, factor: Any, *how: bool) -> Any:
    """alpha * x @ y in the type of `like`, summed over the batches that `like` has not."""
    is_sum = torch.broadcast_shapes(x.shape[:-2], y.shape[:-2]) != like.shape[:-2]
    dtype = _dtype_of_sums(like) if is_sum else like.dtype
    made = _operation(x, y, None, None, alpha, factor, None, dtype, *how)
    return made.sum_to_size(like.shape).to(like.dtype) if is_sum else made


def _dtype_of_sums(x: Any) -> Any:
    return torch.promote_types(x.dtype, torch.float32)


def _fake_slope(a: Any, b: Any, *options: Any) -> Any:
    return _fake(a, b, a.dtype, None, None)


_operation = TorchOperation("matmul", _SCHEMA, _product, _fake, _setup, _backward)
_slope_operation = TorchOperation("matmul_slope", _SLOPE_SCHEMA, _slope, _fake_slope)
