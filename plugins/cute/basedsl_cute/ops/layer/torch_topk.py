"""The top k of PyTorch tensors: an operation that `torch.compile` and autograd know.

This module imports PyTorch; `topk` imports it when it gets tensors of PyTorch.
"""

from __future__ import annotations

from typing import Any

import torch

from basedsl_cute.ops.layer.topk import topk
from basedsl_cute.ops.torch_operation import TorchOperation


def torch_topk(x: Any, k: int, largest: bool) -> Any:
    """Return values, with a gradient, and indices; the arguments are those of `topk`."""
    return _operation(x, k, largest)


def _run(x: Any, k: int, largest: bool) -> Any:
    return tuple(topk(x, k, largest=largest))


def _fake(x: Any, k: int, largest: bool) -> Any:
    """Results without elements."""
    shape = (*x.shape[:-1], k)
    return x.new_empty(shape), x.new_empty(shape, dtype=torch.int64)


def _setup(ctx: Any, inputs: Any, output: Any) -> None:
    ctx.set_materialize_grads(False)
    ctx.shape = inputs[0].shape
    ctx.mark_non_differentiable(output[1])
    ctx.save_for_backward(output[1])


def _backward(ctx: Any, grad: Any, _: Any) -> Any:
    if grad is None:  # nothing uses the values
        return None, None, None
    (indices,) = ctx.saved_tensors
    return grad.new_zeros(ctx.shape).scatter(-1, indices, grad), None, None


_operation = TorchOperation(
    "topk", "(Tensor x, int k, bool largest) -> (Tensor, Tensor)", _run, _fake, _setup, _backward
)
