"""`attention`: softmax(scale Q K^T) V of arrays, by the kernel that suits them."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import basedsl_cute as cute
from basedsl import ArrayRecord, DSLTypeError, with_article
from basedsl_cute.algebra.explained_calls import explains_arguments
from basedsl_cute.dsl.hardware_info import HardwareInfo
from basedsl_cute.dsl.machine import current_target
from basedsl_cute.hardware.requirements import DEPENDENT_LAUNCH, TCGEN05, WGMMA
from basedsl_cute.ops.ampere import attention as ampere
from basedsl_cute.ops.ampere import decoding
from basedsl_cute.ops.array_libraries import ArrayLibrary, known_libraries, library
from basedsl_cute.ops.blackwell import attention as blackwell
from basedsl_cute.ops.flags import flag
from basedsl_cute.ops.flash.arguments import (
    HALVES,
    AttentionOperand,
    Extents,
    Lengths,
    check_layout,
    extents_of,
    most_of_a_sequence,
    operands_of,
    rows_of_heads,
    scale_of,
    scales_of,
    variant_of,
)
from basedsl_cute.ops.flash.combine import combine
from basedsl_cute.ops.flash.extremes import find_extremes
from basedsl_cute.ops.flash.few_queries import with_key_warps, with_splits
from basedsl_cute.ops.flash.gradients import attention_backward
from basedsl_cute.ops.flash.host_lengths import check_values
from basedsl_cute.ops.flash.narrow_configs import (
    NARROW_BY_PRODUCTS as NARROW_BY_PRODUCTS,
)
from basedsl_cute.ops.flash.narrow_configs import NARROW_CONFIGS, narrow_config
from basedsl_cute.ops.flash.plan import (
    AttentionPlan,
    GivenArrays,
    Options,
    by_plan,
    plan_of,
    plans,
)
from basedsl_cute.ops.flash.rows_of_no_sequence import clear
from basedsl_cute.ops.flash.turn import turn
from basedsl_cute.ops.flash.variant import Variant
from basedsl_cute.ops.gemm.footprint import check_elements_apart
from basedsl_cute.ops.hopper import attention as hopper
from basedsl_cute.ops.hopper.attention_shares import flags_of, with_shares
from basedsl_cute.ops.jax_arrays import is_jax
from basedsl_cute.ops.plan_cache import same_static

_MOST_SPLITS = 128


@explains_arguments
def attention(
    q: Any,
    k: Any,
    v: Any,
    *,
    scale: float | None = None,
    causal: bool | str = False,
    window: tuple[int | None, int | None] | None = None,
    softcap: float | None = None,
    bias: Any = None,
    alibi: Any = None,
    sinks: Any = None,
    score: Callable[..., Any] | None = None,
    mask: Callable[..., Any] | None = None,
    cu_seqlens_q: Any = None,
    cu_seqlens_k: Any = None,
    max_seqlen_q: int | None = None,
    max_seqlen_k: int | None = None,
    seqused_k: Any = None,
    block_table: Any = None,
    q_scale: Any = None,
    k_scale: Any = None,
    v_scale: Any = None,
    layout: str = "bshd",
    out: Any = None,
    return_lse: bool = False,
    config: Any = None,
) -> Any:
    """Compute softmax(scale q k^T) v for each head, without writing the scores.

    `q`, `k` and `v` are arrays of PyTorch, CuPy, NumPy or JAX of Float16 or BFloat16, on Hopper
    also of Float8E4M3FN, with a result of BFloat16: (batches, length, heads, head), or with
    `layout="bhsd"` (batches, heads, length, head). Keys may have fewer heads, of which each serves
    as many heads of `q` in a row. Heads have 1 to 256 elements, those of `v` may have others.
    Products are accumulated in Float32. Arrays whose heads have no multiple of 32 elements, are not
    contiguous, or not aligned to 16 bytes, are copied first, into heads padded with zeros.

    Parameters:
        scale: the factor of the products, a positive number, by default 1 / sqrt(head).
        causal: True or "bottom-right" hides keys behind the diagonal that ends at the last query
            and the last key (as FlashAttention does); "top-left" that which begins at the first
            ones (as `scaled_dot_product_attention` does). With equal lengths they are the same.
        window: (left, right), the numbers of keys that a query sees beside its diagonal, None for
            all: (128, 0) are 129 keys. The diagonal is that of `causal`.
        softcap: a number c; scores s become c tanh(s / c).
        bias: an array that broadcasts to (batches, heads, queries, keys), added to the scores.
        alibi: a slope for each head of `q`: minus slope times the distance from the diagonal.
        sinks: a logit for each head of `q`, that takes part in the softmax without a value.
        score: a function `score(s, batch, head, q, k)` of a scaled product and its place, that
            returns the score. Positions are those in the sequence.
        mask: a function `mask(batch, head, q, k)` that says if a query sees a key.
        cu_seqlens_q, cu_seqlens_k: Int32 arrays of where each sequence begins, and the end, for
            packed sequences of any lengths: `q`, `k`, `v` are (total, heads, head) then. Rows of
            no sequence are not written, but are zeros where gradients are recorded. Places beyond
            the arrays are errors where these are the host's; on a GPU nothing checks them, nor
            the four below.
        max_seqlen_q, max_seqlen_k: the most queries and keys of a sequence, if they are packed;
            by default all.
        seqused_k: an Int32 array of the number of keys of each sequence.
        block_table: an Int32 array (batches, pages) of pages of a cache; `k` and `v` are (all
            pages, rows of a page, heads, head) then, and `seqused_k` is needed.
        q_scale, k_scale, v_scale: what elements of 8 bits are to be multiplied by: numbers, or
            arrays of Float32 that broadcast to (batches, heads) of their operand. Those of `q` and
            `k` are positive; where one of an array is negative, the results of its head are NaN.
        layout: see above.
        out: the array to write; by default a new one.
        return_lse: return (out, lse), with the natural logarithm of each row's sum of exponents:
            Float32 (batches, heads, queries), or (heads, total) for packed sequences. It has no
            gradient, and is a constant to PyTorch and JAX.
        config: a `Config` of `ops.ampere.attention`, `ops.hopper.attention` or
            `ops.blackwell.attention`, instead of the chosen one. That of Blackwell is for heads of
            64 or 128 elements, of sequences that are neither packed nor paged.

    `score` and `mask` are traced into the kernel. Arrays that they capture, from a closure or the
    module, become operands, so that they may change from call to call.

    Tensors of PyTorch that require gradients get them: those of `q`, `k`, `v`, `bias` and `sinks`,
    by `attention_backward`. Without functions of the user's it is the operation
    `torch.ops.basedsl_cute.attention`, which `torch.compile` knows. Arrays of JAX go
    with all options but `out`, `config` and those of 8 bits, functions without arrays among them;
    `jax.grad` gets the gradients of `q`, `k`, `v`, `bias` and `sinks`, and takes `alibi` for
    constant.

    Returns `out`, or (out, lse). A query that sees no key gets zeros and -inf. Raises DSLTypeError
    for arrays of different libraries or types, extents that do not fit, and options that
    contradict each other.

    >>> import numpy as np
    >>> from basedsl_cute.ops import attention
    >>> q, k, v = (np.ones((1, 4, 2, 32), np.float16) for _ in range(3))
    >>> attention(q, k, v, causal=True)[0, 3, 0, :4]
    array([1., 1., 1., 1.], dtype=float16)
    """
    return_lse = flag("attention", "return_lse", return_lse)
    if type(q) not in known_libraries and is_jax(q):
        from basedsl_cute.ops.flash.jax_attention import Functions, jax_attention

        check_layout(layout)
        given = {
            "scale": scale, "causal": causal, "window": window, "softcap": softcap, "bias": bias,
            "alibi": alibi, "sinks": sinks, "score": score, "mask": mask, "layout": layout,
            "cu_seqlens_q": cu_seqlens_q, "cu_seqlens_k": cu_seqlens_k, "seqused_k": seqused_k,
            "max_seqlen_q": max_seqlen_q, "max_seqlen_k": max_seqlen_k, "q_scale": q_scale,
            "k_scale": k_scale, "v_scale": v_scale, "block_table": block_table, "out": out,
            "config": config,
        }  # fmt: skip
        return jax_attention(Functions(recorded, attention_backward), q, k, v, given, return_lse)
    lib = library(q, "attention")
    if lib.is_autocasting():
        from basedsl_cute.ops.torch_autocast import lowered  # it imports PyTorch

        q, k, v = lowered(q, k, v)
    if lib.records(q, k, v, bias, alibi, sinks):
        from basedsl_cute.ops.flash.torch_attention import differentiable  # it imports PyTorch

        for name, x in (
            ("seqused_k", seqused_k), ("block_table", block_table), ("q_scale", q_scale),
            ("k_scale", k_scale), ("v_scale", v_scale), ("out", out), ("config", config),
        ):  # fmt: skip
            if x is not None:
                raise DSLTypeError(
                    f"attention takes no {name} under torch.compile, or with gradients",
                    hint="call it under torch.no_grad(), outside of what is compiled",
                )
        tensors = (bias, alibi, sinks, cu_seqlens_q, cu_seqlens_k)
        found = differentiable(
            (q, k, v, *tensors), (max_seqlen_q, max_seqlen_k, scale),
            causal, window, softcap, layout, score, mask,
        )  # fmt: skip
        return found if return_lse else found[0]
    # As `GivenArrays` and `Options`, which take longer to make.
    arrays = (
        q, k, v, out, cu_seqlens_q, cu_seqlens_k, seqused_k, block_table, alibi, sinks, bias,
        q_scale, k_scale, v_scale,
    )  # fmt: skip
    options = (
        scale, causal, window, softcap, max_seqlen_q, max_seqlen_k, layout, return_lse, config,
        False,
    )  # fmt: skip
    return planned(lib, arrays, options, score, mask)


def planned(
    lib: ArrayLibrary,
    given: tuple[Any, ...],
    options: tuple[Any, ...],
    score: Any = None,
    mask: Any = None,
) -> Any:
    """Attention without gradients of the arrays `given` (see `GivenArrays`) with `options` (see
    `Options`), by the plan of a call like it, if there was one.
    """
    starts_q, starts_k, used, table = given[4:8]
    if not (starts_q is starts_k is used is table is None) and lib.is_on_host(given[0]):
        q, k = given[:2]
        check_values(lib, Lengths(*given[4:8]), q, k, options[4:6], options[6])
    return by_plan(plans, _plan, _launch, lib, given, options, score, mask)


def recorded(q: Any, k: Any, v: Any, **given: Any) -> Any:
    """Attention with the arguments of `attention`, by name, and with zeros in rows of no sequence,
    as what is recorded for gradients needs.
    """
    arrays = (q, k, v, *[given.get(name) for name in GivenArrays._fields[3:]])
    options = Options._make([given.get(name) for name in Options._fields])._replace(clears=True)
    functions = given.get("score"), given.get("mask")
    return planned(library(q, "attention"), arrays, tuple(options), *functions)


def _plan(
    lib: ArrayLibrary, arrays: tuple[Any, ...], others: tuple[Any, ...], score: Any, mask: Any
) -> tuple[AttentionPlan, tuple[Any, ...], tuple[Any, ...]]:
    """The plan of a call, the operands, which may be copies, and the arrays that functions of the
    user's capture. DSLTypeError for a call that no kernel takes.
    """
    given, options = GivenArrays(*arrays), Options(*others)
    check_layout(options.layout)
    lengths = given.lengths
    lengths.check(lib)
    packed, packed_k = lengths.starts_q is not None, lengths.starts_k is not None
    uneven_k = packed_k or lengths.used is not None
    dtypes = (*HALVES, cute.Float8E4M3FN)
    operands = operands_of(
        lib, given.q, given.k, given.v, options.layout, packed,
        packed_k, lengths.table, dtypes,
    )  # fmt: skip
    extents = extents_of(operands, lengths)
    variant, bias, captured = variant_of(
        options.causal, options.window, options.softcap,
        (given.alibi, given.sinks, given.bias), score, mask, extents, lib,
    )  # fmt: skip
    q = operands["q"]
    of_scores, of_values, scales = scales_of(lib, given.scales, extents, q.dtype)
    factor = scale_of(options.scale, q.head) * of_scores
    longest = most_of_a_sequence("max_seqlen_q", options.max_seqlen_q, extents.queries, packed)
    most_of_a_sequence("max_seqlen_k", options.max_seqlen_k, extents.keys, uneven_k)
    is_dense = all(x is None for x in lengths)
    page = None if lengths.table is None else operands["k"].shape[0]
    config, out = options.config, given.out
    if q.dtype.width == 8:
        _check_narrow(is_dense, extents, config)
    if config is None:
        config = _chosen(extents, longest, q, variant, is_dense, page, options.return_lse)
        heads = extents.heads * extents.batches
        config = with_shares(config, variant, longest, extents.keys, heads, _multiprocessors(q))
    elif not isinstance(config, ampere.Config | hopper.Config | blackwell.Config):
        raise DSLTypeError(
            f"attention: config is {with_article(type(config))}",
            hint="a Config of ops.ampere.attention, ops.hopper.attention or "
            "ops.blackwell.attention",
        )
    elif isinstance(config, blackwell.Config) and not is_dense:
        raise DSLTypeError(
            "attention: the kernel of ops.blackwell takes no packed or paged sequences"
        )
    elif isinstance(config, hopper.Config) and not is_dense and not config.box:
        config = _boxed(config, page)
    if out is not None:
        dtype = lib.dtype(cute.BFloat16) if q.dtype.width == 8 else given.q.dtype
        _check_out(lib, given.q, out, dtype, operands["v"].head)
        if not isinstance(config, ampere.Config):
            record = ArrayRecord.of(out, "out")
            is_aligned = record.address % 16 == 0 and not any(d % 8 for d in record.strides[:-1])
            config = replace(config, is_wide=config.is_wide and is_aligned)
    blocks = _multiprocessors(q)
    plan = plan_of(
        lib,
        given,
        operands,
        extents,
        bias,
        scales,
        (factor, of_values, extents.batches, longest, blocks),
        (
            extents.head,
            extents.head_v,
            variant if score or mask else same_static(variant),
            same_static(config),
            packed and options.clears,
        ),
        options,
        extents.batches * longest * extents.heads > 0,
    )
    return plan, tuple(operands[name].array for name in "qkv"), captured


_HOPPER_64 = hopper.Config(
    (192, 128), 3, query_stages=2, persistent=True, ahead=True, by_bits=True, overlaps=True
)
# Heads' extent -> configurations of the Hopper kernel with a bound on the right or a mask, without,
# and with scores of other kinds: those that fit into shared memory, and registers without a spill.
# Of these the fastest on an H200, bench/results/2026-11-22-attention.md.
HOPPER_CONFIGS = {
    64: (_HOPPER_64, _HOPPER_64, hopper.Config((128, 128), persistent=True)),
    96: (
        hopper.Config((128, 128), persistent=True),
        hopper.Config((128, 176), persistent=True),
        hopper.Config((128, 96), persistent=True),
    ),
    128: (
        hopper.Config((128, 128), query_stages=2, persistent=True, by_bits=True),
        hopper.Config((128, 160), persistent=True, between=False, ahead=True, late=3),
        hopper.Config(
            (128, 96),
            query_stages=2,
            turns=True,
            persistent=True,
            between=False,
            ahead=True,
            late=3,
        ),
    ),
    192: (
        hopper.Config((128, 96), persistent=True),
        hopper.Config((128, 112), persistent=True),
        hopper.Config((128, 64), query_stages=2, persistent=True, between=False),
    ),
    256: (
        hopper.Config((128, 80), persistent=True),
        hopper.Config((128, 80), persistent=True, between=False, ahead=True),
        hopper.Config((128, 80), persistent=True),
    ),
}
# With few keys a block's beginning and end weigh more than the turns of its warpgroups.
_FEW_KEYS = 1024
# By mma.sync, for heads of more than 96 elements: the most keys at a time without a spill.
_MANY_QUERIES = ampere.Config((128, 48), 4, slack=8)
_MANY_QUERIES_SM_100 = replace(_MANY_QUERIES, tile=(128, 32))
# On an H200 428 TFLOP/s instead of 400, bench/results/2026-11-23-attention-2.md.
_MANY_QUERIES_SM_90 = ampere.Config((256, 64), 8, slack=8, stages=3)
_HOPPER_WINDOW = hopper.Config((128, 128), query_stages=2, persistent=True)
HOPPER_MASK = hopper.Config(
    (128, 128), query_stages=2, persistent=True, between=False, by_bits=True
)
_HOPPER_FEW_KEYS = hopper.Config(
    (128, 128), query_stages=2, turns=True, persistent=True, between=False
)


def _boxed(config: hopper.Config, page: int | None) -> hopper.Config:
    """The configuration for packed sequences, or for pages of so many rows."""
    keys = config.tile[1]
    return replace(config, box=keys if page is None else math.gcd(keys, page))


def _chosen(
    extents: Extents,
    longest: int,
    q: AttentionOperand,
    variant: Variant,
    is_dense: bool,
    page: int | None = None,
    has_logs: bool = True,
) -> ampere.Config | hopper.Config | blackwell.Config:
    """The configuration: heads packed where there are few queries, keys split for few blocks."""
    target = current_target()
    is_long = longest > 64 and extents.keys > 0
    if not is_dense:
        if is_long and target.is_gpu and WGMMA.is_met_by(target) and (page or 8) % 8 == 0:
            # Smaller tiles: the producer has few registers for the places of rows.
            alike = replace(variant, right=0) if variant.is_unbounded else variant
            found = _chosen(extents, longest, q, alike, True)
            if isinstance(found, hopper.Config):
                return _boxed(replace(found, from_end=False, by_groups=False), page)
        is_long = False
    if q.dtype.width == 8:
        width = max(extents.head, extents.head_v)
        _, scored, masked = next(found for w, found in NARROW_CONFIGS.items() if width <= w)
        if variant.is_scored or variant.mask is not None:
            return scored if variant.mask is None else masked
        return narrow_config(width, extents.keys, variant.right is not None, has_logs)
    if target.is_gpu and TCGEN05.is_met_by(target) and is_long:
        if blackwell.takes(extents.head, extents.head_v):
            return blackwell_config(extents.head, variant.right)
    if target.is_gpu and WGMMA.is_met_by(target) and is_long:
        width = max(extents.head, extents.head_v)
        bounded, free, scored = next(found for w, found in HOPPER_CONFIGS.items() if width <= w)
        if variant.mask is not None and not variant.is_scored and 96 < width <= 128:
            return HOPPER_MASK
        if variant.is_scored:
            return scored
        if variant.mask is not None:
            return bounded
        if 64 < width <= 128 and extents.keys <= _FEW_KEYS:
            # Heads one after the other share memory's time best, if blocks get equal work so.
            tiles = -(-longest // _HOPPER_FEW_KEYS.tile[0])
            return replace(_HOPPER_FEW_KEYS, by_head=_multiprocessors(q) % tiles == 0)
        if 96 < width <= 128 and variant.left is not None:
            return _HOPPER_WINDOW
        found = free if variant.right is None else bounded
        if width <= 64 and (not variant.is_unbounded or extents.keys > _FEW_KEYS):
            # On an H200 1.02 to 1.2 times as fast, bench/results/2026-11-23-attention-4.md.
            found = replace(found, from_end=True, by_groups=True)
        return found
    packed = extents.group if longest * extents.group <= 64 else 1
    widest = max(extents.head, extents.head_v)
    is_plain = not variant.is_scored and variant.mask is None and variant.left is None
    # Rows of 96 elements are copied 32 at a time, of which not all these tiles have whole ones.
    is_even = extents.head % 64 == 0 and extents.head_v % 64 == 0
    if target.is_gpu and is_long and 96 < widest <= 128 and is_even and is_plain:
        blocks = -(-longest // _MANY_QUERIES_SM_90.tile[0]) * extents.heads * extents.batches
        return many_queries_config(variant.right, blocks >= _multiprocessors(q))
    tile = (64, 64 if max(extents.head, extents.head_v) <= 128 else 32)
    if longest * packed <= 16:
        tile, warps = (16, tile[1]), 1
    else:
        warps = 4
    overlap = target.is_gpu and DEPENDENT_LAUNCH.is_met_by(target)
    config = ampere.Config(tile, warps, packed, overlap=overlap)
    blocks = -(-longest * packed // tile[0]) * (extents.heads // packed) * extents.batches
    processors = _multiprocessors(q)
    keys = variant.most_keys(longest, extents.keys)
    if warps == 1:
        found = None
        if target.is_gpu and WGMMA.is_met_by(target):
            widths = (extents.head, extents.head_v)
            paged = page is not None
            found = with_key_warps(config, blocks, keys, widths, processors, paged)
        return found or with_splits(config, blocks, keys, processors)
    steps = -(-keys // tile[1])
    splits = min(_MOST_SPLITS, processors * 2 // max(blocks, 1), steps // 4)
    return config if splits < 2 else replace(config, splits=splits)


def many_queries_config(right: int | None, is_large: bool = True) -> ampere.Config:
    """The configuration of the kernel by mma.sync for many queries, and a bound on the right or
    None; `is_large` says that blocks of 256 queries are enough for all multiprocessors.
    """
    name = current_target().name
    if name.startswith("sm_90"):
        found = _MANY_QUERIES_SM_90 if is_large else _MANY_QUERIES
    else:
        found = _MANY_QUERIES_SM_100 if name.startswith("sm_1") else _MANY_QUERIES
    return replace(found, heads_first=right is not None)


def blackwell_config(head: int, right: int | None) -> blackwell.Config:
    """The configuration of the Blackwell kernel for heads of `head` elements, and a bound on the
    right or None. With a diagonal, the order in which multiprocessors become free is a fairer share
    of the work. Exponentials bound heads of 64 (bench/results/2026-11-23-blackwell-attention.md),
    but sm_103's unit for them is twice as fast (NVIDIA, "Inside NVIDIA Blackwell Ultra").
    """
    is_bound = head == 64 and current_target().name.startswith("sm_100")
    stages = 2 if head > 64 else 3
    return blackwell.Config(stages, persistent=right is None, computed=2 if is_bound else 0)


def _multiprocessors(q: AttentionOperand) -> int:
    device = q.record.device[1] if q.record.is_on_gpu else None
    return HardwareInfo(device).get_device_multiprocessor_count()


def _check_narrow(is_dense: bool, extents: Extents, config: Any) -> None:
    """Raise DSLTypeError where elements of 8 bits have no kernel."""
    target = current_target()
    if target.is_gpu and not WGMMA.is_met_by(target):
        raise DSLTypeError(
            f"attention of 8 bits has a kernel for Hopper only, not {target.name}",
            hint="convert q, k and v to Float16 or BFloat16",
        )
    if not is_dense or isinstance(config, ampere.Config | blackwell.Config):
        raise DSLTypeError(
            "attention of 8 bits has no kernel for packed or paged sequences, nor by mma.sync or "
            "tcgen05.mma"
        )
    if extents.keys == 0:
        raise DSLTypeError("attention of 8 bits needs a key")


def _check_out(lib: ArrayLibrary, q: Any, out: Any, dtype: Any, head_v: int) -> None:
    """Raise DSLTypeError if `out` has not the extents, the type or the library of the result."""
    shape = (*q.shape[:-1], head_v)
    if library(out, "attention") is not lib or tuple(out.shape) != shape or out.dtype != dtype:
        raise DSLTypeError(
            f"attention: out is {tuple(out.shape)} of {out.dtype}, not {shape} of {dtype}"
        )
    check_elements_apart(ArrayRecord.of(out, "out"))


@cute.jit
def _launch(
    q: cute.Tensor,
    k: cute.Tensor,
    v: cute.Tensor,
    out: cute.Tensor,
    lse: cute.Tensor | None,
    parts: cute.Tensor | None,
    logs: cute.Tensor | None,
    turned: cute.Tensor | None,
    lengths: tuple,
    extras: tuple,
    captured: tuple,
    scales: tuple,
    scale: cute.Float32,
    value_scale: cute.Float32,
    batches: cute.Int32,
    longest: cute.Int32,
    blocks: cute.Int32,
    head: cute.Constexpr,
    head_v: cute.Constexpr,
    variant: cute.Constexpr,
    config: cute.Constexpr,
    clears: cute.Constexpr,
    stream: cute.Int64,
):
    on = cute.Stream(stream.ir_value())
    extras = (*extras, captured)
    find_extremes(captured, variant, on)
    q, k = rows_of_heads(q, head), rows_of_heads(k, head)
    v, target = rows_of_heads(v, head_v), rows_of_heads(out, head_v, 2)
    if cute.const_expr(isinstance(config, hopper.Config)):
        if cute.const_expr(turned is not None):
            flags = None
            if cute.const_expr(config.shares_last):
                flags = flags_of(logs, blocks, config)
                flags = cute.make_tensor(flags.iterator, cute.make_layout(cute.size(flags)))
            turn(v, turned, config.in_blocks, config.early, on, flags)
            v = turned
        scalars = (scale, value_scale, blocks)
        packing = (lengths, batches, longest) if config.box else None
        shares = (parts, logs) if config.shares_last else None
        rest = (variant, config, on, packing, shares)
        hopper.forward(q, k, v, target, lse, extras, scales, *scalars, *rest)
    elif cute.const_expr(isinstance(config, blackwell.Config)):
        blackwell.forward(q, k, v, target, lse, extras, scale, blocks, variant, config, on)
    else:
        kernel = decoding.forward if config.key_warps > 1 else ampere.forward
        operands = (lengths, extras, scale, batches, longest)
        if cute.const_expr(config.splits > 1):
            parts = rows_of_heads(parts, head_v, 2)
            kernel(q, k, v, parts, logs, *operands, variant, config, on)
            combine(parts, logs, target, lse, config.splits, config.overlap, on)
        else:
            kernel(q, k, v, target, lse, *operands, variant, config, on)
    if cute.const_expr(clears):
        clear((target,), lse, lengths[0], on)
