"""`attention` of PyTorch tensors: an operation that `torch.compile` and autograd know.

Options that are numbers and tensors go through `torch.ops.basedsl_cute.attention`. Functions of the
user's cannot be arguments of an operation: with them an `autograd.Function` does the same, which
`torch.compile` does not see into.

This module imports PyTorch; `attention` imports it when it gets tensors of PyTorch. The operations
are registered by that: the compiler runs imports, where it would trace a call.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

from basedsl import DSLTypeError
from basedsl_cute.ops.array_libraries import library
from basedsl_cute.ops.flash.arguments import (
    check_constant,
    check_layout,
    normalised_causal,
    normalised_window,
)
from basedsl_cute.ops.flash.attention import planned
from basedsl_cute.ops.flash.captured import Captured
from basedsl_cute.ops.flash.gradients import planned_gradients
from basedsl_cute.ops.torch_operation import TorchOperation

_PARAMETERS = (
    "Tensor? bias, Tensor? alibi, Tensor? sinks, "
    "Tensor? cu_seqlens_q, Tensor? cu_seqlens_k, int? max_seqlen_q, int? max_seqlen_k, "
    "float? scale, str causal, int? left, int? right, float? softcap, str layout"
)
_SCHEMA = f"(Tensor q, Tensor k, Tensor v, {_PARAMETERS}) -> (Tensor, Tensor)"
_BACKWARD_SCHEMA = (
    f"(Tensor grad, Tensor q, Tensor k, Tensor v, Tensor out, Tensor lse, {_PARAMETERS}, "
    "bool wants_bias, bool deterministic) -> (Tensor, Tensor, Tensor, Tensor)"
)


def differentiable(
    tensors: tuple[Any, ...],
    numbers: tuple[Any, Any, Any],
    causal: Any,
    window: Any,
    softcap: Any,
    layout: str,
    score: Any,
    mask: Any,
) -> tuple[Any, Any]:
    """Return (out, lse) with gradients. `tensors` and `numbers` are those that the operation takes
    first: up to `cu_seqlens_k`, and up to `scale`.
    """
    is_compiled = torch.compiler.is_compiling()
    if torch.is_grad_enabled():
        for name, x in (("scale", numbers[2]), ("softcap", softcap), ("alibi", tensors[4])):
            check_constant(name, x)
    left, right = normalised_window(window)
    options = (normalised_causal(causal), left, right, softcap, layout)
    if score is None and mask is None:
        found: tuple[Any, Any] = _operation(*tensors, *numbers, *options)
        return found
    for name, fn in (("score", score), ("mask", mask)):
        captured = Captured.of(fn, name)
        if captured is not None and any(
            getattr(x, "requires_grad", False) for x in captured.arrays
        ):
            raise DSLTypeError(
                f"attention: {name} captures a tensor that requires a gradient",
                hint="pass it as bias=, whose gradient is computed, or detach it",
            )
    apply = _apply_apart if is_compiled else _apply
    made: tuple[Any, Any] = apply((score, mask), *tensors, *numbers, *options)
    return made


def _apply(*inputs: Any) -> Any:
    """Call the `autograd.Function`."""
    return _Attention.apply(*inputs)


# The compiler would trace `attention` within it again.
_apply_apart = torch.compiler.disable(_apply)


def _run(
    q: Any, k: Any, v: Any, bias: Any, alibi: Any, sinks: Any, starts_q: Any, starts_k: Any,
    most_q: Any, most_k: Any, scale: Any, causal: Any, left: Any, right: Any, softcap: Any,
    layout: Any, score: Any = None, mask: Any = None,
) -> Any:  # fmt: skip
    """The result, and the logarithms of sums."""
    given = (q, k, v, None, starts_q, starts_k, None, None, alibi, sinks, bias, None, None, None)
    options = (scale, causal, (left, right), softcap, most_q, most_k, layout, True, None, True)
    return planned(library(q, "attention"), given, options, score, mask)


def _fake(q: Any, k: Any, v: Any, *options: Any) -> Any:
    """Results without elements."""
    starts_q, layout = options[3], options[-1]
    check_layout(layout)
    shape = (*q.shape[:-1], v.shape[-1])
    if starts_q is not None:
        rows = (q.shape[1], q.shape[0])
    elif layout == "bhsd":
        rows = tuple(q.shape[:3])
    else:
        rows = (q.shape[0], q.shape[2], q.shape[1])
    dtype = torch.bfloat16 if q.dtype is torch.float8_e4m3fn else q.dtype
    return q.new_empty(shape, dtype=dtype), q.new_empty(rows, dtype=torch.float32)


def _setup(ctx: Any, inputs: Any, output: Any) -> None:
    q, k, v, bias, alibi, sinks, *ctx.options = inputs
    ctx.alibi = alibi
    ctx.save_for_backward(q, k, v, *output, bias, sinks)
    ctx.mark_non_differentiable(output[1])
    ctx.set_materialize_grads(False)  # there would be one of the logarithms


def _backward(ctx: Any, grad: Any, _: Any) -> Any:
    found = _gradients(ctx, grad, _backward_operation)
    return (*found[:4], None, found[4], *[None] * len(ctx.options))


def _gradients(ctx: Any, grad: Any, backward: Any) -> tuple[Any, ...]:
    """The gradients of q, k, v, bias and sinks; `backward` gives those of the first four."""
    q, k, v, out, lse, bias, sinks = ctx.saved_tensors
    if grad is None:  # nothing uses the result
        grad = out.new_zeros(out.shape)
    wants_bias = bias is not None and bias.requires_grad
    of_q, of_k, of_v, of_bias = backward(
        grad.contiguous(), q, k, v, out, lse, bias, ctx.alibi, sinks, *ctx.options, wants_bias,
        torch.are_deterministic_algorithms_enabled(),
    )  # fmt: skip
    of_sinks = None
    if sinks is not None and sinks.requires_grad:
        # A sink's weight goes to nothing: d loss / d sink = - weight * delta.
        delta = (grad.float() * out.float()).sum(-1)
        heads = 1 if ctx.options[-1] == "bhsd" and out.dim() == 4 else out.dim() - 2
        delta = delta.movedim(heads, 0).reshape(len(sinks), -1)
        logs = lse.movedim(lse.dim() - 2, 0).reshape(len(sinks), -1)
        weights = torch.exp(sinks.detach().float()[:, None] - logs)
        weights.masked_fill_(logs.isneginf(), 0)  # rows of no sequence
        of_sinks = -(weights * delta).sum(1).to(sinks.dtype)
    return of_q, of_k, of_v, of_bias.to(bias.dtype) if wants_bias else None, of_sinks


def _run_backward(
    grad: Any, q: Any, k: Any, v: Any, out: Any, lse: Any, bias: Any, alibi: Any, sinks: Any,
    starts_q: Any, starts_k: Any, most_q: Any, most_k: Any, scale: Any, causal: Any, left: Any,
    right: Any, softcap: Any, layout: Any, wants_bias: bool, deterministic: bool,
    score: Any = None, mask: Any = None,
) -> Any:  # fmt: skip
    """The gradients of q, k and v, and of the bias, None if nobody wants that."""
    of_bias = _empty_gradient(q, bias).zero_() if wants_bias else None
    given = (q, k, v, out, grad, lse, of_bias, starts_q, starts_k, alibi, sinks, bias)
    options = (scale, causal, (left, right), softcap, most_q, most_k, layout, deterministic, None)
    lib = library(q, "attention")
    return (*planned_gradients(lib, given, options, score, mask), of_bias)


def _empty_gradient(q: Any, bias: Any) -> Any:
    return q.new_empty((0,) if bias is None else bias.shape, dtype=torch.float32)


def _fill(found: Any, grad: Any, q: Any, *_: Any) -> Any:
    """Results that are all tensors: one without elements for that of no bias."""
    *of_qkv, of_bias = found
    return (*of_qkv, _empty_gradient(q, None) if of_bias is None else of_bias)


def _fake_backward(*inputs: Any) -> Any:
    """Gradients without elements."""
    found = [x.new_empty(x.shape) for x in inputs[1:4]]
    return (*found, _empty_gradient(inputs[1], inputs[6] if inputs[-2] else None))


_operation = TorchOperation("attention", _SCHEMA, _run, _fake, _setup, _backward)
_backward_operation = TorchOperation(
    "attention_backward", _BACKWARD_SCHEMA, _run_backward, _fake_backward, fill=_fill
)


def _with_functions(
    run: Callable[..., Any], inputs: tuple[Any, ...], functions: tuple[Any, Any]
) -> Any:
    return run(*inputs, *functions)


class _Attention(torch.autograd.Function):  # type: ignore[misc]
    """Attention with functions of the user's, the first input; others are the operation's."""

    @staticmethod
    def forward(ctx: Any, functions: tuple[Any, Any], *inputs: Any) -> Any:
        output = _with_functions(_run, inputs, functions)
        _setup(ctx, inputs, output)
        ctx.functions = functions
        return output

    @staticmethod
    def backward(ctx: Any, grad: Any, _: Any) -> Any:
        # Saved tensors among the arguments: second derivatives by any of them are refused.
        return _once(ctx, grad, *ctx.saved_tensors)


@torch.autograd.function.once_differentiable
def _once(ctx: Any, grad: Any, *_: Any) -> Any:
    def backward(*inputs: Any) -> Any:
        return _with_functions(_run_backward, inputs, ctx.functions)

    found = _gradients(ctx, grad, backward)
    return (None, *found[:4], None, found[4], *[None] * len(ctx.options))
