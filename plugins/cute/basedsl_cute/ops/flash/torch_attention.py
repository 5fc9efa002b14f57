"""`attention` of PyTorch tensors: an operation that `torch.compile` and autograd know.

Options that are numbers and tensors go through `torch.ops.basedsl_cute.attention`. Functions of the
user's cannot be arguments of an operation: with them an `autograd.Function` does the same, which
`torch.compile` does not see into.
"""

from __future__ import annotations

import functools
import importlib
from collections.abc import Mapping
from typing import Any, NamedTuple

from basedsl import DSLTypeError
from basedsl_cute.ops.flash.arguments import normalised_causal
from basedsl_cute.ops.flash.captured import Captured


class Forward(NamedTuple):
    """The two functions that an operation calls, without gradients."""

    attention: Any
    backward: Any


_TENSORS = ("bias", "alibi", "sinks", "cu_seqlens_q", "cu_seqlens_k")
_SCHEMA = (
    "(Tensor q, Tensor k, Tensor v, Tensor? bias, Tensor? alibi, Tensor? sinks, "
    "Tensor? cu_seqlens_q, Tensor? cu_seqlens_k, int? max_seqlen_q, int? max_seqlen_k, "
    "float? scale, str causal, int? left, int? right, float? softcap, str layout) "
    "-> (Tensor, Tensor)"
)


def needs_gradient(tensors: tuple[Any, ...]) -> bool:
    """True if PyTorch records gradients, and one of the tensors wants one."""
    torch = importlib.import_module("torch")
    return torch.is_grad_enabled() and any(getattr(x, "requires_grad", False) for x in tensors)


def is_compiling() -> bool:
    """True while `torch.compile` traces the caller."""
    return bool(importlib.import_module("torch").compiler.is_compiling())


def check_transforms() -> None:
    """Raise DSLTypeError within `torch.func.grad`, `vmap` and their like, whose tensors have no
    memory that a kernel could read.
    """
    torch = importlib.import_module("torch")
    transforms = getattr(torch._C, "_functorch", None)
    peek = getattr(transforms, "peek_interpreter_stack", None)
    if peek is not None and peek() is not None:
        raise DSLTypeError(
            "attention takes no part in transforms of torch.func (grad, vmap, jvp ..)",
            hint="for vmap, make the mapped mode one of the batches; for gradients, call backward",
        )


def differentiable(
    forward: Forward, q: Any, k: Any, v: Any, options: Mapping[str, Any], functions: Any
) -> tuple[Any, Any]:
    """Return (out, lse) with gradients. `functions` are (score, mask) of the user's."""
    if functions == (None, None):
        window = options["window"] or (None, None)
        tensors = [options[name] for name in _TENSORS]
        numbers = (options["max_seqlen_q"], options["max_seqlen_k"], options["scale"])
        causal = normalised_causal(options["causal"])
        operation = _operation(forward)
        return operation(
            q, k, v, *tensors, *numbers, causal, *window, options["softcap"], options["layout"]
        )
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
    return _function(forward).apply(q, k, v, options["bias"], dict(options), functions)


def _gradients(
    forward: Forward, grad: Any, saved: Any, options: dict[str, Any], functions: Any
) -> tuple[Any, Any, Any, Any, Any]:
    """The gradients of q, k, v, bias and sinks."""
    torch = importlib.import_module("torch")
    q, k, v, out, lse, bias = saved
    grad_bias = None
    if bias is not None and bias.requires_grad:
        grad_bias = torch.zeros(bias.shape, dtype=torch.float32, device=bias.device)
    options = {**options, "bias": None if bias is None else bias.detach()}
    sinks = options["sinks"]
    options["sinks"] = None if sinks is None else sinks.detach()
    options["score"], options["mask"] = functions
    options["deterministic"] = torch.are_deterministic_algorithms_enabled()
    given = (grad.contiguous(), q, k, v, out, lse)
    found = forward.backward(*given, grad_bias=grad_bias, **options)
    grad_sinks = None
    if sinks is not None and sinks.requires_grad:
        # A sink's weight goes to nothing: d loss / d sink = - weight * delta.
        delta = (grad.float() * out.float()).sum(-1)
        heads = 1 if options["layout"] == "bhsd" and out.dim() == 4 else out.dim() - 2
        delta = delta.movedim(heads, 0).reshape(len(sinks), -1)
        logs = lse.movedim(lse.dim() - 2, 0).reshape(len(sinks), -1)
        weights = torch.exp(sinks.detach().float()[:, None] - logs)
        grad_sinks = -(weights * delta).sum(1).to(sinks.dtype)
    return (*found, None if grad_bias is None else grad_bias.to(bias.dtype), grad_sinks)


