"""Sampling of tokens from logits: temperature, top-k, top-p and min-p, and the draw, in one kernel.

A row of logits stays in registers. Top-k and top-p are thresholds on the logits, found by searches
(`order.threshold`); min-p is one on the probabilities. Of the elements that are kept, the draw
takes the largest of

    logit / temperature - log(E)        E exponentially distributed, made by Philox for each element

which is a draw with the softmax's probabilities ("Gumbel-max"). An element's random number depends
on the seed, the offset, the row and the element alone, not on threads.
"""

from __future__ import annotations

import numbers as numbers_abc
from dataclasses import dataclass
from typing import Any

import basedsl_cute as cute
from basedsl import ArrayRecord, DSLCallError, DSLTypeError, from_dlpack
from basedsl_cute import arch
from basedsl_cute.algebra.explained_calls import explains_arguments
from basedsl_cute.ops.array_libraries import ArrayLibrary, library
from basedsl_cute.ops.jax_arrays import is_jax
from basedsl_cute.ops.layer.order import key_of, keys_of, sum_where, threshold
from basedsl_cute.ops.layer.philox import WORDS, exponential, philox
from basedsl_cute.ops.layer.rows import (
    RowPlan,
    element_type,
    exchange,
    extents_of,
    lane_of_row,
    load_row,
    row_plan,
    row_slots,
    row_totals,
    this_row,
)
from basedsl_cute.ops.layer.softmax import exponentials
from basedsl_cute.ops.plan_cache import PlanCache, asked_options, launch_plan

_INFINITY = float("inf")
_NOWHERE = 2.0**30  # an index beyond all rows
_LEAST = 2.0**-126  # the smallest probability, by the largest one, that is drawn


@explains_arguments
def sample(
    logits: Any,
    *,
    seed: int,
    offset: int = 0,
    temperature: Any = 1.0,
    top_k: Any = 0,
    top_p: Any = 1.0,
    min_p: Any = 0.0,
) -> Any:
    """Draw an element of each row with the probabilities softmax(logits / temperature), of those
    that are kept.

    `logits` is an array (..., N) of PyTorch, CuPy, JAX or NumPy, of Float16, BFloat16 or Float32.
    First `top_k` keeps the k largest, and those equal to the last of them; 0 keeps all. Of these
    `top_p` keeps the most probable whose probabilities sum up to it, and those equal to the last.
    Then `min_p` keeps those of at least this fraction of the largest probability. The largest is
    always kept; `temperature=0` takes it, the first of equal ones. These four are numbers, or
    arrays with one for each row, of Float32 (`top_k`: Int32), whose values are not checked on a
    GPU.

    A draw depends on `seed`, `offset`, the row's number and its logits alone: calls that are to be
    independent have different offsets, such as the number of the token. With JAX these two may be
    arrays of one integer, so that a function under `jax.jit` is compiled once for all tokens.

    Returns the indices, an array (...) of Int64 (JAX: its default integers): -1 for a row with a
    NaN or +inf, or of -inf alone, or whose options, in arrays, keep nothing.
    Raises DSLTypeError for other types and extents, DSLCallError for numbers out of range.

    >>> import numpy as np
    >>> from basedsl_cute.ops import sample
    >>> logits = np.log(np.array([[1, 2, 97], [98, 1, 1]], np.float32))
    >>> sample(logits, seed=0, top_k=1)
    array([2, 0])
    """
    options = (temperature, top_k, top_p, min_p)
    if is_jax(logits):
        from basedsl_cute.ops.layer.jax_sampling import jax_sample  # it imports JAX

        return jax_sample(logits, seed, offset, options)
    lib = library(logits, "sample")
    arrays = [x if _has_modes(x) else None for x in options]
    numbers = [0 if _has_modes(x) else x for x in options]
    check_numbers(numbers, seed, offset)
    if lib.records(logits):
        from basedsl_cute.ops.layer.torch_sampling import torch_sample  # it imports PyTorch

        return torch_sample(logits, seed, offset, arrays, numbers)
    return draw(lib, logits, seed, offset, arrays, numbers)


