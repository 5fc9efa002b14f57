"""Norms of PyTorch tensors: an operation that `torch.compile` and autograd know.

This module imports PyTorch; the norms import it when they get tensors of PyTorch.
"""

from __future__ import annotations

from typing import Any

from basedsl_cute.ops.layer import norm
from basedsl_cute.ops.torch_operation import TorchOperation

_FORWARD = {"rms_norm": norm.rms_norm, "layer_norm": norm.layer_norm}
_SCHEMA = (
    "(str operation, Tensor x, Tensor? weight, Tensor? bias, Tensor? residual, float eps) "
    "-> (Tensor, Tensor)"
)
_BACKWARD_SCHEMA = (
    "(str operation, Tensor grad, Tensor z, Tensor? weight, Tensor? bias, float eps, "
    "Tensor? grad_z) -> (Tensor, Tensor, Tensor)"
)


def torch_norm(operation: str, x: Any, weight: Any, bias: Any, residual: Any, eps: float) -> Any:
    """Return the norm with gradients; the arguments are those of `rms_norm` and `layer_norm`."""
    y, z = _operation(operation, x, weight, bias, residual, float(eps))
    return y if residual is None else (y, z)


def _run(operation: str, x: Any, weight: Any, bias: Any, residual: Any, eps: float) -> Any:
    """The norm, and z, of which there is none without a residual."""
    vectors = (weight,) if operation == "rms_norm" else (weight, bias)
    found = _FORWARD[operation](x, *vectors, residual=residual, eps=eps)
    return (found, x.new_empty(0)) if residual is None else found


def _fake(operation: str, x: Any, weight: Any, bias: Any, residual: Any, eps: float) -> Any:
    """Results without elements."""
    return x.new_empty(x.shape), x.new_empty(0 if residual is None else x.shape)


def _run_backward(
    operation: str, grad: Any, z: Any, weight: Any, bias: Any, eps: float, grad_z: Any
) -> Any:
    found = norm.norm_backward(operation, grad, z, weight, bias, eps, grad_z)
    return tuple(z.new_empty(0) if x is None else x for x in found)


def _fake_backward(
    operation: str, grad: Any, z: Any, weight: Any, bias: Any, eps: float, grad_z: Any
) -> Any:
    """Gradients without elements."""
    return tuple(z.new_empty(0) if x is None else x.new_empty(x.shape) for x in (z, weight, bias))


def _setup(ctx: Any, inputs: Any, output: Any) -> None:
    ctx.set_materialize_grads(False)
    ctx.operation, x, weight, bias, residual, ctx.eps = inputs
    ctx.has_residual = residual is not None
    ctx.save_for_backward(output[1] if ctx.has_residual else x, weight, bias)


def _backward(ctx: Any, grad: Any, grad_z: Any) -> Any:
    z, weight, bias = ctx.saved_tensors
    if grad is None:  # nothing uses the norm itself
        grad = z.new_zeros(z.shape)
    if not ctx.has_residual:
        grad_z = None
    of_z, of_weight, of_bias = _backward_operation(
        ctx.operation, grad, z, weight, bias, ctx.eps, grad_z
    )
    return (
        None,
        of_z,
        None if weight is None else of_weight,
        None if bias is None else of_bias,
        of_z if ctx.has_residual else None,
        None,
    )


_operation = TorchOperation("norm", _SCHEMA, _run, _fake, _setup, _backward)
_backward_operation = TorchOperation(
    "norm_backward", _BACKWARD_SCHEMA, _run_backward, _fake_backward
)
