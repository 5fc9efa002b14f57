"""The linear cross-entropy of PyTorch tensors: an operation that `torch.compile` and autograd know.

Gradients are made with the loss and kept; the backward pass multiplies them by the loss's own. This
module imports PyTorch; `linear_cross_entropy` imports it when it gets tensors of PyTorch.
"""

from __future__ import annotations

from typing import Any

import torch

from basedsl import DSLTypeError
from basedsl_cute.ops.layer.cross_entropy import loss_and_gradients
from basedsl_cute.ops.layer.elementwise import scaled
from basedsl_cute.ops.torch_operation import TorchOperation

_SCHEMA = (
    "(Tensor x, Tensor weight, Tensor targets, int ignore_index, bool wants_x, bool wants_weight) "
    "-> (Tensor, Tensor, Tensor)"
)


def torch_cross_entropy(x: Any, weight: Any, targets: Any, ignore_index: int) -> Any:
    """Return the loss with gradients; the arguments are those of `linear_cross_entropy`."""
    wants = [torch.is_grad_enabled() and t.requires_grad for t in (x, weight)]
    return _operation(x, weight, targets, ignore_index, *wants)[0]


def _run(
    x: Any, weight: Any, targets: Any, ignore_index: int, wants_x: bool, wants_weight: bool
) -> Any:
    found = loss_and_gradients(x, weight, targets, ignore_index, (wants_x, wants_weight))
    nothing = x.new_empty(0)
    return (
        found.loss.reshape(()),
        nothing if found.x is None else found.x,
        x.new_empty(0) if found.weight is None else found.weight,
    )


def _fake(
    x: Any, weight: Any, targets: Any, ignore_index: int, wants_x: bool, wants_weight: bool
) -> Any:
    """Results without elements."""
    return (
        x.new_empty((), dtype=torch.float32),
        x.new_empty(x.shape if wants_x else 0),
        x.new_empty(weight.shape if wants_weight else 0),
    )


def _setup(ctx: Any, inputs: Any, output: Any) -> None:
    ctx.set_materialize_grads(False)  # zeros like the kept gradients, which have none, take long
    ctx.wants = inputs[4:]
    ctx.save_for_backward(*output[1:])


def _backward(ctx: Any, grad: Any, *_: Any) -> Any:
    if torch.is_grad_enabled():
        raise DSLTypeError(
            "linear_cross_entropy has no second derivative", hint="create_graph=False"
        )
    if grad is None:  # nothing uses the loss
        return (None,) * 6
    found = [
        _scaled(of, grad.reshape(1)) if wanted else None
        for of, wanted in zip(ctx.saved_tensors, ctx.wants, strict=True)
    ]
    return (*found, None, None, None, None)


def _fake_scaled(x: Any, factor: Any) -> Any:
    return x.new_empty(x.shape)


_scaled = TorchOperation("scaled", "(Tensor x, Tensor factor) -> Tensor", scaled, _fake_scaled)
_operation = TorchOperation("linear_cross_entropy", _SCHEMA, _run, _fake, _setup, _backward)
