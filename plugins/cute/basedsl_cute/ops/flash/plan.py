"""Plans of calls of attention: what was found for arrays of one kind, so that later calls look it
up and launch.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

import basedsl_cute as cute
from basedsl import ArrayRecord, DSLTypeError
from basedsl_cute.ops.array_libraries import ArrayLibrary
from basedsl_cute.ops.flash.arguments import (
    LENGTHS,
    SCALES,
    AttentionOperand,
    Extents,
    HeadsView,
    Lengths,
    check_array,
    heads_view,
    reach_of,
)
from basedsl_cute.ops.plan_cache import PlanCache, asked_target


class GivenArrays(NamedTuple):
    """The arrays of a call, None for those that it does not have; scales may be numbers."""

    q: Any
    k: Any
    v: Any
    out: Any
    bias: Any
    alibi: Any
    sinks: Any
    lengths: Lengths
    scales: tuple[Any, Any, Any]

    def key(self, lib: ArrayLibrary) -> Any:
        """A cache key of everything that a plan depends on; DSLTypeError for arrays of several
        libraries.
        """
        *arrays, lengths, scales = self
        names = (*self._fields[:-2], *LENGTHS, *SCALES)
        return tuple(
            [
                None if x is None else _key(lib, name, x)
                for name, x in zip(names, (*arrays, *lengths, *scales), strict=True)
            ]
        )


def _key(lib: ArrayLibrary, name: str, x: Any) -> Any:
    if name in SCALES and isinstance(x, int | float):
        return type(x), x
    check_array(lib, name, x)
    return lib.key(x)


class Options(NamedTuple):
    """The options of a call that are no arrays, as `attention` has them."""

    scale: Any
    causal: Any
    window: Any
    softcap: Any
    max_seqlen_q: Any
    max_seqlen_k: Any
    layout: Any
    return_lse: Any
    config: Any


class NewArray(NamedTuple):
    """An array that each call makes: its extents and type, and the kernels' view of it."""

    shape: tuple[int, ...]
    dtype: Any
    view: HeadsView

    def make(self, lib: ArrayLibrary, like: Any) -> Any:
        """A new array on the device of `like`."""
        return lib.empty(self.shape, self.dtype, like)


@dataclass(frozen=True)
class AttentionPlan:
    """The plan of attention of arrays with the same extents, strides, types and alignment.

    `views` are those of q, k and v, `bias` and `scales` those of the bias and of the scales that
    are arrays. `rest` and `static` are the numbers and the static arguments of the launch. Results
    have heads of `head_v` elements, which may be fewer than the kernels write. `reaches` are the
    first and the last byte of `out`, q, k and v, from their addresses on.
    """

    views: tuple[HeadsView, HeadsView, HeadsView]
    bias: HeadsView | None
    scales: tuple[HeadsView | None, ...]
    out: NewArray
    lse: NewArray | None
    parts: NewArray | None
    logs: NewArray | None
    turned: NewArray | None
    rest: tuple[Any, ...]
    static: tuple[Any, ...]
    head_v: int
    reaches: tuple[range, ...]
    launches: bool  # False where there are no queries

    def run(
        self,
        launch: Callable[..., Any],
        lib: ArrayLibrary,
        given: GivenArrays,
        captured: tuple[Any, ...] = (),
    ) -> Any:
        """Compute attention of arrays of that kind, with those that functions of the user's
        captured: the result, or it and the logarithms of sums.
        """
        q, k, v, out = given[:4]
        if out is not None:
            self._check_apart(lib, (out, q, k, v))
        is_padded = self.head_v < self.out.shape[-1]
        result = self.out.make(lib, q) if out is None or is_padded else out
        made = [result]
        for one in self._workspaces:
            made.append(None if one is None else one.make(lib, q))
        if self.launches:
            views = (
                *self.views,
                self.out.view,
                *[None if one is None else one.view for one in self._workspaces],
            )
            arrays = [
                None if view is None else lib.view(x, *view)
                for x, view in zip((q, k, v, *made), views, strict=True)
            ]
            bias = None if self.bias is None else lib.view(given.bias, *self.bias)
            scales = tuple(
                [
                    None if view is None else lib.view(x, *view)
                    for x, view in zip(given.scales, self.scales, strict=True)
                ]
            )
            # Tuples without tuples in them: others are taken apart by Python in each call.
            extras = (given.alibi, given.sinks, bias)
            launch(
                *arrays, tuple(given.lengths), extras, captured, scales,
                *self.rest, *self.static, lib.stream(q),
            )  # fmt: skip
        if is_padded:
            found = result[..., : self.head_v]
            if out is None:
                result = lib.compact(found)
            else:
                out[...] = found
                result = out
        return result if self.lse is None else (result, made[1])

    @property
    def _workspaces(self) -> tuple[NewArray | None, ...]:
        return self.lse, self.parts, self.logs, self.turned

    def _check_apart(self, lib: ArrayLibrary, arrays: tuple[Any, ...]) -> None:
        """Raise DSLTypeError if the first array, which is written, shares memory with another, as
        far as the stretches from their first to their last elements tell.
        """
        starts = [lib.address(x) for x in arrays]
        own = self.reaches[0]
        low, high = starts[0] + own.start, starts[0] + own.stop
        for name, start, reach in zip("qkv", starts[1:], self.reaches[1:], strict=True):
            if max(low, start + reach.start) < min(high, start + reach.stop):
                raise DSLTypeError(
                    f"attention: out shares memory with {name}", hint="pass another array, or none"
                )


