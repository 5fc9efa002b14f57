"""Arithmetic on pairs of Float32: one instruction from sm_100 on (PTX ISA 9.7.3, ".f32x2"), two
before.

A pair is a tuple of two numbers, converted to Float32; DSLTypeError for anything else. Each result
is rounded: nothing contracts these products and sums.
"""

from __future__ import annotations

from typing import Any

from basedsl import DSLTypeError, Float32
from basedsl_cute.algebra.ignored_location import takes_location
from basedsl_cute.arch.arithmetic import exp
from basedsl_cute.arch.emit import emit_op

Pair = tuple[Any, Any]
_PAIR = "vector<2xf32>"


@takes_location
def add_packed_f32x2(src_a: Pair, src_b: Pair) -> Pair:
    """Return the sums of two pairs of Float32: `src_a` and `src_b` are tuples of two numbers, and
    so is the result.
    """
    return _pairwise("add_packed_f32x2()", "arith.addf", src_a, src_b)


@takes_location
def sub_packed_f32x2(src_a: Pair, src_b: Pair) -> Pair:
    """Return the differences of two pairs of Float32: `src_a` and `src_b` are tuples of two
    numbers, and so is the result.
    """
    return _pairwise("sub_packed_f32x2()", "arith.subf", src_a, src_b)


@takes_location
def mul_packed_f32x2(src_a: Pair, src_b: Pair) -> Pair:
    """Return the products of two pairs of Float32: `src_a` and `src_b` are tuples of two numbers,
    and so is the result.
    """
    return _pairwise("mul_packed_f32x2()", "arith.mulf", src_a, src_b)


@takes_location
def fma_packed_f32x2(src_a: Pair, src_b: Pair, src_c: Pair) -> Pair:
    """Return `src_a * src_b + src_c` of pairs of Float32, each rounded once: all are tuples of two
    numbers, and so is the result.
    """
    return _pairwise("fma_packed_f32x2()", "math.fma", src_a, src_b, src_c)


@takes_location
def exp_packed_f32x2(src: Pair) -> Pair:
    """Return e to the power of each of a pair of Float32, as `cute.arch.exp` computes it: `src` is
    a tuple of two numbers, and so is the result.
    """
    if not isinstance(src, tuple | list) or len(src) != 2:
        raise DSLTypeError(f"exp_packed_f32x2() takes a pair (x0, x1) of Float32, not {src!r}")
    low, high = (exp(Float32(x)) for x in src)
    return low, high


def _pairwise(what: str, op: str, *pairs: Any) -> Pair:
    operands = []
    for pair in pairs:
        if not isinstance(pair, tuple | list) or len(pair) != 2:
            raise DSLTypeError(f"{what} takes pairs (x0, x1) of Float32, not {pair!r}")
        numbers = [Float32(x).ir_value() for x in pair]
        operands.append(emit_op(what, "vector.from_elements", numbers, [_PAIR]).result)
    made = emit_op(what, op, operands, [_PAIR]).result
    low, high = (
        emit_op(
            what, "vector.extract", [made], ["f32"], {"static_position": f"array<i64: {i}>"}
        ).result
        for i in (0, 1)
    )  # fmt: skip
    return Float32.from_value(low), Float32.from_value(high)
