"""Derivatives of traced expressions: from the operations that made a number, those of its slope.

Known are sums, products, quotients, negation, fused multiplication and addition, absolute values,
choices, the larger and smaller of two, conversions of floats, powers, square roots, exponentials,
logarithms, trigonometric and hyperbolic functions, erf, and `if` with numbers as results. Integers,
comparisons and what is loaded from memory have the slope 0.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import basedsl_cute as cute
from basedsl import DSLTypeError
from basedsl_cute.cutlass_dsl import if_generate

_FLOATS = {
    "f16": cute.Float16,
    "bf16": cute.BFloat16,
    "f32": cute.Float32,
    "f64": cute.Float64,
}
_LN_2, _LN_10 = math.log(2), math.log(10)

# Operation -> slope of each operand, from the operands and the result.
_PARTIAL: dict[str, Callable[..., tuple[Any, ...]]] = {
    "arith.addf": lambda y, a, b: (1.0, 1.0),
    "arith.subf": lambda y, a, b: (1.0, -1.0),
    "arith.mulf": lambda y, a, b: (b, a),
    "arith.divf": lambda y, a, b: (1.0 / b, -y / b),
    "arith.negf": lambda y, a: (-1.0,),
    "arith.extf": lambda y, a: (1.0,),
    "arith.truncf": lambda y, a: (1.0,),
    "arith.maxnumf": lambda y, a, b: (cute.where(a >= b, 1.0, 0.0), cute.where(a >= b, 0.0, 1.0)),
    "arith.minnumf": lambda y, a, b: (cute.where(a <= b, 1.0, 0.0), cute.where(a <= b, 0.0, 1.0)),
    "math.fma": lambda y, a, b, c: (b, a, 1.0),
    "math.absf": lambda y, a: (cute.where(a < 0.0, -1.0, 1.0),),
    "math.sqrt": lambda y, a: (0.5 / y,),
    "math.rsqrt": lambda y, a: (-0.5 * y * y * y,),
    "math.exp": lambda y, a: (y,),
    "math.exp2": lambda y, a: (y * _LN_2,),
    "math.expm1": lambda y, a: (y + 1.0,),
    "math.log": lambda y, a: (1.0 / a,),
    "math.log2": lambda y, a: (1.0 / (a * _LN_2),),
    "math.log10": lambda y, a: (1.0 / (a * _LN_10),),
    "math.log1p": lambda y, a: (1.0 / (a + 1.0),),
    "math.sin": lambda y, a: (cute.math.cos(a),),
    "math.cos": lambda y, a: (-cute.math.sin(a),),
    "math.tan": lambda y, a: (1.0 + y * y,),
    "math.atan": lambda y, a: (1.0 / (1.0 + a * a),),
    "math.tanh": lambda y, a: (1.0 - y * y,),
    "math.erf": lambda y, a: (cute.math.exp(-a * a) * (2 / math.sqrt(math.pi)),),
    "math.powf": lambda y, a, b: (b * cute.math.pow(a, b - 1.0), y * cute.math.log(a)),
}
_PARTIAL["arith.maximumf"] = _PARTIAL["arith.maxnumf"]
_PARTIAL["arith.minimumf"] = _PARTIAL["arith.minnumf"]
# Results that change in steps, or that do not depend on a number's value.
_FLAT = frozenset(
    {"arith.constant", "arith.sitofp", "arith.uitofp", "cute.load", "math.floor", "math.ceil"}
    | {"math.round", "math.roundeven", "math.trunc"}
)


def derivative(result: Any, source: Any) -> Any:
    """Return d `result` / d `source`, two dynamic floats of the running trace, at this point of it.
    Inside of `elementwise` they are the lanes of vectors.

    `source` must not be a product, whose factors sums may have taken instead (`opaque`). Raises
    DSLTypeError for an operation between the two that has no known derivative.
    """
    value = result.ir_value()
    return _in_type_of(value, _Slopes(source.ir_value()).of(value))


def opaque(x: Any) -> Any:
    """Return a float equal to `x` that is no product: sums with products are contracted."""
    negated = -x
    return -negated


class _Slopes:
    """The slopes of values by `source`; None is zero."""

    def __init__(self, source: Any) -> None:
        self.known: dict[Any, Any] = {source: 1.0}

    def of(self, value: Any) -> Any:
        """The slope of a value; the operations that compute it are emitted here."""
        if value not in self.known:
            self.known[value] = self._made(value)
        return self.known[value]

    def _made(self, value: Any) -> Any:
        if _kind(value) is None:
            return None
        op = getattr(value.owner, "operation", value.owner)
        name = getattr(op, "name", None)
        if name is None or name in _FLAT:  # an argument of the kernel
            return None
        if name == "arith.select":
            return self._chosen(op.operands)
        if name == "scf.if":
            return self._branched(op, [result == value for result in op.results].index(True))
        slopes = [self.of(operand) for operand in op.operands]
        if all(slope is None for slope in slopes):
            return None
        if name not in _PARTIAL:
            raise DSLTypeError(
                f"the derivative of {name} is not known",
                hint="known are arithmetic, exp, log, sqrt, sin, cos, tanh, erf, choices and `if`",
            )
        partial = _PARTIAL[name](*map(_number, (value, *op.operands)))
        total = None
        for slope, factor in zip(slopes, partial, strict=True):
            if slope is not None:
                part = slope * factor
                total = part if total is None else total + part
        return total

    def _chosen(self, operands: Any) -> Any:
        condition, *values = operands
        slopes = [self.of(value) for value in values]
        if slopes == [None, None]:
            return None
        first, second = map(_in_type_of, values, slopes)
        return cute.where(cute.Boolean.from_value(condition), first, second)

    def _branched(self, op: Any, place: int) -> Any:
        """The slope of a result of an `if`: another one, with copies of what the first computes."""

        def of_branch(region: Any) -> Callable[[], Any]:
            def body() -> Any:
                copies: dict[Any, Any] = {}
                *inside, end = region.blocks[0].operations
                for inner in inside:
                    copy = inner.operation.clone()
                    _replace_operands(copy, copies)
                    copies.update(zip(inner.operation.results, copy.results, strict=True))
                found = end.operation.operands[place]
                own = _Slopes(None)
                own.known = self.known.copy()
                value = copies.get(found, found)
                return _in_type_of(value, own.of(value))

            return body

        then, other = map(of_branch, op.regions)
        return if_generate(cute.Boolean(op.operands[0]), then, other)


def _replace_operands(op: Any, copies: dict[Any, Any]) -> None:
    for i, operand in enumerate(op.operands):
        if operand in copies:
            op.operands[i] = copies[operand]
    for region in op.regions:
        for block in region.blocks:
            for inner in block.operations:
                _replace_operands(inner.operation, copies)


def _kind(value: Any) -> Any:
    """The float class of an SSA value, or of each lane of a vector; None for what is no float."""
    return _FLOATS.get(str(value.type).rpartition("x")[2].rstrip(">"))


def _in_type_of(value: Any, slope: Any) -> Any:
    """The slope of a value: a Float64 of such a value, else a Float32."""
    kind = cute.Float64 if _kind(value) is cute.Float64 else cute.Float32
    return kind(0.0 if slope is None else slope)


def _number(value: Any) -> Any:
    return _kind(value).from_value(value)
