"""`cute.math`: C's mathematical functions of numbers and vectors.

`fastmath=True` lets the target use approximate instructions. Float16 and BFloat16 are computed in
Float32; integers count as Float32.
"""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

from basedsl.numeric import Float32, Numeric, as_numeric, elementary, is_dynamic
from basedsl.tracing import require
from basedsl_cute.algebra.ignored_location import takes_location
from basedsl_cute.tensors.tensor_ssa import TensorSSA, elementwise, lane_by_lane
from basedsl_cute.tensors.vector_ops import combine


def _dynamic(x: Any) -> Any:
    """A number as one of the IR; known integers as Float32."""
    if isinstance(x, TensorSSA) or is_dynamic(x):
        return x
    number = as_numeric(x)
    return type(number)(number.value) if number.is_float else Float32(number.value)


def _unary(op: str, doc: str) -> Callable[..., Any]:
    @takes_location
    def function(x: Any, fastmath: bool = False) -> Any:
        return elementwise(lambda v: elementary(op, v, fastmath=fastmath), _dynamic(x))

    function.__name__ = function.__qualname__ = op.partition(".")[2]
    function.__doc__ = doc
    return function


def _binary(op: str, doc: str) -> Callable[..., Any]:
    @takes_location
    def function(x: Any, y: Any, fastmath: bool = False) -> Any:
        return elementwise(
            lambda a, b: elementary(op, a, b, fastmath=fastmath), _dynamic(x), _dynamic(y)
        )

    function.__name__ = function.__qualname__ = op.partition(".")[2]
    function.__doc__ = doc
    return function


exp = _unary("math.exp", "e to the power x.")
exp2 = _unary("math.exp2", "2 to the power x.")
expm1 = _unary("math.expm1", "e to the power x, minus 1.")
log = _unary("math.log", "The natural logarithm.")
log2 = _unary("math.log2", "The logarithm to base 2.")
log10 = _unary("math.log10", "The logarithm to base 10.")
log1p = _unary("math.log1p", "The natural logarithm of 1 + x.")
sqrt = _unary("math.sqrt", "The square root.")
rsqrt = _unary("math.rsqrt", "1 over the square root.")
cbrt = _unary("math.cbrt", "The cubic root.")
sin = _unary("math.sin", "The sine of an angle in radians.")
cos = _unary("math.cos", "The cosine of an angle in radians.")
tan = _unary("math.tan", "The tangent of an angle in radians.")
asin = _unary("math.asin", "The arc sine.")
acos = _unary("math.acos", "The arc cosine.")
atan = _unary("math.atan", "The arc tangent.")
sinh = _unary("math.sinh", "The hyperbolic sine.")
cosh = _unary("math.cosh", "The hyperbolic cosine.")
tanh = _unary("math.tanh", "The hyperbolic tangent.")
erf = _unary("math.erf", "The error function.")
erfc = _unary("math.erfc", "1 minus the error function.")
floor = _unary("math.floor", "The largest whole number that is not larger, as a float.")
ceil = _unary("math.ceil", "The smallest whole number that is not smaller, as a float.")
trunc = _unary("math.trunc", "The whole part, as a float.")
round = _unary("math.roundeven", "The nearest whole number, ties to even, as a float.")
atan2 = _binary("math.atan2", "The angle of the point (y, x): atan2(y, x).")
copysign = _binary("math.copysign", "x with the sign of y.")
fmod = _binary("arith.remf", "C's remainder, with the sign of x.")


@takes_location
def absf(x: Any, fastmath: bool = False) -> Any:
    """The absolute value."""
    return elementwise(abs, _dynamic(x))


@takes_location
def pow(x: Any, y: Any, fastmath: bool = False) -> Any:
    """x to the power y."""
    return elementwise(operator.pow, _dynamic(x), y)


@takes_location
def fma(a: Any, b: Any, c: Any) -> Any:
    """a * b + c, rounded once."""
    return elementwise(lambda x, y, z: elementary("math.fma", x, y, z), *map(_dynamic, (a, b, c)))


@takes_location
def max(a: Any, b: Any) -> Any:
    """The larger; of a NaN and a number, the number."""
    return elementwise(lambda x, y: combine("max", x, y), a, b)


@takes_location
def min(a: Any, b: Any) -> Any:
    """The smaller; of a NaN and a number, the number."""
    return elementwise(lambda x, y: combine("min", x, y), a, b)


@takes_location
def rcp(x: Any, approx: bool = False, ftz: bool = False) -> Any:
    """1 / x. With `approx` or `ftz` the hardware's reciprocal of a Float32 (PTX
    `rcp.approx.ftz.f32`, 1 ulp), for which subnormal numbers are zero.
    """
    value = _dynamic(x)
    if not (approx or ftz):
        return elementwise(lambda v: 1.0 / v, value)
    if isinstance(value, TensorSSA):
        return lane_by_lane(_approximate_rcp, value.to(Float32)).to(value.dtype)
    return _approximate_rcp(value.to(Float32)).to(type(value))


def _approximate_rcp(x: Numeric) -> Any:
    trace = require("rcp()")
    f32 = trace.ir.F32Type.get()
    op = trace.ir.Operation.create(
        "nvvm.rcp.approx.ftz.f", results=[f32], operands=[x.ir_value()], loc=trace.loc()
    )
    return Float32.from_value(op.result)