def draw(
    lib: ArrayLibrary,
    logits: Any,
    seed: int,
    offset: int,
    arrays: Any,
    numbers: Any,
    found: Any = None,
    words: Any = None,
) -> Any:
    """Do what `sample` does; `arrays` and `numbers` are its options, in the signature's order: an
    array, or None and a number.

    The indices are written to `found`, an array (...) of any integers, or to a new one. `words`, a
    Uint32 array of the low and the high word of the seed and of the offset, takes the place of the
    two numbers.
    """
    wants = Wants(
        *(x is not None or n != off for x, n, off in zip(arrays, numbers, _OFF, strict=True))
    )
    keys = [None if x is None else lib.key(x) for x in (logits, found, *arrays, words)]
    key = (asked_options(), wants, *keys)
    plan = _plans.get(key)
    if plan is None:
        plan = _plans.keep(key, _plan(lib, logits, arrays, wants))
    if not plan.is_direct:
        logits, *arrays = (None if x is None else lib.compact(x) for x in (logits, *arrays))
    if found is None:
        found = lib.empty(tuple(logits.shape[:-1]), lib.dtype(cute.Int64), logits)
    if plan.rows:
        given = (
            logits, found, *arrays, words, *map(float, numbers), _signed(seed), _signed(offset),
            plan.rows,
        )  # fmt: skip
        launch_plan(plan, _launch, given, (plan.wants, plan.row), lib.stream(logits))
    return found


def _has_modes(x: Any) -> bool:
    # `torch.compile` asks no attributes of numbers that may change.
    return not isinstance(x, int | float) and bool(getattr(x, "shape", ()))


NAMES = ("temperature", "top_k", "top_p", "min_p")
_OFF = (1.0, 0, 1.0, 0.0)  # which change nothing


@dataclass(frozen=True)
class Wants:
    """The static choice of what a kernel does, by the names of the options."""

    temperature: bool
    top_k: bool
    top_p: bool
    min_p: bool


@dataclass
class _Plan:
    """The way to sample from arrays of one kind."""

    row: RowPlan
    rows: int
    is_direct: bool  # arrays are taken as they are, not copied first
    wants: Wants
    compiled: Any = None


_plans: PlanCache[_Plan] = PlanCache()


def _signed(number: int) -> int:
    """The Int64 of the same bits as a number of 64 bits."""
    return number - 2**64 if number >= 2**63 else number


def check_numbers(numbers: Any, seed: int, offset: int) -> None:
    """Raise DSLCallError for numbers that are out of range."""
    temperature, top_k, top_p, min_p = numbers
    for name, number in (("seed", seed), ("offset", offset), ("top_k", top_k)):
        if not isinstance(number, numbers_abc.Integral):
            raise DSLCallError(f"sample: {name} is {number!r}", hint="an integer")
    if not (0 <= seed < 2**64 and 0 <= offset < 2**64):
        raise DSLCallError(f"sample: seed {seed} and offset {offset}", hint="from 0 to 2^64 - 1")
    for name, number in (("temperature", temperature), ("top_p", top_p), ("min_p", min_p)):
        if not isinstance(number, numbers_abc.Real) and getattr(number, "shape", None) != ():
            raise DSLCallError(
                f"sample: {name} is {number!r}", hint="a number, or an array with one for each row"
            )
    if not 0 <= temperature < _INFINITY:
        raise DSLCallError(f"sample: temperature is {temperature}", hint="0 or more")
    if top_k < 0:
        raise DSLCallError(f"sample: top_k is {top_k}", hint="0, for all elements, or more")
    for name, number in (("top_p", top_p), ("min_p", min_p)):
        if not 0 <= number <= 1:
            raise DSLCallError(f"sample: {name} is {number}", hint="from 0 to 1")