@functools.cache
def _operation(forward: Forward) -> Any:
    """The registered operation `basedsl_cute::attention`."""
    torch = importlib.import_module("torch")
    names = [part.split()[-1] for part in _SCHEMA[1 : _SCHEMA.index(")")].split(", ")][3:]

    def options_of(values: tuple[Any, ...]) -> dict[str, Any]:
        options = dict(zip(names, values, strict=True))
        options["window"] = (options.pop("left"), options.pop("right"))
        return options

    def run(q: Any, k: Any, v: Any, *values: Any) -> Any:
        options = options_of(values)
        del options["max_seqlen_k"]
        return forward.attention(q, k, v, return_lse=True, **options)

    operation = torch.library.custom_op(
        "basedsl_cute::attention", run, mutates_args=(), schema=_SCHEMA
    )

    @operation.register_fake
    def fake(q: Any, k: Any, v: Any, *values: Any) -> Any:
        options = options_of(values)
        shape = (*q.shape[:-1], v.shape[-1])
        if options["cu_seqlens_q"] is not None:
            rows = (q.shape[1], q.shape[0])
        elif options["layout"] == "bhsd":
            rows = tuple(q.shape[:3])
        else:
            rows = (q.shape[0], q.shape[2], q.shape[1])
        dtype = torch.bfloat16 if q.dtype is torch.float8_e4m3fn else q.dtype
        return q.new_empty(shape, dtype=dtype), q.new_empty(rows, dtype=torch.float32)

    def setup(ctx: Any, inputs: Any, output: Any) -> None:
        ctx.options = options_of(inputs[3:])
        kept = (*inputs[:3], *output, inputs[3], inputs[5])
        ctx.save_for_backward(*kept)
        ctx.mark_non_differentiable(output[1])
        for name in ("bias", "sinks"):
            ctx.options.pop(name)

    def backward(ctx: Any, grad: Any, _: Any) -> Any:
        *saved, sinks = ctx.saved_tensors
        options = {**ctx.options, "sinks": sinks}
        *qkv, bias, grad_sinks = _gradients(forward, grad, saved, options, (None, None))
        return (*qkv, bias, None, grad_sinks, *[None] * (len(names) - 3))

    operation.register_autograd(backward, setup_context=setup)
    return operation


@functools.cache
def _function(forward: Forward) -> Any:
    """The `autograd.Function` that takes functions of the user's."""
    torch = importlib.import_module("torch")

    class Attention(torch.autograd.Function):  # type: ignore[name-defined, misc]
        @staticmethod
        def forward(
            ctx: Any, q: Any, k: Any, v: Any, bias: Any, options: Any, functions: Any
        ) -> Any:
            score, mask = functions
            given = {**options, "score": score, "mask": mask}
            del given["max_seqlen_k"]
            out, lse = forward.attention(q, k, v, return_lse=True, **given)
            ctx.save_for_backward(q, k, v, out, lse, bias)
            ctx.options, ctx.functions = options, functions
            ctx.mark_non_differentiable(lse)
            return out, lse

        @staticmethod
        def backward(ctx: Any, grad: Any, _: Any) -> Any:
            options = {**ctx.options}
            *qkv, bias, _ = _gradients(forward, grad, ctx.saved_tensors, options, ctx.functions)
            return (*qkv, bias, None, None)

    return Attention
