"""Norms of PyTorch tensors: an operation that `torch.compile` and autograd know.

This module imports PyTorch; the norms import it when they get tensors of PyTorch.
"""

from __future__ import annotations

from typing import Any

import torch

from basedsl_cute.ops.layer import norm

_FORWARD = {"rms_norm": norm.rms_norm, "layer_norm": norm.layer_norm}
_SCHEMA = (
    "(str operation, Tensor x, Tensor? weight, Tensor? bias, Tensor? residual, float eps) "
    "-> (Tensor, Tensor)"
)
_BACKWARD_SCHEMA = (
    "(str operation, Tensor grad, Tensor z, Tensor? weight, bool has_bias, float eps, "
    "Tensor? grad_z) -> (Tensor, Tensor, Tensor)"
)


def torch_norm(operation: str, x: Any, weight: Any, bias: Any, residual: Any, eps: float) -> Any:
    """Return the norm with gradients; the arguments are those of `rms_norm` and `layer_norm`."""
    y, z = _operation(operation, x, weight, bias, residual, float(eps))
    return y if residual is None else (y, z)


def _run(operation: str, x: Any, weight: Any, bias: Any, residual: Any, eps: float) -> Any:
    """The norm, and z, of which there is none without a residual."""
    vectors = (weight,) if operation == "rms_norm" else (weight, bias)
    with torch.no_grad():
        found = _FORWARD[operation](x, *vectors, residual=residual, eps=eps)
    return (found, x.new_empty(0)) if residual is None else found


_operation = torch.library.custom_op("basedsl_cute::norm", _run, mutates_args=(), schema=_SCHEMA)


def _fake(operation: str, x: Any, weight: Any, bias: Any, residual: Any, eps: float) -> Any:
    """Results without elements."""
    return x.new_empty(x.shape), x.new_empty(0 if residual is None else x.shape)


def _run_backward(
    operation: str, grad: Any, z: Any, weight: Any, has_bias: bool, eps: float, grad_z: Any
) -> Any:
    with torch.no_grad():
        found = norm.norm_backward(operation, grad, z, weight, has_bias, eps, grad_z)
    nothing = z.new_empty(0, dtype=torch.float32)
    return tuple(nothing if x is None else x.clone() if i else x for i, x in enumerate(found))


_backward_operation = torch.library.custom_op(
    "basedsl_cute::norm_backward", _run_backward, mutates_args=(), schema=_BACKWARD_SCHEMA
)


def _fake_backward(
    operation: str, grad: Any, z: Any, weight: Any, has_bias: bool, eps: float, grad_z: Any
) -> Any:
    """Gradients without elements."""
    of_weight = 0 if weight is None else weight.shape
    of_bias = z.shape[-1:] if has_bias else 0
    vectors = [z.new_empty(shape, dtype=torch.float32) for shape in (of_weight, of_bias)]
    return (z.new_empty(z.shape), *vectors)


def _setup(ctx: Any, inputs: Any, output: Any) -> None:
    ctx.operation, x, weight, bias, residual, ctx.eps = inputs
    ctx.has_residual = residual is not None
    ctx.save_for_backward(output[1] if ctx.has_residual else x, weight, bias)


def _backward(ctx: Any, grad: Any, grad_z: Any) -> Any:
    z, weight, bias = ctx.saved_tensors
    if not ctx.has_residual:
        grad_z = None
    of_z, of_weight, of_bias = _backward_operation(
        ctx.operation, grad, z, weight, bias is not None, ctx.eps, grad_z
    )
    return (
        None,
        of_z,
        None if weight is None else of_weight.to(weight.dtype),
        None if bias is None else of_bias.to(bias.dtype),
        of_z if ctx.has_residual else None,
        None,
    )


_operation.register_fake(_fake)
_operation.register_autograd(_backward, setup_context=_setup)
_backward_operation.register_fake(_fake_backward)
