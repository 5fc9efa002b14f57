"""`attention_backward`: the gradients of `attention`, by the kernel that suits them."""

from __future__ import annotations

import math
from typing import Any

import basedsl_cute as cute
from basedsl import ArrayRecord, DSLTypeError
from basedsl_cute.algebra.explained_calls import explains_arguments
from basedsl_cute.dsl.machine import current_target
from basedsl_cute.hardware.requirements import WGMMA
from basedsl_cute.ops.ampere import attention_backward as ampere
from basedsl_cute.ops.array_libraries import ArrayLibrary, library
from basedsl_cute.ops.flags import flag
from basedsl_cute.ops.flash.arguments import (
    Extents,
    HeadsView,
    Lengths,
    aligned_heads,
    broadcast_bias,
    check_array,
    check_layout,
    extents_of,
    heads_view,
    most_of_a_sequence,
    operands_of,
    rows_of_heads,
    scale_of,
    variant_of,
)
from basedsl_cute.ops.flash.extremes import find_extremes
from basedsl_cute.ops.flash.gradient_plan import (
    GivenGradients,
    GradientOptions,
    GradientPlan,
    Workspace,
    gradient_plans,
)
from basedsl_cute.ops.flash.host_lengths import check_values
from basedsl_cute.ops.flash.plan import NewArray, by_plan
from basedsl_cute.ops.flash.rows_of_no_sequence import clear
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
    deterministic = flag("attention_backward", "deterministic", deterministic)
    lib = library(q, "attention")
    given = (
        q, k, v, out, grad, lse, grad_bias, cu_seqlens_q, cu_seqlens_k, alibi, sinks, bias,
    )  # fmt: skip
    options = (
        scale, causal, window, softcap, max_seqlen_q, max_seqlen_k, layout, deterministic, config,
    )  # fmt: skip
    return planned_gradients(lib, given, options, score, mask)


def planned_gradients(
    lib: ArrayLibrary,
    given: tuple[Any, ...],
    options: tuple[Any, ...],
    score: Any = None,
    mask: Any = None,
) -> tuple[Any, Any, Any]:
    """The gradients for the arrays `given` (see `GivenGradients`) with `options` (see
    `GradientOptions`), by the plan of a call like it, if there was one.
    """
    starts_q, starts_k = given[7:9]
    if not (starts_q is starts_k is None) and lib.is_on_host(given[0]):
        q, k = given[:2]
        check_values(lib, Lengths(starts_q, starts_k), q, k, options[4:6], options[6])
    found: tuple[Any, Any, Any] = by_plan(
        gradient_plans, _plan, _launch, lib, given, options, score, mask
    )
    return found