plans: PlanCache[AttentionPlan] = PlanCache()


def options_key(options: tuple[Any, ...]) -> Any:
    """A cache key of options, or None for one that may change or cannot be told apart."""
    for x in options:
        if type(x) is tuple:
            if options_key(x) is None:
                return None
        elif type(x) not in _KEPT and not getattr(type(x), "__dataclass_params__", None):
            return None
    return (*options, asked_target())


_KEPT = {type(None), bool, int, float, str}


def plan_of(
    lib: ArrayLibrary,
    given: GivenArrays,
    operands: dict[str, AttentionOperand],
    extents: Extents,
    bias: HeadsView | None,
    scales: tuple[HeadsView | None, ...],
    rest: tuple[Any, ...],
    static: tuple[Any, ...],
    options: Options,
    launches: bool,
) -> AttentionPlan:
    """The plan of a call: its new arrays, and how the kernels see all. DSLTypeError for an `out`
    whose rows they cannot write.
    """
    config, q = static[-1], given.q
    packed = given.lengths.starts_q is not None
    head_v, width = operands["v"].head, extents.head_v
    dtype = lib.dtype(cute.BFloat16) if operands["q"].dtype.width == 8 else q.dtype
    shape = (*q.shape[:-1], width)
    strides = tuple(math.prod(shape[i + 1 :]) for i in range(len(shape)))
    reaches = [range(0)]
    if given.out is not None:
        record = ArrayRecord.of(given.out, "out")
        if head_v == width:
            strides = record.strides
            if strides[-1] != 1 or any(d % 2 for d in strides[:-1]) or record.address % 4:
                raise DSLTypeError(
                    "attention: rows of out are not contiguous, or not aligned to 4 bytes"
                )
        every = (("out", given.out), ("q", given.q), ("k", given.k), ("v", given.v))
        reaches = [reach_of(ArrayRecord.of(x, name)) for name, x in every]
    view = heads_view(shape, strides, options.layout, packed=packed)
    rows, _, heads, batches = view.shape
    f32 = lib.dtype(cute.Float32)
    lse = parts = logs = turned = None
    if options.return_lse:
        lse = NewArray(
            (heads, rows) if packed else (batches, heads, rows),
            f32,
            HeadsView((rows, heads, batches), (1, rows, heads * rows)),
        )
    if getattr(config, "splits", 1) > 1:
        many = config.splits * batches
        steps = (heads * width, 1, width, rows * heads * width)
        parts = NewArray(
            (many, rows, heads, width), f32, HeadsView((rows, width, heads, many), steps)
        )
        logs = NewArray(
            (many, heads, rows), f32, HeadsView((rows, heads, many), (1, rows, heads * rows))
        )
    if operands["q"].dtype.width == 8:
        turned = _turned(given.v.dtype, extents)
    return AttentionPlan(
        (operands["q"].view, operands["k"].view, operands["v"].view),
        bias,
        scales,
        NewArray(shape, dtype, view),
        lse,
        parts,
        logs,
        turned,
        rest,
        static,
        head_v,
        tuple(reaches),
        launches,
    )


def _turned(dtype: Any, extents: Extents) -> NewArray:
    """The values (head, keys, heads, batches) with contiguous keys, in whole 16."""
    keys, head, heads = -(-extents.keys // 16) * 16, extents.head_v, extents.key_heads
    view = HeadsView(
        (head, keys, heads, extents.batches), (keys, 1, head * keys, heads * head * keys)
    )
    return NewArray((extents.batches, heads, head, keys), dtype, view)
