"""Softmax of PyTorch tensors: an operation that `torch.compile` and autograd know.

This module imports PyTorch; `softmax` imports it when it gets tensors of PyTorch.
"""

from __future__ import annotations

from typing import Any

from basedsl_cute.ops.layer.softmax import softmax, softmax_backward
from basedsl_cute.ops.torch_operation import TorchOperation


def torch_softmax(x: Any) -> Any:
    """Return the softmax with a gradient; the argument is that of `softmax`."""
    return _operation(x)


def _run_backward(grad: Any, y: Any) -> Any:
    return softmax_backward(grad, y)


def _fake(x: Any) -> Any:
    """A result without elements."""
    return x.new_empty(x.shape)


def _fake_backward(grad: Any, y: Any) -> Any:
    return y.new_empty(y.shape)


def _setup(ctx: Any, inputs: Any, output: Any) -> None:
    ctx.save_for_backward(output)


def _backward(ctx: Any, grad: Any) -> Any:
    (y,) = ctx.saved_tensors
    return _backward_operation(grad, y)


_operation = TorchOperation("softmax", "(Tensor x) -> Tensor", softmax, _fake, _setup, _backward)
_backward_operation = TorchOperation(
    "softmax_backward", "(Tensor grad, Tensor y) -> Tensor", _run_backward, _fake_backward
)
