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
    AttentionOperand,
    Extents,
    HeadsView,
    Lengths,
    heads_view,
    reach_of,
)
from basedsl_cute.ops.flash.turn import BLOCK
from basedsl_cute.ops.hopper.attention_shares import part_views
from basedsl_cute.ops.plan_cache import PlanCache, Repeatable, asked_options


class GivenArrays(NamedTuple):
    """The arrays of a call, None for those that it does not have; scales may be numbers. The order
    is that in which launches take them.
    """

    q: Any
    k: Any
    v: Any
    out: Any
    cu_seqlens_q: Any
    cu_seqlens_k: Any
    seqused_k: Any
    block_table: Any
    alibi: Any
    sinks: Any
    bias: Any
    q_scale: Any
    k_scale: Any
    v_scale: Any

    @property
    def lengths(self) -> Lengths:
        """The arrays of lengths."""
        return Lengths(*self[4:8])

    @property
    def scales(self) -> tuple[Any, Any, Any]:
        """The factors of q, k and v."""
        return self.q_scale, self.k_scale, self.v_scale


class Options(NamedTuple):
    """The options of a call that are no arrays, as `attention` has them. With `clears`, rows of no
    sequence become zeros, as what is recorded for gradients needs.
    """

    scale: Any
    causal: Any
    window: Any
    softcap: Any
    max_seqlen_q: Any
    max_seqlen_k: Any
    layout: Any
    return_lse: Any
    config: Any
    clears: Any


class NewArray(NamedTuple):
    """An array that each call makes: its extents and type, and the kernels' view of it. It may be
    `alike` to a row-major array of the call in all of these, which is made sooner.
    """

    shape: tuple[int, ...]
    dtype: Any
    view: HeadsView
    alike: bool = False

    def make(self, lib: ArrayLibrary, like: Any) -> Any:
        """A new array on the device of `like`."""
        return lib.empty_like(like) if self.alike else lib.empty(self.shape, self.dtype, like)

    def viewed(self, lib: ArrayLibrary, like: Any) -> Any:
        """A new array as kernels see it."""
        return lib.view(self.make(lib, like), *self.view)


class Parts(NamedTuple):
    """The results of splits and the logarithms of their sums, Float32, which share an array that
    each call makes: how kernels see both.
    """

    results: HeadsView
    logs: HeadsView
    dtype: Any

    @property
    def logs_at(self) -> int:
        """The byte at which the logarithms begin."""
        return 4 * math.prod(self.results.shape)

    def make(self, lib: ArrayLibrary, like: Any) -> Any:
        """A new array for both on the device of `like`."""
        count = math.prod(self.results.shape) + math.prod(self.logs.shape)
        return lib.empty((count,), self.dtype, like)

    def views(self, lib: ArrayLibrary, like: Any) -> tuple[Any, Any]:
        """Both as kernels see them, in a new array."""
        made = self.make(lib, like)
        logs = made[math.prod(self.results.shape) :]
        return lib.view(made, *self.results), lib.view(logs, *self.logs)


@dataclass
class AttentionPlan(Repeatable):
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
    parts: Parts | None
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
        given: tuple[Any, ...],
        captured: tuple[Any, ...] = (),
    ) -> Any:
        """Compute attention of the arrays `given` (see `GivenArrays`) of that kind, with those that
        functions of the user's captured: the result, or it and the logarithms of sums.
        """
        q, k, v, out = given[:4]
        if out is not None:
            self._check_apart([lib.address(x) for x in (out, q, k, v)])
        is_padded = self.head_v < self.out.shape[-1]
        result = self.out.make(lib, q) if out is None or is_padded else out
        lse = None if self.lse is None else self.lse.make(lib, q)
        if self.launches:
            self._launch_all(launch, lib, GivenArrays(*given), captured, result, lse)
        elif self.static[-1]:  # rows of no sequence are to be zeros
            result[...] = 0
            if lse is not None:
                lse[...] = -math.inf
        if is_padded:
            found = result[..., : self.head_v]
            if out is None:
                result = lib.compact(found)
            else:
                out[...] = found
                result = out
        return result if self.lse is None else (result, lse)

    def run_again(
        self,
        launch: Callable[..., Any],
        lib: ArrayLibrary,
        given: tuple[Any, ...],
        addresses: list[int],
    ) -> Any:
        """`run` of a plan that is kept: none of its arrays was copied. They are known to be as in
        that call but for the `addresses` of those that are there.
        """
        repeat = self.repeat
        if repeat is None:
            return self.run(launch, lib, given)
        q, result = given[0], given[3]
        at = addresses[:3]
        if result is None:
            result = self.out.make(lib, q)
            at.append(lib.address(result))
        else:
            own = addresses.pop(3)
            self._check_apart([own, *at])
            at.append(own)
        lse = None
        if self.lse is not None:
            lse = self.lse.make(lib, q)
            at.append(lib.address(lse))
        if self.parts is not None:
            parts = self.parts.make(lib, q)
            begin = lib.address(parts)
            at += (begin, begin + self.parts.logs_at)
        if self.turned is not None:
            turned = self.turned.make(lib, q)
            at.append(lib.address(turned))
        repeat((*at, *addresses[3:], lib.stream(q)))
        return result if lse is None else (result, lse)

    def _launch_all(
        self,
        launch: Callable[..., Any],
        lib: ArrayLibrary,
        given: GivenArrays,
        captured: tuple[Any, ...],
        result: Any,
        lse: Any,
    ) -> None:
        q, k, v = given[:3]
        arrays = [lib.view(x, *view) for x, view in zip((q, k, v), self.views, strict=True)]
        arrays.append(lib.view(result, *self.out.view))
        arrays.append(None if self.lse is None else lib.view(lse, *self.lse.view))
        arrays += (None, None) if self.parts is None else self.parts.views(lib, q)
        arrays.append(None if self.turned is None else self.turned.viewed(lib, q))
        bias = None if self.bias is None else lib.view(given.bias, *self.bias)
        scales = tuple(
            [
                None if view is None else lib.view(x, *view)
                for x, view in zip(given.scales, self.scales, strict=True)
            ]
        )
        # Tuples without tuples in them: others are taken apart by Python in each call.
        extras = (given.alibi, given.sinks, bias)
        every = (
            *arrays, tuple(given.lengths), extras, captured, scales,
            *self.rest, *self.static, lib.stream(q),
        )  # fmt: skip
        self.launch(launch, every, may_repeat=not captured)

    def _check_apart(self, starts: list[int]) -> None:
        """Raise DSLTypeError if the array at the first address, `out`, shares memory with those at
        the others, as far as the stretches from their first to their last elements tell.
        """
        own = self.reaches[0]
        low, high = starts[0] + own.start, starts[0] + own.stop
        for name, start, reach in zip("qkv", starts[1:], self.reaches[1:], strict=True):
            if max(low, start + reach.start) < min(high, start + reach.stop):
                raise DSLTypeError(
                    f"attention: out shares memory with {name}", hint="pass another array, or none"
                )


