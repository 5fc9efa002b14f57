"""Arithmetic on pairs of Float32: one instruction from sm_100 on (PTX ISA 9.7.3, ".f32x2"), two
before.

A pair is a tuple of two numbers, converted to Float32; DSLTypeError for anything else. Each result
is rounded: nothing contracts these products and sums. `rnd` says how: "rn" to the nearest number,
which is the default, "rz" toward zero, "rm" down or "rp" up, also as a member of
`nvvm.FPRoundingMode`. With `ftz` numbers below the normal ones count as zeros of their sign. Pairs
that are rounded in a direction, or with `ftz`, take two instructions on all targets.
"""

from __future__ import annotations

from typing import Any

from basedsl import DSLTypeError, Float32
from basedsl_cute.algebra.ignored_location import takes_location
from basedsl_cute.arch.arithmetic import exp
from basedsl_cute.arch.emit import emit_op
from basedsl_cute.arch.inline import inline_ptx

Pair = tuple[Any, Any]
_PAIR = "vector<2xf32>"


@takes_location
def add_packed_f32x2(src_a: Pair, src_b: Pair, *, rnd: Any = None, ftz: bool = False) -> Pair:
    """Return the sums of two pairs of Float32: `src_a` and `src_b` are tuples of two numbers, and
    so is the result. For `rnd` and `ftz` see the module `cute.arch.packed`.
    """
    return _pairwise("add_packed_f32x2()", "arith.addf", src_a, src_b, rnd=rnd, ftz=ftz)


@takes_location
def sub_packed_f32x2(src_a: Pair, src_b: Pair, *, rnd: Any = None, ftz: bool = False) -> Pair:
    """Return the differences of two pairs of Float32: `src_a` and `src_b` are tuples of two
    numbers, and so is the result. For `rnd` and `ftz` see the module `cute.arch.packed`.
    """
    return _pairwise("sub_packed_f32x2()", "arith.subf", src_a, src_b, rnd=rnd, ftz=ftz)


@takes_location
def mul_packed_f32x2(src_a: Pair, src_b: Pair, *, rnd: Any = None, ftz: bool = False) -> Pair:
    """Return the products of two pairs of Float32: `src_a` and `src_b` are tuples of two numbers,
    and so is the result. For `rnd` and `ftz` see the module `cute.arch.packed`.
    """
    return _pairwise("mul_packed_f32x2()", "arith.mulf", src_a, src_b, rnd=rnd, ftz=ftz)


@takes_location
def fma_packed_f32x2(
    src_a: Pair, src_b: Pair, src_c: Pair, *, rnd: Any = None, ftz: bool = False
) -> Pair:
    """Return `src_a * src_b + src_c` of pairs of Float32, each rounded once: all are tuples of two
    numbers, and so is the result. For `rnd` and `ftz` see the module `cute.arch.packed`.
    """
    return _pairwise("fma_packed_f32x2()", "math.fma", src_a, src_b, src_c, rnd=rnd, ftz=ftz)


@takes_location
def exp_packed_f32x2(src: Pair) -> Pair:
    """Return e to the power of each of a pair of Float32, as `cute.arch.exp` computes it: `src` is
    a tuple of two numbers, and so is the result.
    """
    if not isinstance(src, tuple | list) or len(src) != 2:
        raise DSLTypeError(f"exp_packed_f32x2() takes a pair (x0, x1) of Float32, not {src!r}")
    low, high = (exp(Float32(x)) for x in src)
    return low, high


def _rounding(what: str, rnd: Any) -> str:
    mode = "rn" if rnd is None else str(rnd).rpartition(".")[2].lower()
    if mode not in ("rn", "rz", "rm", "rp"):
        raise DSLTypeError(
            f'{what} rounds by "rn" to nearest, "rz" to zero, "rm" down, "rp" up, not {rnd}'
        )
    return mode


def _pairwise(what: str, op: str, *pairs: Any, rnd: Any, ftz: bool) -> Pair:
    for pair in pairs:
        if not isinstance(pair, tuple | list) or len(pair) != 2:
            raise DSLTypeError(f"{what} takes pairs (x0, x1) of Float32, not {pair!r}")
    mode = _rounding(what, rnd)
    if mode != "rn" or ftz:
        names = ", ".join(f"${i}" for i in range(len(pairs) + 1))
        flush = ".ftz" if ftz else ""
        text = f"{what.partition('_')[0]}.{mode}{flush}.f32 {names};"
        low, high = (
            inline_ptx(text, [Float32(pair[i]) for pair in pairs], Float32, has_side_effects=False)
            for i in (0, 1)
        )
        return low, high
    operands = []
    for pair in pairs:
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
