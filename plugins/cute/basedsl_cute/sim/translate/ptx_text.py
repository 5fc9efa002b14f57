"""Inline PTX of one instruction, executed in NumPy: those that `arch.inline_ptx` is used for most.

Approximate instructions give the exact result rounded once, which is within their error (PTX ISA
9.7.3 says how large it may be). An instruction that is not in the table runs on GPUs only.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import numpy as np

from basedsl_cute.sim import numerics as num

Array = Any
_INSTRUCTION = re.compile(r"\s*([a-z][\w.:]*)\s+(.*?)\s*;\s*")


def _exactly(function: Callable[..., Array]) -> Callable[..., Array]:
    """Compute `function` in float64, rounded to the type of its arguments."""

    def apply(*args: Array) -> Array:
        with np.errstate(all="ignore"):
            return function(*(x.astype(np.float64) for x in args)).astype(args[0].dtype)

    return apply


def _in_halves(function: Callable[..., Array]) -> Callable[..., Array]:
    """Compute `function` of float16 that is passed as its bits, in int16."""
    inner = _exactly(function)
    return lambda *args: inner(*(x.view(np.float16) for x in args)).view(np.int16)


def _unsigned(function: Callable[..., Array]) -> Callable[..., Array]:
    return lambda *args: num.signed(function(*map(num.unsigned, args)))


def _shift(x: Array, by: Array, left: bool) -> Array:
    """Shift by unsigned amounts; those beyond the width give 0 (PTX ISA, shl, shr)."""
    bits, amount = num.unsigned(x), num.unsigned(by).astype(np.uint64)
    width = bits.dtype.itemsize * 8
    fitting = np.minimum(amount, width - 1).astype(bits.dtype)
    moved = bits << fitting if left else bits >> fitting
    return num.signed(np.where(amount < width, moved, np.zeros_like(moved)))


def _lop3(a: Array, b: Array, c: Array, table: int) -> Array:
    """Apply a truth table of three bits to every bit (PTX ISA, lop3)."""
    out = np.zeros_like(a | b | c)
    for row in range(8):
        if table >> row & 1:
            parts = (x if row >> bit & 1 else ~x for x, bit in ((a, 2), (b, 1), (c, 0)))
            first, second, third = parts
            out = out | (first & second & third)
    return out


_UNARY: dict[str, Callable[..., Array]] = {
    "tanh.approx": np.tanh,
    "ex2.approx": np.exp2,
    "ex2.approx.ftz": np.exp2,
    "lg2.approx": np.log2,
    "lg2.approx.ftz": np.log2,
    "rcp.approx": lambda x: 1.0 / x,
    "rcp.approx.ftz": lambda x: 1.0 / x,
    "rsqrt.approx": lambda x: 1.0 / np.sqrt(x),
    "rsqrt.approx.ftz": lambda x: 1.0 / np.sqrt(x),
    "sqrt.approx": np.sqrt,
    "sqrt.rn": np.sqrt,
    "sin.approx": np.sin,
    "cos.approx": np.cos,
    "abs": np.abs,
    "neg": np.negative,
}
TABLE: dict[str, Callable[..., Array]] = {
    **{f"{name}.f32": _exactly(f) for name, f in _UNARY.items()},
    **{f"{name}.f16": _in_halves(_UNARY[name]) for name in ("tanh.approx", "ex2.approx")},
    **{f"{op}{rn}.f32": f for rn in ("", ".rn") for op, f in (
        ("add", np.add), ("sub", np.subtract), ("mul", np.multiply))},
    "fma.rn.f32": num.fma_f32,
    "min.f32": num.minnum,
    "max.f32": num.maxnum,
    **{f"{op}.{kind}32": f for kind in "su" for op, f in (("add", np.add), ("sub", np.subtract))},
    **{f"mul.lo.{kind}32": np.multiply for kind in "su"},
    "mul.hi.u32": _unsigned(lambda a, b: (a.astype(np.uint64) * b >> 32).astype(np.uint32)),
    "mad.lo.s32": lambda a, b, c: a * b + c,
    "mad.lo.u32": lambda a, b, c: a * b + c,
    "min.s32": np.minimum,
    "max.s32": np.maximum,
    "min.u32": _unsigned(np.minimum),
    "max.u32": _unsigned(np.maximum),
    "and.b32": np.bitwise_and,
    "or.b32": np.bitwise_or,
    "xor.b32": np.bitwise_xor,
    "not.b32": np.invert,
    "shl.b32": lambda x, by: _shift(x, by, left=True),
    "shr.u32": lambda x, by: _shift(x, by, left=False),
    "popc.b32": num.popcount,
    "clz.b32": num.leading_zeros,
    "brev.b32": num.reverse_bits,
    "prmt.b32": num.permute_bytes,
    "lop3.b32": _lop3,
    **{f"mov.{kind}": lambda x: x for kind in ("b32", "u32", "s32", "f32", "b64", "u64", "b16")},
}  # fmt: skip


def execute_instruction(name: str, *arguments: Array) -> Array:
    """The result of the instruction `name`, a key of `TABLE`, `(lanes,)`."""
    return TABLE[name](*arguments)


def parse_instruction(text: str, operands: int) -> tuple[str, list[int | str]] | None:
    """The instruction in `text` and its sources: numbers of operands, or integers as written.

    None for more than one instruction, for one that is not in the table, and for one whose first
    operand is not `$0`, the result.
    """
    match = _INSTRUCTION.fullmatch(text)
    if match is None or match[1] not in TABLE:
        return None
    target, *sources = (part.strip() for part in match[2].split(","))
    if target != "$0":
        return None
    found: list[int | str] = []
    for source in sources:
        if re.fullmatch(r"\$\d+", source) and 1 <= int(source[1:]) <= operands:
            found.append(int(source[1:]) - 1)
        elif re.fullmatch(r"-?(0x[0-9a-fA-F]+|\d+)", source):
            found.append(source)
        else:
            return None
    return match[1], found
