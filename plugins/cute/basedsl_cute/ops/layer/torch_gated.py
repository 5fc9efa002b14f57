"""Gated linear layers of PyTorch tensors: operations that `torch.compile` and autograd know.

With g = x @ gate, u = x @ up and y = activation(g) * u:

    dg, du: see `gating`      dx = dg @ gate^T + du @ up^T      dgate = x^T @ dg      dup = x^T @ du

Where gradients are recorded both products are kept, and y is a kernel of its own: another product
in the backward pass would take longer. This module imports PyTorch; `gated_linear` imports it when
it gets tensors of PyTorch.
"""

from __future__ import annotations

from typing import Any

from basedsl_cute.ops.gemm.epilogue import Gate
from basedsl_cute.ops.gemm.matmul import matmul
from basedsl_cute.ops.gemm.torch_matmul import torch_matmul
from basedsl_cute.ops.layer.gated import gated_products
from basedsl_cute.ops.layer.gating import gate_gradients, gated_values
from basedsl_cute.ops.torch_operation import TorchOperation

_SCHEMA = (
    "(Tensor x, Tensor gate, Tensor up, str activation, bool keeps) -> (Tensor, Tensor, Tensor)"
)
_GRADIENT_SCHEMA = "(Tensor values, Tensor others, Tensor grad, str activation) -> (Tensor, Tensor)"


def torch_gated(x: Any, gate: Any, up: Any, activation: str) -> Any:
    """Return the gated layer with gradients; the arguments are those of `gated_linear`."""
    keeps = any(t.requires_grad for t in (x, gate, up))
    return _operation(x, gate, up, activation, keeps)[0]


def _run(x: Any, gate: Any, up: Any, activation: str, keeps: bool) -> Any:
    """The result, and both products if they are kept."""
    if not keeps:
        y = gated_products(x, gate, up, activation)[0]
        return y, y.new_empty(0), y.new_empty(0)
    Gate(activation)  # an error for one that is not known
    values, others = matmul(x, gate), matmul(x, up)
    return gated_values(values, others, activation), values, others


def _fake(x: Any, gate: Any, up: Any, activation: str, keeps: bool) -> Any:
    """Results without elements."""
    shape = (*x.shape[:-1], gate.shape[-1])
    return x.new_empty(shape), *(x.new_empty(shape if keeps else 0) for _ in range(2))


def _setup(ctx: Any, inputs: Any, output: Any) -> None:
    ctx.set_materialize_grads(False)  # the products have none, and zeros like them take long
    *tensors, ctx.activation, _ = inputs
    ctx.save_for_backward(*tensors, *output[1:])


def _backward(ctx: Any, grad: Any, *_: Any) -> Any:
    if grad is None:  # nothing uses the result
        return (None,) * 5
    x, gate, up, values, others = ctx.saved_tensors
    of_gate, of_up = _gradient_operation(values, others, grad, ctx.activation)
    rows = [t[None].flatten(0, -2) for t in (x, of_gate, of_up)]

    def product(a: Any, b: Any, residual: Any = None) -> Any:
        return torch_matmul(a, b, None, residual, None, None, None, False)

    wants_x, wants_gate, wants_up, *_ = ctx.needs_input_grad
    of_x = None
    if wants_x:
        of_x = product(rows[2], up.mT, product(rows[1], gate.mT)).reshape(x.shape)
    return (
        of_x,
        product(rows[0].mT, rows[1]) if wants_gate else None,
        product(rows[0].mT, rows[2]) if wants_up else None,
        None,
        None,
    )


def _run_gradient(values: Any, others: Any, grad: Any, activation: str) -> Any:
    return gate_gradients(values, others, grad, activation)


def _fake_gradient(values: Any, *others: Any) -> Any:
    """Gradients without elements."""
    return values.new_empty(values.shape), values.new_empty(values.shape)


_operation = TorchOperation("gated_linear", _SCHEMA, _run, _fake, _setup, _backward)
_gradient_operation = TorchOperation(
    "gated_linear_gradient", _GRADIENT_SCHEMA, _run_gradient, _fake_gradient
)
