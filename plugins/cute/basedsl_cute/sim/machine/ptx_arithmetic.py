"""Arithmetic of inline PTX in NumPy: what an instruction computes from its sources.

Approximate instructions give the exact result rounded once, which is within their error (PTX ISA
9.7.3 says how large it may be).
"""

from __future__ import annotations

import functools
import operator
from collections.abc import Callable
from typing import Any, NamedTuple

import ml_dtypes
import numpy as np

from basedsl_cute.sim import numerics as num
from basedsl_cute.sim.numerics import directed

Array = Any

#: NumPy types of PTX's fundamental types; of untyped bits the signed integers.
DTYPES: dict[str, Any] = {
    **{f"{letter}{bits}": np.dtype(f"int{bits}") for letter in "bs" for bits in (8, 16, 32, 64)},
    **{f"u{bits}": np.dtype(f"uint{bits}") for bits in (8, 16, 32, 64)},
    **{f"f{bits}": np.dtype(f"float{bits}") for bits in (16, 32, 64)},
    "pred": np.dtype(np.bool_),
}


class PtxArithmetic(NamedTuple):
    """The arithmetic of one instruction: the types of its result and sources, and the function."""

    result: str
    sources: tuple[str, ...]
    function: Callable[..., Array]


@functools.cache
def arithmetic_of(opcode: str) -> PtxArithmetic | None:
    """The arithmetic of an opcode such as `add.s32`; None for one that is not known here."""
    base, *modifiers = opcode.split(".")
    find = _FAMILIES.get(base)
    return None if find is None else find(base, modifiers)


# Families ----------------------------------------------------------------------------------------


def _unsigned(x: Array) -> Array:
    return x.view(DTYPES[f"u{8 * x.dtype.itemsize}"])


def _exactly(function: Callable[..., Array]) -> Callable[..., Array]:
    """Compute `function` in float64, rounded to the type of its arguments."""

    def apply(*args: Array) -> Array:
        with np.errstate(all="ignore"):
            return function(*(x.astype(np.float64) for x in args)).astype(args[0].dtype)

    return apply


def _adjusted(function: Callable[..., Array], flush: bool, clamp: bool) -> Callable[..., Array]:
    """With `.ftz`, subnormal sources and results become zero; with `.sat`, results are clamped."""

    def apply(*args: Array) -> Array:
        with np.errstate(all="ignore"):
            given = [num.flush(x) if x.dtype.kind == "f" else x for x in args] if flush else args
            out = function(*given)
            out = num.flush(out) if flush and out.dtype.kind == "f" else out
            return num.clamp_unit(out) if clamp else out

    return apply


_FLOAT_MODIFIERS = {"rn", "approx", "full", "ftz", "sat"}


def _float_modifiers(modifiers: list[str]) -> tuple[str, bool, bool] | None:
    """The type, and whether `.ftz` and `.sat` are there; None for other modifiers."""
    *rest, kind = modifiers
    if kind not in ("f16", "f32", "f64") or not set(rest) <= _FLOAT_MODIFIERS:
        return None
    return kind, "ftz" in rest, "sat" in rest


_UNARY: dict[str, Callable[..., Array]] = {
    "tanh": np.tanh, "ex2": np.exp2, "lg2": np.log2, "rcp": lambda x: 1.0 / x, "sqrt": np.sqrt,
    "rsqrt": lambda x: 1.0 / np.sqrt(x), "sin": np.sin, "cos": np.cos,
}  # fmt: skip


def _unary(base: str, modifiers: list[str]) -> PtxArithmetic | None:
    found = _float_modifiers(modifiers)
    if found is None:
        return None
    kind, flush, clamp = found
    return PtxArithmetic(kind, (kind,), _adjusted(_exactly(_UNARY[base]), flush, clamp))


_FLOAT: dict[str, Callable[..., Array]] = {
    "add": np.add, "sub": np.subtract, "mul": np.multiply, "min": num.minnum, "max": num.maxnum,
    "div": _exactly(np.divide), "fma": num.fma, "mad": num.fma,
}  # fmt: skip
_INTEGER: dict[str, Callable[..., Array]] = {
    "add": np.add, "sub": np.subtract, "min": np.minimum, "max": np.maximum,
}  # fmt: skip


