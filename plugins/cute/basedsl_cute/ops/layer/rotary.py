"""Rotary position embedding: pairs of elements of a head, turned by an angle of their position.

    y[first] = x[first] * cos - x[second] * sin      y[second] = x[second] * cos + x[first] * sin

The pairs of a head are its halves (first = i, second = i + pairs), or neighbours (2 i, 2 i + 1).
Angles come as tables of cosines and sines, (positions, pairs). A gradient is turned back.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import basedsl_cute as cute
from basedsl import ArrayRecord, DSLTypeError
from basedsl_cute import arch
from basedsl_cute.algebra.explained_calls import explains_arguments
from basedsl_cute.ops.array_libraries import ArrayLibrary, known_libraries, library
from basedsl_cute.ops.flags import flag
from basedsl_cute.ops.jax_arrays import is_jax
from basedsl_cute.ops.layer.rows import element_type
from basedsl_cute.ops.plan_cache import PlanCache, asked_options

_THREADS = 256


@explains_arguments
def rotary(x: Any, cos: Any, sin: Any, *, interleaved: bool = False, inverse: bool = False) -> Any:
    """Turn the pairs of elements of each head by the angles of its position.

    `x` is an array (batch, positions, heads, head) or (positions, heads, head) of PyTorch, CuPy,
    JAX or NumPy, of Float16, BFloat16 or Float32; `cos` and `sin` are (positions, pairs), of any of
    these types. Where there are fewer pairs than head / 2, the elements after them stay. With
    `interleaved`, neighbours are a pair, else the two halves of the elements that turn. `inverse`
    turns back.

    Returns an array like `x`; PyTorch and JAX compute its gradient by `x`. Raises DSLTypeError for
    other types and extents.

    >>> import numpy as np
    >>> from basedsl_cute.ops import rotary
    >>> x = np.array([[[1, 2, 3, 4]]], np.float32)  # a quarter turn of (1, 3) and of (2, 4)
    >>> rotary(x, np.zeros((1, 2), np.float32), np.ones((1, 2), np.float32))
    array([[[-3., -4.,  1.,  2.]]], dtype=float32)
    """
    interleaved = flag("rotary", "interleaved", interleaved)
    inverse = flag("rotary", "inverse", inverse)
    if is_jax(x):
        from basedsl_cute.ops.layer.jax_layer import jax_rotary  # it imports JAX

        return jax_rotary(x, cos, sin, interleaved, inverse)
    lib = library(x, "rotary")
    for name, table in (("cos", cos), ("sin", sin)):
        is_like = known_libraries.get(type(table)) is lib
        if not is_like and library(table, f"rotary ({name})") is not lib:
            raise DSLTypeError(f"rotary: {name} and x are arrays of different libraries")
        if getattr(table, "requires_grad", False):
            raise DSLTypeError(f"rotary: {name} requires a gradient", hint=f"{name}.detach()")
    if lib.records(x):
        from basedsl_cute.ops.layer.torch_rotary import torch_rotary  # it imports PyTorch

        return torch_rotary(x, cos, sin, interleaved, inverse)
    return rotary_into(None, x, cos, sin, interleaved, inverse)


def rotary_into(y: Any, x: Any, cos: Any, sin: Any, interleaved: bool, inverse: bool) -> Any:
    """Write what `rotary` computes to `y`, an array like `x`, or to a new one, and return it."""
    lib = library(x, "rotary")
    out = None if y is None else lib.key(y)
    key = (lib.key(x), lib.key(cos), lib.key(sin), out, interleaved, inverse, asked_options())
    found = _plans.get(key)
    if found is None:
        found = _plans.keep(key, _plan(lib, x, cos, sin, y, interleaved, inverse))
    if not found.is_direct:
        x, cos, sin = lib.compact(x), lib.compact(cos), lib.compact(sin)
    if y is None:
        y = lib.empty(x.shape, x.dtype, x)
    if found.items:
        if found.compiled is None:
            arguments = (x, cos, sin, y, found.items)
            found.compiled = cute.compile(_launch, *arguments, found.turn, lib.stream(x))
        found.compiled(x, cos, sin, y, found.items, lib.stream(x))
    return y


@dataclass(frozen=True)
class Turn:
    """The static shape of heads: `pairs` of `head` elements turn, `vector` pairs of a thread at a
    time; a position has `heads` heads.
    """

    head: int
    pairs: int
    heads: int
    positions: int
    vector: int
    interleaved: bool
    inverse: bool

    @property
    def items(self) -> int:
        """The vectors of pairs of a head, and of the elements that stay, two for two of a pair."""
        return self.head // 2 // self.vector


@dataclass
class _RotaryPlan:
    turn: Turn
    items: int
    is_direct: bool
    compiled: Any = None


_plans: PlanCache[_RotaryPlan] = PlanCache()


def _plan(
    lib: ArrayLibrary, x: Any, cos: Any, sin: Any, y: Any, interleaved: bool, inverse: bool
) -> _RotaryPlan:
    """The plan of a call; DSLTypeError for arguments that do not fit together."""
    shape = tuple(ArrayRecord.of(x, "x").shape)
    table = tuple(ArrayRecord.of(cos, "cos").shape)
    for name, array in (("x", x), ("cos", cos), ("sin", sin)):
        element_type("rotary", name, array)
    if len(shape) not in (3, 4):
        raise DSLTypeError(
            f"rotary: x is {shape}", hint="(batch, positions, heads, head) or without a batch"
        )
    *batch, positions, heads, head = shape
    if tuple(sin.shape) != table or len(table) != 2 or table[0] != positions:
        raise DSLTypeError(
            f"rotary: cos is {table} and sin {tuple(sin.shape)} for {positions} positions",
            hint="both are (positions, pairs)",
        )
    pairs = table[1]
    if not 0 < 2 * pairs <= head or head % 2:
        raise DSLTypeError(f"rotary: {pairs} pairs do not fit a head of {head} elements")
    given = (x, cos, sin)
    every = given if y is None else (*given, y)
    vector = 16 // max(array.dtype.itemsize for array in given)
    rest = head // 2 - pairs
    while (
        pairs % vector
        or rest % vector
        or any(lib.address(array) % (vector * array.dtype.itemsize) for array in every)
    ):
        vector //= 2
    turn = Turn(head, pairs, heads, positions, vector, interleaved, inverse)
    rows = positions * heads * (batch[0] if batch else 1)
    is_direct = all(lib.compact(array) is array for array in given)
    return _RotaryPlan(turn, rows * turn.items, is_direct)


def _vector_at(x: Any, place: Any, turn: Turn) -> Any:
    """The vector of `x`, a flat tensor, that begins at element `place`."""
    size = x.element_type.width // 8
    address = x.iterator.toint() + cute.Int64(place) * size
    pointer = cute.make_ptr(x.element_type, address, "gmem", assumed_align=turn.vector * size)
    return cute.make_tensor(pointer, cute.make_layout(turn.vector))


def _load_vector(x: Any, place: Any, turn: Turn) -> Any:
    fragment = cute.make_rmem_tensor((turn.vector,), x.element_type)
    cute.autovec_copy(_vector_at(x, place, turn), fragment)
    return fragment.load()


def _store_vector(values: Any, x: Any, place: Any, turn: Turn) -> None:
    fragment = cute.make_rmem_tensor((turn.vector,), x.element_type)
    fragment.store(values)
    cute.autovec_copy(fragment, _vector_at(x, place, turn))


@cute.kernel
def rotary_kernel(
    x: cute.Tensor,
    cos: cute.Tensor,
    sin: cute.Tensor,
    y: cute.Tensor,
    items: cute.Int64,
    turn: cute.Constexpr,
):
    """Turn the pairs of one vector, or copy two vectors of elements that stay."""
    item = cute.Int64(arch.block_idx()[0]) * _THREADS + arch.thread_idx()[0]
    if item < items:
        row, part = item // turn.items, (item % turn.items).to(cute.Int32) * turn.vector
        begin = row * turn.head
        if part >= turn.pairs:
            place = begin + turn.pairs + part
            for n in cute.range_constexpr(2):
                at = place + n * (turn.head // 2 - turn.pairs)
                _store_vector(_load_vector(x, at, turn), y, at, turn)
        else:
            angle = (row // turn.heads) % turn.positions * turn.pairs + part
            c = _load_vector(cos, angle, turn).to(cute.Float32)
            s = _load_vector(sin, angle, turn).to(cute.Float32)
            if cute.const_expr(turn.inverse):
                s = 0.0 - s
            place = begin + part
            second = place + turn.pairs
            if cute.const_expr(turn.interleaved):
                place += part
                second = place + turn.vector
            one, other = _load_vector(x, place, turn), _load_vector(x, second, turn)
            if cute.const_expr(turn.interleaved):
                one, other = _apart(one, other, turn)
            one, other = one.to(cute.Float32), other.to(cute.Float32)
            turned = (one * c - other * s).to(y.element_type)
            second_turned = (other * c + one * s).to(y.element_type)
            if cute.const_expr(turn.interleaved):
                turned, second_turned = _together(turned, second_turned, turn)
            _store_vector(turned, y, place, turn)
            _store_vector(second_turned, y, second, turn)


def _apart(one: Any, other: Any, turn: Turn) -> tuple[Any, Any]:
    """Two vectors of neighbours as the vectors of their first and of their second elements."""
    elements = [v[i] for v in (one, other) for i in range(turn.vector)]
    first, second = (cute.TensorSSA.from_elements(elements[n::2]) for n in range(2))
    return first, second


def _together(first: Any, second: Any, turn: Turn) -> tuple[Any, Any]:
    """The vectors of first and of second elements as two vectors of neighbours."""
    elements = [v[i] for i in range(turn.vector) for v in (first, second)]
    halves = elements[: turn.vector], elements[turn.vector :]
    one, other = (cute.TensorSSA.from_elements(half) for half in halves)
    return one, other


@cute.jit
def _launch(
    x: cute.Tensor,
    cos: cute.Tensor,
    sin: cute.Tensor,
    y: cute.Tensor,
    items: cute.Int64,
    turn: cute.Constexpr,
    stream: cute.Int64,
):
    rotary_kernel(x, cos, sin, y, items, turn).launch(
        grid=cute.ceil_div(items, _THREADS).to(cute.Int32),
        block=_THREADS,
        stream=cute.Stream(stream.ir_value()),
    )
