"""`attention` of PyTorch tensors: an operation that `torch.compile` and autograd know.

Options that are numbers and tensors go through `torch.ops.basedsl_cute.attention`. Functions of the
user's cannot be arguments of an operation: with them an `autograd.Function` does the same, which
`torch.compile` does not see into.

This module imports PyTorch; `attention` imports it when it gets tensors of PyTorch. The operations
are registered by that: the compiler runs imports, where it would trace a call.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import torch

from basedsl import DSLTypeError
from basedsl_cute.ops.flash.arguments import normalised_causal
from basedsl_cute.ops.flash.attention import attention
from basedsl_cute.ops.flash.captured import Captured
from basedsl_cute.ops.flash.gradients import attention_backward

_TENSORS = ("bias", "alibi", "sinks", "cu_seqlens_q", "cu_seqlens_k")
_PARAMETERS = (
    "Tensor? bias, Tensor? alibi, Tensor? sinks, "
    "Tensor? cu_seqlens_q, Tensor? cu_seqlens_k, int? max_seqlen_q, int? max_seqlen_k, "
    "float? scale, str causal, int? left, int? right, float? softcap, str layout"
)
_OPTIONS = [part.split()[-1] for part in _PARAMETERS.split(", ")]
_SCHEMA = f"(Tensor q, Tensor k, Tensor v, {_PARAMETERS}) -> (Tensor, Tensor)"
_BACKWARD_SCHEMA = (
    f"(Tensor grad, Tensor q, Tensor k, Tensor v, Tensor out, Tensor lse, {_PARAMETERS}, "
    "bool wants_bias, bool deterministic) -> (Tensor, Tensor, Tensor, Tensor)"
)


def check_transforms() -> None:
    """Raise DSLTypeError within `torch.func.grad`, `vmap` and their like, whose tensors have no
    memory that a kernel could read.
    """
    if torch.compiler.is_compiling():
        return
    transforms = getattr(torch._C, "_functorch", None)
    peek = getattr(transforms, "peek_interpreter_stack", None)
    if peek is not None and peek() is not None:
        raise DSLTypeError(
            "attention takes no part in transforms of torch.func (grad, vmap, jvp ..)",
            hint="for vmap, make the mapped mode one of the batches; for gradients, call backward",
        )


def differentiable(
    q: Any, k: Any, v: Any, options: Mapping[str, Any], functions: Any
) -> tuple[Any, Any]:
    """Return (out, lse) with gradients. `functions` are (score, mask) of the user's."""
    if functions == (None, None):
        window = options["window"] or (None, None)
        tensors = [options[name] for name in _TENSORS]
        numbers = (options["max_seqlen_q"], options["max_seqlen_k"], options["scale"])
        causal = normalised_causal(options["causal"])
        found: tuple[Any, Any] = torch.ops.basedsl_cute.attention(
            q, k, v, *tensors, *numbers, causal, *window, options["softcap"], options["layout"]
        )
        return found
    score, mask = functions
    for name, fn in (("score", score), ("mask", mask)):
        captured = Captured.of(fn, name)
        if captured is not None and any(
            getattr(x, "requires_grad", False) for x in captured.arrays
        ):
            raise DSLTypeError(
                f"attention: {name} captures a tensor that requires a gradient",
                hint="pass it as bias=, whose gradient is computed, or detach it",
            )
    apply = _apply_apart if torch.compiler.is_compiling() else _apply
    return apply(q, k, v, options["bias"], dict(options), functions)


def _apply(*inputs: Any) -> Any:
    """Call the `autograd.Function`."""
    return _Attention.apply(*inputs)


# The compiler would trace `attention` within it again.
_apply_apart = torch.compiler.disable(_apply)


def _gradients(
    grad: Any, saved: Any, options: dict[str, Any], functions: Any
) -> tuple[Any, Any, Any, Any, Any]:
    """The gradients of q, k, v, bias and sinks."""
    q, k, v, out, lse, bias = saved
    wants_bias = bias is not None and bias.requires_grad
    sinks = options["sinks"]
    options = {**options, "bias": None if bias is None else bias.detach()}
    options["sinks"] = None if sinks is None else sinks.detach()
    deterministic = torch.are_deterministic_algorithms_enabled()
    given = (grad.contiguous(), q, k, v, out, lse)
    if functions == (None, None):
        left, right = options.pop("window")
        values = {**options, "left": left, "right": right}
        inputs = (*given, *(values[name] for name in _OPTIONS), wants_bias, deterministic)
        *found, grad_bias = torch.ops.basedsl_cute.attention_backward(*inputs)
    else:
        options["score"], options["mask"] = functions
        found, grad_bias = _run_backward(given, options, wants_bias, deterministic)
    grad_sinks = None
    if sinks is not None and sinks.requires_grad:
        # A sink's weight goes to nothing: d loss / d sink = - weight * delta.
        delta = (grad.float() * out.float()).sum(-1)
        heads = 1 if options["layout"] == "bhsd" and out.dim() == 4 else out.dim() - 2
        delta = delta.movedim(heads, 0).reshape(len(sinks), -1)
        logs = lse.movedim(lse.dim() - 2, 0).reshape(len(sinks), -1)
        weights = torch.exp(sinks.detach().float()[:, None] - logs)
        grad_sinks = -(weights * delta).sum(1).to(sinks.dtype)
    return (*found, grad_bias.to(bias.dtype) if wants_bias else None, grad_sinks)


