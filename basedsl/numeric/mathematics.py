"""Python's math functions for numeric values: ops of MLIR's math dialect, or short formulas.

Integers count as the default float, as in Python; Float16 and BFloat16 are computed in Float32 and
rounded. Where Python raises (sqrt(-1.0), exp(1000.0)) compiled code gives the IEEE 754 result, NaN
or an infinity, unless the emitter has float checks. Numbers known while compiling are computed by
Python and rounded to their type.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

from basedsl.errors import DSLTypeError
from basedsl.numeric.checks import check_float
from basedsl.numeric.conversion import emit_conversion
from basedsl.numeric.engine import apply
from basedsl.numeric.kit import Kit, kit_of
from basedsl.numeric.number import Numeric
from basedsl.numeric.operators import POW, absolute, logical_not
from basedsl.numeric.promotion import Type, common_type, defaults, operand_type, storage_only
from basedsl.numeric.selection import in_common_type, in_type, maximum, select
from basedsl.numeric.types import Boolean, Float32
from basedsl.tracing import trace as tracing

# Python function -> op of as many operands.
OPS: dict[Callable[..., float], str] = {
    math.acos: "math.acos",
    math.acosh: "math.acosh",
    math.asin: "math.asin",
    math.asinh: "math.asinh",
    math.atan: "math.atan",
    math.atan2: "math.atan2",
    math.atanh: "math.atanh",
    math.cbrt: "math.cbrt",
    math.copysign: "math.copysign",
    math.cos: "math.cos",
    math.cosh: "math.cosh",
    math.erf: "math.erf",
    math.erfc: "math.erfc",
    math.exp: "math.exp",
    math.exp2: "math.exp2",
    math.expm1: "math.expm1",
    math.fabs: "math.absf",
    math.fmod: "arith.remf",
    math.log10: "math.log10",
    math.log1p: "math.log1p",
    math.log2: "math.log2",
    math.sin: "math.sin",
    math.sinh: "math.sinh",
    math.sqrt: "math.sqrt",
    math.tan: "math.tan",
    math.tanh: "math.tanh",
}
if hasattr(math, "fma"):  # Python 3.13
    OPS[math.fma] = "math.fma"


def float_type(*operands: Any) -> Type:
    """Return the float type in which a math function of the operands is computed."""
    now = defaults()
    T, tie = operand_type(operands[0], now)
    for x in operands[1:]:
        U, other = operand_type(x, now)
        T, tie = common_type(T, tie, U, other, now), min(tie, other)
    if T.is_integer:
        return now.float
    if not T.format.arithmetic:
        raise storage_only(T)
    return T


def elementary(op: str, *operands: Any, fastmath: bool = False) -> Numeric:
    """Compute the op called `op`, for instance "math.rsqrt", of numbers promoted to one float type.

    At least one operand is dynamic. `fastmath` lets the target approximate. Returns a number of
    that float type.
    """
    T = float_type(*operands)
    return _emit(op, T, [in_type(x, T) for x in operands], fastmath)


def _emit(op: str, T: Type, operands: Sequence[Numeric], fastmath: bool = False) -> Numeric:
    kit = _kit()
    values = [x.ir_value() for x in operands]
    kit.begin()
    F = T if T.width >= 32 else Float32
    wide = [emit_conversion(kit, T, F, v) for v in values]
    attributes = {"fastmath": kit.ir.Attribute.parse("#arith.fastmath<fast>")} if fastmath else None
    result = kit.create(
        op, results=[kit.type_of(F)], operands=wide, attributes=attributes, loc=kit.loc
    ).result
    return T.from_value(emit_conversion(kit, F, T, result))


def _kit() -> Kit:
    return kit_of(tracing.current_trace("a math function of a dynamic value"))


def _of_op(original: Callable[..., float], op: str) -> Callable[..., Any]:
    def function(*operands: Any) -> Numeric:
        T = float_type(*operands)
        xs = [in_type(x, T) for x in operands]
        if any(x.region is not None for x in xs):
            result = _emit(op, T, xs)
            if _kit().float_checks:
                _check_result(original, xs, result)
            return result
        return T.concrete(original(*(x.value for x in xs)))

    return function


# Errors ---------------------------------------------------------------------------------------

# The arguments for which Python raises ValueError("math domain error").
_OUTSIDE: dict[Callable[..., float], Callable[..., Any]] = {
    math.acos: lambda x: absolute(x) > 1.0,
    math.acosh: lambda x: x < 1.0,
    math.asin: lambda x: absolute(x) > 1.0,
    math.atanh: lambda x: absolute(x) >= 1.0,
    math.cos: lambda x: isinf(x),
    math.fmod: lambda x, y: (isinf(x) & (y == y)) | ((y == 0.0) & (x == x)),
    math.log: lambda x: x <= 0.0,
    math.log10: lambda x: x <= 0.0,
    math.log1p: lambda x: x <= -1.0,
    math.log2: lambda x: x <= 0.0,
    math.sin: lambda x: isinf(x),
    math.sqrt: lambda x: x < 0.0,
    math.tan: lambda x: isinf(x),
}
# Those for which it raises OverflowError("math range error") when the result is infinite.
_OVERFLOWS = (math.cosh, math.exp, math.exp2, math.expm1, math.sinh)


def _check_result(original: Callable[..., float], xs: list[Numeric], result: Numeric) -> None:
    kit = _kit()
    if original in _OUTSIDE:
        inside = logical_not(_OUTSIDE[original](*xs)).ir_value()
        check_float(kit, lambda: inside, ValueError, "math domain error")
    if original in _OVERFLOWS:
        fits = logical_not(isinf(result) & isfinite(xs[0])).ir_value()
        check_float(kit, lambda: fits, OverflowError, "math range error")


# Formulas -------------------------------------------------------------------------------------


def log(x: Any, base: Any = None) -> Any:
    """The natural logarithm, or the one to `base`."""
    if base is None:
        return _of_op(math.log, "math.log")(x)
    T = float_type(x, base)
    return log(in_type(x, T)) / log(in_type(base, T))


def power(x: Any, y: Any) -> Any:
    """`math.pow`: the result always is a float."""
    T = float_type(x, y)
    return apply(POW, in_type(x, T), in_type(y, T))


def degrees(x: Any) -> Any:
    """Radians to degrees."""
    return in_type(x, float_type(x)) * (180.0 / math.pi)


def radians(x: Any) -> Any:
    """Degrees to radians."""
    return in_type(x, float_type(x)) * (math.pi / 180.0)


def isnan(x: Any) -> Any:
    """`math.isnan`: True for NaN."""
    y = _as_float(x)
    return y != y


def isinf(x: Any) -> Any:
    """`math.isinf`: True for an infinity."""
    return absolute(_as_float(x)) == math.inf


def isfinite(x: Any) -> Any:
    """`math.isfinite`: False for NaN and the infinities."""
    return absolute(_as_float(x)) < math.inf


def _as_float(x: Any) -> Numeric:
    return in_type(x, float_type(x))


def hypot(*coordinates: Any) -> Any:
    """`math.hypot`: the Euclidean norm, without overflow in between; infinite if a part is."""
    T = float_type(*coordinates)
    sizes = [absolute(in_type(x, T)) for x in coordinates]
    largest = sizes[0]
    for size in sizes[1:]:
        largest = maximum(largest, size)
    one, zero = T._known(1.0), T._known(0.0)
    scale = select((largest == 0.0) | (largest == math.inf), one, largest)
    squares = zero
    infinite: Any = Boolean._known(False)
    for size in sizes:
        ratio = size / scale
        squares = squares + ratio * ratio
        infinite = infinite | (size == math.inf)
    root = _of_op(math.sqrt, "math.sqrt")(squares)
    return select(infinite, T._known(math.inf), scale * root)


def dist(p: Sequence[Any], q: Sequence[Any]) -> Any:
    """`math.dist`: the Euclidean distance of two points given as sequences."""
    if len(p) != len(q):
        raise ValueError("both points must have the same number of dimensions")
    return hypot(*(a - b for a, b in zip(p, q, strict=True)))


def modf(x: Any) -> tuple[Any, Any]:
    """`math.modf`: the fractional and the integral part, both floats with the sign of x."""
    y = _as_float(x)
    copysign = _of_op(math.copysign, "math.copysign")
    if y.region is None:
        fraction, whole = math.modf(y.value)
        return type(y)._known(fraction), type(y)._known(whole)
    integral = _emit("math.trunc", type(y), [y])
    rest = select(isinf(y), type(y)._known(0.0), y - integral)
    return copysign(rest, y), integral


def isclose(a: Any, b: Any, *, rel_tol: float = 1e-09, abs_tol: float = 0.0) -> Any:
    """`math.isclose`, with the difference computed in the operands' type."""
    T = float_type(a, b)
    x, y = in_type(a, T), in_type(b, T)
    difference = absolute(x - y)
    scale = maximum(absolute(x), absolute(y))
    near = (difference <= scale * rel_tol) | (difference <= abs_tol)
    return (x == y) | (near & isfinite(difference))