def _plan(
    lib: ArrayLibrary, arrays: tuple[Any, ...], others: tuple[Any, ...], score: Any, mask: Any
) -> tuple[GradientPlan, tuple[Any, ...], tuple[Any, ...]]:
    """The plan of a call; q, k, v, out, grad and lse, which may be copies; and the arrays that
    functions of the user's capture. DSLTypeError for a call that no kernel takes.
    """
    given, options = GivenGradients(*arrays), GradientOptions(*others)
    check_layout(options.layout)
    layout, grad_bias = options.layout, given.grad_bias
    lengths = Lengths(given.cu_seqlens_q, given.cu_seqlens_k)
    lengths.check(lib)
    packed, packed_k = lengths.starts_q is not None, lengths.starts_k is not None
    q, k, v = given[:3]
    operands = operands_of(lib, q, k, v, layout, packed, packed_k, None)
    extents = extents_of(operands, lengths)
    variant, bias, captured = variant_of(
        options.causal, options.window, options.softcap,
        (given.alibi, given.sinks, given.bias), score, mask, extents, lib,
    )  # fmt: skip
    out, grad, lse = given.out, given.grad, given.lse
    for name, x in (("out", out), ("grad", grad), ("lse", lse), ("grad_bias", grad_bias)):
        if x is not None or name != "grad_bias":
            check_array(lib, name, x)
    wanted = (*q.shape[:-1], operands["v"].head)
    if tuple(out.shape) != wanted or out.dtype != q.dtype:
        raise DSLTypeError(
            f"attention: out is {tuple(out.shape)} of {out.dtype}, not {wanted} of {q.dtype}"
        )
    if tuple(grad.shape) != tuple(out.shape) or grad.dtype != q.dtype:
        raise DSLTypeError(
            f"attention: grad is {tuple(grad.shape)} of {grad.dtype}, not {tuple(out.shape)} "
            f"of {q.dtype}"
        )
    results = [
        aligned_heads(lib, x, ArrayRecord.of(x, name)) for name, x in (("out", out), ("grad", grad))
    ]
    views = [operands[name].view for name in "qkv"]
    for _, record in results:
        views.append(heads_view(record.shape, record.strides, layout, packed=packed))
    rows, _, heads, batches = operands["q"].shape
    f32 = lib.dtype(cute.Float32)
    wanted = (heads, rows) if packed else (batches, heads, rows)
    if tuple(lse.shape) != wanted or lse.dtype != f32:
        raise DSLTypeError(
            f"attention: lse is {tuple(lse.shape)} of {lse.dtype}, not {wanted} of {f32}"
        )
    views.append(HeadsView((rows, heads, batches), (1, rows, heads * rows)))
    config = options.config
    if config is None:
        suits = not packed and not packed_k and not options.deterministic and grad_bias is None
        config = _chosen(extents, variant, suits)
    elif not isinstance(config, ampere.Config | hopper.Config):
        raise DSLTypeError(
            f"attention_backward: config is of {type(config)}",
            hint="a Config of ops.ampere.attention_backward or ops.hopper.attention_backward",
        )
    shapes: list[tuple[int, ...]] = [(rows, heads, batches)]
    if isinstance(config, hopper.Config):
        tiles = -(-rows // config.tile[0])
        shapes = [
            (config.tile[0], 2, tiles, heads, batches),
            (config.workspace(extents.head), tiles, heads, batches),
        ]
    bias_view = None
    if grad_bias is not None:
        if given.bias is None or tuple(grad_bias.shape) != tuple(given.bias.shape):
            raise DSLTypeError("attention: grad_bias has not the extents of bias")
        if grad_bias.dtype != f32:
            raise DSLTypeError(f"attention: grad_bias is of {grad_bias.dtype}, not {f32}")
        bias_view = broadcast_bias(grad_bias, extents)
    widths = (extents.head, extents.head, extents.head_v)
    of_q, of_k, of_v = (
        _new_like(x, ArrayRecord.of(x), width, layout, is_packed)
        for x, width, is_packed in zip((q, k, v), widths, (packed, packed_k, packed_k), strict=True)
    )
    of_heads = operands["q"].head, operands["k"].head, operands["v"].head
    plan = GradientPlan(
        tuple(views),
        bias,
        bias_view,
        Workspace(shapes, f32),
        (of_q, of_k, of_v),
        of_heads,
        (
            scale_of(options.scale, of_heads[0]),
            extents.batches,
            most_of_a_sequence("max_seqlen_q", options.max_seqlen_q, extents.queries, packed),
            most_of_a_sequence("max_seqlen_k", options.max_seqlen_k, extents.keys, packed_k),
        ),
        (
            extents.head,
            extents.head_v,
            variant if score or mask else same_static(variant),
            same_static(config),
        ),
        extents.batches * extents.heads * max(extents.queries, extents.keys) > 0,
    )
    arrays = [operands[name].array for name in "qkv"] + [x for x, _ in results]
    return plan, (*arrays, lib.compact(lse)), captured


def _new_like(x: Any, record: ArrayRecord, width: int, layout: str, packed: bool) -> NewArray:
    """An array like `x` with heads of `width` elements."""
    shape = (*x.shape[:-1], width)
    strides = tuple(math.prod(shape[i + 1 :]) for i in range(len(shape)))
    view = heads_view(shape, strides, layout, packed=packed)
    return NewArray(shape, x.dtype, view, (shape, strides) == (record.shape, record.strides))


def _chosen(extents: Extents, variant: Variant, suits: bool) -> Any:
    """The configuration; `suits` says that the kernel for Hopper may be taken."""
    heads, target = (extents.head, extents.head_v), current_target()
    widest = max(heads)
    if suits and not variant.is_scored and min(extents.queries, extents.keys) > 0:
        if target.is_gpu and WGMMA.is_met_by(target):
            if heads == (64, 64):
                return hopper.Config((128, 128), by_threads=True)
            if extents.head in (64, 128) and widest <= 128:
                return hopper.Config()
            if all(head in (128, 256) for head in heads):
                return hopper.Config((64, 64), by_threads=True)
    # Fastest on an H200 of those that spill nothing, or hardly, by ptxas: for sm_100 on, which was
    # not timed, it takes more registers.
    if widest > 128:
        wide = ampere.Config((32, 64), (2, 2))
        fits = ampere.shared_memory(wide, *heads) <= target.smem_per_block
        return wide if fits else ampere.Config((32, 32), (2, 2))
    if widest > 96 and target.capability >= (10, 0):
        return ampere.Config((64, 64), (4, 2))
    if widest > 96 and not variant.has_only_windows:
        return ampere.Config((64, 32))
    return ampere.Config()


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
    find_extremes(captured, variant, on)
    given, grads = (q, k, v, out, grad, lse), (grad_q, grad_k, grad_v)
    if cute.const_expr(isinstance(config, hopper.Config)):
        hopper.backward(*given, *workspaces, *grads, extras[3], scale, variant, config, on)
    else:
        sizes = (batches, longest, longest_keys)
        options = (lengths, extras, scale, *sizes, variant, config, on)
        ampere.backward(*given, *workspaces, *grads, grad_bias, *options)
    if cute.const_expr(lengths[0] is not None):
        clear((grad_q,), None, lengths[0], on)
    if cute.const_expr(lengths[1] is not None):
        clear((grad_k, grad_v), None, lengths[1], on)
