"""The arguments of attention: arrays as the kernels see them, and options as a `Variant`."""

from __future__ import annotations

import math
import operator
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

import basedsl_cute as cute
from basedsl import ArrayRecord, DSLTypeError, from_dlpack
from basedsl_cute.ops.array_libraries import ArrayLibrary, library
from basedsl_cute.ops.flash.captured import Captured
from basedsl_cute.ops.flash.extremes import workspaces
from basedsl_cute.ops.flash.variant import Variant

VECTOR = 8  # elements of 16 bytes
HEADS = 32  # what divides the extents of heads that kernels take
MOST_OF_A_HEAD = 256
HALVES = (cute.Float16, cute.BFloat16)
_ALL_KEYS = 2**30


class HeadsView(NamedTuple):
    """The extents and strides, in elements, of an array as kernels see it."""

    shape: tuple[int, ...]
    strides: tuple[int, ...]


class AttentionOperand(NamedTuple):
    """An array, or a copy of it whose heads may have zeros behind the `head` elements that were
    given, and its view (rows, head, heads, batches), or (.., pages) of a cache.
    """

    array: Any
    view: HeadsView
    record: ArrayRecord
    dtype: Any
    shape: tuple[int, ...]
    head: int


@dataclass(frozen=True)
class Extents:
    """The extents of an attention: sequences, the most queries and keys, heads, their elements."""

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


def operands_of(
    lib: ArrayLibrary,
    q: Any,
    k: Any,
    v: Any,
    layout: str,
    packed_q: bool,
    packed_k: bool,
    table: Any,
    dtypes: tuple[Any, ...] = HALVES,
) -> dict[str, AttentionOperand]:
    """The views of q, k and v for the kernels; DSLTypeError for arrays that do not fit together, or
    are of none of `dtypes`.
    """
    found = {}
    for name, x in (("q", q), ("k", k), ("v", v)):
        check_array(lib, name, x)
        is_packed = packed_q if name == "q" else packed_k
        if len(x.shape) != (3 if is_packed else 4):
            wanted = "(total, heads, head)" if is_packed else "(batches, length, heads, head)"
            raise DSLTypeError(
                f"attention: {name} has {len(x.shape)} modes, not {wanted}",
                hint="cu_seqlens_q and cu_seqlens_k go with packed sequences",
            )
        record = ArrayRecord.of(x, name)
        dtype = from_dlpack(*record.dtype)
        if dtype not in dtypes:
            names = [one.__name__ for one in dtypes]
            raise DSLTypeError(
                f"attention has no kernel for elements of {dtype.__name__} ({name})",
                hint=f"convert them to {', '.join(names[:-1])} or {names[-1]}",
            )
        paged = table is not None and name != "q"
        head = record.shape[-1]
        if paged and head % HEADS:
            raise DSLTypeError(
                f"attention: pages of {name} have heads of {head} elements",
                hint=f"keep the cache with heads of a multiple of {HEADS}, padded with zeros",
            )
        if 0 < head <= MOST_OF_A_HEAD:
            x, record = aligned_heads(lib, x, record)
        view = heads_view(
            record.shape, record.strides, "bshd" if paged else layout, packed=is_packed
        )
        found[name] = AttentionOperand(x, view, record, dtype, view.shape, head)
    if len({one.dtype for one in found.values()}) > 1:
        names = ", ".join(f"{name} {one.dtype.__name__}" for name, one in found.items())
        raise DSLTypeError(f"attention: elements of different types: {names}")
    if len({one.record.device for one in found.values()}) > 1:
        raise DSLTypeError("attention: q, k and v are on different devices")
    return found