def _run_backward(
    given: tuple[Any, ...],
    options: dict[str, Any],
    wants_bias: bool,
    deterministic: bool,
) -> tuple[tuple[Any, ...], Any]:
    """The gradients of q, k and v, and of the bias, without elements if nobody wants them."""
    bias = options["bias"]
    grad_bias = _empty_gradient(given[1], bias if wants_bias else None)
    grad_bias.zero_()
    options = {**options, "deterministic": deterministic}
    found = attention_backward(*given, grad_bias=grad_bias if wants_bias else None, **options)
    return found, grad_bias


def _empty_gradient(q: Any, bias: Any) -> Any:
    return q.new_empty((0,) if bias is None else bias.shape, dtype=torch.float32)


def _options_of(values: tuple[Any, ...]) -> dict[str, Any]:
    """The options of `attention` from those of the operation."""
    options = dict(zip(_OPTIONS, values, strict=True))
    options["window"] = (options.pop("left"), options.pop("right"))
    return options


def _run(q: Any, k: Any, v: Any, *values: Any) -> Any:
    options = _options_of(values)
    del options["max_seqlen_k"]
    return attention(q, k, v, return_lse=True, **options)


def _fake(q: Any, k: Any, v: Any, *values: Any) -> Any:
    """Results without elements."""
    options = _options_of(values)
    shape = (*q.shape[:-1], v.shape[-1])
    if options["cu_seqlens_q"] is not None:
        rows = (q.shape[1], q.shape[0])
    elif options["layout"] == "bhsd":
        rows = tuple(q.shape[:3])
    else:
        rows = (q.shape[0], q.shape[2], q.shape[1])
    dtype = torch.bfloat16 if q.dtype is torch.float8_e4m3fn else q.dtype
    return q.new_empty(shape, dtype=dtype), q.new_empty(rows, dtype=torch.float32)


def _setup(ctx: Any, inputs: Any, output: Any) -> None:
    ctx.options = _options_of(inputs[3:])
    kept = (*inputs[:3], *output, inputs[3], inputs[5])
    ctx.save_for_backward(*kept)
    ctx.mark_non_differentiable(output[1])
    for name in ("bias", "sinks"):
        ctx.options.pop(name)


def _backward(ctx: Any, grad: Any, _: Any) -> Any:
    *saved, sinks = ctx.saved_tensors
    options = {**ctx.options, "sinks": sinks}
    *qkv, bias, grad_sinks = _gradients(grad, saved, options, (None, None))
    return (*qkv, bias, None, grad_sinks, *[None] * (len(_OPTIONS) - 3))


def _run_backward_operation(*inputs: Any) -> Any:
    given, values, (wants_bias, deterministic) = inputs[:6], inputs[6:-2], inputs[-2:]
    found, grad_bias = _run_backward(given, _options_of(values), wants_bias, deterministic)
    return (*found, grad_bias)


def _fake_backward(*inputs: Any) -> Any:
    """Gradients without elements."""
    found = [x.new_empty(x.shape) for x in inputs[1:4]]
    return (*found, _empty_gradient(inputs[1], inputs[6] if inputs[-2] else None))


_operation: Any = torch.library.custom_op(
    "basedsl_cute::attention", _run, mutates_args=(), schema=_SCHEMA
)
_operation.register_fake(_fake)
_operation.register_autograd(_backward, setup_context=_setup)
_backward_operation: Any = torch.library.custom_op(
    "basedsl_cute::attention_backward",
    _run_backward_operation,
    mutates_args=(),
    schema=_BACKWARD_SCHEMA,
)
_backward_operation.register_fake(_fake_backward)


class _Attention(torch.autograd.Function):  # type: ignore[misc]
    """Attention with functions of the user's."""

    @staticmethod
    def forward(ctx: Any, q: Any, k: Any, v: Any, bias: Any, options: Any, functions: Any) -> Any:
        score, mask = functions
        given = {**options, "score": score, "mask": mask}
        del given["max_seqlen_k"]
        out, lse = attention(q, k, v, return_lse=True, **given)
        ctx.save_for_backward(q, k, v, out, lse, bias)
        ctx.options, ctx.functions = options, functions
        ctx.mark_non_differentiable(lse)
        return out, lse

    @staticmethod
    def backward(ctx: Any, grad: Any, _: Any) -> Any:
        options = {**ctx.options}
        *qkv, bias, _ = _gradients(grad, ctx.saved_tensors, options, ctx.functions)
        return (*qkv, bias, None, None)