def gcd(*numbers: Any) -> Any:
    """`math.gcd`: the greatest common divisor, not negative; Euclid's algorithm as a loop."""
    result, *others = _magnitudes(numbers)
    for size in others:
        result = _gcd(result, size)
    return result


def lcm(*numbers: Any) -> Any:
    """`math.lcm`: the least common multiple, not negative."""
    result, *others = _magnitudes(numbers)
    for size in others:
        divisor = maximum(_gcd(result, size), 1)
        result = absolute(result // divisor * size)
    return result


def _magnitudes(numbers: Sequence[Any]) -> list[Numeric]:
    sizes = [absolute(x) for x in in_common_type(*numbers)]
    if sizes[0].is_float:
        raise DSLTypeError(f"a divisor needs integers, not {type(sizes[0]).__name__}")
    return sizes


def _gcd(x: Numeric, y: Numeric) -> Numeric:
    T = type(x)
    if x.region is None and y.region is None:
        return T._known(math.gcd(x.value, y.value))
    kit = _kit()
    values = [x.ir_value(), y.ir_value()]
    kit.begin()
    loc = kit.loc
    zero = kit.constant(T, 0)

    def test(carried: Any) -> Any:
        kit.loc = loc
        return kit.cmpi("ne", carried[1], zero), list(carried)

    def body(carried: Any) -> Any:
        kit.loc = loc
        return [carried[1], kit.op("arith.remui", kit.type_of(T), *carried)]

    return T.from_value(kit.trace.emitter.while_(values, test, body, loc)[0])


FORMULAS: dict[Callable[..., Any], Callable[..., Any]] = {
    math.degrees: degrees,
    math.dist: dist,
    math.gcd: gcd,
    math.hypot: hypot,
    math.isclose: isclose,
    math.isfinite: isfinite,
    math.isinf: isinf,
    math.isnan: isnan,
    math.lcm: lcm,
    math.log: log,
    math.modf: modf,
    math.pow: power,
    math.radians: radians,
}


def functions() -> dict[Any, Callable[..., Any]]:
    """Return the table from Python's math functions to those for numeric values."""
    return {f: _of_op(f, op) for f, op in OPS.items()} | FORMULAS
