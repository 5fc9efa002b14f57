"""Arithmetic on pairs of Float32: one instruction on Blackwell (PTX ISA 9.7.3, ".f32x2"), two
here.

A pair is a tuple of two numbers, converted to Float32; DSLTypeError for anything else. Each result
is rounded: these products and sums are math.fma with a neutral operand, which nothing contracts.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from basedsl import DSLTypeError, Float32
from basedsl_cute.algebra.ignored_location import takes_location
from basedsl_cute.tensors import math

Pair = tuple[Any, Any]


@takes_location
def add_packed_f32x2(src_a: Pair, src_b: Pair) -> Pair:
    """Return the sums of two pairs of Float32: `src_a` and `src_b` are tuples of two numbers, and
    so is the result.
    """
    return _pairwise("add_packed_f32x2()", lambda a, b: math.fma(a, 1.0, b), src_a, src_b)


@takes_location
def sub_packed_f32x2(src_a: Pair, src_b: Pair) -> Pair:
    """Return the differences `src_a - src_b` of two pairs of Float32, tuples of two numbers."""
    return _pairwise("sub_packed_f32x2()", lambda a, b: math.fma(b, -1.0, a), src_a, src_b)


@takes_location
def mul_packed_f32x2(src_a: Pair, src_b: Pair) -> Pair:
    """Return the products of two pairs of Float32: `src_a` and `src_b` are tuples of two numbers,
    and so is the result.
    """
    return _pairwise("mul_packed_f32x2()", lambda a, b: math.fma(a, b, -0.0), src_a, src_b)


@takes_location
def fma_packed_f32x2(src_a: Pair, src_b: Pair, src_c: Pair) -> Pair:
    """Return `src_a * src_b + src_c` of pairs of Float32, each rounded once."""
    return _pairwise("fma_packed_f32x2()", math.fma, src_a, src_b, src_c)


def _pairwise(what: str, f: Callable[..., Any], *pairs: Any) -> Pair:
    for pair in pairs:
        if not isinstance(pair, tuple | list) or len(pair) != 2:
            raise DSLTypeError(f"{what} takes pairs (x0, x1) of Float32, not {pair!r}")
    low, high = zip(*pairs, strict=True)
    return f(*map(Float32, low)), f(*map(Float32, high))