plans: PlanCache[AttentionPlan] = PlanCache()


def by_plan(
    kept: PlanCache[Any],
    make: Callable[..., tuple[Any, tuple[Any, ...], tuple[Any, ...]]],
    launch: Callable[..., Any],
    lib: ArrayLibrary,
    given: tuple[Any, ...],
    options: tuple[Any, ...],
    score: Any,
    mask: Any,
) -> Any:
    """Run the plan of an earlier call like this one, of those `kept`, or one that `make(lib, given,
    options, score, mask)` returns, with the first of the arrays `given`, which may be copies, and
    those that functions of the user's captured. It is kept where nothing is copied or captured.
    """
    described = lib.described(given) if score is None and mask is None else None
    key = None
    if described is not None:
        keys, addresses = described
        key = keys, options, kinds_of(options), asked_options()
        try:
            plan = kept.get(key)
        except TypeError:  # an option cannot be hashed
            key = plan = None
        if plan is not None:
            return plan.run_again(launch, lib, given, addresses)
    plan, operands, captured = make(lib, given, options, score, mask)
    if key is not None and are_fixed(options):
        if all(x is y for x, y in zip(operands, given[: len(operands)], strict=True)):
            kept.keep(key, plan)
    return plan.run(launch, lib, (*operands, *given[len(operands) :]), captured)


def kinds_of(options: tuple[Any, ...]) -> tuple[Any, ...]:
    """The types of options, since 1, 1.0 and True are equal."""
    return tuple([kinds_of(x) if type(x) is tuple else type(x) for x in options])


def are_fixed(options: tuple[Any, ...]) -> bool:
    """True if options may be part of a key: none of them may change, and values tell them apart."""
    return all(
        are_fixed(x)
        if type(x) is tuple
        else type(x) in _KEPT or hasattr(type(x), "__dataclass_params__")
        for x in options
    )


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
    config, q = static[3], given.q
    packed = given.lengths.starts_q is not None
    head_v, width = operands["v"].head, extents.head_v
    dtype = lib.dtype(cute.BFloat16) if operands["q"].dtype.width == 8 else q.dtype
    shape = (*q.shape[:-1], width)
    strides = tuple(math.prod(shape[i + 1 :]) for i in range(len(shape)))
    like = (q.shape, operands["q"].record.strides, q.dtype)
    alike = (shape, strides, dtype) == like
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
    lse = parts = turned = None
    if options.return_lse:
        lse = NewArray(
            (heads, rows) if packed else (batches, heads, rows),
            f32,
            HeadsView((rows, heads, batches), (1, rows, heads * rows)),
        )
    if getattr(config, "splits", 1) > 1:
        many = config.splits * batches
        steps = (heads * width, 1, width, rows * heads * width)
        parts = Parts(
            HeadsView((rows, width, heads, many), steps),
            HeadsView((rows, heads, many), (1, rows, heads * rows)),
            f32,
        )
    if getattr(config, "shares_last", False):
        of_parts = part_views(config.tile[0], width, rest[-1])
        parts = Parts(HeadsView(*of_parts[0]), HeadsView(*of_parts[1]), f32)
    if operands["q"].dtype.width == 8:
        turned = _turned(given.v.dtype, extents, config)
    return AttentionPlan(
        (operands["q"].view, operands["k"].view, operands["v"].view),
        bias,
        scales,
        NewArray(shape, dtype, view, alike),
        lse,
        parts,
        turned,
        rest,
        static,
        head_v,
        tuple(reaches),
        launches,
    )


def _turned(dtype: Any, extents: Extents, config: Any) -> NewArray:
    """The turned values: (head, keys, heads, batches) with contiguous keys, in whole 16, or blocks
    of whole tiles (see `ops.flash.turn`).
    """
    head, heads = extents.head_v, extents.key_heads
    if config.in_blocks:
        keys = config.tile[1]
        blocks, size = -(-extents.keys // keys) * keys // BLOCK, BLOCK * head
        whole = heads * blocks * size
        view = HeadsView((size, blocks, heads, extents.batches), (1, size, blocks * size, whole))
        return NewArray((extents.batches, heads, blocks, size), dtype, view)
    keys = -(-extents.keys // 16) * 16
    view = HeadsView(
        (head, keys, heads, extents.batches), (keys, 1, head * keys, heads * head * keys)
    )
    return NewArray((extents.batches, heads, head, keys), dtype, view)
