"""Exchange between the lanes of a warp: shuffles, votes, reductions.

PTX ISA 9.7.9.6 "shfl.sync", 9.7.13.8 "vote.sync", 9.7.13.11 "redux.sync". A value is a number of
any width or a vector of numbers: it travels as its bits, 32 at a time. All lanes of `mask` (bit i
is lane i) must execute the same call.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from basedsl import (
    Boolean,
    DSLTypeError,
    Int32,
    Integer,
    Numeric,
    as_numeric,
    current_trace,
    mlir_type,
)
from basedsl_cute.algebra.ignored_location import takes_location
from basedsl_cute.arch.emit import emit_op, i32
from basedsl_cute.arch.indices import FULL_MASK
from basedsl_cute.hardware.targets import WARP_SIZE
from basedsl_cute.tensors.tensor_ssa import TensorSSA, lane_by_lane
from basedsl_cute.tensors.vector_ops import combine

CLAMP = 31  # all lanes of the warp

_SHUFFLES = ("idx", "bfly", "up", "down")


@takes_location
def shuffle_sync(
    value: Any,
    offset: int | Integer,
    mask: int | Integer = FULL_MASK,
    mask_and_clamp: int | Integer = CLAMP,
) -> Any:
    """Return the value that lane `offset` has (PTX `shfl.sync.idx`).

    `value` is a number or a vector. For `mask` and `mask_and_clamp` see `shuffle_sync_op`.
    """
    return shuffle_sync_op(value, offset, mask, mask_and_clamp, "idx")


@takes_location
def shuffle_sync_bfly(
    value: Any,
    offset: int | Integer,
    mask: int | Integer = FULL_MASK,
    mask_and_clamp: int | Integer = CLAMP,
) -> Any:
    """Return the value of the lane with the number (this lane XOR `offset`) (PTX
    `shfl.sync.bfly`).

    `value` is a number or a vector. For `mask` and `mask_and_clamp` see `shuffle_sync_op`.
    """
    return shuffle_sync_op(value, offset, mask, mask_and_clamp, "bfly")


@takes_location
def shuffle_sync_up(
    value: Any,
    offset: int | Integer,
    mask: int | Integer = FULL_MASK,
    mask_and_clamp: int | Integer = 0,
) -> Any:
    """Return the value of the lane `offset` below this one (PTX `shfl.sync.up`).

    Lanes that have no such lane in their segment get their own value. `value` is a number or a
    vector. For `mask` and `mask_and_clamp` see `shuffle_sync_op`.
    """
    return shuffle_sync_op(value, offset, mask, mask_and_clamp, "up")


@takes_location
def shuffle_sync_down(
    value: Any,
    offset: int | Integer,
    mask: int | Integer = FULL_MASK,
    mask_and_clamp: int | Integer = CLAMP,
) -> Any:
    """Return the value of the lane `offset` above this one (PTX `shfl.sync.down`).

    Lanes that have no such lane in their segment get their own value. `value` is a number or a
    vector. For `mask` and `mask_and_clamp` see `shuffle_sync_op`.
    """
    return shuffle_sync_op(value, offset, mask, mask_and_clamp, "down")


@takes_location
def shuffle_sync_op(
    value: Any,
    offset: int | Integer,
    mask: int | Integer = FULL_MASK,
    mask_and_clamp: int | Integer = CLAMP,
    kind: str = "idx",
) -> Any:
    """Exchange `value`, a number or a vector, between lanes by a shuffle of `kind` "idx", "bfly",
    "up" or "down".

    `offset` is the source lane, the lane mask, or the distance, after the kind. `mask` names the
    lanes that take part, all of which must execute the call. `mask_and_clamp` packs PTX's operand
    c: the clamp (bits 0 to 4) and the segment mask (bits 8 to 12); 7199 = 0x1c1f makes segments of
    four lanes. Raises DSLTypeError for another kind.
    """
    name = str(getattr(kind, "value", kind))
    if name not in _SHUFFLES:
        raise DSLTypeError(f"there is no shuffle {kind!r}; there are {', '.join(_SHUFFLES)}")
    if isinstance(value, TensorSSA):
        return lane_by_lane(lambda x: _shuffle(x, offset, mask, mask_and_clamp, name), value)
    return _shuffle(as_numeric(value), offset, mask, mask_and_clamp, name)


def _shuffle(value: Numeric, offset: Any, mask: Any, clamp: Any, kind: str) -> Any:
    words = _to_words(value)
    operands = [member_mask(mask), i32(offset), i32(clamp)]
    attributes = {"kind": f"#nvvm<shfl_kind {kind}>"}
    moved = [
        emit_op(
            "a shuffle", "nvvm.shfl.sync", [operands[0], word, *operands[1:]], ["i32"], attributes
        ).result
        for word in words
    ]
    return _from_words(moved, type(value))


def member_mask(mask: int | Integer) -> Any:
    """Return a mask of lanes, up to 0xFFFFFFFF, as an i32 of the IR."""
    if isinstance(mask, int):
        return i32(mask - 2**32 if mask >= 2**31 else mask)
    return i32(mask)


def _to_words(value: Numeric) -> list[Any]:
    """Return the bits of a number as i32 values, lowest first."""
    trace = current_trace("a shuffle")
    ir = trace.ir
    width = type(value).width
    bits = ir.IntegerType.get_signless(width)
    raw = value.ir_value()
    if type(value).is_float:
        raw = trace.emit_op("arith.bitcast", bits, raw)
    word = ir.IntegerType.get_signless(32)
    if width == 32:
        return [raw]
    if width < 32:
        return [trace.emit_op("arith.extui", word, raw)]
    parts = []
    for i in range(width // 32):
        by = trace.emit_op("arith.constant", bits, value=ir.IntegerAttr.get(bits, 32 * i))
        shifted = trace.emit_op("arith.shrui", bits, raw, by) if i else raw
        parts.append(trace.emit_op("arith.trunci", word, shifted))
    return parts


def _from_words(words: list[Any], kind: Any) -> Any:
    """Return the number of type `kind` with these bits."""
    trace = current_trace("a shuffle")
    ir = trace.ir
    width = kind.width
    bits = ir.IntegerType.get_signless(width)
    raw = words[0]
    if width < 32:
        raw = trace.emit_op("arith.trunci", bits, raw)
    elif width > 32:
        raw = trace.emit_op("arith.extui", bits, raw)
        for i, word in enumerate(words[1:], 1):
            wide = trace.emit_op("arith.extui", bits, word)
            by = trace.emit_op("arith.constant", bits, value=ir.IntegerAttr.get(bits, 32 * i))
            shifted = trace.emit_op("arith.shli", bits, wide, by)
            raw = trace.emit_op("arith.ori", bits, raw, shifted)
    if kind.is_float:
        raw = trace.emit_op("arith.bitcast", mlir_type(kind, ir), raw)
    return kind.from_value(raw)


# Votes -------------------------------------------------------------------------------------------


@takes_location
def vote_ballot_sync(pred: bool | Boolean, mask: int | Integer = FULL_MASK) -> Int32:
    """Return a word whose bit i says whether `pred` holds in lane i of `mask` (PTX
    `vote.sync.ballot`).
    """
    return Int32.from_value(_vote(pred, mask, "ballot", "i32"))


@takes_location
def vote_any_sync(pred: bool | Boolean, mask: int | Integer = FULL_MASK) -> Boolean:
    """Return True if `pred` holds in some lane of `mask` (PTX `vote.sync.any`)."""
    return Boolean.from_value(_vote(pred, mask, "any", "i1"))


@takes_location
def vote_all_sync(pred: bool | Boolean, mask: int | Integer = FULL_MASK) -> Boolean:
    """Return True if `pred` holds in all lanes of `mask` (PTX `vote.sync.all`)."""
    return Boolean.from_value(_vote(pred, mask, "all", "i1"))


@takes_location
def vote_uni_sync(pred: bool | Boolean, mask: int | Integer = FULL_MASK) -> Boolean:
    """Return True if `pred` is the same in all lanes of `mask` (PTX `vote.sync.uni`)."""
    return Boolean.from_value(_vote(pred, mask, "uni", "i1"))


def _vote(pred: Any, mask: Any, kind: str, result: str) -> Any:
    operands = [member_mask(mask), Boolean(pred).ir_value()]
    attributes = {"kind": f"#nvvm<vote_sync_kind {kind}>"}
    return emit_op("a vote", "nvvm.vote.sync", operands, [result], attributes).result


# Reductions --------------------------------------------------------------------------------------


@takes_location
def warp_reduction(
    val: Any, op: Callable[[Any, Any], Any], threads_in_group: int = WARP_SIZE
) -> Any:
    """Combine `val` over each group of `threads_in_group` neighbouring lanes with `op`, in every
    lane.

    `val` is a number or a vector; `op(a, b)` combines two, and must be associative and
    commutative. `threads_in_group` is a static power of two up to 32 (DSLTypeError otherwise). It
    takes log2 of that many butterfly shuffles, so all 32 lanes must execute it.
    """
    if type(threads_in_group) is not int or threads_in_group not in (1, 2, 4, 8, 16, 32):
        raise DSLTypeError(
            f"a group of lanes has 1, 2, 4, 8, 16 or 32 threads, not {threads_in_group}"
        )
    step = threads_in_group // 2
    while step:
        val = op(val, shuffle_sync_bfly(val, step))
        step //= 2
    return val


@takes_location
def warp_reduction_sum(val: Any, threads_in_group: int = WARP_SIZE) -> Any:
    """Return the sum of `val`, a number or a vector, over each group of lanes, in every lane.

    >>> @cute.kernel
    ... def sum_of_lanes(y: cute.Tensor):
    ...     lane = cute.arch.lane_idx()
    ...     y[lane] = cute.arch.warp_reduction_sum(lane, threads_in_group=8)
    >>> @cute.jit
    ... def launch(y: cute.Tensor):
    ...     sum_of_lanes(y).launch(grid=1, block=32)
    >>> y = np.zeros(32, np.int32)
    >>> launch(y)
    >>> print(y[::8])
    [ 28  92 156 220]
    """
    return warp_reduction(val, lambda a, b: a + b, threads_in_group)


@takes_location
def warp_reduction_max(val: Any, threads_in_group: int = WARP_SIZE) -> Any:
    """Return the largest `val`, a number or a vector, of each group of `threads_in_group`
    neighbouring lanes (a power of two up to 32), in every lane.
    """
    return warp_reduction(val, lambda a, b: combine("max", a, b), threads_in_group)


_REDUX_INTEGER = ("add", "min", "max", "and", "or", "xor")
_REDUX_FLOAT = ("fmin", "fmax")


@takes_location
def warp_redux_sync(
    value: Any,
    kind: str,
    mask_and_clamp: int | Integer = FULL_MASK,
    *,
    abs: bool = False,
    nan: bool = False,
) -> Any:
    """Combine `value`, a 32-bit number, over the lanes of a mask by one instruction, in every lane
    (`redux.sync`).

    `kind` is "add", "min", "max", "and", "or" or "xor" of integers (sm_80), "fmin" or "fmax" of
    Float32 (sm_100a); `abs` and `nan` are PTX's modifiers of the latter. `mask_and_clamp` is the
    mask of lanes. Raises DSLTypeError for another kind or type.
    """
    number = as_numeric(value)
    known = _REDUX_FLOAT if type(number).is_float else _REDUX_INTEGER
    name = str(getattr(kind, "value", kind))
    if name not in known or type(number).width != 32:
        raise DSLTypeError(f"there is no redux.sync {name!r} of {type(number).__name__}")
    if name in ("min", "max") and not type(number).signed:
        name = "u" + name
    attributes = {"kind": f"#nvvm<reduction_kind {name}>"}
    attributes |= {flag: "true" for flag, on in (("abs", abs), ("nan", nan)) if on}
    result = "f32" if type(number).is_float else "i32"
    operands = [number.ir_value(), member_mask(mask_and_clamp)]
    op = emit_op("warp_redux_sync()", "nvvm.redux.sync", operands, [result], attributes)
    return type(number).from_value(op.result)
