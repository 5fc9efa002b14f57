"""`attention`: softmax(scale Q K^T) V of arrays, by the kernel that suits them."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import basedsl_cute as cute
from basedsl import DSLTypeError, from_dlpack
from basedsl_cute.arrays.array_record import ArrayRecord
from basedsl_cute.dsl.hardware_info import HardwareInfo
from basedsl_cute.ops.ampere import attention as ampere
from basedsl_cute.ops.array_libraries import ArrayLibrary, library
from basedsl_cute.ops.flash.captured import Captured
from basedsl_cute.ops.flash.combine import combine
from basedsl_cute.ops.flash.variant import Variant

_MOST_SPLITS = 32
_LAYOUTS = ("bshd", "bhsd")


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
    seqused_k: Any = None,
    block_table: Any = None,
    layout: str = "bshd",
    out: Any = None,
    return_lse: bool = False,
    config: Any = None,
) -> Any:
    """Compute softmax(scale q k^T) v for each head, without writing the scores.

    `q`, `k` and `v` are arrays of PyTorch, CuPy or NumPy of Float16 or BFloat16: (batches, length,
    heads, head), or with `layout="bhsd"` (batches, heads, length, head). Keys may have fewer heads,
    of which each serves as many heads of `q` in a row. Head extents are multiples of 32, up to 256;
    that of `v` may be another. Products are accumulated in Float32.

    Parameters:
        scale: the factor of the products, by default 1 / sqrt(head).
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
            packed sequences of any lengths: `q`, `k`, `v` are (total, heads, head) then.
        max_seqlen_q: the most queries of a sequence, if `cu_seqlens_q` is given; by default all.
        seqused_k: an Int32 array of the number of keys of each sequence.
        block_table: an Int32 array (batches, pages) of pages of a cache; `k` and `v` are (all
            pages, rows of a page, heads, head) then, and `seqused_k` is needed.
        layout: see above.
        out: the array to write; by default a new one.
        return_lse: return (out, lse), with the natural logarithm of each row's sum of exponents:
            Float32 (batches, heads, queries), or (heads, total) for packed sequences.
        config: a `Config` of `ops.ampere.attention`, instead of the chosen one.

    `score` and `mask` are traced into the kernel. Arrays that they capture, from a closure or the
    module, become operands, so that they may change from call to call.

    Returns `out`, or (out, lse). A query that sees no key gets zeros and -inf. Raises DSLTypeError
    for arrays of different libraries or types, extents that do not fit, and options that
    contradict each other.

    >>> import numpy as np
    >>> from basedsl_cute.ops import attention
    >>> q, k, v = (np.ones((1, 4, 2, 32), np.float16) for _ in range(3))
    >>> attention(q, k, v, causal=True)[0, 3, 0, :4]
    array([1., 1., 1., 1.], dtype=float16)
    """
    if layout not in _LAYOUTS:
        raise DSLTypeError(f"attention has no layout {layout!r}", hint='"bshd" or "bhsd"')
    lib = library(q, "attention")
    packed = cu_seqlens_q is not None
    operands = _operands(lib, q, k, v, layout, packed, cu_seqlens_k is not None, block_table)
    extents = _extents(operands, cu_seqlens_q, seqused_k, block_table)
    variant, extras = _variant(
        causal, window, softcap, (alibi, sinks, bias), score, mask, extents, lib
    )
    if scale is None:
        scale = 1 / math.sqrt(extents.head)
    longest = extents.queries if max_seqlen_q is None else max_seqlen_q
    if config is None:
        config = _chosen(extents, longest, operands["q"])
    result, views = _results(lib, q, out, extents, layout, packed, return_lse, config)
    if extents.batches * extents.queries * extents.heads:
        _run(
            lib,
            [operands[name].view for name in "qkv"],
            views,
            (cu_seqlens_q, cu_seqlens_k, seqused_k, block_table),
            extras,
            (float(scale), extents.batches, longest, extents.head, extents.head_v, variant, config),
            q,
        )
    return result


class _Operand(NamedTuple):
    """An array as the view (rows, head, heads, batches), or (.., pages) of a cache."""

    view: Any
    record: ArrayRecord
    dtype: Any
    shape: tuple[int, ...]


@dataclass(frozen=True)
class _Extents:
    batches: int
    queries: int
    keys: int
    heads: int
    key_heads: int
    head: int
    head_v: int

    @property
    def group(self) -> int:
        """The number of query heads that share a key head."""
        return self.heads // self.key_heads


def _operands(
    lib: ArrayLibrary,
    q: Any,
    k: Any,
    v: Any,
    layout: str,
    packed_q: bool,
    packed_k: bool,
    table: Any,
) -> dict[str, _Operand]:
    """The views of q, k and v for the kernels; DSLTypeError for arrays that do not fit together."""
    found = {}
    for name, x in (("q", q), ("k", k), ("v", v)):
        if library(x, "attention") is not lib:
            raise DSLTypeError(f"attention: {name} is of another library than q")
        is_packed = packed_q if name == "q" else packed_k
        if len(x.shape) != (3 if is_packed else 4):
            wanted = "(total, heads, head)" if is_packed else "(batches, length, heads, head)"
            raise DSLTypeError(
                f"attention: {name} has {len(x.shape)} modes, not {wanted}",
                hint="cu_seqlens_q and cu_seqlens_k go with packed sequences",
            )
        record = ArrayRecord.of(x, name)
        dtype = from_dlpack(*record.dtype)
        if dtype not in (cute.Float16, cute.BFloat16):
            raise DSLTypeError(
                f"attention has no kernel for elements of {dtype.__name__} ({name})",
                hint="convert them to Float16 or BFloat16",
            )
        if not _suits(record):
            x = lib.compact(x)
            record = ArrayRecord.of(x, name)
            if not _suits(record):
                raise DSLTypeError(
                    f"attention: rows of {name} are not whole 16 bytes", hint="copy it aligned"
                )
        shape, strides = record.shape, record.strides
        if is_packed:
            shape, strides = (1, *shape), (0, *strides)
        order = (
            (2, 3, 1, 0) if layout == "bhsd" and not is_packed and table is None else (1, 3, 2, 0)
        )
        if layout == "bhsd" and name == "q" and not is_packed:
            order = (2, 3, 1, 0)
        shape, strides = (tuple(given[i] for i in order) for given in (shape, strides))
        found[name] = _Operand(lib.view(x, shape, strides), record, dtype, shape)
    if len({one.dtype for one in found.values()}) > 1:
        names = ", ".join(f"{name} {one.dtype.__name__}" for name, one in found.items())
        raise DSLTypeError(f"attention: elements of different types: {names}")
    if len({one.record.device for one in found.values()}) > 1:
        raise DSLTypeError("attention: q, k and v are on different devices")
    return found


def _suits(record: ArrayRecord) -> bool:
    """True if each head's row is contiguous and begins at a multiple of 16 bytes."""
    pairs = zip(record.shape, record.strides, strict=True)
    steps = [stride for extent, stride in list(pairs)[:-1] if extent > 1]
    contiguous = record.strides[-1] == 1 or record.shape[-1] == 1
    return contiguous and record.address % 16 == 0 and all(d >= 0 and d % 8 == 0 for d in steps)