_DIRECTED: dict[str, Callable[..., Array]] = {
    "add": directed.add, "sub": lambda a, b, mode: directed.add(a, -b, mode),
    "mul": directed.multiply, "fma": directed.fma,
}  # fmt: skip


def _float_sum(base: str, modifiers: list[str]) -> PtxArithmetic | None:
    *rest, kind = modifiers
    one = {"f32x2": "f32", "f16x2": "f16"}.get(kind)
    modes = [m for m in rest if m in ("rz", "rm", "rp")]
    with_nan = base in ("min", "max") and "NaN" in rest
    rest = [m for m in rest if m not in modes and not (with_nan and m == "NaN")]
    found = _float_modifiers([*rest, one or kind])
    if found is None or ((modes or one) and base not in _DIRECTED):
        return None
    if modes and found[0] != "f32":
        return None
    kind, flush, clamp = found
    function = _FLOAT[base]
    if modes:
        function = functools.partial(_DIRECTED[base], mode=modes[0])
    elif with_nan:
        function = num.minimum if base == "min" else num.maximum
    function = _adjusted(function, flush, clamp)
    count = 3 if base in ("fma", "mad") else 2
    if one is not None:
        both = f"b{2 * 8 * DTYPES[one].itemsize}"
        return PtxArithmetic(both, (both,) * count, _of_pairs(function, DTYPES[one], DTYPES[both]))
    return PtxArithmetic(kind, (kind,) * count, function)


def _of_pairs(function: Callable[..., Array], one: Any, both: Any) -> Callable[..., Array]:
    """Compute `function` of both floats of the type `one` that integers of type `both` hold."""

    def apply(*args: Array) -> Array:
        halves = [np.ascontiguousarray(x)[..., None].view(one) for x in args]
        out: Array = np.ascontiguousarray(function(*halves)).view(both)[..., 0]
        return out

    return apply


def _sum(base: str, modifiers: list[str]) -> PtxArithmetic | None:
    kind = modifiers[-1] if modifiers else ""
    if kind.startswith("f"):
        return _float_sum(base, modifiers)
    if base in _INTEGER and len(modifiers) == 1 and kind in DTYPES:
        return PtxArithmetic(kind, (kind, kind), _wrapping(_INTEGER[base]))
    return None


def _wrapping(function: Callable[..., Array]) -> Callable[..., Array]:
    def apply(*args: Array) -> Array:
        with np.errstate(all="ignore"):
            return function(*args)

    return apply


def _product(base: str, modifiers: list[str]) -> PtxArithmetic | None:
    """`mul` and `mad` of integers: `.lo`, `.hi`, `.wide`."""
    if not modifiers or modifiers[-1].startswith("f"):
        return _sum(base, modifiers)
    if len(modifiers) != 2 or modifiers[1][1:] not in ("16", "32", "64"):
        return None
    part, kind = modifiers
    bits = int(kind[1:])
    twice = f"{kind[0]}{2 * bits}"
    result = twice if part == "wide" else kind
    if part not in ("lo", "hi", "wide") or (part != "lo" and bits == 64):
        return None

    def multiply(a: Array, b: Array) -> Array:
        if part == "lo":
            return a * b
        whole = a.astype(DTYPES[twice]) * b.astype(DTYPES[twice])
        return whole if part == "wide" else (whole >> DTYPES[twice].type(bits)).astype(a.dtype)

    if base == "mul":
        return PtxArithmetic(result, (kind, kind), _wrapping(multiply))
    return PtxArithmetic(
        result, (kind, kind, result), _wrapping(lambda a, b, c: multiply(a, b) + c)
    )


def _bitwise(base: str, modifiers: list[str]) -> PtxArithmetic | None:
    (kind,) = modifiers if len(modifiers) == 1 else ("",)
    if kind != "pred" and not kind.startswith("b"):
        return None
    functions = {"and": np.bitwise_and, "or": np.bitwise_or, "xor": np.bitwise_xor}
    if base == "not":
        return PtxArithmetic(kind, (kind,), np.invert)
    return PtxArithmetic(kind, (kind, kind), functions[base])


