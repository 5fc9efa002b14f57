"""Rotary embedding of PyTorch tensors: an operation that `torch.compile` and autograd know.

This module imports PyTorch; `rotary` imports it when it gets tensors of PyTorch.
"""

from __future__ import annotations

from typing import Any

from basedsl_cute.ops.layer.rotary import rotary
from basedsl_cute.ops.torch_operation import TorchOperation

_SCHEMA = "(Tensor x, Tensor cos, Tensor sin, bool interleaved, bool inverse) -> Tensor"


def torch_rotary(x: Any, cos: Any, sin: Any, interleaved: bool, inverse: bool) -> Any:
    """Return `x` turned, with a gradient; the arguments are those of `rotary`."""
    return _operation(x, cos, sin, interleaved, inverse)


def _run(x: Any, cos: Any, sin: Any, interleaved: bool, inverse: bool) -> Any:
    return rotary(x, cos, sin, interleaved=interleaved, inverse=inverse)


def _setup(ctx: Any, inputs: Any, output: Any) -> None:
    _, cos, sin, *ctx.options = inputs
    ctx.save_for_backward(cos, sin)


def _backward(ctx: Any, grad: Any) -> Any:
    cos, sin = ctx.saved_tensors
    interleaved, inverse = ctx.options
    return _operation(grad, cos, sin, interleaved, not inverse), None, None, None, None


def _fake(x: Any, *options: Any) -> Any:
    return x.new_empty(x.shape)


_operation = TorchOperation("rotary", _SCHEMA, _run, _fake, _setup, _backward)