def _extents(operands: dict[str, _Operand], starts: Any, used: Any, table: Any) -> _Extents:
    (queries, head, heads, batches), (keys, head_k, key_heads, batches_k) = (
        operands[name].shape for name in "qk"
    )
    keys_v, head_v, heads_v, batches_v = operands["v"].shape
    if head != head_k:
        raise DSLTypeError(f"attention: heads of q have {head} elements, those of k {head_k}")
    if (keys, key_heads, batches_k) != (keys_v, heads_v, batches_v):
        raise DSLTypeError("attention: k and v differ in length, heads or batches")
    if not key_heads or heads % key_heads:
        raise DSLTypeError(f"attention: {key_heads} heads of keys cannot serve {heads} of queries")
    for name, extent in (("q and k", head), ("v", head_v)):
        if extent % 32 or not 32 <= extent <= 256:
            raise DSLTypeError(
                f"attention: heads of {extent} elements ({name}) have no kernel",
                hint="multiples of 32 up to 256 have: pad the heads with zeros",
            )
    if starts is not None:
        batches = starts.shape[0] - 1
    elif table is None and batches != batches_k:
        raise DSLTypeError(f"attention: {batches} batches of q, {batches_k} of k")
    if table is not None:
        if used is None:
            raise DSLTypeError("attention: block_table needs seqused_k, the keys of each sequence")
        if len(table.shape) != 2 or table.shape[0] != batches:
            given = tuple(table.shape)
            raise DSLTypeError(f"attention: block_table is {given}, not (batches, pages)")
        keys *= table.shape[1]
    if used is not None and tuple(used.shape) != (batches,):
        raise DSLTypeError(f"attention: seqused_k is {tuple(used.shape)}, not ({batches},)")
    return _Extents(batches, queries, keys, heads, key_heads, head, head_v)