def _shift(base: str, modifiers: list[str]) -> PtxArithmetic | None:
    (kind,) = modifiers if len(modifiers) == 1 else ("",)
    if kind not in DTYPES or kind[0] == "f":
        return None
    left, arithmetic = base == "shl", kind[0] == "s"

    def apply(x: Array, by: Array) -> Array:
        """Shift by an unsigned amount; one beyond the width shifts everything out."""
        width = x.dtype.itemsize * 8
        bits = x if arithmetic else _unsigned(x)
        fitting = np.minimum(by, width - 1).astype(bits.dtype)
        moved = bits << fitting if left else bits >> fitting
        beyond = moved if arithmetic else np.zeros_like(moved)
        return np.where(by < width, moved, beyond).view(x.dtype)

    return PtxArithmetic(kind, (kind, "u32"), apply)


def _sign(base: str, modifiers: list[str]) -> PtxArithmetic | None:
    kind = modifiers[-1] if modifiers else ""
    flush = modifiers[:-1] == ["ftz"]
    if kind not in DTYPES or (modifiers[:-1] and not flush):
        return None
    function = num.absolute if base == "abs" and kind[0] == "f" else {"abs": np.abs}.get(base)
    return PtxArithmetic(kind, (kind,), _adjusted(function or np.negative, flush, False))


def _counting(base: str, modifiers: list[str]) -> PtxArithmetic | None:
    (kind,) = modifiers if len(modifiers) == 1 else ("",)
    functions = {"popc": num.popcount, "clz": num.leading_zeros, "brev": num.reverse_bits}
    if kind not in ("b32", "b64"):
        return None
    function = functions[base]
    if base == "brev":
        return PtxArithmetic(kind, (kind,), function)
    return PtxArithmetic("b32", (kind,), lambda x: function(x).astype(np.int32))


def _lop3(a: Array, b: Array, c: Array, table: Array) -> Array:
    """Apply a truth table of three bits to every bit."""
    out = np.zeros_like(a | b | c)
    for row in range(8):
        if int(np.ravel(table)[0]) >> row & 1:
            first, second, third = (
                x if row >> bit & 1 else ~x for x, bit in ((a, 2), (b, 1), (c, 0))
            )
            out = out | (first & second & third)
    return out


def _extract_field(signed: bool) -> Callable[..., Array]:
    def apply(x: Array, start: Array, length: Array) -> Array:
        bits = x.dtype.itemsize * 8
        at = np.minimum(start & 0xFF, bits).astype(np.int64)
        count = np.minimum(length & 0xFF, bits).astype(np.int64)
        wide = _unsigned(x).astype(object) >> at
        field = wide & ((1 << count.astype(object)) - 1)
        if signed:
            sign = np.minimum(at + count - 1, bits - 1).astype(object)
            negative = ((_unsigned(x).astype(object) >> sign) & 1 == 1) & (count > 0)
            field = np.where(negative, field - (1 << count.astype(object)), field)
        return (
            np.array([int(f) & (1 << bits) - 1 for f in np.ravel(field)], np.uint64)
            .astype(np.dtype(f"uint{bits}"))
            .view(x.dtype)
        )

    return apply


def _field(base: str, modifiers: list[str]) -> PtxArithmetic | None:
    (kind,) = modifiers if len(modifiers) == 1 else ("",)
    if kind not in ("u32", "s32", "u64", "s64"):
        return None
    return PtxArithmetic(kind, (kind, "u32", "u32"), _extract_field(kind[0] == "s"))


def _address(base: str, modifiers: list[str]) -> PtxArithmetic | None:
    """`cvta`: an address of the simulator is the same in its own space and as a generic one."""
    *spaces, kind = modifiers or [""]
    space = spaces[1:] if spaces[:1] == ["to"] else spaces
    known = {"global", "shared", "shared::cta", "shared::cluster", "local", "const", "param"}
    if kind not in ("u64", "u32") or len(space) != 1 or space[0] not in known:
        return None
    return PtxArithmetic(kind, (kind,), lambda x: x)


