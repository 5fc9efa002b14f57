"""`cute.math`: mathematical functions of numbers and vectors, as in C's <math.h>.

Each takes dynamic numbers, Python numbers or `TensorSSA` vectors, and returns the type of its
operand: integers become Float32, Float16 and BFloat16 are computed in Float32 and rounded. Vectors
broadcast. `fastmath=True` lets the target use approximate instructions; exp and exp2 of Float32
then flush results below the normal floats to zero. The functions can be used in functions that
are compiled, and raise DSLError elsewhere. `approx` is another name of `fastmath`; `ftz` says that
subnormal numbers may become zero, which they need not.
"""

from __future__ import annotations

import enum
import operator
from collections.abc import Callable
from typing import Any

from basedsl import (
    DSLTypeError,
    Float32,
    Numeric,
    as_numeric,
    current_trace,
    elementary,
    is_dynamic,
)
from basedsl_cute.algebra.ignored_location import takes_location
from basedsl_cute.tensors.tensor import Tensor
from basedsl_cute.tensors.tensor_ssa import TensorSSA, elementwise, lane_by_lane
from basedsl_cute.tensors.vector_ops import combine


def _dynamic(x: Any) -> Any:
    """The operand as a dynamic value or a float; known integers become Float32."""
    if isinstance(x, TensorSSA) or is_dynamic(x):
        return x
    if isinstance(x, Tensor):
        raise DSLTypeError(
            "a tensor is memory: functions take a vector or an element",
            hint="x.load() is the vector of its elements, x[i] one of them",
        )
    number = as_numeric(x)
    return type(number)(number.value) if number.is_float else Float32(number.value)


_OPERANDS = """

    Operands are numbers or vectors (`TensorSSA`), the result is of their type; an integer known
    while compiling becomes a Float32. With `fastmath` the GPU may use approximate instructions{}.
    """
_OTHERS = "; so\n    it may with `approx`, and with `ftz` subnormal numbers may become zero"


def _unary(op: str, doc: str) -> Callable[..., Any]:
    @takes_location
    def function(x: Any, fastmath: bool = False, *, approx: bool = False, ftz: bool = False) -> Any:
        fast = fastmath or approx
        return elementwise(lambda v: elementary(op, v, fastmath=fast), _dynamic(x))

    function.__name__ = function.__qualname__ = op.partition(".")[2]
    function.__doc__ = doc + _OPERANDS.format(_OTHERS)
    return function


def _binary(op: str, doc: str) -> Callable[..., Any]:
    @takes_location
    def function(x: Any, y: Any, fastmath: bool = False) -> Any:
        return elementwise(
            lambda a, b: elementary(op, a, b, fastmath=fastmath), _dynamic(x), _dynamic(y)
        )

    function.__name__ = function.__qualname__ = op.partition(".")[2]
    function.__doc__ = doc + _OPERANDS.format("")
    return function


exp = _unary("math.exp", "The exponential function e**x.")
exp2 = _unary("math.exp2", "The power 2**x.")
expm1 = _unary("math.expm1", "e**x - 1, accurate near 0.")
log = _unary("math.log", "The natural logarithm of x; NaN below 0.")
log2 = _unary("math.log2", "The logarithm of x to base 2; NaN below 0.")
log10 = _unary("math.log10", "The logarithm of x to base 10; NaN below 0.")
log1p = _unary("math.log1p", "The natural logarithm of 1 + x, accurate near 0.")
sqrt = _unary("math.sqrt", "The square root of x; NaN below 0.")
rsqrt = _unary("math.rsqrt", "The reciprocal square root 1 / sqrt(x).")
cbrt = _unary("math.cbrt", "The cube root of x.")
sin = _unary("math.sin", "The sine of x, an angle in radians.")
cos = _unary("math.cos", "The cosine of x, an angle in radians.")
tan = _unary("math.tan", "The tangent of x, an angle in radians.")
asin = _unary("math.asin", "The arc sine of x, in radians; NaN outside of [-1, 1].")
acos = _unary("math.acos", "The arc cosine of x, in radians; NaN outside of [-1, 1].")
atan = _unary("math.atan", "The arc tangent of x, in radians.")
sinh = _unary("math.sinh", "The hyperbolic sine of x.")
cosh = _unary("math.cosh", "The hyperbolic cosine of x.")
tanh = _unary("math.tanh", "The hyperbolic tangent of x.")
erf = _unary("math.erf", "The error function of x.")
erfc = _unary("math.erfc", "1 - erf(x), accurate for large x.")
floor = _unary("math.floor", "The largest whole number <= x, as a float.")
ceil = _unary("math.ceil", "The smallest whole number >= x, as a float.")
trunc = _unary("math.trunc", "The whole part of x, rounded towards 0, as a float.")
round = _unary("math.roundeven", "The whole number nearest to x, ties to even, as a float.")
atan2 = _binary("math.atan2", "The angle of the point (x, y), in radians: atan2(y, x).")
copysign = _binary("math.copysign", "The magnitude of x with the sign of y.")
fmod = _binary("arith.remf", "The remainder of x / y with the sign of x, as C's fmod.")


