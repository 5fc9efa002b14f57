"""Gated linear layers of PyTorch tensors: operations that `torch.compile` and autograd know.

With g = x @ gate, u = x @ up and y = activation(g) * u:

    dg = dy * u * activation'(g)     the product u once more, with the rest as its epilogue
    du = dy * activation(g)
    dx = dg @ gate^T + du @ up^T     dgate = x^T @ dg     dup = x^T @ du

This module imports PyTorch; `gated_linear` imports it when it gets tensors of PyTorch.
"""

from __future__ import annotations

from typing import Any

import torch
import torch.nn.functional as F

from basedsl_cute.ops.gemm.epilogue import GateGradient
from basedsl_cute.ops.gemm.matmul import matmul
from basedsl_cute.ops.gemm.torch_matmul import torch_matmul
from basedsl_cute.ops.layer.gated import gated_products
from basedsl_cute.ops.torch_operation import TorchOperation

_SCHEMA = "(Tensor x, Tensor gate, Tensor up, str activation) -> (Tensor, Tensor)"
_SLOPE_SCHEMA = "(Tensor x, Tensor up, Tensor values, Tensor grad, str activation) -> Tensor"
_ACTIVATIONS = {
    "relu": F.relu,
    "gelu": F.gelu,
    "gelu_tanh": lambda x: F.gelu(x, approximate="tanh"),
    "sigmoid": torch.sigmoid,
    "silu": F.silu,
    "tanh": torch.tanh,
}


def torch_gated(x: Any, gate: Any, up: Any, activation: str) -> Any:
    """Return the gated layer with gradients; the arguments are those of `gated_linear`."""
    return _operation(x, gate, up, activation)[0]


def _run(x: Any, gate: Any, up: Any, activation: str) -> Any:
    return gated_products(x, gate, up, activation)


def _run_slope(x: Any, up: Any, values: Any, grad: Any, activation: str) -> Any:
    epilogue = GateGradient(activation)
    return matmul(x, up, epilogue=epilogue, operands=(values, grad), out_dtype=x.dtype)


def _fake(x: Any, gate: Any, up: Any, activation: str) -> Any:
    """Results without elements."""
    shape = (*x.shape[:-1], gate.shape[-1])
    return x.new_empty(shape), x.new_empty(shape)


def _setup(ctx: Any, inputs: Any, output: Any) -> None:
    *tensors, ctx.activation = inputs
    ctx.save_for_backward(*tensors, output[1])


def _backward(ctx: Any, grad: Any, _: Any) -> Any:
    x, gate, up, values = ctx.saved_tensors
    grad = grad.contiguous()
    of_gate = _slope_operation(x, up, values, grad, ctx.activation)
    of_up = grad * _ACTIVATIONS[ctx.activation](values)
    rows = [t.reshape(-1, t.shape[-1]) for t in (x, of_gate, of_up)]

    def product(a: Any, b: Any, residual: Any = None) -> Any:
        return torch_matmul(a, b, None, residual, None, None, None, False)

    wants_x, wants_gate, wants_up, _ = ctx.needs_input_grad
    of_x = None
    if wants_x:
        of_x = product(rows[2], up.mT, product(rows[1], gate.mT)).reshape(x.shape)
    return (
        of_x,
        product(rows[0].mT, rows[1]) if wants_gate else None,
        product(rows[0].mT, rows[2]) if wants_up else None,
        None,
    )


def _fake_slope(x: Any, up: Any, values: Any, *options: Any) -> Any:
    return values.new_empty(values.shape)


_operation = TorchOperation("gated_linear", _SCHEMA, _run, _fake, _setup, _backward)
_slope_operation = TorchOperation("gated_linear_slope", _SLOPE_SCHEMA, _run_slope, _fake_slope)