def aligned_heads(lib: ArrayLibrary, x: Any, record: ArrayRecord) -> tuple[Any, ArrayRecord]:
    """The array and its record, or those of a copy whose heads have zeros up to a multiple of
    `HEADS`, each contiguous from a multiple of 16 bytes on.
    """
    head = record.shape[-1]
    wide = -(-head // HEADS) * HEADS
    if wide == head:
        if _suits(record):
            return x, record
        compact = lib.compact(x)
        record = ArrayRecord.of(compact, "a copy")
        if _suits(record):
            return compact, record
    x = lib.spaced(x, wide)
    if wide > head:
        x[..., head:] = 0
    return x, ArrayRecord.of(x, "a copy")


def _suits(record: ArrayRecord) -> bool:
    """True if each head's row is contiguous and begins at a multiple of 16 bytes."""
    pairs = zip(record.shape, record.strides, strict=True)
    steps = [stride for extent, stride in list(pairs)[:-1] if extent > 1]
    contiguous = record.strides[-1] == 1 or record.shape[-1] == 1
    vector = 128 // record.dtype[1]
    return (
        contiguous and record.address % 16 == 0 and all(d >= 0 and d % vector == 0 for d in steps)
    )


LENGTHS = ("cu_seqlens_q", "cu_seqlens_k", "seqused_k", "block_table")
SCALES = ("q_scale", "k_scale", "v_scale")


class Lengths(NamedTuple):
    """Arrays tell where packed sequences begin, the keys in use, and the pages of a cache."""

    starts_q: Any = None
    starts_k: Any = None
    used: Any = None
    table: Any = None

    def check(self, lib: ArrayLibrary) -> None:
        """Raise DSLTypeError for what is no array of Int32 of the library, with its modes, and for
        keys that are both packed and in pages.
        """
        if self.starts_k is not None and self.table is not None:
            raise DSLTypeError(
                "attention: cu_seqlens_k is for packed keys, and block_table for pages",
                hint="seqused_k has the keys of each sequence in pages",
            )
        for name, x, modes in zip(LENGTHS, self, (1, 1, 1, 2), strict=True):
            if x is None:
                continue
            check_array(lib, name, x)
            record = ArrayRecord.of(x, name)
            dtype = from_dlpack(*record.dtype)
            if dtype is not cute.Int32 or len(record.shape) != modes:
                raise DSLTypeError(
                    f"attention: {name} is {tuple(x.shape)} of {dtype.__name__}, not Int32 "
                    f"of {modes} mode{'s' * (modes > 1)}"
                )


def most_of_a_sequence(name: str, given: Any, rows: int, packed: bool) -> int:
    """The most queries or keys of a sequence: at most `rows`, as for None. DSLTypeError for no
    count, or for fewer than the sequences have that are not packed.
    """
    if given is None:
        return rows
    try:
        count = operator.index(given)
    except TypeError:
        count = -1
    if count < 0 or isinstance(given, bool):
        raise DSLTypeError(
            f"attention: {name}={given!r}", hint="pass the number of rows of the longest sequence"
        )
    if not packed and count < rows:
        raise DSLTypeError(
            f"attention: {name}={count}, and sequences have {rows} rows",
            hint=f"it goes with {name.replace('max_seqlen', 'cu_seqlens')}; leave it out",
        )
    return min(count, rows)


def check_layout(layout: Any) -> None:
    """Raise DSLTypeError for what is no layout of q, k and v."""
    if layout not in ("bshd", "bhsd"):
        raise DSLTypeError(f"attention has no layout {layout!r}", hint='"bshd" or "bhsd"')


def check_array(lib: ArrayLibrary, name: str, x: Any) -> None:
    """Raise DSLTypeError for what is no array of the library."""
    if library(x, f"attention ({name})") is not lib:
        raise DSLTypeError(f"attention: {name} is of another library than q")


def extents_of(operands: dict[str, AttentionOperand], lengths: Lengths) -> Extents:
    """The extents of the operands; DSLTypeError for those that do not fit together."""
    starts, starts_k, used, table = lengths
    (queries, head, heads, batches), (keys, _, key_heads, batches_k) = (
        operands[name].shape for name in "qk"
    )
    keys_v, head_v, heads_v, batches_v = operands["v"].shape
    given = operands["q"].head, operands["k"].head
    if given[0] != given[1]:
        raise DSLTypeError(f"attention: heads of q have {given[0]} elements, those of k {given[1]}")
    if (keys, key_heads, batches_k) != (keys_v, heads_v, batches_v):
        raise DSLTypeError("attention: k and v differ in length, heads or batches")
    if not key_heads or heads % key_heads or not heads:
        raise DSLTypeError(f"attention: {key_heads} heads of keys cannot serve {heads} of queries")
    for name, extent in (("q and k", head), ("v", head_v)):
        if not 0 < extent <= MOST_OF_A_HEAD:
            raise DSLTypeError(
                f"attention: heads of {extent} elements ({name}) have no kernel",
                hint=f"1 to {MOST_OF_A_HEAD} have",
            )
    for name, x in zip(LENGTHS, (starts, starts_k), strict=False):
        if x is not None and not x.shape[0]:
            raise DSLTypeError(
                f"attention: {name} is empty",
                hint="where each sequence begins, and the end of the last one: 0 alone for none",
            )
    if starts is not None:
        batches = starts.shape[0] - 1
    if starts_k is not None:
        batches_k = starts_k.shape[0] - 1
    if table is None and batches != batches_k:
        raise DSLTypeError(f"attention: {batches} batches of q, {batches_k} of k")
    if table is not None:
        if used is None:
            raise DSLTypeError("attention: block_table needs seqused_k, the keys of each sequence")
        if table.shape[0] != batches:
            given = tuple(table.shape)
            raise DSLTypeError(f"attention: block_table is {given}, not (batches, pages)")
        keys *= table.shape[1]
    if used is not None and tuple(used.shape) != (batches,):
        raise DSLTypeError(f"attention: seqused_k is {tuple(used.shape)}, not ({batches},)")
    return Extents(batches, queries, keys, heads, key_heads, head, head_v)


def variant_of(
    causal: bool | str,
    window: Any,
    softcap: float | None,
    tensors: tuple[Any, Any, Any],
    score: Any,
    mask: Any,
    extents: Extents,
    lib: ArrayLibrary,
) -> tuple[Variant, HeadsView | None, tuple[Any, ...]]:
    """The static part of the options, how kernels see the bias, and the arrays that functions of
    the user's capture.
    """
    causal = normalised_causal(causal)
    left, right = normalised_window(window)
    if softcap is not None:
        softcap = _positive("softcap", softcap, "pass a number, or None for no cap")
    if causal:
        right = 0 if right is None else min(right, 0)
    own_score = Captured.of(score, "score")
    arrays = [] if own_score is None else own_score.arrays
    own_mask = Captured.of(mask, "mask", len(arrays))
    arrays = [*arrays, *([] if own_mask is None else own_mask.arrays)]
    alibi, sinks, bias = tensors
    for name, x in (("alibi", alibi), ("sinks", sinks), ("bias", bias)):
        if x is not None:
            check_array(lib, name, x)
    for name, x in (("alibi", alibi), ("sinks", sinks)):
        if x is not None and tuple(x.shape) != (extents.heads,):
            raise DSLTypeError(f"attention: {name} is {tuple(x.shape)}, not ({extents.heads},)")
    variant = Variant(
        left,
        right,
        causal == "top-left",
        softcap,
        own_score,
        own_mask,
        alibi is not None,
        sinks is not None,
        bias is not None,
    )
    view = None if bias is None else broadcast_bias(bias, extents)
    if own_mask is not None:
        most_rows = extents.batches * extents.heads
        arrays += workspaces(lib, own_mask.arrays, most_rows)
    return variant, view, tuple(arrays)


def normalised_window(window: Any) -> tuple[int | None, int | None]:
    """Return the keys on the left and on the right that a window lets a query see, None for all."""
    if window is None:
        return None, None
    pair = tuple(window) if isinstance(window, tuple | list) else ()
    pair = tuple(None if n is None else _whole_number(n) for n in pair)
    if len(pair) != 2 or any(n < 0 for n in pair if n is not None):
        raise DSLTypeError(
            f"attention: window={window!r}",
            hint="(left, right): numbers of keys from 0 on, or None for all (not -1)",
        )
    # Positions are Int32, and their sum with a window is to be one, too: longer ones hide nothing.
    left, right = (None if n is None or n >= _ALL_KEYS else n for n in pair)
    return left, right


def _whole_number(x: Any) -> int:
    """The number that an integer of any library is; -1 for anything else, and for truths."""
    try:
        return -1 if isinstance(x, bool | np.bool_) else operator.index(x)
    except TypeError:
        return -1


def normalised_causal(causal: bool | str) -> str:
    """Return "bottom-right", "top-left" or, for no mask, the empty string."""
    found = causal
    if isinstance(causal, bool | np.bool_):
        found = "bottom-right" if causal else ""
    if not isinstance(found, str) or found not in ("", "bottom-right", "top-left"):
        raise DSLTypeError(f"causal={causal!r}", hint='True, False, "bottom-right" or "top-left"')
    return found


def broadcast_bias(bias: Any, extents: Extents) -> HeadsView:
    """The view (queries, keys, heads, batches) of a bias; DSLTypeError if it does not broadcast."""
    full = (extents.batches, extents.heads, extents.queries, extents.keys)
    record = ArrayRecord.of(bias, "bias")
    if from_dlpack(*record.dtype) is cute.Boolean:
        raise DSLTypeError(
            "attention: bias is Boolean, and would be added to the scores as 0 and 1",
            hint="pass a mask= that reads it, or a bias of 0 where it is True and -inf elsewhere",
        )
    missing = len(full) - len(record.shape)
    shape, strides = (1,) * missing + record.shape, (0,) * missing + record.strides
    if missing < 0 or any(n not in (1, m) for n, m in zip(shape, full, strict=True)):
        raise DSLTypeError(f"attention: bias of {tuple(bias.shape)} does not broadcast to {full}")
    strides = tuple(0 if n == 1 else d for n, d in zip(shape, strides, strict=True))
    return HeadsView(*(tuple(x[i] for i in (2, 3, 1, 0)) for x in (full, strides)))


def heads_view(
    shape: tuple[int, ...], strides: tuple[int, ...], layout: str, *, packed: bool
) -> HeadsView:
    """The view (rows, head, heads, batches) of an array; one that is packed has one batch."""
    order = (2, 3, 1, 0) if layout == "bhsd" else (1, 3, 2, 0)
    if packed:
        shape, strides, order = (1, *shape), (0, *strides), (1, 3, 2, 0)
    shape, strides = (tuple(given[i] for i in order) for given in (shape, strides))
    # The strides of modes of one element, which are never used, are whole 16 bytes for TMA.
    reach = -(-max(n * d for n, d in zip(shape, strides, strict=True)) // 16) * 16
    strides = tuple(
        reach if n == 1 and mode != 1 else d
        for mode, (n, d) in enumerate(zip(shape, strides, strict=True))
    )
    return HeadsView(shape, strides)


def rows_of_heads(x, head, vector=None):
    """The tensor (rows, head, heads, batches) with contiguous rows of `head` elements, whose other
    strides `vector` divides, by default the elements of 16 bytes.
    """
    vector = vector or 128 // x.element_type.width
    shape, stride = x.shape, x.stride
    steps = (stride[0], 1, stride[2], stride[3])
    steps = tuple(1 if i == 1 else cute.assume(d, vector) for i, d in enumerate(steps))
    pointer = x.iterator.align(vector * x.element_type.width // 8)
    layout = cute.make_layout((shape[0], head, shape[2], shape[3]), stride=steps)
    return cute.make_tensor(pointer, layout)


def scales_of(
    lib: ArrayLibrary, given: tuple[Any, Any, Any], extents: Extents, dtype: Any
) -> tuple[float, float, tuple[HeadsView | None, ...]]:
    """The factors of q, k and v: a number for scores, one for results, and the views (heads,
    batches) of those that are arrays. DSLTypeError for one that does not fit, or that no operand
    needs.
    """
    numbers = [1.0, 1.0, 1.0]
    views: list[HeadsView | None] = [None, None, None]
    for i, (name, x) in enumerate(zip(SCALES, given, strict=True)):
        if x is None:
            continue
        if dtype.width != 8:
            raise DSLTypeError(
                f"attention: {name} goes with elements of 8 bits, not {dtype.__name__}",
                hint="multiply scale= by it, or the result",
            )
        if isinstance(x, int | float):
            numbers[i] = float(x)
            if i < 2 and not 0 < numbers[i] < math.inf:
                raise DSLTypeError(
                    f"attention: {name} is {x}", hint=f"{name} is a positive finite number"
                )
            continue
        check_array(lib, name, x)
        heads = extents.heads if i == 0 else extents.key_heads
        record = ArrayRecord.of(x, name)
        shape = (1,) * (2 - len(record.shape)) + record.shape
        fits = len(shape) == 2 and shape[0] in (1, extents.batches) and shape[1] in (1, heads)
        if not fits or from_dlpack(*record.dtype) is not cute.Float32:
            raise DSLTypeError(
                f"attention: {name} is {tuple(x.shape)} of {x.dtype}, not Float32 that broadcasts "
                f"to {(extents.batches, heads)}"
            )
        strides = (0,) * (2 - len(record.shape)) + record.strides
        strides = tuple(0 if n == 1 else d for n, d in zip(shape, strides, strict=True))
        views[i] = HeadsView((heads, extents.batches), (strides[1], strides[0]))
    return numbers[0] * numbers[1], numbers[2], tuple(views)


def reach_of(record: ArrayRecord) -> range:
    """The bytes from an array's lowest element to its highest, from its address on."""
    if 0 in record.shape:
        return range(0)
    steps = [(n - 1) * d for n, d in zip(record.shape, record.strides, strict=True)]
    size = record.dtype[1] // 8
    low, high = sum(d for d in steps if d < 0), sum(d for d in steps if d > 0)
    return range(low * size, (high + 1) * size)


def scale_of(scale: Any, head: int) -> float:
    """The factor of the products: 1 / sqrt(head) for None. DSLTypeError unless it is positive."""
    if scale is None:
        return float(1 / math.sqrt(head))
    # The largest product is taken for the largest score.
    return _positive("scale", scale, "pass a number, or None; negate q, or pass zeros for it")


def _positive(name: str, given: Any, hint: str) -> float:
    """A positive, finite number as a float; DSLTypeError for anything else."""
    if getattr(given, "requires_grad", False) and library(given).records(given):
        check_constant(name, given)
    try:
        number = math.nan if isinstance(given, str | bool | np.bool_) else float(given)
    except (TypeError, ValueError, OverflowError):
        number = math.nan
    if not 0 < number < math.inf:
        raise DSLTypeError(f"attention: {name}={given!r} is not positive and finite", hint=hint)
    return number


# What to write instead of an option that is learned.
_LEARNED = {
    "scale": "multiply q by it, or detach it",
    "softcap": "detach it",
    "alibi": "pass a bias, whose gradient is computed, or detach it",
}


def check_constant(name: str, x: Any) -> None:
    """Raise DSLTypeError for an option that requires a gradient, which it would not get."""
    if getattr(x, "requires_grad", False):
        raise DSLTypeError(
            f"attention: {name} requires a gradient, and gets none", hint=_LEARNED[name]
        )