@takes_location
def absf(x: Any, fastmath: bool = False) -> Any:
    """The absolute value of x, a number or a vector; `fastmath` has no effect on it."""
    return elementwise(operator.abs, _dynamic(x))


abs = absf
roundeven = round


@takes_location
def pow(x: Any, y: Any, fastmath: bool = False) -> Any:
    """The power x**y of numbers or vectors; `fastmath` has no effect on it."""
    return elementwise(operator.pow, _dynamic(x), y)


class RoundingMode(enum.Enum):
    """The rounding of an operation; values are PTX's names."""

    NEAREST_EVEN = "rn"
    TOWARD_ZERO = "rz"
    DOWNWARD = "rm"
    UPWARD = "rp"


@takes_location
def fma(a: Any, b: Any, c: Any, *, rounding: Any = None, ftz: bool = False) -> Any:
    """The fused multiply-add a * b + c, rounded once, to nearest even.

    `rounding` may say so: `RoundingMode.NEAREST_EVEN` or "rn"; DSLTypeError for other modes. `ftz`
    lets subnormal numbers be zero.
    """
    if getattr(rounding, "value", rounding) not in (None, "rn"):
        raise DSLTypeError(
            f"fma() rounds to nearest even, not by {rounding}",
            hint='cute.arch.inline_ptx has other modes: "fma.rm.f32 $0, $1, $2, $3;"',
        )
    return elementwise(lambda x, y, z: elementary("math.fma", x, y, z), *map(_dynamic, (a, b, c)))


@takes_location
def max(a: Any, b: Any, *, ftz: bool = False) -> Any:
    """The larger of a and b; of a NaN and a number, the number. `ftz` lets subnormal ones be
    zero.
    """
    return elementwise(lambda x, y: combine("max", x, y), a, b)


@takes_location
def min(a: Any, b: Any, *, ftz: bool = False) -> Any:
    """The smaller of a and b; of a NaN and a number, the number. `ftz` lets subnormal ones be
    zero.
    """
    return elementwise(lambda x, y: combine("min", x, y), a, b)


@takes_location
def rcp(x: Any, approx: bool = False, ftz: bool = False) -> Any:
    """The reciprocal 1 / x.

    With `approx` or `ftz`, the approximate instruction of Float32 (PTX ISA 9.7.3, rcp.approx.ftz:
    1 ulp), which flushes subnormal numbers to zero.
    """
    value = _dynamic(x)
    if not (approx or ftz):
        return elementwise(lambda v: 1.0 / v, value)
    if isinstance(value, TensorSSA):
        return lane_by_lane(_approximate_rcp, value.to(Float32)).to(value.dtype)
    return _approximate_rcp(value.to(Float32)).to(type(value))


def _approximate_rcp(x: Numeric) -> Any:
    trace = current_trace("rcp()")
    f32 = trace.ir.F32Type.get()
    op = trace.ir.Operation.create(
        "nvvm.rcp.approx.ftz.f", results=[f32], operands=[x.ir_value()], loc=trace.loc()
    )
    return Float32.from_value(op.result)