def _variant(
    causal: bool | str,
    window: Any,
    softcap: float | None,
    tensors: tuple[Any, Any, Any],
    score: Any,
    mask: Any,
    extents: _Extents,
    lib: ArrayLibrary,
) -> tuple[Variant, tuple[Any, ...]]:
    """The static part of the options, and the operands that go with it."""
    if causal not in (False, True, "bottom-right", "top-left"):
        raise DSLTypeError(f"causal={causal!r}", hint='True, False, "bottom-right" or "top-left"')
    left, right = (None, None) if window is None else window
    if causal:
        right = 0 if right is None else min(right, 0)
    own_score = Captured.of(score, "score")
    arrays = [] if own_score is None else own_score.arrays
    own_mask = Captured.of(mask, "mask", len(arrays))
    arrays = [*arrays, *([] if own_mask is None else own_mask.arrays)]
    alibi, sinks, bias = tensors
    for name, x in (("alibi", alibi), ("sinks", sinks)):
        if x is not None and tuple(x.shape) != (extents.heads,):
            raise DSLTypeError(f"attention: {name} is {tuple(x.shape)}, not ({extents.heads},)")
    if bias is not None:
        bias = _broadcast(bias, extents, lib)
    variant = Variant(
        left,
        right,
        causal == "top-left",
        None if softcap is None else float(softcap),
        own_score,
        own_mask,
        alibi is not None,
        sinks is not None,
        bias is not None,
    )
    return variant, (alibi, sinks, bias, tuple(arrays))


def _broadcast(bias: Any, extents: _Extents, lib: ArrayLibrary) -> Any:
    """The bias as a view (queries, keys, heads, batches)."""
    full = (extents.batches, extents.heads, extents.queries, extents.keys)
    record = ArrayRecord.of(bias, "bias")
    missing = len(full) - len(record.shape)
    shape, strides = (1,) * missing + record.shape, (0,) * missing + record.strides
    if missing < 0 or any(n not in (1, m) for n, m in zip(shape, full, strict=True)):
        raise DSLTypeError(f"attention: bias of {tuple(bias.shape)} does not broadcast to {full}")
    strides = tuple(0 if n == 1 else d for n, d in zip(shape, strides, strict=True))
    return lib.view(bias, *(tuple(x[i] for i in (2, 3, 1, 0)) for x in (full, strides)))


