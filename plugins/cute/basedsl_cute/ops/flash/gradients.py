"""`attention_backward`: the gradients of `attention`, by the kernel that suits them."""

from __future__ import annotations

from typing import Any

import basedsl_cute as cute
from basedsl import ArrayRecord, DSLTypeError
from basedsl_cute.algebra.explained_calls import explains_arguments
from basedsl_cute.dsl.machine import current_target
from basedsl_cute.hardware.requirements import WGMMA
from basedsl_cute.ops.ampere import attention_backward as ampere
from basedsl_cute.ops.ampere.attention import Config
from basedsl_cute.ops.array_libraries import ArrayLibrary, library
from basedsl_cute.ops.flash.arguments import (
    Extents,
    Lengths,
    aligned_heads,
    broadcast_bias,
    extents_of,
    heads_view,
    most_of_a_sequence,
    operands_of,
    rows_of_heads,
    scale_of,
    variant_of,
)
from basedsl_cute.ops.flash.variant import Variant
from basedsl_cute.ops.hopper import attention_backward as hopper
from basedsl_cute.ops.plan_cache import same_static


@explains_arguments
def attention_backward(
    grad: Any,
    q: Any,
    k: Any,
    v: Any,
    out: Any,
    lse: Any,
    *,
    scale: float | None = None,
    causal: bool | str = False,
    window: tuple[int | None, int | None] | None = None,
    softcap: float | None = None,
    bias: Any = None,
    alibi: Any = None,
    sinks: Any = None,
    score: Any = None,
    mask: Any = None,
    cu_seqlens_q: Any = None,
    cu_seqlens_k: Any = None,
    max_seqlen_q: int | None = None,
    max_seqlen_k: int | None = None,
    layout: str = "bshd",
    grad_bias: Any = None,
    deterministic: bool = False,
    config: Any = None,
) -> tuple[Any, Any, Any]:
    """Return the gradients of `q`, `k` and `v` from `grad`, the gradient of `out`.

    `out` and `lse` are what `attention(..., return_lse=True)` returned for the same arrays and
    options; gradients have the type and extents of their arrays. On Hopper blocks add to the
    gradient of `q` in the order in which they run, so that its last bits differ from run to run;
    with `deterministic` they do not, in more time. `grad_bias`, a Float32 array with the extents of
    `bias`, is always added to in the order of blocks. A `score` of the user's is differentiated as
    it is traced (see `ops.derivative`).

    Raises DSLTypeError as `attention` does, and for a score without a known derivative.

    >>> import numpy as np
    >>> from basedsl_cute.ops import attention, attention_backward
    >>> q, k, v = (np.ones((1, 4, 2, 32), np.float16) for _ in range(3))
    >>> out, lse = attention(q, k, v, return_lse=True)
    >>> grad_q, grad_k, grad_v = attention_backward(np.ones_like(out), q, k, v, out, lse)
    >>> float(grad_v.sum())
    256.0
    """
    lib = library(q, "attention")
    lengths = Lengths(cu_seqlens_q, cu_seqlens_k)
    lengths.check(lib)
    packed = cu_seqlens_q is not None
    operands = operands_of(lib, q, k, v, layout, packed, cu_seqlens_k is not None, None)
    extents = extents_of(operands, lengths)
    variant, bias_view, captured = variant_of(
        causal, window, softcap, (alibi, sinks, bias), score, mask, extents, lib
    )
    if tuple(grad.shape) != tuple(out.shape) or grad.dtype != q.dtype:
        raise DSLTypeError(
            f"attention: grad is {tuple(grad.shape)} of {grad.dtype}, not {tuple(out.shape)} "
            f"of {q.dtype}"
        )
    given = [operands[name].head for name in "qkv"]
    widths = [extents.head, extents.head, extents.head_v]
    found = [
        lib.empty((*x.shape[:-1], width), x.dtype, q)
        for x, width in zip((q, k, v), widths, strict=True)
    ]
    grads = [
        _seen(lib, x, ArrayRecord.of(x, "a gradient"), layout, is_packed)
        for x, is_packed in zip(found, (packed, *[cu_seqlens_k is not None] * 2), strict=True)
    ]
    results = [
        _seen(lib, *aligned_heads(lib, x, ArrayRecord.of(x, name)), layout, packed)
        for name, x in (("out", out), ("grad", grad))
    ]
    rows, _, heads, batches = operands["q"].shape
    f32 = lib.dtype(cute.Float32)
    wanted = (heads, rows) if packed else (batches, heads, rows)
    if tuple(lse.shape) != wanted or lse.dtype != f32:
        raise DSLTypeError(
            f"attention: lse is {tuple(lse.shape)} of {lse.dtype}, not {wanted} of {f32}"
        )
    if config is None:
        is_dense = not packed and cu_seqlens_k is None
        config = _chosen(extents, variant, is_dense and not deterministic and grad_bias is None)
    shapes: list[tuple[int, ...]] = [(rows, heads, batches)]
    if isinstance(config, hopper.Config):
        tiles = -(-rows // config.tile[0])
        shapes = [
            (config.tile[0], 2, tiles, heads, batches),
            (config.workspace(extents.head), tiles, heads, batches),
        ]
    workspaces = [_workspace(lib, shape, f32, q) for shape in shapes]
    lse = lib.view(lib.compact(lse), (rows, heads, batches), (1, rows, heads * rows))
    if grad_bias is not None:
        if bias is None or tuple(grad_bias.shape) != tuple(bias.shape):
            raise DSLTypeError("attention: grad_bias has not the extents of bias")
        grad_bias = lib.view(grad_bias, *broadcast_bias(grad_bias, extents))
    if extents.batches * extents.heads * max(extents.queries, extents.keys):
        _launch(
            *(lib.view(operands[name].array, *operands[name].view) for name in "qkv"),
            *results,
            lse,
            tuple(workspaces),
            *grads,
            grad_bias,
            tuple(lengths),
            (alibi, sinks, None if bias_view is None else lib.view(bias, *bias_view)),
            captured,
            scale_of(scale, given[0]),
            extents.batches,
            most_of_a_sequence("max_seqlen_q", max_seqlen_q, extents.queries),
            most_of_a_sequence("max_seqlen_k", max_seqlen_k, extents.keys),
            extents.head,
            extents.head_v,
            variant if score or mask else same_static(variant),
            same_static(config),
            lib.stream(q),
        )
    if given != widths:
        found = [lib.compact(x[..., :head]) for x, head in zip(found, given, strict=True)]
    return found[0], found[1], found[2]


def _seen(lib: ArrayLibrary, x: Any, record: ArrayRecord, layout: str, packed: bool) -> Any:
    """The array as the kernels see it."""
    return lib.view(x, *heads_view(record.shape, record.strides, layout, packed=packed))


def _chosen(extents: Extents, variant: Variant, suits: bool) -> Any:
    """The configuration; `suits` says that the kernel for Hopper may be taken."""
    heads, target = (extents.head, extents.head_v), current_target()
    widest = max(heads)
    if suits and not variant.is_scored and min(extents.queries, extents.keys) > 0:
        if target.is_gpu and WGMMA.is_met_by(target):
            if heads == (64, 64):
                return hopper.Config((128, 128))
            if extents.head in (64, 128) and widest <= 128:
                return hopper.Config()
            if all(head in (128, 256) for head in heads):
                return hopper.Config((64, 64))
    return Config(tile=(64, 64), warps=4) if widest <= 128 else Config(tile=(32, 32), warps=2)


def _workspace(lib: ArrayLibrary, shape: tuple[int, ...], dtype: Any, q: Any) -> Any:
    """An array whose first mode is contiguous."""
    steps = [1]
    for extent in shape[:-1]:
        steps.append(steps[-1] * extent)
    return lib.view(lib.empty(shape[::-1], dtype, q), shape, tuple(steps))


@cute.jit
def _launch(
    q: cute.Tensor,
    k: cute.Tensor,
    v: cute.Tensor,
    out: cute.Tensor,
    grad: cute.Tensor,
    lse: cute.Tensor,
    workspaces: tuple,
    grad_q: cute.Tensor,
    grad_k: cute.Tensor,
    grad_v: cute.Tensor,
    grad_bias: cute.Tensor | None,
    lengths: tuple,
    extras: tuple,
    captured: tuple,
    scale: cute.Float32,
    batches: cute.Int32,
    longest: cute.Int32,
    longest_keys: cute.Int32,
    head: cute.Constexpr,
    head_v: cute.Constexpr,
    variant: cute.Constexpr,
    config: cute.Constexpr,
    stream: cute.Int64,
):
    q, k, grad_q, grad_k = (rows_of_heads(x, head) for x in (q, k, grad_q, grad_k))
    v, out, grad, grad_v = (rows_of_heads(x, head_v) for x in (v, out, grad, grad_v))
    on = cute.Stream(stream.ir_value())
    extras = (*extras, captured)
    given, grads = (q, k, v, out, grad, lse), (grad_q, grad_k, grad_v)
    if cute.const_expr(isinstance(config, hopper.Config)):
        hopper.backward(*given, *workspaces, *grads, extras[3], scale, variant, config, on)
    else:
        sizes = (batches, longest, longest_keys)
        options = (lengths, extras, scale, *sizes, variant, config, on)
        ampere.backward(*given, *workspaces, *grads, grad_bias, *options)