def _plan(lib: ArrayLibrary, logits: Any, arrays: Any, wants: Wants) -> _Plan:
    """The plan of a call; DSLTypeError for arrays that do not fit together."""
    rows, columns = extents_of("sample", "logits", logits)
    dtype = element_type("sample", "logits", logits)
    for name, x in zip(NAMES, arrays, strict=True):
        if x is None:
            continue
        if library(x, "sample") is not lib:
            raise DSLTypeError(f"sample: {name} and logits are arrays of different libraries")
        kind = from_dlpack(*ArrayRecord.of(x, name).dtype)
        wanted = cute.Int32 if name == "top_k" else cute.Float32
        if tuple(x.shape) != tuple(logits.shape[:-1]) or kind is not wanted:
            raise DSLTypeError(
                f"sample: {name} is {kind.__name__} of {tuple(x.shape)}",
                hint=f"a number, or {wanted.__name__} of {tuple(logits.shape[:-1])}",
            )
    row = row_plan(lib, "sample", columns, dtype, (logits,))
    is_direct = all(x is None or lib.compact(x) is x for x in (logits, *arrays))
    return _Plan(row, rows, is_direct, wants)


# Kernels -----------------------------------------------------------------------------------------


@cute.jit
def _draw(
    values: Any,
    kept: Any,
    counter: Any,
    seed: Any,
    scale: Any,
    is_greedy: Any,
    plan: cute.Constexpr,
):
    """Return the best of this thread's elements that `kept` has, by value and by index, Float32.

    `values` are its logits less the row's largest; `counter` is the row and the two words of the
    offset.
    """
    best, place = -cute.Float32.inf, cute.Float32(_NOWHERE)
    lane = lane_of_row(plan)
    for c in cute.range_constexpr(plan.chunks):
        of_vector = kept[None, c]
        any_kept = of_vector[0]
        for i in cute.range_constexpr(1, plan.vector):
            any_kept = any_kept or of_vector[i]
        if any_kept:
            first = (c * plan.sharing + lane) * plan.vector
            words = _words(first, counter, seed, plan)
            for i in cute.range_constexpr(plan.vector):
                score = values[i, c] * scale
                if not is_greedy:
                    score = score - cute.math.log(exponential(words[i]))
                if of_vector[i] and (score > best or place == _NOWHERE):
                    best, place = score, cute.Float32(first + i)
    return best, place