def _insert_field(base: str, modifiers: list[str]) -> PtxArithmetic | None:
    if modifiers != ["b32"]:
        return None

    def insert(field: Array, x: Array, start: Array, length: Array) -> Array:
        u = np.uint64
        at, count = (np.minimum(n & 0xFF, 32).astype(u) for n in (start, length))
        mask = ((u(1) << count) - u(1)) << at
        bits = (_unsigned(x) & ~mask) | (_unsigned(field).astype(u) << at & mask)
        return bits.astype(np.uint32).view(np.int32)

    return PtxArithmetic("b32", ("b32", "b32", "u32", "u32"), insert)


def _funnel(base: str, modifiers: list[str]) -> PtxArithmetic | None:
    """`shf`: of the pair (b, a), whose lower word is the first source."""
    if modifiers not in (["l", "wrap", "b32"], ["r", "wrap", "b32"]):
        return None
    function = num.funnel_l if modifiers[0] == "l" else num.funnel_r
    return PtxArithmetic("b32", ("b32",) * 3, lambda a, b, by: function(b, a, by))


_COMPARISONS: dict[str, Callable[[Array, Array], Array]] = {
    "eq": operator.eq, "ne": operator.ne, "lt": operator.lt, "le": operator.le,
    "gt": operator.gt, "ge": operator.ge, "lo": operator.lt, "ls": operator.le,
    "hi": operator.gt, "hs": operator.ge,
}  # fmt: skip


def _compare(base: str, modifiers: list[str]) -> PtxArithmetic | None:
    """`setp`, with a third predicate where it combines."""
    modifiers = [m for m in modifiers if m != "ftz"]
    if len(modifiers) not in (2, 3) or modifiers[-1] not in DTYPES:
        return None
    name, *combine, kind = modifiers
    unordered = name.endswith("u") and name[:-1] in _COMPARISONS
    compare = _COMPARISONS.get(name[:-1] if unordered else name)
    if compare is None and name not in ("num", "nan"):
        return None

    def test(a: Array, b: Array) -> Array:
        nan = (a != a) | (b != b)
        if compare is None:
            return nan if name == "nan" else ~nan
        ordered = compare(a, b)
        return ordered | nan if unordered else ordered & ~nan

    if not combine:
        return PtxArithmetic("pred", (kind, kind), test)
    join = {"and": operator.and_, "or": operator.or_, "xor": operator.xor}.get(combine[0])
    if join is None:
        return None
    return PtxArithmetic("pred", (kind, kind, "pred"), lambda a, b, c: join(test(a, b), c))


def _select(base: str, modifiers: list[str]) -> PtxArithmetic | None:
    (kind,) = modifiers if len(modifiers) == 1 else ("",)
    if kind not in DTYPES:
        return None
    return PtxArithmetic(kind, (kind, kind, "pred"), lambda a, b, p: np.where(p, a, b))


def _move(base: str, modifiers: list[str]) -> PtxArithmetic | None:
    (kind,) = modifiers if len(modifiers) == 1 else ("",)
    return PtxArithmetic(kind, (kind,), lambda x: x) if kind in DTYPES else None


_ROUNDED = {"rni": np.rint, "rzi": np.trunc, "rmi": np.floor, "rpi": np.ceil}