def _chosen(extents: _Extents, longest: int, q: _Operand) -> ampere.Config:
    """The configuration: heads packed where there are few queries, keys split for few blocks."""
    packed = extents.group if longest * extents.group <= 64 else 1
    tile = (64, 64 if max(extents.head, extents.head_v) <= 128 else 32)
    if longest * packed <= 16:
        tile, warps = (16, tile[1]), 1
    else:
        warps = 4
    config = ampere.Config(tile, warps, packed)
    device = q.record.device[1] if q.record.is_on_gpu else None
    processors = HardwareInfo(device).get_device_multiprocessor_count()
    blocks = -(-longest * packed // tile[0]) * (extents.heads // packed) * extents.batches
    steps = -(-extents.keys // tile[1])
    splits = min(_MOST_SPLITS, processors // max(blocks, 1), steps // 4)
    return config if splits < 2 else replace(config, splits=splits)


def _results(
    lib: ArrayLibrary,
    q: Any,
    out: Any,
    extents: _Extents,
    layout: str,
    packed: bool,
    return_lse: bool,
    config: Any,
) -> tuple[Any, tuple[Any, ...]]:
    """What the call returns, and the views that kernels write: out, lse, and the workspace of
    splits.
    """
    shape = (*q.shape[:-1], extents.head_v)
    if out is None:
        out = lib.empty(shape, q.dtype, q)
    elif tuple(out.shape) != shape or out.dtype != q.dtype or library(out, "attention") is not lib:
        raise DSLTypeError(
            f"attention: out is {tuple(out.shape)} of {out.dtype}, not {shape} of {q.dtype}"
        )
    f32 = lib.dtype(cute.Float32)
    record = ArrayRecord.of(out, "out")
    size, strides = record.shape, record.strides
    if strides[-1] != 1 or any(d % 2 for d in strides[:-1]) or record.address % 4:
        raise DSLTypeError("attention: rows of out are not contiguous, or not aligned to 4 bytes")
    if packed:
        size, strides = (1, *size), (0, *strides)
    order = (2, 3, 1, 0) if layout == "bhsd" and not packed else (1, 3, 2, 0)
    out_view = lib.view(out, *(tuple(x[i] for i in order) for x in (size, strides)))
    lse = lse_view = None
    rows, _, heads, batches = (size[i] for i in order)
    if return_lse:
        lse = lib.empty((heads, rows) if packed else (batches, heads, rows), f32, q)
        steps = (1, rows, heads * rows)
        lse_view = lib.view(lse, (rows, heads, batches), steps)
    parts = logs = None
    if config.splits > 1:
        many = config.splits * batches
        parts = lib.empty((many, rows, heads, extents.head_v), f32, q)
        width = extents.head_v
        parts = lib.view(
            parts, (rows, width, heads, many), (heads * width, 1, width, rows * heads * width)
        )
        logs = lib.empty((many, heads, rows), f32, q)
        logs = lib.view(logs, (rows, heads, many), (1, rows, heads * rows))
    return (out, lse) if return_lse else out, (out_view, lse_view, parts, logs)


def _run(
    lib: ArrayLibrary,
    qkv: list[Any],
    views: tuple[Any, ...],
    lengths: tuple[Any, ...],
    extras: tuple[Any, ...],
    rest: tuple[Any, ...],
    q: Any,
) -> None:
    _launch(*qkv, *views, lengths, extras, *rest, lib.stream(q))


@cute.jit
def _launch(
    q: cute.Tensor,
    k: cute.Tensor,
    v: cute.Tensor,
    out: cute.Tensor,
    lse: cute.Tensor | None,
    parts: cute.Tensor | None,
    logs: cute.Tensor | None,
    lengths: tuple,
    extras: tuple,
    scale: cute.Float32,
    batches: cute.Int32,
    longest: cute.Int32,
    head: cute.Constexpr,
    head_v: cute.Constexpr,
    variant: cute.Constexpr,
    config: cute.Constexpr,
    stream: cute.Int64,
):
    on = cute.Stream(stream.ir_value())
    q, k = _rows(q, head), _rows(k, head)
    v, target = _rows(v, head_v), _rows(out, head_v, 2)
    if cute.const_expr(config.splits > 1):
        parts = _rows(parts, head_v, 2)
        ampere.forward(
            q, k, v, parts, logs, lengths, extras, scale, batches, longest, variant, config, on
        )
        combine(parts, logs, target, lse, config.splits, on)
    else:
        ampere.forward(
            q, k, v, target, lse, lengths, extras, scale, batches, longest, variant, config, on
        )


def _rows(x, head, vector=8):
    """The tensor (rows, head, heads, batches) with contiguous rows of `head` elements, whose other
    strides `vector` divides.
    """
    shape, stride = x.shape, x.stride
    steps = (stride[0], 1, stride[2], stride[3])
    steps = tuple(1 if i == 1 else cute.assume(d, vector) for i, d in enumerate(steps))
    pointer = x.iterator.align(vector * x.element_type.width // 8)
    layout = cute.make_layout((shape[0], head, shape[2], shape[3]), stride=steps)
    return cute.make_tensor(pointer, layout)