@cute.jit
def _words(first: Any, counter: Any, seed: Any, plan: cute.Constexpr):
    """Return the random words of the elements of a vector, of which `first` is the first."""
    found: list[Any] = []
    for begin in cute.range_constexpr(0, plan.vector, WORDS):
        four = philox(((first + begin) // WORDS, *counter), seed)
        if cute.const_expr(plan.vector >= WORDS):
            found += four
        else:
            for i in cute.range_constexpr(plan.vector):
                at = (first + i) % WORDS
                word = four[0]
                for n in cute.range_constexpr(1, WORDS):
                    word = cute.where(at == n, four[n], word)
                found.append(word)
    return tuple(found)


@cute.kernel
def sample_kernel(
    logits: cute.Tensor,
    found: cute.Tensor,
    options: tuple,  # an array or None for each of the `numbers`
    numbers: tuple,
    seed: tuple,
    offset: tuple,
    words,  # of the seed and of the offset, a tensor or None: in their place
    rows: cute.Int32,
    wants: cute.Constexpr,
    plan: cute.Constexpr,
):
    """Write the index of the element that is drawn from each row to `found`."""
    row = this_row(plan)
    inside = row < rows
    row = cute.min(row, rows - 1)  # of a last block: it must take part in the exchanges
    settings = []
    for n in cute.range_constexpr(4):
        number = numbers[n]
        if cute.const_expr(options[n] is not None):
            number = options[n][row].to(cute.Float32)
        settings.append(number)
    if cute.const_expr(words is not None):
        seed, offset = (words[0], words[1]), (words[2], words[3])
    temperature, top_k, top_p, min_p = settings
    values = load_row(logits, row, plan, -_INFINITY)
    slots = row_slots(3, plan)

    scale, is_greedy = cute.Float32(1.0), cute.Boolean(False)
    if cute.const_expr(wants.temperature):
        is_greedy = temperature == 0.0
        scale = 1.0 / cute.where(is_greedy, 1.0, temperature)
    parts, own, largest, total = exponentials(values, slots, plan, 0, scale)
    parts = parts * cute.math.exp((own - largest) * scale)
    is_known = total > 0.0 and temperature >= 0.0  # not of NaN either
    largest = cute.where(is_known, largest, 0.0)

    turn = cute.Int32(1)
    least, high = cute.Uint32(1), key_of(largest, plan)
    least = cute.where(is_known and not is_greedy, least, high)
    if cute.const_expr(wants.top_k or wants.top_p):
        keys = keys_of(values, plan)
        if cute.const_expr(wants.top_k):
            end = cute.where(top_k >= 1.0, high, least)
            least, turn = threshold(keys, 1.0, least, end, top_k, slots, plan, turn)
            if cute.const_expr(wants.top_p):
                (total,) = row_totals((sum_where(keys >= least, parts),), slots, plan, turn)
                turn += 1
        if cute.const_expr(wants.top_p):
            end = cute.where(top_p < 1.0, high, least)
            least, turn = threshold(keys, parts, least, end, top_p * total, slots, plan, turn)
    floor = cute.where(is_greedy, 1.0, cute.Float32(_LEAST))
    if cute.const_expr(wants.min_p):
        floor = arch.fmax(floor, min_p)
    kept = parts >= floor
    if cute.const_expr(wants.top_k or wants.top_p):
        kept = kept & (keys >= least)

    best, place = _draw(values - largest, kept, (row, *offset), seed, scale, is_greedy, plan)
    top = arch.warp_reduction_max(best)
    place = _first_of(cute.where(best == top, place, _NOWHERE))
    if cute.const_expr(plan.warps > 1):
        tops, places = exchange((top, place), slots, plan, turn, (-_INFINITY, _NOWHERE))
        top = tops[0]
        for each in tops[1:]:
            top = arch.fmax(top, each)
        top = arch.warp_reduction_max(top)
        place = cute.Float32(_NOWHERE)
        for its, at in zip(tops, places, strict=True):
            place = arch.fmin(place, cute.where(its == top, at, _NOWHERE))
        place = _first_of(place)
    if inside and lane_of_row(plan) == 0:
        integers = found.element_type
        is_known = is_known and place < plan.columns  # not where nothing is kept
        found[row] = cute.where(is_known, place.to(integers), integers(-1))


def _first_of(place: Any) -> Any:
    """The smallest index of a warp's."""
    return arch.warp_reduction(place, arch.fmin)


@cute.jit
def _launch(
    logits: cute.Tensor,
    found: cute.Tensor,
    temperatures: cute.Tensor | None,
    top_ks: cute.Tensor | None,
    top_ps: cute.Tensor | None,
    min_ps: cute.Tensor | None,
    words: cute.Tensor | None,
    temperature: cute.Float32,
    top_k: cute.Float32,
    top_p: cute.Float32,
    min_p: cute.Float32,
    seed: cute.Int64,
    offset: cute.Int64,
    rows: cute.Int32,
    wants: cute.Constexpr,
    plan: cute.Constexpr,
    stream: cute.Int64,
):
    options = tuple(
        x if x is None else _flat(x, rows) for x in (temperatures, top_ks, top_ps, min_ps)
    )
    sample_kernel(
        logits,
        _flat(found, rows),
        options,
        (temperature, top_k, top_p, min_p),
        _words_of(seed),
        _words_of(offset),
        words,
        rows,
        wants,
        plan,
    ).launch(
        grid=plan.grid(rows),
        block=plan.block,
        cluster=plan.cluster_shape,
        stream=cute.Stream(stream.ir_value()),
    )


def _flat(x: Any, rows: Any) -> Any:
    """The elements of a compact array, one for each row."""
    return cute.make_tensor(x.iterator, cute.make_layout((rows,)))


def _words_of(number: Any) -> tuple[Any, Any]:
    """The low and the high word of a number of 64 bits."""
    return number.to(cute.Uint32), (number >> 32).to(cute.Uint32)