def _convert(base: str, modifiers: list[str]) -> PtxArithmetic | None:
    flush, clamp = "ftz" in modifiers, "sat" in modifiers
    rest = [m for m in modifiers if m not in ("ftz", "sat")]
    if len(rest) not in (2, 3, 4):
        return None
    *rounding, target, source = rest
    if target in ("f16x2", "bf16x2") and source == "f32" and rounding == ["rn"]:
        return PtxArithmetic("b32", ("f32", "f32"), _pack_halves(target == "bf16x2"))
    if target == "e4m3x2" and source == "f16x2" and rounding == ["rn", "satfinite"]:
        return PtxArithmetic("b16", ("b32",), _narrow_halves)
    if len(rest) == 4:
        return None
    if target == "bf16" and source == "f32" and rounding == ["rn"]:
        return PtxArithmetic(
            "b16", ("f32",), lambda x: _bfloat_bits(x).astype(np.uint16).view("i2")
        )
    if source == "bf16" and target == "f32":
        return PtxArithmetic("f32", ("b16",), _from_bfloat)
    if target not in DTYPES or source not in DTYPES or (clamp and target[0] != "f"):
        return None
    to, to_float, from_float = DTYPES[target], target[0] == "f", source[0] == "f"
    if from_float and not to_float:
        if not rounding or rounding[0] not in _ROUNDED:
            return None
        rounded_by = _ROUNDED[rounding[0]]
        limits = np.iinfo(to)

        def whole(x: Array) -> Array:
            rounded = rounded_by(x.astype(np.float64))
            found = np.where(np.isnan(rounded), 0, np.clip(rounded, limits.min, limits.max))
            return num.float_to_int(found, to.type, int(limits.min), int(limits.max))

        return PtxArithmetic(target, (source,), _adjusted(whole, flush, False))
    if from_float and rounding and rounding[0] in _ROUNDED:
        rounded_by = _ROUNDED[rounding[0]]
        to_whole = _adjusted(lambda x: rounded_by(x).astype(to), flush, clamp)
        return PtxArithmetic(target, (source,), to_whole)
    if rounding not in ([], ["rn"]):
        return None
    return PtxArithmetic(target, (source,), _adjusted(lambda x: x.astype(to), flush, clamp))


def _from_bfloat(x: Array) -> Array:
    return (_unsigned(x).astype(np.uint32) << np.uint32(16)).view(np.float32)


def _bfloat_bits(x: Array) -> Array:
    """The bits of float32 rounded to bfloat16, to nearest, ties to even."""
    bits = x.view(np.uint32)
    rounded = bits + np.uint32(0x7FFF) + ((bits >> np.uint32(16)) & np.uint32(1))
    return np.where(np.isnan(x), np.uint32(0x7FFF), rounded >> np.uint32(16))


def _pack_halves(brain: bool) -> Callable[..., Array]:
    """The first source goes to the upper half (PTX ISA, cvt)."""

    def bits(x: Array) -> Array:
        if brain:
            return _bfloat_bits(x)
        return x.astype(np.float16).view(np.uint16).astype(np.uint32)

    return lambda high, low: (bits(high) << np.uint32(16) | bits(low)).view(np.int32)


def _narrow_halves(x: Array) -> Array:
    """Two halves as Float8E4M3FN: what is too large becomes the largest finite number."""
    halves = np.ascontiguousarray(x)[..., None].view(np.float16)
    narrow = num.convert_saturated(halves, ml_dtypes.float8_e4m3fn)
    return np.ascontiguousarray(narrow).view(np.int16)[..., 0]


def _permute(base: str, modifiers: list[str]) -> PtxArithmetic | None:
    if modifiers != ["b32"]:
        return None
    return PtxArithmetic("b32", ("b32",) * 3, num.permute_bytes)


def _logic(base: str, modifiers: list[str]) -> PtxArithmetic | None:
    return PtxArithmetic("b32", ("b32",) * 4, _lop3) if modifiers == ["b32"] else None


_FAMILIES: dict[str, Callable[[str, list[str]], PtxArithmetic | None]] = {
    **dict.fromkeys(_UNARY, _unary),
    **dict.fromkeys(("add", "sub", "min", "max", "div", "fma"), _sum),
    **dict.fromkeys(("mul", "mad"), _product),
    **dict.fromkeys(("and", "or", "xor", "not"), _bitwise),
    **dict.fromkeys(("shl", "shr"), _shift),
    **dict.fromkeys(("abs", "neg"), _sign),
    **dict.fromkeys(("popc", "clz", "brev"), _counting),
    "bfe": _field, "bfi": _insert_field, "shf": _funnel, "setp": _compare, "selp": _select,
    "mov": _move, "cvt": _convert, "prmt": _permute, "lop3": _logic, "cvta": _address,
}  # fmt: skip
